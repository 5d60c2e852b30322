//! `backtest`: which past calls of an agent would come out differently under a draft of it.

use std::path::PathBuf;

use adjutant_core::audit::filter::moment;
use adjutant_core::guard::judge::Decision;
use adjutant_core::guard::policy::AgentConfig;
use adjutant_engine::tools::Registry;
use serde_json::{Value, json};

use super::Context;
use super::place::{Place, Work};
use super::terminal::{Style, one_line};
use super::words::{count, short};
use crate::agent_file;
use crate::failure::{Exit, Failure, sentence};
use crate::instance::{Instance, known};
use crate::wire;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent whose past is judged
    #[arg(long, value_name = "AGENT")]
    agent: String,
    /// The agent file to judge it under; nothing is saved
    #[arg(long, value_name = "FILE")]
    draft: PathBuf,
    /// Only runs since then: 30d, a day, or a time
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let draft = agent_file::read(&args.draft, &known(&Registry::builtin())).map_err(|problems| {
        Failure::usage("The draft cannot be used; nothing was judged.")
            .problems(problems.iter().map(ToString::to_string).collect())
    })?;
    let place = Place::find(context, "backtest", Work::Looks).await?;
    let found = match &place {
        Place::Here(instance) => here(instance, &args, &draft.config).await,
        Place::There(remote) => {
            let body = json!({"agent": wire::written(&draft.config), "since": args.since});
            remote.post(&["agents", &args.agent, "backtest"], &body).await
        }
    };
    place.close().await;
    let found = found?;
    context.print(&found, || story(&found, context.terminal.out));
    Ok(Exit::Done)
}

async fn here(instance: &Instance, args: &Args, draft: &AgentConfig) -> Result<Value, Failure> {
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let agent = engine.find_agent(workspace, &args.agent).await?;
    let since = args.since.as_deref().map(|text| moment(text, engine.env().now())).transpose();
    let since = since.map_err(|why| Failure::usage(sentence(&why)))?;
    let found = engine.backtest(workspace, agent.id, draft, since).await?;
    let mut document = serde_json::to_value(&found).unwrap_or_default();
    document["newly"] = json!({
        "allowed": found.newly(Decision::Allow),
        "asked": found.newly(Decision::Ask),
        "denied": found.newly(Decision::Deny),
    });
    Ok(document)
}

fn number(value: &Value) -> usize {
    value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
}

fn story(found: &Value, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let all = found["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let parts = [(Decision::Deny, "Newly denied"), (Decision::Ask, "Newly asked"), (Decision::Allow, "Newly allowed")];
    for (decision, title) in parts {
        let changes: Vec<_> = all.iter().filter(|change| change["would_be"] == decision.word()).collect();
        if !changes.is_empty() {
            lines.push(style.bold(&format!("{title} ({})", changes.len())));
            lines.extend(changes.iter().map(|change| line(change)));
        }
    }
    let newly = |what: &str| number(&found["newly"][what]);
    let mut summary = format!(
        "{} of {} judged again: {} newly denied, {} newly asked, {} newly allowed",
        count(number(&found["calls"]), "call", "calls"),
        count(number(&found["runs"]), "run", "runs"),
        newly("denied"),
        newly("asked"),
        newly("allowed")
    );
    if number(&found["skipped"]) > 0 {
        summary +=
            &format!("; {} not the guard\'s to decide", count(number(&found["skipped"]), "call was", "calls were"));
    }
    if number(&found["erased"]) > 0 {
        summary += &format!("; {} erased", count(number(&found["erased"]), "run is", "runs are"));
    }
    lines.push(summary);
    lines
        .push(style.dim("Judged under the standing rules as they are now, not as they were at the time of each call."));
    lines
}

fn line(change: &Value) -> String {
    let text = |field: &str| change[field].as_str().map(one_line).unwrap_or_default();
    format!(
        "  {} {}  {} → {}  ({}) {}  {}",
        text("tool"),
        text("path"),
        text("was"),
        text("would_be"),
        text("rule"),
        text("reason"),
        short(&text("run_id"))
    )
}
