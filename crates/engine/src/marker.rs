//! Whether the notebooks of this node are those of the instance. Nodes of one database share one folder; one that has another, or
//! whose shared folder is not mounted, would find nothing there and call every run a failure.

use std::path::PathBuf;

use crate::engine::Engine;
use crate::error::EngineError;

/// The file that says whose notebooks they are, beside them.
const FILE: &str = ".instance";
/// What it has to say, in the database.
const KEY: &str = "notebooks";

impl Engine {
    fn marker(&self) -> PathBuf {
        self.notebooks_folder().join(FILE)
    }

    /// Makes sure that this node has the notebooks of the instance, where others may have them too. A folder without a word is
    /// taken for the right one only while nobody else is there to know better.
    pub(crate) async fn recognise_notebooks(&self) -> Result<(), EngineError> {
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
        match tokio::fs::read(self.marker()).await {
            Ok(found) if found == wanted => Ok(()),
            Ok(_) => refused("these are the notebooks of another instance; all nodes share one folder".to_owned()),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => refused(error.to_string()),
            Err(_) if self.store().has_others(self.node()).await? => {
                refused("other nodes have the notebooks elsewhere; all nodes share one folder".to_owned())
            }
            Err(_) => {
                let made = tokio::fs::create_dir_all(self.notebooks_folder()).await;
                match made.and(tokio::fs::write(self.marker(), &wanted).await) {
                    Ok(()) => Ok(()),
                    Err(error) => refused(error.to_string()),
                }
            }
        }
    }

    /// Whether the notebooks are there now. A file system may go away.
    pub async fn has_notebooks(&self) -> bool {
        !self.store().is_shared() || tokio::fs::try_exists(self.marker()).await.unwrap_or(false)
    }
}
