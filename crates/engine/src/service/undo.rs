//! Taking back what a run did to files: what it replaced or deleted is put back, what it made is removed. A file that is no
//! longer as the run left it belongs to whoever changed it, and is not touched.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use adjutant_core::id::{CallId, RunId, UserId, WorkspaceId};
use adjutant_core::run::event::{Actor, DoubtOutcome};
use adjutant_core::run::state::{Call, State};
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_store::row::AuditFilter;
use adjutant_tools::{FileError, Notebook, folder_hash};
use serde::{Deserialize, Serialize};

use crate::audit::AuditLog;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::RunLog;

/// Whether an undo is only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoMode {
    /// Files are put back.
    Real,
    /// Nothing is changed or recorded.
    DryRun,
}

/// What became of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoReport {
    /// The run.
    pub run_id: RunId,
    /// Whether nothing was changed, because only a look was asked for.
    pub dry_run: bool,
    /// Each file the run left changed, newest change first.
    pub files: Vec<UndoneFile>,
    /// Effects that cannot be taken back by Adjutant.
    pub beyond: Vec<String>,
    /// When an earlier undo of this run was begun, if it never ended.
    pub interrupted: Option<Time>,
}

impl UndoReport {
    /// Whether there was nothing left to take back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.iter().all(|file| file.outcome == UndoOutcome::AlreadyBack)
    }

    /// Whether something was not taken back that should have been.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        let stands = |file: &UndoneFile| matches!(file.outcome, UndoOutcome::Conflict | UndoOutcome::Failed);
        self.files.iter().any(stands)
    }
}

/// One file of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneFile {
    /// Its path in the run's notebook.
    pub path: String,
    /// The calls that are taken back, newest first.
    pub calls: Vec<CallId>,
    /// The content the run left; none where it left nothing.
    pub left: Option<Hash>,
    /// The content that is put back; none where there was nothing.
    pub back: Option<Hash>,
    /// What became of it.
    pub outcome: UndoOutcome,
    /// Why it was left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What became of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoOutcome {
    /// It is to be put back.
    Planned,
    /// It was put back.
    Restored,
    /// It is as it was before the run already.
    AlreadyBack,
    /// It is not what the run left, or what was there before is gone: left alone.
    Conflict,
    /// It could not be changed.
    Failed,
}

/// One change of one file by one call.
#[derive(Debug, Clone)]
struct Change {
    call: CallId,
    path: String,
    before: Option<Hash>,
    after: Option<Hash>,
}

impl Engine {
    /// Takes back what a run did to files, or what one of its calls did. A person's act: it is recorded before it begins and
    /// after it has ended.
    ///
    /// # Errors
    /// When there is no such run or call, the run still goes on, or what happened in it was erased.
    pub async fn undo_run(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        run: RunId,
        call: Option<CallId>,
        mode: UndoMode,
    ) -> Result<UndoReport, EngineError> {
        self.run_row(workspace, run).await?;
        let log = RunLog::load(self.store(), self.env(), workspace, run).await?;
        let start = log.state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        check_rest(run, log.state.status())?;
        let (changes, beyond) = changes(&log.state, call.as_ref())?;
        let mut report = UndoReport {
            run_id: run,
            dry_run: mode == UndoMode::DryRun,
            files: plan(&changes, call.as_ref()),
            beyond,
            interrupted: self.interrupted_undo(workspace, run).await?,
        };
        if report.files.is_empty() {
            return Ok(report);
        }
        let notebook = start.notebook.ok_or_else(|| EngineError::Invalid(format!("{run} has no notebook")))?;
        let files = self.notebook(workspace, notebook).await?.files;
        let backs: Vec<_> =
            report.files.iter().filter_map(|file| file.back).filter(|hash| *hash != folder_hash()).collect();
        let contents = self.store().blocks(workspace, &backs).await?;
        for file in report.files.iter_mut().filter(|file| file.outcome == UndoOutcome::Planned) {
            look(&files, file, &contents).await;
        }
        let planned = report.files.iter().any(|file| file.outcome == UndoOutcome::Planned);
        if mode == UndoMode::DryRun || !planned {
            return Ok(report);
        }
        let act = |deed| Act::new(deed, Some(Actor::User(user)), run.to_string()).run(run).agent(start.agent);
        let listed = |files: &[UndoneFile]| serde_json::to_value(files).unwrap_or_default();
        let begun = self
            .audit(AuditLog::Workspace(workspace), act(Deed::UndoBegun).with("files", listed(&report.files)))
            .await?;
        for file in report.files.iter_mut().filter(|file| file.outcome == UndoOutcome::Planned) {
            put_back(&files, file, &contents).await;
        }
        let ended = act(Deed::UndoEnded).with("begun", begun.seq).with("files", listed(&report.files));
        self.audit(AuditLog::Workspace(workspace), ended).await?;
        Ok(report)
    }

    /// When an undo of this run was begun that never ended.
    async fn interrupted_undo(&self, workspace: WorkspaceId, run: RunId) -> Result<Option<Time>, EngineError> {
        let kinds = [Deed::UndoBegun, Deed::UndoEnded].map(|deed| deed.kind().to_owned()).to_vec();
        let filter = AuditFilter { run: Some(run), kinds, ..AuditFilter::default() };
        let newest = self.store().audit(Some(workspace), &filter, 1).await?.pop();
        Ok(newest.filter(|row| row.kind == Deed::UndoBegun.kind()).map(|row| row.time))
    }
}

/// A run that goes on would only do it again, or meet files that change under it.
fn check_rest(run: RunId, status: Status) -> Result<(), EngineError> {
    match status {
        Status::Queued | Status::Running | Status::Cancelling => Err(EngineError::Invalid(format!(
            "{run} still goes on ({}); pause or cancel it first. Nothing was changed",
            status.word()
        ))),
        Status::WaitingApproval
        | Status::Paused
        | Status::InDoubt
        | Status::Completed
        | Status::Failed
        | Status::Cancelled => Ok(()),
    }
}

/// What the calls of a run changed, oldest first, and what no undo reaches.
fn changes(state: &State, only: Option<&CallId>) -> Result<(Vec<Change>, Vec<String>), EngineError> {
    let (mut changes, mut beyond) = (Vec::new(), Vec::new());
    if let Some(call) = only.filter(|call| state.call(call).is_none()) {
        return Err(EngineError::not_found("call in this run", call));
    }
    let mut calls: Vec<&Call> = state.calls().collect();
    // What ended later lies on top.
    calls.sort_by_key(|call| call.ended.as_ref().map_or(u64::MAX, |(_, seq, _)| *seq));
    for call in calls {
        for made in call.ended.iter().flat_map(|(ended, _, _)| &ended.resources) {
            if made.undoable && matches!(made.kind.as_str(), "file" | "folder") {
                let (before, after) = (made.before, made.after);
                changes.push(Change { call: call.id.clone(), path: made.path.clone(), before, after });
            } else if only.is_none_or(|only| *only == call.id) {
                beyond.push(format!("{} {}", call.tool, made.path));
            }
        }
        changes.extend(vouched(call));
    }
    Ok((changes, beyond))
}

/// The change of a call whose end nobody saw and of which a person said that it happened.
fn vouched(call: &Call) -> Vec<Change> {
    let resolved = call.doubt.as_ref().and_then(|doubt| doubt.resolved.as_ref());
    if resolved.is_none_or(|resolved| resolved.outcome != DoubtOutcome::Happened) {
        return Vec::new();
    }
    let Some((started, intended)) =
        call.started.as_ref().and_then(|started| Some((started, started.intended.as_ref()?)))
    else {
        return Vec::new();
    };
    let change = |(path, after): (&String, &Option<Hash>)| {
        let before = started.target.0.get(path).copied().flatten();
        Change { call: call.id.clone(), path: path.clone(), before, after: *after }
    };
    intended.0.iter().map(change).filter(|change| change.before != change.after).collect()
}

/// What is to be put back: per file, newest first, as far back as nobody else came in between.
fn plan(changes: &[Change], only: Option<&CallId>) -> Vec<UndoneFile> {
    let mut files: Vec<UndoneFile> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut later: BTreeMap<&str, &CallId> = BTreeMap::new();
    for change in changes.iter().rev() {
        if only.is_some_and(|only| *only != change.call) {
            later.entry(&change.path).or_insert(&change.call);
            continue;
        }
        let at = known.get(change.path.as_str()).copied();
        if let Some(file) = at.and_then(|at| files.get_mut(at)).filter(|file| file.back == change.after) {
            file.back = change.before;
            file.calls.push(change.call.clone());
            continue;
        }
        let mut file = UndoneFile {
            path: change.path.clone(),
            calls: vec![change.call.clone()],
            left: change.after,
            back: change.before,
            outcome: UndoOutcome::Planned,
            why: None,
        };
        if at.is_some() {
            file.leave("somebody else changed it between two calls of this run");
        } else if let Some(call) = only.and(later.get(change.path.as_str())) {
            file.leave(&format!("the later call {call} changed it too; take that back first, or the whole run"));
        }
        known.entry(&change.path).or_insert(files.len());
        files.push(file);
    }
    // A file that came out as it went in is nobody's business.
    files.retain(|file| file.left != file.back);
    files
}

impl UndoneFile {
    fn leave(&mut self, why: &str) {
        self.outcome = UndoOutcome::Conflict;
        self.why = Some(why.to_owned());
    }
}

/// Looks whether a file is what the run left, and whether what was there before is still known.
async fn look(notebook: &Arc<Notebook>, file: &mut UndoneFile, contents: &HashMap<Hash, Vec<u8>>) {
    let Ok(path) = NotePath::parse(&file.path) else { return file.leave("its path is not one any more") };
    match notebook.run(move |notebook| notebook.state(&path)).await {
        Ok(now) if now.hash() == file.back => file.outcome = UndoOutcome::AlreadyBack,
        Ok(now) if now.hash() == file.left => {
            if file.back.is_some_and(|back| back != folder_hash() && !contents.contains_key(&back)) {
                file.leave("what was there before was erased");
            }
        }
        Ok(_) => file.leave("it is not what the run left there"),
        Err(error) => file.leave(&error.to_string()),
    }
}

/// Puts one file back, if it still is what the run left.
async fn put_back(notebook: &Arc<Notebook>, file: &mut UndoneFile, contents: &HashMap<Hash, Vec<u8>>) {
    let Ok(path) = NotePath::parse(&file.path) else { return file.leave("its path is not one any more") };
    let (left, back) = (file.left, file.back);
    let content = back.and_then(|back| contents.get(&back)).cloned();
    let done = notebook
        .run(move |notebook| match (left, back, content) {
            (Some(left), None, _) => notebook.delete(&path, left).map(drop),
            (None, Some(back), _) if back == folder_hash() => notebook.create_folder(&path),
            (Some(left), Some(_), Some(content)) => notebook.replace(&path, &content, left).map(drop),
            (None, Some(_), Some(content)) => notebook.create(&path, &content),
            (None, None, _) | (_, Some(_), None) => Err(FileError::NotFound),
        })
        .await;
    match done {
        Ok(()) | Err(FileError::Unconfirmed(_)) => file.outcome = UndoOutcome::Restored,
        Err(error @ (FileError::Changed | FileError::Exists | FileError::NotFound)) => file.leave(&error.to_string()),
        Err(error) => {
            file.outcome = UndoOutcome::Failed;
            file.why = Some(error.to_string());
        }
    }
}
