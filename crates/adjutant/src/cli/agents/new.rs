//! `agents new`: an agent of your own from one that comes with Adjutant. What it could touch is shown first, and a person says yes.

use adjutant_core::guard::policy::{AgentConfig, AgentSpec, slug_of};
use adjutant_core::run::event::Actor;
use adjutant_engine::store::row::AgentRow;
use adjutant_engine::templates;
use serde_json::json;

use super::{summary, word};
use crate::cli::output::tell;
use crate::cli::place::Place;
use crate::cli::words::ours;
use crate::cli::{Context, prompt};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its name
    name: String,
    /// The agent that it is made like, as `agents templates` lists them
    #[arg(long, value_name = "TEMPLATE", default_value = "guide")]
    from: String,
    /// Make it your own, and not the workspace's: nobody else but admins sees it until you share it
    #[arg(long)]
    own: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) async fn execute(context: &Context, place: &Place, args: &Args) -> Result<Exit, Failure> {
    let (spec, config) = draft(args)?;
    if !args.yes {
        let style = context.terminal.err;
        tell(&format!("{}  autonomy {}", style.bold(&config.slug), word(&config.autonomy)));
        for line in summary(&config, style) {
            tell(&format!("  {line}"));
        }
        if !context.terminal.interactive {
            return Err(Failure::usage("Nobody can be asked here, so nothing was made.")
                .hint("look at the above, then add --yes"));
        }
        if !prompt::confirm(&format!("Make {}?", config.slug)).await {
            return Ok(Exit::Rejected);
        }
    }
    let made = match place {
        Place::Here(instance) => {
            let (workspace, by) = (instance.home.workspace, Actor::User(instance.home.user));
            if instance.engine.store().agent_by_slug(workspace, &config.slug).await?.is_some() {
                return Err(Failure::usage(format!("There is an agent `{}` already. Nothing was made.", config.slug)));
            }
            let owner = args.own.then_some(instance.home.user);
            let config = instance.engine.complete_agent(spec)?;
            let row = AgentRow { owner, ..instance.engine.new_agent(workspace, &config)? };
            let row = instance.engine.put_agent(by, row, &config).await?;
            super::shown(instance, &row).await?
        }
        Place::There(remote) => {
            let mut body = serde_json::to_value(&spec).unwrap_or_default();
            if let Some(fields) = body.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            body["workspace_id"] = json!(remote.only_workspace().await?);
            body["owner"] = json!(if args.own { "user" } else { "workspace" });
            remote.post(&["agents"], &body).await?
        }
    };
    context.print(&made, || {
        let slug = &config.slug;
        vec![
            format!("✔ made: {slug}"),
            ours(&format!("adjutant agents export {slug} > {slug}.md, edit it, then adjutant agents import {slug}.md")),
        ]
    });
    Ok(Exit::Done)
}

/// The template under another name.
fn draft(args: &Args) -> Result<(AgentSpec, AgentConfig), Failure> {
    let known = templates();
    let template = known.iter().find(|spec| spec.slug.as_deref() == Some(args.from.as_str())).ok_or_else(|| {
        let names: Vec<_> = known.iter().filter_map(|spec| spec.slug.as_deref()).collect();
        Failure::usage(format!("There is no template `{}`. Nothing was made.", args.from))
            .hint(format!("use one of {}", names.join(", ")))
    })?;
    let spec = AgentSpec {
        name: args.name.clone(),
        slug: Some(slug_of(&args.name)),
        // Words that would choose the template choose nobody twice.
        keywords: None,
        ..template.clone()
    };
    let config = spec.clone().complete().map_err(|problems| {
        let problems = problems.iter().map(ToString::to_string).collect();
        Failure::usage("The agent cannot be made.").problems(problems)
    })?;
    Ok((spec, config))
}
