//! The demo model's hands: which tools it has, what it already asked them, and what they said. Tolerant in reading,
//! strict in calling: a tool or an argument the request does not show is never used.

use std::borrow::Cow;

use adjutant_core::message::{ModelRequest, RawCall};
use serde_json::{Map, Value};

use crate::view::{Outcome, Step, View};

/// Folders looked into when a listing cannot look into all of them by itself.
const FOLDERS: usize = 8;
/// Bytes of a note the model works on. Tools cut longer outputs, and writing back half a file would lose the other
/// half.
const NOTE_BYTES: usize = 32 * 1024;

/// A request and its tools.
pub(super) struct Desk<'a> {
    pub(super) request: &'a ModelRequest,
    pub(super) view: View<'a>,
}

/// How far a step that needs tools has come.
pub(super) enum Progress<T> {
    /// These calls come first.
    Call(Vec<RawCall>),
    /// It cannot be done, for this reason.
    Stuck(String),
    /// Here it is.
    Ready(T),
}

/// What a tool said about a call that did not do what was asked.
pub(super) enum Trouble<'a> {
    /// A person said no.
    Rejected(&'a str),
    /// A rule said no.
    Denied(&'a str),
    /// It went wrong.
    Failed(&'a str),
}

impl<'a> Desk<'a> {
    pub(super) fn new(request: &'a ModelRequest) -> Self {
        Self { request, view: View::of(request) }
    }

    /// Whether the request shows this tool.
    pub(super) fn has(&self, tool: &str) -> bool {
        self.request.tools.iter().any(|shown| shown.name == tool)
    }

    fn takes(&self, tool: &str, argument: &str) -> bool {
        let shown = self.request.tools.iter().find(|shown| shown.name == tool);
        shown.is_some_and(|shown| match shown.schema.get("properties") {
            Some(properties) => properties.get(argument).is_some(),
            None => false,
        })
    }

    /// A call with those of the arguments that the tool takes (all of them if it does not say which).
    pub(super) fn call(&self, tool: &str, arguments: &[(&str, Value)]) -> Option<RawCall> {
        let shown = self.request.tools.iter().find(|shown| shown.name == tool)?;
        let silent = shown.schema.get("properties").is_none();
        let taken = arguments.iter().filter(|(name, _)| silent || self.takes(tool, name));
        let arguments: Map<_, _> = taken.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Some(RawCall { id: None, name: tool.to_owned(), arguments: Value::Object(arguments).to_string() })
    }

    /// The first of these arguments that the tool takes.
    pub(super) fn argument<'n>(&self, tool: &str, names: &[&'n str]) -> &'n str {
        names.iter().find(|name| self.takes(tool, name)).or(names.first()).copied().unwrap_or_default()
    }

    /// The calls of a tool since the person spoke.
    pub(super) fn calls(&self, tool: &str) -> impl Iterator<Item = &Step<'a>> {
        self.view.steps.iter().filter(move |step| step.name == tool)
    }

    /// All files of the notebook, sorted.
    pub(super) fn files(&self) -> Progress<Vec<String>> {
        let list = |folder: &str| {
            self.call("list_files", &[("path", folder.into()), ("recursive", true.into()), ("limit", 500.into())])
        };
        let asked: Vec<_> = self.calls("list_files").collect();
        if asked.is_empty() {
            return list("/").map_or_else(|| Progress::Stuck(missing("list_files")), |call| Progress::Call(vec![call]));
        }
        if asked.iter().all(|step| output(step).is_none()) {
            return Progress::Stuck(explain(asked.first().copied()));
        }
        let mut entries: Vec<String> =
            asked.iter().filter_map(|step| output(step)).flat_map(|text| paths(&text)).collect();
        entries.sort();
        entries.dedup();
        let unseen = |folder: &&String| {
            let path = folder.trim_end_matches('/');
            !asked.iter().any(|step| argument_of(step, "path").trim_end_matches('/') == path)
        };
        if !self.takes("list_files", "recursive") && asked.len() < FOLDERS {
            let folders = entries.iter().filter(|entry| entry.ends_with('/')).filter(unseen).take(FOLDERS);
            let calls: Vec<_> = folders.filter_map(|folder| list(folder.trim_end_matches('/'))).collect();
            if !calls.is_empty() {
                return Progress::Call(calls);
            }
        }
        entries.retain(|entry| !entry.ends_with('/'));
        Progress::Ready(entries)
    }

    /// The texts of these files. One that cannot be read, or is too long to be worked on, is left out.
    pub(super) fn notes(&self, files: &[String]) -> Progress<Vec<(String, String)>> {
        let read = |path: &String| self.calls("read_file").find(|step| argument_of(step, "path") == *path);
        let unread: Vec<_> = files.iter().filter(|path| read(path).is_none()).collect();
        if !unread.is_empty() {
            let calls: Vec<_> =
                unread.iter().filter_map(|path| self.call("read_file", &[("path", path.as_str().into())])).collect();
            return if calls.is_empty() { Progress::Stuck(missing("read_file")) } else { Progress::Call(calls) };
        }
        let texts = files.iter().filter_map(|path| Some((path.clone(), text_of(path, &output(read(path)?)?))));
        let notes: Vec<_> = texts.filter(|(_, text)| text.len() <= NOTE_BYTES && !is_cut(text)).collect();
        if notes.is_empty() && !files.is_empty() {
            return Progress::Stuck(explain(files.first().and_then(read)));
        }
        Progress::Ready(notes)
    }
}

/// The output of a call that did what was asked.
pub(super) fn output<'s>(step: &'s Step<'_>) -> Option<Cow<'s, str>> {
    let outcome = step.result.as_ref().filter(|_| trouble(step).is_none())?;
    Some(Cow::Borrowed(outcome.output.as_ref()))
}

/// What went wrong with a call, if it did.
pub(super) fn trouble<'s>(step: &'s Step<'_>) -> Option<Trouble<'s>> {
    let Some(Outcome { output, is_error }) = &step.result else { return Some(Trouble::Failed("there was no answer")) };
    // A person may answer in place of the tool; that is no error, but nothing was done either.
    if output.starts_with("Not run") {
        return Some(Trouble::Rejected(output));
    }
    if !is_error {
        return None;
    }
    let lower = output.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    Some(if says(&["reject", "declined", "said no"]) {
        Trouble::Rejected(output)
    } else if says(&["denied", "refused", "not allowed", "not granted", "outside", "scope", "permission", "policy"]) {
        Trouble::Denied(output)
    } else {
        Trouble::Failed(output)
    })
}

/// A string argument of a call, empty where there is none.
pub(super) fn argument_of(step: &Step<'_>, name: &str) -> String {
    let arguments: Value = serde_json::from_str(&step.arguments).unwrap_or_default();
    arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The sentence for a tool the agent does not have.
pub(super) fn missing(tool: &str) -> String {
    format!("For this I would need the tool `{tool}`, which this agent does not have. An admin can grant it.")
}

/// The sentence for a call that went wrong.
pub(super) fn explain(step: Option<&Step<'_>>) -> String {
    let Some(step) = step else { return "I could not find out more.".to_owned() };
    match trouble(step) {
        None => "I got an answer, but nothing I can work with.".to_owned(),
        Some(Trouble::Rejected(_)) => format!("You did not want me to call `{}`, so I stopped there.", step.name),
        Some(Trouble::Denied(words)) => {
            format!("The rules do not let me call `{}` here. It said: {}", step.name, quote(words))
        }
        Some(Trouble::Failed(words)) => format!("`{}` did not work. It said: {}", step.name, quote(words)),
    }
}

/// The beginning of what a tool said, on one line.
pub(super) fn quote(words: &str) -> String {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(300) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}

/// The paths of a listing: one a line, or any JSON that holds them.
fn paths(listing: &str) -> Vec<String> {
    if let Ok(value) = serde_json::from_str::<Value>(listing) {
        let mut found = Vec::new();
        gather(&value, &mut found);
        return found;
    }
    let lines = listing.lines().map(|line| line.split('\t').next().unwrap_or(line).trim());
    lines.filter(|line| line.starts_with('/') && line.len() > 1).map(str::to_owned).collect()
}

fn gather(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with('/') && text.len() > 1 => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| gather(field, found)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether this is not the whole text: a tool left out the rest, which its last line then says, or all of it has left
/// the conversation and a note stands in its place.
fn is_cut(text: &str) -> bool {
    let note = text.starts_with('[')
        && ["bytes dropped]", "bytes, erased]", "[no output]", "[no result yet]"].iter().any(|end| text.ends_with(end));
    note || text.lines().next_back().is_some_and(|line| line.starts_with('…') && line.contains("not shown"))
}

/// The text of a file: the output itself, or the field of an object that holds it. A tool that has nothing to show says
/// so in words, which must not end up in the file.
fn text_of(path: &str, output: &str) -> String {
    if output == "(the file is empty)" {
        return String::new();
    }
    let wrapped = !path.ends_with(".json") && output.starts_with('{');
    let field = |value: Value| ["content", "text"].iter().find_map(|name| value.get(name)?.as_str().map(str::to_owned));
    let inner = wrapped.then(|| serde_json::from_str(output).ok().and_then(field)).flatten();
    inner.unwrap_or_else(|| output.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_in_any_form() {
        let expected = ["/a b.md", "/c/"];
        assert_eq!(paths("/a b.md\t12 bytes\n/c/\n(2 entries)\n"), expected);
        assert_eq!(paths(r#"["/a b.md", "/c/"]"#), expected);
        assert_eq!(paths(r#"{"files": [{"path": "/a b.md", "size": 1}, {"path": "/c/"}]}"#), expected);
        assert!(paths("").is_empty());
    }

    #[test]
    fn a_file_is_read_as_it_is_or_out_of_its_wrapping() {
        assert_eq!(text_of("/a.md", "plain\n"), "plain\n");
        assert_eq!(text_of("/a.md", r#"{"content": "plain\n"}"#), "plain\n");
        assert_eq!(text_of("/a.md", "(the file is empty)"), "");
        assert!(is_cut("one\n… 7 of 9 lines are not shown; continue with offset_line 3") && !is_cut("… one\ntwo"));
        assert_eq!(text_of("/a.json", r#"{"content": 1}"#), r#"{"content": 1}"#);
    }
}
