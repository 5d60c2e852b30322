//! The confined file layer: the only place that touches the files of a notebook. Everything is reached from one folder
//! handle, no link is followed, and what is checked is the handle that is then used (P8, F2, F3, F5).

mod error;
mod fence;
mod lock;
mod open;
mod read;
mod walk;
mod write;

#[cfg(test)]
mod disk_tests;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::Kind;
use adjutant_core::time::Time;
use rustix::fs::{Mode, OFlags};

pub use adjutant_core::tool::folder_hash;
pub use error::FileError;
pub use fence::Fence;
pub use open::Confinement;
pub use walk::{Visit, Walked};

/// How every half-written file begins; such names are invisible and can be neither read nor made by anyone else.
pub const TEMP_PREFIX: &str = ".adjutant-tmp-";

/// One folder tree, held by a handle on its root.
#[derive(Debug)]
pub struct Notebook {
    root: Arc<OwnedFd>,
    confinement: Confinement,
    fence: Fence,
    others: Others,
}

/// Who else changes these files through this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Nobody but this process.
    None,
    /// Other nodes.
    Nodes,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Its hash.
    pub hash: Hash,
    /// When it was last changed.
    pub modified: Time,
}

impl FileContent {
    /// The content as text.
    ///
    /// # Errors
    /// Fails with [`FileError::NotText`] when it is not UTF-8 or holds a NUL.
    pub fn text(&self) -> Result<&str, FileError> {
        text_of(&self.bytes)
    }
}

/// What is known of an entry without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: NotePath,
    /// File or folder; anything else is [`Kind::Other`].
    pub kind: Kind,
    /// Bytes, of a file.
    pub size: u64,
    /// When it was last changed.
    pub modified: Time,
}

/// What a folder holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Its files and folders, sorted by name.
    pub entries: Vec<Entry>,
    /// How many entries no path can name, or that are neither file nor folder.
    pub skipped: usize,
    /// Whether the folder holds more than one listing looks at.
    pub cut: bool,
}

impl Listing {
    /// Whether nothing but our own half-written files can be in there.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.entries.is_empty() && self.skipped == 0 && !self.cut
    }
}

/// What a place holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Absent,
    /// A file.
    File(FileContent),
    /// A folder.
    Folder,
}

impl State {
    /// The hash a decision is bound to; none where nothing is.
    #[must_use]
    pub fn hash(&self) -> Option<Hash> {
        match self {
            Self::Absent => None,
            Self::File(content) => Some(content.hash),
            Self::Folder => Some(folder_hash()),
        }
    }
}

/// The bytes as text, if they are text.
///
/// # Errors
/// Fails with [`FileError::NotText`] when they are not UTF-8 or hold a NUL.
pub fn text_of(bytes: &[u8]) -> Result<&str, FileError> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) | Err(_) => Err(FileError::NotText),
    }
}

impl Notebook {
    /// Opens a folder as a notebook. The path is the operator's own and may go through links; nothing below it may.
    ///
    /// # Errors
    /// Fails when the folder cannot be opened.
    pub fn open(root: &Path) -> Result<Self, FileError> {
        let root = open_root(root)?;
        let confinement = Confinement::detect(root.as_fd())?;
        Ok(Self::over(root, confinement))
    }

    /// Opens a folder with the confinement that kernels without `openat2` get, so that tests can prove both.
    #[cfg(test)]
    fn open_by_walking(root: &Path) -> Result<Self, FileError> {
        Ok(Self::over(open_root(root)?, Confinement::Walk))
    }

    fn over(root: OwnedFd, confinement: Confinement) -> Self {
        Self { root: Arc::new(root), confinement, fence: Fence::default(), others: Others::None }
    }

    /// The same files, which other nodes change as well.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { others: Others::Nodes, ..self }
    }

    /// The same files, changed only while the fence is open.
    #[must_use]
    pub fn fenced(&self, fence: Fence) -> Self {
        Self { root: Arc::clone(&self.root), confinement: self.confinement, fence, others: self.others }
    }

    /// How paths are confined here, for the report on what is enforced.
    #[must_use]
    pub const fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// Runs a file job where it may block.
    ///
    /// # Errors
    /// Hands on what the job answers.
    pub async fn run<T, F>(self: &Arc<Self>, job: F) -> Result<T, FileError>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T, FileError> + Send + 'static,
    {
        let notebook = Arc::clone(self);
        match tokio::task::spawn_blocking(move || job(&notebook)).await {
            Ok(result) => result,
            Err(_) => Err(FileError::Lost),
        }
    }
}

fn open_root(root: &Path) -> Result<OwnedFd, FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(root, flags, Mode::empty())?)
}
