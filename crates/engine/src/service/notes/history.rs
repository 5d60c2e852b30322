//! Who changed a file, and what it was before: read from the logs of runs and of people.

use adjutant_core::audit::{Act, AuditEvent, Deed};
use adjutant_core::content::Hash;
use adjutant_core::id::{AgentId, CallId, RunId, UserId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::{Actor, Event};
use adjutant_core::time::Time;
use adjutant_core::tool::ResourceAction;
use adjutant_store::row::{AuditFilter, AuditRow};

use super::NotePlace;
use crate::audit::{cursor_of, decode as decode_act, read_cursor};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::decode;
use crate::service::undo::{UndoOutcome, UndoneFile};

/// Rows read at a time.
const ROWS: u32 = 200;
/// Rows that are looked at for one page.
const SCAN: usize = 5_000;

/// Who changed a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteAuthor {
    /// A run, by one of its calls.
    Run {
        /// The run.
        run: RunId,
        /// Its agent.
        agent: Option<AgentId>,
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
    },
    /// A person.
    Person(UserId),
    /// A person who took back what a run did.
    Undo {
        /// The person, if known.
        user: Option<UserId>,
        /// The run.
        run: Option<RunId>,
    },
}

/// One change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteChange {
    /// When.
    pub at: Time,
    /// What was done.
    pub action: ResourceAction,
    /// By whom.
    pub by: NoteAuthor,
    /// The content before; none where nothing was.
    pub before: Option<Hash>,
    /// The content after; none where nothing is.
    pub after: Option<Hash>,
    /// Where it was moved to.
    pub moved_to: Option<String>,
}

/// One page of changes, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteHistory {
    /// The changes.
    pub changes: Vec<NoteChange>,
    /// Where the next page begins; none when there is no more.
    pub next_cursor: Option<String>,
}

impl Engine {
    /// Who changed a file, newest first. Changes made past Adjutant are not known.
    ///
    /// # Errors
    /// When the cursor is not one, or a log cannot be followed.
    pub async fn note_history(
        &self,
        place: &NotePlace,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<NoteHistory, EngineError> {
        let mut before = cursor.map(read_cursor).transpose()?;
        let (mut changes, mut scanned) = (Vec::new(), 0);
        loop {
            let by_path = AuditFilter {
                kinds: ["call_ended", Deed::FileSaved.kind(), Deed::FileDeleted.kind(), Deed::FileMoved.kind()]
                    .map(str::to_owned)
                    .to_vec(),
                target: Some(place.path.to_string()),
                is_error: Some(false),
                before,
                ..AuditFilter::default()
            };
            let undone =
                AuditFilter { kinds: vec![Deed::UndoEnded.kind().to_owned()], before, ..AuditFilter::default() };
            let mut rows = self.store().audit(Some(place.workspace), &by_path, ROWS).await?;
            rows.extend(self.store().audit(Some(place.workspace), &undone, ROWS).await?);
            rows.sort_by_key(|row| std::cmp::Reverse((row.time, row.stream.to_string(), row.seq)));
            rows.truncate(ROWS as usize);
            let last = rows.len() < ROWS as usize;
            for row in rows {
                let at = row.place();
                before = Some(at);
                scanned += 1;
                changes.extend(self.change_of(place, row).await?);
                if changes.len() >= limit || scanned >= SCAN {
                    return Ok(NoteHistory { changes, next_cursor: Some(cursor_of(at)) });
                }
            }
            if last {
                return Ok(NoteHistory { changes, next_cursor: None });
            }
        }
    }

    /// A content that a file had, if its history names it and it is still known.
    ///
    /// # Errors
    /// When the file never had it, or it was erased.
    pub async fn old_note(&self, place: &NotePlace, hash: Hash) -> Result<Vec<u8>, EngineError> {
        let unknown = || EngineError::not_found("version of this file", hash);
        place.refuse_sealed()?;
        if let Ok(content) = self.read_note(place).await
            && content.hash == hash
        {
            return Ok(content.bytes);
        }
        let history = self.note_history(place, SCAN, None).await?;
        let named = |change: &NoteChange| change.before == Some(hash) || change.after == Some(hash);
        if !history.changes.iter().any(named) {
            return Err(unknown());
        }
        self.store().blocks(place.workspace, &[hash]).await?.remove(&hash).ok_or_else(unknown)
    }

    async fn change_of(&self, place: &NotePlace, row: AuditRow) -> Result<Vec<NoteChange>, EngineError> {
        let entry = self.store().events(place.workspace, row.stream, row.seq - 1, 1).await?.pop();
        let Some(entry) = entry.filter(|entry| entry.seq == row.seq) else { return Ok(Vec::new()) };
        match row.stream {
            StreamId::Run(run) => {
                if self.run_row(place.workspace, run).await?.notebook != Some(place.notebook) || entry.body.is_none() {
                    return Ok(Vec::new());
                }
                let Event::CallEnded(ended) = decode(run, &entry)? else { return Ok(Vec::new()) };
                let by = NoteAuthor::Run { run, agent: row.agent, call: ended.call.clone(), tool: ended.tool.clone() };
                let here = ended.resources.iter().filter(|made| made.path == place.path.as_str());
                let change = here.map(|made| NoteChange {
                    at: row.time,
                    action: made.action,
                    by: by.clone(),
                    before: made.before,
                    after: made.after,
                    moved_to: None,
                });
                Ok(change.collect())
            }
            StreamId::Workspace(_) => {
                let Some(body) = entry.body.as_deref() else { return Ok(Vec::new()) };
                let AuditEvent::Act(act) = decode_act(&entry.kind, body)? else { return Ok(Vec::new()) };
                Ok(of_act(place, row.time, &act))
            }
            StreamId::System => Ok(Vec::new()),
        }
    }
}

fn of_act(place: &NotePlace, at: Time, act: &Act) -> Vec<NoteChange> {
    let user = match act.by {
        Some(Actor::User(user)) => Some(user),
        Some(Actor::Clock | Actor::Rule(_)) | None => None,
    };
    if act.deed == Deed::UndoEnded {
        let files: Vec<UndoneFile> =
            act.detail.get("files").cloned().and_then(|files| serde_json::from_value(files).ok()).unwrap_or_default();
        let here = |file: &&UndoneFile| file.path == place.path.as_str() && file.outcome == UndoOutcome::Restored;
        let change = |file: &UndoneFile| NoteChange {
            at,
            action: action(file.left, file.back),
            by: NoteAuthor::Undo { user, run: act.run },
            before: file.left,
            after: file.back,
            moved_to: None,
        };
        return files.iter().filter(here).map(change).collect();
    }
    let text = |name: &str| act.detail.get(name).and_then(|value| value.as_str());
    let hash = |name: &str| text(name).and_then(|text| text.parse::<Hash>().ok());
    let here = text("notebook") == Some(&*place.notebook.to_string());
    let Some(user) = user.filter(|_| here) else { return Vec::new() };
    let (before, after) = (hash("before"), hash("after"));
    let moved_to = text("to").map(str::to_owned);
    vec![NoteChange { at, action: action(before, after), by: NoteAuthor::Person(user), before, after, moved_to }]
}

const fn action(before: Option<Hash>, after: Option<Hash>) -> ResourceAction {
    match (before, after) {
        (None, _) => ResourceAction::Created,
        (Some(_), None) => ResourceAction::Deleted,
        (Some(_), Some(_)) => ResourceAction::Changed,
    }
}
