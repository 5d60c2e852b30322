//! `doctor`: how this instance is, one row for each thing that can be well or not. Honest about what is off.

use std::os::unix::fs::PermissionsExt;

use adjutant_engine::AuditLog;
use adjutant_engine::store::row::RunFilter;
use adjutant_engine::tools::Confinement;
use serde_json::json;

use super::Context;
use super::audit;
use super::terminal::{Style, clean};
use super::words::count;
use crate::config::{Config, Database, KeySource};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

/// Runs whose chains are checked unless more are asked for.
const RUNS: usize = 50;
/// Runs rebuilt at a time.
const PAGE: u32 = 256;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Make the tables beside the logs again from the logs
    #[arg(long)]
    rebuild: bool,
    /// How many of the newest runs to verify
    #[arg(long, default_value_t = RUNS, value_name = "N")]
    runs: usize,
}

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    Enforced,
    Degraded,
    Off,
    Problem,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Enforced => "enforced",
            Self::Degraded => "degraded",
            Self::Off => "off",
            Self::Problem => "problem",
        }
    }

    fn paint(self, style: Style, text: &str) -> String {
        match self {
            Self::Ok | Self::Enforced => style.good(text),
            Self::Degraded | Self::Off => style.warn(text),
            Self::Problem => style.bad(text),
        }
    }
}

#[derive(Debug)]
struct Check {
    name: String,
    state: State,
    detail: String,
}

fn row(name: &str, state: State, detail: impl Into<String>) -> Check {
    Check { name: name.to_owned(), state, detail: detail.into() }
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let config = context.config()?;
    let mut checks = vec![row("data directory", State::Ok, config.data.value.display().to_string())];
    checks.push(master_key(&config));
    checks.extend(providers(&config));
    let failure = match Instance::open(&config, "doctor").await {
        Ok(instance) => {
            let looked = look(&config, &instance, &args, &mut checks).await;
            instance.close().await;
            looked.err()
        }
        Err(failure) => Some(failure),
    };
    checks.extend(failure.as_ref().map(|failure| row("database", State::Problem, failure.message.clone())));
    let worst = checks.iter().any(|check| check.state == State::Problem);
    print(context, &checks, worst);
    match failure {
        Some(failure) => Err(failure),
        None if worst => Ok(Exit::Other),
        None => Ok(Exit::Done),
    }
}

fn print(context: &Context, checks: &[Check], worst: bool) {
    let rows: Vec<_> = checks
        .iter()
        .map(|check| json!({"name": check.name, "state": check.state.word(), "detail": check.detail}))
        .collect();
    context.print(&json!({"status": if worst { "problem" } else { "ok" }, "checks": rows}), || {
        let width = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
        let line = |check: &Check| {
            let name = format!("{:<width$}", check.name);
            let state = check.state.paint(context.terminal.out, &format!("{:<8}", check.state.word()));
            format!("{name}  {state}  {}", clean(&check.detail))
        };
        checks.iter().map(line).collect()
    });
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
        row(&format!("provider {}", provider.name), state, format!("{provider} · {} · not stored", provider.origin))
    }));
    rows
}

async fn look(config: &Config, instance: &Instance, args: &Args, checks: &mut Vec<Check>) -> Result<(), Failure> {
    let store = instance.engine.store();
    let health = store.health().await?;
    let kept = match config.database.value {
        Database::Sqlite => format!("journal {}, durability {}", health.journal, config.durability.value),
        Database::Postgres(_) => format!("journal {}", health.journal),
    };
    checks.push(row(
        "database",
        State::Ok,
        format!("{} {} · {kept} · {} KiB", health.backend, health.version, health.bytes / 1024),
    ));
    checks.push(row("schema", State::Ok, health.schema.to_string()));
    checks.push(match store.check_integrity().await {
        Ok(()) => row("pages", State::Ok, "no damage found"),
        Err(error) => row("pages", State::Problem, error.to_string()),
    });
    checks.push(if health.sealed {
        row("sealing at rest", State::Enforced, "XChaCha20-Poly1305, a key for each workspace")
    } else {
        row("sealing at rest", State::Off, "encrypt = false: what agents read and say is stored as plain text")
    });
    checks.push(row("sandbox", State::Off, "no tool runs code or commands in this version"));
    notebooks(instance, checks).await?;
    agents(instance, checks).await?;
    checks.push(match instance.engine.model(&config.default_model.value) {
        Ok(_) => row("default model", State::Ok, config.default_model.value.clone()),
        Err(error) => row("default model", State::Problem, error.to_string()),
    });
    if args.rebuild {
        let rebuilt = rebuild(instance).await?;
        checks.push(row(
            "rebuild",
            State::Ok,
            format!("the tables of {} were made again from their logs", count(rebuilt, "run", "runs")),
        ));
    }
    let checked = audit::check(instance, args.runs).await?;
    let whole = format!("{} verified, {} events", count(checked.runs, "newest run", "newest runs"), checked.events);
    checks.push(match checked.broken.first() {
        None => row("chains", State::Enforced, whole),
        Some((run, why)) => {
            row("chains", State::Problem, format!("{} of {} broken; {run}: {why}", checked.broken.len(), checked.runs))
        }
    });
    Ok(())
}

async fn notebooks(instance: &Instance, checks: &mut Vec<Check>) -> Result<(), Failure> {
    let mut confined = None;
    for notebook in instance.engine.store().notebooks(instance.home.workspace).await? {
        let folder = notebook
            .linked
            .clone()
            .unwrap_or_else(|| instance.engine.notebook_folder(notebook.id).display().to_string());
        let name = format!("notebook {}", notebook.slug);
        checks.push(match instance.engine.notebook(instance.home.workspace, notebook.id).await {
            Ok(opened) => {
                confined = Some(opened.files.confinement());
                row(&name, State::Ok, folder)
            }
            Err(error) => row(&name, State::Problem, format!("{error} ({folder})")),
        });
    }
    checks.extend(confined.map(|confinement| match confinement {
        Confinement::Kernel => row("file confinement", State::Enforced, "by the kernel (openat2)"),
        Confinement::Walk => {
            row("file confinement", State::Enforced, "step by step, because this kernel lacks openat2")
        }
    }));
    Ok(())
}

async fn agents(instance: &Instance, checks: &mut Vec<Check>) -> Result<(), Failure> {
    let rows = instance.engine.store().agents(instance.home.workspace).await?;
    let names: Vec<_> =
        rows.iter().map(|row| if row.active { row.slug.clone() } else { format!("{} (off)", row.slug) }).collect();
    checks.push(row("agents", State::Ok, names.join(", ")));
    checks.extend(instance.agent_problems.iter().map(|problem| row("agent file", State::Problem, problem.to_string())));
    Ok(())
}

/// Makes the rows of every run again from its log.
async fn rebuild(instance: &Instance) -> Result<usize, Failure> {
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let mut filter = RunFilter { superseded: true, ..RunFilter::default() };
    let mut rebuilt = 0;
    engine.rebuild_audit(AuditLog::Instance).await?;
    engine.rebuild_audit(AuditLog::Workspace(workspace)).await?;
    loop {
        let rows = engine.store().runs(workspace, &filter, PAGE).await?;
        let last = rows.len() < PAGE as usize;
        for row in rows {
            engine.rebuild_run(workspace, row.id).await?;
            filter.before = Some(row.id);
            rebuilt += 1;
        }
        if last {
            return Ok(rebuilt);
        }
    }
}
