//! Taking away notebooks and workspaces. Both say by name what they mean, and wait for what goes on.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::Actor;
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_store::StoreError;
use adjutant_store::row::{Doing, RunFilter};

use super::erase::{EraseWhat, Which};
use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;

/// The workspace that everything begins with.
const HOME: &str = "home";
/// How often runs that ended meanwhile are looked for.
const ROUNDS: usize = 8;

impl Engine {
    /// Takes a notebook away: one of ours with its files, a linked one only from here. Chats and runs of it stay readable;
    /// nothing more is said in those chats.
    ///
    /// # Errors
    /// When there is none, it was not named, or a run on it has not ended.
    pub async fn remove_notebook(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        id: NotebookId,
        named: &str,
    ) -> Result<(), EngineError> {
        let missing = || EngineError::not_found("notebook", id);
        let row = self.store().notebook(workspace, id).await?.ok_or_else(missing)?;
        confirmed("notebook", &row.slug, named)?;
        if let Some(run) = self.open_run(workspace, Some(id)).await? {
            return Err(EngineError::InUse { what: format!("notebook `{}`", row.slug), run });
        }
        let summary = match &row.linked {
            Some(folder) => format!("notebook `{}` unlinked from {folder}, which is left as it is", row.slug),
            None => format!("notebook `{}` taken away, with its files", row.slug),
        };
        let act = Act::new(Deed::SettingChanged, Some(Actor::User(by)), summary).with("notebook", id.to_string());
        let done = Done { doing: Some(Doing::RemoveNotebook(id)), ..Done::default() };
        let aside = self.put_aside(std::slice::from_ref(&row))?;
        match self.audit_done(AuditLog::Workspace(workspace), act, done).await {
            Ok(_) => {}
            Err(EngineError::Store(StoreError::NotFound)) => return Err(missing()),
            // A run came in between.
            Err(EngineError::Store(StoreError::Conflict(_))) => {
                let run = self.open_run(workspace, Some(id)).await?.ok_or_else(missing)?;
                return Err(EngineError::InUse { what: format!("notebook `{}`", row.slug), run });
            }
            Err(error) => return Err(error),
        }
        self.close_notebook(workspace, id);
        aside.remove();
        Ok(())
    }

    /// Takes a workspace away with all that is in it: what was said, chats, agents, rules, keys, members, notebooks. Folders
    /// that were linked are left as they are. Of its runs and of its own log the hash chains stay; who took it away is in the
    /// log of the instance. Whoever calls this has made sure that it is the owner of the instance who asks.
    ///
    /// # Errors
    /// When it was not named, one of its runs has not ended, or it is the one that everything begins with.
    pub async fn remove_workspace(&self, workspace: WorkspaceId, by: UserId, named: &str) -> Result<(), EngineError> {
        let missing = || EngineError::not_found("workspace", workspace);
        let row = self.store().workspace(workspace).await?.ok_or_else(missing)?;
        if row.slug == HOME {
            let why = "`home` is where everything begins; it stays. What was said in it can be erased".to_owned();
            return Err(EngineError::Invalid(why));
        }
        confirmed("workspace", &row.slug, named)?;
        for _ in 0..ROUNDS {
            if let Some(run) = self.open_run(workspace, None).await? {
                return Err(EngineError::InUse { what: format!("workspace `{}`", row.slug), run });
            }
            let all = self.erasable(workspace, EraseWhat::Before(Time::from_millis(i64::MAX))).await?.runs;
            let summary = (format!("everything in `{}`, which is taken away", row.slug), None);
            self.erase_recorded(workspace, Actor::User(by), summary, &all, Which::Ended).await?;
            let head = self.store().head(workspace, StreamId::Workspace(workspace)).await?;
            let act = Act::new(Deed::WorkspaceRemoved, Some(Actor::User(by)), format!("{} ({})", row.slug, row.name));
            let act = act.with("workspace", workspace.to_string()).with("log", format!("{}:{}", head.seq, head.hash));
            let done = Done { doing: Some(Doing::CloseWorkspace(workspace)), ..Done::default() };
            let aside = self.put_aside(&self.store().notebooks(workspace).await?)?;
            match self.audit_done(AuditLog::Instance, act, done).await {
                Ok(_) => {
                    aside.remove();
                    // It is gone; what is left of it is swept up at the next start, if not now.
                    if let Err(error) = self.sweep_workspace(workspace).await {
                        tracing::warn!(%workspace, %error, "what is left of a workspace that is gone is still there");
                    }
                    return Ok(());
                }
                Err(EngineError::Store(StoreError::NotFound)) => return Err(missing()),
                // A run came in between: it is waited for, or erased.
                Err(EngineError::Store(StoreError::Conflict(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::Store(StoreError::Stale { fenced: false }))
    }

    /// A run that has not ended, of a whole workspace or on one notebook of it.
    async fn open_run(
        &self,
        workspace: WorkspaceId,
        notebook: Option<NotebookId>,
    ) -> Result<Option<RunId>, EngineError> {
        for status in Status::ALL.into_iter().filter(|status| !status.is_end()) {
            let mut filter =
                RunFilter { status: Some(status.word().to_owned()), superseded: true, ..RunFilter::default() };
            loop {
                let rows = self.store().runs(workspace, &filter, 256).await?;
                let works = |row: &&adjutant_store::row::RunRow| notebook.is_none() || row.notebook == notebook;
                if let Some(row) = rows.iter().find(works) {
                    return Ok(Some(row.id));
                }
                match rows.last() {
                    Some(last) => filter.before = Some(last.id),
                    None => break,
                }
            }
        }
        Ok(None)
    }
}

/// Whoever takes something away for good names it once more.
fn confirmed(what: &str, slug: &str, named: &str) -> Result<(), EngineError> {
    if slug == named {
        return Ok(());
    }
    Err(EngineError::Invalid(format!("the {what} `{slug}` is taken away for good: confirm it by its short name")))
}
