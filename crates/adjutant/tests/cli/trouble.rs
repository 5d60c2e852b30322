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
    assert_eq!(refused.code, Some(1), "{refused}");
    let said = format!("The notebook `welcome` cannot be opened: it is not in {}", folder.display());
    assert!(refused.err.contains(&said) && refused.err.contains("may be the wrong folder"), "{refused}");
    let doctor = house.adjutant(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor}");
    assert!(doctor.out.contains("notebook welcome  problem"), "{doctor}");
    assert!(!folder.exists());
    std::fs::rename(&away, &folder).unwrap();
    let again = house.adjutant(&["run", "what files are here"]);
    assert_eq!(again.code, Some(0), "{again}");
    assert!(again.out.starts_with("There are 6 files here:"), "{again}");
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
    assert!(refused.err.contains("newer Adjutant (it needs schema 9, this one knows "), "{refused}");
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

/// A small file system of its own, taken away when the test ends.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(path: &'a Path) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs"]).arg(path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(path))
    }

    /// Makes it one that can only be read, or one that can be written again.
    fn remount(&self, how: &str) {
        assert!(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

/// The binary in the hands of somebody whom rights bind: root may write everywhere, so it is lent to another user. None where
/// this machine does not let us.
fn bound(house: &House) -> Option<Command> {
    let lend = |arguments: &[&str]| {
        let mut lent = Command::new(if is_root() { "setpriv" } else { BINARY });
        house.prepare(&mut lent);
        if is_root() {
            lent.args(["--reuid=65534", "--regid=65534", "--clear-groups", BINARY]);
        }
        lent.args(arguments);
        lent
    };
    let works = lend(&["version"]).output().is_ok_and(|output| output.status.success());
    works.then(|| lend(&["--data", house.data().to_str().unwrap(), "runs", "ls"]))
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let house = House::new();
    let data = house.data();
    let (refused, why) = if let Some(mut command) = bound(&house) {
        house.asked();
        chmod("a+rX", house.path());
        chmod("a-w", &data);
        let refused = Done::of(&mut command);
        chmod("u+w", &data);
        assert_eq!(house.document(&["audit", "verify"])["valid"], true);
        (refused, "Permission denied")
    } else {
        let Some(disk) = SmallDisk::mount(&data) else {
            return skip(
                "a read-only data directory",
                "nobody can be lent the binary, and no file system can be mounted",
            );
        };
        house.asked();
        disk.remount("ro");
        let refused = house.adjutant(&["runs", "ls"]);
        disk.remount("rw");
        assert_eq!(house.document(&["audit", "verify"])["valid"], true);
        (refused, "Read-only file system")
    };
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains(&format!("cannot be used: {why}")) && refused.err.contains("hint: "), "{refused}");
}

/// Takes all the room that is left beside a file, and says how much that was.
fn fill(filler: &Path) -> u64 {
    // Writes until there is no room, and leaves the file as large as it got.
    let filled =
        Command::new("dd").arg("if=/dev/zero").arg(format!("of={}", filler.display())).arg("bs=4096").output().unwrap();
    assert!(!filled.status.success());
    filler.metadata().unwrap().len()
}

#[test]
fn a_disk_that_fills_while_a_run_goes_on_holds_it_up_and_nothing_is_lost() {
    let house = House::new();
    let data = house.data();
    let Some(_disk) = SmallDisk::mount(&data) else {
        return skip("a disk that fills while a run goes on", "a small file system can only be mounted by root");
    };
    let (run, approval) = house.asked();
    assert_eq!(house.adjutant(&["inbox", "approve", &approval]).code, Some(0));
    let filler = data.join("filler");
    let all = fill(&filler);
    // With ever more room it gets ever further: to its next record, to the file, to the record of that.
    for room in [0, 48, 160] {
        std::fs::File::options().write(true).open(&filler).unwrap().set_len(all - room * 1024).unwrap();
        let held = house.adjutant(&["runs", "watch", &run]);
        assert!(held.code == Some(0) || (held.code == Some(1) && held.err.contains("hint: make room")), "{held}");
        assert!(room > 0 || held.code == Some(1), "{held}");
    }
    std::fs::remove_file(&filler).unwrap();
    let ended = house.adjutant(&["runs", "watch", &run]);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(house.document(&["runs", "show", &run])["status"], "COMPLETED");
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
}

#[test]
fn a_disk_that_refuses_to_write_while_a_run_goes_on_holds_it_up_and_nothing_is_lost() {
    let house = House::new();
    let (run, approval) = house.asked();
    assert_eq!(house.adjutant(&["inbox", "approve", &approval]).code, Some(0));
    // A file that may not grow beyond this many blocks of 512 bytes: where it would, the system refuses the write (EFBIG), which
    // SQLite takes for an error of the disk. With ever more of them the run gets ever further.
    let watch = |blocks: u32| {
        let mut shell = Command::new("sh");
        house.prepare(&mut shell);
        let data = house.data();
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        shell.args(["-c", &limited, BINARY, "--data", data.to_str().unwrap(), "runs", "watch", &run]);
        Done::of(&mut shell)
    };
    let mut refused = 0;
    for blocks in (16..2048).step_by(24) {
        let watched = watch(blocks);
        assert!(!watched.err.contains("panicked"), "{watched}");
        if watched.code == Some(0) {
            break;
        }
        assert!(watched.err.contains("hint: "), "{watched}");
        refused += 1;
    }
    assert!(refused > 1, "some of it was refused");
    let ended = house.adjutant(&["runs", "watch", &run]);
    assert_eq!(ended.code, Some(0), "{ended}");
    let run = house.document(&["runs", "show", &run]);
    assert_eq!(run["status"], "COMPLETED", "{run:#}");
    assert!(run["actions"].as_array().unwrap().iter().all(|action| action["is_error"] == false), "{run:#}");
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
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
    fill(&filler);
    let refused = house.adjutant(&["inbox", "approve", &approval]);
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.err.contains("The disk is full") && refused.err.contains("hint: make room"), "{refused}");
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(house.document(&["runs", "show", &run])["status"], "WAITING_APPROVAL");
    assert_eq!(house.adjutant(&["inbox", "approve", &approval]).code, Some(0));
    assert_eq!(house.adjutant(&["runs", "watch", &run]).code, Some(0));
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
}

#[test]
fn a_database_of_another_build_is_refused_with_a_clear_error_and_left_as_it_is() {
    let house = House::new();
    house.asked();
    // As earlier states of the program left theirs.
    house.tamper("DELETE FROM meta WHERE key = 'made_by'");
    for command in [&["runs", "ls"][..], &["doctor"], &["backup", "never.backup"]] {
        let refused = house.adjutant(command);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused.err.contains("made by another development build") && refused.err.contains("hint: "),
            "{refused}"
        );
    }
}

#[test]
fn a_run_in_a_folder_that_is_gone_is_refused_before_it_begins() {
    let house = House::new();
    house.script("- text: I need no file.\n");
    let folder = house.path().join("gone");
    std::fs::create_dir(&folder).unwrap();
    house.document(&["ws", "add", folder.to_str().unwrap()]);
    std::fs::remove_dir(&folder).unwrap();
    let refused = house.adjutant(&["run", "guide", "hello", "--notebook", "gone"]);
    assert!(refused.code != Some(0) && refused.err.contains("The notebook `gone` cannot be opened"), "{refused}");
    assert_eq!(house.document(&["runs", "ls"])["data"], serde_json::json!([]));
}
