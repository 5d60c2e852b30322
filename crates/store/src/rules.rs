//! Standing rules: added, found and removed. What they say is not looked at here.

use std::collections::HashMap;

use adjutant_core::id::{AgentId, RuleId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;

use crate::commit::Verdicts;
use crate::db::Tx;
use crate::keys::Sealer;
use crate::prepare::{Guard, Prepared, rule_place};
use crate::row::{Policy, PolicyNames, RuleRow, Under};
use crate::seal::Scope;
use crate::statements::{COUNTING, COUNTING_BY, COUNTS};
use crate::value::{Args, Row, args};
use crate::{Sql, Store, StoreError};

/// What they take turns at; [`MOVE_TIP`](crate::statements::MOVE_TIP) names it, too.
const POLICY_TURN: i64 = 4_703_912;

/// Milliseconds for which the same rules are asked for.
const WHILE: i64 = 3_600_000;

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

    /// What a run of this person is judged by at a moment: the version of the agent, the rules about it, oldest first, and
    /// what the person is. Neither a version nor a rule ever changes, so whoever has read them once needs no more than this.
    /// None when there is no such agent.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn policy(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        person: Option<UserId>,
        now: Time,
    ) -> Result<Option<Policy>, StoreError> {
        let sql = sql!(self, memory => memory.policy(workspace, agent, now));
        let text = format!(
            "SELECT {COUNTS} FROM (SELECT CAST($1 AS TEXT) AS workspace, CAST($2 AS TEXT) AS agent, \
             CAST($3 AS TEXT) AS person, CAST($4 AS BIGINT) AS now) AS v {COUNTING_BY} ORDER BY rules.id"
        );
        // Asked for a whole while, so that the question stays the same for that long; what ends within it is left out here.
        let while_from = Time::from_millis(now.millis() - now.millis().rem_euclid(WHILE));
        let mut policy = None;
        for mut row in sql.db.read_kept(text, args![workspace, agent, person, while_from]).await? {
            let counts = |ends: Option<Time>| ends.is_none_or(|ends| ends > now);
            take_in(&mut policy, &mut row, counts)?;
        }
        Ok(policy)
    }
}

/// One row of what counts, as far as its rule does.
fn take_in(
    policy: &mut Option<Policy>,
    row: &mut Row,
    counts: impl FnOnce(Option<Time>) -> bool,
) -> Result<(), StoreError> {
    let (agent, workspace) = (row.take()?, row.take()?);
    let (role, halted): (Option<String>, bool) = (row.take()?, row.take()?);
    let rule: Option<RuleId> = row.take()?;
    let names = PolicyNames { agent, workspace, rules: Vec::new() };
    let rule = if counts(row.take()?) { rule } else { None };
    policy.get_or_insert(Policy { names, role, halted }).names.rules.extend(rule);
    Ok(())
}

/// Refuses appends that were concluded from what no longer counts: the policy is looked at in the very transaction that
/// announces a call.
pub(crate) async fn hold_to(tx: &mut Tx, batch: &[Box<Prepared>], verdicts: &mut Verdicts) -> Result<(), StoreError> {
    let bound: Vec<(usize, &Under)> = (batch.iter().zip(&*verdicts).enumerate())
        .filter(|(_, (_, verdict))| verdict.is_ok())
        .filter_map(|(at, (append, _))| Some((at, append.under.as_ref()?)))
        .collect();
    if bound.is_empty() {
        return Ok(());
    }
    let row = |(at, under): &(usize, &Under)| {
        let Prepared { scope, stream, .. } = &*batch[*at];
        args![*scope, *stream, under.agent, under.person, under.at]
    };
    let rows: Vec<Args> = bound.iter().map(row).collect();
    let mut counting: HashMap<StreamId, Option<Policy>> = HashMap::new();
    for mut row in tx.rows_set(&COUNTING, &rows.iter().collect::<Vec<_>>()).await? {
        let stream = row.take()?;
        take_in(counting.entry(stream).or_default(), &mut row, |_| true)?;
    }
    let mut outdated = false;
    for (at, under) in bound {
        let now = counting.get(&batch[at].stream).and_then(Option::as_ref);
        if now != Some(&under.policy) || under.policy.halted {
            verdicts[at] = Err(StoreError::Stale { fenced: false });
            outdated = true;
        }
    }
    if outdated {
        // Whoever judges again must not be told the same again, whatever made what is kept here wrong.
        tx.forget_kept();
    }
    Ok(())
}

/// On PostgreSQL a policy could change between the look of [`hold_to`] and the commit, and a notebook could go between the look
/// of a start and its commit. So whoever announces calls or starts runs and whoever changes what counts take turns: the former
/// side by side, a change alone. Taken before anything else is held, so that nobody who waits here keeps others waiting. A start
/// that moves a chat has its turn from that very statement. SQLite writes one transaction at a time anyway.
pub(crate) async fn take_turns(tx: &mut Tx, batch: &[Box<Prepared>]) -> Result<(), StoreError> {
    let changes = |append: &Prepared| {
        !append.rules.is_empty() || append.doing.as_ref().is_some_and(crate::row::Doing::changes_policy)
    };
    let turn = if batch.iter().any(|append| changes(append)) {
        "SELECT pg_advisory_xact_lock($1)"
    } else if batch.iter().any(|append| append.under.is_some() || is_free_start(append)) {
        "SELECT pg_advisory_xact_lock_shared($1)"
    } else {
        return Ok(());
    };
    tx.run(turn, args![POLICY_TURN]).await.map(drop)
}

/// Whether a run is started that moves no chat.
const fn is_free_start(append: &Prepared) -> bool {
    matches!(append.guard, Guard::Start { tip: None, .. })
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
