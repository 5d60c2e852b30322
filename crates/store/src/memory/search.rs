//! The search index in memory: all words, in any order, of the last one its beginning. Simpler than the databases' (no stems, no ranking),
//! enough for simulated runs.

use adjutant_core::id::{NotebookId, WorkspaceId};

use super::Memory;
use crate::StoreError;
use crate::row::{IndexState, IndexedFile, SearchHit};
use crate::search::words;

/// Words shown on each side of the first match.
const AROUND: usize = 8;

impl Memory {
    pub(crate) fn index_state(&self, workspace: WorkspaceId, notebook: NotebookId) -> Result<IndexState, StoreError> {
        let state = self.state();
        let files = state.files.iter().filter(|(key, _)| (key.0, key.1) == (workspace, notebook));
        Ok(files.map(|(key, file)| (key.2.clone(), (file.size, file.modified))).collect())
    }

    pub(crate) fn index_put(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        files: Vec<IndexedFile>,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        for file in files {
            state.files.insert((workspace, notebook, file.path.clone()), file);
        }
        Ok(())
    }

    pub(crate) fn index_remove(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        paths: &[String],
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        for path in paths {
            state.files.remove(&(workspace, notebook, path.clone()));
        }
        Ok(())
    }

    pub(crate) fn search(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        query: &str,
        limit: u32,
    ) -> Result<Vec<SearchHit>, StoreError> {
        let wanted: Vec<String> = words(query).into_iter().flat_map(|word| tokens(word).collect::<Vec<_>>()).collect();
        let Some(last) = wanted.last() else { return Ok(Vec::new()) };
        let state = self.state();
        let files = state.files.iter().filter(|(key, _)| (key.0, key.1) == (workspace, notebook));
        let hits = files.filter_map(|(key, file)| {
            let held: Vec<String> = tokens(&file.text).collect();
            let all = wanted.iter().all(|word| held.contains(word) || (word == last && begins(&held, last)));
            all.then(|| SearchHit { path: key.2.clone(), snippet: snippet(&file.text, &wanted) })
        });
        Ok(hits.take(limit as usize).collect())
    }
}

fn tokens(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn begins(held: &[String], last: &str) -> bool {
    held.iter().any(|word| word.starts_with(last))
}

fn snippet(text: &str, wanted: &[String]) -> String {
    let pieces: Vec<&str> = text.split_whitespace().collect();
    let begun = |word: &str| wanted.last().is_some_and(|last| word.starts_with(last.as_str()));
    let matches = |piece: &str| tokens(piece).any(|word| wanted.contains(&word) || begun(&word));
    let first = pieces.iter().position(|piece| matches(piece)).unwrap_or(0);
    let shown = &pieces[first.saturating_sub(AROUND)..pieces.len().min(first + AROUND)];
    let marked = shown.iter().map(|piece| if matches(piece) { format!("[{piece}]") } else { (*piece).to_owned() });
    marked.collect::<Vec<_>>().join(" ")
}
