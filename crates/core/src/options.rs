//! How a model is to be asked beyond what every request has. Part of the request, so that its hash covers it; what a protocol has
//! no word for is left out there.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Texts at which a model stops.
const STOPS: usize = 4;
/// Bytes of one of them.
const STOP_BYTES: usize = 200;
/// Tokens of thought that may be asked for: more than any model has room for.
const THINKING_MOST: u32 = 1_000_000;
/// Fields beyond what is known here, and their bytes together.
const EXTRAS: usize = 16;
const EXTRA_BYTES: usize = 8 * 1024;
/// What a request says itself, what would make an answer larger or dearer than what was put aside for it, and what would let a
/// provider act by itself, where no guard looks. Written small and without marks between words: some providers take a field in
/// more than one spelling.
const OWN_FIELDS: [&str; 54] = [
    // What is asked, and of whom.
    "model",
    "models",
    "fallbacks",
    "messages",
    "input",
    "contents",
    "prompt",
    "instructions",
    "system",
    "systeminstruction",
    "cachedcontent",
    "conversation",
    "previousresponseid",
    "stream",
    "streamoptions",
    "store",
    "background",
    // How much is answered, and at what price.
    "options",
    "generationconfig",
    "inferenceconfig",
    "additionalmodelrequestfields",
    "maxtokens",
    "maxcompletiontokens",
    "maxoutputtokens",
    "maxnewtokens",
    "numpredict",
    "n",
    "bestof",
    "numgenerations",
    "candidatecount",
    "prediction",
    "modalities",
    "audio",
    "servicetier",
    "performanceconfig",
    "speed",
    "provider",
    "route",
    // What it may do.
    "tools",
    "toolchoice",
    "toolconfig",
    "functions",
    "functioncall",
    "maxtoolcalls",
    "mcpservers",
    "container",
    "contextmanagement",
    "plugins",
    "connectors",
    "datasources",
    "websearchoptions",
    "searchparameters",
    "enablesearch",
    "agentid",
];
/// Parts of the names of headers that prove who calls, or that belong to the connection.
const OWN_HEADERS: [&str; 16] = [
    "auth",
    "key",
    "token",
    "secret",
    "cookie",
    "credential",
    "signature",
    "password",
    "x-amz-",
    "host",
    "content-",
    "accept",
    "connection",
    "transfer-",
    "forwarded",
    "upgrade",
];

/// How much a model is to think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, where that can be asked for.
    None,
    /// As little as there is.
    Minimal,
    /// A little.
    Low,
    /// As a rule.
    Medium,
    /// Much.
    High,
    /// More than much.
    Xhigh,
    /// As much as there is.
    Max,
}

impl Effort {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// Whether the first answer of a run has to use a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model likes.
    Auto,
    /// It may not.
    None,
    /// It has to use one.
    Required,
    /// It has to use this one.
    Tool(String),
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Required => "required",
            Self::Tool(name) => name,
        })
    }
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match String::deserialize(deserializer)?.as_str() {
            "auto" => Self::Auto,
            "none" => Self::None,
            "required" => Self::Required,
            name => Self::Tool(name.to_owned()),
        })
    }
}

/// What a model has to be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Call tools.
    Tools,
    /// See images.
    Images,
    /// Keep to a schema.
    Structured,
    /// Reason.
    Reasoning,
}

impl Ability {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Images, Self::Structured, Self::Reasoning];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Images => "images",
            Self::Structured => "structured",
            Self::Reasoning => "reasoning",
        }
    }

    /// The ability of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ability| ability.word() == word)
    }
}

/// Abilities that are asked for.
pub type Abilities = BTreeSet<Ability>;

/// How a model is to be asked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelOptions {
    /// How much it is to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
    /// Tokens that it may think, where that can be asked for; they are part of its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<u32>,
    /// How much of the probability is sampled from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which it stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// A number that makes answers alike, as far as a provider can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
    /// Whether the first answer of a run has to use a tool; later ones are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Headers beyond those that are sent; never such that prove who calls. For admins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_headers: BTreeMap<String, String>,
    /// Fields of the body beyond those that are known here. For admins.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
}

impl ModelOptions {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something is handed on that is not known here.
    #[must_use]
    pub fn has_extras(&self) -> bool {
        !self.extra_headers.is_empty() || !self.extra_body.is_empty()
    }

    /// The same for an answer after the first of a run: a tool that has to be used once does not have to be used for ever.
    #[must_use]
    pub fn later(&self) -> Self {
        let free = |choice: &ToolChoice| !matches!(choice, ToolChoice::Required | ToolChoice::Tool(_));
        Self { tool_choice: self.tool_choice.clone().filter(free), ..self.clone() }
    }

    /// What is wrong with it: each field and what would be right.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, &'static str)> {
        let thinks = self.thinking_tokens.is_none_or(|tokens| (1..=THINKING_MOST).contains(&tokens));
        let samples = self.top_p.is_none_or(|part| part > 0.0 && part <= 1.0);
        let stops = self.stop.len() <= STOPS && self.stop.iter().all(|text| (1..=STOP_BYTES).contains(&text.len()));
        let named = |name: &str| !name.trim().is_empty() && name.len() <= 100;
        let tool = !matches!(&self.tool_choice, Some(ToolChoice::Tool(name)) if !named(name));
        let bytes = serde_json::to_string(&(&self.extra_headers, &self.extra_body)).map_or(0, |text| text.len());
        let few = self.extra_headers.len() <= EXTRAS && self.extra_body.len() <= EXTRAS && bytes <= EXTRA_BYTES;
        let checked = [
            (thinks, "thinking_tokens", "use 1 to a million"),
            (samples, "top_p", "use more than 0, up to 1"),
            (stops, "stop", "use up to 4 texts of 1 to 200 bytes"),
            (tool, "tool_choice", "use auto, none, required, or the name of a tool"),
            (few, "extra_body", "use up to 16 headers and fields, 8 KiB together"),
        ];
        let wrong = checked.into_iter().filter(|(fine, ..)| !fine).map(|(_, field, right)| (field.to_owned(), right));
        let headers = self.extra_headers.iter().filter_map(|(name, value)| {
            header_problem(name, value).map(|right| (format!("extra_headers.{name}"), right))
        });
        let own = self.extra_body.keys().filter(|name| OWN_FIELDS.contains(&plain(name).as_str()));
        let fields = own.map(|name| {
            let right = "a request says this itself, or neither budget nor guard would hold for it";
            (format!("extra_body.{name}"), right)
        });
        wrong.chain(headers).chain(fields).collect()
    }
}

/// A name, however it is spelled.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Why a header is not sent.
fn header_problem(name: &str, value: &str) -> Option<&'static str> {
    let word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let text = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let lower = name.to_ascii_lowercase();
    if OWN_HEADERS.iter().any(|part| lower.contains(part)) {
        return Some("headers about who calls, or about the connection, are not yours to set");
    }
    (!word || !text).then_some("write a header of letters, digits and -, on one line")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> ModelOptions {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_and_nothing_is_nothing() {
        let json = r#"{"reasoning_effort":"high","thinking_tokens":2048,"top_p":0.9,"stop":["END"],"seed":7,"tool_choice":"required","extra_headers":{"x-title":"lab"},"extra_body":{"top_k":40}}"#;
        let options = read(json);
        assert_eq!(serde_json::to_string(&options).unwrap(), json);
        assert_eq!(options.problems(), []);
        assert!(read("{}").is_empty() && !options.is_empty());
        assert_eq!(options.tool_choice, Some(ToolChoice::Required));
        assert_eq!(options.later().tool_choice, None, "once is enough");
        assert_eq!(read(r#"{"tool_choice":"none"}"#).later().tool_choice, Some(ToolChoice::None));
        assert!(serde_json::from_str::<ModelOptions>(r#"{"topp":1}"#).is_err());
    }

    #[test]
    fn what_would_prove_who_calls_or_escape_the_budget_is_refused() {
        for bad in [
            r#"{"extra_headers":{"Authorization":"Bearer x"}}"#,
            r#"{"extra_headers":{"X-Api-Key":"x"}}"#,
            r#"{"extra_headers":{"x-goog-api-key":"x"}}"#,
            r#"{"extra_headers":{"cookie":"x"}}"#,
            r#"{"extra_headers":{"x-a":"b\r\nc: d"}}"#,
            r#"{"extra_headers":{"x a":"b"}}"#,
            r#"{"extra_body":{"model":"x"}}"#,
            r#"{"extra_body":{"n":64}}"#,
            r#"{"extra_body":{"max_tokens":9}}"#,
            r#"{"extra_body":{"generation_config":{"max_output_tokens":9}}}"#,
            r#"{"extra_body":{"generationConfig":{"candidateCount":9}}}"#,
            r#"{"extra_body":{"Max-Tokens":9}}"#,
            r#"{"extra_body":{"service_tier":"priority"}}"#,
            r#"{"extra_body":{"mcp_servers":[]}}"#,
            r#"{"extra_body":{"web_search_options":{}}}"#,
            r#"{"extra_body":{"previous_response_id":"x"}}"#,
            r#"{"extra_body":{"additionalModelRequestFields":{}}}"#,
            r#"{"top_p":0}"#,
            r#"{"top_p":1.5}"#,
            r#"{"stop":[""]}"#,
            r#"{"thinking_tokens":0}"#,
            r#"{"tool_choice":" "}"#,
        ] {
            assert!(!read(bad).problems().is_empty(), "{bad}");
        }
    }
}
