//! Brings the schema forward, one transaction per step, and refuses what it must not touch. Never goes back.

use std::time::Duration;

use adjutant_core::id::NodeId;

use crate::StoreError;
use crate::copy::MARK;
use crate::db::{Db, Dialect, Tx};
use crate::error::locked_out;
use crate::keys;
use crate::queue::reap;
use crate::seal::Sealing;
use crate::value::args;

#[derive(Clone, Copy)]
struct Migration {
    sqlite: &'static str,
    postgres: &'static str,
    /// The oldest program, by the schema it knows, that may still use the database afterwards.
    min_binary: u64,
}

impl Migration {
    const fn script(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }
}

/// A step by the name of its scripts. Programs of the first schema on can live with all of them.
macro_rules! migration {
    ($name:literal) => {
        Migration {
            sqlite: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
            min_binary: 1,
        }
    };
}

/// In order; the number of a migration is its place, from 1. None of them is edited any more: databases remember by which
/// scripts they were made, and a test holds them to what they are.
const MIGRATIONS: &[Migration] = &[
    migration!("0001_ground"),
    migration!("0002_agent_people"),
    migration!("0003_defaults"),
    migration!("0004_chat_metadata"),
    migration!("0005_closed_workspaces"),
    migration!("0006_run_parents"),
    migration!("0007_moved_runs"),
    migration!("0008_places"),
];

/// The schema this program knows.
pub(crate) const KNOWN: u64 = MIGRATIONS.len() as u64;

/// The key in `meta` of what the database was made by.
const MADE_BY: &str = "made_by";

/// What a database is made by that went through these steps: the scripts of both dialects, so that it is true of a copy into the
/// other one, too.
fn made_by(steps: &[Migration]) -> String {
    let mut hasher = blake3::Hasher::new();
    for script in steps.iter().flat_map(|step| [step.sqlite, step.postgres]) {
        hasher.update(&(script.len() as u64).to_le_bytes());
        hasher.update(script.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Whether this is what a program makes a database of this schema by that has this one's scripts.
pub(crate) fn is_ours(schema: u64, made: Option<&str>) -> bool {
    came_by(MIGRATIONS, schema, made)
}

/// A schema that goes beyond the steps was made by a newer program, which lets this one use it.
fn came_by(steps: &[Migration], schema: u64, made: Option<&str>) -> bool {
    let done = usize::try_from(schema).ok().and_then(|done| steps.get(..done));
    done.is_none_or(|done| made == Some(made_by(done).as_str()))
}

/// Nodes that start together on PostgreSQL take turns; the number only has to be ours.
const TURN: &str = "SELECT pg_advisory_xact_lock(4703911)";
/// How long a step waits for a table that somebody reads. Everybody else who wants the table waits behind it.
const LOCK_WAIT: &str = "SET LOCAL lock_timeout = '2s'";
/// Wait before it is tried again: time for those who waited behind it.
const AGAIN: Duration = Duration::from_secs(1);
/// Tries until it is said who stands in the way: about a minute.
const TRIES: u32 = 20;
/// Whoever has read for longer than a step waits, longest first.
const READERS: &str = "SELECT DISTINCT a.pid, a.application_name, \
     CAST(extract(epoch FROM clock_timestamp() - a.xact_start) AS BIGINT) AS seconds \
     FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid AND l.granted JOIN pg_class c ON c.oid = l.relation \
     WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND c.relkind = 'r' \
     AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('meta')) \
     AND a.xact_start < clock_timestamp() - interval '2 seconds' ORDER BY seconds DESC LIMIT 8";

/// Whether a copy is opened that is not known to be whole yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marked {
    /// It is an error.
    Refused,
    /// To find out whether it is.
    Opened,
}

/// Brings the database to [`KNOWN`] and checks that it is sealed as the caller says.
pub(crate) async fn migrate(db: &Db, sealing: &Sealing, marked: Marked) -> Result<(), StoreError> {
    go_on(db, sealing, MIGRATIONS, marked).await
}

#[cfg(test)]
async fn go_through(db: &Db, sealing: &Sealing, steps: &[Migration]) -> Result<(), StoreError> {
    go_on(db, sealing, steps, Marked::Refused).await
}

async fn go_on(db: &Db, sealing: &Sealing, steps: &[Migration], marked: Marked) -> Result<(), StoreError> {
    let (mut kept, mut tries) = (false, 0);
    loop {
        let mut tx = db.begin().await?;
        tx.queue(TURN).await?;
        let schema = schema(&mut tx, steps.len() as u64, marked).await?;
        if schema > 0 && !came_by(steps, schema, get(&mut tx, MADE_BY).await?.as_deref()) {
            return Err(StoreError::OtherBuild);
        }
        let Some(next) = usize::try_from(schema).ok().and_then(|done| steps.get(done)) else {
            keys::check(&mut tx, sealing).await?;
            return tx.commit().await;
        };
        // What is there is kept as it is before it is changed for the first time; a new database holds nothing yet. A server's
        // databases are its operator's.
        kept |= schema == 0;
        if !kept && tx.dialect() == Dialect::Sqlite {
            tx.roll_back().await?;
            db.keep_copy(&format!("schema-{schema}")).await?;
            kept = true;
            continue;
        }
        match take(&mut tx, schema, next, steps).await {
            Ok(()) => tx.commit().await?,
            Err(error) if locked_out(&error) => {
                tx.roll_back().await?;
                tries += 1;
                if tries % TRIES == 0 {
                    let readers = readers(db).await.unwrap_or_default().join("; ");
                    tracing::warn!(readers, "the step to schema {} waits until somebody has read a table", schema + 1);
                }
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Takes one step, up to its commit.
async fn take(tx: &mut Tx, schema: u64, next: &Migration, steps: &[Migration]) -> Result<(), StoreError> {
    // On SQLite there is no other node: whoever opens it has its lock.
    if schema > 0 && tx.dialect() == Dialect::Postgres {
        tx.queue(LOCK_WAIT).await?;
        assert_none_older(tx, next.min_binary).await?;
    }
    tx.script(next.script(tx.dialect())).await?;
    let done = usize::try_from(schema).map_or(steps, |done| steps.get(..=done).unwrap_or(steps));
    put(tx, MADE_BY, &made_by(done)).await?;
    put(tx, "schema", &(schema + 1).to_string()).await?;
    put(tx, "min_binary", &next.min_binary.to_string()).await
}

/// Who on PostgreSQL has been reading for a while, in words.
async fn readers(db: &Db) -> Result<Vec<String>, StoreError> {
    let words = |mut row: crate::value::Row| {
        let (pid, program, seconds): (i64, String, i64) = (row.take()?, row.take()?, row.take()?);
        Ok(format!("process {pid} ({program}), for {seconds} s"))
    };
    db.read(READERS, vec![]).await?.into_iter().map(words).collect()
}

/// What makes the tables of a schema that this program knows, and of no later one.
pub(crate) fn scripts(schema: u64, dialect: Dialect) -> Result<Vec<&'static str>, StoreError> {
    let count = usize::try_from(schema).unwrap_or(usize::MAX);
    let steps = MIGRATIONS.get(..count).ok_or(StoreError::NewerSchema { found: schema, known: KNOWN })?;
    Ok(steps.iter().map(|step| step.script(dialect)).collect())
}

/// The schema of the database, 0 for an empty one.
async fn schema(tx: &mut Tx, known: u64, marked: Marked) -> Result<u64, StoreError> {
    let tables = match tx.dialect() {
        Dialect::Sqlite => "SELECT count(*) FROM sqlite_master WHERE name = 'meta'",
        Dialect::Postgres => "SELECT count(*) FROM pg_class WHERE oid = to_regclass('meta')",
    };
    if count(tx, tables).await? == 0 {
        let strange = tx.dialect() == Dialect::Sqlite && count(tx, "SELECT count(*) FROM sqlite_master").await? > 0;
        return if strange { Err(StoreError::Corrupt("it belongs to another program".into())) } else { Ok(0) };
    }
    if marked == Marked::Refused && get(tx, MARK).await?.is_some() {
        let why = "a copy into this database did not come to its end; let it go on, or empty the database";
        return Err(StoreError::Conflict(why.to_owned()));
    }
    assert_known(tx, known).await?;
    number(tx, "schema").await
}

/// Refuses a database that a program which knows this schema may not use any more.
pub(crate) async fn assert_known(tx: &mut Tx, known: u64) -> Result<(), StoreError> {
    let min_binary = number(tx, "min_binary").await?;
    if min_binary > known { Err(StoreError::NewerSchema { found: min_binary, known }) } else { Ok(()) }
}

/// Refuses a step that would pull the ground from under a node that runs. Those that are dead are buried, so that one that
/// only slept has to join again, and is told.
async fn assert_none_older(tx: &mut Tx, min_binary: u64) -> Result<(), StoreError> {
    tx.run("LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE", vec![]).await?;
    reap(tx).await?;
    let text = "SELECT id FROM nodes WHERE schema < $1 ORDER BY id LIMIT 1";
    let Some(mut row) = tx.row(text, args![min_binary]).await? else { return Ok(()) };
    let node: NodeId = row.take()?;
    let why =
        format!("the node {node} runs an older program, which could not use the database afterwards; stop it first");
    Err(StoreError::Conflict(why))
}

async fn count(tx: &mut Tx, sql: &'static str) -> Result<u64, StoreError> {
    tx.row(sql, vec![]).await?.ok_or(StoreError::NotFound)?.take()
}

async fn number(tx: &mut Tx, key: &str) -> Result<u64, StoreError> {
    let text = get(tx, key).await?;
    text.and_then(|text| text.parse().ok()).ok_or_else(|| StoreError::Corrupt(format!("`{key}` is missing in meta")))
}

pub(crate) async fn get(tx: &mut Tx, key: &str) -> Result<Option<String>, StoreError> {
    tx.row("SELECT value FROM meta WHERE key = $1", args![key]).await?.map(|mut row| row.take()).transpose()
}

pub(crate) async fn put(tx: &mut Tx, key: &str, value: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    tx.run(sql, args![key, value]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, sqlite};

    /// What databases of schema 1 were made by.
    const GROUND: &str = "3ff63785ea57bfe695b2c8bf92a2258077cfbb1776f3c8e39d590e1e18f8193a";
    /// And those of schema 2.
    const PEOPLE: &str = "227f7ba8065ea3b4d00581d9422bcda1178a4dc10b4816ba810250950d49f291";
    /// And those of schema 3.
    const DEFAULTS: &str = "fa3468e9852bd246a6390d5eea64f905360043370687796a648a0c89f4253f31";
    /// And those of schema 4.
    const CHAT_METADATA: &str = "9f88af023dcdb43f6975d558d2e37ef38df8cc0ad19032c87d59abe479921895";
    /// And those of schema 5.
    const CLOSED_WORKSPACES: &str = "d36e6ec765529ca5566ae7af244fd5313484215a5c38a8a13534ec5be4c87750";
    /// And those of schema 6.
    const RUN_PARENTS: &str = "09c86497181d2e8da8be03dd3efb00587a3228ee8e4c499dd907f1c9da338ff8";
    /// And those of schema 7.
    const MOVED_RUNS: &str = "4dbcc5a6fec24eb7e37874aa54c3d1581783d02d243b1fee6a486e1a19e982b2";
    /// And those of schema 8.
    const PLACES: &str = "e31dd4d1b3e99aa269d06b1db3b3ad2b1fc77a7599d734398feab98a13641e14";

    const fn step(sqlite: &'static str) -> Migration {
        Migration { sqlite, postgres: "", min_binary: 1 }
    }

    fn schema_of(file: &std::path::Path) -> String {
        let connection = rusqlite::Connection::open(file).unwrap();
        connection.query_row("SELECT value FROM meta WHERE key = 'schema'", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn no_script_is_edited_any_more() {
        let known: Vec<_> = (1..=MIGRATIONS.len()).map(|count| made_by(&MIGRATIONS[..count])).collect();
        assert_eq!(
            known,
            [GROUND, PEOPLE, DEFAULTS, CHAT_METADATA, CLOSED_WORKSPACES, RUN_PARENTS, MOVED_RUNS, PLACES],
            "databases were made by these scripts: a change is a migration of its own, and a line here"
        );
    }

    #[tokio::test]
    async fn a_database_goes_forward_step_by_step_and_is_kept_as_it_was() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let (file, copy) = (dir.path().join("a.db"), dir.path().join("a.db.schema-1"));
        let db = sqlite::open(&file, Durability::Full).await.unwrap();
        let first = || step(MIGRATIONS[0].sqlite);
        go_through(&db, &Sealing::Off, &[first()]).await.unwrap();
        assert!(!copy.exists(), "an empty database is not worth a copy");
        db.write("INSERT INTO meta (key, value) VALUES ('mine', 'old')", vec![]).await.unwrap();
        let steps = || {
            [
                first(),
                step("UPDATE meta SET value = 'new' WHERE key = 'mine'"),
                step("ALTER TABLE meta ADD COLUMN more TEXT"),
            ]
        };
        go_through(&db, &Sealing::Off, &steps()).await.unwrap();
        let mine = db.read_one("SELECT value, more FROM meta WHERE key = 'mine'", vec![]).await.unwrap();
        assert_eq!(mine.unwrap().take::<String>().unwrap(), "new");
        assert_eq!((schema_of(&file).as_str(), schema_of(&copy).as_str()), ("3", "1"));
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let old = rusqlite::Connection::open(&copy).unwrap();
        assert_eq!(
            old.query_row("SELECT value FROM meta WHERE key = 'mine'", [], |row| row.get(0)),
            Ok("old".to_owned())
        );

        let broken =
            go_through(&db, &Sealing::Off, &[&steps()[..], &[step("ALTER TABLE nothing ADD COLUMN x")]].concat()).await;
        assert!(broken.is_err());
        assert_eq!(schema_of(&file), "3", "a step that fails changes nothing");
        db.close().await;
    }

    #[tokio::test]
    async fn a_step_that_a_running_node_could_not_live_with_waits_until_it_has_gone() {
        let Some(db) = crate::postgres::tests::fresh().await else { return };
        let step = |postgres, min_binary| Migration { sqlite: "", postgres, min_binary };
        let steps = [
            MIGRATIONS[0],
            step("ALTER TABLE chats ADD COLUMN later TEXT", 1),
            step("ALTER TABLE chats DROP COLUMN later", 3),
        ];
        go_through(&db, &Sealing::Off, &steps[..1]).await.unwrap();
        let node = NodeId::new(adjutant_core::time::Time::from_millis(1), [7; 10]);
        let far = i64::MAX;
        db.write("INSERT INTO nodes (id, expires, schema) VALUES ($1, $2, 1)", args![node, far]).await.unwrap();
        let refused = go_through(&db, &Sealing::Off, &steps).await;
        let Err(StoreError::Conflict(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains(&node.to_string()), "{why}");
        let schema = async || {
            let row = db.read_one("SELECT value FROM meta WHERE key = 'schema'", vec![]).await.unwrap();
            row.unwrap().take::<String>().unwrap()
        };
        assert_eq!(schema().await, "2", "what it can live with is done, the rest is not");
        db.write("UPDATE nodes SET expires = 1", vec![]).await.unwrap();
        go_through(&db, &Sealing::Off, &steps).await.unwrap();
        assert_eq!(schema().await, "3", "it is dead");
        let nodes = db.read_one("SELECT count(*) FROM nodes", vec![]).await.unwrap();
        assert_eq!(nodes.unwrap().take::<i64>().unwrap(), 0, "should it only have slept, it has to ask again");
        db.close().await;
    }
    #[tokio::test]
    async fn a_step_that_meets_a_reader_lets_others_by_and_is_taken_once_the_reader_is_done() {
        let Some(db) = crate::postgres::tests::fresh().await else { return };
        let later = "ALTER TABLE chats ADD COLUMN later TEXT";
        let steps = [MIGRATIONS[0], Migration { sqlite: "", postgres: later, min_binary: 1 }];
        go_through(&db, &Sealing::Off, &steps[..1]).await.unwrap();
        let mut reader = db.begin().await.unwrap();
        reader.rows("SELECT count(*) FROM chats", vec![]).await.unwrap();
        let waits = async || {
            let text = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'chats'::regclass";
            db.read_one(text, vec![]).await.unwrap().unwrap().take::<i64>().unwrap() > 0
        };
        let watching = async {
            while !waits().await {}
            // It gives way, although nothing has changed.
            while waits().await {}
            assert_eq!(readers(&db).await.unwrap().len(), 1, "whoever stands in the way can be named");
            reader.commit().await.unwrap();
        };
        let (stepped, ()) = tokio::join!(go_through(&db, &Sealing::Off, &steps), watching);
        stepped.unwrap();
        db.read("SELECT later FROM chats", vec![]).await.unwrap();
        db.close().await;
    }

    /// A database of the first schema, with something in every table that later ones changed, brought forward and looked at.
    async fn come_forward(db: Db) {
        use adjutant_core::id::{AgentId, ChatId, UserId, WorkspaceId};
        use adjutant_core::time::Time;
        let at = Time::from_millis(1_700_000_000_000);
        let (workspace, agent) = (WorkspaceId::new(at, [1; 10]), AgentId::new(at, [2; 10]));
        let (chat, person) = (ChatId::new(at, [3; 10]), UserId::new(at, [4; 10]));
        go_through(&db, &Sealing::Off, &MIGRATIONS[..1]).await.unwrap();
        let rows = [
            (
                "INSERT INTO workspaces (id, slug, name, time_zone, created_at) VALUES ($1, 'lab', 'Lab', 'UTC', $2)",
                args![workspace, at],
            ),
            ("INSERT INTO users (id, name, created_at) VALUES ($1, 'ada', $2)", args![person, at]),
            (
                "INSERT INTO members (workspace, person, role, since) VALUES ($1, $2, 'admin', $3)",
                args![workspace, person, at],
            ),
            (
                "INSERT INTO agents (workspace, id, slug, version, owner) VALUES ($1, $2, 'guide', 1, $3)",
                args![workspace, agent, person],
            ),
            (
                "INSERT INTO agent_versions (workspace, agent, version, slug, active, spec, saved_at) \
                 VALUES ($1, $2, 1, 'guide', 1, '{}', $3)",
                args![workspace, agent, at],
            ),
            (
                "INSERT INTO chats (workspace, id, agent, owner, title, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
                args![workspace, chat, agent, person, b"Before".to_vec(), at],
            ),
        ];
        for (text, args) in rows {
            db.write(text, args).await.unwrap();
        }
        let store = crate::Store::open(db, &Sealing::Off, Marked::Refused).await.unwrap();
        assert_eq!(store.health().await.unwrap().schema, KNOWN);
        let row = store.workspace(workspace).await.unwrap().unwrap();
        assert_eq!((row.slug.as_str(), row.is_closed()), ("lab", false));
        assert_eq!(store.user_by_name("ada").await.unwrap().map(|row| row.id), Some(person));
        let row = store.agent(workspace, agent).await.unwrap().unwrap();
        assert_eq!((row.owner, row.people), (Some(person), crate::row::AgentPeople::default()));
        let row = store.chat(workspace, chat).await.unwrap().unwrap();
        assert_eq!((row.title.as_str(), row.model.clone(), row.metadata.clone()), ("Before", None, None));
        let row = crate::row::ChatRow { metadata: Some("{}".into()), model: Some("a/b".into()), ..row };
        assert!(store.change_chat(&row).await.unwrap());
        assert_eq!(store.chat(workspace, chat).await.unwrap().unwrap().model.as_deref(), Some("a/b"));
        store.close().await;
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_database_that_is_made_now() {
        let dir = tempfile::tempdir().unwrap();
        let db = sqlite::open(&dir.path().join("a.db"), Durability::Full).await.unwrap();
        go_through(&db, &Sealing::Off, MIGRATIONS).await.unwrap();
        db.close().await;
        let mut names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.all(|name| !name.to_string_lossy().contains("schema")));
    }

    #[tokio::test]
    async fn a_filled_database_of_the_first_schema_comes_forward_and_is_used() {
        let dir = tempfile::tempdir().unwrap();
        come_forward(sqlite::open(&dir.path().join("a.db"), Durability::Full).await.unwrap()).await;
        assert_eq!(schema_of(&dir.path().join("a.db.schema-1")), "1", "it is kept as it was");
        if let Some(db) = crate::postgres::tests::fresh().await {
            come_forward(db).await;
        }
    }
}
