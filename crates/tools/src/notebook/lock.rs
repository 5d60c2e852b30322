//! Keeping two changes of one file apart. A file is known by the folder it lies in and its name, so that two notebooks that
//! share a folder share the lock as well.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::FileError;

/// How many files can be changed side by side. Two files that share a lock only wait for each other.
const SLOTS: usize = 64;

static LOCKS: [Mutex<()>; SLOTS] = [const { Mutex::new(()) }; SLOTS];

/// Keeps other changes of this entry away until the guard is dropped. One change holds one lock, so none can wait in a ring.
pub(super) fn hold(folder: &OwnedFd, name: &str) -> Result<MutexGuard<'static, ()>, FileError> {
    let stat = rustix::fs::fstat(folder)?;
    let mut hasher = DefaultHasher::new();
    (stat.st_dev, stat.st_ino, name).hash(&mut hasher);
    let slot = usize::try_from(hasher.finish() % (SLOTS as u64)).unwrap_or(0);
    // The lock guards no data of ours, so a panic of its last holder spoils nothing.
    Ok(LOCKS[slot].lock().unwrap_or_else(PoisonError::into_inner))
}
