//! The inbox projection: what waits for a person. Written by appends only.

use adjutant_core::id::{ApprovalId, WorkspaceId};

use crate::keys::Sealer;
use crate::prepare::card_place;
use crate::row::{ApprovalFilter, ApprovalRow, Order};
use crate::runs::{ERASED, Wanted};
use crate::seal::Scope;
use crate::value::{Row, args};
use crate::{Store, StoreError};

const COLUMNS: &str = "id, run, chat, agent, call, kind, status, tool, created_at, expires_at, decided_at, card";

impl Store {
    /// One item.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn approval(&self, workspace: WorkspaceId, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
        let sql = sql!(self, memory => memory.approval(workspace, id));
        let text = format!("SELECT {COLUMNS} FROM approvals WHERE workspace = $1 AND id = $2");
        let Some(row) = sql.db.read_one(text, args![workspace, id]).await? else { return Ok(None) };
        read(workspace, row, &sql.sealer(Scope::Workspace(workspace)).await?).map(Some)
    }

    /// Items of a workspace, in the order that the filter names.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn approvals(
        &self,
        workspace: WorkspaceId,
        filter: &ApprovalFilter,
        limit: u32,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        let sql = sql!(self, memory => memory.approvals(workspace, filter, limit));
        let order = match filter.order {
            Order::OldestFirst => "id",
            Order::NewestFirst => "id DESC",
        };
        let (text, args) = conditions(workspace, filter).select(COLUMNS, "approvals", order, limit);
        let rows = sql.db.scan(text, args).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        rows.into_iter().map(|row| read(workspace, row, &sealer)).collect()
    }

    /// How many items of a workspace there are, counted up to `most`. Opens none of them.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn count_approvals(
        &self,
        workspace: WorkspaceId,
        filter: &ApprovalFilter,
        most: u32,
    ) -> Result<u64, StoreError> {
        let sql = sql!(self, memory => memory.approvals(workspace, filter, most).map(|rows| rows.len() as u64));
        let (text, args) = conditions(workspace, filter).count("approvals", most);
        sql.db.scan(text, args).await?.pop().map_or(Ok(0), |mut row| row.take())
    }
}

fn conditions(workspace: WorkspaceId, filter: &ApprovalFilter) -> Wanted {
    let mut wanted = Wanted::new(workspace);
    wanted.equal("status", filter.status.as_deref());
    wanted.also("status <>", filter.except.as_deref());
    wanted.equal("run", filter.run);
    wanted.equal("agent", filter.agent);
    wanted.also("(agent IN (SELECT id FROM agents WHERE workspace = $1 AND (owner =", filter.visible_to);
    if filter.visible_to.is_some() {
        // The one wildcard in an id is the `_` of its prefix, where every id has it.
        wanted.again(" OR approvers LIKE '% ' || CAST(");
        wanted.again(
            " AS TEXT) || ' %')) OR EXISTS (SELECT 1 FROM runs r WHERE r.workspace = $1 AND r.id = approvals.run AND (EXISTS (\
             SELECT 1 FROM chats c WHERE c.workspace = $1 AND c.id = r.chat AND c.shared = 1) OR r.initiator =",
        );
    }
    for _ in 0..3 {
        wanted.close(filter.visible_to.is_some());
    }
    let beyond = match filter.order {
        Order::OldestFirst => "id >",
        Order::NewestFirst => "id <",
    };
    wanted.also(beyond, filter.after);
    wanted
}

fn read(workspace: WorkspaceId, mut row: Row, sealer: &Sealer) -> Result<ApprovalRow, StoreError> {
    let id: ApprovalId = row.take()?;
    Ok(ApprovalRow {
        id,
        workspace,
        run: row.take()?,
        chat: row.take()?,
        agent: row.take()?,
        call: row.take()?,
        kind: row.take()?,
        status: row.take()?,
        tool: row.take()?,
        created_at: row.take()?,
        expires_at: row.take()?,
        decided_at: row.take()?,
        card: match row.take::<Option<Vec<u8>>>()? {
            Some(card) => sealer.open_text(card_place(&id.to_string()), card)?,
            None => ERASED.to_owned(),
        },
    })
}
