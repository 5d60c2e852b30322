//! Keeping two changes of one file apart. Within this process a file is known by the folder it lies in and its name, so that two
//! notebooks that share a folder share the lock as well. Between nodes it is the folder that is locked.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{FileError, Others};

/// How many files can be changed side by side. Two files that share a lock only wait for each other.
const SLOTS: usize = 64;

static LOCKS: [Mutex<()>; SLOTS] = [const { Mutex::new(()) }; SLOTS];

/// How long a change waits for those of other nodes: each holds the lock for one file, so that a longer wait is for a node that
/// was stopped in the middle of one.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks whether they are done.
const PAUSE: Duration = Duration::from_millis(1);

/// Keeps other changes of this entry away until the guard is dropped, and those of other nodes until the folder is closed, which
/// was opened for this change alone. One change holds one lock of each kind, so none can wait in a ring.
pub(super) fn hold(folder: &OwnedFd, name: &str, others: Others) -> Result<MutexGuard<'static, ()>, FileError> {
    let stat = rustix::fs::fstat(folder)?;
    let mut hasher = DefaultHasher::new();
    (stat.st_dev, stat.st_ino, name).hash(&mut hasher);
    let slot = usize::try_from(hasher.finish() % (SLOTS as u64)).unwrap_or(0);
    // The lock guards no data of ours, so a panic of its last holder spoils nothing.
    let guard = LOCKS[slot].lock().unwrap_or_else(PoisonError::into_inner);
    match others {
        Others::None => {}
        Others::Nodes => hold_folder(folder)?,
    }
    Ok(guard)
}

fn hold_folder(folder: &OwnedFd) -> Result<(), FileError> {
    let begun = Instant::now();
    loop {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return Err(Errno::BUSY.into()),
            // A file system that cannot lock a folder has only the look right before the change.
            Ok(()) | Err(_) => return Ok(()),
        }
    }
}
