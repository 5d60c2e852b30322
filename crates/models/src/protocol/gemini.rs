//! Google's `streamGenerateContent`, at the Gemini API and at Vertex AI.
//!
//! A proof of reasoning (a thought signature) sits on a part: on a call, on text, or on nothing. It is kept with the place
//! it was at and put back there, because newer models refuse a call that comes back without it. Calls that another model made
//! have none; in its place stands a word that these models take for it.

use std::borrow::Cow;

use adjutant_core::message::{FinishReason, Part, told};
use adjutant_core::money::TokenUsage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Asked, Reader};
use crate::wire::draft::{Draft, Rejected};
use crate::wire::fault::Fault;
use crate::wire::frame::Frame;
use crate::wire::talk::{Mark, Side, Turn, readable_object, turns};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<WireContent<'a>>,
    contents: Vec<WireContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTools<'a>>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
struct WireContent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<WirePart<'a>>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<WireResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: Cow<'a, str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    name: &'a str,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct WireResponse<'a> {
    name: &'a str,
    response: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireTools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a RawValue>,
}

/// The bytes to post.
pub(super) fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let request = asked.request;
    let text = |text| WirePart { text: Some(text), ..WirePart::default() };
    let system = Some(request.system.text()).filter(|text| !text.is_empty());
    let mut contents = Vec::new();
    for turn in turns(request) {
        contents.push(content(&turn, asked.model)?);
    }
    let declarations: Vec<_> = request
        .tools
        .iter()
        .map(|tool| Declaration {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: &tool.schema,
        })
        .collect();
    let tools = (!declarations.is_empty()).then_some(WireTools { function_declarations: declarations });
    serde_json::to_vec(&Body {
        system_instruction: system.map(|system| WireContent { role: None, parts: vec![text(system)] }),
        contents,
        tools: tools.into_iter().collect(),
        generation_config: GenerationConfig {
            max_output_tokens: request.max_tokens,
            temperature: asked.temperature,
            response_mime_type: asked.schema.map(|_| "application/json"),
            response_json_schema: asked.schema,
        },
    })
}

/// What a gateway says at the end.
const DONE: &[u8] = b"[DONE]";

/// What stands for a proof where there cannot be one.
const NO_PROOF: &str = "skip_thought_signature_validator";

/// Whether a model wants a proof beside the first call of a turn: all but those that came before there were any.
fn wants_proof(model: &str) -> bool {
    let version = model.strip_prefix("gemini-").and_then(|name| name.split(['-', '.']).next());
    version.is_some_and(|version| version.parse::<u32>().is_ok_and(|version| version >= 3))
}

fn content<'a>(turn: &Turn<'a>, model: &str) -> Result<WireContent<'a>, serde_json::Error> {
    let mut parts = Vec::new();
    let mut proofs = Vec::new();
    let mut calls = 0;
    for part in &turn.parts {
        match part {
            Part::Text { text, .. } => {
                let thought_signature = proof(&proofs, "text");
                parts.push(WirePart { text: Some(text.text()), thought_signature, ..WirePart::default() });
            }
            Part::Image { media_type, data, .. } => {
                let inline_data = Some(InlineData { mime_type: media_type, data: data.text() });
                parts.push(WirePart { inline_data, ..WirePart::default() });
            }
            Part::Thinking { signature, .. } => proofs.extend(Mark::Gemini.read(signature.as_deref(), model)),
            Part::Call { name, arguments, .. } => {
                let function_call = Some(WireCall { name, args: readable_object(arguments.text())? });
                let none = (calls == 0 && wants_proof(model)).then_some(NO_PROOF);
                let thought_signature = proof(&proofs, &calls.to_string()).or(none);
                parts.push(WirePart { function_call, thought_signature, ..WirePart::default() });
                calls += 1;
            }
            Part::Result { name, output, is_error, frame, .. } => {
                let output = told(output, frame.as_deref());
                let response = if *is_error { Outcome::Error(output) } else { Outcome::Output(output) };
                let function_response = Some(WireResponse { name, response });
                parts.push(WirePart { function_response, ..WirePart::default() });
            }
        }
    }
    let role = match turn.side {
        Side::User => "user",
        Side::Model => "model",
    };
    Ok(WireContent { role: Some(role), parts })
}

/// The proof that was at this place.
fn proof<'a>(proofs: &[&'a str], place: &str) -> Option<&'a str> {
    proofs.iter().find_map(|proof| proof.strip_prefix(place)?.strip_prefix(':'))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Usage>,
    model_version: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    index: Option<u64>,
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<PartRead>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartRead {
    text: Option<String>,
    thought: Option<bool>,
    function_call: Option<CallRead>,
    thought_signature: Option<String>,
}

#[derive(Deserialize)]
struct CallRead {
    id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
}

/// Reads one answer.
#[derive(Debug)]
pub(super) struct GeminiReader {
    model: String,
}

impl GeminiReader {
    /// For an answer of this model.
    pub(super) fn new(model: &str) -> Self {
        Self { model: model.to_owned() }
    }

    fn chunk(&self, chunk: Chunk, draft: &mut Draft) -> Result<(), Rejected> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Rejected::fault(Fault::from_value(&error)));
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Err(Rejected::fault(Fault::policy(&reason)));
        }
        draft.served_by(chunk.model_version.as_deref().unwrap_or_default());
        if let Some(usage) = chunk.usage_metadata {
            draft.count(usage.count());
        }
        let candidate = chunk.candidates.into_iter().flatten().find(|candidate| candidate.index.unwrap_or(0) == 0);
        let Some(candidate) = candidate else { return Ok(()) };
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.part(part, draft)?;
        }
        if let Some(reason) = candidate.finish_reason {
            draft.finish(finish(&reason));
        }
        Ok(())
    }

    fn part(&self, part: PartRead, draft: &mut Draft) -> Result<(), Rejected> {
        let text = part.text.unwrap_or_default();
        let thought = part.thought == Some(true);
        if thought && !text.is_empty() {
            let place = draft.open_thinking()?;
            draft.think(place, &text)?;
        } else {
            draft.say(&text)?;
        }
        let at = match part.function_call {
            Some(call) => {
                let place = draft.begin_call(call.id, call.name.unwrap_or_default())?;
                draft.add_arguments(place, call.args.as_ref().map_or("{}", |args| args.get()))?;
                (draft.calls() - 1).to_string()
            }
            None => "text".to_owned(),
        };
        if let Some(signature) = part.thought_signature.filter(|signature| !signature.is_empty()) {
            draft.prove(format!("{}{at}:{signature}", Mark::Gemini.prefix(&self.model)))?;
        }
        Ok(())
    }
}

impl Reader for GeminiReader {
    fn take(&mut self, frame: &Frame, draft: &mut Draft) -> Result<(), Rejected> {
        // A gateway may put each event into one more, and say at the end that it is done, as other protocols do.
        let data = frame.data.strip_prefix(b"data:").unwrap_or(&frame.data).trim_ascii_start();
        if data == DONE {
            return Ok(());
        }
        // A server that does not stream sends a list of what it would have streamed.
        if data.starts_with(b"[") {
            let chunks: Vec<Chunk> = serde_json::from_slice(data)?;
            return chunks.into_iter().try_for_each(|chunk| self.chunk(chunk, draft));
        }
        self.chunk(serde_json::from_slice(data)?, draft)
    }
}

impl Usage {
    fn count(self) -> TokenUsage {
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        let prompt = self.prompt_token_count.unwrap_or(0);
        TokenUsage {
            input: prompt.saturating_add(self.tool_use_prompt_token_count.unwrap_or(0)),
            output: self.candidates_token_count.unwrap_or(0).saturating_add(thoughts),
            cached: self.cached_content_token_count.unwrap_or(0),
            reasoning: thoughts,
            cache_write: 0,
        }
    }
}

fn finish(reason: &str) -> FinishReason {
    match reason {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" | "IMAGE_SAFETY" => {
            FinishReason::ContentFilter
        }
        _ => FinishReason::Error,
    }
}

#[cfg(test)]
mod tests;
