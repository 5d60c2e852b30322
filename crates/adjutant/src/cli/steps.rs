//! One line for each step of a run, as a person reads it. Pure but for the calls it remembers, so that a result can say what
//! it is the result of.

use std::collections::BTreeMap;

use adjutant_core::guard::judge::Decision as Guard;
use adjutant_core::id::CallId;
use adjutant_core::run::event::{
    Actor, ApprovalAsked, ApprovalDecided, CallEnded, ContentFiltered, Decision, EndStatus, Event, PauseReason,
    RunEnded, ThoughtForm,
};
use adjutant_core::time::Time;
use adjutant_engine::Recorded;

use super::terminal::{Style, clean, cut, one_line};
use super::words::{count, found, short, span, target};
use crate::wire::Texts;

/// Characters of a model's remark or a tool's complaint in a line.
const REMARK: usize = 160;

/// The steps of one run.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    started_at: Time,
    targets: BTreeMap<CallId, String>,
    error: Option<String>,
}

impl Steps {
    /// The line of an event; none where there is nothing to say.
    pub(crate) fn line(&mut self, recorded: &Recorded, texts: &Texts, style: Style) -> Option<String> {
        match &recorded.event {
            Event::RunStarted(body) => {
                self.started_at = recorded.at;
                Some(style.dim(&format!("{} · {}", short(&body.run), body.model)))
            }
            Event::Thought(body) => match body.form {
                ThoughtForm::Text => {
                    let remark = cut(&one_line(&texts.of(&body.text)), REMARK);
                    (!remark.is_empty()).then(|| style.dim(&format!("· {remark}")))
                }
                ThoughtForm::Reasoning => None,
            },
            Event::CallProposed(body) => {
                self.targets.insert(body.call.clone(), target(&texts.of(&body.arguments)));
                None
            }
            Event::CallStarted(body) => {
                self.targets.insert(body.call.clone(), target(&texts.of(&body.arguments)));
                None
            }
            Event::CallJudged(body) => match body.verdict.decision {
                Guard::Allow | Guard::Ask => None,
                Guard::Deny => {
                    Some(style.bad(&format!("✖ denied: {} ({})", one_line(&body.verdict.reason), body.verdict.rule)))
                }
            },
            Event::CallEnded(body) => self.ended(body, texts, style),
            Event::ApprovalAsked(body) => Some(asked(body, style)),
            Event::ApprovalDecided(body) => Some(decided(body, style)),
            Event::CallInDoubt(body) => {
                Some(style.warn(&format!("? {} {}: {}", body.tool, self.target(&body.call), one_line(&body.message))))
            }
            Event::ModelFailed(body) => {
                let at = body.retry_at?;
                Some(style.warn(&format!(
                    "↻ {} Trying again in {}.",
                    one_line(&body.message),
                    span(at.since(recorded.at))
                )))
            }
            Event::ContentFiltered(body) => Some(style.warn(filtered(body))),
            Event::Paused(body) => Some(style.warn(paused(body.reason))),
            Event::Resumed(_) => Some(style.dim("▸ going on")),
            Event::Errored(body) => {
                self.error = Some(body.message.clone());
                None
            }
            Event::RunEnded(body) => Some(self.end(body, recorded.at, style)),
            Event::ModelRequested(_)
            | Event::ModelAnswered(_)
            | Event::Said(_)
            | Event::InDoubtResolved(_)
            | Event::LabelsRaised(_)
            | Event::CancelAsked(_)
            | Event::Cancelled(_) => None,
        }
    }

    /// What is going on after an event, for the line that moves.
    pub(crate) fn doing(&self, event: &Event) -> Option<String> {
        match event {
            Event::ModelRequested(_) => Some("thinking".to_owned()),
            Event::CallStarted(body) => Some(format!("{} {}", body.tool, self.target(&body.call))),
            Event::CallEnded(_) | Event::ModelAnswered(_) | Event::ApprovalDecided(_) => Some("working".to_owned()),
            _ => None,
        }
    }

    fn target(&self, call: &CallId) -> &str {
        self.targets.get(call).map_or("", String::as_str)
    }

    fn ended(&self, body: &CallEnded, texts: &Texts, style: Style) -> Option<String> {
        let (output, target) = (texts.of(&body.output), self.target(&body.call));
        let step = format!("{} {target}", clean(&body.tool));
        match (body.allowed, body.is_error) {
            // What was refused has its line already.
            (false, _) => None,
            (true, true) => Some(style.bad(&format!("✖ {step}  {}", cut(&one_line(&output), REMARK)))),
            (true, false) => {
                let found = found(&body.tool, &output).map(|number| format!("  ({number})")).unwrap_or_default();
                Some(format!("▸ {step}{found}"))
            }
        }
    }

    fn end(&self, body: &RunEnded, at: Time, style: Style) -> String {
        let took = span(at.since(self.started_at));
        match body.status {
            EndStatus::Completed => {
                let files = match body.files_modified.len() {
                    0 => String::new(),
                    number => format!(" · {} changed", count(number, "file", "files")),
                };
                style.good(&format!("✔ Done in {took}{files} · {}", body.cost))
            }
            EndStatus::Failed => {
                let why = self.error.as_deref().map_or_else(|| "no reason was recorded".to_owned(), one_line);
                style.bad(&format!("✖ Failed after {took}: {why}"))
            }
            EndStatus::Cancelled => style.warn(&format!("■ Cancelled after {took}")),
        }
    }
}

const fn filtered(body: &ContentFiltered) -> &'static str {
    match (body.blocked, body.redacted.is_empty()) {
        (Some(_), _) => "▒ held back by the content filter",
        (None, false) => "▒ changed by the content filter",
        (None, true) => "▒ labelled by the content filter",
    }
}

const fn paused(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::Person => "‖ Paused by request.",
        PauseReason::Budget => "‖ Paused: the budget is used up.",
        PauseReason::Rate => "‖ Paused: the rate is used up; it goes on by itself.",
    }
}

fn asked(body: &ApprovalAsked, style: Style) -> String {
    let risk =
        serde_json::to_value(body.risk).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default();
    style.warn(&format!("⏸ {}   {risk}   {}", one_line(&body.summary), one_line(&body.reason)))
}

fn decided(body: &ApprovalDecided, style: Style) -> String {
    let by = match &body.by {
        Actor::User(_) => String::new(),
        Actor::Clock => " because nobody answered in time".to_owned(),
        Actor::Rule(rule) => format!(" by {rule}"),
    };
    let message = body.message.as_deref().map(|text| format!(": {}", one_line(text))).unwrap_or_default();
    match body.decision {
        Decision::Approve => style.good(&format!("✔ approved{by}{message}")),
        Decision::Edit => style.good(&format!("✔ approved with changes{by}{message}")),
        Decision::Respond => style.warn(&format!("✖ answered{by}{message}")),
        Decision::Reject => style.warn(&format!("✖ rejected{by}{message}")),
        Decision::Stop => style.warn(&format!("■ stopped{by}{message}")),
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::content::Content;
    use adjutant_core::label::Labels;
    use adjutant_core::money::{MicroUsd, TokenUsage};
    use adjutant_core::run::event::CallProposed;

    use super::*;

    fn lines(events: Vec<Event>) -> Vec<String> {
        let mut steps = Steps::default();
        let at = |index: usize| Time::from_millis(index as i64 * 1000);
        let recorded = events.into_iter().enumerate().map(|(index, event)| Recorded {
            seq: index as u64 + 1,
            at: at(index),
            event,
        });
        recorded.filter_map(|recorded| steps.line(&recorded, &Texts::default(), Style::Plain)).collect()
    }

    fn call(id: &str, tool: &str, arguments: &str, output: &str, is_error: bool) -> [Event; 2] {
        let call = CallId::parse(id).unwrap();
        let (tool, arguments, output) = (tool.to_owned(), Content::from(arguments), Content::from(output));
        [
            CallProposed { turn: 1, call: call.clone(), tool: tool.clone(), arguments }.into(),
            CallEnded {
                call,
                tool,
                output,
                is_error,
                allowed: true,
                rule: None,
                ms: 1,
                labels: Labels::NONE,
                resources: Vec::new(),
            }
            .into(),
        ]
    }

    #[test]
    fn a_step_says_what_it_was_about_and_what_it_found() {
        let mut events = Vec::new();
        events.extend(call("a", "list_files", r#"{"path":"/"}"#, "/a.md\n/b.md", false));
        events.extend(call("b", "read_file", r#"{"path":"/a.md"}"#, "text", false));
        events.extend(call("c", "read_file", r#"{"path":"/c.md"}"#, "there is nothing\nat this path\u{1b}[0m", true));
        let (usage, cost, result) = (TokenUsage::default(), MicroUsd::ZERO, Content::default());
        events.push(
            RunEnded { status: EndStatus::Completed, result, usage, cost, files_modified: vec!["/a.md".to_owned()] }
                .into(),
        );
        assert_eq!(
            lines(events),
            [
                "▸ list_files /  (2)",
                "▸ read_file /a.md",
                "✖ read_file /c.md  there is nothing at this path\\u{1b}[0m",
                "✔ Done in 6 s · 1 file changed · $0.00",
            ]
        );
    }
}
