//! A trial of one path: builds the tree of a case of `check paths` below a temporary root, with a decoy tree beside it, and
//! really opens it through the confined file layer. What the layer refuses is denied, whatever the text of the case says.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use adjutant_core::guard::check::paths::Case;
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::{Action, Denied, Kind};
use rustix::fs::{CWD, FileType, Mode};

use crate::notebook::{FileError, Notebook, State};

/// What the files of the notebook hold.
const INSIDE: &[u8] = b"inside\n";
/// What the files beside it hold.
const DECOY: &[u8] = b"decoy\n";

/// A temporary place with a notebook and, beside it, what must never be touched. Gone when it is dropped.
#[derive(Debug)]
pub struct Trial {
    place: PathBuf,
    notebook: PathBuf,
    decoy: PathBuf,
}

/// The paths of a case that could be read.
struct Named {
    path: NotePath,
    dest: Option<NotePath>,
    below: Vec<NotePath>,
}

impl Trial {
    /// Makes an empty place in the temporary folder of the machine.
    ///
    /// # Errors
    /// Fails when the folder cannot be made.
    pub fn new(temporary: &Path, number: usize) -> std::io::Result<Self> {
        let place = temporary.join(format!("adjutant-check-{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&place)?;
        let trial = Self { notebook: place.join("notebook"), decoy: place.join("decoy"), place };
        fs::create_dir(&trial.notebook)?;
        fs::create_dir(&trial.decoy)?;
        Ok(trial)
    }

    /// Judges a case by its text, and by really opening what the text allows or refuses for what lies there.
    ///
    /// # Errors
    /// Fails with the deciding rule.
    pub fn judge(&self, case: &Case) -> Result<(), Denied> {
        let judged = case.judge();
        let opens = match &judged {
            Ok(()) => true,
            // The text knows the links and devices of the case; the layer must find them by itself.
            Err(denied) => denied.rule == "P8",
        };
        let (Some(action), Some(named)) = (case.action(), named(case)) else { return judged };
        // A path that this file system cannot hold has nothing to be opened.
        if !opens || self.build(case, action, &named).is_err() {
            return judged;
        }
        let opened = self.open(case, action, &named);
        if !self.decoy_is_whole(&named) {
            return Err(layer(&named.path, &FileError::Escapes));
        }
        match (judged, opened) {
            // Whoever follows a link or opens a device has broken the rule: the case must not pass.
            (Err(_), Ok(())) => Ok(()),
            (Err(denied), Err(_)) => Err(denied),
            (Ok(()), Err(error)) if is_confinement(&error) => Err(layer(&named.path, &error)),
            (Ok(()), Ok(()) | Err(_)) => Ok(()),
        }
    }

    fn build(&self, case: &Case, action: Action, named: &Named) -> std::io::Result<()> {
        for (link, target) in &case.symlinks {
            let (Ok(link), target) = (NotePath::parse(link), target.trim_start_matches('/')) else { continue };
            // A link leads to the decoy if its target leaves the notebook, and else to something that is really there.
            let leaves = target.split('/').any(|step| step == "..");
            let end = if leaves { self.decoy.clone() } else { self.notebook.join(target) };
            if !end.exists() {
                fs::create_dir_all(&end)?;
            }
            let place = self.notebook.join(link.relative());
            make_parent(&place)?;
            symlink(&end, &place)?;
        }
        if case.exists(action) && !named.path.is_root() {
            self.put(&named.path, case.kind.as_deref(), case.kind(action))?;
        }
        for path in &named.below {
            let holds_more = named.below.iter().any(|other| other != path && other.is_within(path));
            self.put(path, None, if holds_more { Kind::Dir } else { Kind::File })?;
        }
        match &named.dest {
            Some(dest) if case.dest_exists => self.put(dest, None, case.kind(action)),
            Some(_) | None => Ok(()),
        }
    }

    /// Puts something at a path, and a decoy at the same path beside the notebook.
    fn put(&self, path: &NotePath, word: Option<&str>, kind: Kind) -> std::io::Result<()> {
        let place = self.notebook.join(path.relative());
        // What a link of the case already stands for is not made again.
        if fs::symlink_metadata(&place).is_ok() {
            return Ok(());
        }
        make_parent(&place)?;
        match (kind, word) {
            (Kind::Dir, _) => fs::create_dir_all(&place)?,
            (Kind::File, _) => fs::write(&place, INSIDE)?,
            (Kind::Other, Some("socket")) => drop(UnixListener::bind(&place)?),
            // Making a device takes more rights than a check should need; a pipe is refused for the same reason.
            (Kind::Other, _) => rustix::fs::mknodat(CWD, &place, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?,
        }
        let decoy = self.decoy.join(path.relative());
        if kind == Kind::File && !decoy.exists() {
            make_parent(&decoy)?;
            fs::write(&decoy, DECOY)?;
        }
        Ok(())
    }

    /// Does to the real tree what the case is about.
    fn open(&self, case: &Case, action: Action, named: &Named) -> Result<(), FileError> {
        let notebook = Notebook::open(&self.notebook)?;
        let path = &named.path;
        let folder = case.kind(action) == Kind::Dir;
        match action {
            Action::List => notebook.list(path).map(drop),
            Action::Read | Action::Execute if folder => notebook.metadata(path).map(drop),
            Action::Read | Action::Execute => read_inside(&notebook, path),
            Action::Write if case.exists(action) => {
                let before = notebook.read(path)?;
                notebook.replace(path, b"written\n", before.hash).map(drop)
            }
            Action::Write | Action::Create if folder => look(&notebook, path),
            Action::Write | Action::Create => notebook.create(path, INSIDE),
            Action::Delete if folder => {
                for below in named.below.iter().rev() {
                    remove(&notebook, below)?;
                }
                notebook.delete_folder(path)
            }
            Action::Delete => remove(&notebook, path),
            Action::Move | Action::Copy => {
                let Some(dest) = &named.dest else { return Ok(()) };
                if folder {
                    notebook.metadata(path)?;
                    return look(&notebook, dest);
                }
                let content = notebook.read(path)?;
                notebook.create(dest, &content.bytes)?;
                if action == Action::Move { remove(&notebook, path) } else { Ok(()) }
            }
        }
    }

    /// Whether nothing beside the notebook was changed.
    fn decoy_is_whole(&self, named: &Named) -> bool {
        let paths = named.below.iter().chain([&named.path]).chain(&named.dest);
        paths.map(|path| self.decoy.join(path.relative())).all(|place| match fs::read(&place) {
            Ok(bytes) => bytes == DECOY,
            Err(_) => true,
        })
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // Whatever is left in the temporary folder of the machine is swept by it.
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// The paths of the case; none when one of them cannot be read, because then nothing can be opened.
fn named(case: &Case) -> Option<Named> {
    let path = NotePath::parse(&case.path).ok()?;
    let dest = case.dest.as_deref().map(NotePath::parse).transpose().ok()?;
    let below = case.below(&path).ok()?;
    Some(Named { path, dest, below })
}

fn make_parent(place: &Path) -> std::io::Result<()> {
    place.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Reads, and takes the content of the decoy for an escape.
fn read_inside(notebook: &Notebook, path: &NotePath) -> Result<(), FileError> {
    let content = notebook.read(path)?;
    if content.bytes == DECOY { Err(FileError::Escapes) } else { Ok(()) }
}

/// Looks at what is there; nothing is fine.
fn look(notebook: &Notebook, path: &NotePath) -> Result<(), FileError> {
    match notebook.metadata(path) {
        Ok(_) | Err(FileError::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

fn remove(notebook: &Notebook, path: &NotePath) -> Result<(), FileError> {
    match notebook.state(path)? {
        State::File(content) => notebook.delete(path, content.hash).map(drop),
        State::Folder => notebook.delete_folder(path),
        State::Absent => Ok(()),
    }
}

/// Whether the layer refused for where the path leads, not for what happens to be there.
const fn is_confinement(error: &FileError) -> bool {
    matches!(error, FileError::Symlink | FileError::Escapes | FileError::NotAFile | FileError::Reserved)
}

fn layer(path: &NotePath, error: &FileError) -> Denied {
    Denied { rule: "P8", code: "file_layer", reason: format!("{path}: {error}"), smallest_grant: None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn code(number: usize, fields: Value) -> &'static str {
        let place = tempfile::tempdir().unwrap();
        let mut case = json!({"scope": {"folders": ["/drafts"], "caps": ["read", "write", "create", "delete", "execute"]},
            "action": "read", "path": "/drafts/a.md"});
        case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let case: Case = serde_json::from_value(case).unwrap();
        let trial = Trial::new(place.path(), number).unwrap();
        let judged = trial.judge(&case).map_or_else(|denied| denied.code, |()| "ok");
        drop(trial);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "nothing stays behind");
        judged
    }

    #[test]
    fn p8_what_the_scope_allows_is_really_opened_and_done() {
        for fields in [
            json!({}),
            json!({"action": "list", "path": "/drafts"}),
            json!({"action": "write"}),
            json!({"action": "write", "exists": false}),
            json!({"action": "create", "path": "/drafts/new/deep/a.md"}),
            json!({"action": "delete"}),
            json!({"action": "delete", "path": "/drafts/sub", "kind": "dir", "contains": ["a.md", "x/b.md"]}),
            json!({"action": "move", "dest": "/drafts/b.md"}),
            json!({"action": "copy", "dest": "/drafts/sub/b.md"}),
            json!({"action": "execute"}),
        ] {
            assert_eq!(code(1, fields.clone()), "ok", "{fields}");
        }
    }

    #[test]
    fn p8_links_pipes_and_sockets_are_refused_by_the_layer_too() {
        for (fields, expected) in [
            (json!({"symlinks": {"/drafts/a.md": "/other/a.md"}}), "symlink"),
            (json!({"symlinks": {"/drafts": "../decoy"}}), "symlink"),
            (json!({"action": "create", "path": "/drafts/l/a.md", "symlinks": {"/drafts/l": "/drafts"}}), "symlink"),
            (json!({"kind": "fifo"}), "special_file"),
            (json!({"kind": "socket"}), "special_file"),
            (json!({"kind": "device"}), "special_file"),
        ] {
            assert_eq!(code(2, fields.clone()), expected, "{fields}");
        }
    }

    #[test]
    fn a_refused_case_opens_nothing() {
        assert_eq!(code(3, json!({"path": "/secret/a.md"})), "out_of_scope");
        assert_eq!(code(3, json!({"path": "/drafts/../a.md"})), "invalid_path");
    }
}
