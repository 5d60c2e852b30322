//! What every protocol needs to write a conversation down: whose turn it is, ids that a provider accepts, arguments that it
//! can read, and the mark that says which protocol a proof of reasoning belongs to. Pure.

use std::borrow::Cow;

use adjutant_core::content::Hash;
use adjutant_core::id::CallId;
use adjutant_core::message::{Message, ModelRequest, Part, Role};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Who speaks, in protocols that know two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Whoever uses the model, tools included.
    User,
    /// The model.
    Model,
}

/// All that one side says before the other answers.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) side: Side,
    pub(crate) parts: Vec<&'a Part>,
}

/// The conversation in turns that alternate, as the strict protocols want it.
pub(crate) fn turns(request: &ModelRequest) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for Message { role, parts } in &request.messages {
        let side = match role {
            Role::User | Role::Tool => Side::User,
            Role::Assistant => Side::Model,
        };
        match turns.last_mut() {
            Some(last) if last.side == side => last.parts.extend(parts),
            Some(_) | None => turns.push(Turn { side, parts: parts.iter().collect() }),
        }
    }
    turns
}

/// How a protocol wants the ids of calls to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdForm {
    /// Up to 64 letters, digits, `_` and `-`.
    Word,
    /// Exactly nine letters and digits.
    Nine,
}

/// The id of a call in the form a protocol wants. The same id always becomes the same text, so that a result finds its call.
pub(crate) fn wire_id(id: &CallId, form: IdForm) -> Cow<'_, str> {
    let text = id.as_str();
    let fits = match form {
        IdForm::Word => {
            text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        }
        IdForm::Nine => text.len() == 9 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    };
    if fits {
        return Cow::Borrowed(text);
    }
    let length = match form {
        IdForm::Word => 32,
        IdForm::Nine => 9,
    };
    let digits = Hash::of(text.as_bytes()).to_string();
    let digits: String = digits.chars().filter(char::is_ascii_alphanumeric).take(length).collect();
    Cow::Owned(digits)
}

/// Arguments as a provider can read them: the model's own text, if it is an object. Otherwise providers refuse the whole
/// request, so such a text is put into an object: the model still sees what it wrote, and the run can go on.
pub(crate) fn readable(arguments: Cow<'_, str>) -> Cow<'_, str> {
    if arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(&arguments).is_ok() {
        return arguments;
    }
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    Cow::Owned(serde_json::json!({ "unreadable_arguments": arguments }).to_string())
}

/// Arguments for protocols that take the JSON itself in place of a text that holds it. Doubled keys stay doubled.
pub(crate) fn readable_object(arguments: Cow<'_, str>) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(readable(arguments).into_owned())
}

/// What a tool answered, for protocols that have no flag for failure: then the text has to say it.
pub(crate) fn outcome(output: Cow<'_, str>, is_error: bool) -> Cow<'_, str> {
    if is_error { Cow::Owned(format!("Error: {output}")) } else { output }
}

/// Whose proof it is. A proof is sent back only to the model that can check it; others refuse the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A signed block of reasoning of Anthropic's models, wherever they run.
    Anthropic,
    /// A block that Anthropic hid; there is no text, only the proof.
    AnthropicHidden,
    /// Gemini's proof, with the place it was at.
    Gemini,
    /// An item of reasoning of the responses protocol.
    OpenAi,
}

impl Mark {
    const fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::AnthropicHidden => "anthropic-hidden",
            Self::Gemini => "gemini",
            Self::OpenAi => "openai",
        }
    }

    /// What a proof of this kind begins with, of the model that was asked by this name.
    pub(crate) fn prefix(self, model: &str) -> String {
        format!("{}:{model}|", self.word())
    }

    /// The proof behind its mark, if it is of this kind and of the model that is asked now.
    pub(crate) fn read<'a>(self, signature: Option<&'a str>, model: &str) -> Option<&'a str> {
        let (whose, proof) = signature?.strip_prefix(self.word())?.strip_prefix(':')?.split_once('|')?;
        (whose == model).then_some(proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_a_provider_would_refuse_become_others_and_always_the_same() {
        let id = |text: &str| CallId::parse(text).unwrap();
        assert_eq!(wire_id(&id("toolu_01-A"), IdForm::Word), "toolu_01-A");
        for bad in ["functions.look:0", &"x".repeat(65)] {
            let made = wire_id(&id(bad), IdForm::Word).into_owned();
            assert_eq!(made, wire_id(&id(bad), IdForm::Word));
            assert!(made.len() == 32 && made.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{made}");
        }
        assert_eq!(wire_id(&id("abcDEF123"), IdForm::Nine), "abcDEF123");
        assert_eq!(wire_id(&id("call_1"), IdForm::Nine).len(), 9);
        assert_ne!(wire_id(&id("call_1"), IdForm::Nine), wire_id(&id("call_2"), IdForm::Nine));
    }

    #[test]
    fn a_proof_goes_only_to_the_model_it_belongs_to() {
        let proof = format!("{}abc|d", Mark::Anthropic.prefix("claude-v1:0"));
        assert_eq!(Mark::Anthropic.read(Some(&proof), "claude-v1:0"), Some("abc|d"));
        assert_eq!(Mark::Anthropic.read(Some(&proof), "claude-v1:1"), None, "another model");
        assert_eq!(Mark::AnthropicHidden.read(Some(&proof), "claude-v1:0"), None);
        assert_eq!(Mark::Gemini.read(Some(&proof), "claude-v1:0"), None);
        assert_eq!(Mark::Anthropic.read(Some("anthropic:abc"), "abc"), None, "a proof of nobody in particular");
        assert_eq!(Mark::Gemini.read(None, "m"), None);
    }
}
