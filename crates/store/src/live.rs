//! What nodes tell each other and nobody keeps: who follows a run, and the pieces of an answer that is being given. It goes past
//! the tables, sealed, and may be lost; the log may not.

use adjutant_core::id::{RunId, WorkspaceId};
use tokio::sync::broadcast;

use crate::db::Db;
use crate::seal::{Place, Scope};
use crate::{Backend, Sql, Store, StoreError};

/// The channel of these notes.
pub(crate) const CHANNEL: &str = "adjutant_live";
/// Bytes of a note that fit: a notification holds fewer than 8,000, and sealed bytes travel as hexadecimal digits.
const FITS: usize = 3_500;
/// Runs named in one note.
const RUNS: usize = 128;

/// A note of another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// Somebody there still follows a run.
    Watched(RunId),
    /// Somebody there began to follow a run, or missed something: what is being said is wanted from its beginning.
    Wanted {
        /// The run.
        run: RunId,
        /// Who asks, for [`Store::say`].
        by: String,
    },
    /// Something is being said in a run that is driven there; sealed.
    Said {
        /// The tenant.
        workspace: WorkspaceId,
        /// The run.
        run: RunId,
        /// What, for [`Store::open_note`].
        sealed: Vec<u8>,
    },
}

/// How much of what is being said is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// What comes.
    Onwards,
    /// All of it.
    FromTheStart,
}

impl Store {
    /// Whether other nodes may use the same database.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(&self.inner.backend, Backend::Sql(sql) if matches!(&*sql.db, Db::Postgres { .. }))
    }

    /// Whether this process alone uses the database: one of SQLite is locked by it. What it drives is nobody else's, however long
    /// it is away.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        matches!(&self.inner.backend, Backend::Sql(sql) if matches!(&*sql.db, Db::Sqlite { .. }))
    }

    /// The notes of other nodes from now on.
    #[must_use]
    pub fn live(&self) -> broadcast::Receiver<Live> {
        self.inner.live.subscribe()
    }

    /// Tells other nodes that these runs are followed here.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn watch(&self, runs: &[RunId], listen: Listen) -> Result<(), StoreError> {
        let sql = sql!(self, memory => Ok(()));
        let word = match listen {
            Listen::Onwards => "w",
            Listen::FromTheStart => "b",
        };
        for some in runs.chunks(RUNS) {
            let names: Vec<_> = some.iter().map(ToString::to_string).collect();
            note(sql, format!("{} {word} {}", sql.me, names.join(" ")));
        }
        Ok(())
    }

    /// Tells other nodes, or one that asked, what is being said in a run.
    ///
    /// # Errors
    /// Those of the database; [`StoreError::Conflict`] when it does not fit into one note.
    pub async fn say(
        &self,
        workspace: WorkspaceId,
        run: RunId,
        what: &[u8],
        to: Option<&str>,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => Ok(()));
        if what.len() > FITS {
            return Err(StoreError::Conflict("it is too long for a note".to_owned()));
        }
        let id = run.to_string();
        let sealed = sql.sealer(Scope::Workspace(workspace)).await?.seal(place(&id), what)?;
        let mut payload = format!("{} s {workspace} {id} ", sql.me);
        payload.reserve(2 * sealed.len());
        for byte in sealed {
            for digit in [byte >> 4, byte & 15] {
                payload.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
            }
        }
        if let Some(to) = to {
            payload.push(' ');
            payload.push_str(to);
        }
        note(sql, payload);
        Ok(())
    }

    /// What another node said.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it does not open.
    pub async fn open_note(&self, workspace: WorkspaceId, run: RunId, sealed: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        let sql = sql!(self, memory => Ok(Vec::new()));
        sql.sealer(Scope::Workspace(workspace)).await?.open(place(&run.to_string()), sealed)
    }
}

const fn place(id: &str) -> Place<'_> {
    Place::Column { table: "live", column: "said", id }
}

fn note(sql: &Sql, payload: String) {
    if let Some(teller) = &sql.teller {
        teller.note(payload);
    }
}

/// Hands on what another node wrote. What cannot be read is from a newer one, and nobody misses it.
pub(crate) fn hand_on(payload: &str, me: &str, live: &broadcast::Sender<Live>) {
    let mut words = payload.split(' ');
    let Some(by) = words.next().filter(|by| *by != me) else { return };
    // Nobody listening is no error.
    match words.next() {
        Some("w") => {
            for run in words.filter_map(|word| word.parse().ok()) {
                let _ = live.send(Live::Watched(run));
            }
        }
        Some("b") => {
            for run in words.filter_map(|word| word.parse().ok()) {
                let _ = live.send(Live::Wanted { run, by: by.to_owned() });
            }
        }
        Some("s") => {
            let mut said = || {
                let (workspace, run) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let said = Live::Said { workspace, run, sealed: bytes(words.next()?)? };
                words.next().is_none_or(|to| to == me).then_some(said)
            };
            if let Some(said) = said() {
                let _ = live.send(said);
            }
        }
        Some(_) | None => {}
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use adjutant_core::time::Time;

    use super::*;

    #[test]
    fn a_note_is_heard_by_others_and_not_by_its_writer() {
        let (sender, mut heard) = broadcast::channel(8);
        let run = RunId::new(Time::from_millis(1), [0; 10]);
        let workspace = WorkspaceId::new(Time::from_millis(2), [0; 10]);
        let said = format!("me s {workspace} {run}");
        let payloads = [
            format!("me w {run}"),
            format!("me b {run}"),
            format!("{said} 00ff"),
            format!("{said} 01 another"),
            format!("{said} 02 third"),
            "me x newer".to_owned(),
        ];
        for payload in payloads {
            hand_on(&payload, "me", &sender);
            hand_on(&payload, "another", &sender);
        }
        assert_eq!(heard.try_recv(), Ok(Live::Watched(run)));
        assert_eq!(heard.try_recv(), Ok(Live::Wanted { run, by: "me".to_owned() }));
        assert_eq!(heard.try_recv(), Ok(Live::Said { workspace, run, sealed: vec![0, 255] }));
        assert_eq!(heard.try_recv(), Ok(Live::Said { workspace, run, sealed: vec![1] }));
        assert!(heard.try_recv().is_err());
    }
}
