//! The files of a data directory that belong in a backup, and putting them back under it and nowhere else.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::file::Entry;

/// What is in a backup beside the database: the notebooks, the agents, and what was laid over the catalog of models.
const KEPT: [&str; 3] = ["notebooks", "agents", "catalog.json"];
/// How files begin that a change leaves behind when it is cut off.
const LEFTOVER: &str = ".adjutant-tmp-";
/// Bytes of a file read at a time.
const PIECE: u64 = 1 << 20;

/// Something below the data directory.
pub(super) enum Found {
    Folder(Entry),
    File(Entry, PathBuf, u64),
}

/// What there is to keep, folders before what is in them, and what cannot be kept: links, sockets, names that are no text.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) found: Vec<Found>,
    pub(super) left_out: Vec<PathBuf>,
}

impl Walk {
    pub(super) fn of(data: &Path) -> std::io::Result<Self> {
        let mut walk = Self::default();
        for name in KEPT {
            walk.look(data, Path::new(name))?;
        }
        Ok(walk)
    }

    fn look(&mut self, data: &Path, at: &Path) -> std::io::Result<()> {
        let path = data.join(at);
        let about = match path.symlink_metadata() {
            Ok(about) => about,
            // Somebody took it away meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let Some(text) = at.to_str() else {
            self.left_out.push(path);
            return Ok(());
        };
        let entry = Entry { path: text.to_owned(), modified: about.modified().ok().and_then(millis) };
        if about.is_dir() {
            self.found.push(Found::Folder(entry));
            let mut names = std::fs::read_dir(&path)?
                .map(|name| name.map(|name| name.file_name()))
                .collect::<Result<Vec<_>, _>>()?;
            names.sort();
            for name in names {
                self.look(data, &at.join(name))?;
            }
        } else if !about.is_file() {
            self.left_out.push(path);
        } else if !at.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(LEFTOVER)) {
            self.found.push(Found::File(entry, path, about.len()));
        }
        Ok(())
    }
}

fn millis(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().and_then(|since| u64::try_from(since.as_millis()).ok())
}

/// The next piece of a file; empty at its end.
pub(super) fn piece(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A folder for its owner alone.
pub(super) fn make(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Where an entry goes; none when it would leave the folder or is nothing that a backup holds.
fn place(root: &Path, entry: &Entry) -> Option<PathBuf> {
    let path = Path::new(&entry.path);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let first = path.components().next()?.as_os_str().to_str()?;
    (plain && KEPT.contains(&first)).then(|| root.join(path))
}

/// Files that are being put back.
pub(super) struct Landing {
    root: PathBuf,
    open: Option<(File, Option<u64>)>,
}

impl Landing {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), open: None }
    }

    fn place(&self, entry: &Entry) -> std::io::Result<PathBuf> {
        place(&self.root, entry).ok_or_else(|| std::io::Error::other(format!("it names the path {:?}", entry.path)))
    }

    pub(super) fn folder(&mut self, entry: &Entry) -> std::io::Result<()> {
        self.end()?;
        make(&self.place(entry)?)
    }

    pub(super) fn file(&mut self, entry: &Entry) -> std::io::Result<()> {
        self.end()?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.place(entry)?)?;
        self.open = Some((file, entry.modified));
        Ok(())
    }

    pub(super) fn data(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.open {
            Some((file, _)) => file.write_all(bytes),
            None => Err(std::io::Error::other("it holds content of no file")),
        }
    }

    /// The file that was open is whole.
    pub(super) fn end(&mut self) -> std::io::Result<()> {
        let Some((file, modified)) = self.open.take() else { return Ok(()) };
        if let Some(modified) = modified {
            file.set_modified(UNIX_EPOCH + Duration::from_millis(modified))?;
        }
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_put_anywhere_but_under_the_folder() {
        let at = |path: &str| place(Path::new("/data"), &Entry { path: path.to_owned(), modified: None });
        assert_eq!(at("notebooks/nb/a.md"), Some(PathBuf::from("/data/notebooks/nb/a.md")));
        assert_eq!(at("catalog.json"), Some(PathBuf::from("/data/catalog.json")));
        for path in ["", "/etc/passwd", "../a", "notebooks/../../a", "master.key", "adjutant.db", "notebooks//../x"] {
            assert_eq!(at(path), None, "{path}");
        }
    }
}
