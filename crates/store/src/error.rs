//! What can go wrong in the store, one variant per reaction, and how the databases' codes map to it. Decides no retries.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use adjutant_core::budget::Overspent;
use adjutant_core::guard::rate::UsedUp;

/// What caused a [`StoreError`], kept for the log. Shared because one failed transaction answers many callers.
pub type Source = Arc<dyn Error + Send + Sync>;

/// Why the store did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Somebody else wrote first: read again, fold, decide again. Nothing was written.
    #[error("{}", if *.fenced { "the claim of this run was lost to another node" } else { "it has changed since it was read" })]
    Stale {
        /// The claim itself is gone: stop driving the run.
        fenced: bool,
    },
    /// A constraint refuses it: a second result of a call, a name that is taken. Nothing was written.
    #[error("{0}")]
    Conflict(String),
    /// Calls do not fit their rates: leave them out, or wait. Nothing was written, and nothing was taken.
    #[error("{} used up", if .0.len() == 1 { "an allowance is" } else { "allowances are" })]
    UsedUp(Vec<UsedUp>),
    /// There is not enough money for a call. Nothing was written, and nothing was reserved.
    #[error("a budget is used up")]
    Overspent(Vec<Overspent>),
    /// The thing (or the workspace it should be in) does not exist.
    #[error("not found")]
    NotFound,
    /// The database cannot be reached or is busy: try again. Whether a write happened is unknown: read before you retry.
    #[error("the database is unavailable")]
    Unavailable(#[source] Source),
    /// What is stored cannot be understood: stop, and let a person look.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// A newer binary has changed the database so that this one must not touch it.
    #[error("the database needs a newer program (it asks for schema {found}, this program knows {known})")]
    NewerSchema {
        /// What the database asks for.
        found: u64,
        /// What this program knows.
        known: u64,
    },
    /// A build of another state of development made the database: its tables may not be those that this one expects.
    #[error("the database was made by another development build")]
    OtherBuild,
    /// The content is sealed under another master key, or under one where none was given.
    #[error("the database is sealed with another master key")]
    WrongKey,
    /// The disk is full.
    #[error("the disk is full")]
    Full(#[source] Source),
    /// The database or its directory cannot be written.
    #[error("the database cannot be written")]
    ReadOnly(#[source] Source),
    /// Anything else: a bug, or a system in a state we did not foresee.
    #[error("the database failed")]
    Other(#[source] Source),
}

impl StoreError {
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::Other(Arc::new(Text(text.into())))
    }

    pub(crate) fn unavailable(text: impl Into<String>) -> Self {
        Self::Unavailable(Arc::new(Text(text.into())))
    }

    /// The reaction to an error of the file system, before SQLite has seen the file.
    pub(crate) fn file(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(Arc::new(error)),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full(Arc::new(error)),
            _ => Self::Other(Arc::new(error)),
        }
    }
}

#[derive(Debug)]
struct Text(String);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Text {}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        match &error {
            E::Database(inner) => {
                let code = inner.code().unwrap_or_default().into_owned();
                let message = inner.message().to_owned();
                from_postgres(&code, message, error)
            }
            // What is no word of the protocol is what a connection says that breaks, or a server that is about to start.
            E::Io(_)
            | E::Tls(_)
            | E::Protocol(_)
            | E::PoolTimedOut
            | E::PoolClosed
            | E::WorkerCrashed
            | E::BeginFailed => Self::Unavailable(Arc::new(error)),
            E::ColumnDecode { .. } | E::Decode(_) => Self::Corrupt(error.to_string()),
            _ => Self::Other(Arc::new(error)),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        from_sqlite(extended_code(&error), error)
    }
}

fn extended_code(error: &rusqlite::Error) -> i32 {
    error.sqlite_error().map_or(0, |inner| inner.extended_code)
}

/// The low byte of SQLite's extended result codes, where it decides the reaction.
mod sqlite {
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOTADB: i32 = 26;
    /// The shared-memory file could not grow: what a full disk looks like while a database is opened.
    pub(super) const IOERR_SHMSIZE: i32 = 4874;
    pub(super) const CONSTRAINT_FOREIGNKEY: i32 = 787;
}

fn from_sqlite(code: i32, error: rusqlite::Error) -> StoreError {
    if code == sqlite::IOERR_SHMSIZE {
        return StoreError::Full(Arc::new(error));
    }
    match code & 0xff {
        sqlite::BUSY | sqlite::LOCKED | sqlite::CANTOPEN => StoreError::Unavailable(Arc::new(error)),
        sqlite::READONLY => StoreError::ReadOnly(Arc::new(error)),
        sqlite::FULL => StoreError::Full(Arc::new(error)),
        sqlite::CORRUPT | sqlite::NOTADB => StoreError::Corrupt(error.to_string()),
        sqlite::CONSTRAINT if code == sqlite::CONSTRAINT_FOREIGNKEY => StoreError::NotFound,
        sqlite::CONSTRAINT => StoreError::Conflict(error.to_string()),
        _ => StoreError::Other(Arc::new(error)),
    }
}

fn from_postgres(code: &str, message: String, error: sqlx::Error) -> StoreError {
    match code {
        "53100" => StoreError::Full(Arc::new(error)),
        "XX001" | "XX002" => StoreError::Corrupt(message),
        "25006" => StoreError::ReadOnly(Arc::new(error)),
        "23503" => StoreError::NotFound,
        "40001" | "40P01" | "55P03" => StoreError::Unavailable(Arc::new(error)),
        _ => match code.get(..2) {
            Some("08" | "53" | "57") => StoreError::Unavailable(Arc::new(error)),
            Some("23") => StoreError::Conflict(message),
            _ => StoreError::Other(Arc::new(error)),
        },
    }
}

/// Whether a transaction failed only because of what ran beside it, so that a smaller one may pass.
pub(crate) fn collided(error: &StoreError) -> bool {
    let StoreError::Unavailable(source) = error else { return false };
    let Some(sqlx::Error::Database(inner)) = source.downcast_ref::<sqlx::Error>() else { return false };
    matches!(inner.code().as_deref(), Some("40001" | "40P01"))
}

/// Whether a statement did not get a lock in the time it was given.
pub(crate) fn locked_out(error: &StoreError) -> bool {
    let StoreError::Unavailable(source) = error else { return false };
    let Some(sqlx::Error::Database(inner)) = source.downcast_ref::<sqlx::Error>() else { return false };
    inner.code().as_deref() == Some("55P03")
}

/// Whether the disk failed to confirm a write (SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC). PostgreSQL stops by itself then.
pub(crate) fn unsynced(error: &StoreError) -> bool {
    let StoreError::Other(source) = error else { return false };
    source.downcast_ref::<rusqlite::Error>().is_some_and(unconfirmed)
}

/// As [`unsynced`], in SQLite's own words.
pub(crate) fn unconfirmed(error: &rusqlite::Error) -> bool {
    matches!(extended_code(error), 1034 | 1290)
}

/// Whether SQLite could not open a file.
pub(crate) fn cannot_open(source: &Source) -> bool {
    source.downcast_ref::<rusqlite::Error>().is_some_and(|error| extended_code(error) & 0xff == sqlite::CANTOPEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(error: &StoreError) -> &'static str {
        match error {
            StoreError::Stale { .. } => "stale",
            StoreError::Conflict(_) => "conflict",
            StoreError::UsedUp(_) => "used up",
            StoreError::Overspent(_) => "overspent",
            StoreError::NotFound => "not found",
            StoreError::Unavailable(_) => "unavailable",
            StoreError::Corrupt(_) => "corrupt",
            StoreError::NewerSchema { .. } => "newer schema",
            StoreError::OtherBuild => "other build",
            StoreError::WrongKey => "wrong key",
            StoreError::Full(_) => "full",
            StoreError::ReadOnly(_) => "read-only",
            StoreError::Other(_) => "other",
        }
    }

    #[test]
    fn each_code_of_the_databases_has_its_reaction() {
        let postgres = [
            ("53100", "full"),
            ("53300", "unavailable"),
            ("25006", "read-only"),
            ("40001", "unavailable"),
            ("40P01", "unavailable"),
            ("08006", "unavailable"),
            ("57P01", "unavailable"),
            ("23505", "conflict"),
            ("23503", "not found"),
            ("XX001", "corrupt"),
            ("XX002", "corrupt"),
            ("XX000", "other"),
            ("42601", "other"),
        ];
        for (code, reaction) in postgres {
            assert_eq!(name(&from_postgres(code, String::new(), sqlx::Error::RowNotFound)), reaction, "{code}");
        }
        let sqlite = [
            (5, "unavailable"),
            (261, "unavailable"),
            (8, "read-only"),
            (1032, "read-only"),
            (11, "corrupt"),
            (26, "corrupt"),
            (13, "full"),
            (4874, "full"),
            (14, "unavailable"),
            (1555, "conflict"),
            (2067, "conflict"),
            (787, "not found"),
            (1034, "other"),
            (1, "other"),
        ];
        for (code, reaction) in sqlite {
            assert_eq!(name(&from_sqlite(code, rusqlite::Error::InvalidQuery)), reaction, "{code}");
        }
        assert_eq!(name(&sqlx::Error::PoolTimedOut.into()), "unavailable");
        assert_eq!(name(&sqlx::Error::Protocol("0 bytes".into()).into()), "unavailable");
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert_eq!(name(&StoreError::file(denied)), "read-only");
    }
}
