//! Opening below a folder handle without ever following a link: by `openat2` where the kernel has it, else one component at
//! a time. There is no third way: a path is never joined to a host path and opened as text.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use adjutant_core::guard::path::NotePath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{FileError, TEMP_PREFIX};

/// How paths are confined on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// By the kernel, in one call (`openat2`).
    Kernel,
    /// By opening one component after the other without following links; for kernels that lack the call.
    Walk,
}

const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// The kernel gives up with EAGAIN when something is renamed under its feet; this often we ask again.
const RETRIES: usize = 64;

/// What every handle is opened with: it never passes to a child process, never blocks on a pipe and never becomes a
/// terminal. A handle that only names a place (`O_PATH`) opens nothing, and the kernel refuses the other flags with it.
fn guarded(flags: OFlags) -> OFlags {
    if flags.contains(OFlags::PATH) {
        return flags | OFlags::CLOEXEC;
    }
    flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY
}

impl Confinement {
    /// Finds out what this kernel offers. Some sandboxes answer an unknown call with EPERM instead of ENOSYS.
    pub(super) fn detect(root: BorrowedFd<'_>) -> Result<Self, FileError> {
        match kernel_open(root, ".", OFlags::PATH | OFlags::DIRECTORY) {
            Ok(_) => Ok(Self::Kernel),
            Err(Errno::NOSYS | Errno::PERM) => Ok(Self::Walk),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens what lies at `path` below `root`. The caller checks with `fstat` what it got.
    pub(super) fn open(self, root: BorrowedFd<'_>, path: &NotePath, flags: OFlags) -> Result<OwnedFd, FileError> {
        if path.segments().any(is_temporary) {
            return Err(FileError::NotFound);
        }
        match self {
            Self::Kernel => Ok(kernel_open(root, path.relative(), flags)?),
            Self::Walk => walk_open(root, path, flags),
        }
    }

    /// Opens one entry of a folder that is already open.
    pub(super) fn open_entry(self, folder: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, FileError> {
        match self {
            Self::Kernel => Ok(kernel_open(folder, name, flags)?),
            Self::Walk => step(folder, name, flags),
        }
    }
}

/// Whether the name belongs to a half-written file of ours: such files do not exist for anyone else.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMP_PREFIX)
}

fn kernel_open(root: BorrowedFd<'_>, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..RETRIES {
        match rustix::fs::openat2(root, relative, guarded(flags), Mode::empty(), RESOLVE) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

fn walk_open(root: BorrowedFd<'_>, path: &NotePath, flags: OFlags) -> Result<OwnedFd, FileError> {
    let Some(name) = path.name() else {
        return step(root, ".", flags);
    };
    let mut folder: Option<OwnedFd> = None;
    let depth = path.segments().count();
    for segment in path.segments().take(depth - 1) {
        let at = folder.as_ref().map_or(root, AsFd::as_fd);
        folder = Some(step(at, segment, OFlags::PATH | OFlags::DIRECTORY)?);
    }
    step(folder.as_ref().map_or(root, AsFd::as_fd), name, flags)
}

/// Opens one component. `O_NOFOLLOW` reports a link in three ways, depending on the other flags; all become one error.
fn step(folder: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, FileError> {
    let opened = loop {
        match rustix::fs::openat(folder, name, guarded(flags) | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::INTR) => {}
            result => break result,
        }
    };
    match opened {
        Ok(handle) if flags.contains(OFlags::PATH) => {
            let stat = rustix::fs::fstat(&handle)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => Err(FileError::Symlink),
                _ => Ok(handle),
            }
        }
        Ok(handle) => Ok(handle),
        Err(Errno::NOTDIR) if is_link(folder, name) => Err(FileError::Symlink),
        Err(errno) => Err(errno.into()),
    }
}

/// Only words the refusal: nothing is opened by what this answers.
fn is_link(folder: BorrowedFd<'_>, name: &str) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}
