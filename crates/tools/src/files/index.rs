//! Keeping the search index in step with the files: no watcher, but a look at size and time of every file before a search.
//! Only what the agent may read is looked at, so an agent's search never opens a file out of its reach.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::{Action, Kind, Scope};
use adjutant_core::limits::{INDEXED_FILE_BYTES, WALK_ENTRIES};
use adjutant_core::time::Time;
use tokio::time::Instant;

use crate::limits::{INDEX_BATCH, INDEX_TIME, SETTLED};
use crate::notebook::{Entry, FileError, Notebook, Visit, Walked};
use crate::world::{HandleError, IndexHandle, IndexedFile, Stamp};

/// Bytes of text handed to the index at once.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Whether the index shows the files as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It does, as far as this agent reaches.
    Current,
    /// There was not enough time, or the tree is too large: it may miss some changes.
    Behind,
}

/// What a walk found out.
struct Survey {
    changed: Vec<Entry>,
    seen: BTreeSet<String>,
    walked: Walked,
}

/// Brings the index up to date, for at most two seconds.
///
/// # Errors
/// Fails when the index does not answer; a file that cannot be read is left out.
pub async fn refresh(
    index: &dyn IndexHandle,
    scope: &Arc<Scope>,
    now: Time,
    notebook: &Arc<Notebook>,
) -> Result<Freshness, HandleError> {
    let until = Instant::now() + INDEX_TIME;
    let known = Arc::new(index.state().await?);
    let (before, reach) = (Arc::clone(&known), Arc::clone(scope));
    let survey = notebook.run(move |notebook| survey(notebook, &reach, &before, until)).await;
    let Ok(mut survey) = survey else { return Ok(Freshness::Behind) };
    if survey.walked == Walked::Whole {
        let gone = gone(&known, &survey.seen, scope);
        if !gone.is_empty() {
            index.remove(gone).await?;
        }
    }
    survey.changed.reverse();
    while !survey.changed.is_empty() {
        if Instant::now() >= until {
            return Ok(Freshness::Behind);
        }
        let mut changed = std::mem::take(&mut survey.changed);
        let taken = notebook.run(move |notebook| {
            let files = batch(notebook, &mut changed, now);
            Ok((changed, files))
        });
        let Ok((rest, files)) = taken.await else { return Ok(Freshness::Behind) };
        survey.changed = rest;
        if !files.is_empty() {
            index.put(files).await?;
        }
    }
    Ok(match survey.walked {
        Walked::Whole => Freshness::Current,
        Walked::Cut => Freshness::Behind,
    })
}

fn survey(
    notebook: &Notebook,
    scope: &Scope,
    known: &BTreeMap<String, Stamp>,
    until: Instant,
) -> Result<Survey, FileError> {
    let mut changed = Vec::new();
    let mut seen = BTreeSet::new();
    let walked = notebook.walk(&NotePath::root(), WALK_ENTRIES, &mut |entry| {
        if Instant::now() >= until {
            return Visit::Stop;
        }
        match entry.kind {
            // What holds nothing for this agent is not even opened.
            Kind::Dir if scope.may_hold(&entry.path) => return Visit::Enter,
            Kind::Dir => return Visit::Skip,
            Kind::Other => return Visit::Skip,
            Kind::File => {}
        }
        if scope.check(Action::Read, &entry.path, Kind::File, true).is_ok() {
            if known.get(entry.path.as_str()) != Some(&stamp_of(entry)) {
                changed.push(entry.clone());
            }
            seen.insert(entry.path.as_str().to_owned());
        }
        Visit::Skip
    })?;
    Ok(Survey { changed, seen, walked })
}

const fn stamp_of(entry: &Entry) -> Stamp {
    Stamp { size: entry.size, modified: entry.modified }
}

/// Files of the index that are no longer there. Those out of the agent's reach were not looked at and stay.
fn gone(known: &BTreeMap<String, Stamp>, seen: &BTreeSet<String>, scope: &Scope) -> Vec<String> {
    let readable =
        |path: &str| NotePath::parse(path).is_ok_and(|path| scope.check(Action::Read, &path, Kind::File, true).is_ok());
    known.keys().filter(|path| !seen.contains(*path) && readable(path)).cloned().collect()
}

/// Reads the next files, from the end of the list.
fn batch(notebook: &Notebook, changed: &mut Vec<Entry>, now: Time) -> Vec<IndexedFile> {
    let mut files = Vec::new();
    let mut bytes = 0;
    while files.len() < INDEX_BATCH && bytes < BATCH_BYTES {
        let Some(entry) = changed.pop() else { break };
        let Some(text) = text_to_index(notebook, &entry) else { continue };
        bytes += text.len();
        let mut stamp = stamp_of(&entry);
        // The clock of the file system is coarse: a second change within the same tick would not show.
        if now.since(stamp.modified) < SETTLED {
            stamp.modified = Time::from_millis(0);
        }
        files.push(IndexedFile { path: entry.path.as_str().to_owned(), stamp, text });
    }
    files
}

/// The text of a file; empty for one that is not text or too large, none for one that cannot be read now.
fn text_to_index(notebook: &Notebook, entry: &Entry) -> Option<String> {
    if entry.size > INDEXED_FILE_BYTES {
        return Some(String::new());
    }
    match notebook.read_at_most(&entry.path, INDEXED_FILE_BYTES) {
        Ok(content) => Some(content.text().map(str::to_owned).unwrap_or_default()),
        Err(FileError::TooLarge { .. }) => Some(String::new()),
        Err(_) => None,
    }
}
