//! Old runs as one file: each as `runs export` writes it, between a first line and a last one. Such a file can be verified
//! anywhere; only what a verified file holds is erased after it.

use std::io::BufRead;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_store::row::OldPlace;
use serde::{Deserialize, Serialize};

use crate::audit::{AuditLog, Redaction};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::export::{ExportProblem, RunCheck};

/// The version of the file's form.
const FORMAT: &str = "adjutant-archive-1";
/// Runs looked up at a time.
const PAGE: u32 = 64;

/// A line of a file that is not of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// The first line.
    Archive { format: String, workspace: WorkspaceId, before: Time, made_at: Time },
    /// The last line: how many runs there were.
    End { runs: u64 },
}

/// What a line is.
#[derive(Deserialize)]
struct Tag {
    line: String,
}

/// A file that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveVerified {
    /// Whose runs it holds.
    pub workspace: WorkspaceId,
    /// They ended before this.
    pub before: Time,
    /// The runs, in the order they ended.
    pub runs: Vec<RunId>,
    /// Events.
    pub events: u64,
    /// Contents.
    pub blocks: u64,
}

/// A file that is being written, part by part.
#[derive(Debug)]
pub struct Archive {
    engine: Engine,
    workspace: WorkspaceId,
    before: Time,
    after: Option<OldPlace>,
    waiting: Vec<OldPlace>,
    runs: u64,
    at: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Runs,
    Over,
}

impl Engine {
    /// Begins a file of all runs that ended before a moment and are not erased. It is recorded who took it.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub async fn archive(&self, workspace: WorkspaceId, by: UserId, before: Time) -> Result<Archive, EngineError> {
        let act = Act::new(Deed::RunsArchived, Some(Actor::User(by)), format!("runs that ended before {before}"));
        self.audit(AuditLog::Workspace(workspace), act).await?;
        let (engine, waiting) = (self.clone(), Vec::new());
        Ok(Archive { engine, workspace, before, after: None, waiting, runs: 0, at: Part::First })
    }
}

impl Archive {
    /// The next lines of the file; none after the last.
    ///
    /// # Errors
    /// When a run cannot be read: the file has no last line then, and does not verify.
    pub async fn next(&mut self) -> Result<Option<Vec<String>>, EngineError> {
        match self.at {
            Part::Over => Ok(None),
            Part::First => {
                self.at = Part::Runs;
                let (workspace, before, made_at) = (self.workspace, self.before, self.engine.env().now());
                Ok(Some(vec![text(&Line::Archive { format: FORMAT.to_owned(), workspace, before, made_at })]))
            }
            Part::Runs => loop {
                if self.waiting.is_empty() {
                    let store = self.engine.store();
                    self.waiting = store.list_old_runs(self.workspace, self.before, self.after, PAGE).await?;
                    self.after = self.waiting.last().copied().or(self.after);
                    self.waiting.reverse();
                }
                let Some((_, run)) = self.waiting.pop() else {
                    self.at = Part::Over;
                    return Ok(Some(vec![text(&Line::End { runs: self.runs })]));
                };
                match self.engine.export_run(self.workspace, run, Redaction::Raw).await {
                    // Erased since it was listed: then there is nothing left to keep.
                    Err(EngineError::Erased { .. }) => {}
                    lines => {
                        self.runs += 1;
                        return lines.map(Some);
                    }
                }
            },
        }
    }
}

fn text(line: &Line) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

/// Whether a file is an archive, by its first line.
#[must_use]
pub fn is_archive(first: &str) -> bool {
    matches!(serde_json::from_str(first), Ok(Line::Archive { .. }))
}

/// Verifies an archive without any database: every chain, every content, and that none is missing.
///
/// # Errors
/// Says which line or event does not fit.
pub fn verify_archive(reader: impl BufRead) -> Result<ArchiveVerified, ExportProblem> {
    let mut found: Option<ArchiveVerified> = None;
    let mut checking: Option<RunCheck> = None;
    let mut said = None;
    for (index, line) in reader.lines().enumerate() {
        let (line, at) = (line?, index + 1);
        let malformed = |why: &str| ExportProblem::Malformed { line: at, why: why.to_owned() };
        let tag: Tag = serde_json::from_str(&line).map_err(|bad| malformed(&bad.to_string()))?;
        let Some(found) = &mut found else {
            found = Some(begin(&line, at)?);
            continue;
        };
        if said.is_some() {
            return Err(malformed("something after the end"));
        }
        match tag.line.as_str() {
            "archive" => return Err(malformed("a second beginning")),
            "end" => {
                take(found, checking.take())?;
                match serde_json::from_str(&line).map_err(|bad| malformed(&bad.to_string()))? {
                    Line::End { runs } => said = Some(runs),
                    Line::Archive { .. } => {}
                }
            }
            "run" => {
                take(found, checking.take())?;
                checking = Some(RunCheck::begin(at, &line)?);
            }
            _ => checking.as_mut().ok_or_else(|| malformed("the beginning of a run is missing"))?.take(at, &line)?,
        }
    }
    let found = found.ok_or_else(|| ExportProblem::Malformed { line: 1, why: "the file is empty".to_owned() })?;
    match said {
        Some(runs) if runs == found.runs.len() as u64 => Ok(found),
        Some(runs) => {
            let held = found.runs.len();
            Err(ExportProblem::Broken(format!("it holds {held} runs, but its last line says {runs}")))
        }
        None => Err(ExportProblem::Broken("its end is missing".to_owned())),
    }
}

fn begin(line: &str, at: usize) -> Result<ArchiveVerified, ExportProblem> {
    match serde_json::from_str(line) {
        Ok(Line::Archive { format, workspace, before, .. }) if format == FORMAT => {
            Ok(ArchiveVerified { workspace, before, runs: Vec::new(), events: 0, blocks: 0 })
        }
        Ok(Line::Archive { format, .. }) => {
            let why = format!("it has the form `{format}`, which this version does not know");
            Err(ExportProblem::Malformed { line: at, why })
        }
        Ok(Line::End { .. }) | Err(_) => {
            Err(ExportProblem::Malformed { line: at, why: "the beginning is missing".to_owned() })
        }
    }
}

fn take(found: &mut ArchiveVerified, checked: Option<RunCheck>) -> Result<(), ExportProblem> {
    let Some(checked) = checked else { return Ok(()) };
    let verified = checked.finish()?;
    let StreamId::Run(run) = verified.stream else {
        return Err(ExportProblem::Broken(format!("{} is no run", verified.stream)));
    };
    if verified.erased > 0 || verified.redacted.count > 0 {
        return Err(ExportProblem::Broken(format!("what was said in {run} is not in it")));
    }
    found.runs.push(run);
    found.events += verified.events;
    found.blocks += verified.blocks;
    Ok(())
}
