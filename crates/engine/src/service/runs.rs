//! Runs that exist: commands to them, reading them, finding them.

use adjutant_core::content::Content;
use adjutant_core::id::{ApprovalId, RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::command::{Command, Decide, accept};
use adjutant_core::run::event::{Actor, Event};
use adjutant_core::run::state::State;
use adjutant_core::run::status::Status;
use adjutant_store::StoreError;
use adjutant_store::row::{RunRow, Writer};

use crate::base::state_at;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::feed::FeedItem;
use crate::held::Record;
use crate::log::{Flushed, Recorded, RunLog, decode, texts};

/// Events read at a time.
const PAGE: u32 = 512;
/// How often a command that lost a race is judged again.
const RACES: usize = 16;

/// A run and the tenant it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunRef {
    /// The tenant.
    pub workspace: WorkspaceId,
    /// The run.
    pub run: RunId,
}

impl Engine {
    /// Asks something of a run. Answers with the state after it.
    ///
    /// # Errors
    /// When the run does not accept the command.
    pub async fn command(&self, workspace: WorkspaceId, run: RunId, command: &Command) -> Result<State, EngineError> {
        if matches!(command, Command::Resume { .. }) {
            self.refuse_halted(workspace).await?;
        }
        for _ in 0..RACES {
            let mut log = RunLog::load(self.store(), self.env(), workspace, run).await?;
            if log.state.start.is_none() {
                return Err(EngineError::not_found("run", run));
            }
            log.hold(self.held(Record::of_run(workspace, &log.state)).await?);
            let events = accept(&log.state, command, self.env().now())?;
            if events.is_empty() {
                return Ok(log.state);
            }
            for event in events {
                log.push(event)?;
            }
            match log.flush(Writer::Command, false).await? {
                // Overtaken: it was written, and others have gone on from there.
                Flushed::Written | Flushed::Overtaken => {
                    self.poke(run);
                    return Ok(log.state);
                }
                // Somebody was faster: what they did may change the answer.
                Flushed::Rebased | Flushed::Fenced => {}
            }
        }
        Err(EngineError::Store(StoreError::Stale { fenced: false }))
    }

    /// Decides an approval, wherever its run is.
    ///
    /// # Errors
    /// When there is no such approval, or it cannot be decided any more.
    pub async fn decide(&self, workspace: WorkspaceId, decide: Decide) -> Result<State, EngineError> {
        let run = self.approval_run(workspace, decide.approval).await?;
        self.command(workspace, run, &Command::Decide(decide)).await
    }

    /// The run an approval belongs to.
    ///
    /// # Errors
    /// When there is no such approval.
    pub async fn approval_run(&self, workspace: WorkspaceId, approval: ApprovalId) -> Result<RunId, EngineError> {
        let row = self.store().approval(workspace, approval).await?;
        row.map(|row| row.run).ok_or_else(|| EngineError::not_found("approval", approval))
    }

    /// A run's row.
    ///
    /// # Errors
    /// When there is none.
    pub async fn run_row(&self, workspace: WorkspaceId, run: RunId) -> Result<RunRow, EngineError> {
        self.store().run(workspace, run).await?.ok_or_else(|| EngineError::not_found("run", run))
    }

    /// The state of a run, read from its log.
    ///
    /// # Errors
    /// When there is none, or its log cannot be followed.
    pub async fn run_state(&self, workspace: WorkspaceId, run: RunId) -> Result<State, EngineError> {
        let state = state_at(self, workspace, run, u64::MAX).await?;
        if state.start.is_none() { Err(EngineError::not_found("run", run)) } else { Ok(state) }
    }

    /// The events of a run after one of them, up to another.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn recorded(
        &self,
        workspace: WorkspaceId,
        run: RunId,
        after: u64,
        until: Option<u64>,
    ) -> Result<Vec<Recorded>, EngineError> {
        let mut recorded = Vec::new();
        let mut cursor = after;
        loop {
            let entries = self.store().events(workspace, StreamId::Run(run), cursor, PAGE).await?;
            let last = entries.len() < PAGE as usize;
            for entry in entries {
                if until.is_some_and(|until| entry.seq > until) {
                    return Ok(recorded);
                }
                cursor = entry.seq;
                recorded.push(Recorded { seq: entry.seq, at: entry.time, event: decode(run, &entry)? });
            }
            if last {
                return Ok(recorded);
            }
        }
    }

    /// Loads the long texts of events.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn load_texts(&self, workspace: WorkspaceId, contents: &mut [&mut Content]) -> Result<(), EngineError> {
        let missing: Vec<_> = contents.iter().filter_map(|content| content.missing()).collect();
        let loaded = texts(self.store(), workspace, &missing).await?;
        for content in contents.iter_mut() {
            if let Some(text) = content.missing().and_then(|hash| loaded.get(&hash).cloned()) {
                content.fill(&text);
            }
        }
        Ok(())
    }

    pub(crate) async fn cancel_and_wait(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        run: RunId,
    ) -> Result<(), EngineError> {
        let mut follower = self.follow(workspace, run, 0);
        let command = Command::Cancel { by: Actor::User(user), reason: "replaced by an edited message".to_owned() };
        let state = self.command(workspace, run, &command).await?;
        if state.status() != Status::Cancelling {
            return Ok(());
        }
        // Nobody may be driving it: then it is driven here, to its end.
        self.drive_run(run).await?;
        while let Some(item) = follower.next().await? {
            if let FeedItem::Event(recorded) = item
                && matches!(recorded.event, Event::RunEnded(_))
            {
                break;
            }
        }
        Ok(())
    }
}
