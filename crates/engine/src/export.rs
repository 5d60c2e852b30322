//! A run as a file: every event with its hashes and every block it refers to, one JSON document a line. Such a file can be
//! verified anywhere, without the database.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::BufRead;

use adjutant_core::content::Hash;
use adjutant_core::guard::redact::{Mode, redact};
use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::run::event::Event;
use adjutant_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audit::Redaction;
use crate::engine::Engine;
use crate::error::EngineError;

/// The version of the file's form.
const FORMAT: &str = "adjutant-run-1";
/// Events read at a time.
const PAGE: u32 = 512;

/// One line of an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// The first line.
    Run { format: String, stream: StreamId, workspace: WorkspaceId, head: Head, blocks: u64 },
    /// One event.
    Event {
        seq: u64,
        kind: String,
        time: Time,
        body_hash: Hash,
        hash: Hash,
        body: Option<String>,
        /// In place of the body, where something in it looks like a secret: the body without that. No hash is of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<String>,
    },
    /// One content that events refer to.
    Block {
        hash: Hash,
        #[serde(flatten)]
        content: BlockContent,
    },
}

/// A content as a line holds it: as text where it is text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockContent {
    Text(String),
    Bytes(Vec<u8>),
    /// The text without what looks like a secret in it. The hash is of the whole.
    Redacted(String),
}

impl BlockContent {
    fn new(bytes: Vec<u8>, redaction: Redaction) -> Self {
        match (String::from_utf8(bytes), redaction) {
            (Err(bad), _) => Self::Bytes(bad.into_bytes()),
            (Ok(text), Redaction::Raw) => Self::Text(text),
            (Ok(text), Redaction::On) => match redact(&text, Mode::Standard) {
                Cow::Borrowed(_) => Self::Text(text),
                Cow::Owned(less) if less == text => Self::Text(text),
                Cow::Owned(less) => Self::Redacted(less),
            },
        }
    }

    /// Whether it is what was hashed, as far as that can be said.
    fn fits(&self, hash: Hash) -> bool {
        match self {
            Self::Text(text) => Hash::of(text.as_bytes()) == hash,
            Self::Bytes(bytes) => Hash::of(bytes) == hash,
            Self::Redacted(_) => true,
        }
    }
}

/// A file that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// What it holds.
    pub stream: StreamId,
    /// Where its chain ends.
    pub head: Head,
    /// Events.
    pub events: u64,
    /// Bodies that were erased.
    pub erased: u64,
    /// Contents.
    pub blocks: u64,
    /// What stands there without something that looks like a secret, if it is what was recorded: no hash can speak for it.
    #[serde(flatten)]
    pub redacted: Redacted,
}

/// The parts of a file that no hash speaks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Redacted {
    /// How many bodies and contents.
    #[serde(rename = "redacted", skip_serializing_if = "is_none")]
    pub count: u64,
    /// The places of the events among them.
    #[serde(rename = "redacted_events", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum ExportProblem {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[from] std::io::Error),
    /// It is not an export.
    #[error("line {line} is not part of an export: {why}")]
    Malformed {
        /// The line.
        line: usize,
        /// Why.
        why: String,
    },
    /// The chain is broken.
    #[error("the chain is broken: {0}")]
    Broken(String),
}

impl Engine {
    /// Writes a run as a file, line by line. What looks like a secret is replaced, unless it is to stay.
    ///
    /// # Errors
    /// When there is no such run, it cannot be read, or what was said in it was erased.
    pub async fn export_run(
        &self,
        workspace: WorkspaceId,
        run: RunId,
        redaction: Redaction,
    ) -> Result<Vec<String>, EngineError> {
        let mut lines = Vec::new();
        let mut wanted = BTreeSet::new();
        let head = self
            .walk(workspace, run, |entry| {
                wanted.extend(referred(&entry));
                let body = entry.body.ok_or(EngineError::Erased { run })?;
                let body = String::from_utf8_lossy(&body).into_owned();
                let redacted = if redaction == Redaction::On { without_secrets(&body) } else { None };
                let body = Some(body).filter(|_| redacted.is_none());
                let Entry { seq, kind, time, body_hash, hash, .. } = entry;
                lines.push(line(&Line::Event { seq, kind, time, body_hash, hash, body, redacted }));
                Ok(())
            })
            .await?;
        let stream = StreamId::Run(run);
        let wanted: Vec<_> = wanted.into_iter().collect();
        let mut found: Vec<_> = self.store().blocks(workspace, &wanted).await?.into_iter().collect();
        found.sort_by_key(|(hash, _)| *hash);
        let blocks = found.len() as u64;
        lines.insert(0, line(&Line::Run { format: FORMAT.to_owned(), stream, workspace, head, blocks }));
        lines.extend(
            found
                .into_iter()
                .map(|(hash, bytes)| line(&Line::Block { hash, content: BlockContent::new(bytes, redaction) })),
        );
        Ok(lines)
    }

    /// Checks the chain of a run in the database.
    ///
    /// # Errors
    /// [`EngineError::BadLog`] names the first event that does not fit.
    pub async fn verify_run(&self, workspace: WorkspaceId, run: RunId) -> Result<Verified, EngineError> {
        let (mut head, mut erased, mut blocks) = (Head::START, 0, BTreeSet::new());
        let bad = |why| EngineError::BadLog { run, why };
        let expected = self
            .walk(workspace, run, |entry| {
                head = entry.follows(head).map_err(|broken| bad(broken.to_string()))?;
                erased += u64::from(entry.body.is_none());
                blocks.extend(referred(&entry));
                Ok(())
            })
            .await?;
        if head != expected {
            return Err(bad(format!("it ends at event {}, but its row says {}", head.seq, expected.seq)));
        }
        let wanted: Vec<_> = blocks.into_iter().collect();
        let found = self.store().blocks(workspace, &wanted).await?;
        if let Some((hash, _)) = found.iter().find(|(hash, bytes)| Hash::of(bytes) != **hash) {
            return Err(bad(format!("the content {hash} was changed")));
        }
        if let Some(hash) = wanted.iter().find(|hash| !found.contains_key(*hash)).filter(|_| erased == 0) {
            return Err(bad(format!("the content {hash} is missing")));
        }
        let stream = StreamId::Run(run);
        Ok(Verified {
            stream,
            head,
            events: head.seq,
            erased,
            blocks: found.len() as u64,
            redacted: Redacted::default(),
        })
    }

    /// Takes the events of a run one by one, up to where its row said that it ends when this was asked: what is appended
    /// meanwhile lies behind that. Returns that end.
    async fn walk(
        &self,
        workspace: WorkspaceId,
        run: RunId,
        mut take: impl FnMut(Entry) -> Result<(), EngineError>,
    ) -> Result<Head, EngineError> {
        let head = self.run_row(workspace, run).await?.head;
        let (mut after, mut goes_on) = (0, false);
        loop {
            let entries = self.store().events(workspace, StreamId::Run(run), after, PAGE).await?;
            let last = entries.len() < PAGE as usize;
            goes_on |= entries.last().is_some_and(|entry| entry.seq > head.seq);
            for entry in entries.into_iter().take_while(|entry| entry.seq <= head.seq) {
                after = entry.seq;
                take(entry)?;
            }
            if last || goes_on {
                break;
            }
        }
        // What is appended meanwhile moves the row, too.
        if goes_on && self.run_row(workspace, run).await?.head == head {
            let why = format!("it goes on after event {}, where its row says that it ends", head.seq);
            return Err(EngineError::BadLog { run, why });
        }
        Ok(head)
    }
}

fn line(line: &Line) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

/// The body of an event without what looks like a secret in it; none where nothing does.
fn without_secrets(body: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(body).ok()?;
    let before = value.clone();
    clean(&mut value);
    (value != before).then(|| value.to_string())
}

/// Text by text, whatever the fields are called: most of them are ours, and a key that only marks a repetition is no secret.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = redact(text, Mode::Standard).into_owned(),
        Value::Array(list) => list.iter_mut().for_each(clean),
        Value::Object(map) => map.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

pub(crate) fn referred(entry: &Entry) -> Vec<Hash> {
    let event = entry.body.as_deref().and_then(|body| Event::decode(&entry.kind, body).ok());
    event.map(|event| event.blocks()).unwrap_or_default()
}

/// Verifies an exported file without any database.
///
/// # Errors
/// Says which line or event does not fit.
pub fn verify_export(reader: impl BufRead) -> Result<Verified, ExportProblem> {
    let mut checking: Option<RunCheck> = None;
    for (index, text) in reader.lines().enumerate() {
        let (text, at) = (text?, index + 1);
        match &mut checking {
            None => checking = Some(RunCheck::begin(at, &text)?),
            Some(checking) => checking.take(at, &text)?,
        }
    }
    let checking = checking.ok_or_else(|| malformed(1, "the file is empty"))?;
    checking.finish()
}

fn malformed(line: usize, why: impl ToString) -> ExportProblem {
    ExportProblem::Malformed { line, why: why.to_string() }
}

/// The lines of one run, checked as they come.
#[derive(Debug)]
pub(crate) struct RunCheck {
    stream: StreamId,
    workspace: WorkspaceId,
    expected: Head,
    count: u64,
    head: Head,
    erased: u64,
    redacted: Redacted,
    blocks: BTreeSet<Hash>,
    wanted: BTreeSet<Hash>,
}

impl RunCheck {
    /// The first line of a run.
    pub(crate) fn begin(at: usize, text: &str) -> Result<Self, ExportProblem> {
        match serde_json::from_str(text).map_err(|bad| malformed(at, bad))? {
            Line::Run { format, stream, workspace, head, blocks } if format == FORMAT => Ok(Self {
                stream,
                workspace,
                expected: head,
                count: blocks,
                head: Head::START,
                erased: 0,
                redacted: Redacted::default(),
                blocks: BTreeSet::new(),
                wanted: BTreeSet::new(),
            }),
            Line::Run { format, .. } => {
                Err(malformed(at, format!("it has the form `{format}`, which this version does not know")))
            }
            Line::Event { .. } | Line::Block { .. } => Err(malformed(at, "the beginning is missing")),
        }
    }

    /// A line after the first.
    pub(crate) fn take(&mut self, at: usize, text: &str) -> Result<(), ExportProblem> {
        match serde_json::from_str(text).map_err(|bad| malformed(at, bad))? {
            Line::Run { .. } => return Err(malformed(at, "a second beginning")),
            Line::Event { seq, kind, time, body_hash, hash, body, redacted } => {
                self.erased += u64::from(body.is_none() && redacted.is_none());
                let said = body.as_ref().or(redacted.as_ref()).map(String::as_bytes);
                self.belongs(&kind, said)?;
                if body.is_none() && redacted.is_some() {
                    self.redacted.count += 1;
                    self.redacted.events.push(seq);
                }
                let body = body.map(String::into_bytes);
                let entry = Entry { stream: self.stream, seq, kind, time, body_hash, body, hash };
                self.head = entry.follows(self.head).map_err(|broken| ExportProblem::Broken(broken.to_string()))?;
                self.wanted.extend(referred(&entry));
            }
            Line::Block { hash, content } => {
                if !content.fits(hash) {
                    return Err(ExportProblem::Broken(format!("the content {hash} was changed")));
                }
                self.redacted.count += u64::from(matches!(content, BlockContent::Redacted(_)));
                self.blocks.insert(hash);
            }
        }
        Ok(())
    }

    /// The first line says whose run it is; the run says so itself, under its hash.
    fn belongs(&self, kind: &str, body: Option<&[u8]>) -> Result<(), ExportProblem> {
        match body.map(|body| Event::decode(kind, body)) {
            Some(Ok(Event::RunStarted(start))) if start.workspace != self.workspace => Err(ExportProblem::Broken(
                format!("its first line says {}, but the run is of {}", self.workspace, start.workspace),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// After the last line.
    pub(crate) fn finish(self) -> Result<Verified, ExportProblem> {
        let Self { stream, workspace: _, expected, count, head, erased, redacted, blocks, wanted } = self;
        if head != expected {
            return Err(ExportProblem::Broken(format!(
                "it ends at event {}, but its first line says {}",
                head.seq, expected.seq
            )));
        }
        if blocks.len() as u64 != count {
            return Err(ExportProblem::Broken(format!(
                "it holds {} contents, but its first line says {count}",
                blocks.len()
            )));
        }
        if let Some(hash) = wanted.iter().find(|hash| !blocks.contains(*hash)).filter(|_| erased == 0) {
            return Err(ExportProblem::Broken(format!("the content {hash} is missing")));
        }
        Ok(Verified { stream, head, events: head.seq, erased, blocks: count, redacted })
    }
}
