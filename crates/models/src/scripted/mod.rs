//! A model that answers from a script: the harness for tests of agents, and a stand-in where no provider is wanted.
//!
//! A script is YAML or JSON: a list of rules. The first rule whose conditions all hold gives the answer.
//!
//! ```yaml
//! - when: { matches: "^read (\\S+)", turn: 1 }
//!   thinking: The person wants a file.
//!   text: Let me look.
//!   calls:
//!     - { name: read_file, arguments: { path: "${1}" } }
//! - when: { result: { name: read_file, is_error: true } }
//!   text: "That did not work: ${last_result}"
//! - when: { result: { name: read_file } }
//!   text: "It says: ${result:read_file}"
//! - when: { user: hello }
//!   times: 2
//!   error: { class: rate_limited, retry_after: 0.5, status: 429 }
//! - when: { user: hello }
//!   text: Good day.
//! ```
//!
//! **Conditions** (`when`; without it a rule always holds): `user`: the last thing a person said contains this,
//! whatever the case · `matches`: it matches this regular expression · `turn`: which answer to it this is, the first is
//! 1 · `result`: one of the results of the previous answer's calls has this `name`, `contains` this text, and is (or is
//! not) an error (`is_error`), each only if given.
//!
//! **Answers**: `thinking`, `text`, `calls` (each with `name`, `arguments` as any value or `arguments_raw` as the very
//! text, and optionally `id`), `usage` (`input`, `output`, `cached`, `reasoning`; `null` for a provider that does not
//! say; estimated when omitted), `finish` (`stop`, `tool_calls`, `length`, `content_filter`, `refusal`, `error`). In
//! their place `error`: `class` (see [`ModelError::class`]), `retry_after` in seconds, `status`. With both, the text is
//! streamed before the error comes. `truncate: true` streams the answer and then breaks off.
//!
//! **Pace**: `delay_ms` waits before the first piece; `chunk: n` streams in pieces of n characters (otherwise text is
//! one piece); `pace_ms` waits after each of them.
//!
//! **Templates** in `thinking`, `text`, `arguments` and `arguments_raw`: `${user}` (the last thing a person said),
//! `${turn}`, `${last_result}` (the newest tool result), `${result:NAME}` (the newest result of that tool), `${0}` and
//! `${1}`… (what `matches` found). What is inserted is never read for templates again; what is not there is empty;
//! `$${` writes `${`. In `arguments` the text is inserted into JSON strings and escaped by itself, in `arguments_raw`
//! it is inserted as it is.
//!
//! **The answer is a function of the request**: turns are counted in the transcript (as far as it is still shown), so a
//! run that was interrupted, resumed or replayed hears the same again. The one exception is `times: n`: such a rule
//! holds n times and is then skipped, which is counted in memory for as long as the script is loaded. It is meant for
//! errors that go away.

mod script;
mod template;

use std::sync::PoisonError;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::message::{FinishReason, ModelAnswer, ModelRequest, RawCall, Thinking};
use async_trait::async_trait;
use serde_json::Value;

use self::script::{Arguments, Rule, Script, Usage};
use self::template::Values;
use crate::view::View;
use crate::{DeltaSink, Model, ModelError, tokens};

/// A model that answers from a script.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
    /// How often each rule with `times` has been used.
    used: Mutex<Vec<u32>>,
}

impl Scripted {
    /// Reads a script.
    ///
    /// # Errors
    /// `Broken`, with the line, when the script does not say what it must or says something unknown.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let script = Script::parse(text)?;
        let used = Mutex::new(vec![0; script.rules.len()]);
        Ok(Self { script, used })
    }

    /// The rule for this request, with what its expression found; a rule with `times` is used up by this.
    fn choose<'a>(&'a self, view: &View<'_>) -> Option<(&'a Rule, Vec<String>)> {
        self.script.rules.iter().enumerate().find_map(|(at, rule)| {
            let found = rule.matches(view)?;
            self.take(at, rule).then_some((rule, found))
        })
    }

    fn take(&self, at: usize, rule: &Rule) -> bool {
        let Some(times) = rule.times else { return true };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let left = used[at] < times;
        used[at] += u32::from(left);
        left
    }
}

#[async_trait]
impl Model for Scripted {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let view = View::of(request);
        let Some((rule, found)) = self.choose(&view) else {
            let mut answer = plain(request, self.script.help(&view));
            answer.usage = Some(tokens::estimate(request, &answer));
            deltas.text(&answer.text);
            return Ok(answer);
        };
        let answer = compose(rule, request, &Values { view: &view, found: &found });
        drop(view);
        pause(rule.delay).await;
        for thinking in &answer.thinking {
            stream(&thinking.text, rule, |piece| deltas.thinking(piece)).await;
        }
        stream(&answer.text, rule, |piece| deltas.text(piece)).await;
        match &rule.error {
            Some(error) => Err(error.clone()),
            None => Ok(answer),
        }
    }
}

fn plain(request: &ModelRequest, text: String) -> ModelAnswer {
    ModelAnswer {
        thinking: Vec::new(),
        text,
        calls: Vec::new(),
        usage: None,
        charged: None,
        finish: FinishReason::Stop,
        served_model: request.model.clone(),
    }
}

fn compose(rule: &Rule, request: &ModelRequest, values: &Values<'_>) -> ModelAnswer {
    let mut answer = plain(request, rule.text.fill(values));
    let thinking = rule.thinking.fill(values);
    if !thinking.is_empty() {
        answer.thinking.push(Thinking { text: thinking, ..Thinking::default() });
    }
    answer.calls = rule
        .calls
        .iter()
        .map(|call| RawCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: match &call.arguments {
                Arguments::Value(value) => filled(value, values).to_string(),
                Arguments::Raw(text) => text.fill(values),
            },
        })
        .collect();
    let done = if answer.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    answer.finish = rule.finish.unwrap_or(done);
    answer.usage = match rule.usage {
        Usage::Estimated => Some(tokens::estimate(request, &answer)),
        Usage::Said(usage) => usage,
    };
    answer
}

/// The value with every string in it filled in. Templates were checked when the script was read.
fn filled(value: &Value, values: &Values<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(template::Template::parse(text).unwrap_or_default().fill(values)),
        Value::Array(items) => items.iter().map(|item| filled(item, values)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), filled(value, values))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

async fn stream(text: &str, rule: &Rule, send: impl Fn(&str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rule.chunk.and_then(|count| rest.char_indices().nth(count)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        send(piece);
        pause(rule.pace).await;
        rest = after;
    }
}

async fn pause(time: Option<Duration>) {
    if let Some(time) = time {
        tokio::time::sleep(time).await;
    }
}

impl From<Scripted> for Arc<dyn Model> {
    fn from(scripted: Scripted) -> Self {
        Arc::new(scripted)
    }
}

#[cfg(test)]
mod tests;
