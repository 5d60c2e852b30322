//! One line for each step of a run, as a person reads it, made from the public events: the same for a run that goes on here
//! and for one at a server. Pure but for the calls it remembers, so that a result can say what it is the result of.

use std::collections::BTreeMap;

use adjutant_core::money::MicroUsd;
use adjutant_core::time::Time;

use super::terminal::{Style, clean, cut, one_line, visible};
use super::words::{count, found, short, span, target};
use crate::wire::WireEvent;

/// Characters of a model's remark or a tool's complaint in a line.
const REMARK: usize = 100;

/// Characters of why a call was refused; `runs show --json` has all of it.
const REASON: usize = 200;

/// The steps of one run.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    started_at: Option<Time>,
    targets: BTreeMap<String, String>,
    error: Option<String>,
}

impl Steps {
    /// The line of an event; none where there is nothing to say.
    pub(crate) fn line(&mut self, event: &WireEvent, style: Style) -> Option<String> {
        match &*event.event {
            "interaction_started" => {
                self.started_at = event.time("ts");
                Some(style.dim(&format!("{} · {}", short(&event.text("run_id")), event.text("model"))))
            }
            "thinking" if event.text("kind") == "text" => {
                let remark = cut(&one_line(event.text("content")), REMARK);
                (!remark.is_empty()).then(|| style.dim(&format!("· {remark}")))
            }
            "tool_call" => {
                self.targets.insert(event.text("id").to_owned(), target(event.text("tool_input")));
                None
            }
            "denied" => {
                let (reason, rule) = (cut(&one_line(event.text("reason")), REASON), event.text("rule"));
                Some(style.bad(&format!("✖ denied: {reason} ({rule})")))
            }
            "tool_result" => self.ended(event, style),
            "approval_required" => {
                let (summary, reason) =
                    (visible(&one_line(event.text("summary"))), visible(&one_line(event.text("reason"))));
                Some(style.warn(&format!("⏸ {summary}   {}   {reason}", event.text("risk"))))
            }
            "approved" | "rejected" => Some(decided(event, style)),
            "in_doubt" => {
                let (tool, about) = (event.text("tool_name"), self.target(event.text("call_id")));
                Some(style.warn(&format!("? {tool} {about}: {}", one_line(event.text("reason")))))
            }
            "retrying" => {
                let wait = event.time("retry_at")?.since(event.time("ts")?);
                Some(style.warn(&format!("↻ {} Trying again in {}.", said(event.text("reason")), span(wait))))
            }
            "content_filtered" => Some(style.warn(filtered(event))),
            "paused" if !event.text("summary").is_empty() => {
                Some(style.warn(&format!("‖ {}", one_line(event.text("summary")))))
            }
            "paused" => Some(style.warn(paused(event))),
            "resumed" => Some(style.dim("▸ going on")),
            "error" => {
                self.error = Some(event.text("error").to_owned());
                None
            }
            "interaction_complete" => Some(self.end(event, style)),
            "fallback" => {
                let (why, next) = (said(event.text("reason")), clean(event.text("to")));
                Some(style.warn(&format!("↻ {why} Asking {next} instead.")))
            }
            "budget_alert" => {
                let spent = event.data["spent_microusd"].as_u64().unwrap_or_default();
                Some(style.warn(&format!("! {} spent ({})", MicroUsd(spent), clean(event.text("purse")))))
            }
            _ => None,
        }
    }

    /// What is going on after an event, for the line that moves.
    pub(crate) fn doing(&self, event: &WireEvent) -> Option<String> {
        match &*event.event {
            "interaction_started" | "tool_result" | "denied" => Some("thinking".to_owned()),
            "tool_call" => Some(format!("{} {}", event.text("tool_name"), self.target(event.text("id")))),
            "usage" | "approved" | "rejected" => Some("working".to_owned()),
            _ => None,
        }
    }

    fn target(&self, call: &str) -> &str {
        self.targets.get(call).map_or("", String::as_str)
    }

    fn ended(&self, event: &WireEvent, style: Style) -> Option<String> {
        let (tool, output) = (event.text("tool_name"), event.text("tool_output"));
        let step = format!("{} {}", clean(tool), self.target(event.text("id")));
        match (event.is("allowed"), event.is("is_error")) {
            // What was refused has its line already.
            (false, _) => None,
            (true, true) => Some(style.bad(&format!("✖ {step}  {}", cut(&one_line(output), REMARK)))),
            (true, false) => {
                let found = found(tool, output).map(|number| format!("  ({number})")).unwrap_or_default();
                Some(format!("▸ {step}{found}"))
            }
        }
    }

    fn end(&self, event: &WireEvent, style: Style) -> String {
        let took = self.started_at.zip(event.time("ts")).map(|(from, to)| span(to.since(from))).unwrap_or_default();
        match event.text("status") {
            "COMPLETED" => {
                let files = match event.data["files_modified"].as_array().map_or(0, Vec::len) {
                    0 => String::new(),
                    number => format!(" · {} changed", count(number, "file", "files")),
                };
                let cost = MicroUsd(event.data["cost_microusd"].as_u64().unwrap_or_default());
                style.good(&format!("✔ Done in {took}{files} · {cost}"))
            }
            "FAILED" => {
                let why = self.error.as_deref().map_or_else(|| "no reason was recorded".to_owned(), one_line);
                style.bad(&format!("✖ Failed after {took}: {why}"))
            }
            _ => style.warn(&format!("■ Cancelled after {took}")),
        }
    }
}

/// What somebody else said, as a sentence that another may follow.
fn said(text: &str) -> String {
    let text = one_line(text);
    let ends = text.is_empty() || text.ends_with(['.', '!', '?', '…']);
    if ends { text } else { text + "." }
}

fn filtered(event: &WireEvent) -> &'static str {
    let is_redacted = event.data["redacted"].as_array().is_some_and(|entries| !entries.is_empty());
    match (event.data.get("blocked").is_some(), is_redacted) {
        (true, _) => "▒ held back by the content filter",
        (false, true) => "▒ changed by the content filter",
        (false, false) => "▒ labelled by the content filter",
    }
}

fn paused(event: &WireEvent) -> &'static str {
    match event.text("reason") {
        "budget" if event.data.get("unpriced_model").is_some() => "‖ Paused: the price of the model is not known.",
        "budget" => "‖ Paused: the budget is used up.",
        "rate" => "‖ Paused: the rate is used up; it goes on by itself.",
        _ => "‖ Paused by request.",
    }
}

fn decided(event: &WireEvent, style: Style) -> String {
    let by = match event.text("decided_by") {
        "clock" => " because nobody answered in time".to_owned(),
        rule if rule.starts_with("rule ") => format!(" by {}", rule.trim_start_matches("rule ")),
        _ => String::new(),
    };
    let message = match event.text("message") {
        "" => String::new(),
        text => format!(": {}", one_line(text)),
    };
    match event.text("decision") {
        "approve" => style.good(&format!("✔ approved{by}{message}")),
        "edit" => style.good(&format!("✔ approved with changes{by}{message}")),
        "respond" => style.warn(&format!("✖ answered{by}{message}")),
        "stop" => style.warn(&format!("■ stopped{by}{message}")),
        _ => style.warn(&format!("✖ rejected{by}{message}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lines(events: &[(&'static str, Value)]) -> Vec<String> {
        let mut steps = Steps::default();
        let event = |(index, (name, data)): (usize, &(&'static str, Value))| {
            let mut data = data.clone();
            data["ts"] = json!(Time::from_millis(index as i64 * 1000));
            WireEvent { event: (*name).into(), id: index as u64 + 1, data }
        };
        events.iter().enumerate().map(event).filter_map(|event| steps.line(&event, Style::Plain)).collect()
    }

    fn call(id: &str, tool: &str, input: &str, output: &str, is_error: bool) -> [(&'static str, Value); 2] {
        [
            ("tool_call", json!({"id": id, "tool_name": tool, "tool_input": input})),
            (
                "tool_result",
                json!({"id": id, "tool_name": tool, "tool_output": output, "is_error": is_error, "allowed": true}),
            ),
        ]
    }

    #[test]
    fn a_step_says_what_it_was_about_and_what_it_found() {
        let mut events = vec![("interaction_started", json!({"run_id": "run_01k2m3n4p5q6r7", "model": "demo/guide"}))];
        events.extend(call("a", "list_files", r#"{"path":"/"}"#, "/a.md\n/b.md", false));
        events.extend(call("b", "read_file", r#"{"path":"/a.md"}"#, "text", false));
        events.extend(call("c", "read_file", r#"{"path":"/c.md"}"#, "there is nothing\nat this path\u{1b}[0m", true));
        events.push((
            "interaction_complete",
            json!({"status": "COMPLETED", "files_modified": ["/a.md"], "cost_microusd": 0}),
        ));
        assert_eq!(
            lines(&events),
            [
                "run_01k2m3n4p5q6r · demo/guide",
                "▸ list_files /  (2)",
                "▸ read_file /a.md",
                "✖ read_file /c.md  there is nothing at this path\\u{1b}[0m",
                "✔ Done in 7 s · 1 file changed · $0.00",
            ]
        );
    }

    #[test]
    fn what_was_decided_says_by_whom_where_nobody_was_asked() {
        let decided = |by: &str, decision: &str| ("rejected", json!({"decided_by": by, "decision": decision}));
        assert_eq!(
            lines(&[decided("clock", "reject"), decided("rule --approve rules", "reject"), decided("usr_1", "stop")]),
            ["✖ rejected because nobody answered in time", "✖ rejected by --approve rules", "■ stopped"]
        );
    }
}
