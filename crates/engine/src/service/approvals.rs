//! The inbox as a whole: what is like what, so that many questions of one kind can be answered at once.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{ApprovalId, RunId, UserId, WorkspaceId};
use adjutant_core::run::event::{Actor, ApprovalAsked};
use adjutant_store::row::{ApprovalFilter, ApprovalRow};

use crate::audit::AuditLog;
use crate::engine::Engine;
use crate::error::EngineError;

/// Questions that are looked at for one answer to many.
const LOOKED_AT: u32 = 1000;

impl Engine {
    /// What was asked under an approval; none for a call in doubt.
    ///
    /// # Errors
    /// When there is no such approval, or its run cannot be read.
    pub async fn asked(
        &self,
        workspace: WorkspaceId,
        approval: ApprovalId,
    ) -> Result<Option<ApprovalAsked>, EngineError> {
        let run = self.approval_run(workspace, approval).await?;
        let state = self.run_state(workspace, run).await?;
        Ok(state.approvals.get(&approval).and_then(|approval| approval.asked.clone()))
    }

    /// The open questions that are like one of them, that one among them: the same agent, the same tool and the same place
    /// (folder, or the very arguments). Each comes with what is asked, so that an answer can be bound to it.
    ///
    /// # Errors
    /// When there is no such approval, or a run cannot be read.
    pub async fn alike(
        &self,
        workspace: WorkspaceId,
        approval: ApprovalId,
    ) -> Result<Vec<(ApprovalRow, ApprovalAsked)>, EngineError> {
        let row = self.store().approval(workspace, approval).await?;
        let row = row.ok_or_else(|| EngineError::not_found("approval", approval))?;
        let model = self.asked(workspace, approval).await?;
        let (status, agent) = (Some("pending".to_owned()), Some(row.agent));
        let filter = ApprovalFilter { status, agent, ..ApprovalFilter::default() };
        let mut alike = Vec::new();
        for other in self.store().approvals(workspace, &filter, LOOKED_AT).await? {
            if other.tool != row.tool || other.kind != row.kind {
                continue;
            }
            let asked = self.asked(workspace, other.id).await?;
            if let (Some(model), Some(asked)) = (&model, asked)
                && asked.place.is_some()
                && asked.place == model.place
            {
                alike.push((other, asked));
            }
        }
        Ok(alike)
    }

    /// Records that the secrets in a question are shown to somebody who may answer it.
    ///
    /// # Errors
    /// When it cannot be recorded: then they must not be shown.
    pub async fn record_reveal(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        row: &ApprovalRow,
    ) -> Result<(), EngineError> {
        let tool = row.tool.as_deref().unwrap_or("a question");
        let act = Act::new(Deed::SecretsRevealed, Some(Actor::User(by)), format!("in what {tool} asks"))
            .agent(row.agent)
            .run(row.run)
            .with("approval", row.id.to_string());
        self.audit(AuditLog::Workspace(workspace), act).await.map(drop)
    }

    /// Records that what looks like a secret is shown to an admin as it was recorded: in a search, or in the file of a run.
    ///
    /// # Errors
    /// When it cannot be recorded: then it must not be shown.
    pub async fn record_raw(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        place: String,
        run: Option<RunId>,
    ) -> Result<(), EngineError> {
        let act = Act::new(Deed::SecretsRevealed, Some(Actor::User(by)), place);
        let act = match run {
            Some(run) => act.run(run),
            None => act,
        };
        self.audit(AuditLog::Workspace(workspace), act).await.map(drop)
    }
}
