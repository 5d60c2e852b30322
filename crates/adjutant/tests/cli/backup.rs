//! A backup and putting it back: everything, from a server that runs, into an empty place; and what must not happen.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::api::client::Server;
use crate::house::{Done, House, text};

const KEY: &str = "sk-canary-of-a-backup-51f0aa";

/// Writes a backup of a house and says where it is.
fn backup(house: &House) -> PathBuf {
    let file = house.path().join("copy.adjutant");
    let done = house.adjutant(&["backup", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done}");
    file
}

/// Puts a file into a new house, with the master key of the old one.
fn restore(new: &House, file: &Path, key: &Path) -> Done {
    new.adjutant(&["restore", file.to_str().unwrap(), "--key", key.to_str().unwrap()])
}

fn key(house: &House) -> PathBuf {
    house.data().join("master.key")
}

/// Nothing of a restore that failed is left, so that a good one finds an empty place.
fn is_untouched(house: &House) {
    let names: Vec<_> = std::fs::read_dir(house.path()).unwrap().map(|name| name.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(
                files(&path)
                    .into_iter()
                    .map(|(name, bytes)| (path.file_name().unwrap().into(), (name, bytes)))
                    .map(|(above, (name, bytes)): (PathBuf, _)| (above.join(name), bytes)),
            );
        } else {
            found.push((path.file_name().unwrap().into(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn an_instance_that_runs_is_copied_whole_and_goes_on_elsewhere() {
    let server = Server::start(House::new());
    let (run, approval) = server.house.asked();
    std::fs::write(server.house.note("mine.md"), "a note of mine").unwrap();
    std::fs::create_dir_all(server.house.data().join("agents")).unwrap();
    let file = backup(&server.house);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (house, _) = server.stop();
    let before = house.document(&["runs", "ls"]);

    let new = House::new();
    let done = restore(&new, &file, &key(&house));
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.out.contains("logs are whole") && done.out.contains("everything is stopped"), "{done}");
    assert!(done.out.contains(&format!("then {}", new.hint("halt off"))), "the hint is about this one: {done}");
    assert_eq!(files(&new.data().join("notebooks")), files(&house.data().join("notebooks")));
    for (name, mode) in [("", 0o700), ("master.key", 0o600)] {
        assert_eq!(new.data().join(name).metadata().unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
    assert_eq!(new.note("todo.md").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(new.document(&["audit", "verify"])["valid"], true);
    let after = new.document(&["runs", "ls"]);
    assert_eq!(
        (&after["data"][0]["id"], &after["data"][0]["created_at"]),
        (&before["data"][0]["id"], &before["data"][0]["created_at"])
    );

    for (kind, count) in [("backup_made", 1), ("backup_restored", 1)] {
        let recorded = new.document(&["audit", "search", &format!("kind:{kind}")]);
        assert_eq!(recorded["data"].as_array().map(Vec::len), Some(count), "{kind}: {recorded:#}");
    }
    // One that nobody serves is recorded too.
    assert_eq!(house.adjutant(&["backup", house.path().join("second").to_str().unwrap()]).code, Some(0));
    let recorded = house.document(&["audit", "search", "kind:backup_made"]);
    assert_eq!(recorded["data"].as_array().map(Vec::len), Some(2), "{recorded:#}");

    // Nothing goes on by itself: what was decided after the backup is not in it.
    let held = new.adjutant(&["run", "hello"]);
    assert!(held.code != Some(0) && held.err.contains("restored from a backup"), "{held}");
    assert_eq!(new.adjutant(&["halt", "off"]).code, Some(0));
    assert_eq!(new.adjutant(&["inbox", "approve", &approval]).code, Some(0));
    let watched = new.adjutant(&["runs", "watch", &run]);
    assert_eq!(watched.code, Some(0), "{watched}");
    let found = new.adjutant(&["run", "what files are here"]);
    assert!(found.out.contains("mine.md"), "{found}");
}

#[test]
fn a_file_that_was_cut_or_changed_restores_nothing() {
    let house = House::new();
    house.asked();
    let file = backup(&house);
    let whole = std::fs::read(&file).unwrap();
    let new = House::new();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    let cut = |end: usize| whole[..end].to_vec();
    for bad in [cut(0), cut(20), cut(whole.len() / 2), cut(whole.len() - 1), changed, b"a letter".repeat(90)] {
        let path = house.path().join("bad");
        std::fs::write(&path, &bad).unwrap();
        let refused = restore(&new, &path, &key(&house));
        assert!(matches!(refused.code, Some(2 | 9)), "{refused}");
        assert!(refused.err.contains("Nothing was restored."), "{refused}");
        is_untouched(&new);
    }
    assert_eq!(restore(&new, &file, &key(&house)).code, Some(0));
}

#[test]
fn a_backup_whose_record_was_changed_is_not_taken_for_one() {
    let house = House::new();
    house.asked();
    let file = backup(&house);
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(11).position(|part| part == b"run_started").unwrap();
    bytes[at + 10] = b'x';
    // Whoever changes it on purpose can also write the hash at its end anew.
    let end = bytes.len() - 32;
    let hash = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(hash.as_bytes());
    std::fs::write(&file, &bytes).unwrap();
    let new = House::new();
    let refused = restore(&new, &file, &key(&house));
    assert_eq!(refused.code, Some(9), "{refused}");
    assert!(refused.err.contains("is not whole") && refused.err.contains("Nothing was restored."), "{refused}");
    is_untouched(&new);
}

#[test]
fn a_backup_goes_into_an_empty_place_with_its_own_key() {
    let house = House::new();
    house.asked();
    let file = backup(&house);
    let new = House::new();
    let none = new.adjutant(&["restore", file.to_str().unwrap()]);
    assert_eq!(none.code, Some(2), "{none}");
    assert!(none.err.contains("master key is not in it") && none.err.contains("--key"), "{none}");
    let wrong = house.path().join("wrong.key");
    std::fs::write(&wrong, "0f".repeat(32)).unwrap();
    let refused = restore(&new, &file, &wrong);
    assert!(refused.code == Some(2) && refused.err.contains("another master key"), "{refused}");
    is_untouched(&new);

    std::fs::create_dir(new.data()).unwrap();
    std::fs::write(new.data().join("mine"), "").unwrap();
    let filled = restore(&new, &file, &key(&house));
    assert!(filled.code == Some(2) && filled.err.contains("holds something already"), "{filled}");
    std::fs::remove_file(new.data().join("mine")).unwrap();
    assert_eq!(restore(&new, &file, &key(&house)).code, Some(0));

    let again = house.adjutant(&["backup", file.to_str().unwrap()]);
    assert!(again.code == Some(2) && again.err.contains("is there already"), "{again}");
    let nowhere = House::new().adjutant(&["backup", file.with_extension("other").to_str().unwrap()]);
    assert!(nowhere.code == Some(1) && nowhere.err.contains("There is no instance"), "{nowhere}");
}

#[test]
fn no_key_and_no_sign_in_is_in_a_backup() {
    let server = Server::start(House::new());
    let workspace = text(&server.owner().get("/api/v1/workspaces").expect(200)["data"][0]["id"]);
    server.person("ada", &workspace, "write").get("/api/v1/me").expect(200);
    let added = Done::with_input(&mut server.house.command(&["keys", "add", "openai"]), KEY);
    assert_eq!(added.code, Some(0), "{added}");
    let file = server.house.path().join("copy.adjutant");
    let told = server.house.document(&["backup", file.to_str().unwrap()]);
    assert_eq!(told["provider_keys_left_out"], 1, "{told}");
    let bytes = std::fs::read(&file).unwrap();
    let master = std::fs::read(key(&server.house)).unwrap();
    let raw: Vec<u8> = master
        .trim_ascii()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    for secret in [KEY.as_bytes(), master.trim_ascii(), raw.as_slice()] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret));
    }
    let (house, _) = server.stop();
    let new = House::new();
    assert_eq!(restore(&new, &file, &key(&house)).code, Some(0));
    assert_eq!(new.document(&["keys"])["data"], json!([]));
    assert_eq!(house.document(&["keys"])["data"].as_array().unwrap().len(), 1, "the original keeps it");
}
