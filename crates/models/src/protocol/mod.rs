//! The protocols that providers speak, one folder or file each: how a request is written and how an answer is read. Pure:
//! nothing here sends anything.

mod anthropic;
mod bedrock;
pub(crate) mod chat;
mod cohere;
mod effort;
pub(crate) mod embed;
mod gemini;
mod ollama;
mod options;
mod responses;
mod shapes;

use adjutant_core::message::ModelRequest;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;

use crate::vendor::Habits;
use crate::wire::draft::{Draft, Rejected};
use crate::wire::frame::{Frame, Framing};
use crate::wire::provider::encoded;

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Chat completions, as the original speaks it and most others do.
    Chat,
    /// Chat completions at an Azure deployment.
    AzureChat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's own chat.
    Ollama,
    /// Cohere's chat, version 2.
    Cohere,
    /// Bedrock's `converse`.
    Bedrock,
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// In pieces.
    Pieces,
    /// In one document.
    Whole,
}

/// What is asked, and how this provider wants it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The request.
    pub(crate) request: &'a ModelRequest,
    /// The kind of the provider.
    pub(crate) vendor: &'static str,
    /// The provider's own name for the model.
    pub(crate) model: &'a str,
    /// The provider's habits.
    pub(crate) habits: Habits,
    /// The temperature, where the model takes one.
    pub(crate) temperature: Option<f64>,
    /// Whether the model takes a temperature, and what goes with it.
    pub(crate) samples: bool,
    /// Whether the model thinks before it answers, as far as anybody knows.
    pub(crate) reasons: bool,
    /// The schema that the answer has to fit, where the provider can see to that itself.
    pub(crate) schema: Option<&'a RawValue>,
    /// How the answer should come.
    pub(crate) flow: Flow,
}

/// Reads an answer, frame by frame.
pub(crate) trait Reader: Send {
    /// Takes the next frame into the draft.
    fn take(&mut self, frame: &Frame, draft: &mut Draft) -> Result<(), Rejected>;
}

impl Protocol {
    /// The path of a request, after the base address.
    pub(crate) fn path(self, model: &str, flow: Flow) -> String {
        match self {
            Self::Chat => "chat/completions".to_owned(),
            Self::AzureChat => format!("openai/deployments/{}/chat/completions", encoded(model)),
            Self::Responses => "responses".to_owned(),
            Self::Anthropic => "messages".to_owned(),
            Self::Gemini if flow == Flow::Whole => format!("models/{}:generateContent", encoded(model)),
            Self::Gemini => format!("models/{}:streamGenerateContent?alt=sse", encoded(model)),
            Self::Ollama => "api/chat".to_owned(),
            Self::Cohere => "chat".to_owned(),
            Self::Bedrock => format!("model/{}/converse-stream", encoded(model)),
        }
    }

    /// The header that shows a key.
    pub(crate) fn key_header(self, key: &str) -> (HeaderName, String) {
        match self {
            Self::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            Self::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
            Self::AzureChat => (HeaderName::from_static("api-key"), key.to_owned()),
            Self::Chat | Self::Responses | Self::Ollama | Self::Cohere | Self::Bedrock => {
                (AUTHORIZATION, format!("Bearer {key}"))
            }
        }
    }

    /// Whether a request may ask for a form of the answer beside tools; others refuse the two together.
    pub(crate) const fn shapes_beside_tools(self) -> bool {
        matches!(self, Self::Responses | Self::Anthropic | Self::Bedrock)
    }

    /// Headers that every request has.
    pub(crate) fn headers(self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        match self {
            Self::Anthropic => {
                headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
            }
            Self::Chat
            | Self::AzureChat
            | Self::Responses
            | Self::Gemini
            | Self::Ollama
            | Self::Cohere
            | Self::Bedrock => {}
        }
        headers
    }

    /// What the answer should come as.
    pub(crate) const fn accepts(self, flow: Flow) -> &'static str {
        match (self.framing(), flow) {
            (_, Flow::Whole) => "application/json",
            (Framing::Events, Flow::Pieces) => "text/event-stream",
            (Framing::Lines, Flow::Pieces) => "application/x-ndjson",
            (Framing::Binary, Flow::Pieces) => "application/vnd.amazon.eventstream",
        }
    }

    /// How the answer is cut.
    pub(crate) const fn framing(self) -> Framing {
        match self {
            Self::Chat | Self::AzureChat | Self::Responses | Self::Anthropic | Self::Gemini | Self::Cohere => {
                Framing::Events
            }
            Self::Ollama => Framing::Lines,
            Self::Bedrock => Framing::Binary,
        }
    }

    /// Whether a server may answer in one document that its reader understands.
    pub(crate) const fn may_come_whole(self) -> bool {
        match self {
            Self::Chat | Self::AzureChat | Self::Gemini => true,
            Self::Responses | Self::Anthropic | Self::Ollama | Self::Cohere | Self::Bedrock => false,
        }
    }

    /// The bytes to post.
    pub(crate) fn body(self, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let body = match self {
            Self::Chat | Self::AzureChat => chat::body(asked),
            Self::Responses => responses::body(asked),
            Self::Anthropic => anthropic::body(asked),
            Self::Gemini => gemini::body(asked),
            Self::Ollama => ollama::body(asked),
            Self::Cohere => cohere::body(asked),
            Self::Bedrock => bedrock::body(asked),
        };
        options::with_options(self, asked, body?)
    }

    /// Reads one answer of this model.
    pub(crate) fn reader(self, habits: Habits, model: &str) -> Box<dyn Reader> {
        match self {
            Self::Chat | Self::AzureChat => Box::new(chat::ChatReader::new(habits)),
            Self::Responses => Box::new(responses::ResponsesReader::new(model)),
            Self::Anthropic => Box::new(anthropic::AnthropicReader::new(model)),
            Self::Gemini => Box::new(gemini::GeminiReader::new(model)),
            Self::Ollama => Box::new(ollama::OllamaReader),
            Self::Cohere => Box::<cohere::CohereReader>::default(),
            Self::Bedrock => Box::new(bedrock::BedrockReader::new(model)),
        }
    }
}
