//! From the events of a run to what the screen shows of it.

use adjutant_core::money::MicroUsd;

use super::question::Ask;
use super::state::{Chat, Entry, Fold, Run, Shown};
use super::theme::Tone;
use crate::cli::prompt::pretty;
use crate::cli::terminal::{Style, cut, one_line};
use crate::wire::WireEvent;

/// Characters of a thought in its line.
const REMARK: usize = 100;
/// Characters kept of what a call gave back.
const DETAIL: usize = 8000;
/// Things that are kept; the oldest go first.
const ENTRIES: usize = 4000;

impl Chat {
    /// Takes in a durable event.
    pub(super) fn record(&mut self, event: &WireEvent) {
        let line = self.steps.line(event, Style::Plain);
        self.doing = self.steps.doing(event).or(self.doing.take());
        match &*event.event {
            "interaction_started" => self.started(event),
            "thinking" => self.thought(event),
            "answer" => {
                self.live.clear();
                self.entries.push(Entry::Answer(event.text("content").to_owned()));
            }
            "usage" => self.spent.0 += event.data["cost_microusd"].as_u64().unwrap_or_default(),
            "tool_call" => self.called(event),
            "tool_result" => self.returned(event, line),
            "denied" => self.fold(line, Tone::Bad, event.text("id"), String::new()),
            "approval_required" => {
                self.fold(line, Tone::Warn, "", event.text("diff").to_owned());
            }
            "approved" | "rejected" => {
                let tone = if event.event == "approved" { Tone::Good } else { Tone::Warn };
                self.asks.retain(|ask| ask.id != event.text("approval_id"));
                self.line(line, tone);
            }
            "resumed" => {
                self.asks.retain(|ask| ask.kind != super::question::Kind::Budget);
                self.line(line, Tone::Quiet);
            }
            "interaction_complete" => self.ended(event, line),
            "in_doubt" | "retrying" | "fallback" | "paused" | "content_filtered" | "budget_alert" => {
                self.live.clear();
                self.line(line, Tone::Warn);
            }
            _ => self.line(line, Tone::Quiet),
        }
        if matches!(&*event.event, "approval_required" | "in_doubt" | "paused") {
            self.doing = None;
        }
        if let Some(ask) = Ask::of(event) {
            // Asked again about something that has changed, it is a new question.
            self.asks.retain(|other| other.id != ask.id);
            self.asks.push_back(ask);
        }
        if let Some(more) = self.entries.len().checked_sub(ENTRIES) {
            self.entries.drain(..more);
            self.selected = None;
        }
    }

    fn started(&mut self, event: &WireEvent) {
        let id = event.text("run_id").to_owned();
        self.id = Some(event.text("chat_id").to_owned());
        event.text("model").clone_into(&mut self.served);
        self.live.clear();
        if !event.text("user_message").is_empty() {
            self.entries.push(Entry::You(event.text("user_message").to_owned()));
        }
        self.last_run = Some(id.clone());
        self.run = Some(Run { id, is_stopping: false });
    }

    fn thought(&mut self, event: &WireEvent) {
        self.live.clear();
        let content = event.text("content");
        let mark = if event.text("kind") == "text" { "·" } else { "∴" };
        let line = cut(&one_line(content), REMARK);
        self.fold(Some(format!("{mark} {line}")), Tone::Quiet, "", content.to_owned());
    }

    fn called(&mut self, event: &WireEvent) {
        let line = self.steps.doing(event).map(|doing| format!("… {doing}"));
        // A question about a call is settled once it runs.
        self.asks.retain(|ask| ask.call != event.text("id"));
        self.fold(line, Tone::Quiet, event.text("id"), pretty(event.text("tool_input")));
    }

    fn returned(&mut self, event: &WireEvent, line: Option<String>) {
        let call = event.text("id");
        self.asks.retain(|ask| ask.call != call);
        let found = self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Fold(fold) if fold.call.as_deref() == Some(call) => Some(fold),
            Entry::Fold(_) | Entry::You(_) | Entry::Answer(_) | Entry::Note { .. } => None,
        });
        let output = cut(event.text("tool_output"), DETAIL);
        match found {
            Some(fold) => {
                if let Some(line) = line {
                    fold.line = line;
                    fold.tone = if event.is("is_error") { Tone::Bad } else { Tone::Plain };
                }
                fold.detail = format!("{}\n{output}", fold.detail).trim().to_owned();
            }
            None => self.fold(line, Tone::Plain, call, output),
        }
    }

    fn ended(&mut self, event: &WireEvent, line: Option<String>) {
        self.run = None;
        self.doing = None;
        self.live.clear();
        self.asks.clear();
        self.line(
            line,
            match event.text("status") {
                "COMPLETED" => Tone::Good,
                "FAILED" => Tone::Bad,
                _ => Tone::Warn,
            },
        );
    }

    fn fold(&mut self, line: Option<String>, tone: Tone, call: &str, detail: String) {
        let Some(line) = line else { return };
        let call = (!call.is_empty()).then(|| call.to_owned());
        self.entries.push(Entry::Fold(Fold { call, line, tone, detail, shown: Shown::Line }));
    }

    fn line(&mut self, line: Option<String>, tone: Tone) {
        if let Some(line) = line {
            self.note(line, tone);
        }
    }

    /// What it cost so far, for the bar.
    pub(super) fn cost(&self) -> MicroUsd {
        self.spent
    }
}
