//! A restore that is killed on the way: nothing of it is used, and the next one succeeds.

use std::path::{Path, PathBuf};

use crate::house::{Base, Done, House, KEPT, Story, live};

/// Puts a backup into this house.
async fn restored(house: &House, file: &Path, key: &Path, dies_at: Option<&str>) -> Done {
    let mut command = house.command(&["restore", file.to_str().unwrap(), "--key", key.to_str().unwrap()]);
    command.envs(dies_at.map(|point| ("ADJUTANT_FAULT", point)));
    Done::of(command).await
}

/// What lies beside the data directory for a restore.
fn left(house: &House) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(house.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().contains(".restoring-")).collect()
}

/// A house with nothing in it, and its agent's model.
async fn empty(base: Base) -> House {
    let house = House::new(Story::InARow, base).await;
    std::fs::remove_dir_all(house.path().join("data")).unwrap();
    house
}

/// It is all there, stopped, and once the switch is off its agent knows what it knew.
async fn is_whole(new: &House) {
    assert_eq!(left(new), [] as [PathBuf; 0], "a folder with a copy of the master key");
    assert!(!new.path().join("data/.restoring").exists());
    assert_eq!(new.document(&["runs", "ls"]).await["data"].as_array().map_or(0, Vec::len), 1);
    let on = new.adjutant(&["halt", "off"]).await;
    assert_eq!(on.status.code(), Some(0), "{on}");
    assert_eq!(new.kept().await, KEPT);
}

#[test]
fn a_restore_that_is_killed_is_begun_again() {
    live(async {
        for base in Base::all() {
            let old = House::new(Story::InARow, base).await;
            let done = Done::of(old.start()).await;
            assert_eq!(done.status.code(), Some(0), "{done}");
            let (file, key) = (old.path().join("backup"), old.path().join("data/master.key"));
            let made = old.adjutant(&["backup", file.to_str().unwrap()]).await;
            assert_eq!(made.status.code(), Some(0), "{made}");

            let new = empty(base).await;
            // While it is filled, when it is there and nobody has looked, when everything is in its place but the mark.
            for point in ["copy.put:1", "copy.opened:1", "copy.finish:1"] {
                let killed = restored(&new, &file, &key, Some(point)).await;
                assert!(killed.was_killed(), "{base:?} {point}: {killed}");
            }
            if base == Base::Postgres {
                let refused = new.adjutant(&["runs", "ls"]).await;
                assert!(refused.err.contains("did not come to its end"), "{refused}");
            }
            let done = restored(&new, &file, &key, None).await;
            assert_eq!(done.status.code(), Some(0), "{base:?}: {done}");
            is_whole(&new).await;
            let again = restored(&new, &file, &key, None).await;
            assert!(again.err.contains("holds something already"), "{again}");
            std::fs::create_dir(new.path().join("data.restoring-1")).unwrap();
            let told = new.adjutant(&["doctor"]).await;
            assert!(told.out.contains("left by a restore"), "{told}");
            new.end().await;
            old.end().await;
        }
    });
}

#[test]
fn a_restore_that_is_killed_when_its_database_is_whole_is_used_or_begun_again() {
    live(async {
        for base in Base::all() {
            let old = House::new(Story::InARow, base).await;
            let done = Done::of(old.start()).await;
            assert_eq!(done.status.code(), Some(0), "{done}");
            let (file, key) = (old.path().join("backup"), old.path().join("data/master.key"));
            let made = old.adjutant(&["backup", file.to_str().unwrap()]).await;
            assert_eq!(made.status.code(), Some(0), "{made}");

            let new = empty(base).await;
            let killed = restored(&new, &file, &key, Some("copy.finished:1")).await;
            assert!(killed.was_killed(), "{base:?}: {killed}");
            match base {
                // It is in its place. Whoever opens it says that it is in use.
                Base::Postgres => {
                    let again = restored(&new, &file, &key, None).await;
                    assert!(again.err.contains("not empty"), "{again}");
                    assert_eq!(new.adjutant(&["runs", "ls"]).await.status.code(), Some(0));
                }
                // It is beside its place, and of no use.
                Base::Sqlite => {
                    let done = restored(&new, &file, &key, None).await;
                    assert_eq!(done.status.code(), Some(0), "{done}");
                }
            }
            is_whole(&new).await;
            new.end().await;
            old.end().await;
        }
    });
}
