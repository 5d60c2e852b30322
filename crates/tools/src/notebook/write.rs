//! Changing files: a new content is written beside the old one, synced, and put in place in one step, so that a reader or a
//! crash sees the old file or the new one, never half of either (F5).

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use adjutant_core::limits;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::open::is_temporary;
use super::read::content_of;
use super::{FileContent, FileError, Notebook, folder_hash, lock};

/// How often another name is tried for a half-written file before giving up.
const NAME_ATTEMPTS: usize = 16;

/// A half-written file; it is removed unless it was put in place.
struct Temp<'a> {
    folder: BorrowedFd<'a>,
    name: String,
    file: File,
    placed: bool,
}

/// Which half-written files are removed.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// All of them.
    Whenever,
    /// Those whose process is gone.
    ByTheDead,
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.placed {
            // A failure leaves an invisible file behind, which the next sweep removes.
            let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

impl Notebook {
    /// Creates a file that does not exist, and the folders it lies in. Never overwrites.
    ///
    /// # Errors
    /// Fails, and leaves no trace, when something is there already or the file cannot be made.
    pub fn create(&self, path: &NotePath, bytes: &[u8]) -> Result<(), FileError> {
        let (parent, name) = split(path)?;
        fits(bytes)?;
        let mut made = Vec::new();
        let created = self.make_folders(&parent, &mut made).and_then(|folder| {
            let _lock = lock::hold(&folder, name, self.others)?;
            if self.confinement.open_entry(folder.as_fd(), name, OFlags::PATH).is_ok() {
                return Err(FileError::Exists);
            }
            let mut temp = write_temp(folder.as_fd(), bytes, None)?;
            self.fence.pass()?;
            place_new(&mut temp, name)?;
            confirm(&folder)
        });
        if created.as_ref().is_err_and(|error| !matches!(error, FileError::Unconfirmed(_))) {
            self.unmake_folders(&made);
        }
        created
    }

    /// Replaces the content of a file, if it still has the expected one, and gives back what it was. The rights of the file
    /// stay; where the server may, its owner too.
    ///
    /// # Errors
    /// Fails, and changes nothing, when the file has another content or cannot be written.
    pub fn replace(&self, path: &NotePath, bytes: &[u8], expected: Hash) -> Result<FileContent, FileError> {
        let (parent, name) = split(path)?;
        fits(bytes)?;
        let folder = self.folder(&parent)?;
        let _lock = lock::hold(&folder, name, self.others)?;
        let handle = self.confinement.open_entry(folder.as_fd(), name, OFlags::RDONLY)?;
        let stat = rustix::fs::fstat(&handle)?;
        expect(&content_of(handle, limits::KEPT_FILE_BYTES)?, expected)?;
        let mut temp = write_temp(folder.as_fd(), bytes, Some(&stat))?;
        // The look that counts comes last: only the rename lies between it and the change.
        let handle = self.confinement.open_entry(folder.as_fd(), name, OFlags::RDONLY)?;
        let before = content_of(handle, limits::KEPT_FILE_BYTES)?;
        expect(&before, expected)?;
        self.fence.pass()?;
        rustix::fs::renameat(folder.as_fd(), &temp.name, folder.as_fd(), name)?;
        temp.placed = true;
        confirm(&folder)?;
        Ok(before)
    }

    /// Deletes a file, if it still has the expected content, and gives back what it was.
    ///
    /// # Errors
    /// Fails, and changes nothing, when the file has another content or cannot be deleted.
    pub fn delete(&self, path: &NotePath, expected: Hash) -> Result<FileContent, FileError> {
        let (parent, name) = split(path)?;
        let folder = self.folder(&parent)?;
        let _lock = lock::hold(&folder, name, self.others)?;
        let handle = self.confinement.open_entry(folder.as_fd(), name, OFlags::RDONLY)?;
        let before = content_of(handle, limits::KEPT_FILE_BYTES)?;
        expect(&before, expected)?;
        self.fence.pass()?;
        rustix::fs::unlinkat(folder.as_fd(), name, AtFlags::empty())?;
        confirm(&folder)?;
        Ok(before)
    }

    /// Creates an empty folder that does not exist, and the folders it lies in.
    ///
    /// # Errors
    /// Fails when something is there already or the folder cannot be made.
    pub fn create_folder(&self, path: &NotePath) -> Result<(), FileError> {
        let (parent, name) = split(path)?;
        let mut made = Vec::new();
        let created = self.make_folders(&parent, &mut made).and_then(|folder| {
            let _lock = lock::hold(&folder, name, self.others)?;
            self.fence.pass()?;
            rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777))?;
            confirm(&folder)
        });
        if created.as_ref().is_err_and(|error| !matches!(error, FileError::Unconfirmed(_))) {
            self.unmake_folders(&made);
        }
        created
    }

    /// Deletes an empty folder.
    ///
    /// # Errors
    /// Fails, and changes nothing, when it is not a folder or holds something.
    pub fn delete_folder(&self, path: &NotePath) -> Result<(), FileError> {
        let (parent, name) = split(path)?;
        let folder = self.folder(&parent)?;
        let _lock = lock::hold(&folder, name, self.others)?;
        self.fence.pass()?;
        match rustix::fs::unlinkat(folder.as_fd(), name, AtFlags::REMOVEDIR) {
            // Leftovers of a crash that nobody can see must not keep a folder alive.
            Err(Errno::NOTEMPTY) if self.list(path)?.is_bare() => {
                self.remove_temps(path, Left::Whenever)?;
                rustix::fs::unlinkat(folder.as_fd(), name, AtFlags::REMOVEDIR)?;
            }
            result => result?,
        }
        confirm(&folder)
    }

    /// Removes half-written files of processes that are gone from the folder this path lies in. Gives their number.
    ///
    /// # Errors
    /// Fails when the folder cannot be read.
    pub fn sweep_beside(&self, path: &NotePath) -> Result<usize, FileError> {
        let (parent, _) = split(path)?;
        self.remove_temps(&parent, Left::ByTheDead)
    }

    fn remove_temps(&self, path: &NotePath, left: Left) -> Result<usize, FileError> {
        let folder = self.folder(path)?;
        let mut removed = 0;
        for found in rustix::fs::Dir::read_from(&folder)? {
            let found = found?;
            let Some(name) = found.file_name().to_str().ok().filter(|name| is_temporary(name)) else { continue };
            let handle = match left {
                Left::Whenever => None,
                // Held until the name is gone, so that its maker cannot take the file for its own in between.
                Left::ByTheDead => match abandoned(folder.as_fd(), name) {
                    Some(handle) => Some(handle),
                    None => continue,
                },
            };
            let gone = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
            drop(handle);
            if gone.is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Opens a folder, making each missing one on the way by the handle of the one above; names what it made.
    fn make_folders(&self, path: &NotePath, made: &mut Vec<NotePath>) -> Result<OwnedFd, FileError> {
        let open = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut folder = self.folder(&NotePath::root())?;
        let mut at = NotePath::root();
        for segment in path.segments() {
            at = at.child(segment).map_err(|_| FileError::Reserved)?;
            folder = match self.confinement.open_entry(folder.as_fd(), segment, open) {
                Err(FileError::NotFound) => {
                    match rustix::fs::mkdirat(&folder, segment, Mode::from_raw_mode(0o777)) {
                        Ok(()) => made.push(at.clone()),
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                    rustix::fs::fsync(&folder)?;
                    self.confinement.open_entry(folder.as_fd(), segment, open)?
                }
                opened => opened?,
            };
        }
        Ok(folder)
    }

    /// Takes back folders made for a file that was not created. One that is in use by now is not empty and stays.
    fn unmake_folders(&self, made: &[NotePath]) {
        for path in made.iter().rev() {
            if let Ok((parent, name)) = split(path)
                && let Ok(folder) = self.folder(&parent)
            {
                let _ = rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR);
            }
        }
    }
}

/// The folder and the name; the root is never changed (P16), and our own temporary names are nobody's to use.
fn split(path: &NotePath) -> Result<(NotePath, &str), FileError> {
    if path.segments().any(is_temporary) {
        return Err(FileError::Reserved);
    }
    path.parent().zip(path.name()).ok_or(FileError::IsFolder)
}

fn fits(bytes: &[u8]) -> Result<(), FileError> {
    let size = bytes.len() as u64;
    if size > limits::KEPT_FILE_BYTES {
        return Err(FileError::TooLarge { size, limit: limits::KEPT_FILE_BYTES });
    }
    Ok(())
}

fn expect(content: &FileContent, expected: Hash) -> Result<(), FileError> {
    if content.hash == expected && expected != folder_hash() { Ok(()) } else { Err(FileError::Changed) }
}

/// Writes a synced file under a name of our own, with the rights of the file it will replace.
fn write_temp<'a>(folder: BorrowedFd<'a>, bytes: &[u8], like: Option<&Stat>) -> Result<Temp<'a>, FileError> {
    let mut temp = match like {
        // The rights come before the content: nobody reads the new text who could not read the old.
        Some(like) => {
            let temp = new_temp(folder, Mode::from_raw_mode(0o600))?;
            take_rights(&temp.file, like)?;
            temp
        }
        None => new_temp(folder, Mode::from_raw_mode(0o666))?,
    };
    temp.file.write_all(bytes)?;
    temp.file.sync_all()?;
    Ok(temp)
}

fn new_temp(folder: BorrowedFd<'_>, mode: Mode) -> Result<Temp<'_>, FileError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..NAME_ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{:x}-{number:x}", super::TEMP_PREFIX, std::process::id());
        match rustix::fs::openat(folder, &name, flags, mode) {
            Ok(handle) if is_ours(&handle)? => {
                return Ok(Temp { folder, name, file: File::from(handle), placed: false });
            }
            Ok(_) => {}
            // Another node on the same disk may have the same process number.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Marks a half-written file as that of a living process, which a lock is as long as that process lives. It is not ours if
/// somebody took it for abandoned before that.
fn is_ours(handle: &OwnedFd) -> Result<bool, FileError> {
    match rustix::fs::flock(handle, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        // A file system without locks is not swept by them either.
        Ok(()) | Err(_) => Ok(rustix::fs::fstat(handle)?.st_nlink > 0),
    }
}

/// A half-written file whose process is gone, locked by us from now on.
fn abandoned(folder: BorrowedFd<'_>, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(handle)
}

/// Gives the new file the old one's rights and, where the server may, its owner. Set-user bits do not survive a write.
fn take_rights(file: &File, like: &Stat) -> Result<(), FileError> {
    let mine = rustix::fs::fstat(file)?;
    if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid) {
        let (owner, group) = (rustix::fs::Uid::from_raw(like.st_uid), rustix::fs::Gid::from_raw(like.st_gid));
        // Only root may give a file away; for everyone else the writer owns what it wrote.
        let _ = rustix::fs::fchown(file, Some(owner), Some(group));
    }
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(like.st_mode & 0o777))?)
}

/// Gives a half-written file its name, unless the name is taken. Where the file system cannot rename without replacing,
/// a hard link refuses a taken name just the same.
fn place_new(temp: &mut Temp<'_>, name: &str) -> Result<(), FileError> {
    match rustix::fs::renameat_with(temp.folder, &temp.name, temp.folder, name, RenameFlags::NOREPLACE) {
        Ok(()) => {
            temp.placed = true;
            Ok(())
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            Ok(rustix::fs::linkat(temp.folder, &temp.name, temp.folder, name, AtFlags::empty())?)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Makes a change of names in a folder survive a power cut. The change itself is already there.
fn confirm(folder: &OwnedFd) -> Result<(), FileError> {
    rustix::fs::fsync(folder).map_err(FileError::unconfirmed)
}
