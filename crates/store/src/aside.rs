//! What is kept beside the database and is as secret as what is in it: sealed under the tenant's key, bound to its name.

use adjutant_core::id::WorkspaceId;

use crate::seal::{Place, Scope};
use crate::{Store, StoreError};

impl Store {
    /// Seals bytes that are kept elsewhere under this name.
    ///
    /// # Errors
    /// Those of the database, if the tenant's key was not used before.
    pub async fn seal_aside(&self, workspace: WorkspaceId, name: &str, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        let sql = sql!(self, memory => Ok(plain.to_vec()));
        sql.sealer(Scope::Workspace(workspace)).await?.seal(place(name), plain)
    }

    /// Opens bytes that were sealed under this name.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when they were not, and those of the database.
    pub async fn open_aside(&self, workspace: WorkspaceId, name: &str, sealed: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        let sql = sql!(self, memory => Ok(sealed));
        sql.sealer(Scope::Workspace(workspace)).await?.open(place(name), sealed)
    }
}

const fn place(name: &str) -> Place<'_> {
    Place::Column { table: "aside", column: "bytes", id: name }
}
