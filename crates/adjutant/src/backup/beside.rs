//! Where a backup is put back before it takes its place: a folder beside the data directory, for its owner alone. It may hold the
//! master key, so what a process that died has left of one is swept by the next.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::folder::make;
use super::write::sync_folder;
use crate::failure::Failure;
use crate::instance::unusable;

/// What stands between the name of the data directory and the number of the process.
const RESTORING: &str = ".restoring-";
/// A file that says of a data directory that its database is not whole yet.
const UNFINISHED: &str = ".restoring";

/// A folder beside the one that shall be, gone unless it takes its place.
pub(super) struct Beside {
    pub(super) path: PathBuf,
    /// Locked while its process lives.
    _lock: File,
}

impl Beside {
    pub(super) fn make(data: &Path) -> Result<Self, Failure> {
        for left in left_beside(data) {
            std::fs::remove_dir_all(&left).map_err(|error| unusable(&left, &error))?;
        }
        let mut name = data.file_name().unwrap_or_default().to_owned();
        name.push(format!("{RESTORING}{}", std::process::id()));
        let path = data.with_file_name(name);
        // The folder itself must be new: one that somebody else put there would see everything.
        let made = path.parent().map_or(Ok(()), make).and_then(|()| DirBuilder::new().mode(0o700).create(&path));
        let lock = made.and_then(|()| File::open(&path)).map_err(|error| unusable(&path, &error))?;
        // Where the file system knows no locks, nothing is swept either.
        let _ = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive);
        Ok(Self { path, _lock: lock })
    }

    /// Says that the database of what is here is not whole yet.
    pub(super) fn mark(&self) -> Result<(), Failure> {
        let path = self.path.join(UNFINISHED);
        let marked = File::create(&path).and_then(|file| file.sync_all());
        marked.and_then(|()| sync_folder(&self.path)).map_err(|error| unusable(&path, &error))
    }

    pub(super) fn take_place(self, data: &Path) -> Result<(), Failure> {
        let freed = if is_unfinished(data) { std::fs::remove_dir_all(data) } else { Ok(()) };
        // Over an empty folder, or where nothing is; over anything else the system refuses.
        let done = freed.and_then(|()| std::fs::rename(&self.path, data)).and_then(|()| sync_folder(data));
        done.map_err(|error| unusable(data, &error))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After it took its place there is nothing here.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Whether a data directory was put there by a restore that did not come to its end.
pub(super) fn is_unfinished(data: &Path) -> bool {
    data.join(UNFINISHED).is_file()
}

/// A data directory whose database is whole: it is nobody's to replace any more.
pub(crate) fn finished(data: &Path) -> std::io::Result<()> {
    // What is read-only says so also of what is not there.
    if !is_unfinished(data) {
        return Ok(());
    }
    match std::fs::remove_file(data.join(UNFINISHED)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The folders that processes have left which died while they put a backup back.
pub(crate) fn left_beside(data: &Path) -> Vec<PathBuf> {
    let (Some(name), Some(parent)) = (data.file_name().and_then(|name| name.to_str()), data.parent()) else {
        return Vec::new();
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let is_one = |found: &str| {
        let number = found.strip_prefix(name).and_then(|rest| rest.strip_prefix(RESTORING));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_one)).map(|entry| entry.path());
    named.filter(|path| is_abandoned(path)).collect()
}

/// Whether nobody works there any more. A link leads elsewhere, and is not ours.
fn is_abandoned(path: &Path) -> bool {
    let is_folder = path.symlink_metadata().is_ok_and(|about| about.is_dir());
    let locked = |folder: File| rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive);
    is_folder && File::open(path).is_ok_and(|folder| locked(folder).is_ok())
}
