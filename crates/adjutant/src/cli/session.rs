//! One run at the terminal: drive it, show it, answer its questions or say how they can be answered, until it ends, waits
//! for somebody, or is left. Used by every command that follows a run.

use std::time::Duration;

use adjutant_core::id::{ApprovalId, RunId};
use adjutant_core::run::command::{Command, Decide, Refusal};
use adjutant_core::run::event::{Actor, ApprovalKind, Decision, EndStatus, GrantScope, PauseReason};
use adjutant_core::run::state::{Approval, State};
use adjutant_core::run::status::Status;
use adjutant_engine::{EngineError, FeedItem, Recorded};
use tokio::time::Instant;

use super::Context;
use super::interrupt::Interrupt;
use super::prompt::{self, Answer, Held};
use super::screen::{Format, Screen};
use super::words::{after_failure, ours, short};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::{self, Secrets, Texts};

/// How often the line that moves does so.
pub(super) const TICK: Duration = Duration::from_millis(120);
/// How often a run that another process drives, or that waits for a moment, is looked at again.
const LOOK: Duration = Duration::from_millis(500);
/// Who rejects when rules alone decide.
const RULES: &str = "--approve rules";

/// What is done when a run asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Approve {
    /// Ask the person at the terminal; without one, stop.
    Ask,
    /// Stop.
    Fail,
    /// Reject whatever no rule allows, and go on.
    Rules,
}

/// How a run is followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follow {
    pub(crate) approve: Approve,
    /// The event to begin after.
    pub(crate) after: u64,
    pub(crate) timeout: Option<Duration>,
}

/// One run at the terminal.
pub(crate) struct Session<'a> {
    context: &'a Context,
    instance: &'a Instance,
    run: RunId,
    screen: Screen,
    follow: Follow,
    deadline: Option<Instant>,
    interrupt: Interrupt,
}

/// Why a stretch of driving came to an end.
enum Stretch {
    /// Nothing more happens here by itself.
    Still,
    /// Ctrl-C.
    Interrupted,
}

/// What a person has to do with an inbox item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Approve,
    Resolve,
}

impl<'a> Session<'a> {
    pub(crate) fn new(context: &'a Context, instance: &'a Instance, run: RunId, follow: Follow) -> Self {
        let screen = Screen::new(context.terminal, context.format());
        let deadline = follow.timeout.map(|limit| Instant::now() + limit);
        Self { context, instance, run, screen, follow, deadline, interrupt: Interrupt::listen() }
    }

    /// Follows the run to its end, or to where it waits.
    ///
    /// # Errors
    /// When the run cannot be driven or read.
    pub(crate) async fn go(mut self) -> Result<Exit, Failure> {
        self.skip_to_start().await?;
        let attendance = self.instance.engine.attend().await?;
        let exit = self.rounds().await;
        self.screen.still();
        attendance.leave().await;
        exit
    }

    /// Learns from what happened before the first event that is shown.
    async fn skip_to_start(&mut self) -> Result<(), Failure> {
        let (engine, workspace) = (&self.instance.engine, self.instance.home.workspace);
        if self.follow.after > 0 {
            let before = engine.recorded(workspace, self.run, 0, Some(self.follow.after)).await?;
            let texts = Texts::load(engine, workspace, before.iter().map(|recorded| &recorded.event)).await?;
            before
                .iter()
                .filter_map(|item| wire::event(self.run, item, &texts))
                .for_each(|event| self.screen.skip(&event));
        }
        Ok(())
    }

    async fn rounds(&mut self) -> Result<Exit, Failure> {
        loop {
            match self.stretch().await? {
                Stretch::Still => {}
                Stretch::Interrupted => return Ok(self.interrupted()),
            }
            let state = self.instance.engine.run_state(self.instance.home.workspace, self.run).await?;
            match state.status() {
                Status::Completed | Status::Cancelled => return Ok(ended(&state)),
                Status::Failed => {
                    self.hint(&after_failure(&short(&self.run), state.error.as_ref().map(|error| error.code.as_str())));
                    return Ok(ended(&state));
                }
                Status::WaitingApproval => {
                    if let Some(exit) = self.approvals(&state).await? {
                        return Ok(exit);
                    }
                }
                Status::InDoubt => {
                    if let Some(exit) = self.doubts(&state).await? {
                        return Ok(exit);
                    }
                }
                Status::Paused => return Ok(self.paused(&state)),
                Status::Queued | Status::Running | Status::Cancelling => {
                    tokio::select! {
                        () = tokio::time::sleep(LOOK) => {}
                        () = self.interrupt.heard() => return Ok(self.interrupted()),
                    }
                }
            }
        }
    }

    /// Drives the run as far as it goes by itself, showing what happens.
    async fn stretch(&mut self) -> Result<Stretch, Failure> {
        let (engine, workspace) = (&self.instance.engine, self.instance.home.workspace);
        let mut follower = engine.follow(workspace, self.run, self.follow.after);
        let mut driving = std::pin::pin!(engine.drive_run(self.run));
        let mut tick = tokio::time::interval(TICK);
        let mut late = std::pin::pin!(sleep_until(self.deadline));
        let interrupt = self.interrupt.clone();
        let reason = loop {
            tokio::select! {
                driven = &mut driving => {
                    driven?;
                    break Stretch::Still;
                }
                item = follower.next() => match item? {
                    Some(FeedItem::Event(recorded)) => show(self.instance, self.run, &mut self.screen, &mut self.follow.after, &recorded).await?,
                    Some(FeedItem::Piece(piece)) => self.screen.piece(&piece.delta),
                    None => {
                        driving.await?;
                        break Stretch::Still;
                    }
                },
                () = interrupt.heard() => break Stretch::Interrupted,
                () = &mut late => {
                    // Whoever drives it, which is us, hears of the cancel and ends it in order.
                    late.set(sleep_until(None));
                    self.deadline = None;
                    self.screen.note("It took longer than --timeout allows; the run is cancelled.");
                    let reason = "it took longer than --timeout allows".to_owned();
                    engine.command(workspace, self.run, &Command::Cancel { by: self.me(), reason }).await?;
                }
                _ = tick.tick() => self.screen.tick(),
            }
        };
        self.catch_up().await?;
        Ok(reason)
    }

    /// Shows what is in the log and not on the screen yet.
    async fn catch_up(&mut self) -> Result<(), Failure> {
        let rest =
            self.instance.engine.recorded(self.instance.home.workspace, self.run, self.follow.after, None).await?;
        for recorded in &rest {
            show(self.instance, self.run, &mut self.screen, &mut self.follow.after, recorded).await?;
        }
        Ok(())
    }

    fn interrupted(&mut self) -> Exit {
        self.screen.still();
        let run = short(&self.run);
        let words = format!("Interrupted. {run} keeps everything it has done; go on with: adjutant runs resume {run}");
        self.screen.note(&ours(&words));
        Exit::Interrupted
    }

    fn me(&self) -> Actor {
        Actor::User(self.instance.home.user)
    }

    fn may_ask(&self) -> bool {
        self.follow.approve == Approve::Ask && self.context.terminal.interactive
    }

    /// Answers what is asked. None: all of it is answered, the run can go on.
    async fn approvals(&mut self, state: &State) -> Result<Option<Exit>, Failure> {
        let open = state.approvals.iter().filter(|(_, approval)| approval.is_pending());
        let pending: Vec<(ApprovalId, &Approval)> =
            open.filter(|(_, approval)| approval.kind == ApprovalKind::Call).map(|(id, item)| (*id, item)).collect();
        self.screen.still();
        if self.follow.approve != Approve::Rules && !self.may_ask() {
            let ids: Vec<_> = pending.iter().map(|(id, _)| *id).collect();
            return Ok(Some(self.wants_person(&ids, Verb::Approve)));
        }
        for (id, approval) in pending {
            let decide = if self.follow.approve == Approve::Rules {
                let message = Some("no rule allows it, and nobody is asked".to_owned());
                self.decide(id, Decision::Reject, message).by(Actor::Rule(RULES.to_owned()))
            } else {
                match self.ask(id, approval, state).await? {
                    Some(decide) => decide,
                    None => return Ok(Some(self.interrupted())),
                }
            };
            match self.instance.engine.decide(self.instance.home.workspace, decide.0).await {
                Ok(_) => {}
                Err(EngineError::Refused(
                    refusal @ (Refusal::AlreadyDecided(_) | Refusal::Superseded | Refusal::Expired),
                )) => {
                    self.screen.note(&format!("That question is settled: {refusal}."));
                }
                Err(EngineError::Refused(Refusal::BadArguments(why))) => {
                    self.screen.note(&format!("The arguments cannot be used: {why}. Nothing was decided."));
                }
                Err(other) => return Err(other.into()),
            }
        }
        Ok(None)
    }

    /// What a person is asked, whole.
    async fn held(&self, id: ApprovalId, approval: &Approval, state: &State) -> Result<Option<Held>, Failure> {
        let workspace = self.instance.home.workspace;
        let texts = Texts::load(&self.instance.engine, workspace, &wire::events_of(approval)).await?;
        let row = self.instance.engine.store().approval(workspace, id).await?;
        Ok(row.map(|row| Held::of(&serde_json::json!(wire::item(&row, state, &texts, Secrets::Shown)))))
    }

    async fn ask(&mut self, id: ApprovalId, approval: &Approval, state: &State) -> Result<Option<Decided>, Failure> {
        let Some(held) = self.held(id, approval, state).await? else { return Ok(None) };
        let answer = tokio::select! {
            answer = prompt::ask(&held, self.context.terminal, &self.context.env) => answer,
            () = self.interrupt.heard() => Answer::Gone,
        };
        let decide = match answer {
            Answer::Approve(scope) => self.decide(id, Decision::Approve, None).scope(scope),
            Answer::Edit(arguments) => self.decide(id, Decision::Edit, None).arguments(arguments),
            Answer::Reject(message) => self.decide(id, Decision::Reject, message),
            Answer::Stop => self.decide(id, Decision::Stop, None),
            Answer::Gone => return Ok(None),
        };
        // A decision is about what was on the screen and nothing else.
        let fingerprint = approval.asked.as_ref().map(|asked| asked.fingerprint);
        Ok(Some(Decided(Decide { fingerprint, ..decide.0 })))
    }

    fn decide(&self, approval: ApprovalId, decision: Decision, message: Option<String>) -> Decided {
        let (scope, by) = (GrantScope::Once, self.me());
        Decided(Decide { approval, decision, scope, lasts: None, by, arguments: None, message, fingerprint: None })
    }

    /// Says who has to do what before the run can go on.
    fn wants_person(&mut self, ids: &[ApprovalId], verb: Verb) -> Exit {
        if self.context.format() == Format::Text {
            for id in ids {
                let (id, run) = (short(id), short(&self.run));
                let answer = match verb {
                    Verb::Approve => format!("adjutant inbox approve {id} (or reject, edit, respond)"),
                    Verb::Resolve => format!("adjutant inbox resolve {id} happened|run|abandon"),
                };
                self.screen.note(&ours(&format!("{run} waits for you: adjutant inbox show {id}")));
                self.hint(&format!("{answer}, then adjutant runs watch {run}"));
            }
        }
        Exit::NeedsPerson
    }

    /// Settles calls that nobody knows the end of.
    async fn doubts(&mut self, state: &State) -> Result<Option<Exit>, Failure> {
        let open = state.approvals.iter().filter(|(_, approval)| approval.is_pending());
        let open: Vec<_> = open.filter(|(_, approval)| approval.kind == ApprovalKind::InDoubt).collect();
        self.screen.still();
        for (id, approval) in open {
            let held = if self.may_ask() { self.held(*id, approval, state).await? } else { None };
            let Some(held) = held else { return Ok(Some(self.wants_person(&[*id], Verb::Resolve))) };
            let outcome = tokio::select! {
                outcome = prompt::ask_doubt(&held, self.context.terminal) => outcome,
                () = self.interrupt.heard() => return Ok(Some(self.interrupted())),
            };
            let Some(outcome) = outcome else { return Ok(Some(self.wants_person(&[*id], Verb::Resolve))) };
            let command = Command::Resolve { call: approval.call.clone(), outcome, result: None, by: self.me() };
            self.instance.engine.command(self.instance.home.workspace, self.run, &command).await?;
        }
        Ok(None)
    }

    /// Says what to do next, to a person.
    fn hint(&mut self, hint: &str) {
        if self.context.format() == Format::Text {
            self.screen.note(&format!("hint: {}", ours(hint)));
        }
    }

    fn paused(&mut self, state: &State) -> Exit {
        match state.budget_items.iter().find(|(_, item)| item.is_pending()) {
            Some((id, item)) => {
                let raise = item.ask.raise;
                let what = match &item.ask.unpriced {
                    Some(model) => format!("lets it ask {model} without counting what that costs"),
                    None => format!("adds {raise} and continues"),
                };
                self.hint(&format!("adjutant inbox approve {} {what}", short(id)));
            }
            None => self.hint(&format!("adjutant runs resume {} lets it go on", short(&self.run))),
        }
        match state.pause.as_ref().map(|pause| pause.reason) {
            Some(PauseReason::Budget | PauseReason::Rate) => Exit::Spent,
            Some(PauseReason::Person) | None => Exit::NeedsPerson,
        }
    }
}

/// Comes back at a moment, or never.
pub(super) async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn show(
    instance: &Instance,
    run: RunId,
    screen: &mut Screen,
    after: &mut u64,
    recorded: &Recorded,
) -> Result<(), Failure> {
    if recorded.seq > *after {
        let texts = Texts::load(&instance.engine, instance.home.workspace, [&recorded.event]).await?;
        if let Some(event) = wire::event(run, recorded, &texts) {
            screen.event(&event);
        }
        *after = recorded.seq;
    }
    Ok(())
}

/// The number for how a run ended.
pub(crate) fn ended(state: &State) -> Exit {
    let stopped = state
        .approvals
        .values()
        .filter_map(|approval| approval.decided.as_ref())
        .any(|(decided, _)| decided.decision == Decision::Stop);
    match state.end_status() {
        Some(EndStatus::Completed) => Exit::Done,
        Some(EndStatus::Cancelled) if stopped => Exit::Rejected,
        Some(EndStatus::Failed) => failed(state.error.as_ref().map(|error| error.code.as_str())),
        Some(EndStatus::Cancelled) | None => Exit::RunFailed,
    }
}

/// A decision in the making.
struct Decided(Decide);

impl Decided {
    fn by(self, by: Actor) -> Self {
        Self(Decide { by, ..self.0 })
    }

    fn scope(self, scope: GrantScope) -> Self {
        Self(Decide { scope, ..self.0 })
    }

    fn arguments(self, arguments: String) -> Self {
        Self(Decide { arguments: Some(arguments), ..self.0 })
    }
}

/// The number for a run that failed.
pub(crate) fn failed(code: Option<&str>) -> Exit {
    match code {
        Some("network" | "provider_timeout" | "overloaded" | "truncated") => Exit::Unreachable,
        Some("rate_limited" | "no_credit" | "budget_exhausted") => Exit::Spent,
        Some(_) | None => Exit::RunFailed,
    }
}
