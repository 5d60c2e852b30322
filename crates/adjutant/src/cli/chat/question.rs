//! A question of a run: what would happen, the whole of it, and the keys to answer with. What is longer than its room has to
//! be looked at to its end before it can be approved.

use adjutant_core::run::event::GrantScope;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::text::Line;
use serde_json::{Value, json};

use super::composer::Composer;
use super::state::Size;
use super::theme::Theme;
use super::wrap::{Margin, Piece, wrap};
use crate::cli::prompt::pretty;
use crate::cli::terminal::visible;
use crate::wire::WireEvent;

/// Lines of a card beside the change: its rule, its words, its keys and an empty one.
const FRAME: usize = 5;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whether a call may run.
    Call,
    /// Whether more may be spent.
    Budget,
    /// What became of a call.
    Doubt,
}

/// A question that waits.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) id: String,
    pub(super) call: String,
    pub(super) kind: Kind,
    pub(super) summary: String,
    pub(super) reason: String,
    pub(super) is_untrusted: bool,
    pub(super) arguments: String,
    change: String,
    scopes: Vec<GrantScope>,
    fingerprint: Value,
    /// The first line of the change that is shown.
    pub(super) top: usize,
    /// Whether its end was on the screen.
    pub(super) is_seen: bool,
    /// Why not, while that is typed.
    pub(super) because: Option<Composer>,
    /// Whether an answer is on its way.
    pub(super) is_answered: bool,
    pub(super) hint: Option<&'static str>,
}

/// What a key at a question leads to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Nothing,
    /// This is sent to the server.
    Decide(Value),
    /// The arguments go to the editor.
    Edit,
    /// The key is not for the question.
    NotMine,
}

impl Ask {
    /// The question of an event, if it asks one.
    pub(super) fn of(event: &WireEvent) -> Option<Self> {
        let kind = match &*event.event {
            "approval_required" => Kind::Call,
            "in_doubt" => Kind::Doubt,
            "paused" if !event.text("approval_id").is_empty() => Kind::Budget,
            _ => return None,
        };
        let input = event.text("tool_input");
        let change = if event.text("diff").is_empty() { pretty(input) } else { event.text("diff").to_owned() };
        let labels = event.data["labels"].as_array().map(Vec::as_slice).unwrap_or_default();
        let summary = match kind {
            Kind::Call => format!("{}   {}", event.text("summary"), event.text("risk")),
            Kind::Budget => event.text("summary").to_owned(),
            Kind::Doubt => {
                format!("{}: nobody knows how it ended   {}", event.text("tool_name"), event.text("summary"))
            }
        };
        Some(Self {
            id: event.text("approval_id").to_owned(),
            call: event.text("call_id").to_owned(),
            kind,
            summary: visible(&summary),
            reason: if kind == Kind::Budget { String::new() } else { event.text("reason").to_owned() },
            is_untrusted: labels.iter().any(|label| label == "untrusted"),
            arguments: input.to_owned(),
            change: visible(&change),
            scopes: serde_json::from_value(event.data["allowed_scopes"].clone()).unwrap_or_default(),
            fingerprint: event.data["fingerprint"].clone(),
            top: 0,
            is_seen: false,
            because: None,
            is_answered: false,
            hint: None,
        })
    }

    /// What would happen, as lines of a width.
    pub(super) fn lines(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let margin = Margin::new("  ", "  ", ratatui::style::Style::new());
        let lines = self.change.lines().flat_map(|line| wrap(&[Piece::new(line, theme.diff(line))], width, &margin));
        lines.collect()
    }

    /// How many of them there is room for.
    pub(super) fn room(size: Size) -> usize {
        (usize::from(size.rows) * 3 / 5).saturating_sub(FRAME).max(1)
    }

    /// Learns what of it is on the screen now.
    pub(super) fn look(&mut self, size: Size, theme: Theme) {
        let all = self.lines(size.columns.into(), theme).len();
        self.top = self.top.min(all.saturating_sub(Self::room(size)));
        self.is_seen |= self.top + Self::room(size) >= all;
    }

    /// The keys that are offered.
    pub(super) fn keys(&self) -> String {
        match self.kind {
            Kind::Call => {
                let scopes: String = self.scopes.iter().map(|scope| scope_key(*scope)).collect();
                format!("[y] once {scopes}[e] edit [n] no [f] no, because… [q] stop")
            }
            Kind::Budget => "[y] add it and go on [n] no [q] stop".to_owned(),
            Kind::Doubt => "[h] it happened [r] it did not, run it [a] abandon it".to_owned(),
        }
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent, page: usize) -> Answer {
        self.hint = None;
        if let Some(because) = &mut self.because {
            match key.code {
                KeyCode::Enter => {
                    let why = because.take().trim().to_owned();
                    return self.decide("reject", (!why.is_empty()).then_some(("message", json!(why))));
                }
                KeyCode::Esc => self.because = None,
                _ => return super::update::type_key(because, key),
            }
            return Answer::Nothing;
        }
        match key.code {
            KeyCode::Down => self.top += 1,
            KeyCode::Up => self.top = self.top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ' | 'd') => self.top += page,
            KeyCode::PageUp => self.top = self.top.saturating_sub(page),
            KeyCode::Char(letter) if !self.is_answered => return self.letter(letter),
            _ => return Answer::NotMine,
        }
        Answer::Nothing
    }

    fn letter(&mut self, letter: char) -> Answer {
        match (self.kind, letter) {
            (Kind::Doubt, 'h') => self.decide("happened", None),
            (Kind::Doubt, 'r') if self.is_seen => self.decide("run", None),
            (Kind::Doubt, 'r') => self.more(),
            (Kind::Doubt, 'a') => self.decide("abandon", None),
            (Kind::Call | Kind::Budget, 'n') => self.decide("reject", None),
            (Kind::Call | Kind::Budget, 'q') => self.decide("stop", None),
            (Kind::Call | Kind::Budget, 'y') => self.approve(GrantScope::Once),
            (Kind::Call, 'r') => self.approve(GrantScope::Run),
            (Kind::Call, 'c') => self.approve(GrantScope::Chat),
            (Kind::Call, 'a') => self.approve(GrantScope::Always),
            (Kind::Call, 'f') => {
                self.because = Some(Composer::default());
                Answer::Nothing
            }
            (Kind::Call, 'e') if self.is_seen => Answer::Edit,
            (Kind::Call, 'e') => self.more(),
            (Kind::Call | Kind::Budget | Kind::Doubt, _) => {
                self.hint = Some("Press one of the letters.");
                Answer::Nothing
            }
        }
    }

    fn more(&mut self) -> Answer {
        self.hint = Some("There is more of it below: Space shows it; then answer.");
        Answer::Nothing
    }

    fn approve(&mut self, scope: GrantScope) -> Answer {
        if self.kind == Kind::Call && !self.is_seen {
            return self.more();
        }
        match scope {
            GrantScope::Once => self.decide("approve", None),
            GrantScope::Run | GrantScope::Chat | GrantScope::Always if self.scopes.contains(&scope) => {
                self.decide("approve", Some(("scope", json!(scope))))
            }
            GrantScope::Run | GrantScope::Chat | GrantScope::Always => {
                self.hint = Some("Here only this one call can be approved: [y].");
                Answer::Nothing
            }
        }
    }

    /// Arguments that run in place of those that were asked about.
    pub(super) fn edited(&mut self, arguments: &str) -> Answer {
        match serde_json::from_str::<Value>(arguments) {
            Ok(arguments) => self.decide("edit", Some(("arguments", arguments))),
            Err(_) => {
                self.hint = Some("What was written is no JSON. Nothing was decided.");
                Answer::Nothing
            }
        }
    }

    /// A decision is about what was on the screen and nothing else.
    fn decide(&mut self, word: &str, more: Option<(&str, Value)>) -> Answer {
        self.is_answered = true;
        self.because = None;
        let mut body = json!({"decision": word});
        if let Some((field, value)) = more {
            body[field] = value;
        }
        if self.kind == Kind::Call {
            body["fingerprint"] = self.fingerprint.clone();
        }
        Answer::Decide(body)
    }
}

const fn scope_key(scope: GrantScope) -> &'static str {
    match scope {
        GrantScope::Once => "",
        GrantScope::Run => "[r] this run ",
        GrantScope::Chat => "[c] this chat ",
        GrantScope::Always => "[a] always ",
    }
}
