//! Attacks on the file layer, really carried out on a tree with a decoy tree beside it, once per way of confinement.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, RenameFlags};
use tempfile::TempDir;

use super::*;
use crate::testing::skip;

const OUTSIDE: &str = "outside: nobody may read this";

/// A notebook with a decoy beside it.
struct Ground {
    folder: TempDir,
    notebook: Notebook,
}

impl Ground {
    fn root(&self) -> PathBuf {
        self.folder.path().join("notebook")
    }

    fn decoy(&self) -> PathBuf {
        self.folder.path().join("notebook-decoy")
    }

    /// The decoy is as it was.
    fn assert_decoy_untouched(&self) {
        assert_eq!(fs::read_to_string(self.decoy().join("secret.md")).unwrap(), OUTSIDE);
        assert_eq!(fs::read_dir(self.decoy()).unwrap().count(), 1);
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The same ground for each way of confinement.
fn grounds() -> [Ground; 2] {
    [Notebook::open as fn(&Path) -> Result<Notebook, FileError>, Notebook::open_by_walking].map(|open| {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("notebook/sub")).unwrap();
        fs::create_dir(folder.path().join("notebook-decoy")).unwrap();
        fs::write(folder.path().join("notebook/a.md"), "inside").unwrap();
        fs::write(folder.path().join("notebook/sub/secret.md"), "inside").unwrap();
        fs::write(folder.path().join("notebook-decoy/secret.md"), OUTSIDE).unwrap();
        let notebook = open(&folder.path().join("notebook")).unwrap();
        Ground { folder, notebook }
    })
}

fn at(path: &str) -> NotePath {
    NotePath::parse(path).unwrap()
}

#[test]
fn a_kernel_that_can_confine_is_asked_to() {
    let [kernel, walk] = grounds();
    assert_eq!(walk.notebook.confinement(), Confinement::Walk);
    match kernel.notebook.confinement() {
        Confinement::Kernel => {}
        Confinement::Walk => skip("confinement by the kernel", "it has no openat2, so both grounds are walked"),
    }
}

#[test]
fn a_file_is_read_with_its_hash_and_time() {
    for ground in grounds() {
        let content = ground.notebook.read(&at("/sub/secret.md")).unwrap();
        assert_eq!((content.text().unwrap(), content.hash), ("inside", Hash::of(b"inside")));
        let entry = ground.notebook.metadata(&at("/sub/secret.md")).unwrap();
        assert_eq!((entry.kind, entry.size, entry.modified), (Kind::File, 6, content.modified));
        assert!(content.modified.millis() > 1_600_000_000_000);
        assert_eq!(ground.notebook.metadata(&NotePath::root()).unwrap().kind, Kind::Dir);
        assert!(matches!(ground.notebook.read(&at("/sub")), Err(FileError::IsFolder)));
        assert!(matches!(ground.notebook.read(&at("/none.md")), Err(FileError::NotFound)));
        assert!(matches!(ground.notebook.read(&at("/a.md/b")), Err(FileError::NotAFolder)));
    }
}

#[test]
fn whoever_comes_too_late_changes_nothing_and_leaves_nothing_behind() {
    for ground in grounds() {
        let asked = std::sync::Arc::new(AtomicBool::new(false));
        let heard = std::sync::Arc::clone(&asked);
        let late = ground.notebook.fenced(Fence::new(move || {
            heard.store(true, Ordering::SeqCst);
            false
        }));
        let before = ground.names();
        let inside = Hash::of(b"inside");
        let assert_refused = |what: &str, changed: Result<(), FileError>| {
            assert!(matches!(&changed, Err(late @ FileError::TooLate) if late.is_retriable()), "{what}: {changed:?}");
            assert!(asked.swap(false, Ordering::SeqCst), "{what}");
            assert_eq!(ground.names(), before, "{what}");
            assert_eq!(fs::read_to_string(ground.root().join("a.md")).unwrap(), "inside", "{what}");
        };
        assert_refused("create", late.create(&at("/new/b.md"), b"new"));
        assert_refused("replace", late.replace(&at("/a.md"), b"new", inside).map(drop));
        assert_refused("delete", late.delete(&at("/a.md"), inside).map(drop));
        assert_refused("create a folder", late.create_folder(&at("/new/folder")));
        assert_refused("delete a folder", late.delete_folder(&at("/sub")));
        assert!(late.read(&at("/a.md")).is_ok());
        ground.notebook.fenced(Fence::new(|| true)).delete(&at("/a.md"), inside).unwrap();
    }
}

#[test]
fn nodes_that_share_a_folder_change_its_files_one_after_the_other() {
    let [Ground { folder, notebook }, _] = grounds();
    let root = folder.path().join("notebook");
    // As another node holds it, in the middle of a change.
    let other = fs::File::open(&root).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let shared = notebook.shared();
    let held = shared.replace(&at("/a.md"), b"new", Hash::of(b"inside"));
    assert!(held.as_ref().is_err_and(FileError::is_retriable), "{held:?}");
    assert_eq!(fs::read_to_string(root.join("a.md")).unwrap(), "inside");
    shared.create(&at("/sub/other.md"), b"in a folder that nobody holds").unwrap();
    drop(other);
    shared.replace(&at("/a.md"), b"new", Hash::of(b"inside")).unwrap();
    shared.delete(&at("/a.md"), Hash::of(b"new")).unwrap();
}

#[test]
fn a_link_is_never_followed_whatever_is_asked() {
    for ground in grounds() {
        let root = ground.root();
        symlink(ground.decoy().join("secret.md"), root.join("absolute.md")).unwrap();
        symlink("../notebook-decoy/secret.md", root.join("relative.md")).unwrap();
        symlink("a.md", root.join("inside.md")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        symlink("missing", root.join("dangling.md")).unwrap();
        symlink(ground.decoy(), root.join("folder")).unwrap();
        symlink("sub", root.join("alias")).unwrap();
        symlink("/proc/self/cwd", root.join("here")).unwrap();
        for path in
            ["/absolute.md", "/relative.md", "/inside.md", "/dangling.md", "/folder/secret.md", "/alias/secret.md"]
        {
            assert_all_refused(&ground, path);
        }
        for path in ["/magic/etc/passwd", "/here/Cargo.toml", "/folder", "/alias", "/magic"] {
            assert_all_refused(&ground, path);
        }
        ground.assert_decoy_untouched();
        assert_eq!(fs::read_to_string(root.join("a.md")).unwrap(), "inside");
    }
}

fn assert_all_refused(ground: &Ground, path: &str) {
    let (notebook, path) = (&ground.notebook, at(path));
    let hash = Hash::of(OUTSIDE.as_bytes());
    let symlink = |error: FileError| assert!(matches!(error, FileError::Symlink), "{path}: {error:?}");
    symlink(notebook.read(&path).unwrap_err());
    symlink(notebook.metadata(&path).unwrap_err());
    symlink(notebook.state(&path).unwrap_err());
    symlink(notebook.list(&path).unwrap_err());
    symlink(notebook.replace(&path, b"attack", hash).unwrap_err());
    symlink(notebook.delete(&path, hash).unwrap_err());
    assert!(matches!(notebook.create(&path, b"attack"), Err(FileError::Symlink | FileError::Exists)));
    assert!(matches!(notebook.delete_folder(&path), Err(FileError::Symlink | FileError::NotAFolder)));
    symlink(notebook.create(&path.child("new.md").unwrap(), b"attack").unwrap_err());
}

#[test]
fn a_path_that_climbs_out_is_not_a_path_and_is_refused_even_if_it_were() {
    for text in ["..", "/..", "../notebook-decoy/secret.md", "/sub/../../notebook-decoy/secret.md", "/sub/../a.md"] {
        assert!(NotePath::parse(text).is_err(), "{text}");
    }
    for ground in grounds() {
        // What the type would let through is still refused by the kernel below it.
        let flags = rustix::fs::OFlags::RDONLY;
        let folder = ground.notebook.folder(&NotePath::root()).unwrap();
        for name in ["../notebook-decoy/secret.md", "..", "/etc/passwd"] {
            if ground.notebook.confinement() == Confinement::Kernel {
                let opened = ground.notebook.confinement().open_entry(folder.as_fd(), name, flags);
                assert!(matches!(opened, Err(FileError::Escapes)), "{name}: {opened:?}");
            }
        }
        // An absolute path starts at the notebook, never at the host.
        assert!(matches!(ground.notebook.read(&at("/etc/passwd")), Err(FileError::NotFound)));
        let sibling = ground.decoy().join("secret.md");
        assert!(matches!(ground.notebook.read(&at(sibling.to_str().unwrap())), Err(FileError::NotFound)));
    }
}

#[test]
fn pipes_sockets_and_devices_are_refused_at_once() {
    for ground in grounds() {
        let root = ground.root();
        rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let mut paths = vec!["/pipe", "/socket"];
        let zero = rustix::fs::makedev(1, 5);
        match rustix::fs::mknodat(CWD, root.join("zero"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), zero) {
            Ok(()) => paths.push("/zero"),
            Err(errno) => skip("a device in a notebook", &format!("making one needs root ({errno})")),
        }
        let hash = Hash::of(b"");
        for path in paths.into_iter().map(at) {
            let special = |error: FileError| assert!(matches!(error, FileError::NotAFile), "{path}: {error:?}");
            special(ground.notebook.read(&path).unwrap_err());
            special(ground.notebook.metadata(&path).unwrap_err());
            special(ground.notebook.replace(&path, b"x", hash).unwrap_err());
            special(ground.notebook.delete(&path, hash).unwrap_err());
            assert!(matches!(ground.notebook.create(&path, b"x"), Err(FileError::Exists)));
            assert!(matches!(ground.notebook.list(&path), Err(FileError::NotAFolder)));
        }
        assert!(fs::metadata(root.join("pipe")).unwrap().file_type().is_fifo());
        let listing = ground.notebook.list(&NotePath::root()).unwrap();
        assert!(listing.skipped >= 2);
        assert!(listing.entries.iter().all(|entry| entry.kind != Kind::Other));
    }
}

/// Exchanges two names over and over while `attempt` is made `turns` times.
fn while_swapping(one: &Path, two: &Path, turns: usize, mut attempt: impl FnMut(usize)) {
    let ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                let _ = rustix::fs::renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE);
            }
        });
        (0..turns).for_each(&mut attempt);
        ended.store(true, Ordering::Release);
    });
}

#[test]
fn a_folder_swapped_for_a_link_never_leads_out() {
    for ground in grounds() {
        let (root, notebook) = (ground.root(), &ground.notebook);
        symlink(ground.decoy(), root.join("other")).unwrap();
        while_swapping(&root.join("sub"), &root.join("other"), 1000, |turn| {
            if let Ok(content) = notebook.read(&at("/sub/secret.md")) {
                assert_ne!(content.text().unwrap(), OUTSIDE);
                let _ = notebook.replace(&at("/sub/secret.md"), format!("inside {turn}").as_bytes(), content.hash);
            }
            let new = at(&format!("/sub/new-{}.md", turn % 8));
            let _ = notebook.create(&new, b"inside");
            let _ = notebook.delete(&new, Hash::of(b"inside"));
            let _ = notebook.walk(&NotePath::root(), 100, &mut |_| Visit::Enter);
        });
        ground.assert_decoy_untouched();
    }
}

#[test]
fn a_file_swapped_for_a_link_while_it_is_replaced_does_not_write_through_the_link() {
    for ground in grounds() {
        let (root, notebook) = (ground.root(), &ground.notebook);
        symlink(ground.decoy().join("secret.md"), root.join("link.md")).unwrap();
        while_swapping(&root.join("a.md"), &root.join("link.md"), 1000, |turn| {
            if let Ok(content) = notebook.read(&at("/a.md")) {
                assert_ne!(content.text().unwrap(), OUTSIDE);
                let _ = notebook.replace(&at("/a.md"), format!("inside {turn}").as_bytes(), content.hash);
            }
        });
        ground.assert_decoy_untouched();
    }
}

#[test]
fn a_reader_sees_the_old_file_or_the_new_one_and_nothing_is_left_beside_it() {
    const TURNS: usize = 300;
    for ground in grounds() {
        let contents = [vec![b'a'; 200_000], vec![b'b'; 100_000]];
        fs::write(ground.root().join("a.md"), &contents[1]).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for turn in 0..TURNS {
                    let (new, old) = (&contents[turn % 2], &contents[(turn + 1) % 2]);
                    let before = ground.notebook.replace(&at("/a.md"), new, Hash::of(old)).unwrap();
                    assert!(before.bytes == *old);
                }
                ended.store(true, Ordering::Release);
            });
            while !ended.load(Ordering::Acquire) {
                let seen = ground.notebook.read(&at("/a.md")).unwrap().bytes;
                assert!(contents.contains(&seen), "{} bytes", seen.len());
            }
        });
        assert_eq!(ground.names(), ["a.md", "sub"]);
    }
}

#[test]
fn a_file_that_changed_is_neither_replaced_nor_deleted() {
    for ground in grounds() {
        let (notebook, seen) = (&ground.notebook, Hash::of(b"inside"));
        fs::write(ground.root().join("a.md"), "a person wrote this").unwrap();
        assert!(matches!(notebook.replace(&at("/a.md"), b"new", seen), Err(FileError::Changed)));
        assert!(matches!(notebook.delete(&at("/a.md"), seen), Err(FileError::Changed)));
        assert_eq!(fs::read_to_string(ground.root().join("a.md")).unwrap(), "a person wrote this");
        fs::remove_file(ground.root().join("a.md")).unwrap();
        assert!(matches!(notebook.replace(&at("/a.md"), b"new", seen), Err(FileError::NotFound)));
        assert_eq!(ground.names(), ["sub"]);
    }
}

#[test]
fn of_many_writers_with_the_same_knowledge_exactly_one_wins() {
    for ground in grounds() {
        let (seen, wins) = (Hash::of(b"inside"), std::sync::atomic::AtomicUsize::new(0));
        std::thread::scope(|threads| {
            for writer in 0..8 {
                let (ground, wins) = (&ground, &wins);
                threads.spawn(move || {
                    let won = ground.notebook.replace(&at("/a.md"), format!("writer {writer}").as_bytes(), seen);
                    let made = ground.notebook.create(&at("/new/one.md"), b"x");
                    wins.fetch_add(usize::from(won.is_ok()) + 100 * usize::from(made.is_ok()), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(wins.into_inner(), 101);
    }
}

#[test]
fn creating_makes_the_folders_and_never_overwrites() {
    for ground in grounds() {
        let notebook = &ground.notebook;
        notebook.create(&at("/x/y/z.md"), b"new").unwrap();
        assert_eq!(fs::read_to_string(ground.root().join("x/y/z.md")).unwrap(), "new");
        assert!(matches!(notebook.create(&at("/x/y/z.md"), b"other"), Err(FileError::Exists)));
        assert!(matches!(notebook.create(&at("/x/y"), b"other"), Err(FileError::Exists)));
        assert!(matches!(notebook.create(&NotePath::root(), b"other"), Err(FileError::IsFolder)));
        assert!(matches!(notebook.create(&at("/a.md/b/c.md"), b"other"), Err(FileError::NotAFolder)));
        assert_eq!(fs::read_to_string(ground.root().join("x/y/z.md")).unwrap(), "new");
        assert_eq!(ground.names(), ["a.md", "sub", "x"]);
    }
}

#[test]
fn a_failed_creation_leaves_no_folders_behind() {
    for ground in grounds() {
        let long = "n".repeat(255);
        symlink("sub", ground.root().join("link")).unwrap();
        let too_large = vec![0; usize::try_from(adjutant_core::limits::KEPT_FILE_BYTES).unwrap() + 1];
        assert!(matches!(ground.notebook.create(&at("/p/q/r.md"), &too_large), Err(FileError::TooLarge { .. })));
        assert!(matches!(
            ground.notebook.create(&at(&format!("/p/{long}/.adjutant-tmp-1")), b""),
            Err(FileError::Reserved)
        ));
        assert!(matches!(ground.notebook.create(&at("/link/q/r.md"), b""), Err(FileError::Symlink)));
        assert_eq!(ground.names(), ["a.md", "link", "sub"]);
        assert_eq!(fs::read_dir(ground.root().join("sub")).unwrap().count(), 1);
    }
}

#[test]
fn replacing_keeps_the_rights_of_the_file() {
    for ground in grounds() {
        let file = ground.root().join("a.md");
        for mode in [0o600, 0o640, 0o755, 0o444] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let now = ground.notebook.read(&at("/a.md")).unwrap();
            ground.notebook.replace(&at("/a.md"), format!("{mode:o}").as_bytes(), now.hash).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, mode);
        }
    }
}

#[test]
fn replacing_breaks_a_hard_link_instead_of_writing_through_it() {
    for ground in grounds() {
        fs::hard_link(ground.decoy().join("secret.md"), ground.root().join("hard.md")).unwrap();
        ground.notebook.replace(&at("/hard.md"), b"new", Hash::of(OUTSIDE.as_bytes())).unwrap();
        assert_eq!(fs::read_to_string(ground.root().join("hard.md")).unwrap(), "new");
        ground.assert_decoy_untouched();
    }
}

#[test]
fn deleting_removes_a_file_or_an_empty_folder_only() {
    for ground in grounds() {
        let notebook = &ground.notebook;
        assert!(matches!(notebook.delete_folder(&at("/sub")), Err(FileError::NotEmpty)));
        assert!(matches!(notebook.delete_folder(&at("/a.md")), Err(FileError::NotAFolder)));
        assert!(matches!(notebook.delete(&at("/sub"), folder_hash()), Err(FileError::IsFolder)));
        assert!(matches!(notebook.delete_folder(&NotePath::root()), Err(FileError::IsFolder)));
        assert_eq!(notebook.delete(&at("/sub/secret.md"), Hash::of(b"inside")).unwrap().bytes, b"inside");
        fs::write(ground.root().join("sub/.adjutant-tmp-dead"), "leftover").unwrap();
        notebook.delete_folder(&at("/sub")).unwrap();
        assert_eq!(ground.names(), ["a.md"]);
    }
}

#[test]
fn half_written_files_are_invisible_and_untouchable() {
    for ground in grounds() {
        let leftover = ground.root().join("sub/.adjutant-tmp-dead-1");
        fs::write(&leftover, "half").unwrap();
        let (notebook, path) = (&ground.notebook, at("/sub/.adjutant-tmp-dead-1"));
        assert!(matches!(notebook.read(&path), Err(FileError::NotFound)));
        assert!(matches!(notebook.metadata(&path), Err(FileError::NotFound)));
        assert!(matches!(notebook.create(&path, b""), Err(FileError::Reserved)));
        assert!(matches!(notebook.delete(&path, Hash::of(b"half")), Err(FileError::Reserved)));
        assert_eq!(notebook.list(&at("/sub")).unwrap().entries.len(), 1);
        assert!(leftover.exists());
    }
}

#[test]
fn what_a_dead_process_left_half_written_is_removed_and_what_a_living_one_writes_is_not() {
    for ground in grounds() {
        let beside = |name: &str| ground.root().join("sub").join(name);
        let (dead, living) = (beside(".adjutant-tmp-dead-1"), beside(".adjutant-tmp-living-1"));
        let elsewhere = ground.root().join(".adjutant-tmp-dead-2");
        fs::write(&dead, "half").unwrap();
        fs::write(&elsewhere, "half").unwrap();
        let held = fs::File::create(&living).unwrap();
        held.lock().unwrap();
        assert_eq!(ground.notebook.sweep_beside(&at("/sub/secret.md")).unwrap(), 1);
        assert!(!dead.exists() && living.exists() && elsewhere.exists());
        drop(held);
        assert_eq!(ground.notebook.sweep_beside(&at("/sub/secret.md")).unwrap(), 1);
        assert!(!living.exists() && beside("secret.md").exists());
    }
}

#[test]
fn a_listing_is_sorted_and_leaves_out_names_that_no_path_can_have() {
    use std::os::unix::ffi::OsStrExt;
    for ground in grounds() {
        let root = ground.root();
        for name in ["b.md", "B.md", ".hidden", "with space.md"] {
            fs::write(root.join(name), "").unwrap();
        }
        for bad in ["star*.md", "col:on", "back\\slash", " blank", "dot.", "new\nline", "e\u{301}.md", "\u{202e}.md"] {
            fs::write(root.join(bad), "").unwrap();
        }
        fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), "").unwrap();
        let listing = ground.notebook.list(&NotePath::root()).unwrap();
        let names: Vec<&str> = listing.entries.iter().filter_map(|entry| entry.path.name()).collect();
        assert_eq!(names, [".hidden", "B.md", "a.md", "b.md", "sub", "with space.md"]);
        assert_eq!((listing.skipped, listing.cut), (9, false));
    }
}

#[test]
fn a_walk_visits_in_order_and_stops_at_its_limits() {
    for ground in grounds() {
        for path in ["/sub/x/1.md", "/sub/x/2.md", "/z.md"] {
            ground.notebook.create(&at(path), b"").unwrap();
        }
        symlink("..", ground.root().join("sub/loop")).unwrap();
        let walk = |most: usize, decide: fn(&Entry) -> Visit| {
            let mut seen = Vec::new();
            let walked = ground.notebook.walk(&NotePath::root(), most, &mut |entry| {
                seen.push(entry.path.to_string());
                decide(entry)
            });
            (seen, walked.unwrap())
        };
        let all = ["/a.md", "/sub", "/z.md", "/sub/secret.md", "/sub/x", "/sub/x/1.md", "/sub/x/2.md"];
        assert_eq!(walk(100, |_| Visit::Enter), (all.map(str::to_owned).to_vec(), Walked::Whole));
        assert_eq!(walk(100, |_| Visit::Skip).0.len(), 3);
        assert_eq!(walk(100, |_| Visit::Stop), (vec!["/a.md".to_owned()], Walked::Cut));
        let (seen, walked) = walk(4, |_| Visit::Enter);
        assert_eq!((seen.len(), walked), (4, Walked::Cut));
        assert!(ground.notebook.walk(&at("/none"), 10, &mut |_| Visit::Enter).is_err());
    }
}

#[test]
fn a_tree_deeper_than_any_path_is_walked_as_far_as_paths_reach() {
    for ground in grounds() {
        let mut folder = ground.notebook.folder(&NotePath::root()).unwrap();
        for _ in 0..80 {
            rustix::fs::mkdirat(&folder, "d", Mode::from_raw_mode(0o777)).unwrap();
            folder = ground.notebook.confinement().open_entry(folder.as_fd(), "d", OFlags::RDONLY).unwrap();
        }
        let mut deepest = 0;
        let walked = ground.notebook.walk(&NotePath::root(), 1000, &mut |entry| {
            deepest = deepest.max(entry.path.segments().count());
            Visit::Enter
        });
        assert_eq!((walked.unwrap(), deepest), (Walked::Whole, 64));
    }
}

#[test]
fn a_file_that_is_too_large_is_neither_read_nor_written() {
    for ground in grounds() {
        let limit = adjutant_core::limits::FILE_BYTES;
        fs::File::create(ground.root().join("large.md")).unwrap().set_len(limit + 1).unwrap();
        assert!(matches!(ground.notebook.read(&at("/large.md")), Err(FileError::TooLarge { .. })));
        assert_eq!(ground.notebook.metadata(&at("/large.md")).unwrap().size, limit + 1);
        let kept = adjutant_core::limits::KEPT_FILE_BYTES;
        assert_eq!(ground.notebook.read_at_most(&at("/large.md"), kept).unwrap().bytes.len() as u64, limit + 1);
        let too_large = vec![b'x'; usize::try_from(kept).unwrap() + 1];
        let replaced = ground.notebook.replace(&at("/a.md"), &too_large, Hash::of(b"inside"));
        assert!(matches!(replaced, Err(FileError::TooLarge { .. })));
        let at_most = ground.notebook.read_at_most(&at("/a.md"), 5);
        assert!(matches!(at_most, Err(FileError::TooLarge { size: 6, limit: 5 })));
    }
}

#[test]
fn only_utf_8_without_nul_is_text() {
    assert!(text_of("ünï\n".as_bytes()).is_ok());
    assert!(matches!(text_of(b"\xff"), Err(FileError::NotText)));
    assert!(matches!(text_of(b"a\0b"), Err(FileError::NotText)));
}

#[test]
fn no_error_text_names_a_place_on_the_host() {
    let missing = Notebook::open(Path::new("/nonexistent-folder-of-a-host/notebook")).unwrap_err();
    assert!(!missing.to_string().contains('/'), "{missing}");
}
