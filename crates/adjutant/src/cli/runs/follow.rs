//! `runs watch`, `runs resume`, `runs fork`: commands that stay with a run.

use std::time::Duration;

use adjutant_core::run::command::{Command, Refusal};
use adjutant_core::run::event::{Actor, Effects};
use adjutant_core::run::status::Status;
use adjutant_engine::EngineError;
use serde_json::json;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::remote::Visit;
use crate::cli::session::{Approve, Follow, Session};
use crate::cli::words::short;
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Watch {
    /// The run, or as much of its id as no other has
    run: String,
    /// Begin after this event
    #[arg(long, default_value_t = 0, value_name = "SEQ")]
    after: u64,
    /// What to do when the agent asks
    #[arg(long, value_enum, default_value = "ask")]
    approve: Approve,
}

#[derive(Debug, clap::Args)]
pub(super) struct Resume {
    /// The run, or as much of its id as no other has
    run: String,
    /// For one that stopped at a limit: go on from it in a new run, with so many turns
    #[arg(long, value_name = "N")]
    extra_turns: Option<u32>,
    /// What to do when the agent asks
    #[arg(long, value_enum, default_value = "ask")]
    approve: Approve,
}

#[derive(Debug, clap::Args)]
pub(super) struct Fork {
    /// The run, or as much of its id as no other has
    run: String,
    /// The event to go on from [default: its message]
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
    /// Another model
    #[arg(long)]
    model: Option<String>,
    /// Other instructions than the agent's, for this run
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// Only read; everything else is answered "not run"
    #[arg(long)]
    dry_run: bool,
    /// Only start it, and print its id
    #[arg(long)]
    detach: bool,
    /// What to do when the agent asks
    #[arg(long, value_enum, default_value = "ask")]
    approve: Approve,
}

const NO_LIMIT: Option<Duration> = None;

pub(super) async fn watch(context: &Context, place: &Place, args: Watch) -> Result<Exit, Failure> {
    let follow = Follow { approve: args.approve, after: args.after, timeout: NO_LIMIT };
    match place {
        Place::Here(instance) => {
            let run = find::run(instance, &args.run).await?;
            instance.engine.run_row(instance.home.workspace, run).await?;
            Session::new(context, instance, run, follow).go().await
        }
        Place::There(remote) => {
            let run = remote.run_id(&args.run).await?;
            Visit::new(context, remote, run, follow).go().await
        }
    }
}

pub(super) async fn resume(context: &Context, place: &Place, args: Resume) -> Result<Exit, Failure> {
    let follow = |after| Follow { approve: args.approve, after, timeout: NO_LIMIT };
    match place {
        Place::Here(instance) => {
            let run = find::run(instance, &args.run).await?;
            let (engine, workspace) = (&instance.engine, instance.home.workspace);
            if let Some(turns) = args.extra_turns {
                let new = engine.extend_run(workspace, instance.home.user, run, turns).await?;
                return Session::new(context, instance, new, follow(0)).go().await;
            }
            let row = engine.run_row(workspace, run).await?;
            let after = row.head.seq;
            goes_on(&short(&run), &row.state.status)?;
            let command = Command::Resume { by: Actor::User(instance.home.user) };
            match engine.command(workspace, run, &command).await {
                // A run that was only left, not paused, needs nothing but somebody who drives it.
                Ok(_) | Err(EngineError::Refused(Refusal::NotPaused)) => {}
                Err(error) => return Err(error.into()),
            }
            Session::new(context, instance, run, follow(after)).go().await
        }
        Place::There(remote) => {
            let run = remote.run_id(&args.run).await?;
            if let Some(turns) = args.extra_turns {
                let new = remote.post(&["runs", &run, "resume"], &json!({"extra_turns": turns})).await?;
                let new = new["id"].as_str().unwrap_or_default().to_owned();
                return Visit::new(context, remote, new, follow(0)).go().await;
            }
            let after = remote.last_event(&run).await?;
            let found = remote.get(&["runs", &run], &[]).await?;
            goes_on(&short(&run), found["status"].as_str().unwrap_or_default())?;
            match remote.post(&["runs", &run, "resume"], &json!({})).await {
                Ok(_) => {}
                // The server drives it already.
                Err(failure) if failure.code == "conflict" => {}
                Err(failure) => return Err(failure),
            }
            Visit::new(context, remote, run, follow(after)).go().await
        }
    }
}

/// Refuses to go on with a run that is over, in the same words wherever it is.
fn goes_on(run: &str, status: &str) -> Result<(), Failure> {
    match Status::parse(status).filter(|status| status.is_end()) {
        None => Ok(()),
        Some(status) => {
            let hint =
                format!("adjutant runs show {run} tells what came of it; adjutant runs fork {run} goes on from it");
            Err(Failure::from(Refusal::Ended(status)).hint(hint))
        }
    }
}

pub(super) async fn fork(context: &Context, place: &Place, args: Fork) -> Result<Exit, Failure> {
    let follow = Follow { approve: args.approve, after: 0, timeout: NO_LIMIT };
    let effects = args.dry_run.then_some(Effects::Dry);
    match place {
        Place::Here(instance) => {
            let run = find::run(instance, &args.run).await?;
            let fork =
                adjutant_engine::Fork { at: args.at, model: args.model, system_prompt: args.system_prompt, effects };
            let new = instance.engine.fork_run(instance.home.workspace, instance.home.user, run, fork).await?;
            if args.detach {
                return Ok(detached(context, &new.to_string(), &run.to_string()));
            }
            Session::new(context, instance, new, follow).go().await
        }
        Place::There(remote) => {
            let run = remote.run_id(&args.run).await?;
            let mut body = json!({"at_seq": args.at, "model": args.model, "effects": effects});
            // Only where it is asked for: an older server does not know it.
            if let Some(text) = args.system_prompt {
                body["system_prompt"] = json!(text);
            }
            let new = remote.post(&["runs", &run, "fork"], &body).await?["id"].as_str().unwrap_or_default().to_owned();
            if args.detach {
                return Ok(detached(context, &new, &run));
            }
            Visit::new(context, remote, new, follow).go().await
        }
    }
}

fn detached(context: &Context, new: &str, parent: &str) -> Exit {
    context.print(&json!({"id": new, "parent_run_id": parent}), || vec![new.to_owned()]);
    Exit::Done
}
