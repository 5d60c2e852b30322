//! What the world saw: the rings of the bell and the state of the file, read past the binary.

use std::os::unix::fs::MetadataExt;

use crate::house::{FILE, House, RUNG, WRITTEN};

/// What was done outside the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// How often the bell was rung.
    pub(crate) rings: usize,
    /// The file as it was put in place, if it is the new one: which file, and when.
    pub(crate) written: Option<(u64, i64, i64)>,
}

impl Seen {
    /// Looks; a file that is neither the old one nor the new one is a failure by itself.
    pub(crate) fn look(house: &House) -> Self {
        Self { rings: rings(house), written: written(house) }
    }
}

fn rings(house: &House) -> usize {
    let Ok(text) = std::fs::read_to_string(house.bell()) else { return 0 };
    for line in text.lines() {
        let (key, rung) = line.split_once(' ').unwrap_or_else(|| panic!("half a ring: {text}"));
        assert!(key.len() >= 32 && rung == RUNG, "{text}");
    }
    // A process killed between making the file and writing to it has not rung.
    assert!(text.is_empty() || text.ends_with('\n'), "half a ring: {text}");
    text.lines().count()
}

fn written(house: &House) -> Option<(u64, i64, i64)> {
    let path = house.notebook()?.join(FILE);
    let text = std::fs::read_to_string(&path).ok()?;
    if text == WRITTEN {
        let about = path.metadata().unwrap();
        return Some((about.ino(), about.mtime(), about.mtime_nsec()));
    }
    assert!(text.contains("buy mlik"), "the file is neither the old nor the new one: {text}");
    None
}

/// Every name in the notebook, hidden ones too.
pub(crate) fn names(house: &House) -> Vec<String> {
    let mut folders = vec![house.notebook().unwrap()];
    let mut names = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            names.push(entry.file_name().into_string().unwrap());
        }
    }
    names.sort();
    names
}
