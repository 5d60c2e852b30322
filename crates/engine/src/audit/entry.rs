//! One entry of the audit in words, with its particulars. What leaves here is redacted, unless somebody asked for it raw.

use std::collections::HashMap;

use adjutant_core::audit::AuditEvent;
use adjutant_core::guard::redact::{Form, Mode, redact, redact_value};
use adjutant_core::id::{AgentId, RunId};
use adjutant_core::run::chain::{Entry, StreamId};
use adjutant_core::run::event::{Decision, Event};
use adjutant_core::time::Time;
use adjutant_store::row::AuditRow;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::projection::{preview, word};

/// Whether what looks like a secret is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redaction {
    /// It is replaced.
    On,
    /// It is shown as it was recorded: for administrators.
    Raw,
}

/// One entry of the audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditEntry {
    /// The log it stands in.
    pub stream: StreamId,
    /// Its place there.
    pub seq: u64,
    /// When it was recorded.
    pub time: Time,
    /// The kind of the event.
    pub kind: String,
    /// Who did it: a person's name, `clock` or a rule; none for an agent or the instance itself.
    pub by: Option<String>,
    /// The short name of the agent it is about.
    pub agent: Option<String>,
    /// The agent it is about.
    pub agent_id: Option<AgentId>,
    /// The run it is about.
    pub run_id: Option<RunId>,
    /// The tool, of a call.
    pub tool: Option<String>,
    /// The first path that a call touches.
    pub path: Option<String>,
    /// What the guard said of a call.
    pub verdict: Option<String>,
    /// The rule that decided about a call.
    pub rule: Option<String>,
    /// Whether it failed or was refused.
    pub is_error: bool,
    /// One line in words.
    pub summary: String,
    /// What was recorded; nothing once it was erased.
    pub detail: Value,
    /// Whether what was recorded was erased.
    pub erased: bool,
}

/// The names that stand for ids.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) agents: HashMap<AgentId, String>,
    pub(crate) people: HashMap<String, String>,
}

impl AuditEntry {
    /// Puts a row and its event into words.
    pub(crate) fn new(row: AuditRow, event: Option<&Entry>, names: &Names, redaction: Redaction) -> Self {
        let body = event.and_then(|entry| entry.body.as_deref());
        let (summary, rule) = match row.stream {
            StreamId::Run(_) => said_of_run(&row, body),
            StreamId::Workspace(_) | StreamId::System => (said_of_act(&row, body), None),
        };
        let mut detail: Map<String, Value> =
            body.and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default();
        detail.remove("salt");
        let mut entry = Self {
            by: row.actor.map(|actor| names.people.get(&actor).cloned().unwrap_or(actor)),
            agent: row.agent.and_then(|agent| names.agents.get(&agent).cloned()),
            agent_id: row.agent,
            run_id: row.run,
            stream: row.stream,
            seq: row.seq,
            time: row.time,
            kind: row.kind,
            tool: row.tool,
            path: row.target,
            verdict: row.verdict,
            rule,
            is_error: row.is_error,
            summary,
            detail: Value::Object(detail),
            erased: body.is_none(),
        };
        if redaction == Redaction::On {
            entry.summary = redact(&entry.summary, Mode::Standard).into_owned();
            entry.tool = entry.tool.map(|tool| redact(&tool, Mode::Standard).into_owned());
            entry.path = entry.path.map(|path| redact(&path, Mode::Standard).into_owned());
            // A day holds hashes and a public key, nothing that anybody said.
            if entry.kind != "day_closed" {
                redact_value(&mut entry.detail, Mode::Standard, Form::Kind);
            }
        }
        entry
    }

    /// Whether a text occurs, in lower case, in what is shown.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        let has = |words: &str| words.to_lowercase().contains(text);
        has(&self.summary) || self.path.as_deref().is_some_and(has) || occurs(&self.detail, text)
    }
}

/// Whether a text occurs in some string of a value.
fn occurs(value: &Value, text: &str) -> bool {
    match value {
        Value::String(words) => words.to_lowercase().contains(text),
        Value::Array(list) => list.iter().any(|value| occurs(value, text)),
        Value::Object(map) => map.values().any(|value| occurs(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn said_of_act(row: &AuditRow, body: Option<&[u8]>) -> String {
    match body.map(|body| AuditEvent::decode(&row.kind, body)) {
        Some(Ok(AuditEvent::Act(act))) => act.summary,
        Some(Ok(AuditEvent::Day(record))) => format!("{} closed, {} logs", record.day, record.heads.len()),
        Some(Ok(AuditEvent::Heads(heads))) => format!("{} ends of {}", heads.heads.len(), heads.day),
        Some(Err(_)) => "cannot be read".to_owned(),
        None => "erased".to_owned(),
    }
}

fn said_of_run(row: &AuditRow, body: Option<&[u8]>) -> (String, Option<String>) {
    let call = [row.tool.as_deref(), row.target.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let Some(body) = body else { return ([call.as_str(), "(erased)"].join(" ").trim().to_owned(), None) };
    let text = match Event::decode(&row.kind, body) {
        Ok(Event::RunStarted(body)) => {
            preview(&body.user_message.map(|text| text.text().into_owned()).unwrap_or_default())
        }
        Ok(Event::CallEnded(body)) => {
            let output = if body.is_error { format!(": {}", preview(&body.output.text())) } else { String::new() };
            return (format!("{call}{output}"), body.rule.or(body.decided.map(|decided| decided.rule)));
        }
        Ok(Event::ApprovalAsked(body)) => return (format!("{call}: {}", preview(&body.reason)), Some(body.rule)),
        Ok(Event::CallInDoubt(body)) => format!("{call}: {}", preview(&body.message)),
        Ok(Event::ApprovalDecided(body)) => {
            let message = body.message.as_ref().map(|message| format!(": {}", preview(message))).unwrap_or_default();
            let said = match (body.decision, body.edited(row.tool.as_deref().unwrap_or_default())) {
                (Decision::Edit, Some(edited)) => format!("approved with changes: {edited}, asked was"),
                (Decision::Edit, None) => "approved with changes".to_owned(),
                (Decision::Approve | Decision::Respond | Decision::Reject | Decision::Stop, _) => {
                    format!("{} ({})", word(&body.decision), word(&body.scope))
                }
            };
            format!("{said} {call}{message}")
        }
        Ok(Event::InDoubtResolved(body)) => format!("{} {call}", word(&body.outcome)),
        Ok(Event::CancelAsked(body)) => preview(&body.reason),
        Ok(Event::RunEnded(body)) => word(&body.status),
        Ok(_) => String::new(),
        Err(_) => "cannot be read".to_owned(),
    };
    (text, None)
}
