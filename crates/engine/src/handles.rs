//! What a tool may reach of the store: the keys of one agent and the index of one notebook.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::id::{AgentId, NotebookId, WorkspaceId};
use adjutant_core::label::{Labelled, Labels};
use adjutant_core::time::Time;
use adjutant_store::row::{self, Owner};
use adjutant_store::{Store, StoreError};
use adjutant_tools::{HandleError, Hit, IndexHandle, IndexedFile, KvHandle, Notebook, Stamp};
use async_trait::async_trait;

/// A notebook that is open.
#[derive(Debug, Clone)]
pub struct OpenNotebook {
    /// Its short name.
    pub slug: String,
    /// Its files.
    pub files: Arc<Notebook>,
}

fn handle_error(error: StoreError) -> HandleError {
    match error {
        StoreError::Unavailable(_) | StoreError::Stale { .. } => {
            HandleError::Busy("The store is not available at the moment.".to_owned())
        }
        StoreError::Full(_) => HandleError::Full("There is no room left in the store.".to_owned()),
        other => {
            tracing::error!(error = %other, "a tool's handle failed");
            HandleError::Failed("The store could not do this.".to_owned())
        }
    }
}

/// The keys of one agent, for a run that has seen what `labels` say, and for its owner.
pub(crate) struct AgentKeys {
    pub(crate) store: Store,
    pub(crate) workspace: WorkspaceId,
    pub(crate) agent: AgentId,
    pub(crate) labels: Labels,
    pub(crate) owner: Owner,
}

#[async_trait]
impl KvHandle for AgentKeys {
    async fn get(&self, key: &str) -> Result<Option<Labelled>, HandleError> {
        self.store.kv_get(self.workspace, self.agent, key).await.map_err(handle_error)
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), HandleError> {
        let value = Labelled { text: value.to_owned(), labels: self.labels };
        self.store.kv_set(self.workspace, self.agent, key, &value, self.owner).await.map_err(handle_error)
    }

    async fn delete(&self, key: &str) -> Result<bool, HandleError> {
        self.store.kv_delete(self.workspace, self.agent, key, self.owner).await.map_err(handle_error)
    }

    async fn list(&self, prefix: &str, limit: usize) -> Result<Vec<(String, Labels)>, HandleError> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let pairs = self.store.kv_list(self.workspace, self.agent, prefix, limit).await.map_err(handle_error)?;
        Ok(pairs.into_iter().map(|(key, value)| (key, value.labels)).collect())
    }
}

/// The index of one notebook; an empty one for a run without a notebook.
pub(crate) struct NotebookIndex {
    pub(crate) store: Store,
    pub(crate) workspace: WorkspaceId,
    pub(crate) notebook: Option<NotebookId>,
}

#[async_trait]
impl IndexHandle for NotebookIndex {
    async fn state(&self) -> Result<BTreeMap<String, Stamp>, HandleError> {
        let Some(notebook) = self.notebook else { return Ok(BTreeMap::new()) };
        let state = self.store.index_state(self.workspace, notebook).await.map_err(handle_error)?;
        let stamp = |(size, modified)| Stamp { size, modified: Time::from_millis(modified) };
        Ok(state.into_iter().map(|(path, known)| (path, stamp(known))).collect())
    }

    async fn put(&self, files: Vec<IndexedFile>) -> Result<(), HandleError> {
        let Some(notebook) = self.notebook else { return Ok(()) };
        let rows = files
            .into_iter()
            .map(|file| row::IndexedFile {
                path: file.path,
                size: file.stamp.size,
                modified: file.stamp.modified.millis(),
                text: file.text,
            })
            .collect();
        self.store.index_put(self.workspace, notebook, rows).await.map_err(handle_error)
    }

    async fn remove(&self, paths: Vec<String>) -> Result<(), HandleError> {
        let Some(notebook) = self.notebook else { return Ok(()) };
        self.store.index_remove(self.workspace, notebook, paths).await.map_err(handle_error)
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, HandleError> {
        let Some(notebook) = self.notebook else { return Ok(Vec::new()) };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let hits = self.store.search(self.workspace, notebook, query, limit).await.map_err(handle_error)?;
        Ok(hits.into_iter().map(|hit| Hit { path: hit.path, snippet: hit.snippet }).collect())
    }
}

/// The index of a notebook as a tool sees it.
pub(crate) fn index(store: &Store, workspace: WorkspaceId, notebook: Option<NotebookId>) -> Arc<dyn IndexHandle> {
    Arc::new(NotebookIndex { store: store.clone(), workspace, notebook })
}
