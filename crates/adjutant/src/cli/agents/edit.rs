//! `agents edit`: an agent as a file in the person's own editor. What changes in what it may do is shown first, and a person says
//! yes.

use std::path::Path;

use adjutant_engine::tools::Registry;
use serde_json::json;

use super::import::{before, keep, replaced, save_there};
use super::{export, tend};
use crate::agent_file::{self, AgentFile};
use crate::cli::output::tell;
use crate::cli::place::Place;
use crate::cli::{Context, editor, prompt};
use crate::failure::{Exit, Failure};
use crate::instance;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its short name or id
    name: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) async fn execute(context: &Context, place: &Place, args: &Args) -> Result<Exit, Failure> {
    let slug = tend::slug(place, &args.name).await?;
    let kept = tend::file_of(context, place, &args.name, &slug).await?;
    // The file that is there has the words of whoever wrote it, also those that mean nothing to us.
    let text = match &kept {
        Some(file) => std::fs::read_to_string(file).map_err(|error| instance::unusable(file, &error))?,
        None => export::text(place, &slug).await?,
    };
    let version = before(place, &slug).await?;
    let Some(edited) = edited(context, &text)? else {
        context.print(&json!({"changed": false}), || vec![format!("{slug} stays as it was")]);
        return Ok(Exit::Done);
    };
    let file = parsed(&slug, &edited)?;
    let Some((number, old)) = version else { return Err(Failure::not_found(format!("There is no agent `{slug}`."))) };
    let changes = replaced(number, old.as_ref(), &file.config);
    if !args.yes {
        changes.iter().for_each(|line| tell(line));
        if !context.terminal.interactive {
            return Err(Failure::usage("Nobody can be asked here, so nothing was saved.").hint("add --yes"));
        }
        if !prompt::confirm(&format!("Save {slug}?")).await {
            return Ok(Exit::Rejected);
        }
    }
    match place {
        Place::Here(here) => instance::save_agent_file(&here.engine, here.home, &file).await?,
        // Whose it is stays as it was.
        Place::There(remote) => save_there(remote, Some(number), &file, "workspace").await?,
    }
    if kept.is_some() {
        keep(&context.config()?.data.value, &file, edited.as_bytes())?;
    }
    context.print(&json!({"changed": true, "slug": slug}), || {
        let first = context.terminal.out.good(&format!("✔ {slug} is saved"));
        std::iter::once(first).chain(if args.yes { changes.clone() } else { Vec::new() }).collect()
    });
    Ok(Exit::Done)
}

/// What a person made of a text; nothing, if they left it as it was.
fn edited(context: &Context, text: &str) -> Result<Option<String>, Failure> {
    let failed = |why: String| {
        Failure::other(why).hint("adjutant agents export prints the file, adjutant agents import takes it")
    };
    tokio::task::block_in_place(|| editor::edit_text(text, "md", &context.env)).map_err(failed)
}

/// The agent that was written, if it is one and still the same.
fn parsed(slug: &str, text: &str) -> Result<AgentFile, Failure> {
    let known = instance::known(&Registry::builtin());
    let found = agent_file::parse(Path::new(&format!("{slug}.md")), text, &known);
    let file = found.map_err(|problems| {
        let what = "What was written is no agent. It stays as it was.";
        Failure::usage(what).problems(problems.iter().map(ToString::to_string).collect())
    })?;
    if file.config.slug != slug {
        let what = format!("The short name became `{}`: that is another agent. It stays as it was.", file.config.slug);
        return Err(Failure::usage(what).hint("adjutant agents import makes another agent of a file"));
    }
    Ok(file)
}
