//! `migrate`: moves an instance from one database to another, with all that it holds, and goes on where it was cut off.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::run::event::Actor;
use adjutant_engine::store::{Copied, CopyFor, Target, copy};
use adjutant_engine::{AuditLog, AuditVerified};
use secrecy::ExposeSecret;
use serde_json::json;

use super::Context;
use super::backup::refuse_url;
use super::progress::Line;
use crate::backup::snapshot;
use crate::config::{Config, Database, parse_database};
use crate::failure::{Exit, Failure};
use crate::instance::{DATABASE, Instance, Lock, open_copy};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where everything is now: `sqlite` (in the data directory) or postgres://…
    #[arg(long, value_name = "URL")]
    from: String,
    /// Where everything shall be: an empty database, or one that an earlier attempt began to fill
    #[arg(long, value_name = "URL")]
    to: String,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    refuse_url(context, "migrate")?;
    let (from, to) = (place(context, "--from", &args.from)?, place(context, "--to", &args.to)?);
    if let (Database::Sqlite, Database::Sqlite) = (&from.database.value, &to.database.value) {
        return Err(Failure::usage("Both are the SQLite database of one data directory. Nothing was moved."));
    }
    // Nobody may write to the file meanwhile, whichever side it is on.
    let lock = Lock::take(&from.data.value, "migrate")?;
    let mut line = Line::new(context);
    let moved = move_all(&from, &to, &mut line).await;
    line.end();
    let (rows, verified) = moved?;
    drop(lock);
    record(&to, rows, kind(&from.database.value)).await?;
    refuse_broken(&verified)?;
    let document = json!({
        "rows": rows, "runs": verified.runs, "events": verified.events, "days": verified.days, "key": verified.key,
    });
    let style = context.terminal.out;
    context.print(&document, || {
        let logs = verified.runs + verified.logs;
        vec![
            style.good(&format!("✔ {rows} rows are moved, read back and equal")),
            style.good(&format!("✔ {logs} logs are whole there, {} events", verified.events)),
            style.dim("= from now on: database_url in the configuration, or ADJUTANT_DATABASE_URL; the old database is as it was"),
        ]
    });
    Ok(Exit::Done)
}

const fn kind(database: &Database) -> &'static str {
    match database {
        Database::Sqlite => "SQLite",
        Database::Postgres(_) => "PostgreSQL",
    }
}

fn place(context: &Context, flag: &str, text: &str) -> Result<Config, Failure> {
    let mut config = context.config()?;
    config.database.value = parse_database(text)
        .ok_or_else(|| Failure::usage(format!("{flag} has to be `sqlite` or postgres://…. Nothing was moved.")))?;
    Ok(config)
}

async fn target(to: &Config, schema: u64) -> Result<Target, Failure> {
    Ok(match &to.database.value {
        Database::Sqlite => Target::sqlite(&to.data.value.join(DATABASE), schema).await?,
        Database::Postgres(url) => Target::postgres(url.expose_secret(), schema).await?,
    })
}

/// Moves everything and walks every log there. Only then the new database can be opened: one that was left on the way is gone on
/// with by giving the command again.
async fn move_all(from: &Config, to: &Config, line: &mut Line) -> Result<(u64, AuditVerified), Failure> {
    let (rows, target) = move_rows(from, to, line).await?;
    let engine = open_copy(to).await?;
    let verified = engine.verify_telling(&mut |seen, of| line.show("verifying", seen, of)).await;
    engine.store().clone().close().await;
    let verified = verified?;
    target.finish().await?;
    Ok((rows, verified))
}

async fn move_rows(from: &Config, to: &Config, line: &mut Line) -> Result<(u64, Target), Failure> {
    loop {
        let mut source = snapshot(from, CopyFor::Move).await?;
        if source.living_nodes().await? > 0 {
            let message = "The database is in use: a node drives runs on it. Nothing was moved.";
            return Err(Failure::new(Exit::Other, "in_use", message).hint("stop every node, then move"));
        }
        let mut target = target(to, source.schema()).await?;
        // Each row is looked at twice: when it is copied and when it is read back.
        let total = source.count().await? * 2;
        let copied = copy(&mut source, &mut target, &mut |seen| line.show("moving", seen, total)).await;
        source.close().await;
        match copied? {
            Copied::Whole { rows } => return Ok((rows, target)),
            Copied::Outdated => target.discard().await?,
        }
    }
}

/// Opens the new database as it will be used, and records where it came from.
async fn record(to: &Config, rows: u64, from: &str) -> Result<(), Failure> {
    let instance = Instance::open(to, "migrate").await?;
    let by = Some(Actor::User(instance.home.user));
    let moved = format!("from {from} to {}", kind(&to.database.value));
    let act = Act::new(Deed::DatabaseMoved, by, moved).with("rows", rows);
    let recorded = instance.engine.audit(AuditLog::Instance, act).await;
    instance.close().await;
    recorded?;
    Ok(())
}

/// What was not whole before is not whole now: the rows are equal.
fn refuse_broken(verified: &AuditVerified) -> Result<(), Failure> {
    let Some(problem) = verified.problems.first() else { return Ok(()) };
    let message = format!("Everything was moved, but {} is not whole: {}.", problem.stream, problem.reason);
    Err(Failure::new(Exit::Broken, "chain_broken", message)
        .hint("the old database says the same (adjutant audit verify): it was so before"))
}
