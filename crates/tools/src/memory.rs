//! Handles that keep everything in memory, for tests and for runs that leave nothing behind.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use adjutant_core::label::{Labelled, Labels};
use async_trait::async_trait;

use crate::world::{HandleError, Hit, IndexHandle, IndexedFile, KvHandle, Stamp};

/// Keys that live as long as this value. What is put here is labelled as the first field says.
#[derive(Debug, Default)]
pub struct MemoryKv(pub Labels, Mutex<BTreeMap<String, Labelled>>);

#[async_trait]
impl KvHandle for MemoryKv {
    async fn get(&self, key: &str) -> Result<Option<Labelled>, HandleError> {
        Ok(held(&self.1).get(key).cloned())
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), HandleError> {
        held(&self.1).insert(key.to_owned(), Labelled { text: value.to_owned(), labels: self.0 });
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<bool, HandleError> {
        Ok(held(&self.1).remove(key).is_some())
    }

    async fn list(&self, prefix: &str, limit: usize) -> Result<Vec<(String, Labels)>, HandleError> {
        let keys = held(&self.1);
        let found = keys.iter().filter(|(key, _)| key.starts_with(prefix)).take(limit);
        Ok(found.map(|(key, kept)| (key.clone(), kept.labels)).collect())
    }
}

/// An index that finds the files that hold every word of the query, in order of their path.
#[derive(Debug, Default)]
pub struct MemoryIndex(Mutex<BTreeMap<String, (Stamp, String)>>);

/// Characters shown on each side of what was found.
const AROUND: usize = 40;

#[async_trait]
impl IndexHandle for MemoryIndex {
    async fn state(&self) -> Result<BTreeMap<String, Stamp>, HandleError> {
        Ok(held(&self.0).iter().map(|(path, (stamp, _))| (path.clone(), *stamp)).collect())
    }

    async fn put(&self, files: Vec<IndexedFile>) -> Result<(), HandleError> {
        held(&self.0).extend(files.into_iter().map(|file| (file.path, (file.stamp, file.text))));
        Ok(())
    }

    async fn remove(&self, paths: Vec<String>) -> Result<(), HandleError> {
        let mut files = held(&self.0);
        for path in paths {
            files.remove(&path);
        }
        Ok(())
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, HandleError> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let files = held(&self.0);
        let hits = files.iter().filter_map(|(path, (_, text))| {
            let lower = text.to_lowercase();
            let found = words.iter().all(|word| lower.contains(word));
            (found && !words.is_empty()).then(|| Hit { path: path.clone(), snippet: snippet(text, &words) })
        });
        Ok(hits.take(limit).collect())
    }
}

/// The line that holds the first of the words, shortened around it.
fn snippet(text: &str, words: &[String]) -> String {
    let holds = |line: &&str| words.iter().any(|word| line.to_lowercase().contains(word));
    let line = text.lines().find(holds).unwrap_or_default();
    let lower = line.to_lowercase();
    let at = words.iter().filter_map(|word| lower.find(word)).min().unwrap_or(0);
    let before = lower[..at].chars().count();
    line.chars().skip(before.saturating_sub(AROUND)).take(2 * AROUND).collect()
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of another holder leaves a map that is still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
