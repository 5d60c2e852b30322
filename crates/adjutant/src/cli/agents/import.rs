//! `agents import`: copy agent files into the data directory. What each could touch is shown first, and a person says yes.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use adjutant_core::guard::policy::AgentConfig;
use adjutant_engine::tools::Registry;
use serde_json::json;

use super::{config_in, config_of, summary};
use crate::agent_file::{self, AgentFile};
use crate::cli::output::tell;
use crate::cli::place::{Place, Work};
use crate::cli::remote::Remote;
use crate::cli::terminal::one_line;
use crate::cli::{Context, prompt};
use crate::failure::{Exit, Failure};
use crate::instance;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file, or a folder whose `.md` files are taken
    path: PathBuf,
    /// At a server: make those that are new your own, and not the workspace's
    #[arg(long)]
    own: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// One agent that was imported.
struct Imported {
    slug: String,
    /// What it replaced, and what that changes.
    instead: Vec<String>,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let files = read(&args.path)?;
    let place = Place::find(context, "agents", Work::Looks).await?;
    let imported = import(context, &place, &files, &args).await;
    place.close().await;
    let imported = imported?;
    let slugs: Vec<_> = imported.iter().map(|one| &one.slug).collect();
    context.print(&json!({"imported": slugs}), || {
        let lines = |one: &Imported| match one.instead.as_slice() {
            [] => vec![format!("✔ {} is imported", one.slug)],
            [what, changes @ ..] => {
                std::iter::once(format!("✔ {} is imported: {what}", one.slug)).chain(changes.iter().cloned()).collect()
            }
        };
        imported.iter().flat_map(lines).collect()
    });
    Ok(if imported.len() == files.len() { Exit::Done } else { Exit::Rejected })
}

/// Every agent there, all of them readable.
fn read(path: &Path) -> Result<Vec<AgentFile>, Failure> {
    let paths = if path.is_dir() {
        instance::files_of(path)
            .map_err(|error| Failure::usage(format!("{} cannot be read: {error}.", path.display())))?
    } else {
        vec![path.to_owned()]
    };
    let known = instance::known(&Registry::builtin());
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for path in &paths {
        match agent_file::read(path, &known) {
            Ok(file) => files.push(file),
            Err(found) => problems.extend(found.iter().map(ToString::to_string)),
        }
    }
    if !problems.is_empty() {
        return Err(Failure::usage("Some files are no agents, so none was imported.").problems(problems));
    }
    if files.is_empty() {
        return Err(Failure::usage(format!("There is no `.md` file in {}. Nothing was imported.", path.display())));
    }
    Ok(files)
}

async fn import(context: &Context, place: &Place, files: &[AgentFile], args: &Args) -> Result<Vec<Imported>, Failure> {
    if args.own && matches!(place, Place::Here(_)) {
        let what = "An agent of a file in the data directory belongs to the workspace. Nothing was imported.";
        return Err(Failure::usage(what).hint("leave --own out, or say it to a server (--url)"));
    }
    let mut imported = Vec::new();
    for file in files {
        let slug = &file.config.slug;
        let before = before(place, slug).await?;
        let replaces = |(version, old): &(u64, Option<_>)| replaced(*version, old.as_ref(), &file.config);
        let instead = before.as_ref().map(replaces).unwrap_or_default();
        if !args.yes {
            let style = context.terminal.err;
            tell(&format!("{}  {}", style.bold(slug), instead.first().map_or("(new)", String::as_str)));
            for line in instead.iter().skip(1).cloned().chain(summary(&file.config, style)) {
                tell(&format!("  {line}"));
            }
            if !context.terminal.interactive {
                return Err(Failure::usage("Nobody can be asked here, so nothing more was imported.")
                    .hint("look at the above, then add --yes"));
            }
            if !prompt::confirm(&format!("Import {slug}?")).await {
                continue;
            }
        }
        match place {
            Place::Here(instance) => {
                keep(&context.config()?.data.value, file, &written(file)?)?;
                instance::save_agent_file(&instance.engine, instance.home, file).await?;
            }
            Place::There(remote) => {
                let owner = if args.own { "user" } else { "workspace" };
                save_there(remote, before.map(|(version, _)| version), file, owner).await?;
                // Else the next start would bring back the file that was there. What is somebody's own has no file there.
                if Remote::is_ours(context) && !args.own {
                    keep(&context.config()?.data.value, file, &written(file)?)?;
                }
            }
        }
        imported.push(Imported { slug: slug.clone(), instead });
    }
    Ok(imported)
}

/// The version and the configuration of the agent that is there; no configuration where it cannot be read.
pub(super) async fn before(place: &Place, slug: &str) -> Result<Option<(u64, Option<AgentConfig>)>, Failure> {
    match place {
        Place::Here(instance) => {
            let row = instance.engine.store().agent_by_slug(instance.home.workspace, slug).await?;
            Ok(row.map(|row| (row.version, config_of(&row).ok())))
        }
        Place::There(remote) => match remote.get(&["agents", slug], &[]).await {
            Ok(document) => Ok(Some((document["version"].as_u64().unwrap_or(0), config_in(&document)))),
            Err(failure) if failure.code == "not_found" => Ok(None),
            Err(failure) => Err(failure),
        },
    }
}

pub(super) async fn save_there(
    remote: &Remote,
    version: Option<u64>,
    file: &AgentFile,
    owner: &str,
) -> Result<(), Failure> {
    let mut body = serde_json::to_value(&file.spec).unwrap_or_default();
    let slug = file.config.slug.as_str();
    body["slug"] = json!(slug);
    if let Some(version) = version {
        return remote.put_if(&["agents", slug], &format!("\"v{version}\""), &body).await.map(drop);
    }
    body["workspace_id"] = json!(remote.only_workspace().await?);
    body["owner"] = json!(owner);
    remote.post(&["agents"], &body).await.map(drop)
}

/// What it means that one stands in for another: which version it replaces, and each thing that changes in what it may do.
pub(super) fn replaced(version: u64, old: Option<&AgentConfig>, new: &AgentConfig) -> Vec<String> {
    let Some(old) = old else { return vec![format!("replaces version {version}, which cannot be read")] };
    let changed = new.changes_since(old);
    if changed.is_empty() {
        return vec![format!("replaces version {version}: what it may do stays the same")];
    }
    let lines = changed.iter().map(|line| format!("  {}", one_line(line)));
    std::iter::once(format!("replaces version {version}:")).chain(lines).collect()
}

fn written(file: &AgentFile) -> Result<Vec<u8>, Failure> {
    std::fs::read(&file.path).map_err(|error| instance::unusable(&file.path, &error))
}

/// Keeps a file where agents are loaded from.
pub(super) fn keep(data: &Path, file: &AgentFile, bytes: &[u8]) -> Result<(), Failure> {
    let folder = data.join("agents");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| instance::unusable(&folder, &error))?;
    instance::remember_agent_file(data, &file.config.slug)?;
    put(bytes, &folder.join(format!("{}.md", file.config.slug)))
}

/// Writes a file whole or not at all.
fn put(bytes: &[u8], to: &Path) -> Result<(), Failure> {
    let half = to.with_extension("md.new");
    let opened = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half);
    let kept = opened.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&half, to)
    });
    kept.map_err(|error| instance::unusable(to, &error))
}
