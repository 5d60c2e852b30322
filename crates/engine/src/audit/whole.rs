//! All logs at once: of the database, or as one file that can be verified anywhere, without the database.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};

use adjutant_core::audit::StreamHead;
use adjutant_core::content::Hash;
use adjutant_core::id::WorkspaceId;
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::time::Time;
use adjutant_store::StoreError;
use adjutant_store::row::RunFilter;
use serde::{Deserialize, Serialize};

use super::verify::{AuditVerified, Body, Verifier};
use super::{AuditLog, PAGE};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::export::{ExportProblem, referred};

/// The version of the file's form.
const FORMAT: &str = "adjutant-audit-1";
/// Runs looked up at a time.
const RUNS: u32 = 256;

/// One line of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// The first line.
    Audit { format: String, key: String },
    /// The events that follow are of this log.
    Stream { stream: StreamId, head: Head, bodies: bool },
    /// One event.
    Event { seq: u64, kind: String, time: Time, body_hash: Hash, hash: Hash, body: Option<String> },
    /// The last line: how many logs there were.
    End { streams: u64 },
}

/// Which bodies a file holds beside those of the audit logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunBodies {
    /// Those of runs, too: everything that was said.
    Kept,
    /// Only their hashes.
    LeftOut,
}

impl Engine {
    /// Checks every log of the database, every signed day, and every content that runs refer to.
    ///
    /// # Errors
    /// When the database cannot be read. What is wrong with a log is in the answer.
    pub async fn verify_all(&self) -> Result<AuditVerified, EngineError> {
        self.walk_all(&mut |_| {}).await
    }

    /// As [`Engine::verify_all`]; `tell` hears how many events were walked, and of about how many.
    ///
    /// # Errors
    /// As [`Engine::verify_all`].
    pub async fn verify_telling(&self, tell: &mut (dyn FnMut(u64, u64) + Send)) -> Result<AuditVerified, EngineError> {
        let mut events = 0;
        for workspace in self.store().workspaces().await? {
            events += self.store().sizes(workspace.id).await?.events;
        }
        self.walk_all(&mut |seen| tell(seen.min(events), events)).await
    }

    async fn walk_all(&self, tell: &mut (dyn FnMut(u64) + Send)) -> Result<AuditVerified, EngineError> {
        let mut verifier = Verifier::default();
        if let Some(last) = self.last_day().await? {
            verifier.expect_key(self.audit_key().await?);
            verifier.expect(StreamHead { stream: StreamId::System, head: last.head }, &last.day);
        }
        for (workspace, stream) in self.audit_streams().await? {
            self.check(&mut verifier, workspace, stream).await?;
        }
        for workspace in self.store().workspaces().await? {
            let mut filter = RunFilter { superseded: true, ..RunFilter::default() };
            loop {
                let rows = self.store().runs(workspace.id, &filter, RUNS).await?;
                for row in &rows {
                    filter.before = Some(row.id);
                    self.check(&mut verifier, workspace.id, StreamId::Run(row.id)).await?;
                    tell(verifier.events());
                }
                if rows.len() < RUNS as usize {
                    break;
                }
            }
        }
        for (workspace, stream) in self.store().lost_logs().await? {
            self.check(&mut verifier, workspace, stream).await?;
        }
        Ok(verifier.finish())
    }

    /// The instance's log and those of all workspaces.
    async fn audit_streams(&self) -> Result<Vec<(WorkspaceId, StreamId)>, EngineError> {
        let mut streams = vec![(AuditLog::Instance.tenant(), StreamId::System)];
        let workspaces = self.store().workspaces().await?;
        streams.extend(workspaces.iter().map(|row| (row.id, StreamId::Workspace(row.id))));
        Ok(streams)
    }

    async fn check(
        &self,
        verifier: &mut Verifier,
        workspace: WorkspaceId,
        stream: StreamId,
    ) -> Result<(), EngineError> {
        verifier.begin(stream);
        // Read first: what is appended meanwhile lies behind it.
        let head = self.store().head(workspace, stream).await?;
        let (mut after, mut erased, mut wanted) = (0, false, BTreeSet::new());
        let goes_on = loop {
            let entries = match self.store().events(workspace, stream, after, PAGE).await {
                Err(StoreError::Corrupt(why)) => {
                    verifier.unreadable(why);
                    return Ok(());
                }
                Err(StoreError::NotFound) => {
                    verifier.unreadable("its workspace is gone".to_owned());
                    return Ok(());
                }
                entries => entries?,
            };
            let before = after;
            for entry in entries.iter().take_while(|entry| entry.seq <= head.seq) {
                after = entry.seq.max(after);
                erased |= entry.body.is_none();
                wanted.extend(referred(entry));
                verifier.entry(entry, Body::Expected);
            }
            let goes_on = entries.last().is_some_and(|entry| entry.seq > head.seq);
            if goes_on || after == before || entries.len() < PAGE as usize {
                break goes_on;
            }
        };
        verifier.end(head);
        // What is appended meanwhile moves the row, too.
        if goes_on && self.store().head(workspace, stream).await? == head {
            verifier.problem(
                stream,
                match head.seq {
                    0 => "no row knows it; `adjutant doctor --rebuild` makes it again".to_owned(),
                    last => format!("it goes on after event {last}, where its row says that it ends"),
                },
            );
        }
        self.check_contents(verifier, workspace, stream, wanted, erased).await
    }

    /// What a log refers to must be there, and be what it was.
    async fn check_contents(
        &self,
        verifier: &mut Verifier,
        workspace: WorkspaceId,
        stream: StreamId,
        wanted: BTreeSet<Hash>,
        erased: bool,
    ) -> Result<(), EngineError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = wanted.into_iter().collect();
        let found = match self.store().blocks(workspace, &wanted).await {
            Err(StoreError::Corrupt(why)) => {
                verifier.problem(stream, why);
                return Ok(());
            }
            found => found?,
        };
        for hash in wanted {
            match found.get(&hash) {
                Some(bytes) if Hash::of(bytes) != hash => {
                    verifier.problem(stream, format!("the content {hash} was changed"));
                }
                None if !erased => verifier.problem(stream, format!("the content {hash} is missing")),
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Writes every log of the instance, line by line, so that it can be verified anywhere.
    ///
    /// # Errors
    /// When the database cannot be read, or the lines cannot be written.
    pub async fn export_whole(&self, bodies: RunBodies, out: &mut (dyn Write + Send)) -> Result<(), EngineError> {
        let first = Line::Audit { format: FORMAT.to_owned(), key: self.audit_key().await? };
        write(out, &first)?;
        let mut streams = 0;
        for (workspace, stream) in self.audit_streams().await? {
            self.export_stream(workspace, stream, RunBodies::Kept, out).await?;
            streams += 1;
        }
        for workspace in self.store().workspaces().await? {
            let mut filter = RunFilter { superseded: true, ..RunFilter::default() };
            loop {
                let rows = self.store().runs(workspace.id, &filter, RUNS).await?;
                for row in &rows {
                    filter.before = Some(row.id);
                    self.export_stream(workspace.id, StreamId::Run(row.id), bodies, out).await?;
                    streams += 1;
                }
                if rows.len() < RUNS as usize {
                    break;
                }
            }
        }
        write(out, &Line::End { streams })
    }

    async fn export_stream(
        &self,
        workspace: WorkspaceId,
        stream: StreamId,
        bodies: RunBodies,
        out: &mut (dyn Write + Send),
    ) -> Result<(), EngineError> {
        let head = self.store().head(workspace, stream).await?;
        let kept = bodies == RunBodies::Kept;
        write(out, &Line::Stream { stream, head, bodies: kept })?;
        let mut after = 0;
        while after < head.seq {
            let entries = self.store().events(workspace, stream, after, PAGE).await?;
            let before = after;
            for entry in entries.into_iter().filter(|entry| entry.seq <= head.seq) {
                after = entry.seq;
                let body = entry.body.filter(|_| kept).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                let Entry { seq, kind, time, body_hash, hash, .. } = entry;
                write(out, &Line::Event { seq, kind, time, body_hash, hash, body })?;
            }
            if after == before {
                break;
            }
        }
        Ok(())
    }
}

fn write(out: &mut (dyn Write + Send), line: &Line) -> Result<(), EngineError> {
    let text = serde_json::to_string(line).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
    writeln!(out, "{text}").map_err(|bad| EngineError::Invalid(format!("the file cannot be written: {bad}")))
}

/// Whether a first line is that of a file that holds every log.
#[must_use]
pub fn is_whole_export(first: &str) -> bool {
    matches!(serde_json::from_str(first), Ok(Line::Audit { .. }))
}

/// Verifies a file that holds every log, without any database.
///
/// # Errors
/// Says which line is not part of such a file. What is wrong with a log is in the answer.
pub fn verify_whole_export(reader: impl BufRead, key: Option<String>) -> Result<AuditVerified, ExportProblem> {
    let mut verifier = Verifier::default();
    let mut open: Option<(StreamId, Head, Body)> = None;
    let (mut begun, mut streams, mut over) = (false, 0, false);
    for (index, text) in reader.lines().enumerate() {
        let malformed = |why: String| ExportProblem::Malformed { line: index + 1, why };
        let line = serde_json::from_str(&text?).map_err(|bad| malformed(bad.to_string()))?;
        if over || begun == matches!(line, Line::Audit { .. }) {
            return Err(malformed("it does not belong here".to_owned()));
        }
        match line {
            Line::Audit { format, key: named } if format == FORMAT => {
                verifier.expect_key(key.clone().unwrap_or(named));
                begun = true;
            }
            Line::Audit { format, .. } => {
                return Err(malformed(format!("it has the form `{format}`, which this version does not know")));
            }
            Line::Stream { stream, head, bodies } => {
                if let Some((_, head, _)) = open.take() {
                    verifier.end(head);
                }
                verifier.begin(stream);
                streams += 1;
                open = Some((stream, head, if bodies { Body::Expected } else { Body::LeftOut }));
            }
            Line::Event { seq, kind, time, body_hash, hash, body } => {
                let Some((stream, _, kept)) = open else { return Err(malformed("an event of no log".to_owned())) };
                let entry = Entry { stream, seq, kind, time, body_hash, body: body.map(String::into_bytes), hash };
                verifier.entry(&entry, kept);
            }
            Line::End { streams: expected } => {
                if let Some((_, head, _)) = open.take() {
                    verifier.end(head);
                }
                if expected != streams {
                    let why = format!("the file holds {streams} logs, but its last line says {expected}");
                    verifier.problem(StreamId::System, why);
                }
                over = true;
            }
        }
    }
    if over { Ok(verifier.finish()) } else { Err(ExportProblem::Broken("the end of the file is missing".to_owned())) }
}
