//! Putting a backup back. The file is checked to its end first; everything is made beside the place where it shall be, opened
//! with its key and verified; only then it takes that place, at once. Whatever goes wrong before leaves nothing.

use std::path::Path;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::run::event::Actor;
use adjutant_engine::store::{StoreError, Target};
use adjutant_engine::{AuditLog, AuditVerified, HaltOf};
use secrecy::ExposeSecret;

use super::Progress;
use super::beside::{Beside, finished, is_unfinished};
use super::file::{About, Frame, Reader, Summary};
use super::folder::Landing;
use crate::config::{Config, Database, KeySource};
use crate::failure::{Exit, Failure};
use crate::instance::{DATABASE, MASTER_KEY, open_copy, unusable};

/// A backup that was put back.
pub(crate) struct Restored {
    pub(crate) about: About,
    pub(crate) summary: Summary,
    pub(crate) verified: AuditVerified,
}

/// Puts a backup into the data directory, and the database, of a configuration. `key` is a file with the master key.
///
/// # Errors
/// When there is something already, the file is damaged, the key is not its key, or a log in it is not whole.
pub(crate) async fn restore(
    config: &Config,
    path: &Path,
    key: Option<&Path>,
    progress: Progress<'_>,
) -> Result<Restored, Failure> {
    let data = config.data.value.clone();
    refuse_filled(&data)?;
    let mut reader = Reader::check(path, progress)?;
    let about = reader.about()?;
    refuse_without_key(config, &about, key)?;
    let beside = Beside::make(&data)?;
    if let Some(key) = key {
        let copied = std::fs::read(key).and_then(|bytes| write_key(&beside.path.join(MASTER_KEY), &bytes));
        copied.map_err(|error| Failure::usage(format!("{}: {error}. Nothing was restored.", key.display())))?;
    }
    let mut config = config.clone();
    config.data.value.clone_from(&beside.path);
    let (summary, target) = fill(&config, &mut reader, &about, progress).await?;
    let verified = match verify(&config, &about, progress).await {
        Ok(verified) => verified,
        Err(failure) => {
            empty(target).await;
            return Err(failure);
        }
    };
    settle(&config, target, beside, &data).await?;
    Ok(Restored { about, summary, verified })
}

/// Lets it be used. Until here the database carries a mark: nobody drives what was not looked at, or is not stopped. One in the
/// folder goes with it; of another the mark goes last, because a database without its files would be taken for an instance.
async fn settle(config: &Config, target: Target, beside: Beside, data: &Path) -> Result<(), Failure> {
    match &config.database.value {
        Database::Sqlite => {
            target.finish().await?;
            beside.take_place(data)
        }
        Database::Postgres(_) => {
            beside.mark()?;
            beside.take_place(data)?;
            target.finish().await?;
            finished(data).map_err(|error| unusable(data, &error))
        }
    }
}

fn refuse_filled(data: &Path) -> Result<(), Failure> {
    let holds = match std::fs::read_dir(data) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(unusable(data, &error)),
    };
    // What a restore has left that was cut off just before its end is put there again.
    if !holds || is_unfinished(data) {
        return Ok(());
    }
    let message = format!("{} holds something already. Nothing was restored.", data.display());
    Err(Failure::usage(message).hint("a backup is put into an empty place: name another with --data DIR"))
}

fn refuse_without_key(config: &Config, about: &About, key: Option<&Path>) -> Result<(), Failure> {
    let named = match &config.key.value {
        KeySource::Value(_) | KeySource::File(_) => true,
        KeySource::Data => key.is_some(),
    };
    if !about.sealed || named {
        return Ok(());
    }
    let message = "The backup is sealed, and its master key is not in it. Nothing was restored.";
    Err(Failure::new(Exit::Usage, "wrong_key", message)
        .hint("give the key of the instance it was made of: --key FILE, or ADJUTANT_SECRET_KEY_FILE"))
}

fn write_key(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

async fn open_target(config: &Config, schema: u64) -> Result<Target, Failure> {
    Ok(match &config.database.value {
        Database::Sqlite => Target::sqlite(&config.data.value.join(DATABASE), schema).await?,
        Database::Postgres(url) => Target::postgres(url.expose_secret(), schema).await?,
    })
}

async fn fill(
    config: &Config,
    reader: &mut Reader,
    about: &About,
    progress: Progress<'_>,
) -> Result<(Summary, Target), Failure> {
    let mut target = open_target(config, about.schema).await?;
    if target.is_resumed() {
        // What an earlier attempt left is of no use: the file is read from its beginning.
        target.discard().await?;
        target = open_target(config, about.schema).await?;
    }
    match pour(config, reader, about, &mut target, progress).await {
        Ok(summary) => Ok((summary, target)),
        Err(failure) => {
            empty(target).await;
            Err(failure)
        }
    }
}

async fn pour(
    config: &Config,
    reader: &mut Reader,
    about: &About,
    target: &mut Target,
    progress: Progress<'_>,
) -> Result<Summary, Failure> {
    let (mut landing, mut seen) = (Landing::new(&config.data.value), Summary::default());
    let data = &config.data.value;
    let failed = |error: std::io::Error| unusable(data, &error);
    while let Some(frame) = reader.next()? {
        match frame {
            Frame::About(_) => return Err(reader.wrong("it begins twice")),
            Frame::Rows(batch) => {
                target.put(&batch).await.map_err(|error| match error {
                    StoreError::Corrupt(why) => reader.wrong(&why),
                    error => error.into(),
                })?;
                seen.rows += batch.len() as u64;
                progress("database", seen.rows, about.rows);
            }
            Frame::Folder(entry) => landing.folder(&entry).map_err(failed)?,
            Frame::File(entry) => {
                landing.file(&entry).map_err(failed)?;
                seen.files += 1;
            }
            Frame::Data(bytes) => {
                landing.data(&bytes).map_err(failed)?;
                seen.bytes += bytes.len() as u64;
                progress("files", seen.bytes, seen.bytes);
            }
            Frame::End(summary) => {
                landing.end().map_err(failed)?;
                if summary != seen || reader.next()?.is_some() {
                    return Err(reader.wrong("it does not hold what its end says"));
                }
                return Ok(summary);
            }
        }
    }
    Err(reader.wrong("it has no end"))
}

/// Opens what was put back with its key, walks every log, and turns the stop switch on: what the world has seen since the
/// backup is not in it, so nothing goes on before a person has looked.
async fn verify(config: &Config, about: &About, progress: Progress<'_>) -> Result<AuditVerified, Failure> {
    let engine = open_copy(config).await?;
    let checked = async {
        let verified = engine.verify_telling(&mut |seen, of| progress("verifying", seen, of)).await?;
        if let Some(problem) = verified.problems.first() {
            let message =
                format!("{} in the backup is not whole: {}. Nothing was restored.", problem.stream, problem.reason);
            return Err(Failure::new(Exit::Broken, "chain_broken", message)
                .hint("use an older backup, from before it was damaged or changed"));
        }
        let user = engine.home().await?.user;
        let act = Act::new(Deed::BackupRestored, Some(Actor::User(user)), format!("a backup of {}", about.made_at));
        engine.audit(AuditLog::Instance, act.with("rows", about.rows)).await?;
        let reason = format!("restored from a backup of {}", about.made_at);
        engine.halt(HaltOf::Instance, user, reason).await?;
        Ok(verified)
    };
    let verified = checked.await;
    engine.store().clone().close().await;
    verified
}

/// Takes out of a database what was put in; a SQLite file goes with its folder.
async fn empty(target: Target) {
    if let Err(error) = target.discard().await {
        // It carries a mark, so nobody takes it for an instance.
        tracing::warn!(%error, "the database was not emptied; restoring again empties it");
    }
}
