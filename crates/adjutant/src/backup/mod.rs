//! An instance in one file: the rows of its database as they are stored, the files of its notebooks, its agents. Written while
//! a server goes on, put back into an empty place or not at all. The master key is never in it.

mod beside;
mod file;
mod folder;
mod restore;
mod write;

pub(crate) use self::beside::{finished, left_beside};
pub(crate) use self::file::About;
pub(crate) use self::restore::restore;
pub(crate) use self::write::{snapshot, write};

/// How far something is: done, and of how many.
pub(crate) type Progress<'a> = &'a mut (dyn FnMut(&str, u64, u64) + Send);
