//! `agents reach`: how much of a notebook an agent reaches, by verb, and what lies just outside.

use adjutant_core::guard::judge::Decision;
use adjutant_core::guard::survey::Verb;
use adjutant_core::id::NotebookId;
use adjutant_engine::ReachReport;

use crate::cli::Context;
use crate::cli::terminal::{clean, table};
use crate::cli::words::count;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent's short name or id
    agent: String,
    /// The notebook, if not the one a run would get
    #[arg(long, value_name = "NAME")]
    notebook: Option<String>,
}

pub(super) async fn execute(context: &Context, instance: &Instance, args: &Args) -> Result<Exit, Failure> {
    let row = instance.engine.find_agent(instance.home.workspace, &args.agent).await?;
    let agent = instance.engine.current_agent(instance.home.workspace, row.id).await?;
    let notebook = notebook(instance, args.notebook.as_deref()).await?;
    let report = instance.engine.reach(instance.home.workspace, &agent, notebook).await?;
    context.print(&wire::reach(&report), || lines(context, &report));
    Ok(Exit::Done)
}

/// The notebook a person means by its short name or id.
pub(super) async fn notebook(instance: &Instance, name: Option<&str>) -> Result<Option<NotebookId>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let rows = instance.engine.store().notebooks(instance.home.workspace).await?;
    let found = rows.iter().find(|row| row.slug == name || row.id.to_string() == name);
    found.map(|row| Some(row.id)).ok_or_else(|| Failure::not_found(format!("There is no notebook `{name}`.")))
}

fn lines(context: &Context, report: &ReachReport) -> Vec<String> {
    let style = context.terminal.out;
    let Some(notebook) = &report.notebook else {
        return vec!["The agent's scope admits no notebook: it reaches no file.".to_owned()];
    };
    let survey = &report.survey;
    let more = if report.cut { ", and more that were not looked at" } else { "" };
    let entries = count(survey.entries, "entry", "entries");
    let mut lines = vec![format!("{}: {entries}{more}", style.bold(&clean(notebook)))];
    let row = |(name, found, one, many): (&'static str, &Verb, &str, &str)| {
        let asks = match report.verdicts.get(name).map(|can| can.verdict.decision) {
            Some(Decision::Allow) => "free",
            Some(Decision::Ask) => "asks",
            Some(Decision::Deny) => "no tool does it",
            None => "",
        };
        let samples = found.samples.iter().map(|path| clean(path)).collect::<Vec<_>>().join("  ");
        vec![name.to_owned(), count(found.count, one, many), asks.to_owned(), samples]
    };
    lines.extend(table(&["VERB", "REACHES", "FIRST", "SAMPLES"], &wire::verbs(survey).map(row), style));
    if !survey.just_outside.is_empty() {
        lines.push(format!("just outside: {}", count(survey.outside, "thing", "things")));
        lines.extend(survey.just_outside.iter().map(|thing| {
            let grant = thing.smallest_grant.as_ref().map(|grant| format!("  → {}", clean(grant))).unwrap_or_default();
            format!("  {}  {}{grant}", clean(&thing.path), style.dim(thing.rule))
        }));
    }
    lines
}
