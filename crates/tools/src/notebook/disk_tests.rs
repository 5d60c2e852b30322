//! Disks that refuse: full, read-only, not ours. Where the machine cannot make such a disk, the test says it was skipped.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use tempfile::TempDir;

use super::{FileError, Notebook};
use crate::testing::skip;

/// A small disk of our own; gone when dropped.
struct Disk {
    folder: TempDir,
}

impl Disk {
    fn mount() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let made = run("mount", &["-t", "tmpfs", "-o", "size=256k,mode=755", "tmpfs"], folder.path());
        if !made {
            skip("a disk that refuses", "a small file system can only be mounted by root");
        }
        made.then_some(Self { folder })
    }

    fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &[], self.folder.path());
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let output = Command::new(program).args(arguments).arg(path).output();
    output.is_ok_and(|output| output.status.success())
}

fn at(path: &str) -> NotePath {
    NotePath::parse(path).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_full_disk_is_said_to_be_full_and_loses_nothing() {
    let Some(disk) = Disk::mount() else { return };
    let notebook = Notebook::open(&disk.root()).unwrap();
    notebook.create(&at("/a.md"), b"old").unwrap();
    let large = vec![b'x'; 300 * 1024];
    assert!(matches!(notebook.replace(&at("/a.md"), &large, Hash::of(b"old")), Err(FileError::Full)));
    assert!(matches!(notebook.create(&at("/new/b.md"), &large), Err(FileError::Full)));
    assert_eq!(names(&disk.root()), ["a.md"]);
    assert_eq!(notebook.read(&at("/a.md")).unwrap().bytes, b"old");
}

#[test]
fn a_read_only_disk_is_said_to_be_read_only_and_can_still_be_read() {
    let Some(disk) = Disk::mount() else { return };
    let notebook = Notebook::open(&disk.root()).unwrap();
    notebook.create(&at("/a.md"), b"old").unwrap();
    assert!(run("mount", &["-o", "remount,ro"], &disk.root()));
    assert!(matches!(notebook.replace(&at("/a.md"), b"new", Hash::of(b"old")), Err(FileError::ReadOnly)));
    assert!(matches!(notebook.create(&at("/x/b.md"), b"new"), Err(FileError::ReadOnly)));
    assert!(matches!(notebook.delete(&at("/a.md"), Hash::of(b"old")), Err(FileError::ReadOnly)));
    assert_eq!(notebook.read(&at("/a.md")).unwrap().bytes, b"old");
}

#[test]
fn a_folder_the_server_may_not_change_is_denied_and_left_alone() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.md"), "old").unwrap();
    let locked = Locked::new(folder.path());
    if !locked.holds() {
        return skip("a folder that is closed", "nothing can be closed to this user on this disk");
    }
    let notebook = Notebook::open(folder.path()).unwrap();
    assert!(matches!(notebook.replace(&at("/a.md"), b"new", Hash::of(b"old")), Err(FileError::Denied)));
    assert!(matches!(notebook.create(&at("/b.md"), b"new"), Err(FileError::Denied)));
    assert!(matches!(notebook.delete(&at("/a.md"), Hash::of(b"old")), Err(FileError::Denied)));
    assert_eq!(names(folder.path()), ["a.md"]);
    assert_eq!(notebook.read(&at("/a.md")).unwrap().bytes, b"old");
}

/// A folder closed to its own user: by its rights, or for root, whom rights do not bind, by making it immutable.
struct Locked<'a>(&'a Path);

impl<'a> Locked<'a> {
    fn new(folder: &'a Path) -> Self {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
        run("chattr", &["+i"], folder);
        Self(folder)
    }

    fn holds(&self) -> bool {
        fs::write(self.0.join("probe"), "").is_err()
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        run("chattr", &["-i"], self.0);
        fs::set_permissions(self.0, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
