//! The run projection: reading it, listing it, and rebuilding it from what was folded out of the log.

use adjutant_core::content::Hash;
use adjutant_core::id::{RunId, UserId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::{Head, StreamId};

use crate::keys::Sealer;
use crate::prepare::{approval_args, call_args, result_args, run_args, summary_place};
use crate::row::{ApprovalRow, CallEnd, CallRow, ModelCallRow, RunFilter, RunRow, RunState};
use crate::seal::Scope;
use crate::statements::{APPROVALS, CALLS, REBUILD, RESULTS};
use crate::usage;
use crate::value::{Arg, Args, Row, args};
use crate::{Store, StoreError};

const COLUMNS: &str = "id, chat, agent, agent_version, notebook, base_run, base_seq, parent, initiator, \"trigger\", \
     created_at, superseded_by, head_seq, head_hash, owner, epoch, status, due, updated_at, ended_at, turns, calls, \
     tokens_input, tokens_output, tokens_cached, tokens_reasoning, cost, summary";

const CALLS_OF_RUN: &str = "SELECT c.call, c.tool, c.target, c.verdict, c.attempts, c.proposed_at, c.started_at, \
     r.seq, r.at, r.is_error FROM calls c \
     LEFT JOIN results r ON r.workspace = c.workspace AND r.run = c.run AND r.call = c.call \
     WHERE c.workspace = $1 AND c.run = $2 ORDER BY c.proposed_at, c.call";

const COUNT_BYTES: &str = "UPDATE runs SET bytes = (SELECT coalesce(sum(length(body)), 0) FROM events \
     WHERE events.workspace = $1 AND events.stream = $2) WHERE workspace = $1 AND id = $2";

/// What a sealed text reads as once it is erased.
pub(crate) const ERASED: &str = "{}";

impl Store {
    /// One run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such workspace.
    pub async fn run(&self, workspace: WorkspaceId, run: RunId) -> Result<Option<RunRow>, StoreError> {
        let sql = sql!(self, memory => memory.run(workspace, run));
        let text = format!("SELECT {COLUMNS} FROM runs WHERE workspace = $1 AND id = $2");
        let Some(row) = sql.db.read_one(text, args![workspace, run]).await? else { return Ok(None) };
        read(workspace, row, &sql.opener(Scope::Workspace(workspace)).await?).map(Some)
    }

    /// Which tenant a run belongs to. Only for the operator's own command line and the worker: everybody else knows their
    /// tenant.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn find_run(&self, run: RunId) -> Result<Option<WorkspaceId>, StoreError> {
        let sql = sql!(self, memory => memory.find_run(run));
        let row = sql.db.read_one("SELECT workspace FROM runs WHERE id = $1", args![run]).await?;
        row.map(|mut row| row.take()).transpose()
    }

    /// Runs of a workspace, newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn runs(
        &self,
        workspace: WorkspaceId,
        filter: &RunFilter,
        limit: u32,
    ) -> Result<Vec<RunRow>, StoreError> {
        let sql = sql!(self, memory => memory.runs(workspace, filter, limit));
        let mut wanted = Wanted::new(workspace);
        wanted.equal("agent", filter.agent);
        wanted.equal("chat", filter.chat);
        wanted.equal("status", filter.status.as_deref());
        wanted.equal("\"trigger\"", filter.trigger.as_deref());
        wanted.equal("parent", filter.parent);
        wanted.also("id <", filter.before);
        if !filter.superseded {
            wanted.plain("superseded_by IS NULL");
        }
        let (text, args) = match filter.visible_to {
            None => wanted.select(COLUMNS, "runs", "id DESC", limit),
            Some(person) => wanted.select_seen(person, limit),
        };
        let rows = sql.db.scan(text, args).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let sealer = sql.opener(Scope::Workspace(workspace)).await?;
        rows.into_iter().map(|row| read(workspace, row, &sealer)).collect()
    }

    /// The tool calls of a run, in the order they were proposed.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn calls(&self, workspace: WorkspaceId, run: RunId) -> Result<Vec<CallRow>, StoreError> {
        let sql = sql!(self, memory => memory.calls(workspace, run));
        let rows = sql.db.read(CALLS_OF_RUN, args![workspace, run]).await?;
        rows.into_iter().map(|row| read_call(workspace, run, row)).collect()
    }

    /// Replaces the projections of a run by what its log says. Who owns it stays as it is.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such workspace.
    pub async fn rebuild_run(
        &self,
        row: RunRow,
        approvals: Vec<ApprovalRow>,
        calls: Vec<CallRow>,
        model_calls: Vec<ModelCallRow>,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.rebuild_run(row, approvals, calls, model_calls));
        let sealer = sql.sealer(Scope::Workspace(row.workspace)).await?;
        let run = run_args(&row, 0, &sealer)?;
        let approvals = approvals.iter().map(|row| approval_args(row, &sealer)).collect::<Result<Vec<_>, _>>()?;
        let results: Vec<Args> = calls.iter().filter_map(result_args).collect();
        let calls: Vec<Args> = calls.iter().map(call_args).collect();
        let mut tx = sql.db.begin().await?;
        for table in ["approvals", "calls", "results"] {
            tx.run(format!("DELETE FROM {table} WHERE workspace = $1 AND run = $2"), args![row.workspace, row.id])
                .await?;
        }
        tx.run_set(&REBUILD, &[&run]).await?;
        tx.run(COUNT_BYTES, args![row.workspace, row.id]).await?;
        tx.run_set(&APPROVALS, &approvals.iter().collect::<Vec<_>>()).await?;
        tx.run_set(&CALLS, &calls.iter().collect::<Vec<_>>()).await?;
        tx.run_set(&RESULTS, &results.iter().collect::<Vec<_>>()).await?;
        usage::replace(&mut tx, row.workspace, StreamId::Run(row.id), &model_calls).await?;
        tx.commit().await
    }
}

/// The conditions of a list: fixed words, bound values.
pub(crate) struct Wanted {
    text: String,
    args: Args,
}

impl Wanted {
    pub(crate) fn new(workspace: WorkspaceId) -> Self {
        Self { text: "workspace = $1".to_owned(), args: args![workspace] }
    }

    pub(crate) fn equal<T: Into<Arg>>(&mut self, column: &'static str, value: Option<T>) {
        if let Some(value) = value {
            self.args.push(value.into());
            self.text += &format!(" AND {column} = ${}", self.args.len());
        }
    }

    /// A condition that ends in its operator.
    pub(crate) fn also<T: Into<Arg>>(&mut self, condition: &'static str, value: Option<T>) {
        if let Some(value) = value {
            self.args.push(value.into());
            self.text += &format!(" AND {condition} ${}", self.args.len());
        }
    }

    /// Goes on about the value of the last condition.
    pub(crate) fn again(&mut self, condition: &'static str) {
        self.text += &format!("{condition} ${}", self.args.len());
    }

    /// Closes what the last condition opened, if it was put down.
    pub(crate) fn close(&mut self, open: bool) {
        if open {
            self.text.push(')');
        }
    }

    pub(crate) fn plain(&mut self, condition: &'static str) {
        self.text += " AND ";
        self.text += condition;
    }

    pub(crate) fn count(mut self, table: &str, most: u32) -> (String, Args) {
        self.args.push(most.into());
        let (wanted, last) = (self.text, self.args.len());
        let text = format!("SELECT COUNT(*) FROM (SELECT 1 FROM {table} WHERE {wanted} LIMIT ${last}) AS counted");
        (text, self.args)
    }

    /// The conditions and their values.
    pub(crate) fn done(self) -> (String, Args) {
        (self.text, self.args)
    }

    /// The runs that a person may see: their own and those of shared chats, each found by its index. One condition over both would
    /// look at every run there ever was.
    fn select_seen(mut self, person: UserId, limit: u32) -> (String, Args) {
        self.args.extend(args![person, limit]);
        let (wanted, last) = (self.text, self.args.len());
        let some =
            |which: &str| format!("SELECT id FROM runs WHERE {wanted} AND {which} ORDER BY id DESC LIMIT ${last}");
        let own = some(&format!("initiator = ${}", last - 1));
        let shared = some("chat IN (SELECT id FROM chats WHERE workspace = $1 AND shared = 1)");
        let text = format!(
            "SELECT {COLUMNS} FROM runs WHERE workspace = $1 AND id IN (SELECT id FROM ({own}) AS own \
             UNION SELECT id FROM ({shared}) AS shared) ORDER BY id DESC LIMIT ${last}"
        );
        (text, self.args)
    }

    pub(crate) fn select(mut self, columns: &str, table: &str, order: &str, limit: u32) -> (String, Args) {
        self.args.push(limit.into());
        let (wanted, last) = (self.text, self.args.len());
        (format!("SELECT {columns} FROM {table} WHERE {wanted} ORDER BY {order} LIMIT ${last}"), self.args)
    }
}

fn read(workspace: WorkspaceId, mut row: Row, sealer: &Sealer) -> Result<RunRow, StoreError> {
    let id: RunId = row.take()?;
    Ok(RunRow {
        id,
        workspace,
        chat: row.take()?,
        agent: row.take()?,
        agent_version: row.take()?,
        notebook: row.take()?,
        base: {
            let (run, seq): (Option<RunId>, Option<u64>) = (row.take()?, row.take()?);
            run.zip(seq)
        },
        parent: row.take()?,
        initiator: row.take()?,
        trigger: row.take()?,
        created_at: row.take()?,
        superseded_by: row.take()?,
        head: {
            let (seq, hash): (u64, Hash) = (row.take()?, row.take()?);
            Head { seq, hash }
        },
        owner: row.take()?,
        epoch: row.take()?,
        state: RunState {
            status: row.take()?,
            due: row.take()?,
            updated_at: row.take()?,
            ended_at: row.take()?,
            turns: row.take()?,
            calls: row.take()?,
            usage: TokenUsage {
                input: row.take()?,
                output: row.take()?,
                cached: row.take()?,
                reasoning: row.take()?,
                cache_write: 0,
            },
            cost: MicroUsd(row.take()?),
            summary: match row.take::<Option<Vec<u8>>>()? {
                Some(summary) if !sealer.is_gone() => sealer.open_text(summary_place(&id.to_string()), summary)?,
                Some(_) | None => ERASED.to_owned(),
            },
        },
    })
}

fn read_call(workspace: WorkspaceId, run: RunId, mut row: Row) -> Result<CallRow, StoreError> {
    Ok(CallRow {
        run,
        workspace,
        call: row.take()?,
        tool: row.take()?,
        target: row.take()?,
        verdict: row.take()?,
        attempts: row.take()?,
        proposed_at: row.take()?,
        started_at: row.take()?,
        ended: match row.take::<Option<u64>>()? {
            Some(seq) => Some(CallEnd { seq, at: row.take()?, is_error: row.take()? }),
            None => None,
        },
    })
}
