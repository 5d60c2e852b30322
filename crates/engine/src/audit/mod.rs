//! The audit: acts of people and of the instance, recorded in logs of the same form as a run's.

mod day;
mod entry;
mod rows;
mod search;
mod verify;
mod whole;

pub use entry::{AuditEntry, Redaction};
pub(crate) use rows::{audit_row, run_rows};
pub use search::{AuditPage, LogsOf, PageOf};
pub(crate) use search::{cursor_of, read_cursor};
pub use verify::{AuditProblem, AuditVerified};
pub use whole::{RunBodies, is_whole_export, verify_whole_export};

use adjutant_core::audit::{Act, AuditEvent, Deed};
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::run::event::{Actor, BadEvent};
use adjutant_core::time::Time;
use adjutant_store::StoreError;
use adjutant_store::row::{Append, Block, Doing, MarkRow, RuleRow, Writer};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::held::Record;
use crate::service::outside;

/// How often an entry that lost a race against another node is tried again.
const RACES: usize = 64;
/// Entries read at a time.
const PAGE: u32 = 512;

/// One of the audit logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditLog {
    /// Of a workspace: what was done to its agents, rules, runs and files.
    Workspace(WorkspaceId),
    /// Of the instance: starts, settings, people, the records of the days.
    Instance,
}

impl AuditLog {
    /// The log's name.
    #[must_use]
    pub const fn stream(self) -> StreamId {
        match self {
            Self::Workspace(workspace) => StreamId::Workspace(workspace),
            Self::Instance => StreamId::System,
        }
    }

    /// The tenant under which the store finds it; the instance's own log belongs to none, and any will do.
    pub(crate) fn tenant(self) -> WorkspaceId {
        match self {
            Self::Workspace(workspace) => workspace,
            Self::Instance => WorkspaceId::new(Time::from_millis(0), [0; 10]),
        }
    }
}

/// What goes with the record of an act, in its transaction.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Contents that it refers to.
    pub(crate) blocks: Vec<Block>,
    /// Rules that it adds.
    pub(crate) rules: Vec<RuleRow>,
    /// Contents that it marks as untrusted.
    pub(crate) marks: Vec<MarkRow>,
    /// What else is done.
    pub(crate) doing: Option<Doing>,
}

/// One entry of an audit log, with its place and time.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRecorded {
    /// Its place in the log.
    pub seq: u64,
    /// When it was recorded.
    pub at: Time,
    /// What was recorded; none once erased.
    pub event: Option<AuditEvent>,
}

impl Engine {
    /// Records an act. It is durable when this answers; whoever must not act unrecorded calls it first.
    ///
    /// # Errors
    /// When the store cannot be written: then the act is not recorded, or nobody knows whether it is.
    pub async fn audit(&self, log: AuditLog, act: Act) -> Result<Head, EngineError> {
        self.audit_done(log, act, Done::default()).await
    }

    /// Records an act and does it, in one transaction: neither is there without the other.
    ///
    /// # Errors
    /// As [`Self::audit`], and when it cannot be done: then nothing is recorded.
    pub(crate) async fn audit_done(&self, log: AuditLog, act: Act, done: Done) -> Result<Head, EngineError> {
        if let Err(error) = self.close_days().await {
            // It is tried again with the next act; what is to be recorded now does not wait for it.
            tracing::warn!(%error, "the days that are over could not be closed");
        }
        self.append_audit(log, &AuditEvent::Act(act), done).await
    }

    /// Records that a copy of everything is about to be written to a file.
    ///
    /// # Errors
    /// As [`Self::audit`].
    pub async fn record_backup(&self, by: UserId, file: &str) -> Result<(), EngineError> {
        let act = Act::new(Deed::BackupMade, Some(Actor::User(by)), format!("to {file}")).with("file", file);
        self.audit(AuditLog::Instance, act).await.map(drop)
    }

    /// Everything in an audit log.
    ///
    /// # Errors
    /// When it cannot be read or followed.
    pub async fn audit_log(&self, log: AuditLog) -> Result<Vec<AuditRecorded>, EngineError> {
        let mut recorded = Vec::new();
        let mut after = 0;
        loop {
            let entries = self.store().events(log.tenant(), log.stream(), after, PAGE).await?;
            let last = entries.len() < PAGE as usize;
            for entry in entries {
                after = entry.seq;
                let event = entry.body.as_deref().map(|body| decode(&entry.kind, body)).transpose()?;
                recorded.push(AuditRecorded { seq: entry.seq, at: entry.time, event });
            }
            if last {
                return Ok(recorded);
            }
        }
    }

    pub(crate) async fn append_audit(
        &self,
        log: AuditLog,
        event: &AuditEvent,
        done: Done,
    ) -> Result<Head, EngineError> {
        let stream = log.stream();
        let workspace = match log {
            AuditLog::Workspace(workspace) => Some(workspace),
            AuditLog::Instance => None,
        };
        let held = self.held(Record::beside_runs(workspace)).await?;
        let event = &*event.without(&held);
        // One at a time here, so that only other nodes can be faster.
        let _turn = self.audit_turn().await;
        for _ in 0..RACES {
            let head = self.store().head(log.tenant(), stream).await?;
            let now = self.env().now();
            let body = event.encode(self.env().random()).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
            let entry = Entry::next(stream, head, event.kind(), now, body);
            let append = Append {
                workspace: log.tenant(),
                stream,
                expected: head,
                writer: Writer::Command,
                blocks: done.blocks.clone(),
                run: None,
                approvals: Vec::new(),
                calls: Vec::new(),
                rules: done.rules.clone(),
                marks: done.marks.clone(),
                takings: Vec::new(),
                under: None,
                model_calls: outside::model_call(log, entry.seq, now, event).into_iter().collect(),
                doing: done.doing.clone(),
                spends: Vec::new(),
                audit: audit_row(stream, entry.seq, now, event).into_iter().collect(),
                entries: vec![entry],
            };
            match self.store().append(append).await {
                Err(StoreError::Stale { .. }) if self.is_still_due(log.tenant(), &done).await? => {}
                written => return Ok(written?),
            }
        }
        Err(EngineError::Store(StoreError::Stale { fenced: false }))
    }

    /// Whether what lost a race lost it for its place in the log, and not because somebody did the same.
    async fn is_still_due(&self, workspace: WorkspaceId, done: &Done) -> Result<bool, EngineError> {
        let (workspace, id, expected) = match &done.doing {
            Some(Doing::SaveAgent(row)) => (row.workspace, row.id, row.version.saturating_sub(1)),
            Some(Doing::DeleteAgent(id, version)) => (workspace, *id, *version),
            Some(Doing::SaveWorkspace(row)) => {
                let current = self.store().workspace(row.id).await?.map_or(0, |known| known.version);
                return Ok(current + 1 == row.version);
            }
            _ => return Ok(true),
        };
        let current = self.store().agent(workspace, id).await?.map_or(0, |row| row.version);
        Ok(current == expected)
    }

    /// Makes the rows of an audit log again from the log.
    ///
    /// # Errors
    /// When it cannot be read or followed.
    pub async fn rebuild_audit(&self, log: AuditLog) -> Result<(), EngineError> {
        let recorded = self.audit_log(log).await?;
        let row = |item: &AuditRecorded| audit_row(log.stream(), item.seq, item.at, item.event.as_ref()?);
        let rows = recorded.iter().filter_map(row).collect();
        self.store().rebuild_audit(log.tenant(), log.stream(), rows).await?;
        let call = |item: &AuditRecorded| outside::model_call(log, item.seq, item.at, item.event.as_ref()?);
        let calls = recorded.iter().filter_map(call).collect();
        Ok(self.store().rebuild_model_calls(log.tenant(), log.stream(), calls).await?)
    }
}

pub(crate) fn decode(kind: &str, body: &[u8]) -> Result<AuditEvent, EngineError> {
    AuditEvent::decode(kind, body)
        .map_err(|bad: BadEvent| EngineError::Invalid(format!("an audit log cannot be followed: {bad}")))
}
