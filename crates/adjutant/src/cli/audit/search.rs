//! `audit search`: who did what, newest first.

use adjutant_core::audit::filter::{self, Wanted};
use adjutant_engine::{AuditEntry, LogsOf, PageOf, Redaction};

use crate::cli::Context;
use crate::cli::find;
use crate::cli::terminal::{cut, one_line, table};
use crate::cli::words::short;
use crate::failure::{Exit, Failure, sentence};
use crate::instance::Instance;

/// Characters of an entry's words in the list.
const WORDS: usize = 60;

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
    /// Show what looks like a secret, too
    #[arg(long)]
    raw: bool,
}

/// Reads the words of a search. A word that the shell took out of its quotes is still one text.
pub(super) async fn wanted(instance: &Instance, words: &[String]) -> Result<Wanted, Failure> {
    let quoted = |word: &String| match word.split_once(':') {
        None if word.contains(char::is_whitespace) && !word.contains('"') => format!("\"{word}\""),
        None | Some(_) => word.clone(),
    };
    let text = words.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let mut wanted = filter::parse(&text, instance.engine.env().now()).map_err(|why| {
        Failure::usage(sentence(&why)).hint("adjutant audit search agent:guide verdict:deny since:7d")
    })?;
    if let Some(run) = &wanted.run {
        wanted.run = Some(find::run(instance, run).await?.to_string());
    }
    Ok(wanted)
}

pub(super) fn redaction(raw: bool) -> Redaction {
    if raw { Redaction::Raw } else { Redaction::On }
}

pub(super) async fn execute(context: &Context, instance: &Instance, args: Args) -> Result<Exit, Failure> {
    let wanted = wanted(instance, &args.words).await?;
    let page = PageOf {
        limit: usize::from(args.limit),
        cursor: args.cursor,
        redaction: redaction(args.raw),
        logs: LogsOf::AndInstance,
    };
    let found = instance.engine.search_audit(instance.home.workspace, &wanted, &page).await?;
    let style = context.terminal.out;
    context.print(&serde_json::to_value(&found).unwrap_or_default(), || {
        let mut lines = if found.data.is_empty() {
            vec!["Nothing found.".to_owned()]
        } else {
            let rows: Vec<_> = found.data.iter().map(row).collect();
            table(&["TIME", "WHO", "WHAT", "VERDICT", "ABOUT", "ENTRY"], &rows, style)
        };
        if let Some(cursor) = &found.next_cursor {
            lines.push(style.dim(&format!("There may be more: --cursor {cursor}")));
        }
        lines
    });
    Ok(Exit::Done)
}

fn row(entry: &AuditEntry) -> Vec<String> {
    let who = entry.by.clone().or_else(|| entry.agent.clone()).unwrap_or_else(|| "adjutant".to_owned());
    let verdict = match (&entry.verdict, entry.is_error) {
        (Some(verdict), true) => format!("{verdict} ✖"),
        (Some(verdict), false) => verdict.clone(),
        (None, true) => "✖".to_owned(),
        (None, false) => String::new(),
    };
    let time: String = entry.time.to_string().chars().take(19).collect();
    vec![
        time.replace('T', " "),
        one_line(&who),
        entry.kind.clone(),
        verdict,
        cut(&one_line(&entry.summary), WORDS),
        format!("{} {}", short(&entry.stream), entry.seq),
    ]
}
