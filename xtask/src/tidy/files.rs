//! Finds and reads the text files of the repository; knows which folders are built and not written.

use std::path::Path;

use anyhow::Context as _;

/// What git ignores, listed here so that a plain copy of the sources can be checked too.
const NOT_OURS: [&str; 4] = [".git", "target", "node_modules", "dist"];

/// A file with its path from the repository's root, always with forward slashes.
pub(super) struct TextFile {
    pub(super) path: String,
    pub(super) text: String,
}

impl TextFile {
    pub(super) fn has_extension(&self, extensions: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, end)| extensions.contains(&end))
    }

    /// Tests may be longer and may touch the world.
    pub(super) fn is_test(&self) -> bool {
        let path = &self.path;
        path.starts_with("tests/")
            || path.contains("/tests/")
            || path.contains("/e2e/")
            || path.ends_with("/tests.rs")
            || path.ends_with(".test.ts")
    }

    /// The numbered lines before the test module.
    pub(super) fn production_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = test_module_start(&self.text).unwrap_or(usize::MAX);
        self.text.lines().enumerate().take(end).map(|(index, line)| (index + 1, line))
    }
}

/// `#[cfg(test)]` on a `mod`, not on a single `use` near the top, which would hide the rest of the file.
fn test_module_start(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    (0..lines.len()).find(|&start| {
        let item = lines[start + 1..].iter().find(|line| !line.starts_with("#["));
        lines[start] == "#[cfg(test)]" && item.is_some_and(|line| line.starts_with("mod ") || line.contains(" mod "))
    })
}

/// Every file that is valid UTF-8, in a stable order.
pub(super) fn text_files(repository: &Path) -> anyhow::Result<Vec<TextFile>> {
    let mut found = Vec::new();
    let mut folders = vec![repository.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            let kind = entry.file_type()?;
            if kind.is_dir() && !NOT_OURS.iter().any(|not_ours| name == *not_ours) {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(text) = String::from_utf8(std::fs::read(entry.path())?)
            {
                let path = entry.path();
                let path = path.strip_prefix(repository)?.to_string_lossy().replace('\\', "/");
                found.push(TextFile { path, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_before_tests(text: &str) -> usize {
        let file = TextFile { path: "crates/core/src/id.rs".into(), text: text.into() };
        file.production_lines().count()
    }

    #[test]
    fn a_file_without_tests_counts_whole() {
        assert_eq!(lines_before_tests("//! One.\nfn two() {}\n"), 2);
    }

    #[test]
    fn counting_stops_at_the_test_module() {
        assert_eq!(lines_before_tests("//! One.\n#[cfg(test)]\nmod tests {\n}\n"), 1);
        assert_eq!(lines_before_tests("//! One.\n#[cfg(test)]\n#[path = \"t.rs\"]\npub(crate) mod tests;\n"), 1);
    }

    #[test]
    fn a_single_item_for_tests_does_not_hide_the_rest() {
        assert_eq!(lines_before_tests("//! One.\n#[cfg(test)]\nuse std::fs;\nfn four() {}\n"), 4);
    }
}
