//! The reading tools, as the engine calls them: nothing out of scope comes out, not even a name.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::guard::scope::Caps;
use async_trait::async_trait;
use serde_json::json;

use crate::memory::MemoryIndex;
use crate::testing::{Stage, far_future};
use crate::world::{HandleError, Hit, IndexHandle, IndexedFile, Stamp};

fn garden() -> Vec<(&'static str, &'static str)> {
    vec![
        ("/a.md", "alpha needle\n"),
        ("/drafts/b.md", "beta needle here\n"),
        ("/drafts/c.txt", "gamma needle\n"),
        ("/drafts/deep/d.md", "delta needle\n"),
        ("/drafts/.env", "KEY=needle\n"),
        ("/private/keys.md", "secret needle\n"),
        ("/.git/config", "needle\n"),
    ]
}

#[tokio::test]
async fn reading_returns_the_text_and_changes_nothing() {
    let stage = Stage::with(&[("/notes/a.md", "one\ntwo\nthree\n")]);
    assert_eq!(stage.output("read_file", json!({"path": "/notes/a.md"})).await, "one\ntwo\nthree\n");
    assert_eq!(stage.output("read_file", json!({"path": "notes//a.md"})).await, "one\ntwo\nthree\n");
    let some = stage.output("read_file", json!({"path": "/notes/a.md", "offset_line": 2, "limit_lines": 1})).await;
    assert_eq!(some, "two\n… 1 of 3 lines are not shown; continue with offset_line 3");
    let done = stage.done("read_file", json!({"path": "/notes/a.md"})).await;
    assert!(done.resources.is_empty() && done.keep.is_empty());
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_in_words() {
    let stage = Stage::with(&[("/a.md", "x")]);
    std::fs::write(stage.host("/bin.dat"), b"\xff\x00").unwrap();
    symlink("a.md", stage.host("/link.md")).unwrap();
    for (path, expected) in [
        ("/none.md", "/none.md: there is nothing at this path."),
        ("/bin.dat", "/bin.dat: the file is not a text file."),
        ("/", "/: this is a folder, not a file."),
        ("/link.md", "/link.md: the path goes through a symbolic link, and links are not followed."),
    ] {
        assert_eq!(stage.failure("read_file", json!({"path": path})).await, expected);
    }
    let climbing = stage.failure("read_file", json!({"path": "/../outside.md"})).await;
    assert!(climbing.contains("is not a valid path"), "{climbing}");
}

#[tokio::test]
async fn a_file_out_of_scope_is_refused_whether_it_is_there_or_not() {
    let stage = Stage::scoped(&garden(), json!({"folders": ["/drafts"], "file_types": ["*.md"]}));
    for tool in ["read_file", "get_file_metadata"] {
        let there = stage.failure(tool, json!({"path": "/private/keys.md"})).await;
        let absent = stage.failure(tool, json!({"path": "/private/none.md"})).await;
        assert_eq!(there.replace("keys", "none"), absent);
        assert!(there.starts_with("Not allowed: ") && !there.contains("needle"), "{there}");
        let hidden = stage.failure(tool, json!({"path": "/drafts/.env"})).await;
        assert!(hidden.starts_with("Not allowed: "), "{hidden}");
        let typed = stage.failure(tool, json!({"path": "/drafts/c.txt"})).await;
        assert!(typed.contains("file type"), "{typed}");
        let untyped = stage.failure(tool, json!({"path": "/drafts/none.txt"})).await;
        assert_eq!(typed.replace("/c.txt", "/none.txt"), untyped);
    }
}

#[tokio::test]
async fn what_a_rule_holds_is_not_found_listed_described_or_copied() {
    const NOTE: &str = "(What standing rules deny or ask about is left out.)";
    let files = [("/a.md", "needle"), ("/secret/pay.md", "needle"), ("/secret/sub/b.md", "needle")];
    for denied in ["*", "read_file"] {
        let mut stage = Stage::with(&files);
        stage.put("/templates/t.md", "held");
        stage.hold(denied, "/secret", "search_content");
        let found = stage.output("search_content", json!({"query": "needle"})).await;
        assert!(found.starts_with("/a.md: ") && found.ends_with(NOTE) && !found.contains("secret"), "{found}");
        let nothing = stage.output("search_content", json!({"query": "nowhere"})).await;
        assert_eq!(nothing, format!("Nothing found.\n{NOTE}"), "the note tells of no hit");
        stage.hold(denied, "/secret", "list_files");
        let listed = stage.output("list_files", json!({"recursive": true})).await;
        assert_eq!(listed, format!("/a.md\n/templates/\n/templates/t.md\n{NOTE}"));
        let refused = stage.failure("get_file_metadata", json!({"path": "/secret/pay.md"})).await;
        assert!(refused.starts_with("Not allowed: of /secret/pay.md a standing rule says: deny"), "{refused}");
        stage.hold(denied, "/templates", "create_file");
        for template in ["t.md", "none.md"] {
            let refused = stage.failure("create_file", json!({"path": "/out.md", "template": template})).await;
            assert!(refused.starts_with("Not allowed: ") && !refused.contains("there are"), "{refused}");
        }
        assert_eq!(stage.get("/out.md"), None);
    }
}

#[tokio::test]
async fn an_agent_that_may_not_read_gets_nothing_from_any_reading_tool() {
    let mut stage = Stage::with(&garden());
    stage.rescope(json!({"folders": ["/"]}), Caps { read: false, ..Caps::ALL });
    assert!(stage.failure("read_file", json!({"path": "/a.md"})).await.contains("can_read"));
    assert!(stage.failure("list_files", json!({})).await.contains("can_read"));
    assert!(stage.failure("get_file_metadata", json!({"path": "/a.md"})).await.contains("can_read"));
    assert_eq!(stage.output("search_content", json!({"query": "needle"})).await, "Nothing found.");
}

#[tokio::test]
async fn wrong_arguments_are_answered_with_the_parameters() {
    let stage = Stage::with(&[]);
    let message = stage.failure("read_file", json!({"file": "/a.md"})).await;
    assert_eq!(
        message,
        "The arguments of read_file do not fit: unknown field `file`, expected one of `path`, `offset_line`, \
         `limit_lines`. Nothing was done.\nParameters of read_file:\n- limit_lines (integer, optional): How many lines \
         to return; without it, as many as fit.\n- offset_line (integer, optional): First line to return, counted from \
         1.\n- path (string, required): Path of the file, from the root of the notebook, for example /notes/today.md."
    );
    for (tool, arguments) in [
        ("list_files", json!({"limit": 501})),
        ("list_files", json!({"pattern": "[a"})),
        ("search_content", json!({"query": "  "})),
        ("search_content", json!({"query": "x", "limit": 51})),
        ("write_file", json!({"path": "/a.md", "content": 7})),
        ("update_file_properties", json!({"path": "/a.md"})),
    ] {
        let message = stage.failure(tool, arguments).await;
        assert!(message.contains(&format!("Parameters of {tool}:")), "{message}");
    }
}

#[tokio::test]
async fn a_listing_shows_one_path_per_line_and_only_what_is_in_scope() {
    let mut stage = Stage::with(&garden());
    symlink(stage.host("/private"), stage.host("/drafts/shortcut")).unwrap();
    assert_eq!(stage.output("list_files", json!({})).await, "/a.md\n/drafts/\n/private/");
    assert_eq!(
        stage.output("list_files", json!({"path": "/drafts"})).await,
        "/drafts/b.md\n/drafts/c.txt\n/drafts/deep/"
    );
    let all =
        "/a.md\n/drafts/\n/private/\n/drafts/b.md\n/drafts/c.txt\n/drafts/deep/\n/drafts/deep/d.md\n/private/keys.md";
    assert_eq!(stage.output("list_files", json!({"recursive": true})).await, all);

    stage.rescope(json!({"folders": ["/drafts/*"], "file_types": ["*.md"]}), Caps::ALL);
    let some = stage.output("list_files", json!({"path": "/drafts", "recursive": true})).await;
    assert_eq!(some, "/drafts/b.md\n/drafts/deep/\n/drafts/deep/d.md");
    assert!(stage.failure("list_files", json!({})).await.starts_with("Not allowed: "));
    assert!(stage.failure("list_files", json!({"path": "/private"})).await.starts_with("Not allowed: "));
    assert!(stage.failure("list_files", json!({"path": "/.git"})).await.contains("sealed"));
}

#[tokio::test]
async fn a_listing_is_filtered_by_pattern_and_says_how_many_more_there_are() {
    let stage = Stage::with(&garden());
    let markdown = stage.output("list_files", json!({"pattern": "*.md", "recursive": true})).await;
    assert_eq!(markdown, "/a.md\n/drafts/b.md\n/drafts/deep/d.md\n/private/keys.md");
    let below = stage.output("list_files", json!({"path": "/drafts", "pattern": "deep/*", "recursive": true})).await;
    assert_eq!(below, "/drafts/deep/d.md");
    let two = stage.output("list_files", json!({"recursive": true, "limit": 2})).await;
    assert_eq!(two, "/a.md\n/drafts/\n… 6 more");
    assert_eq!(stage.output("list_files", json!({"pattern": "*.rs"})).await, "(nothing here)");
    assert!(stage.failure("list_files", json!({"path": "/a.md"})).await.contains("folder"));
    assert!(stage.failure("list_files", json!({"path": "/none"})).await.contains("nothing at this path"));
}

#[tokio::test]
async fn a_search_finds_only_what_the_agent_may_read() {
    let mut stage = Stage::with(&garden());
    symlink("../outside.md", stage.host("/escape.md")).unwrap();
    let all = stage.output("search_content", json!({"query": "needle"})).await;
    let paths: Vec<&str> = all.lines().map(|line| line.split_once(": ").unwrap().0).collect();
    assert_eq!(paths, ["/a.md", "/drafts/b.md", "/drafts/c.txt", "/drafts/deep/d.md", "/private/keys.md"]);
    assert!(all.contains("/drafts/b.md: beta needle here\n"));

    // The index now holds files of a wider reach; another agent must not see them.
    stage.rescope(json!({"folders": ["/drafts"], "file_types": ["*.md"]}), Caps::ALL);
    let some = stage.output("search_content", json!({"query": "needle"})).await;
    assert_eq!(some, "/drafts/b.md: beta needle here\n/drafts/deep/d.md: delta needle");
    assert_eq!(stage.output("search_content", json!({"query": "secret"})).await, "Nothing found.");
    let one = stage.output("search_content", json!({"query": "needle", "limit": 1})).await;
    assert_eq!(one, "/drafts/b.md: beta needle here");
}

#[tokio::test]
async fn enough_hits_are_found_behind_many_that_are_out_of_reach() {
    let names: Vec<String> = (0..300).map(|n| format!("/aaa/{n:03}.md")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "needle")).collect();
    files.push(("/zzz/mine.md", "needle"));
    let mut stage = Stage::with(&files);
    stage.output("search_content", json!({"query": "needle", "limit": 1})).await;
    stage.rescope(json!({"folders": ["/zzz"]}), Caps::ALL);
    let found = stage.output("search_content", json!({"query": "needle", "limit": 2})).await;
    assert_eq!(found, "/zzz/mine.md: needle");
}

#[tokio::test]
async fn a_search_sees_what_changed_appeared_and_went_away() {
    let stage = Stage::with(&[("/a.md", "first"), ("/b.md", "first")]);
    assert_eq!(stage.output("search_content", json!({"query": "first"})).await, "/a.md: first\n/b.md: first");
    stage.put("/a.md", "other");
    stage.put("/c.md", "first");
    std::fs::remove_file(stage.host("/b.md")).unwrap();
    assert_eq!(stage.output("search_content", json!({"query": "first"})).await, "/c.md: first");
    assert_eq!(stage.output("search_content", json!({"query": "OTHER"})).await, "/a.md: other");
}

#[tokio::test]
async fn an_agent_with_less_reach_does_not_clear_the_index_of_others() {
    let mut stage = Stage::with(&garden());
    stage.output("search_content", json!({"query": "needle"})).await;
    stage.rescope(json!({"folders": ["/drafts"]}), Caps::ALL);
    stage.output("search_content", json!({"query": "needle"})).await;
    assert!(stage.world.index.state().await.unwrap().contains_key("/private/keys.md"));
    std::fs::remove_file(stage.host("/drafts/b.md")).unwrap();
    stage.output("search_content", json!({"query": "needle"})).await;
    assert!(!stage.world.index.state().await.unwrap().contains_key("/drafts/b.md"));
}

/// Counts what is handed to the index.
#[derive(Default)]
struct Counting {
    index: MemoryIndex,
    taken: AtomicUsize,
}

#[async_trait]
impl IndexHandle for Counting {
    async fn state(&self) -> Result<BTreeMap<String, Stamp>, HandleError> {
        self.index.state().await
    }
    async fn put(&self, files: Vec<IndexedFile>) -> Result<(), HandleError> {
        self.taken.fetch_add(files.len(), Ordering::Relaxed);
        self.index.put(files).await
    }
    async fn remove(&self, paths: Vec<String>) -> Result<(), HandleError> {
        self.index.remove(paths).await
    }
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, HandleError> {
        self.index.search(query, limit).await
    }
}

#[tokio::test]
async fn a_file_is_read_once_and_again_only_when_it_changed_or_is_too_young_to_tell() {
    let mut stage = Stage::with(&[("/a.md", "needle"), ("/b.md", "needle")]);
    std::fs::write(stage.host("/c.bin"), b"\xff\x00needle").unwrap();
    std::fs::File::create(stage.host("/large.md")).unwrap().set_len(2 * 1024 * 1024).unwrap();
    let counting = Arc::new(Counting::default());
    stage.world.index = Arc::clone(&counting) as Arc<dyn IndexHandle>;
    let mut search = async |now| {
        stage.world.now = now;
        stage.output("search_content", json!({"query": "needle"})).await;
        counting.taken.swap(0, Ordering::Relaxed)
    };
    // To a clock that stands before the files were written, they may still change unseen.
    assert_eq!(search("2000-01-01T00:00:00Z".parse().unwrap()).await, 4);
    assert_eq!(search(far_future()).await, 4);
    assert_eq!(search(far_future()).await, 0);
}

/// An index that takes its time: the clock has moved on when it answers.
#[derive(Default)]
struct Slow(MemoryIndex);

#[async_trait]
impl IndexHandle for Slow {
    async fn state(&self) -> Result<BTreeMap<String, Stamp>, HandleError> {
        tokio::time::advance(crate::limits::INDEX_TIME).await;
        self.0.state().await
    }
    async fn put(&self, files: Vec<IndexedFile>) -> Result<(), HandleError> {
        self.0.put(files).await
    }
    async fn remove(&self, paths: Vec<String>) -> Result<(), HandleError> {
        self.0.remove(paths).await
    }
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, HandleError> {
        self.0.search(query, limit).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_that_ran_out_of_time_says_that_the_index_is_behind() {
    let mut stage = Stage::with(&[("/a.md", "needle")]);
    stage.world.index = Arc::new(Slow::default());
    let found = stage.output("search_content", json!({"query": "needle"})).await;
    assert!(found.starts_with("Nothing found.\n(The index is behind"), "{found}");
}

#[tokio::test]
async fn metadata_tells_what_is_known_of_a_file() {
    let stage = Stage::with(&[
        ("/a.md", "---\ntitle: T\ntags: [x, y]\n---\nthree more words\n"),
        ("/bad.md", "---\na: [\n---\n"),
    ]);
    let text = stage.output("get_file_metadata", json!({"path": "/a.md"})).await;
    let mut facts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let modified = facts["modified"].take();
    assert!(modified.as_str().unwrap().ends_with('Z'));
    let hash = adjutant_core::content::Hash::of(stage.get("/a.md").unwrap().as_bytes()).to_string();
    let expected = json!({
        "path": "/a.md", "kind": "file", "modified": null, "size": 47, "hash": hash, "lines": 5, "words": 10,
        "properties": {"title": "T", "tags": ["x", "y"]},
    });
    assert_eq!(facts, expected);
    let broken = stage.output("get_file_metadata", json!({"path": "/bad.md"})).await;
    assert!(broken.contains("the front matter is malformed"), "{broken}");
    let folder = stage.output("get_file_metadata", json!({"path": "/"})).await;
    assert!(folder.contains("\"kind\": \"folder\"") && !folder.contains("size"), "{folder}");
    std::fs::File::create(stage.host("/large.bin")).unwrap().set_len(5 * 1024 * 1024).unwrap();
    let large = stage.output("get_file_metadata", json!({"path": "/large.bin"})).await;
    assert!(large.contains("\"size\": 5242880") && large.contains("more than"), "{large}");
}

#[tokio::test]
async fn a_run_without_a_notebook_has_no_files() {
    let mut stage = Stage::with(&[]);
    stage.world.notebook = None;
    for (tool, arguments) in [
        ("read_file", json!({"path": "/a.md"})),
        ("list_files", json!({})),
        ("search_content", json!({"query": "x"})),
        ("write_file", json!({"path": "/a.md", "content": "x"})),
    ] {
        assert_eq!(stage.failure(tool, arguments).await, "This run has no notebook, so there are no files.");
    }
}
