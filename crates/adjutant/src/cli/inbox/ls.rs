//! `inbox ls`: what waits, oldest first.

use adjutant_engine::Card;
use adjutant_engine::store::row::{ApprovalFilter, ApprovalRow};
use serde_json::json;

use crate::cli::Context;
use crate::cli::terminal::{cut, one_line, table};
use crate::cli::words::{short, span};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::{self, Texts};

/// Characters of a summary in the list.
const SUMMARY: usize = 60;
/// Items of one list.
const LIMIT: u32 = 200;

#[derive(Debug, Default, clap::Args)]
pub(super) struct Args {
    /// Also what was decided, expired or superseded
    #[arg(long)]
    all: bool,
}

pub(super) async fn execute(context: &Context, instance: &Instance, args: Args) -> Result<Exit, Failure> {
    let status = (!args.all).then(|| "pending".to_owned());
    let filter = ApprovalFilter { status, ..ApprovalFilter::default() };
    let rows = instance.engine.store().approvals(instance.home.workspace, &filter, LIMIT).await?;
    let data: Vec<_> = rows.iter().map(|row| wire::approval(row, None, &Texts::default())).collect();
    context.print(&json!({"data": data, "has_more": rows.len() == LIMIT as usize}), || {
        if rows.is_empty() {
            return vec!["Nothing needs you. Agents ask here before they change files.  adjutant run guide".to_owned()];
        }
        let now = instance.engine.env().now();
        let row = |row: &ApprovalRow| {
            let card: Option<Card> = serde_json::from_str(&row.card).ok();
            let expires = row.expires_at.map(|at| format!("in {}", span(at.since(now)))).unwrap_or_default();
            vec![
                short(&row.id),
                row.kind.clone(),
                row.status.clone(),
                card.as_ref().map(|card| card.risk.clone()).unwrap_or_default(),
                if row.status == "pending" { expires } else { String::new() },
                short(&row.run),
                card.map(|card| cut(&one_line(&card.summary), SUMMARY)).unwrap_or_default(),
            ]
        };
        let cells: Vec<_> = rows.iter().map(row).collect();
        table(&["ID", "KIND", "STATUS", "RISK", "EXPIRES", "RUN", "WHAT"], &cells, context.terminal.out)
    });
    Ok(Exit::Done)
}
