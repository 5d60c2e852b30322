//! Model calls: what was read and written, by whom, and what it cost. Sums are made by the database, groups by others.

use adjutant_core::id::WorkspaceId;
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;

use crate::db::Tx;
use crate::row::{ANSWERED, ModelCallRow, UsageFilter, UsageRow};
use crate::runs::Wanted;
use crate::statements::MODEL_CALLS;
use crate::value::{Args, Row, args};
use crate::{Store, StoreError};

/// A quarter of an hour: every time zone's day begins on one.
const QUARTER_MS: i64 = 15 * 60 * 1000;
/// Models that are told to have answered in the name of one: more than any name stands for.
pub(crate) const SERVED: usize = 100;
/// Goes from one name to the next by the index, past all the calls between: a name that was asked a million times costs as much
/// as one that was asked once.
const SERVED_AS: &str = "WITH RECURSIVE names (served) AS (\
     SELECT min(served) FROM model_calls WHERE workspace = $1 AND model = $2 AND served IS NOT NULL \
     UNION ALL SELECT (SELECT min(later.served) FROM model_calls AS later WHERE later.workspace = $1 AND later.model = $2 \
     AND later.served > names.served) FROM names WHERE names.served IS NOT NULL) \
     SELECT served FROM names WHERE served IS NOT NULL";
const COLUMNS: &str = "log, turn, attempt, agent, person, key, model, served, at, outcome, tokens_input, tokens_output, \
                       tokens_cached, tokens_reasoning, tokens_cache_write, estimated, cost, price_version, ms";

impl Store {
    /// Sums of model calls that are alike, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn usage(&self, workspace: WorkspaceId, filter: &UsageFilter) -> Result<Vec<UsageRow>, StoreError> {
        let sql = sql!(self, memory => memory.usage(workspace, filter));
        let (wanted, args) = conditions(workspace, filter).done();
        let sum = |column: &str| format!("CAST(COALESCE(SUM({column}), 0) AS BIGINT)");
        let answered = ANSWERED.map(|word| format!("'{word}'")).join(", ");
        let failed = format!("CASE WHEN outcome IN ({answered}) THEN 0 ELSE 1 END");
        let sums = [
            failed.as_str(),
            "CASE WHEN cost IS NULL THEN 1 ELSE 0 END",
            "estimated",
            "tokens_input",
            "tokens_output",
            "tokens_cached",
            "tokens_reasoning",
            "tokens_cache_write",
            "cost",
        ];
        let sums = sums.map(sum).join(", ");
        let text = format!(
            "SELECT agent, person, key, model, at / {QUARTER_MS} AS quarter, COUNT(*), {sums} FROM model_calls \
             WHERE {wanted} GROUP BY agent, person, key, model, at / {QUARTER_MS} ORDER BY quarter, agent, person, model, key"
        );
        sql.db.read(text, args).await?.into_iter().map(read_sum).collect()
    }

    /// Model calls, oldest first, `skip` of them left out.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn model_calls(
        &self,
        workspace: WorkspaceId,
        filter: &UsageFilter,
        skip: u64,
        limit: u32,
    ) -> Result<Vec<ModelCallRow>, StoreError> {
        let sql = sql!(self, memory => memory.model_calls(workspace, filter, skip, limit));
        let (wanted, args) = conditions(workspace, filter).done();
        let text = format!(
            "SELECT {COLUMNS} FROM model_calls WHERE {wanted} ORDER BY at, log, turn, attempt LIMIT {limit} OFFSET {skip}"
        );
        sql.db.read(text, args).await?.into_iter().map(|row| read(workspace, row)).collect()
    }

    /// The models that answered when this one was asked, each once.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn served_as(&self, workspace: WorkspaceId, model: &str) -> Result<Vec<String>, StoreError> {
        let sql = sql!(self, memory => memory.served_as(workspace, model));
        let rows = sql.db.read(format!("{SERVED_AS} LIMIT {SERVED}"), args![workspace, model]).await?;
        rows.into_iter().map(|mut row| row.take()).collect()
    }

    /// Replaces the model calls of a log by what it says.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn rebuild_model_calls(
        &self,
        workspace: WorkspaceId,
        log: StreamId,
        rows: Vec<ModelCallRow>,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.rebuild_model_calls(log, rows));
        let mut tx = sql.db.begin().await?;
        replace(&mut tx, workspace, log, &rows).await?;
        tx.commit().await
    }
}

/// Writes what a log says about model calls in place of what is there.
pub(crate) async fn replace(
    tx: &mut Tx,
    workspace: WorkspaceId,
    log: StreamId,
    rows: &[ModelCallRow],
) -> Result<(), StoreError> {
    tx.run("DELETE FROM model_calls WHERE workspace = $1 AND log = $2", args![workspace, log]).await?;
    let rows: Vec<Args> = rows.iter().map(row_args).collect();
    tx.run_set(&MODEL_CALLS, &rows.iter().collect::<Vec<_>>()).await.map(drop)
}

fn conditions(workspace: WorkspaceId, filter: &UsageFilter) -> Wanted {
    let mut wanted = Wanted::new(workspace);
    wanted.also("at >=", filter.from);
    wanted.also("at <", filter.to);
    wanted.equal("log", filter.run);
    wanted.equal("agent", filter.agent);
    wanted.equal("person", filter.person);
    wanted.equal("key", filter.key);
    wanted.equal("model", filter.model.as_deref());
    wanted
}

fn tokens(row: &mut Row) -> Result<TokenUsage, StoreError> {
    Ok(TokenUsage {
        input: row.take()?,
        output: row.take()?,
        cached: row.take()?,
        reasoning: row.take()?,
        cache_write: row.take()?,
    })
}

fn read_sum(mut row: Row) -> Result<UsageRow, StoreError> {
    let (agent, person, key, model) = (row.take()?, row.take()?, row.take()?, row.take()?);
    let at = Time::from_millis(row.take::<i64>()?.saturating_mul(QUARTER_MS));
    let (calls, failed, unpriced, estimated) = (row.take()?, row.take()?, row.take()?, row.take()?);
    let (usage, cost) = (tokens(&mut row)?, MicroUsd(row.take()?));
    Ok(UsageRow { agent, person, key, model, at, calls, failed, unpriced, estimated, usage, cost })
}

fn read(workspace: WorkspaceId, mut row: Row) -> Result<ModelCallRow, StoreError> {
    Ok(ModelCallRow {
        workspace,
        log: row.take()?,
        turn: row.take()?,
        attempt: row.take()?,
        agent: row.take()?,
        person: row.take()?,
        key: row.take()?,
        model: row.take()?,
        served: row.take()?,
        at: row.take()?,
        outcome: row.take()?,
        usage: tokens(&mut row)?,
        estimated: row.take()?,
        cost: row.take::<Option<u64>>()?.map(MicroUsd),
        price_version: row.take()?,
        ms: row.take()?,
    })
}

pub(crate) fn row_args(row: &ModelCallRow) -> Args {
    args![
        row.workspace,
        row.log,
        row.turn,
        row.attempt,
        row.agent,
        row.person,
        row.key,
        &row.model,
        &row.served,
        row.at,
        &row.outcome,
        row.usage.input,
        row.usage.output,
        row.usage.cached,
        row.usage.reasoning,
        row.usage.cache_write,
        row.estimated,
        row.cost.map(|cost| cost.0),
        &row.price_version,
        row.ms,
    ]
}
