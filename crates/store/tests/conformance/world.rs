//! Where a story takes place: one back end, made for it and removed after it.

use std::io::Write as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Once};

use adjutant_core::id::NodeId;
use adjutant_core::time::Time;
use adjutant_store::{Durability, MasterKey, MemoryConfig, Sealing, Store, StoreError};
use sqlx::{AssertSqlSafe, Connection as _};

/// Runs each story on every back end.
macro_rules! stories {
    ($(async fn $name:ident($world:ident: &World) $body:block)*) => {$(
        mod $name {
            use super::*;

            #[allow(unused_variables, reason = "not every story looks at its world")]
            async fn story($world: &World) $body

            #[test]
            fn on_sqlite() {
                crate::world::on_sqlite(|world| Box::pin(story(world)));
            }

            #[test]
            fn on_postgres() {
                crate::world::on_postgres(|world| Box::pin(story(world)));
            }

            #[test]
            fn in_memory() {
                crate::world::in_memory(|world| Box::pin(story(world)));
            }
        }
    )*};
}

/// Runs each story on the two databases: what only they have (files, keys, schemas).
macro_rules! database_stories {
    ($(async fn $name:ident($world:ident: &World) $body:block)*) => {$(
        mod $name {
            use super::*;

            async fn story($world: &World) $body

            #[test]
            fn on_sqlite() {
                crate::world::on_sqlite(|world| Box::pin(story(world)));
            }

            #[test]
            fn on_postgres() {
                crate::world::on_postgres(|world| Box::pin(story(world)));
            }
        }
    )*};
}

/// Runs each story on PostgreSQL: what takes several nodes.
macro_rules! postgres_stories {
    ($(async fn $name:ident($world:ident: &World) $body:block)*) => {$(
        mod $name {
            use super::*;

            async fn story($world: &World) $body

            #[test]
            fn on_postgres() {
                crate::world::on_postgres(|world| Box::pin(story(world)));
            }
        }
    )*};
}

/// A store, and the ways around it that only a test may take.
pub(crate) struct World {
    /// The store.
    pub(crate) store: Store,
    place: Place,
}

enum Place {
    Sqlite { dir: tempfile::TempDir },
    Postgres { url: String },
    Memory { clock: Arc<AtomicI64> },
}

/// The key every sealed world opens with.
pub(crate) const KEY: [u8; 32] = [42; 32];

pub(crate) fn sealed() -> Sealing {
    Sealing::On(MasterKey::new(KEY))
}

type Story = for<'a> fn(&'a World) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One thread, so that appends that are made together are written together.
fn run(make: impl AsyncFnOnce() -> World, story: Story) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = make().await;
        story(&world).await;
        world.end().await;
    });
}

pub(crate) fn on_sqlite(story: Story) {
    run(
        async || {
            let dir = tempfile::tempdir().unwrap();
            let place = Place::Sqlite { dir };
            World { store: place.open(sealed()).await.unwrap(), place }
        },
        story,
    );
}

pub(crate) fn on_postgres(story: Story) {
    static SAID: Once = Once::new();
    let Ok(server) = std::env::var("ADJUTANT_TEST_POSTGRES") else {
        // Written past the test harness, which would swallow it.
        SAID.call_once(|| {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: the store on PostgreSQL, because ADJUTANT_TEST_POSTGRES is not set"
            );
        });
        return;
    };
    run(
        async || {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("adjutant_{}_{number}", std::process::id());
            execute_postgres(&server, &format!("CREATE DATABASE {name}")).await;
            let mut url: url::Url = server.parse().unwrap();
            url.set_path(&name);
            let place = Place::Postgres { url: url.into() };
            World { store: place.open(sealed()).await.unwrap(), place }
        },
        story,
    );
}

pub(crate) fn in_memory(story: Story) {
    run(
        async || {
            let clock = Arc::new(AtomicI64::new(1_700_000_000_000));
            let read = Arc::clone(&clock);
            let config = MemoryConfig::new(Arc::new(move || Time::from_millis(read.load(Ordering::Relaxed))));
            World { store: Store::memory(config), place: Place::Memory { clock } }
        },
        story,
    );
}

impl Place {
    async fn open(&self, sealing: Sealing) -> Result<Store, StoreError> {
        match self {
            Self::Sqlite { dir } => {
                Store::open_sqlite(&dir.path().join("adjutant.db"), Durability::Full, sealing).await
            }
            Self::Postgres { url } => Store::open_postgres(url, sealing).await,
            Self::Memory { .. } => unreachable!("memory is not opened again"),
        }
    }
}

impl World {
    /// Another process: on PostgreSQL a node of its own, elsewhere the same store.
    pub(crate) async fn another(&self) -> Store {
        match &self.place {
            Place::Postgres { .. } => self.place.open(sealed()).await.unwrap(),
            Place::Sqlite { .. } | Place::Memory { .. } => self.store.clone(),
        }
    }

    /// Closes the store and opens the same database again.
    pub(crate) async fn reopen(&self, sealing: Sealing) -> Result<Store, StoreError> {
        self.store.clone().close().await;
        self.place.open(sealing).await
    }

    /// Lets the lease of a node run out, now.
    pub(crate) async fn expire(&self, node: NodeId) {
        match &self.place {
            Place::Sqlite { .. } | Place::Postgres { .. } => {
                self.execute(&format!("UPDATE nodes SET expires = 1 WHERE id = '{node}'")).await;
            }
            Place::Memory { clock } => {
                clock.fetch_add(60_000, Ordering::Relaxed);
            }
        }
    }

    /// A statement behind the store's back.
    pub(crate) async fn execute(&self, sql: &str) {
        match &self.place {
            Place::Sqlite { .. } => {
                let connection = rusqlite::Connection::open(self.file()).unwrap();
                connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
                connection.execute_batch(sql).unwrap();
            }
            Place::Postgres { url } => execute_postgres(url, sql).await,
            Place::Memory { .. } => unreachable!("memory has no statements"),
        }
    }

    /// The number a statement gives, behind the store's back.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        match &self.place {
            Place::Sqlite { .. } => {
                let connection = rusqlite::Connection::open(self.file()).unwrap();
                connection.query_row(sql, [], |row| row.get(0)).unwrap()
            }
            Place::Postgres { url } => {
                let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut connection).await.unwrap()
            }
            Place::Memory { .. } => unreachable!("memory has no statements"),
        }
    }

    /// A connection behind the store's back.
    pub(crate) async fn connection(&self) -> sqlx::PgConnection {
        match &self.place {
            Place::Postgres { url } => sqlx::PgConnection::connect(url).await.unwrap(),
            Place::Sqlite { .. } | Place::Memory { .. } => unreachable!("only PostgreSQL has connections"),
        }
    }

    /// The database file.
    pub(crate) fn file(&self) -> PathBuf {
        match &self.place {
            Place::Sqlite { dir } => dir.path().join("adjutant.db"),
            Place::Postgres { .. } | Place::Memory { .. } => unreachable!("only SQLite has a file"),
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.place, Place::Sqlite { .. })
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.place, Place::Postgres { .. })
    }

    async fn end(self) {
        self.store.close().await;
        if let Place::Postgres { url } = &self.place {
            let url: url::Url = url.parse().unwrap();
            let name = url.path().trim_start_matches('/').to_owned();
            let server = std::env::var("ADJUTANT_TEST_POSTGRES").unwrap();
            execute_postgres(&server, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
        }
    }
}

async fn execute_postgres(url: &str, sql: &str) {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
