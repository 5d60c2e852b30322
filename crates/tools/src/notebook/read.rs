//! Looking at files and folders: always at the handle that was opened, never at the name a second time (F3).

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::Kind;
use adjutant_core::limits;
use adjutant_core::time::Time;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat};

use super::open::is_temporary;
use super::{Entry, FileContent, FileError, Listing, Notebook, State};

impl Notebook {
    /// Reads a file.
    ///
    /// # Errors
    /// Fails when there is no regular file of at most [`limits::FILE_BYTES`] that can be read.
    pub fn read(&self, path: &NotePath) -> Result<FileContent, FileError> {
        self.read_at_most(path, limits::FILE_BYTES)
    }

    /// Reads a file of at most `limit` bytes.
    ///
    /// # Errors
    /// Fails when there is no regular file of that size that can be read.
    pub fn read_at_most(&self, path: &NotePath, limit: u64) -> Result<FileContent, FileError> {
        let handle = self.confinement.open(self.root.as_fd(), path, OFlags::RDONLY)?;
        content_of(handle, limit)
    }

    /// What lies at a path: nothing, a file with its content, or a folder.
    ///
    /// # Errors
    /// Fails when something else lies there, or it cannot be read.
    pub fn state(&self, path: &NotePath) -> Result<State, FileError> {
        self.state_at_most(path, limits::FILE_BYTES)
    }

    /// The same, with a file of at most `limit` bytes.
    ///
    /// # Errors
    /// Fails when something else lies there, or it cannot be read.
    pub fn state_at_most(&self, path: &NotePath, limit: u64) -> Result<State, FileError> {
        match self.read_at_most(path, limit) {
            Ok(content) => Ok(State::File(content)),
            Err(FileError::IsFolder) => Ok(State::Folder),
            Err(FileError::NotFound) => Ok(State::Absent),
            Err(error) => Err(error),
        }
    }

    /// Size, time and kind of what lies at a path, without reading it.
    ///
    /// # Errors
    /// Fails when nothing is there, or neither a file nor a folder.
    pub fn metadata(&self, path: &NotePath) -> Result<Entry, FileError> {
        let handle = self.confinement.open(self.root.as_fd(), path, OFlags::PATH)?;
        let entry = entry_of(path.clone(), &rustix::fs::fstat(&handle)?);
        match entry.kind {
            Kind::File | Kind::Dir => Ok(entry),
            Kind::Other => Err(FileError::NotAFile),
        }
    }

    /// What a folder holds. Entries that no path can name, links, pipes and devices are left out and counted.
    ///
    /// # Errors
    /// Fails when there is no folder that can be read.
    pub fn list(&self, path: &NotePath) -> Result<Listing, FileError> {
        self.list_at_most(path, limits::WALK_ENTRIES)
    }

    pub(super) fn list_at_most(&self, path: &NotePath, most: usize) -> Result<Listing, FileError> {
        let folder = self.folder(path)?;
        let mut listing = Listing::default();
        for found in Dir::read_from(&folder)? {
            let found = found?;
            let name = found.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || name.to_str().is_ok_and(is_temporary) {
                continue;
            }
            if listing.entries.len() + listing.skipped >= most {
                listing.cut = true;
                break;
            }
            match name.to_str().ok().and_then(|name| path.child(name).ok()) {
                Some(child) => match look(folder.as_fd(), child)? {
                    Some(entry) => listing.entries.push(entry),
                    None => listing.skipped += 1,
                },
                None => listing.skipped += 1,
            }
        }
        listing.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(listing)
    }

    /// A handle on a folder that can be listed, written into and synced.
    pub(super) fn folder(&self, path: &NotePath) -> Result<OwnedFd, FileError> {
        self.confinement.open(self.root.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY)
    }
}

/// What a name in an open folder is, links not followed; none for what is never opened or has just gone away.
fn look(folder: BorrowedFd<'_>, path: NotePath) -> Result<Option<Entry>, FileError> {
    let Some(name) = path.name() else { return Ok(None) };
    let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let entry = entry_of(path, &stat);
    Ok(match entry.kind {
        Kind::File | Kind::Dir => Some(entry),
        Kind::Other => None,
    })
}

/// The content of an open handle, once it is known to be a regular file of bearable size.
pub(super) fn content_of(handle: OwnedFd, limit: u64) -> Result<FileContent, FileError> {
    let stat = rustix::fs::fstat(&handle)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(FileError::IsFolder),
        FileType::Symlink => return Err(FileError::Symlink),
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            return Err(FileError::NotAFile);
        }
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > limit {
        return Err(FileError::TooLarge { size, limit });
    }
    // The file may grow while it is read: one byte more than allowed tells.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    File::from(handle).take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    let size = bytes.len() as u64;
    if size > limit {
        return Err(FileError::TooLarge { size, limit });
    }
    Ok(FileContent { hash: Hash::of(&bytes), bytes, modified: modified_of(&stat) })
}

fn entry_of(path: NotePath, stat: &Stat) -> Entry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Dir,
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Kind::Other,
    };
    let size = match kind {
        Kind::File => u64::try_from(stat.st_size).unwrap_or(0),
        Kind::Dir | Kind::Other => 0,
    };
    Entry { path, kind, size, modified: modified_of(stat) }
}

fn modified_of(stat: &Stat) -> Time {
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Time::from_millis(stat.st_mtime.saturating_mul(1000).saturating_add(nanos / 1_000_000))
}
