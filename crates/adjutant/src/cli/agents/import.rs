//! `agents import`: copy agent files into the data directory. What each could touch is shown first, and a person says yes.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use adjutant_engine::tools::Registry;
use serde_json::json;

use super::summary;
use crate::agent_file::{self, AgentFile};
use crate::cli::output::tell;
use crate::cli::{Context, prompt};
use crate::failure::{Exit, Failure};
use crate::instance::{self, Instance};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file, or a folder whose `.md` files are taken
    path: PathBuf,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let files = read(&args.path)?;
    let config = context.config()?;
    let instance = context.open("agents").await?;
    let imported = import(context, &instance, &config.data.value, &files, args.yes).await;
    instance.close().await;
    let imported = imported?;
    context.print(&json!({"imported": imported}), || {
        imported.iter().map(|slug| format!("✔ {slug} is imported")).collect()
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

async fn import(
    context: &Context,
    instance: &Instance,
    data: &Path,
    files: &[AgentFile],
    yes: bool,
) -> Result<Vec<String>, Failure> {
    let folder = data.join("agents");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| instance::unusable(&folder, &error))?;
    let mut imported = Vec::new();
    for file in files {
        let slug = &file.config.slug;
        let target = folder.join(format!("{slug}.md"));
        if !yes {
            tell(&format!(
                "{}{}",
                context.terminal.err.bold(slug),
                if target.exists() { "  (replaces the one that is there)" } else { "" }
            ));
            for line in summary(&file.config, context.terminal.err) {
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
        copy(&file.path, &target)?;
        instance::save_agent_file(&instance.engine, instance.home, file).await?;
        imported.push(slug.clone());
    }
    Ok(imported)
}

/// Copies a file whole or not at all.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let half = to.with_extension("md.new");
    let copied = std::fs::read(from).and_then(|bytes| {
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&half, to)
    });
    copied.map_err(|error| instance::unusable(to, &error))
}
