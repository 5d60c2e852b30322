//! Forgetting what was said in runs: bodies and contents go, the chain and the columns stay. A person's act.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{ChatId, RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_store::row::{RunFilter, RunRow};
use serde::Serialize;

use crate::audit::AuditLog;
use crate::engine::Engine;
use crate::error::EngineError;

/// Runs looked up at a time.
const PAGE: u32 = 256;
/// What lists show of a run that was erased.
const ERASED: &str = "{}";

/// Which runs are erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EraseWhat {
    /// Those that ended before a moment.
    Before(Time),
    /// This one.
    Run(RunId),
    /// Those of this chat.
    Chat(ChatId),
}

/// What was erased, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EraseReport {
    /// The runs, newest first.
    pub runs: Vec<RunId>,
    /// Bodies that are gone.
    pub bodies: u64,
    /// Runs from that time that have not ended, and stay.
    pub open: Vec<RunId>,
}

impl Engine {
    /// The runs that would be erased. Changes nothing.
    ///
    /// # Errors
    /// When there is no such run, or it has not ended.
    pub async fn erasable(&self, workspace: WorkspaceId, what: EraseWhat) -> Result<EraseReport, EngineError> {
        let mut report = EraseReport { runs: Vec::new(), bodies: 0, open: Vec::new() };
        let before = match what {
            EraseWhat::Run(run) => {
                let row = self.run_row(workspace, run).await?;
                if row.state.ended_at.is_none() {
                    let why =
                        format!("{run} has not ended ({}); cancel it first. Nothing was erased", row.state.status);
                    return Err(EngineError::Invalid(why));
                }
                report.runs.extend((!is_erased(&row)).then_some(run));
                return Ok(report);
            }
            EraseWhat::Before(before) => Some(before),
            EraseWhat::Chat(_) => None,
        };
        let chat = match what {
            EraseWhat::Chat(chat) => Some(chat),
            EraseWhat::Before(_) | EraseWhat::Run(_) => None,
        };
        let is_old = |time: Time| before.is_none_or(|before| time < before);
        let mut filter = RunFilter { chat, superseded: true, ..RunFilter::default() };
        loop {
            let rows = self.store().runs(workspace, &filter, PAGE).await?;
            let last = rows.len() < PAGE as usize;
            for row in rows {
                filter.before = Some(row.id);
                match row.state.ended_at {
                    Some(ended) if is_old(ended) && !is_erased(&row) => report.runs.push(row.id),
                    None if is_old(row.created_at) => report.open.push(row.id),
                    Some(_) | None => {}
                }
            }
            if last {
                return Ok(report);
            }
        }
    }

    /// Erases what was said in runs that have ended. It is recorded before it begins and after it has ended; one that was
    /// interrupted is gone on with by asking again.
    ///
    /// # Errors
    /// When there is no such run, it has not ended, or the store cannot be written.
    pub async fn erase_runs(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        what: EraseWhat,
    ) -> Result<EraseReport, EngineError> {
        let mut report = self.erasable(workspace, what).await?;
        if report.runs.is_empty() {
            return Ok(report);
        }
        let (summary, run) = match what {
            EraseWhat::Before(before) => (format!("runs that ended before {before}"), None),
            EraseWhat::Run(run) => (run.to_string(), Some(run)),
            EraseWhat::Chat(chat) => (format!("the chat {chat}"), None),
        };
        let by = Actor::User(user);
        let which = match what {
            EraseWhat::Before(_) => Which::Settled,
            EraseWhat::Run(_) | EraseWhat::Chat(_) => Which::Ended,
        };
        (_, report.bodies) = self.erase_recorded(workspace, by, (summary, run), &report.runs, which).await?;
        Ok(report)
    }
}

/// Which of the runs that are named are erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All: whoever named them knows that they have ended.
    Ended,
    /// Those that have ended and about which nobody is asked, looked at once more.
    Settled,
}

impl Engine {
    /// Erases runs between two records of it. Says of how many, and how many bodies.
    pub(super) async fn erase_recorded(
        &self,
        workspace: WorkspaceId,
        by: Actor,
        (summary, run): (String, Option<RunId>),
        runs: &[RunId],
        which: Which,
    ) -> Result<(u64, u64), EngineError> {
        if runs.is_empty() {
            return Ok((0, 0));
        }
        let act = |deed| Act { run, ..Act::new(deed, Some(by.clone()), summary.clone()) };
        let log = AuditLog::Workspace(workspace);
        let begun = self.audit(log, act(Deed::EraseBegun).with("runs", runs.len())).await?;
        let (mut erased, mut bodies) = (0_u64, 0);
        for run in runs {
            let gone = match which {
                Which::Ended => Some(self.store().erase_bodies(workspace, StreamId::Run(*run)).await?),
                Which::Settled => self.store().erase_run(workspace, *run).await?,
            };
            erased += u64::from(gone.is_some());
            bodies += gone.unwrap_or(0);
        }
        let ended = act(Deed::EraseEnded).with("begun", begun.seq).with("runs", erased);
        self.audit(log, ended.with("bodies", bodies)).await?;
        Ok((erased, bodies))
    }
}

impl Engine {
    /// Takes a chat away with what was said in it. Of its runs the numbers and the chains stay; nothing says any more what
    /// they were about.
    ///
    /// # Errors
    /// [`EngineError::Busy`] while one of its runs has not ended: nothing is erased then.
    pub async fn delete_chat(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        id: ChatId,
    ) -> Result<EraseReport, EngineError> {
        let chat = self.store().chat(workspace, id).await?.ok_or_else(|| EngineError::not_found("chat", id))?;
        if let Some(open) = self.erasable(workspace, EraseWhat::Chat(id)).await?.open.first() {
            return Err(EngineError::Busy(*open));
        }
        let report = self.erase_runs(workspace, user, EraseWhat::Chat(id)).await?;
        for waiting in self.store().waiting_in(workspace, id, u32::MAX).await? {
            self.store().remove_waiting(workspace, waiting.id).await?;
        }
        // The row goes last: whoever was interrupted finds the chat and deletes it again.
        if self.store().delete_chat(workspace, id, chat.tip).await? {
            let act = Act::new(Deed::ChatDeleted, Some(Actor::User(user)), id.to_string());
            self.audit(AuditLog::Workspace(workspace), act.with("runs", report.runs.len())).await?;
            return Ok(report);
        }
        let tip = self.store().chat(workspace, id).await?.and_then(|chat| chat.tip);
        Err(tip.map_or_else(|| EngineError::not_found("chat", id), EngineError::Busy))
    }
}

/// Whether what was said in a run was erased.
#[must_use]
pub fn is_erased(row: &RunRow) -> bool {
    row.state.summary == ERASED
}
