//! The folders of managed notebooks that are taken away. A folder is put aside before its row goes and removed after it: whatever
//! happens in between, the next start knows by the row whether it is to come back or to go.

use adjutant_core::id::{NotebookId, WorkspaceId};
use adjutant_store::row::NotebookRow;

use crate::engine::Engine;
use crate::error::EngineError;

/// What the name of a folder ends in that was put aside.
const ASIDE: &str = ".removed";

/// Folders that are put aside. They come back unless the notebooks are gone.
pub(super) struct Aside {
    engine: Engine,
    ids: Vec<NotebookId>,
}

impl Aside {
    /// The notebooks are gone, and so are their folders.
    pub(super) fn remove(mut self) {
        for id in std::mem::take(&mut self.ids) {
            if let Err(error) = self.engine.remove_folder(id) {
                tracing::error!(notebook = %id, %error, "the folder of a notebook that is gone could not be taken away");
            }
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        for id in &self.ids {
            if let Err(error) = self.engine.put_back(*id) {
                tracing::error!(notebook = %id, %error, "the folder of a notebook could not be put back");
            }
        }
    }
}

impl Engine {
    /// Puts the folders of these notebooks aside, as far as they are ours.
    pub(super) fn put_aside(&self, rows: &[NotebookRow]) -> Result<Aside, EngineError> {
        let mut aside = Aside { engine: self.clone(), ids: Vec::new() };
        for row in rows.iter().filter(|row| row.linked.is_none()) {
            let moved = found(std::fs::rename(self.notebook_folder(row.id), self.aside(row.id)));
            moved.map_err(|why| EngineError::Notebook { name: row.slug.clone(), why: why.to_string() })?;
            aside.ids.push(row.id);
        }
        Ok(aside)
    }

    fn aside(&self, id: NotebookId) -> std::path::PathBuf {
        self.notebooks_folder().join(format!("{id}{ASIDE}"))
    }

    fn put_back(&self, id: NotebookId) -> std::io::Result<()> {
        found(std::fs::rename(self.aside(id), self.notebook_folder(id)))
    }

    /// Takes the folder of a managed notebook away that is gone, with all that is in it. What it links to elsewhere stays. Another
    /// node that has just started may have put it back.
    fn remove_folder(&self, id: NotebookId) -> std::io::Result<()> {
        found(std::fs::remove_dir_all(self.aside(id)))?;
        found(std::fs::remove_dir_all(self.notebook_folder(id)))
    }

    /// Brings to its end what was being taken away when a process ended: folders that were put aside go or come back.
    pub(crate) async fn sweep_folders(&self) -> Result<(), EngineError> {
        let (_, aside) = self.folders()?;
        if aside.is_empty() {
            return Ok(());
        }
        let workspaces: Vec<_> = self.store().workspaces().await?.iter().map(|row| row.id).collect();
        for id in aside {
            let there = self.is_notebook(&workspaces, id).await?;
            let done = if there { self.put_back(id) } else { self.remove_folder(id) };
            done.map_err(|why| EngineError::Notebook { name: id.to_string(), why: why.to_string() })?;
        }
        Ok(())
    }

    /// Brings to its end what was being taken away when a process ended: what is left of workspaces that are gone.
    pub(crate) async fn sweep_workspaces(&self) -> Result<(), EngineError> {
        for gone in self.store().workspaces().await?.iter().filter(|row| row.is_closed()) {
            self.sweep_workspace(gone.id).await?;
        }
        Ok(())
    }

    /// Takes away what is left of a workspace that is gone, and forgets what is kept ready of it here.
    pub(super) async fn sweep_workspace(&self, workspace: WorkspaceId) -> Result<(), EngineError> {
        self.forget_workspace(workspace);
        Ok(self.store().sweep_workspace(workspace).await?)
    }

    /// Folders among the managed notebooks that belong to none of them, by their names: left over from one that was taken away,
    /// or from another database.
    ///
    /// # Errors
    /// When the store cannot be read, or the folders cannot be looked at.
    pub async fn stray_folders(&self) -> Result<Vec<String>, EngineError> {
        let workspaces: Vec<_> = self.store().workspaces().await?.iter().map(|row| row.id).collect();
        let (folders, aside) = self.folders()?;
        let mut stray: Vec<_> = aside.iter().map(|id| format!("{id}{ASIDE}")).collect();
        for id in folders {
            if !self.is_notebook(&workspaces, id).await? {
                stray.push(id.to_string());
            }
        }
        Ok(stray)
    }

    async fn is_notebook(&self, workspaces: &[WorkspaceId], id: NotebookId) -> Result<bool, EngineError> {
        for workspace in workspaces {
            if self.store().notebook(*workspace, id).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The folders of managed notebooks, and those that are put aside.
    fn folders(&self) -> Result<(Vec<NotebookId>, Vec<NotebookId>), EngineError> {
        let (mut folders, mut aside) = (Vec::new(), Vec::new());
        let failed = |why: std::io::Error| {
            let name = self.notebooks_folder().display().to_string();
            EngineError::Notebook { name, why: why.to_string() }
        };
        let entries = match std::fs::read_dir(self.notebooks_folder()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((folders, aside)),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let Some(name) = name.to_str() else { continue };
            let (name, list) = match name.strip_suffix(ASIDE) {
                Some(name) => (name, &mut aside),
                None => (name, &mut folders),
            };
            list.extend(name.parse::<NotebookId>().ok());
        }
        Ok((folders, aside))
    }
}

/// What is not there need not be moved or removed.
fn found(done: std::io::Result<()>) -> std::io::Result<()> {
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
