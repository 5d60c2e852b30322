//! `audit search`: who did what, newest first.

use adjutant_core::audit::filter::{self, Wanted};
use adjutant_engine::{LogsOf, PageOf, Redaction};
use serde_json::Value;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::terminal::{cut, one_line, table};
use crate::cli::words::short;
use crate::failure::{Exit, Failure, sentence};
use crate::instance::Instance;

/// Characters of an entry's words in the list.
const WORDS: usize = 60;
/// Entries that a server gives at a time.
const MOST_THERE: u16 = 200;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to look for, as in: agent:guide tool:write_file verdict:deny path:/drafts/** since:7d "some text"
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// How many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Go on where another page ended
    #[arg(long)]
    cursor: Option<String>,
    /// Show what looks like a secret, too; that is recorded
    #[arg(long)]
    raw: bool,
}

/// The words of a search as one text. A word that the shell took out of its quotes is still one.
pub(super) fn text(words: &[String]) -> String {
    let quoted = |word: &String| match word.split_once(':') {
        None if word.contains(char::is_whitespace) && !word.contains('"') => format!("\"{word}\""),
        None | Some(_) => word.clone(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Reads the words of a search.
pub(super) async fn wanted(instance: &Instance, words: &[String]) -> Result<Wanted, Failure> {
    let mut wanted = filter::parse(&text(words), instance.engine.env().now()).map_err(|why| {
        Failure::usage(sentence(&why)).hint("adjutant audit search agent:guide verdict:deny since:7d")
    })?;
    if let Some(run) = &wanted.run {
        wanted.run = Some(find::run(instance, run).await?.to_string());
    }
    Ok(wanted)
}

pub(in crate::cli) fn redaction(raw: bool) -> Redaction {
    if raw { Redaction::Raw } else { Redaction::On }
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let found = match place {
        Place::Here(instance) => {
            let wanted = wanted(instance, &args.words).await?;
            if args.raw {
                let place = format!("in a search of the record: {}", args.words.join(" "));
                instance.engine.record_raw(instance.home.workspace, instance.home.user, place, None).await?;
            }
            let page = PageOf {
                limit: usize::from(args.limit),
                cursor: args.cursor,
                redaction: redaction(args.raw),
                logs: LogsOf::AndInstance,
            };
            let found = instance.engine.search_audit(instance.home.workspace, &wanted, &page).await?;
            serde_json::to_value(&found).unwrap_or_default()
        }
        Place::There(remote) => {
            let (workspace, words) = (remote.only_workspace().await?, text(&args.words));
            let limit = args.limit.min(MOST_THERE).to_string();
            let mut query = vec![("workspace_id", workspace.as_str()), ("q", &words), ("limit", &limit)];
            query.extend(args.cursor.as_deref().map(|cursor| ("cursor", cursor)));
            query.extend(args.raw.then_some(("raw", "true")));
            remote.get(&["audit"], &query).await?
        }
    };
    let style = context.terminal.out;
    context.print(&found, || {
        let data = found["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut lines = if data.is_empty() {
            vec!["Nothing found.".to_owned()]
        } else {
            let rows: Vec<_> = data.iter().map(row).collect();
            table(&["TIME", "WHO", "WHAT", "VERDICT", "ABOUT", "ENTRY"], &rows, style)
        };
        if let Some(cursor) = found["next_cursor"].as_str() {
            lines.push(style.dim(&format!("There may be more: --cursor {cursor}")));
        }
        lines
    });
    Ok(Exit::Done)
}

fn row(entry: &Value) -> Vec<String> {
    let text = |field: &str| entry[field].as_str();
    let who = text("by").or_else(|| text("agent")).unwrap_or("adjutant");
    let verdict = match (text("verdict"), entry["is_error"] == true) {
        (Some(verdict), true) => format!("{verdict} ✖"),
        (Some(verdict), false) => verdict.to_owned(),
        (None, true) => "✖".to_owned(),
        (None, false) => String::new(),
    };
    let time: String = text("time").unwrap_or_default().chars().take(19).collect();
    vec![
        time.replace('T', " "),
        one_line(who),
        one_line(text("kind").unwrap_or_default()),
        verdict,
        cut(&one_line(text("summary").unwrap_or_default()), WORDS),
        format!("{} {}", short(&text("stream").unwrap_or_default()), entry["seq"]),
    ]
}
