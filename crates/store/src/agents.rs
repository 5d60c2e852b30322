//! Agents and all their versions. A version, once saved, never changes.

use std::collections::BTreeSet;

use adjutant_core::id::{AgentId, UserId, WorkspaceId};
use adjutant_core::time::Time;

use crate::db::Tx;
use crate::row::{AgentPeople, AgentRow};
use crate::seal::Scope;
use crate::tenants::one;
use crate::value::{Row, args};
use crate::{Store, StoreError};

const CURRENT: &str = "SELECT v.workspace, v.agent, v.slug, v.version, v.active, v.spec, v.saved_at, a.owner, a.created_by, a.shared_with, a.approvers FROM agents a \
     JOIN agent_versions v ON v.workspace = a.workspace AND v.agent = a.id AND v.version = a.version \
     WHERE a.workspace = $1";
const ANY: &str = "SELECT v.workspace, v.agent, v.slug, v.version, v.active, v.spec, v.saved_at, a.owner, a.created_by, a.shared_with, a.approvers \
     FROM agent_versions v LEFT JOIN agents a ON a.workspace = v.workspace AND a.id = v.agent \
     WHERE v.workspace = $1 AND v.agent = $2";

impl Store {
    /// The current version of an agent.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn agent(&self, workspace: WorkspaceId, id: AgentId) -> Result<Option<AgentRow>, StoreError> {
        let sql = sql!(self, memory => memory.agent(workspace, id));
        one(sql, format!("{CURRENT} AND a.id = $2"), args![workspace, id], read).await
    }

    /// The current version of the agent of this short name.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn agent_by_slug(&self, workspace: WorkspaceId, slug: &str) -> Result<Option<AgentRow>, StoreError> {
        let sql = sql!(self, memory => memory.agent_by_slug(workspace, slug));
        one(sql, format!("{CURRENT} AND a.slug = $2"), args![workspace, slug], read).await
    }

    /// The current versions of all agents of a workspace, oldest agent first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn agents(&self, workspace: WorkspaceId) -> Result<Vec<AgentRow>, StoreError> {
        let sql = sql!(self, memory => memory.agents(workspace));
        let rows = sql.db.read(format!("{CURRENT} ORDER BY a.id"), args![workspace]).await?;
        rows.into_iter().map(read).collect()
    }

    /// A version of an agent, current or not.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn agent_version(
        &self,
        workspace: WorkspaceId,
        id: AgentId,
        version: u64,
    ) -> Result<Option<AgentRow>, StoreError> {
        let sql = sql!(self, memory => memory.agent_version(workspace, id, version));
        one(sql, format!("{ANY} AND v.version = $3"), args![workspace, id, version], read).await
    }

    /// Every version of an agent, newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn agent_versions(&self, workspace: WorkspaceId, id: AgentId) -> Result<Vec<AgentRow>, StoreError> {
        let sql = sql!(self, memory => memory.agent_versions(workspace, id));
        let rows = sql.db.read(format!("{ANY} ORDER BY v.version DESC"), args![workspace, id]).await?;
        rows.into_iter().map(read).collect()
    }
}

/// Takes an agent away; Stale when the current version is another one.
pub(crate) async fn delete(tx: &mut Tx, scope: Scope, id: AgentId, version: u64) -> Result<(), StoreError> {
    let text = "DELETE FROM agents WHERE workspace = $1 AND id = $2 AND version = $3";
    match tx.run(text, args![scope, id, version]).await? {
        0 => Err(StoreError::Stale { fenced: false }),
        _ => Ok(()),
    }
}

/// Saves the version of an agent that follows the one that is expected.
pub(crate) async fn save(tx: &mut Tx, row: &AgentRow, expected_version: u64) -> Result<(), StoreError> {
    let version = expected_version + 1;
    let (shared, approvers) = (written(&row.people.shared_with), written(&row.people.approvers));
    let saved = if expected_version == 0 {
        let text = "INSERT INTO agents (workspace, id, slug, version, owner, created_by, shared_with, approvers) \
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (workspace, id) DO NOTHING";
        let (owner, made_by) = (row.owner, row.created_by);
        tx.run(text, args![row.workspace, row.id, &row.slug, version, owner, made_by, shared, approvers]).await?
    } else {
        let text = "UPDATE agents SET slug = $3, version = $4, owner = $5, shared_with = $6, approvers = $7 \
                    WHERE workspace = $1 AND id = $2 AND version = $8";
        let (owner, before) = (row.owner, expected_version);
        tx.run(text, args![row.workspace, row.id, &row.slug, version, owner, shared, approvers, before]).await?
    };
    if saved == 0 {
        return Err(StoreError::Stale { fenced: false });
    }
    let text = "INSERT INTO agent_versions (workspace, agent, version, slug, active, spec, saved_at) \
                VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let args = args![row.workspace, row.id, version, &row.slug, row.active, &row.spec, row.saved_at];
    tx.run(text, args).await.map(drop)
}

/// Switches the agents of a person off, in one workspace or in all, each as its next version.
pub(crate) async fn pause_all_of(
    tx: &mut Tx,
    workspace: Option<WorkspaceId>,
    owner: UserId,
    at: Time,
) -> Result<(), StoreError> {
    let text = "INSERT INTO agent_versions (workspace, agent, version, slug, active, spec, saved_at) \
                SELECT v.workspace, v.agent, v.version + 1, v.slug, 0, v.spec, CAST($3 AS BIGINT) FROM agents a \
                JOIN agent_versions v ON v.workspace = a.workspace AND v.agent = a.id AND v.version = a.version \
                WHERE (a.workspace = $1 OR CAST($1 AS TEXT) IS NULL) AND a.owner = $2 AND v.active = 1";
    tx.run(text, args![workspace, owner, at]).await?;
    let text = "UPDATE agents SET version = version + 1 \
                WHERE (workspace = $1 OR CAST($1 AS TEXT) IS NULL) AND owner = $2 AND EXISTS \
                (SELECT 1 FROM agent_versions v WHERE v.workspace = agents.workspace AND v.agent = agents.id \
                AND v.version = agents.version + 1)";
    tx.run(text, args![workspace, owner]).await.map(drop)
}

/// Takes somebody out of what others shared with them in a workspace, and of what they decide there: whoever comes back begins
/// anew.
pub(crate) async fn forget_person(tx: &mut Tx, workspace: WorkspaceId, person: UserId) -> Result<(), StoreError> {
    let text = "UPDATE agents SET shared_with = replace(shared_with, ' ' || CAST($2 AS TEXT) || ' ', ' '), \
                approvers = replace(approvers, ' ' || CAST($2 AS TEXT) || ' ', ' ') WHERE workspace = $1";
    tx.run(text, args![workspace, person]).await.map(drop)
}

/// People as a column holds them: each id between two blanks, so that one can be found and taken out.
fn written(people: &BTreeSet<UserId>) -> String {
    people.iter().fold(" ".to_owned(), |text, person| text + &format!("{person} "))
}

/// What a column says; nobody where the agent is gone.
fn people(column: Option<String>) -> Result<BTreeSet<UserId>, StoreError> {
    let column = column.unwrap_or_default();
    let ids = column
        .split_ascii_whitespace()
        .map(|id| id.parse().map_err(|_| StoreError::Corrupt(format!("no person: {id}"))));
    ids.collect()
}

fn read(mut row: Row) -> Result<AgentRow, StoreError> {
    Ok(AgentRow {
        workspace: row.take()?,
        id: row.take()?,
        slug: row.take()?,
        version: row.take()?,
        active: row.take()?,
        spec: row.take()?,
        saved_at: row.take()?,
        owner: row.take()?,
        created_by: row.take()?,
        people: AgentPeople { shared_with: people(row.take()?)?, approvers: people(row.take()?)? },
    })
}
