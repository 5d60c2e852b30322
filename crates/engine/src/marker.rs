//! Whether the notebooks of this node are those of the instance. Nodes of one database share one folder; one that has another, or
//! whose shared folder is not mounted, would find nothing there and call every run a failure.

use std::path::PathBuf;
use std::time::Duration;

use crate::engine::Engine;
use crate::error::EngineError;

/// The file that says whose notebooks they are, beside them.
const FILE: &str = ".instance";
/// What it has to say, in the database.
const KEY: &str = "notebooks";
/// How often, and how long apart, a node looks for the word of one that begins with it: together less than a lease.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(250);

impl Engine {
    fn marker(&self) -> PathBuf {
        self.notebooks_folder().join(FILE)
    }

    /// Begins this node's life among the others, if it has the notebooks of the instance.
    ///
    /// # Errors
    /// When it has not, or the store cannot be reached.
    pub(crate) async fn take_place(&self) -> Result<(), EngineError> {
        // Those who begin at the same time have to see each other before they look.
        self.join().await?;
        let recognised = self.recognise_notebooks().await;
        if recognised.is_err() {
            let _ = self.store().leave(self.node()).await;
        } else if let Err(error) = self.sweep_folders().await {
            tracing::warn!(%error, "folders of notebooks that were being taken away are as they were");
        }
        recognised
    }

    /// Makes sure that this node has the notebooks of the instance, where others may have them too. A folder without a word is the
    /// right one for the first node there ever was, and later only while nobody else is there to know better.
    async fn recognise_notebooks(&self) -> Result<(), EngineError> {
        if !self.store().is_shared() {
            return Ok(());
        }
        let fresh: [u8; 16] = self.env().random();
        let fresh: String = fresh.iter().map(|byte| format!("{byte:02x}")).collect();
        let wanted = self.store().meta_set_if_absent(KEY, fresh.as_bytes()).await?;
        let refused = |why: String| {
            let name = self.notebooks_folder().display().to_string();
            Err(EngineError::Notebook { name, why })
        };
        for _ in 0..LOOKS {
            match tokio::fs::read(self.marker()).await {
                Ok(found) if found == wanted => return Ok(()),
                Ok(_) => {
                    return refused(
                        "these are the notebooks of another instance; all nodes share one folder".to_owned(),
                    );
                }
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return refused(error.to_string()),
                Err(_) => {}
            }
            let is_first = wanted == fresh.as_bytes();
            if is_first || !self.store().has_others(self.node()).await? {
                return match self.mark(&wanted).await {
                    Ok(()) => Ok(()),
                    Err(error) => refused(error.to_string()),
                };
            }
            // Whoever is first may be about to write it.
            tokio::time::sleep(LOOK).await;
        }
        refused("other nodes have the notebooks elsewhere; all nodes share one folder".to_owned())
    }

    /// Writes whose notebooks these are; whoever looks meanwhile finds all of it or nothing.
    async fn mark(&self, wanted: &[u8]) -> std::io::Result<()> {
        tokio::fs::create_dir_all(self.notebooks_folder()).await?;
        let part = self.notebooks_folder().join(format!("{FILE}.{}", self.node()));
        tokio::fs::write(&part, wanted).await?;
        tokio::fs::rename(&part, self.marker()).await
    }

    /// Whether the notebooks are there now. A file system may go away.
    pub async fn has_notebooks(&self) -> bool {
        !self.store().is_shared() || tokio::fs::try_exists(self.marker()).await.unwrap_or(false)
    }
}
