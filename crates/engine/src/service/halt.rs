//! The stop switch of a workspace or of the whole instance: while it is on, no run is started or goes on, and those that were
//! under way hold before their next effect.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{RunId, UserId, WorkspaceId};
use adjutant_core::run::command::Command;
use adjutant_core::run::event::{Actor, Event};
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_store::row::{Doing, RunFilter};
use adjutant_store::{StoreError, halt_key};
use serde::{Deserialize, Serialize};

use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;

/// Runs looked up at a time.
const PAGE: u32 = 256;

/// What is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HaltOf {
    /// Everything.
    Instance,
    /// One workspace.
    Workspace(WorkspaceId),
}

/// A switch that is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// Who turned it on.
    pub by: UserId,
    /// When.
    pub at: Time,
    /// Why.
    pub reason: String,
    /// Runs that it holds; they go on when it is turned off.
    pub runs: Vec<RunId>,
}

impl HaltOf {
    const fn workspace(self) -> Option<WorkspaceId> {
        match self {
            Self::Instance => None,
            Self::Workspace(workspace) => Some(workspace),
        }
    }

    /// Where the switch is kept: each by itself, so that turning one never loses another.
    fn key(self) -> String {
        halt_key(self.workspace())
    }

    const fn log(self) -> AuditLog {
        match self {
            Self::Instance => AuditLog::Instance,
            Self::Workspace(workspace) => AuditLog::Workspace(workspace),
        }
    }
}

fn stored(halt: &Halt) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(halt).map_err(|bad| EngineError::Invalid(bad.to_string()))
}

impl Engine {
    /// The switch that holds a workspace, if one is on.
    ///
    /// # Errors
    /// When the store cannot be read: then nothing should be started either.
    pub async fn halted(&self, workspace: WorkspaceId) -> Result<Option<Halt>, EngineError> {
        match self.halt_of(HaltOf::Instance).await? {
            Some(halt) => Ok(Some(halt)),
            None => self.halt_of(HaltOf::Workspace(workspace)).await,
        }
    }

    /// The switch itself. Asked of the store each time: one that is remembered could be an old one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn halt_of(&self, what: HaltOf) -> Result<Option<Halt>, EngineError> {
        let Some(stored) = self.store().meta_get(&what.key()).await? else { return Ok(None) };
        serde_json::from_slice(&stored)
            .map(Some)
            .map_err(|bad| EngineError::Invalid(format!("a stop switch cannot be read: {bad}")))
    }

    pub(crate) async fn refuse_halted(&self, workspace: WorkspaceId) -> Result<(), EngineError> {
        match self.halted(workspace).await? {
            Some(halt) => Err(EngineError::Halted { reason: halt.reason }),
            None => Ok(()),
        }
    }

    /// Turns the switch on. From its commit on no call is announced and no run started: what is announced is held to the
    /// switch in its own transaction. Runs that are under way hold, and tools that run are stopped.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn halt(&self, what: HaltOf, user: UserId, reason: String) -> Result<Halt, EngineError> {
        let mut halt = match self.halt_of(what).await? {
            Some(known) => known,
            None => Halt { by: user, at: self.env().now(), reason, runs: Vec::new() },
        };
        // First nothing new, then what is there: a run that began in between finds the switch when it is taken up.
        let act = Act::new(Deed::Halted, Some(Actor::User(user)), halt.reason.clone());
        self.turn(what, Some(&halt), act).await?;
        for workspace in self.reached(what).await? {
            for run in self.open_runs(workspace).await? {
                let by = Actor::User(user);
                match self.command(workspace, run, &Command::Pause { by }).await {
                    Ok(_) if !halt.runs.contains(&run) => halt.runs.push(run),
                    Ok(_) | Err(EngineError::Refused(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if !self.store().meta_replace(&what.key(), &stored(&halt)?).await? {
            // Somebody turned it off meanwhile, and could not know of all the runs that it held.
            self.let_go(what, &halt, user).await?;
        }
        Ok(halt)
    }

    /// Turns the switch off: the runs that it held go on.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn lift_halt(&self, what: HaltOf, user: UserId) -> Result<Vec<RunId>, EngineError> {
        let Some(halt) = self.halt_of(what).await? else { return Ok(Vec::new()) };
        let act = Act::new(Deed::HaltLifted, Some(Actor::User(user)), halt.reason.clone());
        match self.turn(what, None, act.with("runs", halt.runs.len())).await {
            // Somebody else was faster, and lets them go on.
            Err(EngineError::Store(StoreError::NotFound)) => Ok(Vec::new()),
            turned => {
                turned?;
                self.let_go(what, &halt, user).await
            }
        }
    }

    /// Lets the runs go on that a switch held.
    async fn let_go(&self, what: HaltOf, halt: &Halt, user: UserId) -> Result<Vec<RunId>, EngineError> {
        let mut held = Vec::new();
        for run in &halt.runs {
            held.extend(self.store().find_run(*run).await?.map(|workspace| (workspace, *run)));
        }
        for workspace in self.reached(what).await? {
            held.extend(self.held_later(workspace, halt).await?.into_iter().map(|run| (workspace, run)));
        }
        let mut resumed = Vec::new();
        for (workspace, run) in held {
            match self.command(workspace, run, &Command::Resume { by: Actor::User(user) }).await {
                Ok(_) => resumed.push(run),
                // It ended, somebody let it go on, or another switch still holds it.
                Err(EngineError::Refused(_) | EngineError::Halted { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(resumed)
    }

    /// Holds a run that was taken up while its workspace is stopped.
    pub(crate) async fn hold_if_halted(&self, workspace: WorkspaceId, run: RunId) -> Result<(), EngineError> {
        let Some(halt) = self.halted(workspace).await? else { return Ok(()) };
        let by = Actor::User(halt.by);
        match self.command(workspace, run, &Command::Pause { by: by.clone() }).await {
            Ok(_) => {}
            Err(EngineError::Refused(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        // Whoever turned it off in the meantime may have looked for held runs before this one was.
        if self.halted(workspace).await?.is_none() {
            match self.command(workspace, run, &Command::Resume { by }).await {
                Ok(_) | Err(EngineError::Refused(_) | EngineError::Halted { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs that a switch holds though it does not name them: they were taken up while it was on already.
    async fn held_later(&self, workspace: WorkspaceId, halt: &Halt) -> Result<Vec<RunId>, EngineError> {
        let mut held = Vec::new();
        for run in self.runs_in(workspace, &[Status::Paused]).await? {
            let recorded = self.recorded(workspace, run, 0, None).await?;
            let paused = recorded.iter().rev().find_map(|recorded| match &recorded.event {
                Event::Paused(paused) => Some((recorded.at, paused)),
                _ => None,
            });
            let by = Some(Actor::User(halt.by));
            if !halt.runs.contains(&run) && paused.is_some_and(|(at, paused)| at >= halt.at && paused.by == by) {
                held.push(run);
            }
        }
        Ok(held)
    }

    /// Turns the switch and records it, both or neither.
    async fn turn(&self, what: HaltOf, halt: Option<&Halt>, act: Act) -> Result<(), EngineError> {
        let stored = halt.map(stored).transpose()?;
        let switch = self.store().switch(what.workspace(), stored.as_deref()).await?;
        let done = Done { doing: Some(Doing::Halt(switch)), ..Done::default() };
        self.audit_done(what.log(), act, done).await.map(drop)
    }

    async fn reached(&self, what: HaltOf) -> Result<Vec<WorkspaceId>, EngineError> {
        Ok(match what {
            HaltOf::Workspace(workspace) => vec![workspace],
            HaltOf::Instance => self.store().workspaces().await?.into_iter().map(|row| row.id).collect(),
        })
    }

    async fn open_runs(&self, workspace: WorkspaceId) -> Result<Vec<RunId>, EngineError> {
        let open = [Status::Queued, Status::Running, Status::WaitingApproval, Status::InDoubt];
        self.runs_in(workspace, &open).await
    }

    async fn runs_in(&self, workspace: WorkspaceId, statuses: &[Status]) -> Result<Vec<RunId>, EngineError> {
        let mut open = Vec::new();
        for status in statuses {
            let status = Some(status.word().to_owned());
            let mut filter = RunFilter { status, superseded: true, ..RunFilter::default() };
            loop {
                let rows = self.store().runs(workspace, &filter, PAGE).await?;
                let last = rows.len() < PAGE as usize;
                filter.before = rows.last().map(|row| row.id);
                open.extend(rows.into_iter().map(|row| row.id));
                if last {
                    break;
                }
            }
        }
        Ok(open)
    }
}
