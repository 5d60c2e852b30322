//! Tidying a note: real work on whatever text is in the file. Corrects slips, drops done and doubled items, puts urgent
//! items first and mends the layout. Never touches code blocks or front matter.

use std::collections::HashSet;

use super::spelling::{self, Fix};

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Everything.
    All,
    /// Everything, but done items stay.
    KeepDone,
    /// Spelling only.
    Spelling,
}

/// A tidied text and what was done to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tidied {
    pub(super) text: String,
    pub(super) fixes: Vec<Fix>,
    pub(super) done: Vec<String>,
    pub(super) doubled: Vec<String>,
    pub(super) moved: Vec<String>,
    pub(super) changed: bool,
}

#[derive(Debug, Clone)]
struct Line {
    text: String,
    fixes: Vec<Fix>,
    /// Inside a code block or front matter.
    verbatim: bool,
}

struct Task<'a> {
    indent: usize,
    done: bool,
    text: &'a str,
}

/// Tidies a text.
pub(super) fn tidy(text: &str, extent: Extent) -> Tidied {
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines = read(text);
    let mut tidied = Tidied::default();
    if extent != Extent::Spelling {
        lines = clean(lines, extent, &mut tidied);
        lines = layout(lines);
    }
    for line in &lines {
        for fix in &line.fixes {
            if !tidied.fixes.contains(fix) {
                tidied.fixes.push(fix.clone());
            }
        }
    }
    let texts: Vec<_> = lines.into_iter().map(|line| line.text).collect();
    tidied.text = texts.join(ending);
    if extent == Extent::All || extent == Extent::KeepDone || text.ends_with('\n') {
        tidied.text.push_str(ending);
    }
    if text.trim().is_empty() {
        tidied.text = text.to_owned();
    }
    tidied.changed = tidied.text != text;
    tidied
}

/// The lines of a text, each with its slips corrected unless it is verbatim.
fn read(text: &str) -> Vec<Line> {
    let mut fence: Option<&str> = None;
    let mut front = false;
    let lines = text.lines().enumerate().map(|(at, line)| {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        let rule = line.trim_end() == "---";
        let verbatim = front || fence.is_some() || mark.is_some() || (at == 0 && rule);
        match (fence, mark) {
            (None, Some(mark)) if !front => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ if rule && fence.is_none() => front = at == 0,
            _ => {}
        }
        let mut fixes = Vec::new();
        let text = if verbatim { line.to_owned() } else { spelling::correct(line, &mut fixes) };
        Line { text, fixes, verbatim }
    });
    lines.collect()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn task(line: &Line) -> Option<Task<'_>> {
    if line.verbatim {
        return None;
    }
    let rest = line.text.trim_start().strip_prefix(['-', '*', '+'])?.trim_start().strip_prefix('[')?;
    let (mark, text) = rest.split_once(']')?;
    let done = match mark.trim() {
        "" => false,
        "x" | "X" => true,
        _ => return None,
    };
    // A link is not a task.
    let text = text.strip_prefix(' ')?.trim();
    Some(Task { indent: indent(&line.text), done, text })
}

/// Drops done and doubled items and puts urgent ones first, list by list.
fn clean(lines: Vec<Line>, extent: Extent, tidied: &mut Tidied) -> Vec<Line> {
    let mut out = Vec::new();
    let mut list: Vec<Vec<Line>> = Vec::new();
    let mut rest = lines.into_iter().peekable();
    while let Some(line) = rest.next() {
        let Some(Task { indent: level, done, text }) = task(&line) else {
            out.extend(finish(std::mem::take(&mut list), tidied));
            out.push(line);
            continue;
        };
        let (text, head) = (text.to_owned(), Line { text: written(&line, level, done, text), ..line.clone() });
        let mut children = Vec::new();
        while let Some(child) = rest.next_if(|next| !next.text.trim().is_empty() && indent(&next.text) > level) {
            children.push(child);
        }
        let children = clean(children, extent, tidied);
        let unfinished = children.iter().any(|child| task(child).is_some_and(|task| !task.done));
        if done && !unfinished && extent == Extent::All {
            tidied.done.push(text);
        } else {
            list.push(std::iter::once(head).chain(children).collect());
        }
    }
    out.extend(finish(list, tidied));
    out
}

fn written(line: &Line, level: usize, done: bool, text: &str) -> String {
    let mark = if done { 'x' } else { ' ' };
    format!("{}- [{mark}] {text}", &line.text[..level])
}

/// One list of tasks, without its doubles, the urgent ones first.
fn finish(list: Vec<Vec<Line>>, tidied: &mut Tidied) -> Vec<Line> {
    let mut seen = HashSet::new();
    let (mut urgent, mut others) = (Vec::new(), Vec::new());
    for item in list {
        let Some(Task { done, text, .. }) = item.first().and_then(task) else { continue };
        let key: String = text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if item.len() == 1 && !key.is_empty() && !seen.insert((key, done)) {
            tidied.doubled.push(text.to_owned());
        } else if !done && text.starts_with('!') {
            if !others.is_empty() {
                tidied.moved.push(text.to_owned());
            }
            urgent.push(item);
        } else {
            others.push(item);
        }
    }
    urgent.into_iter().chain(others).flatten().collect()
}

/// Mends trailing blanks and runs of empty lines, and drops a section for done things that holds nothing any more.
fn layout(lines: Vec<Line>) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    for mut line in lines {
        if !line.verbatim {
            let kept = line.text.trim_end();
            let trailing = &line.text[kept.len()..];
            // Exactly two blanks at the end of a line are a line break in Markdown.
            if kept.is_empty() || trailing != "  " {
                line.text = kept.to_owned();
            }
            let heading = level_of(&line.text);
            if heading > 0 {
                drop_empty_done_section(&mut out, heading);
            }
            if line.text.is_empty() && out.last().is_none_or(|last| last.text.is_empty() && !last.verbatim) {
                continue;
            }
        }
        out.push(line);
    }
    drop_empty_done_section(&mut out, 1);
    while out.last().is_some_and(|last| last.text.is_empty() && !last.verbatim) {
        out.pop();
    }
    out
}

fn level_of(line: &str) -> usize {
    let marks = line.len() - line.trim_start_matches('#').len();
    if (1..=6).contains(&marks) && line[marks..].starts_with(' ') { marks } else { 0 }
}

fn drop_empty_done_section(out: &mut Vec<Line>, next: usize) {
    let Some(at) = out.iter().rposition(|line| !line.text.is_empty()) else { return };
    let level = level_of(&out[at].text);
    let title = out[at].text.trim_start_matches('#').trim().to_lowercase();
    if !out[at].verbatim && level >= next && level > 0 && ["done", "finished", "completed"].contains(&title.as_str()) {
        out.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Tidied {
        tidy(text, Extent::All)
    }

    #[test]
    fn done_and_doubled_items_go_and_urgent_ones_come_first() {
        let tidied = all("# List\n* [ ] buy mlik\n- [X] wash\n- [ ] Buy milk\n- [] sing\n- [ ] ! call\n\n\n\nend   ");
        assert_eq!(tidied.text, "# List\n- [ ] ! call\n- [ ] buy milk\n- [ ] sing\n\nend\n");
        assert_eq!(tidied.fixes, [("mlik".to_owned(), "milk".to_owned())]);
        assert_eq!((tidied.done, tidied.doubled), (vec!["wash".to_owned()], vec!["Buy milk".to_owned()]));
        assert_eq!(tidied.moved, ["! call"]);
    }

    #[test]
    fn a_done_item_with_an_open_one_below_it_stays() {
        let text = "- [x] party\n  - [ ] music\n- [ ] trip\n";
        assert_eq!(all("- [x] party\n  - [x] food\n  - [ ] music\n- [ ] trip\n").text, text);
        assert_eq!(all("- [x] party\n  with everyone\n  - [x] food\n- [ ] trip\n").text, "- [ ] trip\n");
    }

    #[test]
    fn code_front_matter_links_and_line_breaks_are_left_alone() {
        let text = "---\ntitle: teh list\n---\nverse  \n- [x](link) teh\n```\n- [x] teh\n\n\n  x \n```\n";
        assert_eq!(all(text).text, text.replace("(link) teh", "(link) the"));
    }

    #[test]
    fn a_section_of_done_things_goes_when_it_is_empty() {
        assert_eq!(all("- [ ] a\n\n## Done\n\n- [x] b\n\n## Later\n- [ ] c\n").text, "- [ ] a\n\n## Later\n- [ ] c\n");
        assert_eq!(all("- [ ] a\n\n## Done\n- [x] b\n").text, "- [ ] a\n");
        assert_eq!(all("## Done\n### More\n- [ ] b\n").text, "## Done\n### More\n- [ ] b\n");
    }

    #[test]
    fn less_is_done_when_less_is_asked_for() {
        let text = "* [x] teh one\n\n\n* [ ] two";
        assert_eq!(tidy(text, Extent::Spelling).text, "* [x] the one\n\n\n* [ ] two");
        assert_eq!(tidy(text, Extent::KeepDone).text, "- [x] the one\n\n- [ ] two\n");
    }

    #[test]
    fn the_line_endings_of_a_file_are_kept() {
        assert_eq!(all("# A\r\n- [x] b\r\n- [ ] teh\r\n").text, "# A\r\n- [ ] the\r\n");
        assert!(!all("").changed);
        assert!(!all("  \n").changed);
    }

    proptest! {
        #[test]
        fn a_tidied_text_is_tidy(text in "([-*#] |\\[[ xX]?\\] |  |mlik|teh|Done|!|`|```|---|a|\n|\r\n){0,40}") {
            for extent in [Extent::All, Extent::KeepDone, Extent::Spelling] {
                let once = tidy(&text, extent).text;
                let twice = tidy(&once, extent).text;
                prop_assert_eq!(&once, &twice);
            }
        }
    }
}
