//! `inbox show`: one item in full, as it stands in the log of its run.

use adjutant_core::run::event::ApprovalAsked;
use adjutant_engine::Card;
use adjutant_engine::store::row::ApprovalRow;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::prompt::pretty;
use crate::cli::terminal::{Style, clean, one_line};
use crate::cli::words::short;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::{self, Texts};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The item, or as much of its id as no other has
    id: String,
}

pub(super) async fn execute(context: &Context, instance: &Instance, args: Args) -> Result<Exit, Failure> {
    let row = find::approval(instance, &args.id).await?;
    let (asked, texts) = asked(instance, &row).await?;
    context.print(&wire::approval(&row, asked.as_ref(), &texts), || {
        lines(&row, asked.as_ref(), &texts, context.terminal.out)
    });
    Ok(Exit::Done)
}

/// What was asked, with its texts; none for a call in doubt.
pub(super) async fn asked(instance: &Instance, row: &ApprovalRow) -> Result<(Option<ApprovalAsked>, Texts), Failure> {
    let state = instance.engine.run_state(instance.home.workspace, row.run).await?;
    let Some(asked) = state.approvals.get(&row.id).and_then(|approval| approval.asked.clone()) else {
        return Ok((None, Texts::default()));
    };
    let event = asked.clone().into();
    let texts = Texts::load(&instance.engine, instance.home.workspace, [&event]).await?;
    Ok((Some(asked), texts))
}

fn lines(row: &ApprovalRow, asked: Option<&ApprovalAsked>, texts: &Texts, style: Style) -> Vec<String> {
    let card: Option<Card> = serde_json::from_str(&row.card).ok();
    let part = |pick: fn(&Card) -> &String| card.as_ref().map(|card| one_line(pick(card))).unwrap_or_default();
    let id = row.id.to_string();
    let mut lines = vec![
        format!("{}  {}  {}", style.bold(&id), row.kind, row.status),
        part(|card| &card.summary),
        format!(
            "why: {} (rule {})   risk: {}",
            part(|card| &card.reason),
            part(|card| &card.rule),
            part(|card| &card.risk)
        ),
        style.dim(&format!("asked {} by {} · run {}", row.created_at, row.agent, row.run)),
    ];
    if let Some(at) = row.expires_at.filter(|_| row.status == "pending") {
        lines.push(style.dim(&format!("counts as no after {at}")));
    }
    if let Some(decision) = card.as_ref().and_then(|card| card.decision.as_ref()) {
        let by = card.as_ref().and_then(|card| card.decided_by.clone()).unwrap_or_default();
        lines.push(format!("decided: {decision} by {by}"));
    }
    if let Some(asked) = asked {
        lines.push(String::new());
        match &asked.diff {
            Some(diff) => lines.extend(style.diff(&texts.of(diff))),
            None => lines.push(clean(&pretty(&texts.of(&asked.arguments)))),
        }
    }
    let offered = asked.filter(|asked| row.status == "pending" && asked.allowed_scopes.len() > 1);
    if let Some(place) = offered.and_then(|asked| asked.place.as_ref()) {
        let tool = row.tool.as_deref().unwrap_or_default();
        let lasting = format!("a yes for longer (--for run|chat|always) would allow {tool}{}", place.in_words());
        lines.extend([String::new(), style.dim(&one_line(&lasting))]);
    }
    if row.status == "pending" {
        let (id, verb) = (short(&row.id), if asked.is_some() { "approve" } else { "resolve" });
        lines.extend([
            String::new(),
            format!("adjutant inbox {verb} {id}{}", if asked.is_some() { "" } else { " happened|run|abandon" }),
        ]);
    }
    lines
}
