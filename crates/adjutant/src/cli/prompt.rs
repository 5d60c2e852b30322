//! Asking a person at the terminal: what would happen, the whole of it, and the keys to answer with. Decides nothing; an
//! answer that cannot be understood is asked again.

use adjutant_core::run::event::{DoubtOutcome, GrantScope};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::Value;

use super::editor;
use super::output::{tell, tell_piece};
use super::terminal::{Terminal, one_line, visible};
use crate::config::Environment;
use crate::failure::Exit;
use crate::wire::{Secrets, hide, hide_arguments};

/// Lines of a change that are shown at once; a longer one has to be looked at before it can be approved.
const SHOWN_LINES: usize = 40;
/// Lines shown of a longer one.
const FIRST_LINES: usize = 24;

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Yes, and how far.
    Approve(GrantScope),
    /// Yes, with these arguments.
    Edit(String),
    /// No, and perhaps why.
    Reject(Option<String>),
    /// No, and end the run.
    Stop,
    /// They left.
    Gone,
}

/// What a person is asked.
pub(crate) struct Held {
    summary: String,
    reason: String,
    arguments: String,
    diff: Option<String>,
    is_untrusted: bool,
    /// Where what is untrusted came from.
    sources: Vec<String>,
    scopes: Vec<GrantScope>,
}

impl Held {
    /// Reads the public form of an inbox item.
    pub(crate) fn of(item: &Value) -> Self {
        let labels = item["labels"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
        Self {
            summary: text("summary"),
            reason: text("reason"),
            arguments: item["arguments"].as_str().map_or_else(|| item["arguments"].to_string(), str::to_owned),
            diff: item["diff"].as_str().map(str::to_owned),
            is_untrusted: labels.iter().any(|label| label == "untrusted"),
            sources: serde_json::from_value(item["sources"].clone()).unwrap_or_default(),
            scopes: serde_json::from_value(item["allowed_scopes"].clone()).unwrap_or_default(),
        }
    }
}

/// What a line typed at the question means.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    Approve(GrantScope),
    Edit,
    Reject,
    Because(Option<String>),
    Diff,
    Stop,
    Unclear,
}

fn choice(line: &str, scopes: &[GrantScope]) -> Choice {
    let (word, rest) = line.trim().split_once(' ').map_or((line.trim(), ""), |(word, rest)| (word, rest.trim()));
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => Choice::Approve(GrantScope::Once),
        "r" if scopes.contains(&GrantScope::Run) => Choice::Approve(GrantScope::Run),
        "c" if scopes.contains(&GrantScope::Chat) => Choice::Approve(GrantScope::Chat),
        "a" if scopes.contains(&GrantScope::Always) => Choice::Approve(GrantScope::Always),
        "e" | "edit" => Choice::Edit,
        "n" | "no" => Choice::Reject,
        "f" => Choice::Because((!rest.is_empty()).then(|| rest.to_owned())),
        "d" | "diff" => Choice::Diff,
        "q" | "stop" => Choice::Stop,
        _ => Choice::Unclear,
    }
}

/// The keys, as far as they are offered.
fn keys(scopes: &[GrantScope]) -> String {
    let offered: String = scopes
        .iter()
        .map(|scope| match scope {
            GrantScope::Once => "",
            GrantScope::Run => "[r] this run ",
            GrantScope::Chat => "[c] this chat ",
            GrantScope::Always => "[a] always ",
        })
        .collect();
    format!("[y] once {offered}[e] edit [n] no [f] no, because… [d] diff [q] stop")
}

/// Asks about one held call.
pub(crate) async fn ask(held: &Held, terminal: Terminal, env: &Environment) -> Answer {
    let (whole, change) = (change(held, terminal, Secrets::Shown), change(held, terminal, Secrets::Hidden));
    let mut seen = change.len() <= SHOWN_LINES;
    show(&change, if seen { SHOWN_LINES } else { FIRST_LINES });
    if held.is_untrusted {
        tell(&format!("  {}", terminal.err.warn("⚠ drafted after reading something that none of you wrote")));
        held.sources.iter().for_each(|source| tell(&format!("    {}", visible(&one_line(source)))));
    }
    loop {
        tell(&format!("  {}", keys(&held.scopes)));
        tell_piece("> ");
        let Some(line) = line().await else { return Answer::Gone };
        match choice(&line, &held.scopes) {
            Choice::Approve(_) | Choice::Edit if !seen => {
                tell("  There is more of it than was shown. Here is all of it; then answer again.");
                show(&change, usize::MAX);
                seen = true;
            }
            Choice::Approve(scope) => return Answer::Approve(scope),
            Choice::Edit => match editor::edit_arguments(&held.arguments, env) {
                Ok(Some(edited)) => return Answer::Edit(edited),
                Ok(None) => tell("  Nothing was changed."),
                Err(why) => tell(&format!("  {why}")),
            },
            Choice::Reject => return Answer::Reject(None),
            Choice::Because(Some(why)) => return Answer::Reject(Some(why)),
            Choice::Because(None) => {
                tell_piece("  because> ");
                let Some(why) = self::line().await else { return Answer::Gone };
                return Answer::Reject(Some(why.trim().to_owned()).filter(|why| !why.is_empty()));
            }
            Choice::Diff => {
                // Whoever asks for it sees the secrets in it too.
                show(&whole, usize::MAX);
                seen = true;
            }
            Choice::Stop => return Answer::Stop,
            Choice::Unclear => tell("  Type one of the letters."),
        }
    }
}

/// Everything that would happen: the difference, or the arguments where there is none.
fn change(held: &Held, terminal: Terminal, secrets: Secrets) -> Vec<String> {
    let shown = |text: &str, hide: fn(&str) -> String| match secrets {
        Secrets::Shown => text.to_owned(),
        Secrets::Hidden => hide(text),
    };
    match &held.diff {
        Some(diff) => terminal.err.diff(&shown(diff, hide)),
        None => visible(&pretty(&shown(&held.arguments, hide_arguments))).lines().map(str::to_owned).collect(),
    }
}

/// Arguments with one field a line, where they are JSON.
pub(crate) fn pretty(arguments: &str) -> String {
    serde_json::from_str::<Value>(arguments)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| arguments.to_owned())
}

fn show(lines: &[String], most: usize) {
    for line in lines.iter().take(most) {
        tell(&format!("  {line}"));
    }
    if let Some(more) = lines.len().checked_sub(most).filter(|more| *more > 0) {
        tell(&format!("  … {more} more lines; [d] shows all"));
    }
}

/// Asks what became of a call in doubt. None: they left, or want to look first.
pub(crate) async fn ask_doubt(held: &Held, terminal: Terminal) -> Option<DoubtOutcome> {
    let change = change(held, terminal, Secrets::Hidden);
    let mut seen = change.len() <= SHOWN_LINES;
    tell(&format!("  {}", terminal.err.bold(&visible(&one_line(&hide(&held.summary))))));
    tell(&format!("  {}", visible(&held.reason)));
    show(&change, if seen { SHOWN_LINES } else { FIRST_LINES });
    loop {
        tell("  [h] it happened [r] it did not, run it [a] abandon it [d] show all of it [q] leave it");
        tell_piece("> ");
        match line().await?.trim() {
            "h" => return Some(DoubtOutcome::Happened),
            "r" if !seen => {
                tell("  There is more of it than was shown. Here is all of it; then answer again.");
                show(&change, usize::MAX);
                seen = true;
            }
            "r" => return Some(DoubtOutcome::Run),
            "d" => {
                show(&change, usize::MAX);
                seen = true;
            }
            "a" => return Some(DoubtOutcome::Abandon),
            "q" => return None,
            _ => tell("  Type one of the letters."),
        }
    }
}

/// Asks for a yes; anything else is a no.
pub(crate) async fn confirm(question: &str) -> bool {
    tell_piece(&format!("{question} [y/N] "));
    matches!(line().await.as_deref().map(str::trim), Some("y" | "Y" | "yes"))
}

/// Asks for one line of text.
pub(crate) async fn text(question: &str) -> Option<String> {
    tell_piece(&format!("{question} "));
    line().await.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Asks for one line that a terminal does not show while it is typed.
pub(crate) async fn secret(question: &str) -> Option<String> {
    let hidden = Hidden::begin();
    tell_piece(&format!("{question} "));
    let typed = tokio::select! {
        typed = line() => typed,
        // Whoever gives up has a terminal that shows what they type.
        _ = tokio::signal::ctrl_c() => {
            drop(hidden);
            tell("");
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    if hidden.is_some() {
        tell("");
    }
    typed.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// A terminal that does not show what is typed, for as long as this lives.
struct Hidden(Termios);

impl Hidden {
    /// None where there is no terminal.
    fn begin() -> Option<Self> {
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &silent).ok()?;
        Some(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// One line of standard input; none when it ended.
async fn line() -> Option<String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|bytes| (bytes > 0).then_some(line))
    });
    read.await.ok()?.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_one_thing_and_a_scope_that_is_not_offered_is_not_taken() {
        let both = [GrantScope::Once, GrantScope::Run];
        assert_eq!(choice("y\n", &both), Choice::Approve(GrantScope::Once));
        assert_eq!(choice("r", &both), Choice::Approve(GrantScope::Run));
        assert_eq!(choice("a", &GrantScope::ALL), Choice::Approve(GrantScope::Always));
        assert_eq!(choice("c", &GrantScope::ALL), Choice::Approve(GrantScope::Chat));
        for wide in ["r", "c", "a"] {
            assert_eq!(choice(wide, &[GrantScope::Once]), Choice::Unclear);
        }
        assert_eq!(choice(" f  not on Sundays \n", &both), Choice::Because(Some("not on Sundays".to_owned())));
        assert_eq!(choice("f", &both), Choice::Because(None));
        for unclear in ["", "yy", "1", "ja"] {
            assert_eq!(choice(unclear, &both), Choice::Unclear, "{unclear:?}");
        }
    }

    #[test]
    fn only_what_is_offered_is_shown() {
        assert_eq!(
            keys(&GrantScope::ALL),
            "[y] once [r] this run [c] this chat [a] always [e] edit [n] no [f] no, because… [d] diff [q] stop"
        );
        assert_eq!(keys(&[GrantScope::Once]), "[y] once [e] edit [n] no [f] no, because… [d] diff [q] stop");
    }
}
