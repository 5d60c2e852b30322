//! What can be wrong with a machine: each time a clear sentence, a number, and nothing lost.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::house::{BINARY, Done, House, is_root, skip};

/// Opens or closes a folder and all that is in it.
fn chmod(mode: &str, path: &Path) {
    assert!(Command::new("chmod").args(["-R", mode]).arg(path).status().unwrap().success());
}

/// The database file, with what other files held already in it.
fn database(house: &House) -> Vec<u8> {
    assert!(!house.data().join("adjutant.db-wal").exists(), "a closed database is one file");
    std::fs::read(house.data().join("adjutant.db")).unwrap()
}

#[test]
fn a_missing_notebook_folder_is_named_and_nothing_is_made_in_its_place() {
    let house = House::new();
    house.asked();
    let (folder, away) = (house.data().join("notebooks"), house.path().join("away"));
    std::fs::rename(&folder, &away).unwrap();
    let refused = house.adjutant(&["run", "what files are here"]);
    assert_eq!(refused.code, Some(3), "{refused}");
    assert!(refused.err.contains("the notebook `welcome` cannot be opened"), "{refused}");
    let doctor = house.adjutant(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor}");
    assert!(doctor.out.contains("notebook welcome  problem"), "{doctor}");
    assert!(!folder.exists());
    std::fs::rename(&away, &folder).unwrap();
    let run = crate::house::text(&house.document(&["runs", "ls"])["data"][0]["id"]);
    let forked = house.adjutant(&["runs", "fork", &run]);
    assert_eq!(forked.code, Some(0), "{forked}");
    assert!(forked.out.starts_with("There are 6 files here:"), "{forked}");
}

#[test]
fn a_damaged_database_is_left_as_it_is() {
    let house = House::new();
    house.asked();
    let whole = database(&house);
    let path = house.data().join("adjutant.db");
    // The first page is the head of the file; another one is found when it is read.
    for (from, to) in [(0, 4096), (4096, whole.len())] {
        let mut damaged = whole.clone();
        damaged[from..to].iter_mut().for_each(|byte| *byte ^= 0x5a);
        std::fs::write(&path, &damaged).unwrap();
        let refused = house.adjutant(&["runs", "ls"]);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.err.contains("The database is damaged") && refused.err.contains("hint: "), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "nothing was written");
    }
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
}

#[test]
fn a_changed_event_in_the_database_is_found() {
    let house = House::new();
    // Without sealing an event is plain text in the file, so it can be changed behind our back.
    let open = |arguments: &[&str]| Done::of(house.command(arguments).env("ADJUTANT_ENCRYPT", "false"));
    assert_eq!(open(&["run", "what files are here"]).code, Some(0));
    let mut bytes = database(&house);
    let wanted = b"what files are here";
    let places: Vec<_> =
        bytes.windows(wanted.len()).enumerate().filter(|(_, window)| window == wanted).map(|(at, _)| at).collect();
    for at in places {
        bytes[at] = b'W';
    }
    std::fs::write(house.data().join("adjutant.db"), bytes).unwrap();
    let broken = open(&["audit", "verify"]);
    assert_eq!(broken.code, Some(9), "{broken}");
    assert!(broken.out.contains("the body of event 1 was changed"), "{broken}");
}

#[test]
fn a_newer_database_is_refused() {
    let house = House::new();
    house.asked();
    let mut bytes = database(&house);
    let wanted = b"min_binary1";
    let places: Vec<_> =
        bytes.windows(wanted.len()).enumerate().filter(|(_, window)| window == wanted).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + wanted.len() - 1] = b'9';
    }
    std::fs::write(house.data().join("adjutant.db"), bytes).unwrap();
    let refused = house.adjutant(&["runs", "ls"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("newer Adjutant (it needs schema 9, this one knows 1)"), "{refused}");
}

#[test]
fn a_key_that_is_gone_is_asked_for_and_never_replaced() {
    let house = House::new();
    house.asked();
    let (key, away) = (house.data().join("master.key"), house.path().join("key"));
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::rename(&key, &away).unwrap();
    let refused = house.adjutant(&["runs", "ls"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("master.key is gone"), "{refused}");
    assert!(!key.exists());
    let wrong = Done::of(house.command(&["runs", "ls"]).env("ADJUTANT_SECRET_KEY", "0".repeat(64)));
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.err.contains("another master key"), "{wrong}");
    let named = Done::of(house.command(&["runs", "ls"]).env("ADJUTANT_SECRET_KEY_FILE", &away));
    assert_eq!(named.code, Some(0), "{named}");
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let house = House::new();
    house.asked();
    chmod("a+rX", house.path());
    chmod("a-w", &house.data());
    let refused = if is_root() {
        // Root may write everywhere, so the binary is lent to somebody who may not.
        let binary = house.path().join("adjutant");
        // By another name where that goes: a copy of it may not fit on a disk that is nearly full.
        if std::fs::hard_link(BINARY, &binary).is_err() {
            std::fs::copy(BINARY, &binary).unwrap();
        }
        chmod("a+rx", &binary);
        let mut lent = Command::new("setpriv");
        house.prepare(&mut lent);
        lent.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(binary);
        let data = house.data();
        match lent.arg("--data").arg(data).args(["runs", "ls"]).output() {
            Ok(_) => Done::of(&mut lent),
            Err(error) => return skip("a read-only data directory", &format!("setpriv: {error}")),
        }
    } else {
        house.adjutant(&["runs", "ls"])
    };
    chmod("u+w", &house.data());
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("cannot be used: Permission denied") && refused.err.contains("hint: "), "{refused}");
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
}

/// A small file system of its own, taken away when the test ends.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(path: &'a Path) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs"]).arg(path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(path))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    let house = House::new();
    let data = house.data();
    let Some(_disk) = SmallDisk::mount(&data) else {
        return skip("a full disk", "a small file system can only be mounted by root");
    };
    let (run, approval) = house.asked();
    let filler = data.join("filler");
    // Writes until there is no room, and leaves the file as large as it got.
    let filled =
        Command::new("dd").arg("if=/dev/zero").arg(format!("of={}", filler.display())).arg("bs=4096").output().unwrap();
    assert!(!filled.status.success());
    let refused = house.adjutant(&["inbox", "approve", &approval]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.err.contains("The disk is full") && refused.err.contains("hint: make room"), "{refused}");
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(house.document(&["runs", "show", &run])["status"], "WAITING_APPROVAL");
    assert_eq!(house.adjutant(&["inbox", "approve", &approval]).code, Some(0));
    assert_eq!(house.adjutant(&["runs", "watch", &run]).code, Some(0));
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
}
