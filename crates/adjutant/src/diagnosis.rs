//! How an instance is, one row for each thing that can be well or not. Honest about what is off.

use std::os::unix::fs::PermissionsExt;

use adjutant_engine::store::row::WorkspaceRow;
use adjutant_engine::tools::Confinement;
use adjutant_engine::{Engine, EngineError, FOREVER, Home};

use crate::agent_file::Problem;
use crate::backup;
use crate::cli::words::size;
use crate::config::{Config, Database, Durability, KeySource, Kind};
use crate::instance::DATABASE;

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ok,
    Enforced,
    Degraded,
    Off,
    Problem,
}

impl State {
    const ALL: [Self; 5] = [Self::Ok, Self::Enforced, Self::Degraded, Self::Off, Self::Problem];

    /// The state of this word.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Enforced => "enforced",
            Self::Degraded => "degraded",
            Self::Off => "off",
            Self::Problem => "problem",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) detail: String,
}

pub(crate) fn row(name: &str, state: State, detail: impl Into<String>) -> Check {
    Check { name: name.to_owned(), state, detail: detail.into() }
}

/// What can be said without opening anything.
pub(crate) fn outside(config: &Config) -> Vec<Check> {
    let mut checks = vec![row("data directory", State::Ok, config.data.value.display().to_string())];
    checks.push(master_key(config));
    checks.push(open_files(config));
    checks.extend(kept_copies(config));
    checks.extend(left_of_restores(config));
    checks.extend(providers(config));
    checks
}

/// Copies of the database as it was before an upgrade.
fn kept_copies(config: &Config) -> Vec<Check> {
    let entries = std::fs::read_dir(&config.data.value).into_iter().flatten().flatten();
    let mut copies: Vec<_> = entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?.len())))
        .filter(|(name, _)| name.starts_with(&format!("{DATABASE}.schema-")))
        .collect();
    copies.sort();
    let said = |bytes| {
        format!("{}, as it was before an upgrade: erasing does not reach it; delete it once you are sure", size(bytes))
    };
    copies.into_iter().map(|(name, bytes)| row(&format!("copy {name}"), State::Degraded, said(bytes))).collect()
}

/// Folders that a restore has left which was killed.
fn left_of_restores(config: &Config) -> Vec<Check> {
    let what = "left by a restore that did not come to its end, and may hold a copy of the master key: restore again, or delete it";
    let named = |left: std::path::PathBuf| row(&format!("folder {}", left.display()), State::Degraded, what);
    backup::left_beside(&config.data.value).into_iter().map(named).collect()
}

/// What a process needs beside streams, runs and requests: the database, the page, its own logs.
const OTHER_FILES: u64 = 256;

/// Whether this process may have as many files as it takes on: a stream is one, and so is what a run or a request talks to.
pub(crate) fn open_files(config: &Config) -> Check {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let at_once = config.most.streams.value + config.most.runs.value + config.most.requests.value;
    let needed = u64::try_from(at_once).unwrap_or(u64::MAX).saturating_add(OTHER_FILES);
    match most {
        Some(most) if most < needed => {
            let why = "max_streams, max_runs and max_requests together need";
            let what = format!("{most} at the most; {why} {needed}: raise the limit (LimitNOFILE, ulimit -n)");
            row("open files", State::Degraded, what)
        }
        Some(most) => row("open files", State::Ok, format!("{most} at the most")),
        None => row("open files", State::Ok, "no limit"),
    }
}

/// What an open instance shows at a glance.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn inside(
    config: &Config,
    engine: &Engine,
    home: Home,
    problems: &[Problem],
) -> Result<Vec<Check>, EngineError> {
    let mut checks = Vec::new();
    let health = engine.store().health().await?;
    let kept = match config.database.value {
        Database::Sqlite => format!("journal {}, durability {}", health.journal, config.durability.value),
        Database::Postgres(_) => format!("journal {}", health.journal),
    };
    checks.push(row(
        "database",
        State::Ok,
        format!("{} {} · {kept} · {} KiB", health.backend, health.version, health.bytes / 1024),
    ));
    if !health.writable {
        let why = "cannot be written: the disk did not confirm a write (start again), or the server only reads";
        checks.push(row("database", State::Problem, why));
    }
    checks.extend(durability(config));
    checks.push(row("schema", State::Ok, health.schema.to_string()));
    checks.push(if health.sealed {
        row("sealing at rest", State::Enforced, "XChaCha20-Poly1305, a key for each workspace")
    } else {
        row("sealing at rest", State::Off, "encrypt = false: what agents read and say is stored as plain text")
    });
    checks.push(row("sandbox", State::Off, "no tool runs code or commands in this version"));
    let mut tenants = engine.store().workspaces().await?;
    tenants.retain(|tenant| !tenant.is_closed());
    for tenant in &tenants {
        let sizes = engine.sizes(tenant.id).await?;
        let bytes = size(sizes.event_bytes + sizes.content_bytes + sizes.audit_bytes);
        let kept = tenant.keep_runs.as_deref().unwrap_or(FOREVER);
        let detail = format!("{} runs · {} erased · {bytes} · runs are kept: {kept}", sizes.runs, sizes.erased);
        checks.push(row(&format!("workspace {}", tenant.slug), State::Ok, detail));
    }
    notebooks(engine, home, &tenants, &mut checks).await?;
    agents(engine, home, &tenants, &mut checks).await?;
    checks.extend(problems.iter().map(|problem| row("agent file", State::Problem, problem.to_string())));
    checks.push(match engine.model(&config.default_model.value) {
        Ok(_) => row("default model", State::Ok, config.default_model.value.clone()),
        Err(error) => row("default model", State::Problem, error.to_string()),
    });
    Ok(checks)
}

/// What a commit outlasts. A server's database has settings of its own.
fn durability(config: &Config) -> Option<Check> {
    match (&config.database.value, config.durability.value) {
        (Database::Postgres(_), _) => None,
        (Database::Sqlite, Durability::Full) => {
            Some(row("durability", State::Enforced, "full: a commit is on the disk before it is answered"))
        }
        (Database::Sqlite, Durability::Normal) => {
            Some(row("durability", State::Degraded, "normal: a power cut may lose the last moments"))
        }
    }
}

fn master_key(config: &Config) -> Check {
    if !config.encrypt.value {
        return row("master key", State::Off, "encrypt = false");
    }
    match &config.key.value {
        KeySource::Data => {
            let path = config.data.value.join("master.key");
            match path.metadata().map(|about| about.permissions().mode() & 0o077) {
                Ok(0) => row("master key", State::Ok, format!("{} (only its owner can read it)", path.display())),
                Ok(_) => {
                    row("master key", State::Degraded, format!("{} can be read by others: chmod 600", path.display()))
                }
                Err(_) => row("master key", State::Ok, "made at the first start"),
            }
        }
        other @ (KeySource::Value(_) | KeySource::File(_)) => {
            row("master key", State::Ok, format!("{other} ({})", config.key.origin))
        }
    }
}

fn providers(config: &Config) -> Vec<Check> {
    let mut rows = vec![row("model demo/guide", State::Ok, "built in, scripted, free")];
    rows.extend(config.providers.iter().map(|provider| {
        let state = if provider.missing.is_some() { State::Off } else { State::Ok };
        let most = match &provider.kind {
            Kind::Remote(remote) => format!(" · {} calls at once", remote.calls_at_once),
            Kind::Scripted(_) => String::new(),
        };
        let said = format!("{provider} · {} · not stored{most}", provider.origin);
        row(&format!("provider {}", provider.name), state, said)
    }));
    rows
}

/// A name that says whose the thing is, where it is another workspace's.
fn named(name: &str, home: Home, tenant: &WorkspaceRow) -> String {
    if tenant.id == home.workspace { name.to_owned() } else { format!("{name} ({})", tenant.slug) }
}

async fn notebooks(
    engine: &Engine,
    home: Home,
    tenants: &[WorkspaceRow],
    checks: &mut Vec<Check>,
) -> Result<(), EngineError> {
    let mut confined = None;
    for tenant in tenants {
        for notebook in engine.store().notebooks(tenant.id).await? {
            let folder =
                notebook.linked.clone().unwrap_or_else(|| engine.notebook_folder(notebook.id).display().to_string());
            let name = named(&format!("notebook {}", notebook.slug), home, tenant);
            checks.push(match engine.notebook(tenant.id, notebook.id).await {
                Ok(opened) => {
                    confined = Some(opened.files.confinement());
                    row(&name, State::Ok, folder)
                }
                Err(error) => row(&name, State::Problem, format!("{error} ({folder})")),
            });
        }
    }
    let stray = engine.stray_folders().await?;
    if !stray.is_empty() {
        let what = format!(
            "{} in {} belong to no notebook: left over from one that was taken away, or from another database",
            stray.join(", "),
            engine.notebooks_folder().display()
        );
        checks.push(row("notebook folders", State::Degraded, what));
    }
    checks.extend(confined.map(|confinement| match confinement {
        Confinement::Kernel => row("file confinement", State::Enforced, "by the kernel (openat2)"),
        Confinement::Walk => {
            row("file confinement", State::Enforced, "step by step, because this kernel lacks openat2")
        }
    }));
    Ok(())
}

async fn agents(
    engine: &Engine,
    home: Home,
    tenants: &[WorkspaceRow],
    checks: &mut Vec<Check>,
) -> Result<(), EngineError> {
    for tenant in tenants {
        let rows = engine.store().agents(tenant.id).await?;
        let names: Vec<_> =
            rows.iter().map(|row| if row.active { row.slug.clone() } else { format!("{} (off)", row.slug) }).collect();
        checks.push(row(&named("agents", home, tenant), State::Ok, names.join(", ")));
    }
    Ok(())
}
