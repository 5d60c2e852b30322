//! `read_file`: the text of a file, whole or some of its lines.

use std::collections::BTreeMap;

use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::scope::{Action, Kind};
use adjutant_core::tool::{Done, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Exists, allowed, failed, notebook, path, reading};
use crate::arguments::{definition, parse, permitted};
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Path of the file, from the root of the notebook, for example /notes/today.md.
    #[schemars(length(min = 1, max = 4096))]
    path: String,
    /// First line to return, counted from 1.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    offset_line: u64,
    /// How many lines to return; without it, as many as fit.
    #[serde(default)]
    #[schemars(with = "u64", range(min = 1))]
    limit_lines: Option<u64>,
}

const fn first_line() -> u64 {
    1
}

/// Reads a file.
pub(crate) struct ReadFile(ToolSpec);

impl ReadFile {
    pub(crate) fn new() -> Self {
        let about = "Read a text file of the notebook. Long files are cut; offset_line continues where the cut was.";
        Self(reading(definition::<Arguments>("read_file", about), BTreeMap::from([("path", Action::Read)])))
    }

    async fn read(&self, permit: &Permit, world: &World) -> Result<Done, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, permitted(&self.0, permit)?)?;
        let path = path(&arguments.path)?;
        allowed(world, Action::Read, &path, Kind::File, Exists::Yes)?;
        let looked = path.clone();
        let content = notebook(world)?
            .run(move |notebook| notebook.read(&looked))
            .await
            .map_err(|error| failed(&path, &error))?;
        let text = content.text().map_err(|error| failed(&path, &error))?;
        let output = excerpt(text, arguments.offset_line, arguments.limit_lines, self.0.output_cap);
        let read = vec![(path.as_str().to_owned(), Some(content.hash))];
        Ok(Done { output, read, ..Done::default() })
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"path": "/notes/today.md"}))
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        match self.read(&permit, world).await {
            Ok(done) => ToolOutcome::Done(done),
            Err(outcome) => outcome,
        }
    }
}

/// The wanted lines, as many as fit, and a last line that says what is missing and how to get it.
fn excerpt(text: &str, offset_line: u64, limit_lines: Option<u64>, cap: usize) -> String {
    /// Bytes kept free for the last line.
    const NOTE_BYTES: usize = 120;
    if text.is_empty() {
        return "(the file is empty)".to_owned();
    }
    let skip = usize::try_from(offset_line.saturating_sub(1)).unwrap_or(usize::MAX);
    let most = limit_lines.map_or(usize::MAX, |lines| usize::try_from(lines).unwrap_or(usize::MAX));
    let total = text.split_inclusive('\n').count();
    if skip >= total {
        return format!("(the file has only {total} lines)");
    }
    let mut shown = String::new();
    let mut next = skip;
    for line in text.split_inclusive('\n').skip(skip).take(most) {
        if shown.len() + line.len() > cap.saturating_sub(NOTE_BYTES) {
            break;
        }
        shown.push_str(line);
        next += 1;
    }
    if next == total {
        return shown;
    }
    if next == skip {
        return long_line(text.split_inclusive('\n').nth(skip).unwrap_or_default(), next, total, cap - NOTE_BYTES);
    }
    shown.push_str(&format!(
        "… {} of {total} lines are not shown; continue with offset_line {}",
        total - next,
        next + 1
    ));
    shown
}

/// A single line that does not fit is cut, else nobody could get past it.
fn long_line(line: &str, index: usize, total: usize, room: usize) -> String {
    let mut end = room;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let rest = line.len() - end;
    format!("{}\n… {rest} more bytes of line {} (of {total}) are not shown", &line[..end], index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_file_is_returned_as_it_is() {
        assert_eq!(excerpt("a\r\nb", 1, None, 1000), "a\r\nb");
        assert_eq!(excerpt("", 1, None, 1000), "(the file is empty)");
    }

    #[test]
    fn some_lines_are_returned_with_a_line_that_says_how_to_go_on() {
        let text = "1\n2\n3\n4\n5\n";
        assert_eq!(excerpt(text, 2, Some(2), 1000), "2\n3\n… 2 of 5 lines are not shown; continue with offset_line 4");
        assert_eq!(excerpt(text, 4, Some(2), 1000), "4\n5\n");
        assert_eq!(excerpt(text, 9, None, 1000), "(the file has only 5 lines)");
    }

    #[test]
    fn a_long_file_is_cut_to_the_cap_and_nothing_is_skipped_by_continuing() {
        let text: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        let (mut offset, mut read) = (1, String::new());
        loop {
            let part = excerpt(&text, offset, None, 300);
            assert!(part.len() <= 300);
            let Some((lines, note)) = part.rsplit_once("… ") else {
                read.push_str(&part);
                break;
            };
            read.push_str(lines);
            offset = note.rsplit_once(' ').unwrap().1.parse().unwrap();
        }
        assert_eq!(read, text);
    }

    #[test]
    fn a_line_longer_than_the_cap_is_cut_and_said_to_be() {
        let shown = excerpt(&"ä".repeat(500), 1, None, 300);
        assert!(shown.len() <= 300 && shown.ends_with("more bytes of line 1 (of 1) are not shown"), "{shown}");
    }
}
