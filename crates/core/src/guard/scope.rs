//! The scope of an agent.

use serde::{Deserialize, Serialize};

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Reads a file.
    Read,
    /// Lists a folder.
    List,
    /// Writes a file; one that does not exist is created.
    Write,
    /// Creates a file; never overwrites.
    Create,
    /// Deletes a file or a folder.
    Delete,
    /// Runs a file.
    Execute,
    /// Moves a file away (the source of a move).
    Move,
    /// Copies a file (the source of a copy).
    Copy,
}
