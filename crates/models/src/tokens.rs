//! Counting tokens before, or without, a provider's word. Two numbers for two purposes: a bound that is never too low, for
//! reserving money; and an estimate, for showing and for what no provider counted, exact where the tokenizer of a model is built
//! in and else by what its provider has counted lately.

mod exact;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::message::{ModelAnswer, ModelRequest, Part, told};
use adjutant_core::money::TokenUsage;

use self::exact::Vocabulary;
pub use self::exact::exact;

/// Bytes of plain English text that make about one token, where nobody has counted yet.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens a provider may add around a message, a part or a tool for its own marks.
const MARKS: u64 = 16;
/// Tokens that stand around each message of models whose tokenizer is built in.
const MESSAGE_MARKS: u64 = 4;
/// Tokens an image may be counted as: the dearest way of counting a large one, rounded up.
const IMAGE_TOKENS: u64 = 50_000;
/// Bytes after which older measurements of a model count half, so that the ratio follows a change of tokenizer.
const MEMORY: u64 = 4 * 1024 * 1024;

/// Bytes of a request, as they are written for a model; images are not text and count apart.
fn size(request: &ModelRequest) -> u64 {
    let parts = request.messages.iter().flat_map(|message| &message.parts).map(|part| match part {
        Part::Text { text, .. } | Part::Thinking { text, .. } => text.len(),
        Part::Call { name, arguments, .. } => name.len() as u64 + arguments.len(),
        Part::Result { output, frame, .. } => output.len() + frame.as_ref().map_or(0, |frame| frame.len()),
        Part::Image { .. } => 0,
    });
    request.system.len() + parts.sum::<u64>() + request.tools.bytes()
}

fn images(request: &ModelRequest) -> u64 {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.filter(|part| matches!(part, Part::Image { .. })).count() as u64
}

/// Tokens of a request at the most: no tokenizer makes more than one of a byte.
#[must_use]
pub fn bound(request: &ModelRequest) -> u64 {
    let parts: usize = request.messages.iter().map(|message| message.parts.len() + 1).sum();
    // Signatures and ids go along too.
    let proofs = request.messages.iter().flat_map(|message| &message.parts).map(|part| match part {
        Part::Thinking { signature, .. } => signature.as_ref().map_or(0, String::len) as u64,
        Part::Call { id, .. } | Part::Result { id, .. } => id.as_str().len() as u64,
        Part::Text { .. } | Part::Image { .. } => 0,
    });
    let marks = (parts + request.tools.len() + 1) as u64 * MARKS;
    // A schema that is handed on is read beside the prompt that holds it, too.
    let schema = request.output_schema.as_ref().map_or(0, |schema| schema.len() as u64 + MARKS);
    size(request) + schema + proofs.sum::<u64>() + marks + images(request) * IMAGE_TOKENS
}

/// Tokens of texts that are embedded, at the most.
#[must_use]
pub fn bound_of(texts: &[String]) -> u64 {
    texts.iter().map(|text| text.len() as u64 + MARKS).sum()
}

/// About how many tokens a request is, rather too many than too few: where a window is made to its measure.
pub(crate) fn probable(request: &ModelRequest) -> u64 {
    size(request).div_ceil(BYTES_PER_TOKEN - 1)
}

/// About how many tokens a request and its answer are, for models that count nothing and bill nobody.
pub(crate) fn estimate(request: &ModelRequest, answer: &ModelAnswer) -> TokenUsage {
    Counter { vocabulary: None, seen: Seen::default() }.usage(request, answer)
}

/// How many bytes make a token, learned for each model from what its provider counts. Cheap to clone; clones know the same.
#[derive(Debug, Clone, Default)]
pub struct Ratios(Arc<Mutex<HashMap<String, Seen>>>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    bytes: u64,
    tokens: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { bytes: BYTES_PER_TOKEN, tokens: 1 }
    }
}

/// Counts the tokens of one model.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    vocabulary: Option<Vocabulary>,
    seen: Seen,
}

impl Counter {
    /// Whether its tokenizer is built in. Then counting takes a moment, the first time longer: not on a thread that
    /// serves others.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.vocabulary.is_some()
    }

    /// The same by what was learned alone.
    #[must_use]
    pub const fn rough(self) -> Self {
        Self { vocabulary: None, ..self }
    }

    /// Tokens of a text.
    #[must_use]
    pub fn text(&self, text: &str) -> u64 {
        self.texts([text])
    }

    /// Tokens of several texts.
    pub fn texts<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> u64 {
        let texts = texts.into_iter();
        match self.vocabulary {
            Some(vocabulary) => texts.map(|text| vocabulary.count(text)).sum(),
            None => self.bytes(texts.map(|text| text.len() as u64).sum()),
        }
    }

    /// Tokens of the definitions of tools.
    #[must_use]
    pub fn tools(&self, request: &ModelRequest) -> u64 {
        if request.tools.is_empty() {
            return 0;
        }
        match self.vocabulary {
            Some(vocabulary) => vocabulary.count(&serde_json::to_string(&*request.tools).unwrap_or_default()),
            None => self.bytes(request.tools.bytes()),
        }
    }

    /// Tokens of a part of a message; none of an image, which is no text.
    #[must_use]
    pub fn part(&self, part: &Part) -> u64 {
        self.texts(texts(part).iter().map(AsRef::as_ref))
    }

    /// Tokens of a request.
    #[must_use]
    pub fn request(&self, request: &ModelRequest) -> u64 {
        let tokens = if self.is_exact() {
            let parts = request.messages.iter().flat_map(|message| &message.parts);
            let marks = (request.messages.len() as u64 + 1) * MESSAGE_MARKS;
            self.text(&request.system.text())
                + parts.map(|part| self.part(part)).sum::<u64>()
                + self.tools(request)
                + marks
        } else {
            self.bytes(size(request))
        };
        tokens.max(1)
    }

    /// Tokens of a request and its answer.
    #[must_use]
    pub fn usage(&self, request: &ModelRequest, answer: &ModelAnswer) -> TokenUsage {
        let reasoning = self.texts(answer.thinking.iter().map(|thinking| thinking.text.as_str()));
        let called = answer.calls.iter().flat_map(|call| [call.name.as_str(), call.arguments.as_str()]);
        let output = reasoning + self.texts(called.chain([answer.text.as_str()]));
        TokenUsage { input: self.request(request), output, reasoning, ..TokenUsage::default() }
    }

    fn bytes(&self, bytes: u64) -> u64 {
        let tokens = (u128::from(bytes) * u128::from(self.seen.tokens)).div_ceil(u128::from(self.seen.bytes.max(1)));
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

/// The texts of a part, as they are written for a model.
fn texts(part: &Part) -> Vec<Cow<'_, str>> {
    match part {
        Part::Text { text, .. } | Part::Thinking { text, .. } => vec![text.text()],
        Part::Call { name, arguments, .. } => vec![Cow::Borrowed(name.as_str()), arguments.text()],
        Part::Result { output, frame, .. } => vec![told(output, frame.as_deref())],
        Part::Image { .. } => Vec::new(),
    }
}

impl Ratios {
    /// Takes a provider's count of a request without images.
    pub fn learn(&self, model: &str, request: &ModelRequest, counted: u64) {
        if images(request) == 0 {
            self.learn_bytes(model, size(request), counted);
        }
    }

    /// Takes a provider's count of texts; a count of nothing teaches nothing.
    pub fn learn_bytes(&self, model: &str, bytes: u64, counted: u64) {
        if bytes == 0 || counted == 0 {
            return;
        }
        let mut ratios = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = ratios.entry(model.to_owned()).or_insert(Seen { bytes: 0, tokens: 0 });
        seen.bytes = seen.bytes.saturating_add(bytes);
        seen.tokens = seen.tokens.saturating_add(counted);
        if seen.bytes > MEMORY {
            *seen = Seen { bytes: seen.bytes / 2, tokens: (seen.tokens / 2).max(1) };
        }
    }

    /// Whether anything was learned about a model.
    #[must_use]
    pub fn knows(&self, model: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(model)
    }

    /// What counts the tokens of a model, `provider/model`, of a provider of this kind.
    #[must_use]
    pub fn counter(&self, kind: Option<&str>, model: &str) -> Counter {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or_default();
        let own = model.split_once('/').map_or(model, |(_, own)| own);
        Counter { vocabulary: Vocabulary::of(kind.unwrap_or_default(), own), seen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{request, with_tools};

    #[test]
    fn the_bound_is_never_below_one_token_for_each_byte() {
        let asked = with_tools(request(&["你好", "🌍"]), &[("look", &["path"])]);
        let bytes = "Be kind.".len() + "你好".len() + "🌍".len() + "look".len();
        assert!(bound(&asked) > bytes as u64 + asked.tools[0].schema.to_string().len() as u64);
        let mut seen = request(&["x"]);
        let before = bound(&seen);
        let shaped = ModelRequest { output_schema: Some("{}".repeat(50).into()), ..seen.clone() };
        assert!(bound(&shaped) >= before + 100, "a schema is handed on beside the prompt");
        let labels = adjutant_core::label::Labels::NONE;
        seen.messages[0].parts.push(Part::Image { media_type: "image/png".into(), data: "AA==".into(), labels });
        assert!(bound(&seen) >= before + IMAGE_TOKENS);
    }

    #[test]
    fn an_estimate_follows_what_a_provider_counts() {
        let ratios = Ratios::default();
        let asked = request(&["word ".repeat(1000).as_str()]);
        let bytes = size(&asked);
        let estimate = |model: &str| ratios.counter(None, model).request(&asked);
        assert_eq!(estimate("p/m"), bytes.div_ceil(4));
        assert!(!ratios.knows("p/m"));
        ratios.learn("p/m", &asked, bytes / 2);
        assert_eq!(estimate("p/m"), bytes / 2);
        assert_eq!(estimate("p/other"), bytes.div_ceil(4), "each model has its own");
        ratios.learn("p/m", &asked, 0);
        assert_eq!(estimate("p/m"), bytes / 2);
        for _ in 0..5000 {
            ratios.learn("p/m", &asked, bytes);
        }
        let learned = estimate("p/m");
        assert!(learned.abs_diff(bytes) < bytes / 100, "old measurements fade: {learned} of {bytes}");
    }

    #[test]
    fn a_lost_count_is_made_up_for_by_the_tokenizer_or_by_what_was_learned() {
        let (ratios, asked) = (Ratios::default(), request(&["hello world"]));
        let answer = ModelAnswer {
            thinking: Vec::new(),
            text: "hello world, hello world".to_owned(),
            calls: Vec::new(),
            usage: None,
            charged: None,
            finish: adjutant_core::message::FinishReason::Stop,
            served_model: "work/gpt-5".to_owned(),
        };
        let exact = ratios.counter(Some("openai"), "work/gpt-5").usage(&asked, &answer);
        assert_eq!((exact.input, exact.output), (3 + 2 + 2 * MESSAGE_MARKS, 5), "the system prompt is three tokens");
        let rough = |model: &str| ratios.counter(Some("anthropic"), model).usage(&asked, &answer).output;
        ratios.learn_bytes("a/claude", 100, 50);
        assert_eq!((rough("a/claude"), rough("a/other")), (12, 6));
        let counter = ratios.counter(Some("openai"), "work/gpt-5");
        assert!(counter.is_exact() && !counter.rough().is_exact());
    }
}
