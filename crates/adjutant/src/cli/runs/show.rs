//! `runs show`: one run as a document, or as its story.

use std::fmt::Write;

use adjutant_core::money::MicroUsd;
use adjutant_engine::Frames;
use serde_json::{Value, json};

use super::seen;
use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::remote::Remote;
use crate::cli::terminal::{Style, clean, cut, one_line};
use crate::cli::words::{count, ours, short, span, target};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::{self, Texts};

/// Characters of a failed action's answer.
const COMPLAINT: usize = 100;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run, or as much of its id as no other has
    run: String,
    /// Every public event instead of the summary
    #[arg(long)]
    events: bool,
    /// What the model saw in its call of this number, from 1
    #[arg(long, value_name = "N", conflicts_with = "events")]
    seen: Option<usize>,
    /// Show what went over the wire in that call, too, if the run was started with --debug
    #[arg(long, requires = "seen")]
    frames: bool,
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    if let Some(n) = args.seen {
        let frames = if args.frames { Frames::Shown } else { Frames::LeftOut };
        let document = seen::document(place, &args.run, n, frames).await?;
        context.print(&document, || seen::lines(&document, context.terminal.out));
        return Ok(Exit::Done);
    }
    if args.events {
        let document = match place {
            Place::Here(instance) => events_here(instance, &args.run).await?,
            Place::There(remote) => events_there(remote, &args.run).await?,
        };
        context.print(&document, || {
            let events = document["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            events.iter().map(|event| clean(&event.to_string())).collect()
        });
        return Ok(Exit::Done);
    }
    let (document, agent) = match place {
        Place::Here(instance) => {
            let run = find::run(instance, &args.run).await?;
            let (engine, workspace) = (&instance.engine, instance.home.workspace);
            let report = engine.report(workspace, run).await?;
            let agent = engine.store().agent(workspace, report.agent_id).await?.map(|row| row.slug);
            (report.document(), agent.unwrap_or_default())
        }
        Place::There(remote) => {
            let document = remote.get(&["runs", &remote.run_id(&args.run).await?], &[]).await?;
            let agent = remote.get(&["agents", document["agent_id"].as_str().unwrap_or_default()], &[]).await;
            // An agent that is gone has no name any more.
            let slug = agent.ok().and_then(|agent| agent["slug"].as_str().map(str::to_owned));
            (document, slug.unwrap_or_default())
        }
    };
    context.print(&document, || story(&document, &agent, context.terminal.out));
    Ok(Exit::Done)
}

async fn events_here(instance: &Instance, name: &str) -> Result<Value, Failure> {
    let run = find::run(instance, name).await?;
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    engine.run_row(workspace, run).await?;
    let recorded = engine.recorded(workspace, run, 0, None).await?;
    let texts = Texts::load(engine, workspace, recorded.iter().map(|item| &item.event)).await?;
    let events: Vec<_> = recorded.iter().filter_map(|item| wire::event(run, item, &texts)).collect();
    Ok(json!({"data": events, "has_more": false}))
}

async fn events_there(remote: &Remote, name: &str) -> Result<Value, Failure> {
    let run = remote.run_id(name).await?;
    let (mut data, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let mut page = remote.get(&["runs", &run, "events"], &[("after", &after), ("limit", "200")]).await?;
        data.extend(page["data"].as_array_mut().map(std::mem::take).unwrap_or_default());
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => return Ok(json!({"data": data, "has_more": false})),
        }
    }
}

fn story(report: &Value, agent: &str, style: Style) -> Vec<String> {
    let word = |field: &str| report[field].as_str().unwrap_or_default();
    let list = |field: &str| report[field].as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let steps = usize::try_from(number(&report["steps"])).unwrap_or(usize::MAX);
    let mut lines = vec![format!(
        "{}  {agent}  {}  {}  {}  {}",
        style.bold(word("id")),
        word("status"),
        span(std::time::Duration::from_millis(number(&report["metrics"]["duration_ms"]))),
        dollars(report),
        count(steps, "step", "steps"),
    )];
    lines.push(style.dim(&format!(
        "{} · model {} · agent version {} · {} · head {}",
        word("created_at"),
        report["provenance"]["model"].as_str().unwrap_or_default(),
        report["provenance"]["agent_version"],
        word("chat_id"),
        cut(word("head_hash"), 13),
    )));
    let tokens = &report["token_usage"];
    lines.push(style.dim(&format!(
        "{} · {} tokens in ({} cached) · {} out ({} reasoning)",
        count(list("model_calls").len(), "model call", "model calls"),
        tokens["input"],
        tokens["cached"],
        tokens["output"],
        tokens["reasoning"],
    )));
    lines.extend(list("model_calls").iter().filter_map(|call| model_line(call, style)));
    lines.extend(list("actions").iter().map(|action| action_line(action, style)));
    if report["error"].is_object() {
        let part = |field: &str| report["error"][field].as_str().unwrap_or_default().to_owned();
        lines.push(style.bad(&format!("✖ {}: {}", part("code"), one_line(&part("message")))));
    }
    let waiting = |id: &Value| {
        style.warn(&ours(&format!("⏸ waits for you: adjutant inbox show {}", short(&id.as_str().unwrap_or_default()))))
    };
    lines.extend(list("pending_approvals").iter().map(waiting));
    lines.extend(list("files_modified").iter().filter_map(Value::as_str).map(|path| format!("± {}", clean(path))));
    if let Some(next) = report["superseded_by"].as_str() {
        lines.push(style.dim(&format!("replaced by {next}")));
    }
    let result = match &report["result"] {
        Value::String(text) => text.clone(),
        held => serde_json::to_string_pretty(held).unwrap_or_default(),
    };
    if !result.is_empty() {
        lines.extend([String::new(), clean(&result)]);
    }
    lines
}

/// A model call that did not go as asked: it failed, and perhaps another model was asked instead.
fn model_line(call: &Value, style: Style) -> Option<String> {
    let word = |field: &str| clean(call[field].as_str().unwrap_or_default());
    let next = call["fallback"].as_str().map(|next| format!(" → {}", clean(next))).unwrap_or_default();
    let failed = call["model_served"].is_null();
    failed.then(|| style.warn(&format!("↻ {}: {}{next}", word("model_asked"), word("outcome"))))
}

fn dollars(report: &Value) -> String {
    let cost = report["cost_microusd"].as_u64().unwrap_or_default();
    let mut text = MicroUsd(cost).to_string();
    if report["cost_estimated"] == true {
        text.push_str(if cost == 0 { " (price not known)" } else { " (estimated)" });
    }
    text
}

fn action_line(action: &Value, style: Style) -> String {
    let word = |field: &str| action[field].as_str();
    let about = target(word("arguments").unwrap_or_default());
    let mut line = format!("{} {about}  {} ms", clean(word("tool_name").unwrap_or_default()), action["ms"]);
    if let (Some(verdict), Some(rule)) = (word("verdict"), word("rule")) {
        // Writing into a String does not fail.
        let _ = write!(line, "  {verdict} ({rule})");
    }
    match (word("output"), action["is_error"] == true) {
        (None, _) => style.warn(&format!("⏸ {line}")),
        (Some(output), true) => style.bad(&format!("✖ {line}  {}", cut(&one_line(output), COMPLAINT))),
        (Some(_), false) => format!("▸ {line}"),
    }
}
