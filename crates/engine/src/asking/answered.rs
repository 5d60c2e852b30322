//! What an answer becomes in the log: its thoughts in their order, the tools that its calls are really for, and what went over the
//! wire where that is kept; and how long it may take to come.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use adjutant_core::content::Content;
use adjutant_core::guard::redact::{Mode, redact};
use adjutant_core::guard::{arguments, meta};
use adjutant_core::message::{ModelAnswer, RawCall};
use adjutant_core::run::event::{Thought, ThoughtForm};
use adjutant_models::{Detail, ModelError, Tape};
use futures::FutureExt;

/// Waits for an answer as long as its model may take. A model that panics has failed: it must not take the run with it.
pub(crate) async fn in_time<T>(
    limit: Duration,
    answering: impl Future<Output = Result<T, ModelError>>,
) -> Result<T, ModelError> {
    match tokio::time::timeout(limit, AssertUnwindSafe(answering).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => {
            let reason = "what talks to the provider stopped unexpectedly";
            Err(ModelError::Unknown { reason, status: None, detail: Detail::default() })
        }
        Err(_) => Err(ModelError::Timeout { what: "finish its answer", limit }),
    }
}

/// What the model thought, and what it said before its calls, in their order.
///
/// What it says as its answer is one text, and nothing is put into it. If the model thought in the middle of that, the proofs
/// are left out: providers take reasoning back in its place or, once it has led to an answer, not at all.
pub(super) fn thoughts(turn: u32, answer: &mut ModelAnswer, is_answer: bool) -> Vec<Thought> {
    let mut thoughts = Vec::new();
    let (mut rest, mut told) = (if is_answer { "" } else { answer.text.as_str() }, 0);
    let is_cut = is_answer && answer.thinking.iter().any(|thinking| thinking.after_text > 0);
    let mut after_calls = 0;
    let said = |text: &str, after_calls| Thought {
        turn,
        form: ThoughtForm::Text,
        text: Content::from(text),
        signature: None,
        after_calls,
    };
    for thinking in std::mem::take(&mut answer.thinking) {
        if let Some((before, after)) = rest.split_at_checked(thinking.after_text.saturating_sub(told))
            && !before.is_empty()
        {
            thoughts.push(said(before, after_calls));
            (rest, told) = (after, thinking.after_text);
        }
        after_calls = thinking.after_calls.max(after_calls);
        let signature = thinking.signature.filter(|_| !is_cut);
        let text = Content::new(thinking.text);
        thoughts.push(Thought { turn, form: ThoughtForm::Reasoning, text, signature, after_calls });
    }
    if !rest.is_empty() {
        thoughts.push(said(rest, after_calls));
    }
    thoughts
}

/// The tool that a call is really for: `use_tool` is recorded, judged and run as the tool it names (guard T1). What cannot be
/// read as such a call stays what it is, and the guard refuses it.
pub(super) fn meant(call: RawCall) -> (String, String) {
    if call.name == meta::USE_TOOL
        && let Ok(outer) = arguments::parse(&call.arguments)
        && let Some((tool, inner)) = meta::inner(&outer)
    {
        return (tool.to_owned(), inner.to_string());
    }
    (call.name, call.arguments)
}

/// What a tape holds, without secrets.
pub(crate) fn frames(tape: Option<Tape>) -> Option<Content> {
    tape.and_then(|tape| tape.text()).map(|text| Content::from(&*redact(&text, Mode::Standard)))
}
