//! `backup` and `restore`: an instance into one file, while it runs, and out of it again.

use std::path::{Path, PathBuf};

use adjutant_engine::store::CopyFor;
use serde_json::json;

use super::Context;
use super::output::tell;
use super::progress::Line;
use super::remote::Remote;
use super::words::{count, ours, size};
use crate::backup::{self, About};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

#[derive(Debug, clap::Args)]
pub(super) struct BackupArgs {
    /// The file to write; it must not be there yet
    file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArgs {
    /// The file that `backup` wrote
    file: PathBuf,
    /// A file with the master key of the instance that the backup was made of; it is copied into the data directory
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

pub(super) fn refuse_url(context: &Context, what: &str) -> Result<(), Failure> {
    if context.url.is_none() {
        return Ok(());
    }
    let message = format!("`{what}` works on a data directory, not over a server. Nothing was done.");
    Err(Failure::usage(message).hint("run it on the machine that has the data directory, with --data DIR"))
}

pub(super) async fn backup(context: &Context, args: BackupArgs) -> Result<Exit, Failure> {
    refuse_url(context, "backup")?;
    let config = context.config()?;
    record(context, &config, &args.file).await?;
    let mut line = Line::new(context);
    let written = backup::write(&config, &args.file, &mut |what, done, of| line.show(what, done, of)).await;
    line.end();
    let written = written?;
    let (summary, about) = (written.summary, &written.about);
    let document = json!({
        "file": args.file, "bytes": written.size, "made_at": about.made_at, "rows": summary.rows,
        "files": summary.files, "sealed": about.sealed, "linked": about.linked,
        "provider_keys_left_out": about.provider_keys, "left_out": written.left_out,
    });
    let style = context.terminal.out;
    context.print(&document, || {
        let files = count(usize::try_from(summary.files).unwrap_or(usize::MAX), "file", "files");
        let line = format!("✔ {}: {} rows and {files}, {}", args.file.display(), summary.rows, size(written.size));
        let mut lines = vec![style.good(&line)];
        if about.sealed {
            lines.push(style.dim("= the master key is not in it: keep a copy of the key, in another place"));
        }
        lines.extend(outside(about).iter().map(|line| style.warn(line)));
        lines.extend(written.left_out.iter().map(|path| style.warn(&format!("! left out: {}", path.display()))));
        lines
    });
    Ok(Exit::Done)
}

/// Records that a copy is about to be made, at the server that has the data directory, or here. A copy is what helps when
/// nothing else works any more: one that cannot be recorded is made all the same, and that is said.
async fn record(context: &Context, config: &Config, file: &Path) -> Result<(), Failure> {
    backup::snapshot(config, CopyFor::Backup).await?.close().await;
    let shown = file.display().to_string();
    let recorded = match Remote::of_data(config).await? {
        Some(remote) => remote.post(&["audit", "backups"], &json!({"file": shown})).await.map(drop),
        None => record_here(config, &shown).await,
    };
    if let Err(failure) = recorded {
        let told = format!("! the backup is not in the audit: {}", failure.message);
        tell(&context.terminal.err.warn(&told));
    }
    Ok(())
}

async fn record_here(config: &Config, file: &str) -> Result<(), Failure> {
    let instance = Instance::open(config, "backup").await?;
    let recorded = instance.engine.record_backup(instance.home.user, file).await;
    instance.close().await;
    Ok(recorded?)
}

pub(super) async fn restore(context: &Context, args: RestoreArgs) -> Result<Exit, Failure> {
    refuse_url(context, "restore")?;
    let config = context.config()?;
    let mut line = Line::new(context);
    let key = args.key.as_deref();
    let restored = backup::restore(&config, &args.file, key, &mut |what, done, of| line.show(what, done, of)).await;
    line.end();
    let restored = restored?;
    let (summary, about, verified) = (restored.summary, &restored.about, &restored.verified);
    let document = json!({
        "data": config.data.value, "made_at": about.made_at, "rows": summary.rows, "files": summary.files,
        "runs": verified.runs, "events": verified.events, "key": verified.key, "linked": about.linked,
        "provider_keys_left_out": about.provider_keys, "halted": true,
    });
    let style = context.terminal.out;
    context.print(&document, || {
        let files = count(usize::try_from(summary.files).unwrap_or(usize::MAX), "file", "files");
        let whole = format!("{} rows and {files} of {}", summary.rows, about.made_at);
        let mut lines = vec![
            style.good(&format!("✔ restored to {}: {whole}", config.data.value.display())),
            style.good(&format!("✔ {} logs are whole, {} events", verified.runs + verified.logs, verified.events)),
        ];
        lines.extend(outside(about).iter().map(|line| style.warn(line)));
        lines.push(
            style.warn(
                "! everything is stopped: what happened after the backup is not in it, so look before runs go on",
            ),
        );
        lines.push(style.dim(&ours("= adjutant inbox, adjutant runs ls, then adjutant halt off")));
        lines
    });
    Ok(Exit::Done)
}

/// What belongs to an instance and is not in its backup.
fn outside(about: &About) -> Vec<String> {
    let folder = |path: &String| format!("! the linked folder {path} is not in it: copy it yourself");
    let mut lines: Vec<_> = about.linked.iter().map(folder).collect();
    if about.provider_keys > 0 {
        let keys = count(
            usize::try_from(about.provider_keys).unwrap_or(usize::MAX),
            "key of a provider is",
            "keys of providers are",
        );
        lines.push(ours(&format!("! {keys} not in it: after restoring, add them again with adjutant keys add")));
    }
    lines
}
