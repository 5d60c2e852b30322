//! One run at a server, watched from the terminal: shown as it goes on, its questions answered or left for somebody, until it
//! ends, waits, or is left. The server drives it; going away changes nothing for it.

use std::time::Duration;

use adjutant_core::run::event::GrantScope;
use adjutant_core::run::status::Status;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Remote;
use super::stream::{Heard, Item};
use crate::cli::Context;
use crate::cli::interrupt::Interrupt;
use crate::cli::prompt::{self, Answer, Held};
use crate::cli::screen::{Format, Screen};
use crate::cli::session::{Approve, Follow, TICK, failed, sleep_until};
use crate::cli::words::{after_failure, ours, short};
use crate::failure::{Exit, Failure};
use crate::wire::WireEvent;

/// How long the server is asked to wait with its answer until a run rests.
const REST: &str = "30";
/// How often a stream that broke off is taken up again without anything new on it, and a server that is away asked again: longer
/// than one takes to start.
const RETURNS: u32 = 30;
/// How long to wait before that.
const PAUSE: Duration = Duration::from_secs(1);

/// One run at a server.
pub(in crate::cli) struct Visit<'a> {
    context: &'a Context,
    remote: &'a Remote,
    run: String,
    screen: Screen,
    follow: Follow,
    deadline: Option<Instant>,
    interrupt: Interrupt,
    /// Why it holds, as far as was seen.
    paused: String,
    /// Whether somebody ended it by an answer.
    stopped: bool,
}

impl<'a> Visit<'a> {
    pub(in crate::cli) fn new(context: &'a Context, remote: &'a Remote, run: String, follow: Follow) -> Self {
        let screen = Screen::new(context.terminal, context.format());
        let deadline = follow.timeout.map(|limit| Instant::now() + limit);
        let interrupt = Interrupt::listen();
        Self { context, remote, run, screen, follow, deadline, interrupt, paused: String::new(), stopped: false }
    }

    /// Follows the run to its end, or to where it waits.
    ///
    /// # Errors
    /// When the server cannot be reached any more, or refuses.
    pub(in crate::cli) async fn go(mut self) -> Result<Exit, Failure> {
        let exit = self.rounds().await;
        self.screen.still();
        exit
    }

    async fn rounds(&mut self) -> Result<Exit, Failure> {
        loop {
            let Some(report) = self.stretch().await? else { return Ok(self.left()) };
            match report["status"].as_str().and_then(Status::parse) {
                Some(Status::Completed) => return Ok(Exit::Done),
                Some(Status::Cancelled) => {
                    return Ok(if self.stopped { Exit::Rejected } else { Exit::RunFailed });
                }
                Some(Status::Failed) => {
                    self.hint(&after_failure(&short(&self.run), report["error"]["code"].as_str()));
                    return Ok(failed(report["error"]["code"].as_str()));
                }
                Some(Status::WaitingApproval | Status::InDoubt) => {
                    if let Some(exit) = self.questions().await? {
                        return Ok(exit);
                    }
                }
                Some(Status::Paused) => {
                    self.hint(&format!("adjutant runs resume {} lets it go on", short(&self.run)));
                    return Ok(if self.paused == "person" || self.paused.is_empty() {
                        Exit::NeedsPerson
                    } else {
                        Exit::Spent
                    });
                }
                Some(Status::Queued | Status::Running | Status::Cancelling) | None => {}
            }
        }
    }

    /// Shows the run until it rests. None: whoever watched went away.
    async fn stretch(&mut self) -> Result<Option<Value>, Failure> {
        let (remote, run) = (self.remote, self.run.clone());
        let mut resting = std::pin::pin!(remote.rested(&run));
        let mut events = remote.follow(&run, self.follow.after).await?;
        let mut tick = tokio::time::interval(TICK);
        let mut late = std::pin::pin!(sleep_until(self.deadline));
        let interrupt = self.interrupt.clone();
        let (mut returns, mut heard) = (0, Heard::default());
        let report = loop {
            let next = async {
                match &mut events {
                    Some(events) => events.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = interrupt.heard() => return Ok(None),
                item = next => match item {
                    Some(Item::Event(event)) => {
                        (returns, heard) = (0, Heard::default());
                        self.show(&event);
                        if event.event == "interaction_complete" {
                            events = None;
                        }
                    }
                    Some(Item::Piece(piece)) => {
                        if let Some(new) = heard.fresh(piece) {
                            self.screen.piece(&new);
                        }
                    }
                    // The connection broke off: what was missed is in the log.
                    None if returns < RETURNS => {
                        returns += 1;
                        tokio::select! {
                            () = tokio::time::sleep(PAUSE) => {}
                            () = interrupt.heard() => return Ok(None),
                        }
                        // One that cannot be reached now is tried again, as often as that.
                        if let Ok(again) = remote.follow(&run, self.follow.after).await {
                            events = again;
                        }
                    }
                    None => events = None,
                },
                report = &mut resting => break report?,
                () = &mut late => {
                    late.set(sleep_until(None));
                    self.deadline = None;
                    self.screen.note("It took longer than --timeout allows; the run is cancelled.");
                    let reason = json!({"reason": "it took longer than --timeout allows"});
                    remote.post(&["runs", &run, "cancel"], &reason).await?;
                }
                _ = tick.tick() => self.screen.tick(),
            }
        };
        self.catch_up().await?;
        Ok(Some(report))
    }

    fn show(&mut self, event: &WireEvent) {
        if event.id <= self.follow.after {
            return;
        }
        self.follow.after = event.id;
        match &*event.event {
            "paused" => event.text("reason").clone_into(&mut self.paused),
            "rejected" => self.stopped |= event.text("decision") == "stop",
            _ => {}
        }
        self.screen.event(event);
    }

    /// Shows what is in the log and not on the screen yet.
    async fn catch_up(&mut self) -> Result<(), Failure> {
        let mut after = self.follow.after.to_string();
        loop {
            let page = self.remote.get(&["runs", &self.run, "events"], &[("after", &after), ("limit", "200")]).await?;
            let events: Vec<WireEvent> = serde_json::from_value(page["data"].clone()).unwrap_or_default();
            events.iter().for_each(|event| self.show(event));
            match page["next_cursor"].as_str().filter(|_| page["has_more"] == true) {
                Some(next) => next.clone_into(&mut after),
                None => return Ok(()),
            }
        }
    }

    /// Answers what is asked. None: all of it is answered, the run can go on.
    async fn questions(&mut self) -> Result<Option<Exit>, Failure> {
        self.screen.still();
        let query = [("run", self.run.as_str()), ("status", "pending"), ("limit", "200")];
        let page = self.remote.get(&["approvals"], &query).await?;
        let items = page["data"].as_array().cloned().unwrap_or_default();
        let may_ask = self.follow.approve == Approve::Ask && self.context.terminal.interactive;
        let only_rules = self.follow.approve == Approve::Rules;
        for item in &items {
            let id = item["id"].as_str().unwrap_or_default();
            let in_doubt = item["kind"] == "in_doubt";
            let body = match (only_rules && !in_doubt, may_ask, in_doubt) {
                (true, _, _) => {
                    json!({"decision": "reject", "message": "no rule allows it, and nobody is asked"})
                }
                (false, true, false) => match self.ask(id).await? {
                    Some(body) => body,
                    None => return Ok(Some(self.left())),
                },
                (false, true, true) => match self.settle(id).await? {
                    Some(body) => body,
                    None => return Ok(Some(self.wants_person(&items))),
                },
                (false, false, _) => return Ok(Some(self.wants_person(&items))),
            };
            self.decide(id, &body).await?;
        }
        Ok(None)
    }

    async fn ask(&mut self, id: &str) -> Result<Option<Value>, Failure> {
        let item = self.remote.get(&["approvals", id], &[]).await?;
        let held = Held::of(&item);
        let answer = tokio::select! {
            answer = prompt::ask(&held, self.context.terminal, &self.context.env) => answer,
            () = self.interrupt.heard() => Answer::Gone,
        };
        let mut body = match answer {
            Answer::Approve(GrantScope::Once) => json!({"decision": "approve"}),
            Answer::Approve(scope) => json!({"decision": "approve", "scope": scope}),
            Answer::Edit(text) => match serde_json::from_str::<Value>(&text) {
                Ok(arguments) => json!({"decision": "edit", "arguments": arguments}),
                Err(why) => {
                    self.screen.note(&format!("The arguments cannot be used: {why}. Nothing was decided."));
                    return Box::pin(self.ask(id)).await;
                }
            },
            Answer::Reject(message) => json!({"decision": "reject", "message": message}),
            Answer::Stop => json!({"decision": "stop"}),
            Answer::Gone => return Ok(None),
        };
        // A decision is about what was on the screen and nothing else.
        body["fingerprint"] = item["fingerprint"].clone();
        Ok(Some(body))
    }

    async fn settle(&self, id: &str) -> Result<Option<Value>, Failure> {
        let held = Held::of(&self.remote.get(&["approvals", id], &[]).await?);
        let outcome = tokio::select! {
            outcome = prompt::ask_doubt(&held, self.context.terminal) => outcome,
            () = self.interrupt.heard() => None,
        };
        Ok(outcome.map(|outcome| json!({ "decision": outcome })))
    }

    async fn decide(&mut self, id: &str, body: &Value) -> Result<(), Failure> {
        match self.remote.post(&["approvals", id, "decision"], body).await {
            Ok(_) => {}
            Err(failure) if matches!(&*failure.code, "already_decided" | "expired" | "stale_version") => {
                self.screen.note(&format!("That question is settled: {}", failure.message));
            }
            Err(failure) if failure.code == "validation_failed" => {
                self.screen.note(&format!("{} {}", failure.message, failure.problems.join("; ")));
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Says who has to do what before the run can go on.
    fn wants_person(&mut self, items: &[Value]) -> Exit {
        if self.context.format() == Format::Text {
            for item in items {
                let (id, run) = (short(&item["id"].as_str().unwrap_or_default()), short(&self.run));
                let answer = if item["kind"] == "in_doubt" {
                    format!("adjutant inbox resolve {id} happened|run|abandon")
                } else {
                    format!("adjutant inbox approve {id} (or reject, edit, respond)")
                };
                self.screen.note(&ours(&format!("{run} waits for you: adjutant inbox show {id}")));
                self.hint(&format!("{answer}, then adjutant runs watch {run}"));
            }
        }
        Exit::NeedsPerson
    }

    fn left(&mut self) -> Exit {
        self.screen.still();
        let run = short(&self.run);
        self.screen.note(&ours(&format!(
            "Left. {run} goes on at the server; adjutant runs watch {run} comes back, adjutant runs cancel {run} stops it"
        )));
        Exit::Interrupted
    }

    /// Says what to do next, to a person.
    fn hint(&mut self, hint: &str) {
        if self.context.format() == Format::Text {
            self.screen.note(&format!("hint: {}", ours(hint)));
        }
    }
}

impl Remote {
    /// The number of the last public event of a run.
    pub(in crate::cli) async fn last_event(&self, run: &str) -> Result<u64, Failure> {
        let (mut last, mut after) = (0, "0".to_owned());
        loop {
            let page = self.get(&["runs", run, "events"], &[("after", &after), ("limit", "200")]).await?;
            let events = page["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            last = events.iter().filter_map(|event| event["id"].as_u64()).max().unwrap_or(last);
            match page["next_cursor"].as_str() {
                Some(next) => next.clone_into(&mut after),
                None => return Ok(last),
            }
        }
    }

    /// The run, once it has ended or waits for somebody. A server that is away for a while, because it starts again, is waited for.
    async fn rested(&self, run: &str) -> Result<Value, Failure> {
        let mut returns = 0;
        loop {
            let asked = Instant::now();
            let report = match self.get(&["runs", run], &[("wait", REST)]).await {
                Ok(report) => report,
                Err(failure) if failure.exit == Exit::Unreachable && returns < RETURNS => {
                    returns += 1;
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            returns = 0;
            let status = report["status"].as_str().and_then(Status::parse);
            if !matches!(status, Some(Status::Queued | Status::Running | Status::Cancelling)) {
                return Ok(report);
            }
            // A server that stops answers at once, again and again until it is gone.
            if asked.elapsed() < PAUSE {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
