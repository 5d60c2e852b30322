//! Small texts that several commands share: ids cut short, spans of time, what a call is about.

use std::sync::OnceLock;
use std::time::Duration;

use adjutant_core::run::step::AT_A_LIMIT;
use adjutant_core::time::Time;
use serde_json::Value;

use super::terminal::{cut, one_line};

/// Characters of an id, after its prefix, that lists show: its moment and what counts within it, so hardly ever two alike.
const ID_CHARS: usize = 13;
/// Characters of a call's target in a line.
const TARGET: usize = 60;

/// The options of this process that say which instance and which workspace are meant.
static MEANT: OnceLock<String> = OnceLock::new();

/// Remembers the options that say what is meant, each with its value, for the hints of this process.
pub(crate) fn mean(options: &[(&str, Option<String>)]) {
    let given = options.iter().filter_map(|(option, value)| Some(format!(" {option} {}", quoted(value.as_deref()?))));
    // A second time in one process would only happen in a test.
    let _ = MEANT.set(given.collect());
}

/// A hint whose commands are about the same instance as this one: what was said to reach it is said again, because the command as
/// it stands would go to another.
pub(crate) fn ours(hint: &str) -> String {
    let options = MEANT.get().map(String::as_str).unwrap_or_default();
    hint.replace("adjutant ", &format!("adjutant{options} "))
}

/// A value as a shell takes it.
fn quoted(value: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+=:@%,".contains(letter);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

/// An id cut short; any command takes it in place of the whole.
pub(crate) fn short(id: &impl ToString) -> String {
    let text = id.to_string();
    let prefix = text.find('_').map_or(0, |at| at + 1);
    text.chars().take(prefix + ID_CHARS).collect()
}

/// What to do about a run that failed.
pub(crate) fn after_failure(run: &str, code: Option<&str>) -> String {
    match code.filter(|code| AT_A_LIMIT.contains(code)) {
        Some(_) => format!("adjutant runs resume {run} --extra-turns 20 goes on from there"),
        None => format!("adjutant runs fork {run} tries again from its message"),
    }
}

/// A span in the unit a person would use.
pub(crate) fn span(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds @ 1..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// How long ago a moment is that a document names.
pub(crate) fn ago(moment: &str) -> String {
    let now = adjutant_engine::Env::system().now();
    moment.parse::<Time>().map(|at| format!("{} ago", span(now.since(at)))).unwrap_or_default()
}

/// How long it is until a moment that a document names.
pub(crate) fn until(moment: &str) -> String {
    let now = adjutant_engine::Env::system().now();
    moment.parse::<Time>().map(|at| format!("in {}", span(at.since(now)))).unwrap_or_default()
}

/// Bytes in the unit a person would use.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

/// A number with the word for it.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// What a call is about: its path, its query, its key, or its first text.
pub(crate) fn target(arguments: &str) -> String {
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(arguments) else { return String::new() };
    let named = ["path", "query", "key", "url"].iter().find_map(|name| map.get(*name));
    let value = named.or_else(|| map.values().find(|value| value.is_string()));
    value.and_then(Value::as_str).map(|text| cut(&one_line(text), TARGET)).unwrap_or_default()
}

/// How much a call found, for those that list things.
pub(crate) fn found(tool: &str, output: &str) -> Option<usize> {
    match tool {
        "list_files" | "search_content" | "kv_list" => {
            Some(output.lines().filter(|line| !line.is_empty() && !line.starts_with(['(', '…'])).count())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::session::failed;
    use crate::failure::Exit;

    #[test]
    fn a_value_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(["/tmp/a-b", "/my notes", "it's"].map(quoted), ["/tmp/a-b", "'/my notes'", r"'it'\''s'"]);
    }

    #[test]
    fn an_id_keeps_its_prefix_and_its_moment() {
        assert_eq!(short(&"run_01k2m3n4p5q6r7s8t9v0w1x2y3"), "run_01k2m3n4p5q6r");
    }

    #[test]
    fn a_span_is_said_in_the_unit_a_person_would_use() {
        let said = [40, 4_000, 150_000, 7_200_000, 200_000_000].map(|millis| span(Duration::from_millis(millis)));
        assert_eq!(said, ["40 ms", "4 s", "2 min", "2 h", "2 days"]);
    }

    #[test]
    fn a_run_that_reached_its_own_time_is_told_from_one_whose_provider_took_too_long() {
        let (own, providers) = (Some("timeout"), Some("provider_timeout"));
        assert_eq!((failed(own), failed(providers)), (Exit::RunFailed, Exit::Unreachable));
        assert!(after_failure("run_x", own).contains("--extra-turns"));
        assert!(after_failure("run_x", providers).contains("runs fork"));
    }

    #[test]
    fn a_call_is_about_its_path_or_what_it_looks_for() {
        assert_eq!(target(r#"{"content":"x","path":"/todo.md"}"#), "/todo.md");
        assert_eq!(target(r#"{"query":"ablation"}"#), "ablation");
        assert_eq!(target(r#"{"limit":3,"name":"a\nb"}"#), "a b");
        assert_eq!(target("not json"), "");
        assert_eq!(found("list_files", "/a\n/b/\n… 3 more"), Some(2));
        assert_eq!(found("list_files", "(nothing here)"), Some(0));
        assert_eq!(found("read_file", "x"), None);
    }
}
