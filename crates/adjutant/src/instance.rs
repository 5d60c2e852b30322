//! An instance: one data directory with its lock, key, database, models and agents, opened for one process. Whatever stands
//! in the way is said in a sentence, and nothing is changed before it is clear that all of it can be used.

mod agents;
mod beacon;
pub(crate) mod catalog;
mod key;
mod lock;
mod models;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adjutant_core::guard::rate::Rate;
use adjutant_engine::models::{ModelSource, Models};
use adjutant_engine::store::{Durability, Sealing, Store, StoreError};
use adjutant_engine::tools::Registry;
use adjutant_engine::tools::net::{Connector, SystemLookup};
use adjutant_engine::{Collector, Engine, Env, Home, Parts, Tracing, Unpriced, provider_client};
use secrecy::ExposeSecret;

pub(crate) use self::agents::{files_of, known, remember as remember_agent_file, save as save_agent_file};
pub(crate) use self::beacon::Beacon;
pub(crate) use self::key::{NAME as MASTER_KEY, Next as NextKey, named as named_key};
pub(crate) use self::lock::Lock;
use crate::agent_file::Problem;
use crate::backup;
use crate::config::{self, Config, Database, KeySource, Traces};
use crate::failure::{Exit, Failure};

/// The database, if it is SQLite.
pub(crate) const DATABASE: &str = "adjutant.db";
const NOTEBOOKS: &str = "notebooks";
/// What was laid over the built-in catalog of models.
pub(crate) const CATALOG: &str = "catalog.json";

/// What no notebook may hold: where everything is kept, and what says how.
pub(crate) fn own_places(config: &Config) -> Vec<PathBuf> {
    let key = match &config.key.value {
        KeySource::File(path) => Some(path.clone()),
        KeySource::Value(_) | KeySource::Data => None,
    };
    [Some(config.data.value.clone()), config.file.clone(), key].into_iter().flatten().collect()
}

/// An opened instance.
pub(crate) struct Instance {
    pub(crate) engine: Engine,
    pub(crate) models: Arc<Models>,
    pub(crate) home: Home,
    pub(crate) first_start: bool,
    /// What is wrong with the agent files.
    pub(crate) agent_problems: Vec<Problem>,
    lock: Option<Lock>,
    tracing: Option<Tracing>,
}

impl Instance {
    /// Opens the instance of a configuration. `what` is told to others who want it meanwhile.
    ///
    /// # Errors
    /// What stands in the way.
    pub(crate) async fn open(config: &Config, what: &str) -> Result<Self, Failure> {
        let data = &config.data.value;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(data);
        made.map_err(|error| unusable(data, &error))?;
        let lock = match &config.database.value {
            Database::Sqlite => Some(Lock::take(data, what)?),
            Database::Postgres(_) => None,
        };
        #[cfg(feature = "faults")]
        let env = crate::fault::env();
        #[cfg(not(feature = "faults"))]
        let env = Env::system();
        let models = models::models(&config.providers, &data.join(CATALOG))?;
        let store = open_store(config, &env, Opening::Whole).await?;
        // One that is in use is nothing that a restore has left.
        backup::finished(data).map_err(|error| unusable(data, &error))?;
        let parts = parts(config, store.clone(), env, &models);
        let started = Self::start(parts, models, data, lock).await;
        let watched = started.and_then(|instance| instance.watched(config.traces.as_ref().map(|traces| &traces.value)));
        match watched {
            Ok(instance) => Ok(instance),
            Err(failure) => {
                store.close().await;
                Err(failure)
            }
        }
    }

    async fn start(parts: Parts, models: Arc<Models>, data: &Path, lock: Option<Lock>) -> Result<Self, Failure> {
        let first_start = parts.store.workspace_by_slug("home").await?.is_none();
        let engine = Engine::new(parts)?;
        let home = engine.home().await?;
        let agent_problems = agents::load(&engine, home, data).await?;
        Ok(Self { engine, models, home, first_start, agent_problems, lock, tracing: None })
    }

    /// The same, sending traces if the configuration says where to.
    fn watched(mut self, traces: Option<&Traces>) -> Result<Self, Failure> {
        let Some(traces) = traces else { return Ok(self) };
        let collector = Collector {
            endpoint: traces.endpoint.clone(),
            service: traces.service.clone(),
            version: env!("CARGO_PKG_VERSION"),
            node: self.engine.node().to_string(),
        };
        let client =
            provider_client().map_err(|error| Failure::other(format!("No connection can be made: {error}.")))?;
        self.tracing = Some(Tracing::start(collector, client)?);
        Ok(self)
    }

    /// Refuses to go on while an agent file is broken: what its agent may do is then not known.
    ///
    /// # Errors
    /// Every problem of the agent files.
    pub(crate) fn require_agents(&self) -> Result<(), Failure> {
        if self.agent_problems.is_empty() {
            return Ok(());
        }
        let problems = self.agent_problems.iter().map(ToString::to_string).collect();
        Err(Failure::usage("An agent file cannot be read, so no run is started or continued.")
            .problems(problems)
            .hint("repair the file or take it away; adjutant agents validate FILE checks it"))
    }

    /// Makes what follows be done in another workspace than the first: its id or short name.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) async fn enter(&mut self, name: &str) -> Result<(), Failure> {
        let rows = self.engine.store().workspaces().await?;
        let found = rows.iter().find(|row| !row.is_closed() && (row.slug == name || row.id.to_string() == name));
        let none = || Failure::not_found(format!("There is no workspace `{name}`. Nothing was done."));
        self.home.workspace = found.ok_or_else(none)?.id;
        Ok(())
    }

    /// Tells more to whoever wants the data directory meanwhile.
    pub(crate) fn note(&self, what: &str) {
        if let Some(lock) = &self.lock {
            lock.note(what);
        }
    }

    /// Writes what is queued and lets go of everything.
    pub(crate) async fn close(self) {
        if let Some(tracing) = self.tracing {
            tracing.stop().await;
        }
        self.engine.store().clone().close().await;
    }
}

/// What an engine is made of by a configuration.
fn parts(config: &Config, store: Store, env: Env, models: &Arc<Models>) -> Parts {
    Parts {
        store,
        env,
        models: Arc::clone(models) as Arc<dyn ModelSource>,
        tools: config.tools.of(tools()),
        notebooks: config.data.value.join(NOTEBOOKS),
        default_model: config.default_model.value.clone(),
        connector: connector(config),
        user_rate: Some(Rate::per_minute(config.most.user_calls_per_minute.value)),
        max_runs: config.most.runs.value,
        unpriced: if config.allow_unpriced.value { Unpriced::Allow } else { Unpriced::Ask },
    }
}

/// An engine on a copy that nobody has looked at yet, and that nobody else can open. Opening it changes nothing; whoever calls this
/// has the lock of the data directory, or it is theirs alone.
///
/// # Errors
/// What stands in the way.
pub(crate) async fn open_copy(config: &Config) -> Result<Engine, Failure> {
    let env = Env::system();
    let models = models::models(&config.providers, &config.data.value.join(CATALOG))?;
    let store = open_store(config, &env, Opening::Copy).await?;
    Ok(Engine::new(parts(config, store, env, &models))?)
}

/// The door to the network: public addresses, and what the operator opened.
pub(crate) fn connector(config: &Config) -> Connector {
    let open = config.allow_private.as_ref().map(|open| open.value.clone()).unwrap_or_default();
    Connector::new(Arc::new(SystemLookup), open)
}

/// The tools of every instance.
#[cfg(not(feature = "faults"))]
fn tools() -> Registry {
    Registry::builtin()
}

/// The tools of an instance that is made to crash.
#[cfg(feature = "faults")]
fn tools() -> Registry {
    let mut tools = Registry::builtin();
    tools.add(std::sync::Arc::new(crate::fault::RingBell::new()));
    tools
}

/// What is opened.
#[derive(Debug, Clone, Copy)]
enum Opening {
    /// A database that is in use.
    Whole,
    /// A copy that still carries its mark.
    Copy,
}

async fn open_store(config: &Config, env: &Env, opening: Opening) -> Result<Store, Failure> {
    let file = config.data.value.join(DATABASE);
    let database = match &config.database.value {
        Database::Sqlite if file.metadata().is_ok_and(|about| about.len() > 0) => key::Database::Old,
        Database::Sqlite | Database::Postgres(_) => key::Database::New,
    };
    let (sealing, made) = if config.encrypt.value {
        let found = key::find(&config.key.value, &config.data.value, database, env)?;
        (Sealing::On(found.key), found.made)
    } else {
        (Sealing::Off, None)
    };
    let mut opened = open_sealed(config, sealing, opening).await;
    let next = key::Next::of(&config.key.value, &config.data.value).filter(|_| config.encrypt.value);
    if let (Err(StoreError::WrongKey), Some(next)) = (&opened, &next)
        && let Some(key) = next.read()?
    {
        // Replacing the master key was cut off after everything was sealed with the new one.
        opened = open_sealed(config, Sealing::On(key), opening).await;
        if opened.is_ok() {
            next.take_place(env)?;
        }
    } else if let (Ok(_), Some(next)) = (&opened, &next)
        && next.is_alone()
    {
        next.take_place(env)?;
    }
    opened.map_err(|error| {
        // A key that was made for a database that has another one would only mislead.
        if let (StoreError::WrongKey, Some(path)) = (&error, &made)
            // On a database that others open too, a real key may have taken its name meanwhile.
            && matches!(config.database.value, Database::Sqlite)
        {
            let _ = std::fs::remove_file(path);
        }
        error.into()
    })
}

async fn open_sealed(config: &Config, sealing: Sealing, opening: Opening) -> Result<Store, StoreError> {
    let file = config.data.value.join(DATABASE);
    match (&config.database.value, opening) {
        (Database::Sqlite, Opening::Whole) => {
            let durability = match config.durability.value {
                config::Durability::Full => Durability::Full,
                config::Durability::Normal => Durability::Normal,
            };
            Store::open_sqlite(&file, durability, sealing).await
        }
        (Database::Sqlite, Opening::Copy) => Store::open_sqlite_copy(&file, sealing).await,
        (Database::Postgres(url), Opening::Whole) => Store::open_postgres(url.expose_secret(), sealing).await,
        (Database::Postgres(url), Opening::Copy) => Store::open_postgres_copy(url.expose_secret(), sealing).await,
    }
}

/// A file or folder of the instance that cannot be used.
pub(crate) fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind;
    let path = path.display();
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Failure::new(Exit::Usage, "read_only", format!("{path} cannot be used: {error}. Nothing was done."))
                .hint("make it readable and writable for this user, or choose another data directory with --data DIR")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Failure::new(
            Exit::Other,
            "disk_full",
            format!("{path} cannot be written: the disk is full. Nothing was done."),
        )
        .hint("make room, then try again"),
        _ => Failure::other(format!("{path} cannot be used: {error}. Nothing was done.")),
    }
}
