//! Standing rules: added, found and removed. What they say is not looked at here.

use adjutant_core::id::{AgentId, RuleId, WorkspaceId};
use adjutant_core::time::Time;

use crate::db::Tx;
use crate::keys::Sealer;
use crate::prepare::rule_place;
use crate::row::{PolicyNames, RuleRow};
use crate::seal::Scope;
use crate::value::{Args, Row, args};
use crate::{Sql, Store, StoreError};

const REMOVE: &str = "DELETE FROM rules WHERE workspace = $1 AND id = $2";
const COLUMNS: &str = "SELECT id, agent, run, expires_at, body FROM rules WHERE workspace = $1";

impl Store {
    /// One rule.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn rule(&self, workspace: WorkspaceId, id: RuleId) -> Result<Option<RuleRow>, StoreError> {
        let sql = sql!(self, memory => memory.rule(workspace, id));
        Ok(read(sql, workspace, format!("{COLUMNS} AND id = $2"), args![workspace, id]).await?.pop())
    }

    /// All rules of a workspace, oldest first, also those that have ended.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn rules(&self, workspace: WorkspaceId) -> Result<Vec<RuleRow>, StoreError> {
        let sql = sql!(self, memory => memory.rules(workspace));
        read(sql, workspace, format!("{COLUMNS} ORDER BY id"), args![workspace]).await
    }

    /// The rules that are about an agent (or all agents) at a moment, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn rules_for(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        now: Time,
    ) -> Result<Vec<RuleRow>, StoreError> {
        let sql = sql!(self, memory => memory.rules_for(workspace, agent, now));
        let text = format!(
            "{COLUMNS} AND (agent IS NULL OR agent = $2) AND (expires_at IS NULL OR expires_at > $3) ORDER BY id"
        );
        read(sql, workspace, text, args![workspace, agent, now]).await
    }

    /// What an agent is judged by at a moment: its version, and the rules about it, oldest first. Neither a version nor a
    /// rule ever changes, so whoever has read them once needs no more than this. None when there is no such agent.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn policy(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        now: Time,
    ) -> Result<Option<PolicyNames>, StoreError> {
        let sql = sql!(self, memory => memory.policy(workspace, agent, now));
        let text = "SELECT agents.version, workspaces.version, rules.id FROM agents \
                    JOIN workspaces ON workspaces.id = agents.workspace LEFT JOIN rules ON rules.workspace = agents.workspace \
                    AND (rules.agent IS NULL OR rules.agent = agents.id) \
                    AND (rules.expires_at IS NULL OR rules.expires_at > $3) \
                    WHERE agents.workspace = $1 AND agents.id = $2 ORDER BY rules.id";
        let mut policy = None;
        for mut row in sql.db.read(text, args![workspace, agent, now]).await? {
            let (agent, workspace): (u64, u64) = (row.take()?, row.take()?);
            let rule: Option<RuleId> = row.take()?;
            policy.get_or_insert_with(|| PolicyNames { agent, workspace, rules: Vec::new() }).rules.extend(rule);
        }
        Ok(policy)
    }
}

/// Removes a rule that must be there.
pub(crate) async fn remove(tx: &mut Tx, scope: Scope, id: RuleId) -> Result<(), StoreError> {
    match tx.run(REMOVE, args![scope, id]).await? {
        0 => Err(StoreError::NotFound),
        _ => Ok(()),
    }
}

async fn read(sql: &Sql, workspace: WorkspaceId, text: String, args: Args) -> Result<Vec<RuleRow>, StoreError> {
    let rows = sql.db.read(text, args).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
    rows.into_iter().map(|row| read_row(workspace, row, &sealer)).collect()
}

fn read_row(workspace: WorkspaceId, mut row: Row, sealer: &Sealer) -> Result<RuleRow, StoreError> {
    let id: RuleId = row.take()?;
    let (agent, run, expires_at) = (row.take()?, row.take()?, row.take()?);
    let body = sealer.open_text(rule_place(&id.to_string()), row.take()?)?;
    Ok(RuleRow { id, workspace, agent, run, expires_at, body })
}
