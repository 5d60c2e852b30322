//! The only room that speaks SQL: the event log, its projections, queue, leases and search index, on SQLite and on
//! PostgreSQL. It stores and guards; it decides nothing.

#![cfg_attr(
    not(feature = "sim"),
    allow(clippy::infallible_destructuring_match, reason = "without the simulated back end there is one left")
)]

use std::path::Path;
use std::sync::Arc;

use adjutant_core::limits::FEED_BACKLOG;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// The SQL back end of a store; the in-memory one answers at once.
macro_rules! sql {
    ($store:expr, $memory:ident => $answer:expr) => {
        match &$store.inner.backend {
            $crate::Backend::Sql(sql) => sql,
            #[cfg(feature = "sim")]
            $crate::Backend::Memory($memory) => {
                let passed = $memory.pass().await?;
                return passed.answer($answer);
            }
        }
    };
}

mod access;
mod admission;
mod agents;
mod aside;
mod audit;
mod branch;
mod budgets;
mod chats;
mod commit;
mod copy;
mod db;
mod error;
mod fault;
mod filter;
mod health;
mod inbox;
mod kept;
mod keys;
mod kv;
mod lent;
mod lite;
mod live;
mod log;
mod marks;
#[cfg(feature = "sim")]
mod memory;
mod meta;
mod migrate;
mod people;
mod postgres;
mod prepare;
mod provider_keys;
mod purses;
mod queue;
mod rates;
mod reads;
mod removal;
mod replies;
mod retention;
pub mod row;
mod rules;
mod runs;
mod seal;
mod search;
mod set;
mod sqlite;
mod statements;
mod teller;
mod tenants;
mod usage;
mod value;
mod waiting;
mod writer;

pub use branch::Link;
pub use copy::{Batch, Copied, CopyFor, Snapshot, Target, copy};
pub use error::{Source, StoreError};
pub use health::{Health, Keeping, Readiness, Tallies};
pub use live::{Listen, Live};
#[cfg(feature = "sim")]
pub use memory::{Fault, FaultPoint, Gate, Hears, MemoryConfig, Witness};
pub use meta::halt_key;
pub use reads::Reads;
pub use seal::{MasterKey, Sealing};

use db::Db;
use keys::{Keyring, Sealer};
use migrate::Marked;
use row::Change;
use seal::Scope;
use teller::Teller;
use writer::Writer;

/// What a commit survives on SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Power loss: every commit is on the disk before it is answered.
    Full,
    /// A crash of the process; the last commits may be lost with the power. Faster.
    Normal,
}

/// Everything that is remembered. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    backend: Backend,
    changes: broadcast::Sender<Change>,
    live: broadcast::Sender<Live>,
}

/// The closed set of back ends; the two databases differ only below [`Db`].
enum Backend {
    Sql(Box<Sql>),
    #[cfg(feature = "sim")]
    Memory(Box<memory::Memory>),
}

struct Sql {
    db: Arc<Db>,
    keys: Keyring,
    writer: Writer,
    /// This process, as it signs what it tells other nodes.
    me: String,
    /// The way to other nodes, where there may be some.
    teller: Option<Teller>,
    listener: Option<JoinHandle<()>>,
}

impl Drop for Sql {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            listener.abort();
        }
    }
}

impl Sql {
    /// One statement on tables that no kept answer is read from; says how many rows it touched. On SQLite it shares a commit with
    /// whatever is appended: waiting for the disk is what takes the time.
    async fn write_work(&self, sql: impl Into<db::Text>, args: value::Args) -> Result<u64, StoreError> {
        match self.db.dialect() {
            db::Dialect::Sqlite => self.writer.write(sql.into(), args).await,
            db::Dialect::Postgres => self.db.write(sql, args).await,
        }
    }

    async fn sealer(&self, scope: Scope) -> Result<Sealer, StoreError> {
        self.keys.sealer(&self.db, scope).await
    }

    /// As [`Sql::sealer`], for what may be left of a workspace that was taken away.
    async fn opener(&self, scope: Scope) -> Result<Sealer, StoreError> {
        match self.sealer(scope).await {
            Err(StoreError::NotFound) => Ok(Sealer::Gone),
            sealer => sealer,
        }
    }
}

impl Store {
    /// Opens a SQLite file, makes it if there is none, and brings its schema forward. The caller holds the lock of the data
    /// directory: whatever nodes are still written down as alive count as dead.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`], [`StoreError::WrongKey`], [`StoreError::ReadOnly`], [`StoreError::Full`],
    /// [`StoreError::Corrupt`] say what a person has to look at.
    pub async fn open_sqlite(file: &Path, durability: Durability, sealing: Sealing) -> Result<Self, StoreError> {
        let db = sqlite::open(file, durability).await?;
        let store = Self::open(db, &sealing, Marked::Refused).await?;
        store.forget_nodes().await?;
        Ok(store)
    }

    /// Opens a PostgreSQL database (14 or later) and brings its schema forward. Other nodes may use it at the same time.
    ///
    /// # Errors
    /// As [`Store::open_sqlite`], and [`StoreError::Unavailable`] when the server cannot be reached.
    pub async fn open_postgres(url: &str, sealing: Sealing) -> Result<Self, StoreError> {
        let db = postgres::open(url).await?;
        Self::open(db, &sealing, Marked::Refused).await
    }

    /// Opens a SQLite file that a copy was put into and that still carries its mark, to find out whether it is whole. Nothing is
    /// changed by that.
    ///
    /// # Errors
    /// As [`Store::open_sqlite`].
    pub async fn open_sqlite_copy(file: &Path, sealing: Sealing) -> Result<Self, StoreError> {
        fault::point("copy.opened");
        Self::open(sqlite::open(file, Durability::Normal).await?, &sealing, Marked::Opened).await
    }

    /// As [`Store::open_sqlite_copy`], of a PostgreSQL database.
    ///
    /// # Errors
    /// As [`Store::open_postgres`].
    pub async fn open_postgres_copy(url: &str, sealing: Sealing) -> Result<Self, StoreError> {
        fault::point("copy.opened");
        Self::open(postgres::open(url).await?, &sealing, Marked::Opened).await
    }

    /// A store that lives in memory, for simulation: the same meaning, with faults on request.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn memory(sim: MemoryConfig) -> Self {
        let (changes, _) = broadcast::channel(FEED_BACKLOG);
        let backend = Backend::Memory(Box::new(memory::Memory::new(sim, &changes)));
        Self::of(backend, changes)
    }

    /// Another process on the same tables, for simulation; none for a database.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn peer(&self, sim: MemoryConfig) -> Option<Self> {
        let Backend::Memory(memory) = &self.inner.backend else { return None };
        let (changes, _) = broadcast::channel(FEED_BACKLOG);
        let backend = Backend::Memory(Box::new(memory.peer(sim, &changes)));
        Some(Self::of(backend, changes))
    }

    async fn open(db: Db, sealing: &Sealing, marked: Marked) -> Result<Self, StoreError> {
        let made = async {
            migrate::migrate(&db, sealing, marked).await?;
            search::overwrite_index(&db).await
        };
        if let Err(error) = made.await {
            db.close().await;
            return Err(error);
        }
        let mut random = [0; 8];
        seal::fill_random(&mut random)?;
        let me = format!("{:016x}", u64::from_le_bytes(random));
        let (changes, _) = broadcast::channel(FEED_BACKLOG);
        let (live, _) = broadcast::channel(FEED_BACKLOG);
        let listener = match &db {
            Db::Sqlite { .. } => None,
            Db::Postgres { pool, .. } => {
                let hearing = postgres::Hearing { me: me.clone(), changes: changes.clone(), live: live.clone() };
                // Before anybody reads: what is committed afterwards is heard.
                let first = postgres::connect(pool).await.ok();
                Some(tokio::spawn(postgres::listen(pool.clone(), hearing, first)))
            }
        };
        let teller = match &db {
            Db::Sqlite { .. } => None,
            Db::Postgres { teller, .. } => Some(Teller::start(teller.clone(), me.clone())),
        };
        let db = Arc::new(db);
        let writer = Writer::start(Arc::clone(&db), teller.clone(), changes.clone())?;
        let backend = Backend::Sql(Box::new(Sql { db, keys: Keyring::new(sealing), writer, me, teller, listener }));
        Ok(Self { inner: Arc::new(Inner { backend, changes, live }) })
    }

    #[cfg(feature = "sim")]
    fn of(backend: Backend, changes: broadcast::Sender<Change>) -> Self {
        let (live, _) = broadcast::channel(1);
        Self { inner: Arc::new(Inner { backend, changes, live }) }
    }

    /// What is committed from now on, in this process and (on PostgreSQL) in others. A wake-up only: a receiver that lags,
    /// or gets [`Change::Reread`], reads again whatever matters to it.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.inner.changes.subscribe()
    }

    /// Writes what is queued and closes every connection, for all clones of this store.
    pub async fn close(self) {
        let sql = match &self.inner.backend {
            Backend::Sql(sql) => sql,
            #[cfg(feature = "sim")]
            Backend::Memory(memory) => return memory.close(),
        };
        sql.writer.close().await;
        if let Some(teller) = &sql.teller {
            teller.close().await;
        }
        if let Some(listener) = &sql.listener {
            listener.abort();
        }
        sql.db.close().await;
    }

    /// Keeps the data key of a workspace no longer that was taken away, be it at another node.
    pub fn forget_key(&self, workspace: adjutant_core::id::WorkspaceId) {
        match &self.inner.backend {
            Backend::Sql(sql) => sql.keys.forget(Scope::Workspace(workspace)),
            #[cfg(feature = "sim")]
            Backend::Memory(_) => {}
        }
    }

    /// Tells whoever listens, here and at other nodes, that a chat was made, changed or taken away: whoever may see it as it is
    /// in this row.
    pub fn announce_chat(&self, row: &row::ChatRow) {
        let change = Change::Chat(row.into());
        match &self.inner.backend {
            Backend::Sql(sql) => self.announce(sql, change),
            #[cfg(feature = "sim")]
            Backend::Memory(memory) => memory.tell(change),
        }
    }

    /// Tells this process and other nodes about a change that was not an append.
    fn announce(&self, sql: &Sql, change: Change) {
        let _ = self.inner.changes.send(change);
        if let Some(teller) = &sql.teller {
            teller.tell(&[change]);
        }
    }
}
