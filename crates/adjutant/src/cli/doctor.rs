//! `doctor`: how this instance is, one row for each thing that can be well or not; and making its tables again.

use serde_json::json;

use super::Context;
use super::audit;
use super::remote::Remote;
use super::terminal::{Style, clean};
use super::words::count;
use crate::config::Config;
use crate::diagnosis::{self, Check, State, row};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

/// Runs whose chains are checked unless more are asked for.
const RUNS: usize = 50;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Make the tables about runs again from the logs, in all workspaces
    #[arg(long)]
    rebuild: bool,
    /// How many of the newest runs of each workspace to verify
    #[arg(long, default_value_t = RUNS, value_name = "N")]
    runs: usize,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    if let Some(remote) = Remote::found(context).await? {
        return at_server(context, &remote, &args).await;
    }
    let config = context.config()?;
    let mut checks = diagnosis::outside(&config);
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

/// What the server says that has the data directory: it has it open and can look, and we cannot.
async fn at_server(context: &Context, remote: &Remote, args: &Args) -> Result<Exit, Failure> {
    if args.rebuild {
        return Err(remote.only_here());
    }
    let about = remote.get(&["about"], &[]).await?;
    let mut checks = vec![row("server", State::Ok, format!("{} answers, and looked itself", remote.link("")))];
    for check in about["checks"].as_array().into_iter().flatten() {
        let word = |field: &str| check[field].as_str().unwrap_or_default();
        // A word of another version is somebody's to look at.
        let state = State::of(word("state")).unwrap_or(State::Degraded);
        checks.push(row(word("name"), state, word("detail")));
    }
    let worst = checks.iter().any(|check| check.state == State::Problem);
    print(context, &checks, worst);
    Ok(if worst { Exit::Other } else { Exit::Done })
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
            let state = paint(check.state, context.terminal.out, &format!("{:<8}", check.state.word()));
            format!("{name}  {state}  {}", clean(&check.detail))
        };
        checks.iter().map(line).collect()
    });
}

fn paint(state: State, style: Style, text: &str) -> String {
    match state {
        State::Ok | State::Enforced => style.good(text),
        State::Degraded | State::Off => style.warn(text),
        State::Problem => style.bad(text),
    }
}

async fn look(config: &Config, instance: &Instance, args: &Args, checks: &mut Vec<Check>) -> Result<(), Failure> {
    checks.extend(diagnosis::inside(config, &instance.engine, instance.home, &instance.agent_problems).await?);
    checks.push(match instance.engine.store().check_integrity().await {
        Ok(()) => row("pages", State::Ok, "no damage found"),
        Err(error) => row("pages", State::Problem, error.to_string()),
    });
    if args.rebuild {
        let made = instance.engine.rebuild(instance.home.user).await?;
        let mut said = format!("the tables of {} were made again from their logs", count(made.runs, "run", "runs"));
        if made.found > 0 {
            said += &format!("; {} no row any more", count(made.found, "run had", "runs had"));
        }
        if made.erased > 0 {
            said += &format!("; {} erased and left as they are", count(made.erased, "run is", "runs are"));
        }
        checks.push(row("rebuild", State::Ok, said));
        if let Some((run, why)) = made.broken.first_key_value() {
            let many = count(made.broken.len(), "log cannot be", "logs cannot be");
            let said = format!("{many} followed, their rows stay as they were; {run}: {why}");
            checks.push(row("rebuild", State::Problem, said));
        }
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
