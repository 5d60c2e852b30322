//! `run`: give an agent a task and watch it. The answer goes to standard output, everything else to standard error.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::budget::micros;
use adjutant_core::guard::policy::parse_seconds;
use adjutant_core::id::{ChatId, KeyId, NotebookId, RunId};
use adjutant_core::limits::MESSAGE_BYTES;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::event::Effects;
use adjutant_engine::StartRun;
use serde_json::{Value, json};

use super::output::{document, say, tell};
use super::place::{Place, Work};
use super::remote::{Remote, Visit};
use super::session::{Approve, Follow, Session};
use super::words::{ours, short};
use super::{Context, attach, prompt};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

/// The agent that is there from the beginning.
pub(super) const DEFAULT_AGENT: &str = "guide";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent and the task; the agent may be left out, the task may come from standard input
    #[arg(value_names = ["AGENT", "TASK"], num_args = 0..=2)]
    words: Vec<String>,
    /// Read the task from a file, below the one on the command line
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show this file to the agent, too: a text, or a picture for a model that can see; as often as you like
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Use this model instead of the agent's, as in demo/guide
    #[arg(long)]
    model: Option<String>,
    /// What the run may cost in dollars, if that is less than its agent allows
    #[arg(long, value_parser = parse_usd, value_name = "USD")]
    max_cost: Option<MicroUsd>,
    /// Use this stored key for the provider it is for, in place of the agent's (adjutant keys shows ids)
    #[arg(long, value_name = "ID")]
    key: Option<KeyId>,
    /// What to do when the agent asks: ask you, stop (exit 5), or let rules alone decide
    #[arg(long, value_enum, default_value = "ask")]
    approve: Approve,
    /// Cancel the run after this long, as in 90s or 10m
    #[arg(long, value_parser = parse_span, value_name = "SPAN")]
    timeout: Option<Duration>,
    /// Only start it, and print its id
    #[arg(long)]
    detach: bool,
    /// Go on in this chat
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// The notebook to work in: its id or short name
    #[arg(long, value_name = "NOTEBOOK")]
    notebook: Option<String>,
    /// A JSON Schema that the answer has to fit
    #[arg(long, value_name = "FILE", value_parser = parse_schema)]
    schema: Option<Value>,
    /// Keep what goes over the wire in its model calls, without keys (adjutant runs show ID --seen N --frames)
    #[arg(long)]
    debug: bool,
    /// Whether it acts.
    #[arg(skip)]
    effects: Effects,
}

impl Args {
    /// A task for an agent that only reads. Nobody is asked: what no rule allows is rejected.
    pub(super) const fn dry(words: Vec<String>, model: Option<String>, notebook: Option<String>) -> Self {
        Self {
            words,
            file: None,
            attach: Vec::new(),
            model,
            max_cost: None,
            key: None,
            approve: Approve::Rules,
            timeout: None,
            detach: false,
            chat: None,
            notebook,
            schema: None,
            debug: false,
            effects: Effects::Dry,
        }
    }

    const fn follow(&self) -> Follow {
        Follow { approve: self.approve, after: 0, timeout: self.timeout }
    }
}

/// A schema from its file.
fn parse_schema(path: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("it is no JSON: {error}"))
}

/// Dollars, as in 0.25.
pub(super) fn parse_usd(text: &str) -> Result<MicroUsd, String> {
    let usd: Option<f64> = text.trim_start_matches('$').parse().ok();
    usd.filter(|usd| (0.0..=1e9).contains(usd)).map(micros).ok_or_else(|| "write dollars such as 0.25".to_owned())
}

fn parse_span(text: &str) -> Result<Duration, String> {
    parse_seconds(text)
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
        .ok_or_else(|| "write a span such as 90s, 10m or 2h".to_owned())
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(context, "run", Work::Drives).await?;
    let exit = if args.detach { leave(context, &place, &args).await } else { stay(context, &place, &args).await };
    place.close().await;
    exit.map(|(_, exit)| exit)
}

/// Starts a run and follows it. Which it was, and how it ended.
pub(super) async fn stay(context: &Context, place: &Place, args: &Args) -> Result<(String, Exit), Failure> {
    match place {
        Place::Here(instance) => {
            let run = start(context, instance, args).await?;
            let exit = Session::new(context, instance, run, args.follow()).go().await?;
            Ok((run.to_string(), exit))
        }
        Place::There(remote) => {
            let run = start_there(context, remote, args).await?["id"].as_str().unwrap_or_default().to_owned();
            let exit = Visit::new(context, remote, run.clone(), args.follow()).go().await?;
            Ok((run, exit))
        }
    }
}

/// Starts a run and says which.
async fn leave(context: &Context, place: &Place, args: &Args) -> Result<(String, Exit), Failure> {
    let run = match place {
        Place::Here(instance) => {
            let run = start(context, instance, args).await?;
            if context.json {
                document(&json!({"id": run, "status": "QUEUED"}));
            } else {
                say(&run.to_string());
                let how = format!("adjutant runs resume {}", short(&run));
                tell(&ours(&format!("hint: it starts when a server runs here, or with: {how}")));
            }
            run.to_string()
        }
        Place::There(remote) => {
            let started = start_there(context, remote, args).await?;
            let run = started["id"].as_str().unwrap_or_default().to_owned();
            context.print(&json!({"id": run, "status": started["status"]}), || vec![run.clone()]);
            run
        }
    };
    Ok((run, Exit::Done))
}

async fn start(context: &Context, instance: &Instance, args: &Args) -> Result<RunId, Failure> {
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let is_agent = match args.words.as_slice() {
        [word] => engine.store().agent_by_slug(workspace, word).await?.is_some(),
        [] | [_, _, ..] => false,
    };
    let (name, task) = agent_and_task(context, args, is_agent).await?;
    let files = attach::read(&args.attach)?;
    let agent = engine.find_agent(workspace, &name).await?.id;
    let notebook = notebook(instance, args.notebook.as_deref()).await?;
    let mut chat = args.chat.as_deref().map(chat).transpose()?;
    let mut attachments = Vec::new();
    if !files.is_empty() {
        // Only a chat knows its notebook.
        let known = match chat {
            Some(chat) => chat,
            None => {
                let title = attach::title(&task);
                let nothing = BTreeMap::new();
                engine.create_chat(workspace, instance.home.user, agent, notebook, title, &nothing).await?.id
            }
        };
        attachments = attach::keep(instance, known, files).await?;
        chat = Some(known);
    }
    let ask = StartRun {
        chat,
        notebook,
        attachments,
        model: args.model.clone(),
        max_cost: args.max_cost,
        key: args.key,
        output_schema: args.schema.clone(),
        debug: args.debug,
        effects: args.effects,
        ..StartRun::new(instance.home.user, agent, &task)
    };
    Ok(engine.start_run(workspace, ask).await?)
}

async fn start_there(context: &Context, remote: &Remote, args: &Args) -> Result<Value, Failure> {
    let is_agent = match args.words.as_slice() {
        [word] => match remote.get(&["agents", word], &[]).await {
            Ok(_) => true,
            Err(failure) if failure.code == "not_found" => false,
            Err(failure) => return Err(failure),
        },
        [] | [_, _, ..] => false,
    };
    let (agent, task) = agent_and_task(context, args, is_agent).await?;
    let files = attach::read(&args.attach)?;
    let mut chat = args.chat.clone();
    let mut attachments = json!([]);
    if !files.is_empty() {
        let known = match &chat {
            Some(chat) => remote.get(&["chats", chat], &[]).await?,
            None => {
                let body = json!({"agent_id": agent, "notebook_id": args.notebook, "title": attach::title(&task)});
                remote.post(&["chats"], &body).await?
            }
        };
        attachments = attach::keep_there(remote, &known, files).await?;
        chat = known["id"].as_str().map(str::to_owned);
    }
    let mut body = match &chat {
        Some(_) => json!({"user_message": task, "attachments": attachments}),
        None => json!({"agent_id": agent, "input": task, "notebook_id": args.notebook}),
    };
    if let Some(model) = &args.model {
        body["model"] = json!(model);
    }
    body["max_cost_usd"] = json!(args.max_cost.map(MicroUsd::dollars));
    body["output_schema"] = json!(args.schema);
    body["provider_key_id"] = json!(args.key);
    if args.debug {
        body["debug"] = json!(true);
    }
    if args.effects == Effects::Dry {
        body["autonomy"] = json!("plan");
    }
    match &chat {
        Some(chat) => remote.post(&["chats", chat, "runs"], &body).await,
        None => remote.post(&["runs"], &body).await,
    }
}

/// Which agent, and what it is told. One word alone is an agent's name if there is such an agent, else the task.
async fn agent_and_task(context: &Context, args: &Args, is_agent: bool) -> Result<(String, String), Failure> {
    let (name, task) = match args.words.as_slice() {
        [agent, task] => (agent.as_str(), Some(task.clone())),
        [word] if is_agent => (word.as_str(), None),
        [word] => (DEFAULT_AGENT, Some(word.clone())),
        [] | [_, _, _, ..] => (DEFAULT_AGENT, None),
    };
    let more = args.file.as_ref().map(read_file).transpose()?;
    let task = match (task, more) {
        (Some(task), Some(more)) => format!("{task}\n\n{more}"),
        (Some(task), None) | (None, Some(task)) => task,
        (None, None) => match read_input()? {
            Some(task) => task,
            None if context.terminal.interactive => {
                prompt::text(&format!("What should {name} do?")).await.unwrap_or_default()
            }
            None => String::new(),
        },
    };
    if task.trim().is_empty() {
        return Err(Failure::usage("There is no task. Nothing was started.")
            .hint("adjutant run guide \"tidy the welcome notes\""));
    }
    Ok((name.to_owned(), task))
}

fn read_file(path: &PathBuf) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path);
    text.map_err(|error| Failure::usage(format!("{} cannot be read: {error}. Nothing was started.", path.display())))
}

/// What was piped in, if anything was.
fn read_input() -> Result<Option<String>, Failure> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Ok(None);
    }
    let mut text = String::new();
    // One byte more than is allowed shows that there is more; the message is then refused for its length.
    let most = MESSAGE_BYTES as u64 + 1;
    let read = input.lock().take(most).read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("Standard input cannot be read: {error}. Nothing was started.")))?;
    Ok(Some(text))
}

fn chat(text: &str) -> Result<ChatId, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("{error}. Nothing was started.")))
}

/// The notebook a person means, by its id or short name.
async fn notebook(instance: &Instance, name: Option<&str>) -> Result<Option<NotebookId>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let rows = instance.engine.store().notebooks(instance.home.workspace).await?;
    match rows.iter().find(|row| row.slug == name || row.id.to_string() == name) {
        Some(row) => Ok(Some(row.id)),
        None => {
            let names: Vec<_> = rows.iter().map(|row| row.slug.as_str()).collect();
            Err(Failure::not_found(format!("There is no notebook `{name}`. Nothing was started."))
                .hint(format!("there are: {}", names.join(", "))))
        }
    }
}
