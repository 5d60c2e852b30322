//! `rules add`: a rule from options, or from a file.

use std::path::PathBuf;
use std::time::Duration;

use adjutant_core::guard::judge::Decision;
use adjutant_core::guard::policy::parse_seconds;
use adjutant_core::guard::rule::{Example, Match, Rule};
use adjutant_core::id::{AgentId, ChatId};
use adjutant_core::limits::LASTING_YES;
use adjutant_engine::NewRule;

use super::{read, wire};
use crate::cli::Context;
use crate::cli::place::Place;
use crate::cli::terminal::one_line;
use crate::cli::words::short;
use crate::failure::{Exit, Failure};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Word {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What it says
    #[arg(value_enum, required_unless_present = "file")]
    decision: Option<Word>,
    /// The tool it is about, or * for every tool
    #[arg(required_unless_present = "file")]
    tool: Option<String>,
    /// Only this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only this chat
    #[arg(long, value_name = "CHAT")]
    chat: Option<ChatId>,
    /// Only in these folder patterns: every path lies there, or one where it asks or denies
    #[arg(long = "in", value_name = "PATTERN")]
    folders: Vec<String>,
    /// Only at these hosts: every web address is of one, or one of them where it asks or denies
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Only where an argument is like this; * stands for anything, a path counts however it is written
    #[arg(long = "arg", value_name = "NAME=PATTERN")]
    arguments: Vec<String>,
    /// How long it counts, such as 7d; a rule that allows ends after 30d at the latest unless this says otherwise
    #[arg(long, value_name = "SPAN")]
    expires_in: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// A call that it must let through, as JSON: {"tool":…,"paths":[…],"arguments":{…}}
    #[arg(long, value_name = "JSON")]
    must_allow: Vec<String>,
    /// A call that it must not let through
    #[arg(long, value_name = "JSON")]
    must_deny: Vec<String>,
    /// A file with the whole rule as JSON, in place of the options
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["decision", "tool", "agent", "chat", "folders", "hosts", "arguments", "expires_in", "note", "must_allow", "must_deny"])]
    file: Option<PathBuf>,
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let new = match &args.file {
        Some(path) => from_file(path)?,
        None => from_options(place, args).await?,
    };
    let rule: Rule = match place {
        Place::Here(instance) => instance.engine.add_rule(instance.home.workspace, instance.home.user, new).await?,
        Place::There(remote) => {
            let body = serde_json::to_value(&new).unwrap_or_default();
            read(remote, remote.post(&["rules"], &body).await?)?
        }
    };
    context.print(&wire(&rule, true), || {
        let line = format!("✔ added: {}  ({})", one_line(&rule.in_words()), short(&rule.id));
        vec![context.terminal.out.good(&line)]
    });
    Ok(Exit::Done)
}

fn from_file(path: &std::path::Path) -> Result<NewRule, Failure> {
    let unusable =
        |why: String| Failure::usage(format!("{} cannot be used: {why}. Nothing was changed.", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))
}

async fn from_options(place: &Place, args: Args) -> Result<NewRule, Failure> {
    let decision = match args.decision {
        Some(Word::Allow) => Decision::Allow,
        Some(Word::Ask) => Decision::Ask,
        Some(Word::Deny) | None => Decision::Deny,
    };
    let agent = match &args.agent {
        Some(name) => Some(agent_id(place, name).await?),
        None => None,
    };
    let now = adjutant_engine::Env::system().now();
    let expires_at = match &args.expires_in {
        Some(text) => Some(now.after(span(text)?)),
        None => (decision == Decision::Allow).then(|| now.after(LASTING_YES)),
    };
    let arguments = args.arguments.iter().map(|text| pair(text)).collect::<Result<_, _>>()?;
    Ok(NewRule {
        agent,
        chat: args.chat,
        tool: args.tool.unwrap_or_default(),
        when: Match { folders: args.folders, hosts: args.hosts, arguments, ..Match::default() },
        decision,
        expires_at,
        note: args.note.unwrap_or_default(),
        must_allow: examples("--must-allow", &args.must_allow)?,
        must_deny: examples("--must-deny", &args.must_deny)?,
    })
}

async fn agent_id(place: &Place, name: &str) -> Result<AgentId, Failure> {
    match place {
        Place::Here(instance) => Ok(instance.engine.find_agent(instance.home.workspace, name).await?.id),
        Place::There(remote) => {
            let agent = remote.get(&["agents", name], &[]).await?;
            remote.read(agent["id"].clone())
        }
    }
}

/// A span as people write it.
pub(in crate::cli) fn span(text: &str) -> Result<Duration, Failure> {
    let wrong =
        || Failure::usage(format!("`{text}` is no span of time. Nothing was recorded.")).hint("write 15m, 24h or 7d");
    parse_seconds(text).map(Duration::from_secs).ok_or_else(wrong)
}

fn pair(text: &str) -> Result<(String, String), Failure> {
    let wrong = || Failure::usage(format!("`{text}` is not NAME=PATTERN. Nothing was changed."));
    text.split_once('=').map(|(name, pattern)| (name.to_owned(), pattern.to_owned())).ok_or_else(wrong)
}

fn examples(option: &str, texts: &[String]) -> Result<Vec<Example>, Failure> {
    let read = |text: &String| {
        serde_json::from_str(text)
            .map_err(|bad| Failure::usage(format!("{option} `{text}` cannot be read: {bad}. Nothing was changed.")))
    };
    texts.iter().map(read).collect()
}
