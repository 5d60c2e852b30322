//! The form of a script: what may be written, what is refused and why. Owns the reading, not the answering.

use std::time::Duration;

use adjutant_core::message::FinishReason;
use adjutant_core::money::TokenUsage;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::template::Template;
use crate::view::{Outcome, Step, View};
use crate::{Detail, ModelError};

/// Bytes of a compiled expression: a script is configuration, but a slip in it must not eat the machine.
const EXPRESSION_BYTES: usize = 1 << 20;
/// The longest `retry_after`, in seconds: a day.
const RETRY_AFTER_MOST: f64 = 86_400.0;

/// A script that was read and checked.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    when: WrittenWhen,
    expression: Option<Regex>,
    pub(super) thinking: Template,
    pub(super) text: Template,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Usage,
    pub(super) finish: Option<FinishReason>,
    pub(super) error: Option<ModelError>,
    pub(super) delay: Option<Duration>,
    pub(super) pace: Option<Duration>,
    pub(super) chunk: Option<usize>,
    pub(super) times: Option<u32>,
}

/// One call of an answer.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: Arguments,
}

/// The arguments of a call.
#[derive(Debug)]
pub(super) enum Arguments {
    /// A value; its strings are templates.
    Value(Value),
    /// The very text.
    Raw(Template),
}

/// What is said about tokens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Usage {
    /// Nothing was written: an estimate is.
    Estimated,
    /// This, or that the provider does not say.
    Said(Option<TokenUsage>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    #[serde(default)]
    when: WrittenWhen,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<WrittenCall>,
    /// Three states: omitted, `null`, a value.
    #[serde(default, deserialize_with = "present")]
    usage: Option<Option<WrittenUsage>>,
    finish: Option<FinishReason>,
    error: Option<WrittenError>,
    delay_ms: Option<u64>,
    pace_ms: Option<u64>,
    chunk: Option<usize>,
    times: Option<u32>,
    #[serde(default)]
    truncate: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWhen {
    user: Option<String>,
    matches: Option<String>,
    turn: Option<usize>,
    result: Option<WrittenResult>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenResult {
    name: Option<String>,
    contains: Option<String>,
    is_error: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    id: Option<String>,
    name: String,
    arguments: Option<Value>,
    arguments_raw: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct WrittenUsage {
    input: u64,
    output: u64,
    cached: u64,
    reasoning: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenError {
    class: String,
    retry_after: Option<f64>,
    status: Option<u16>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<WrittenUsage>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Script {
    /// Reads and checks a script.
    pub(super) fn parse(text: &str) -> Result<Self, ModelError> {
        let broken = |why: String| ModelError::broken(format!("the script cannot be read: {why}"));
        let written: Vec<WrittenRule> = if text.trim_start().starts_with('[') {
            serde_json::from_str(text).map_err(|error| broken(error.to_string()))?
        } else {
            let options = serde_saphyr::options! { with_snippet: false };
            serde_saphyr::from_str_with_options(text, options).map_err(|error| broken(error.to_string()))?
        };
        let rules = written.into_iter().enumerate().map(|(at, rule)| {
            Rule::check(rule).map_err(|why| ModelError::broken(format!("rule {} of the script: {why}", at + 1)))
        });
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// What to say when no rule holds.
    pub(super) fn help(&self, view: &View<'_>) -> String {
        let mut text =
            format!("No rule of the script holds for turn {} of this conversation. The script understands:", view.turn);
        for rule in &self.rules {
            text.push_str("\n- ");
            text.push_str(&rule.conditions());
        }
        if self.rules.is_empty() {
            text.push_str(" nothing, it has no rules.");
        }
        text
    }
}

impl Rule {
    fn check(written: WrittenRule) -> Result<Self, String> {
        let expression = match &written.when.matches {
            None => None,
            Some(text) => Some(
                RegexBuilder::new(text)
                    .size_limit(EXPRESSION_BYTES)
                    .build()
                    .map_err(|error| format!("`matches` is not a regular expression: {error}"))?,
            ),
        };
        let error = match (written.error, written.truncate) {
            (Some(_), true) => return Err("`error` and `truncate` exclude each other".to_owned()),
            (Some(error), false) => Some(error.check()?),
            (None, true) => Some(ModelError::Truncated { reason: "the script says so" }),
            (None, false) => None,
        };
        if written.when.turn == Some(0) || written.chunk == Some(0) || written.times == Some(0) {
            return Err("`turn`, `chunk` and `times` begin at 1".to_owned());
        }
        if written.finish.is_some() && error.is_some() {
            return Err("an answer that fails has no `finish`".to_owned());
        }
        let rule = Self {
            thinking: Template::parse(&written.thinking)?,
            text: Template::parse(&written.text)?,
            calls: written.calls.into_iter().map(WrittenCall::check).collect::<Result<_, _>>()?,
            usage: match written.usage {
                None => Usage::Estimated,
                Some(said) => Usage::Said(said.map(WrittenUsage::count)),
            },
            finish: written.finish,
            error,
            delay: written.delay_ms.map(Duration::from_millis),
            pace: written.pace_ms.map(Duration::from_millis),
            chunk: written.chunk,
            times: written.times,
            when: written.when,
            expression,
        };
        rule.check_numbers()?;
        Ok(rule)
    }

    /// A number that the expression can never find is a slip of the pen.
    fn check_numbers(&self) -> Result<(), String> {
        let groups = self.expression.as_ref().map_or(0, Regex::captures_len);
        let mut highest = [self.thinking.highest_found(), self.text.highest_found()].into_iter().flatten().max();
        for call in &self.calls {
            highest = highest.max(match &call.arguments {
                Arguments::Raw(text) => text.highest_found(),
                Arguments::Value(value) => highest_in(value)?,
            });
        }
        match highest {
            Some(number) if number >= groups => Err(format!("`${{{number}}}` is not found by `matches`")),
            Some(_) | None => Ok(()),
        }
    }

    /// What the expression found (nothing without one), if all conditions hold.
    pub(super) fn matches(&self, view: &View<'_>) -> Option<Vec<String>> {
        let when = &self.when;
        let said = |text: &String| view.user.to_lowercase().contains(&text.to_lowercase());
        let holds = when.user.as_ref().is_none_or(said)
            && when.turn.is_none_or(|turn| turn == view.turn)
            && when.result.as_ref().is_none_or(|wanted| view.latest().any(|step| wanted.fits(step)));
        if !holds {
            return None;
        }
        let Some(expression) = &self.expression else { return Some(Vec::new()) };
        let found = expression.captures(&view.user)?;
        Some(found.iter().map(|group| group.map_or_else(String::new, |text| text.as_str().to_owned())).collect())
    }

    fn conditions(&self) -> String {
        let when = &self.when;
        let result = when.result.as_ref().map(|result| {
            let name = result.name.as_deref().unwrap_or("any tool");
            let failed = if result.is_error == Some(true) { ", failed" } else { "" };
            let contains = result.contains.as_ref().map(|text| format!(", with \"{text}\"")).unwrap_or_default();
            format!("after {name}{failed}{contains}")
        });
        let parts: Vec<_> = [
            when.user.as_ref().map(|text| format!("a message with \"{text}\"")),
            when.matches.as_ref().map(|text| format!("a message that matches `{text}`")),
            when.turn.map(|turn| format!("in turn {turn}")),
            result,
            self.times.map(|times| format!("{times} times")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() { "anything".to_owned() } else { parts.join(", ") }
    }
}

impl WrittenResult {
    fn fits(&self, step: &Step<'_>) -> bool {
        let Some(Outcome { output, is_error }) = &step.result else { return false };
        self.name.as_ref().is_none_or(|name| name == step.name)
            && self.contains.as_ref().is_none_or(|text| output.contains(text.as_str()))
            && self.is_error.is_none_or(|wanted| wanted == *is_error)
    }
}

impl WrittenCall {
    fn check(self) -> Result<Call, String> {
        let arguments = match (self.arguments, self.arguments_raw) {
            (Some(_), Some(_)) => return Err("a call has `arguments` or `arguments_raw`, not both".to_owned()),
            (None, Some(raw)) => Arguments::Raw(Template::parse(&raw)?),
            (Some(value), None) => Arguments::Value(value),
            (None, None) => Arguments::Value(Value::Object(serde_json::Map::new())),
        };
        Ok(Call { id: self.id, name: self.name, arguments })
    }
}

impl WrittenUsage {
    const fn count(self) -> TokenUsage {
        TokenUsage {
            input: self.input,
            output: self.output,
            cached: self.cached,
            reasoning: self.reasoning,
            cache_write: 0,
        }
    }
}

impl WrittenError {
    fn check(self) -> Result<ModelError, String> {
        let Self { class, retry_after, status } = self;
        let retry_after = match retry_after {
            Some(seconds) if !(0.0..=RETRY_AFTER_MOST).contains(&seconds) => {
                return Err(format!("`retry_after` is a number of seconds up to {RETRY_AFTER_MOST}"));
            }
            other => other.map(Duration::from_secs_f64),
        };
        if retry_after.is_some() && !matches!(class.as_str(), "rate_limited" | "overloaded") {
            return Err("`retry_after` goes with rate_limited and overloaded only".to_owned());
        }
        let detail = Detail::default();
        Ok(match class.as_str() {
            "rate_limited" => ModelError::RateLimited { retry_after, status },
            "overloaded" => ModelError::Overloaded { retry_after, status },
            "timeout" => ModelError::Timeout { what: "answer", limit: adjutant_core::limits::MODEL_TIMEOUT },
            "network" => ModelError::Network { reason: "the script says so", source: None },
            "truncated" => ModelError::Truncated { reason: "the script says so" },
            "unauthorized" => ModelError::Unauthorized { status, detail },
            "no_credit" => ModelError::NoCredit { status },
            "unknown_model" => ModelError::UnknownModel { model: "scripted".into(), hint: String::new() },
            "context_overflow" => ModelError::ContextOverflow { status, detail },
            "bad_request" => ModelError::BadRequest { status, code: None, detail },
            "policy" => ModelError::Policy { status, detail },
            "broken" => ModelError::broken("the script says so"),
            "unknown" => ModelError::Unknown { reason: "the script says so", status, detail },
            other => {
                return Err(format!(
                    "error class `{other}` is not known; there are rate_limited, overloaded, timeout, network, truncated, \
                     unauthorized, no_credit, unknown_model, context_overflow, bad_request, policy, broken and unknown"
                ));
            }
        })
    }
}

/// The highest number in the templates of a value's strings; also checks them.
fn highest_in(value: &Value) -> Result<Option<usize>, String> {
    match value {
        Value::String(text) => Ok(Template::parse(text)?.highest_found()),
        Value::Array(items) => highest_of(items.iter()),
        Value::Object(fields) => highest_of(fields.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(None),
    }
}

fn highest_of<'a>(mut values: impl Iterator<Item = &'a Value>) -> Result<Option<usize>, String> {
    values.try_fold(None, |highest: Option<usize>, value| Ok(highest.max(highest_in(value)?)))
}
