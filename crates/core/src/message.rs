//! Provider-neutral messages: what a model reads and what it answers.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::content::{Content, Hash};
use crate::id::CallId;
use crate::label::Labels;
use crate::money::{MicroUsd, TokenUsage};
use crate::options::ModelOptions;
use crate::tool::ToolDefinitions;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person (or the trigger that speaks for one).
    User,
    /// The model.
    Assistant,
    /// The tools, answering calls.
    Tool,
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of plain text.
    #[must_use]
    pub fn text(role: Role, text: impl Into<Content>) -> Self {
        Self { role, parts: vec![Part::Text { text: text.into(), labels: Labels::NONE }] }
    }

    /// The plain text of the message, parts joined by line breaks.
    #[must_use]
    pub fn plain(&self) -> String {
        let texts: Vec<_> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text, .. } => Some(text.text().into_owned()),
                Part::Result { output, .. } => Some(output.text().into_owned()),
                Part::Thinking { .. } | Part::Image { .. } | Part::Call { .. } => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: Content,
        /// Where it came from.
        #[serde(default, skip_serializing_if = "Labels::is_none")]
        labels: Labels,
    },
    /// A picture for a model that can see.
    Image {
        /// What it is: `image/png`, `image/jpeg`, `image/webp` or `image/gif`.
        media_type: String,
        /// Its bytes in base64.
        data: Content,
        /// Where it came from.
        #[serde(default, skip_serializing_if = "Labels::is_none")]
        labels: Labels,
    },
    /// The model's reasoning, to be handed back to the provider that made it.
    Thinking {
        /// The text.
        text: Content,
        /// The provider's proof that the text is its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A tool call the model asked for.
    Call {
        /// Its id.
        id: CallId,
        /// The tool.
        name: String,
        /// The arguments, JSON text exactly as the model wrote it.
        arguments: Content,
    },
    /// The one result of a tool call.
    Result {
        /// The id of the call.
        id: CallId,
        /// The tool.
        name: String,
        /// What it answered.
        output: Content,
        /// Whether it failed or was refused.
        is_error: bool,
        /// Where the output came from.
        #[serde(default, skip_serializing_if = "Labels::is_none")]
        labels: Labels,
        /// What stands around the output, where nobody here wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<Box<Frame>>,
    },
}

/// What stands around an output that nobody here wrote: what it is, where it came from and how long it is, so that it does not pass
/// for anybody's words (rule I3). Part of the request, and so of its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The line before it.
    pub begin: String,
    /// The line after it.
    pub end: String,
}

impl Frame {
    /// The bytes it adds to what is inside.
    #[must_use]
    pub const fn len(&self) -> u64 {
        // With the two line breaks.
        (self.begin.len() + self.end.len() + 2) as u64
    }

    /// Whether it is nothing but two line breaks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.begin.is_empty() && self.end.is_empty()
    }
}

/// What a model reads as the result of a call: the output, within its frame where it has one.
#[must_use]
pub fn told<'a>(output: &'a Content, frame: Option<&Frame>) -> Cow<'a, str> {
    match frame {
        None => output.text(),
        Some(Frame { begin, end }) => Cow::Owned(format!("{begin}\n{}\n{end}", output.text())),
    }
}

impl Part {
    /// The text this part carries.
    #[must_use]
    pub const fn content(&self) -> &Content {
        match self {
            Self::Text { text, .. } | Self::Thinking { text, .. } => text,
            Self::Image { data, .. } => data,
            Self::Call { arguments, .. } => arguments,
            Self::Result { output, .. } => output,
        }
    }

    /// The text this part carries, to be filled from its block.
    pub const fn content_mut(&mut self) -> &mut Content {
        match self {
            Self::Text { text, .. } | Self::Thinking { text, .. } => text,
            Self::Image { data, .. } => data,
            Self::Call { arguments, .. } => arguments,
            Self::Result { output, .. } => output,
        }
    }
}

/// One call to a model. A pure function of the log: never stored, only its hash is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelRequest {
    /// The model, `provider/rest`.
    pub model: String,
    /// The system prompt.
    pub system: Content,
    /// The tools it is shown.
    pub tools: Arc<ToolDefinitions>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Output tokens at the most.
    pub max_tokens: u32,
    /// Sampling temperature, the provider's default when none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How it is asked beyond that.
    #[serde(skip_serializing_if = "no_options")]
    pub options: Arc<ModelOptions>,
    /// The JSON Schema that the answer has to fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<str>>,
}

fn no_options(options: &Arc<ModelOptions>) -> bool {
    options.is_empty()
}

impl ModelRequest {
    /// The hash that proves that two requests are the same, long texts by their block.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// The blocks whose text has to be loaded before the request can be sent.
    #[must_use]
    pub fn missing(&self) -> Vec<Hash> {
        let parts = self.messages.iter().flat_map(|message| message.parts.iter().map(Part::content));
        std::iter::once(&self.system).chain(parts).filter_map(Content::missing).collect()
    }

    /// Says of each picture that there is one, in place of showing it: for a model that cannot see.
    pub fn describe_images(&mut self) {
        for part in self.messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::Image { labels, .. } = part {
                *part =
                    Part::Text { text: Content::from("[A picture, which this model cannot see.]"), labels: *labels };
            }
        }
    }

    /// Fills in texts that were loaded; a block that is not among them was erased.
    pub fn fill(&mut self, texts: &std::collections::HashMap<Hash, Arc<str>>) {
        let parts = self.messages.iter_mut().flat_map(|message| message.parts.iter_mut().map(Part::content_mut));
        for content in std::iter::once(&mut self.system).chain(parts) {
            if let Some(text) = content.missing().and_then(|hash| texts.get(&hash)) {
                content.fill(text);
            }
        }
    }
}

/// A tool call as the model wrote it, before anyone looked at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawCall {
    /// The provider's id, if it sent one.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The arguments: JSON text, or whatever the model emitted in its place.
    pub arguments: String,
}

/// A piece of reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Thinking {
    /// The text.
    pub text: String,
    /// The provider's proof that the text is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Bytes of the answer's text that came before it.
    #[serde(default)]
    pub after_text: usize,
    /// Calls of the answer that came before it.
    #[serde(default)]
    pub after_calls: u32,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It wants tools.
    ToolCalls,
    /// It ran out of output tokens; its last call may be cut off and is never run.
    Length,
    /// The provider's filter cut it off.
    ContentFilter,
    /// It refused.
    Refusal,
    /// The provider said something else.
    Error,
}

/// The whole answer of one model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// Reasoning, if the provider shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thinking: Vec<Thinking>,
    /// The text.
    #[serde(default)]
    pub text: String,
    /// The calls, in order. Their presence decides, not the finish reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RawCall>,
    /// Tokens, none where the provider did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// What its provider says that it took for it, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<MicroUsd>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// The model that really answered.
    pub served_model: String,
}

/// Live pieces of an answer, never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More reasoning.
    Thinking(String),
}
