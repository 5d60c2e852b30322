//! Paths and links in the documents: each must lead to something that exists, or the map rots.

use std::path::Path;

use super::braces;
use super::files::TextFile;
use super::{Finding, Rule};

/// The map itself: without it there is nothing to check, which must not look like success.
const REQUIRED: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// A changelog speaks of the past.
const HISTORY: &str = "CHANGELOG.md";

const TOP_FOLDERS: [&str; 9] = ["crates", "ui", "xtask", "docs", "tests", "scripts", "examples", ".ci", ".cargo"];
const ROOMS: [&str; 6] = ["core", "store", "models", "tools", "engine", "adjutant"];
const ROOM_PARTS: [&str; 5] = ["src", "tests", "examples", "benches", "Cargo.toml"];
const TOP_FILES: [&str; 6] = ["Makefile", "Cargo.toml", "Cargo.lock", "deny.toml", "clippy.toml", "rustfmt.toml"];
/// Made by a build, so absent from a fresh clone.
const BUILT: [&str; 2] = ["ui/dist", "ui/node_modules"];

pub(super) fn check(files: &[TextFile], repository: &Path) -> Vec<Finding> {
    let finding = |path: &str, line, message| Finding { rule: Rule::DocPath, path: path.to_owned(), line, message };
    let missing = REQUIRED.iter().filter(|name| !files.iter().any(|file| file.path == **name));
    let mut findings: Vec<Finding> =
        missing.map(|name| finding(name, None, "this document is missing".to_owned())).collect();

    for file in files.iter().filter(|file| is_document(&file.path)) {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        for (line, text) in prose_lines(&file.text) {
            let named = code_spans(text).into_iter().flat_map(repository_paths);
            let linked =
                link_targets(text).into_iter().map(|target| folder.join(target).to_string_lossy().into_owned());
            for path in named.chain(linked).filter(|path| !repository.join(path).exists()) {
                findings.push(finding(&file.path, Some(line), format!("`{path}` does not exist")));
            }
        }
    }
    findings
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md") && path != HISTORY && (!path.contains('/') || path.starts_with("docs/"))
}

/// Numbered lines outside fenced blocks, which hold commands and drawings.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

fn code_spans(line: &str) -> Vec<&str> {
    let pieces: Vec<&str> = line.split('`').collect();
    // Text and code take turns; a last piece without its closing mark is text.
    let closed = pieces.len().saturating_sub(1);
    pieces[..closed].iter().skip(1).step_by(2).copied().collect()
}

/// Targets of `[text](target)` that lead into the repository.
fn link_targets(line: &str) -> Vec<&str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let inside = targets
        .filter(|target| !target.contains("://") && !target.starts_with(['#', '/']) && !target.starts_with("mailto:"));
    inside.map(|target| target.split('#').next().unwrap_or(target)).collect()
}

/// The paths that a code span names; none when it is something else (a command, a type, a route).
fn repository_paths(span: &str) -> Vec<String> {
    let without_line = span.split(':').next().unwrap_or(span).trim_end_matches('/');
    if span.contains(char::is_whitespace) || span.contains("://") || without_line.starts_with('/') {
        return Vec::new();
    }
    let mut parts = without_line.split('/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    let path = match second {
        None if TOP_FILES.contains(&first) || is_shouted_document(first) => without_line.to_owned(),
        Some(_) if TOP_FOLDERS.contains(&first) => without_line.to_owned(),
        Some(part) if ROOMS.contains(&first) && ROOM_PARTS.contains(&part) => format!("crates/{without_line}"),
        None | Some(_) => return Vec::new(),
    };
    let concrete = braces::expand(&path).into_iter().map(|path| fixed_part(&path));
    concrete.filter(|path| !BUILT.iter().any(|built| path.starts_with(built))).collect()
}

/// `ARCHITECTURE.md` and its like.
fn is_shouted_document(name: &str) -> bool {
    name.strip_suffix(".md").is_some_and(|stem| stem.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// The folder before the first part that only stands for something: `http/<resource>.rs`, `tools/*.rs`.
fn fixed_part(path: &str) -> String {
    let fixed = path.split('/').take_while(|part| !part.contains(['<', '*', '…', '$']));
    fixed.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_between_marks_is_a_span() {
        assert_eq!(code_spans("see `a/b.rs` and `c`, not d"), ["a/b.rs", "c"]);
        assert_eq!(code_spans("an `open mark"), Vec::<&str>::new());
    }

    #[test]
    fn a_path_is_told_from_other_code() {
        assert_eq!(repository_paths("crates/core/src/id.rs"), ["crates/core/src/id.rs"]);
        assert_eq!(repository_paths("crates/core/src/id.rs:12"), ["crates/core/src/id.rs"]);
        assert_eq!(repository_paths("core/src/limits.rs"), ["crates/core/src/limits.rs"]);
        assert_eq!(repository_paths("xtask/"), Vec::<String>::new());
        assert_eq!(repository_paths("ARCHITECTURE.md"), ["ARCHITECTURE.md"]);
        for other in
            ["make test", "std::fs", "/api/v1/runs", "config.toml", "core/run", "ui/dist", "cli/", "https://a/b"]
        {
            assert_eq!(repository_paths(other), Vec::<String>::new(), "{other}");
        }
    }

    #[test]
    fn braces_are_spelled_out_and_stand_ins_cut_off() {
        let spelled = ["crates/core/src/run/event.rs", "crates/core/src/run/state.rs"];
        assert_eq!(repository_paths("crates/core/src/run/{event,state}.rs"), spelled);
        assert_eq!(repository_paths("crates/adjutant/src/http/<resource>.rs"), ["crates/adjutant/src/http"]);
        assert_eq!(repository_paths("docs/*.md"), ["docs"]);
    }

    #[test]
    fn only_links_into_the_repository_are_followed() {
        let line = "[a](docs/a.md#top) [b](https://b.example) [c](#here) [d](../README.md)";
        assert_eq!(link_targets(line), ["docs/a.md", "../README.md"]);
    }

    #[test]
    fn fenced_blocks_are_left_alone() {
        let text = "one\n```\n`crates/gone`\n```\nfive";
        assert_eq!(prose_lines(text).collect::<Vec<_>>(), [(1, "one"), (5, "five")]);
    }

    #[test]
    fn a_path_that_is_gone_is_found_where_it_is_named() {
        let architecture = TextFile { path: "ARCHITECTURE.md".into(), text: "\n`crates/gone/src/lib.rs`\n".into() };
        let contributing = TextFile { path: "CONTRIBUTING.md".into(), text: String::new() };
        let findings = check(&[architecture, contributing], Path::new("/nowhere"));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, Some(2));
    }

    #[test]
    fn a_missing_map_is_not_success() {
        assert_eq!(check(&[], Path::new("/nowhere")).len(), REQUIRED.len());
    }
}
