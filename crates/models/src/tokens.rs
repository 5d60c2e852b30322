//! Counting tokens without a tokenizer. Three numbers for three purposes: a bound that is never too low, for reserving
//! money; an estimate that learns from what providers count, for showing; and a rough count for models that count nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::message::{ModelAnswer, ModelRequest, Part};
use adjutant_core::money::TokenUsage;

/// Bytes of plain English text that make about one token.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens a provider may add around a message, a part or a tool for its own marks.
const MARKS: u64 = 16;
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

/// About how many tokens texts are.
#[must_use]
pub fn estimate_of(texts: &[String]) -> u64 {
    texts.iter().map(|text| text.len() as u64).sum::<u64>().div_ceil(BYTES_PER_TOKEN)
}

/// About how many tokens a request is, rather too many than too few: where a window is made to its measure.
pub(crate) fn probable(request: &ModelRequest) -> u64 {
    size(request).div_ceil(BYTES_PER_TOKEN - 1)
}

/// About how many tokens a request and its answer are.
#[must_use]
pub fn estimate(request: &ModelRequest, answer: &ModelAnswer) -> TokenUsage {
    let thought: u64 = answer.thinking.iter().map(|thinking| thinking.text.len() as u64).sum();
    let called: u64 = answer.calls.iter().map(|call| (call.name.len() + call.arguments.len()) as u64).sum();
    let reasoning = thought.div_ceil(BYTES_PER_TOKEN);
    TokenUsage {
        input: size(request).div_ceil(BYTES_PER_TOKEN),
        output: reasoning + (answer.text.len() as u64 + called).div_ceil(BYTES_PER_TOKEN),
        reasoning,
        ..TokenUsage::default()
    }
}

/// How many bytes make a token, learned for each model from what its provider counts. Cheap to clone; clones know the same.
#[derive(Debug, Clone, Default)]
pub struct Ratios(Arc<Mutex<HashMap<String, Seen>>>);

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    bytes: u64,
    tokens: u64,
}

impl Ratios {
    /// Takes a provider's count of a request without images; a count of nothing teaches nothing.
    pub fn learn(&self, model: &str, request: &ModelRequest, counted: u64) {
        let bytes = size(request);
        if bytes == 0 || counted == 0 || images(request) > 0 {
            return;
        }
        let mut ratios = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = ratios.entry(model.to_owned()).or_default();
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

    /// About how many tokens a request is for this model.
    #[must_use]
    pub fn estimate(&self, model: &str, request: &ModelRequest) -> u64 {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied();
        let Seen { bytes, tokens } = seen.unwrap_or(Seen { bytes: BYTES_PER_TOKEN, tokens: 1 });
        let tokens = u128::from(size(request)) * u128::from(tokens) / u128::from(bytes.max(1));
        u64::try_from(tokens).unwrap_or(u64::MAX).max(1)
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
        assert_eq!(ratios.estimate("p/m", &asked), bytes / 4);
        assert!(!ratios.knows("p/m"));
        ratios.learn("p/m", &asked, bytes / 2);
        assert_eq!(ratios.estimate("p/m", &asked), bytes / 2);
        assert_eq!(ratios.estimate("p/other", &asked), bytes / 4, "each model has its own");
        ratios.learn("p/m", &asked, 0);
        assert_eq!(ratios.estimate("p/m", &asked), bytes / 2);
        for _ in 0..5000 {
            ratios.learn("p/m", &asked, bytes);
        }
        let learned = ratios.estimate("p/m", &asked);
        assert!(learned.abs_diff(bytes) < bytes / 100, "old measurements fade: {learned} of {bytes}");
    }
}
