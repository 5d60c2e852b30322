//! `inbox ls`: what waits, oldest first.

use std::collections::BTreeSet;
use std::time::Duration;

use adjutant_engine::store::row::ApprovalFilter;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::interrupt::Interrupt;
use crate::cli::output::say;
use crate::cli::place::Place;
use crate::cli::terminal::{Style, cut, one_line, table};
use crate::cli::words::{ours, short, until};
use crate::failure::{Exit, Failure};
use crate::wire::{self, Secrets, Texts};

/// Characters of a summary in the list.
const SUMMARY: usize = 60;
/// How often whoever watches looks again.
const LOOK: Duration = Duration::from_secs(1);
/// Items of one list.
const LIMIT: u32 = 200;

#[derive(Debug, Default, clap::Args)]
pub(super) struct Args {
    /// Also what was decided, expired or superseded
    #[arg(long)]
    all: bool,
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let document = items(place, (!args.all).then_some("pending")).await?;
    context.print(&document, || lines(&document, context.terminal.out));
    Ok(Exit::Done)
}

async fn items(place: &Place, status: Option<&str>) -> Result<Value, Failure> {
    match place {
        Place::Here(instance) => {
            let filter = ApprovalFilter { status: status.map(str::to_owned), ..ApprovalFilter::default() };
            let rows = instance.engine.store().approvals(instance.home.workspace, &filter, LIMIT).await?;
            let data: Vec<_> =
                rows.iter().map(|row| wire::approval(row, None, &Texts::default(), Secrets::Hidden)).collect();
            Ok(json!({"data": data, "has_more": rows.len() == LIMIT as usize}))
        }
        Place::There(remote) => {
            let limit = LIMIT.to_string();
            let mut query = vec![("limit", limit.as_str())];
            query.extend(status.map(|status| ("status", status)));
            remote.get(&["approvals"], &query).await
        }
    }
}

/// Shows each item that waits once, as it comes, until Ctrl-C.
pub(super) async fn watch(context: &Context, place: &Place) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen();
    let mut seen = BTreeSet::new();
    loop {
        let page = items(place, Some("pending")).await?;
        for item in page["data"].as_array().into_iter().flatten() {
            let word = |field: &str| one_line(item[field].as_str().unwrap_or_default());
            if seen.insert(word("id")) {
                let line = || {
                    format!(
                        "⏸ {}   {}   {}",
                        word("summary"),
                        word("risk"),
                        ours(&format!("adjutant inbox show {}", short(&word("id"))))
                    )
                };
                say(&if context.json { item.to_string() } else { context.terminal.out.warn(&line()) });
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = interrupt.heard() => return Ok(Exit::Interrupted),
        }
    }
}

/// Where an item is, in words: a yes to something else than was asked is said as that.
pub(super) fn state(item: &Value) -> String {
    let status = item["status"].as_str().unwrap_or_default();
    let edited = status == "approved" && item["decision"] == "edit";
    if edited { "approved with changes".to_owned() } else { one_line(status) }
}

fn lines(document: &Value, style: Style) -> Vec<String> {
    let rows = document["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return vec![ours("Nothing needs you. Agents ask here before they change files.  adjutant run guide")];
    }
    let row = |row: &Value| {
        let word = |field: &str| row[field].as_str().unwrap_or_default();
        let waits = word("status") == "pending";
        vec![
            short(&word("id")),
            word("kind").to_owned(),
            state(row),
            word("risk").to_owned(),
            if waits { until(word("expires_at")) } else { String::new() },
            short(&word("run_id")),
            cut(&one_line(word("summary")), SUMMARY),
        ]
    };
    let cells: Vec<_> = rows.iter().map(row).collect();
    table(&["ID", "KIND", "STATUS", "RISK", "EXPIRES", "RUN", "WHAT"], &cells, style)
}
