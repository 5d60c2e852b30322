//! Why the file layer did not do what it was asked, one variant per reaction. No text here ever names a host path.

use rustix::io::Errno;

/// What went wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Nothing is there.
    #[error("there is nothing at this path")]
    NotFound,
    /// A file was expected, a folder is there.
    #[error("this is a folder, not a file")]
    IsFolder,
    /// A folder was expected, a file is there (or lies on the way).
    #[error("a file stands where a folder is needed")]
    NotAFolder,
    /// A pipe, device or socket: never opened.
    #[error("this is neither a file nor a folder (a pipe, a device or a socket) and is not opened")]
    NotAFile,
    /// A symbolic link in some part of the path: never followed.
    #[error("the path goes through a symbolic link, and links are not followed")]
    Symlink,
    /// The path would leave the notebook.
    #[error("the path leads out of the notebook")]
    Escapes,
    /// More bytes than a tool handles.
    #[error("the file has {size} bytes, more than the {limit} that can be handled")]
    TooLarge {
        /// How large it is, as far as it was read.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The bytes are not UTF-8 text.
    #[error("the file is not a text file")]
    NotText,
    /// Something is there already, and nothing is ever overwritten by creating.
    #[error("there is already something at this path")]
    Exists,
    /// The content is not the one that was looked at.
    #[error("the file changed since it was looked at")]
    Changed,
    /// The folder still holds something.
    #[error("the folder is not empty")]
    NotEmpty,
    /// No room on the disk (or in the quota).
    #[error("the disk is full")]
    Full,
    /// The file system takes no changes.
    #[error("the notebook is on a read-only file system")]
    ReadOnly,
    /// The operating system or the disk does not let the server do it.
    #[error("the operating system or the disk does not let the server do this")]
    Denied,
    /// A name the file layer keeps for itself.
    #[error("this name is reserved")]
    Reserved,
    /// The change is in place, but the disk did not confirm that it will survive a power cut.
    #[error("the change was made, but the disk did not confirm it")]
    Unconfirmed(#[source] std::io::Error),
    /// The job did not come back: it panicked, or the process is ending. Whether it acted is not known.
    #[error("the file job ended unexpectedly")]
    Lost,
    /// Whoever was to make the change may not make it any more.
    #[error("this server has lost touch with the others, so it changes nothing now")]
    TooLate,
    /// Anything else the file system said.
    #[error("the file system failed: {0}")]
    Io(#[source] std::io::Error),
}

impl FileError {
    /// Whether trying the same again may help.
    #[must_use]
    pub const fn is_retriable(&self) -> bool {
        match self {
            // Nothing was changed; with a lease that holds again it may be.
            Self::Io(_) | Self::TooLate => true,
            Self::NotFound
            | Self::IsFolder
            | Self::NotAFolder
            | Self::NotAFile
            | Self::Symlink
            | Self::Escapes
            | Self::TooLarge { .. }
            | Self::NotText
            | Self::Exists
            | Self::Changed
            | Self::NotEmpty
            | Self::Full
            | Self::ReadOnly
            | Self::Denied
            | Self::Reserved
            | Self::Unconfirmed(_)
            | Self::Lost => false,
        }
    }

    /// A change that was made but not confirmed by the disk.
    pub(crate) fn unconfirmed(errno: Errno) -> Self {
        Self::Unconfirmed(errno.into())
    }
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::ISDIR => Self::IsFolder,
            Errno::NOTDIR => Self::NotAFolder,
            Errno::NXIO | Errno::NODEV => Self::NotAFile,
            Errno::LOOP => Self::Symlink,
            Errno::XDEV => Self::Escapes,
            Errno::EXIST => Self::Exists,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::NOSPC | Errno::DQUOT => Self::Full,
            Errno::ROFS => Self::ReadOnly,
            // The last four are names or features that this file system does not have; asking again does not help.
            Errno::ACCESS | Errno::PERM | Errno::NAMETOOLONG | Errno::INVAL | Errno::OPNOTSUPP | Errno::MLINK => {
                Self::Denied
            }
            other => Self::Io(other.into()),
        }
    }
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Io(error),
        }
    }
}
