//! Writing a backup: first the database at one moment, then the files as they are afterwards. So whatever the database says
//! was done is in the files; what was done later is found there when a run that was under way looks again.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use adjutant_engine::Env;
use adjutant_engine::store::{CopyFor, Snapshot, StoreError};
use secrecy::ExposeSecret;

use super::Progress;
use super::file::{About, Frame, New, Summary, Writer};
use super::folder::{Found, Walk, piece};
use crate::config::{Config, Database};
use crate::failure::{Exit, Failure};
use crate::instance::DATABASE;

/// A backup that was written.
pub(crate) struct Written {
    pub(crate) about: About,
    pub(crate) summary: Summary,
    /// Bytes of the file.
    pub(crate) size: u64,
    /// What could not be kept: links and the like.
    pub(crate) left_out: Vec<PathBuf>,
}

/// Opens the database of a configuration as it is now.
pub(crate) async fn snapshot(config: &Config, copy: CopyFor) -> Result<Snapshot, Failure> {
    let data = &config.data.value;
    let opened = match &config.database.value {
        Database::Sqlite => Snapshot::of_sqlite(&data.join(DATABASE), copy).await,
        Database::Postgres(url) => Snapshot::of_postgres(url.expose_secret(), copy).await,
    };
    opened.map_err(|error| match error {
        StoreError::NotFound => Failure::not_found(format!("There is no instance in {} to copy.", data.display()))
            .hint("name its data directory with --data DIR"),
        error => error.into(),
    })
}

/// Writes everything into a new file.
///
/// # Errors
/// When the file is there already, or something cannot be read or written; then there is no file.
pub(crate) async fn write(config: &Config, path: &Path, progress: Progress<'_>) -> Result<Written, Failure> {
    if path.try_exists().unwrap_or(true) {
        let message = format!("{} is there already. Nothing was written.", path.display());
        return Err(Failure::usage(message).hint("nothing is overwritten; choose another name"));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = fill(config, &partial, progress).await;
    let written = written.and_then(|written| {
        let done = std::fs::rename(&partial, path).and_then(|()| sync_folder(path));
        done.map(|()| written).map_err(|error| unwritten(path, &error))
    });
    if written.is_err() {
        // It may never have been made.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// The name of a file is on the disk once its folder is.
pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

async fn fill(config: &Config, partial: &Path, progress: Progress<'_>) -> Result<Written, Failure> {
    let mut snapshot = snapshot(config, CopyFor::Backup).await?;
    let about = New {
        made_at: Env::system().now().to_string(),
        schema: snapshot.schema(),
        sealed: snapshot.is_sealed(),
        rows: snapshot.count().await?,
        linked: snapshot.linked().await?,
        provider_keys: snapshot.provider_keys().await?,
    }
    .about();
    let failed = |error: std::io::Error| unwritten(partial, &error);
    // What an interrupted backup left is taken away; a file or a link of somebody else is never written to.
    match std::fs::remove_file(partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(partial).map_err(failed)?;
    let mut writer = Writer::begin(file).map_err(failed)?;
    writer.put(&Frame::About(Box::new(about.clone()))).map_err(failed)?;
    let mut summary = Summary::default();
    while let Some(batch) = snapshot.next().await? {
        summary.rows += batch.len() as u64;
        writer.put(&Frame::Rows(batch)).map_err(failed)?;
        progress("database", summary.rows, about.rows);
    }
    snapshot.close().await;
    let walk = Walk::of(&config.data.value).map_err(|error| unread(&config.data.value, &error))?;
    files(&walk, &mut writer, &mut summary, progress)?;
    writer.put(&Frame::End(summary)).map_err(failed)?;
    let size = writer.finish().map_err(failed)?;
    Ok(Written { about, summary, size, left_out: walk.left_out })
}

fn files(walk: &Walk, writer: &mut Writer, summary: &mut Summary, progress: Progress<'_>) -> Result<(), Failure> {
    let sizes = walk.found.iter().map(|found| if let Found::File(_, _, size) = found { *size } else { 0 });
    let total: u64 = sizes.sum();
    for found in &walk.found {
        match found {
            Found::Folder(entry) => {
                writer.put(&Frame::Folder(entry.clone())).map_err(|error| unwritten(Path::new(&entry.path), &error))?;
            }
            Found::File(entry, path, _) => {
                let mut file = match File::open(path) {
                    Ok(file) => file,
                    // Somebody took it away meanwhile.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(unread(path, &error)),
                };
                let put = |writer: &mut Writer, frame| writer.put(&frame).map_err(|error| unwritten(path, &error));
                put(writer, Frame::File(entry.clone()))?;
                loop {
                    let bytes = piece(&mut file).map_err(|error| unread(path, &error))?;
                    if bytes.is_empty() {
                        break;
                    }
                    summary.bytes += bytes.len() as u64;
                    put(writer, Frame::Data(bytes))?;
                    progress("files", summary.bytes, total);
                }
                summary.files += 1;
            }
        }
    }
    Ok(())
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    Failure::other(format!("{} cannot be read: {error}. No backup was written.", path.display()))
        .hint("a backup holds all of it or is none: make it readable for this user")
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind;
    let message = format!("{} cannot be written: {error}. No backup was written.", path.display());
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Failure::new(Exit::Other, "disk_full", message).hint("make room, or choose another disk")
        }
        _ => Failure::usage(message),
    }
}
