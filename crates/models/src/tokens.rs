//! A rough count of tokens, for models that have no tokenizer of their own. Good enough to make counters move; never
//! used where a provider said what it counted.

use adjutant_core::message::{ModelAnswer, ModelRequest, Part};
use adjutant_core::money::TokenUsage;

/// Bytes of plain English text that make about one token.
const BYTES_PER_TOKEN: u64 = 4;

/// Bytes of a request, as they are written for a model.
fn size(request: &ModelRequest) -> u64 {
    let messages = request.messages.iter().flat_map(|message| &message.parts).map(|part| part.content().len());
    let calls = request.messages.iter().flat_map(|message| &message.parts).map(|part| match part {
        Part::Call { name, .. } => name.len() as u64,
        Part::Text { .. } | Part::Image { .. } | Part::Thinking { .. } | Part::Result { .. } => 0,
    });
    let tools = request.tools.iter().map(|tool| {
        let schema = tool.schema.to_string().len();
        (tool.name.len() + tool.description.len() + schema) as u64
    });
    request.system.len() + messages.sum::<u64>() + calls.sum::<u64>() + tools.sum::<u64>()
}

/// About how many tokens a request is, rather too many than too few: where a window is made to its measure.
pub(crate) fn probable(request: &ModelRequest) -> u64 {
    size(request).div_ceil(BYTES_PER_TOKEN - 1)
}

/// About how many tokens a request and its answer are.
pub(crate) fn estimate(request: &ModelRequest, answer: &ModelAnswer) -> TokenUsage {
    let read = size(request);
    let thought: u64 = answer.thinking.iter().map(|thinking| thinking.text.len() as u64).sum();
    let called: u64 = answer.calls.iter().map(|call| (call.name.len() + call.arguments.len()) as u64).sum();
    let reasoning = thought.div_ceil(BYTES_PER_TOKEN);
    TokenUsage {
        input: read.div_ceil(BYTES_PER_TOKEN),
        output: reasoning + (answer.text.len() as u64 + called).div_ceil(BYTES_PER_TOKEN),
        reasoning,
        ..TokenUsage::default()
    }
}
