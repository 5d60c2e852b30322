//! An append on its way to the writer: checked, sealed and turned into rows, in the caller's own task, so that the one
//! writer has nothing left to do but write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adjutant_core::budget::Spend;
use adjutant_core::content::Hash;
use adjutant_core::guard::rate::Taking;
use adjutant_core::id::{ChatId, RunId};
use adjutant_core::run::chain::{Head, StreamId};

use crate::StoreError;
use crate::keys::Sealer;
use crate::row::{Append, ApprovalRow, AuditRow, CallRow, Doing, RuleRow, RunChange, RunRow, RunState, Under, Writer};
use crate::seal::{Place, Scope};
use crate::usage;
use crate::value::{Args, args};

/// An append as rows.
pub(crate) struct Prepared {
    pub(crate) scope: Scope,
    pub(crate) stream: StreamId,
    pub(crate) writer: Writer,
    /// The head of the stream before.
    pub(crate) expected: Head,
    /// The head of the stream afterwards.
    pub(crate) head: Head,
    pub(crate) guard: Guard,
    pub(crate) events: Vec<Args>,
    pub(crate) refs: Vec<Args>,
    pub(crate) blocks: Vec<Args>,
    pub(crate) approvals: Vec<Args>,
    pub(crate) calls: Vec<Args>,
    pub(crate) results: Vec<Args>,
    pub(crate) rules: Vec<Args>,
    pub(crate) audit: Vec<Args>,
    pub(crate) marks: Vec<Args>,
    pub(crate) takings: Vec<Taking>,
    pub(crate) model_calls: Vec<Args>,
    pub(crate) doing: Option<Doing>,
    pub(crate) spends: Vec<Spend>,
    pub(crate) under: Option<Under>,
    /// Whether somebody may now have to drive the run who did not before.
    pub(crate) due: bool,
    /// About how much it writes.
    pub(crate) bytes: usize,
}

/// The row that decides whether an append happens.
pub(crate) enum Guard {
    Start {
        run: RunId,
        row: Args,
        chat: ChatId,
        tip: Option<Args>,
        supersede: Option<Args>,
    },
    Update {
        run: RunId,
        row: Args,
        release: bool,
    },
    /// The first events of an audit log.
    NewStream(Args),
    /// More events of an audit log.
    OldStream(Args),
}

/// What every append must be, whatever the back end; anything else is a bug of the caller.
pub(crate) fn check(append: &Append) -> Result<Head, StoreError> {
    let mut head = append.expected;
    for entry in &append.entries {
        if entry.stream != append.stream || entry.seq != head.seq + 1 {
            return Err(StoreError::other(format!("event {} does not follow {}", entry.seq, head.seq)));
        }
        debug_assert!(entry.follows(head).is_ok(), "an event that does not follow from the one before it");
        head = entry.head();
    }
    if append.blocks.iter().any(|block| Hash::of(&block.bytes) != block.hash) {
        return Err(StoreError::other("a block under a hash that is not its own"));
    }
    let fits = match (append.stream, &append.run) {
        (StreamId::Run(run), Some(RunChange::Start { row, .. })) => {
            row.id == run && row.workspace == append.workspace && append.expected == Head::START
        }
        (StreamId::Run(_), Some(RunChange::Update { .. })) => append.expected.seq > 0,
        (StreamId::Workspace(_) | StreamId::System, None) => !append.entries.is_empty(),
        (StreamId::Run(_), None) | (StreamId::Workspace(_) | StreamId::System, Some(_)) => false,
    };
    let goes_on = matches!(append.run, Some(RunChange::Update { .. }));
    let own = (goes_on || (append.takings.is_empty() && append.spends.is_empty() && append.under.is_none()))
        && append.doing.iter().all(|doing| doing.is_of(append.workspace) && doing.goes_with(append.stream))
        && append.approvals.iter().all(|row| row.workspace == append.workspace)
        && append.rules.iter().all(|row| row.workspace == append.workspace)
        && append.calls.iter().all(|row| row.workspace == append.workspace && StreamId::Run(row.run) == append.stream)
        && append.audit.iter().all(|row| row.stream == append.stream);
    if fits && own { Ok(head) } else { Err(StoreError::other("an append whose rows do not belong to its stream")) }
}

/// Whether an append may give somebody new work.
pub(crate) fn makes_due(append: &Append) -> bool {
    match &append.run {
        Some(RunChange::Start { row, .. }) => row.state.due.is_some(),
        Some(RunChange::Update { state, release }) => {
            state.due.is_some() && (*release || append.writer == Writer::Command)
        }
        None => false,
    }
}

pub(crate) fn prepare(append: Append, scope: Scope, sealer: &Sealer) -> Result<Prepared, StoreError> {
    let head = check(&append)?;
    let due = makes_due(&append);
    let (stream, expected) = (append.stream, append.expected);
    let (place, log): (Arc<str>, Arc<str>) = (scope.to_string().into(), stream.to_string().into());
    let mut bytes = 0;
    let mut events = Vec::with_capacity(append.entries.len());
    for entry in append.entries {
        let seal = |body: Vec<u8>| sealer.seal(Place::Event { stream, seq: entry.seq }, &body);
        let body = entry.body.map(seal).transpose()?;
        bytes += body.as_ref().map_or(0, Vec::len);
        events.push(args![&place, &log, entry.seq, entry.kind, entry.time, entry.body_hash, body, entry.hash]);
    }
    let added = bytes as u64;
    let mut refs = Vec::with_capacity(append.blocks.len());
    let mut blocks = Vec::with_capacity(append.blocks.len());
    for block in &append.blocks {
        let sealed = sealer.seal(Place::Block(block.hash), &block.bytes)?;
        bytes += sealed.len();
        refs.push(args![&place, &log, block.hash]);
        blocks.push(args![&place, block.hash, sealed]);
    }
    // The last row of a thing is the one that holds; PostgreSQL refuses two for the same key in one statement.
    let approvals: BTreeMap<_, _> = append.approvals.iter().map(|row| (row.id, row)).collect();
    let approvals = approvals.values().map(|row| approval_args(row, sealer)).collect::<Result<_, _>>()?;
    let results = append.calls.iter().filter(|row| row.ended.is_some_and(|end| end.seq > expected.seq));
    let results = results.filter_map(result_args).collect();
    let calls: BTreeMap<_, _> = append.calls.iter().map(|row| (&row.call, row)).collect();
    let calls = calls.values().map(|row| call_args(row)).collect();
    let rules = append.rules.iter().map(|row| rule_args(row, sealer)).collect::<Result<_, _>>()?;
    let audit = append.audit.iter().map(|row| audit_args(scope, row)).collect();
    let marks: BTreeSet<_> = append.marks.iter().collect();
    let marks = marks.iter().map(|row| args![&place, row.notebook, &row.path, row.hash]).collect();
    let keys = Keys { place, log, stream, expected, head, added };
    let guard = guard(&keys, append.writer, append.run, sealer)?;
    let writer = append.writer;
    Ok(Prepared {
        scope,
        stream,
        writer,
        expected,
        head,
        guard,
        events,
        refs,
        blocks,
        approvals,
        calls,
        results,
        rules,
        audit,
        marks,
        takings: append.takings,
        model_calls: append.model_calls.iter().map(usage::row_args).collect(),
        doing: append.doing,
        spends: append.spends,
        under: append.under,
        due,
        bytes,
    })
}

/// What every row of an append is about.
struct Keys {
    place: Arc<str>,
    log: Arc<str>,
    stream: StreamId,
    expected: Head,
    head: Head,
    /// Bytes of the bodies, as they are stored.
    added: u64,
}

fn guard(keys: &Keys, writer: Writer, change: Option<RunChange>, sealer: &Sealer) -> Result<Guard, StoreError> {
    let Keys { place, log, stream, expected, head, added } = keys;
    let (StreamId::Run(run), Some(change)) = (*stream, change) else {
        let row = args![place, log, head.seq, head.hash, expected.seq, expected.hash];
        return Ok(if expected.seq == 0 { Guard::NewStream(row) } else { Guard::OldStream(row) });
    };
    Ok(match change {
        RunChange::Start { row, tip, places } => {
            let advance = tip.advance.then(|| args![place, row.chat, log, tip.expected]);
            let supersede = tip.supersedes.map(|first| args![place, row.chat, first, log]);
            let fresh = RunRow { head: *head, owner: None, epoch: 0, superseded_by: None, ..*row };
            let mut row = run_args(&fresh, *added, sealer)?;
            row.extend(args![places]);
            Guard::Start { run, chat: fresh.chat, row, tip: advance, supersede }
        }
        RunChange::Update { state, release } => {
            let (owner, epoch) = match writer {
                Writer::Owner { node, epoch } => (Some(node), epoch),
                Writer::Command => (None, 0),
            };
            let mut row = args![place, log, expected.seq, expected.hash, owner, epoch, head.seq, head.hash, *added];
            row.extend(state_args(log, &state, sealer)?);
            Guard::Update { run, row, release }
        }
    })
}

/// All columns of a run, in the order of the table.
pub(crate) fn run_args(row: &RunRow, bytes: u64, sealer: &Sealer) -> Result<Args, StoreError> {
    let mut columns = args![
        row.workspace,
        row.id,
        row.chat,
        row.agent,
        row.agent_version,
        row.notebook,
        row.base.map(|(run, _)| run),
        row.base.map(|(_, seq)| seq),
        row.parent,
        row.initiator,
        &row.trigger,
        row.created_at,
        row.superseded_by,
        row.head.seq,
        row.head.hash,
        row.owner,
        row.epoch,
        bytes,
    ];
    columns.extend(state_args(&row.id.to_string(), &row.state, sealer)?);
    Ok(columns)
}

fn state_args(run: &str, state: &RunState, sealer: &Sealer) -> Result<Args, StoreError> {
    let summary = sealer.seal(summary_place(run), state.summary.as_bytes())?;
    Ok(args![
        &state.status,
        state.due,
        state.updated_at,
        state.ended_at,
        state.turns,
        state.calls,
        state.usage.input,
        state.usage.output,
        state.usage.cached,
        state.usage.reasoning,
        state.cost.0,
        summary,
    ])
}

pub(crate) const fn summary_place(id: &str) -> Place<'_> {
    Place::Column { table: "runs", column: "summary", id }
}

pub(crate) const fn card_place(id: &str) -> Place<'_> {
    Place::Column { table: "approvals", column: "card", id }
}

pub(crate) const fn rule_place(id: &str) -> Place<'_> {
    Place::Column { table: "rules", column: "body", id }
}

pub(crate) fn rule_args(row: &RuleRow, sealer: &Sealer) -> Result<Args, StoreError> {
    let id = row.id.to_string();
    let body = sealer.seal(rule_place(&id), row.body.as_bytes())?;
    Ok(args![row.workspace, id, row.agent, row.run, row.expires_at, body])
}

pub(crate) fn approval_args(row: &ApprovalRow, sealer: &Sealer) -> Result<Args, StoreError> {
    let id = row.id.to_string();
    let card = sealer.seal(card_place(&id), row.card.as_bytes())?;
    Ok(args![
        row.workspace,
        id,
        row.run,
        row.chat,
        row.agent,
        row.call.clone(),
        &row.kind,
        &row.status,
        &row.tool,
        row.created_at,
        row.expires_at,
        row.decided_at,
        card,
    ])
}

pub(crate) fn call_args(row: &CallRow) -> Args {
    args![
        row.workspace,
        row.run,
        &row.call,
        &row.tool,
        &row.target,
        &row.verdict,
        row.attempts,
        row.proposed_at,
        row.started_at,
    ]
}

pub(crate) fn result_args(row: &CallRow) -> Option<Args> {
    let end = row.ended?;
    Some(args![row.workspace, row.run, &row.call, end.seq, end.at, end.is_error])
}

pub(crate) fn audit_args(scope: Scope, row: &AuditRow) -> Args {
    args![
        scope,
        row.time,
        row.stream,
        row.seq,
        &row.kind,
        &row.actor,
        row.agent,
        row.run,
        &row.tool,
        &row.target,
        &row.verdict,
        row.is_error,
    ]
}
