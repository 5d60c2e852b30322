//! Every table, in an order in which what is referred to comes first, with the key that its rows are read by.

use super::CopyFor;

/// One table.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) key: &'static [&'static str],
    /// Rows read at a time.
    pub(super) page: u32,
    kept: Kept,
}

#[derive(PartialEq, Eq)]
enum Kept {
    /// In every copy.
    Always,
    /// Only where a database moves: what a thief of a file, or an old file, must not bring back.
    InMoves,
}

const ROWS: u32 = 256;
/// A block may be as large as a file.
const BLOCKS: u32 = 8;

const fn table(name: &'static str, key: &'static [&'static str]) -> Table {
    Table { name, key, page: ROWS, kept: Kept::Always }
}

const fn in_moves(name: &'static str, key: &'static [&'static str]) -> Table {
    Table { name, key, page: ROWS, kept: Kept::InMoves }
}

pub(super) const TABLES: &[Table] = &[
    table("meta", &["key"]),
    table("data_keys", &["workspace", "generation"]),
    table("instance", &["key"]),
    table("workspaces", &["id"]),
    table("users", &["id"]),
    table("members", &["workspace", "person"]),
    in_moves("sessions", &["hash"]),
    in_moves("tokens", &["id"]),
    in_moves("invites", &["hash"]),
    in_moves("attempts", &["key", "slot"]),
    in_moves("replies", &["person", "key"]),
    table("notebooks", &["workspace", "id"]),
    table("agents", &["workspace", "id"]),
    table("agent_versions", &["workspace", "agent", "version"]),
    table("chats", &["workspace", "id"]),
    table("waiting_messages", &["workspace", "id"]),
    table("events", &["workspace", "stream", "seq"]),
    table("streams", &["workspace", "stream"]),
    Table { name: "blocks", key: &["workspace", "hash"], page: BLOCKS, kept: Kept::Always },
    table("block_refs", &["workspace", "stream", "hash"]),
    table("runs", &["workspace", "id"]),
    table("approvals", &["workspace", "id"]),
    table("calls", &["workspace", "run", "call"]),
    table("results", &["workspace", "run", "call"]),
    table("audit", &["workspace", "time", "stream", "seq"]),
    table("kv", &["workspace", "agent", "key"]),
    table("rules", &["workspace", "id"]),
    table("rates", &["key"]),
    table("model_calls", &["workspace", "log", "turn", "attempt"]),
    table("purses", &["key"]),
    table("budgets", &["workspace", "kind", "subject"]),
    in_moves("provider_keys", &["workspace", "id"]),
    table("file_marks", &["workspace", "notebook", "path", "hash"]),
];

/// In no copy: who is alive just now and does what, and the search index, which is made again from the files.
pub(super) const LEFT_OUT: &[&str] = &["nodes", "chores", "files", "files_text"];

/// The tables of a copy.
pub(super) fn of(copy: CopyFor) -> impl Iterator<Item = &'static Table> {
    TABLES.iter().filter(move |table| copy == CopyFor::Move || table.kept == Kept::Always)
}

pub(super) fn by_name(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.name)
}
