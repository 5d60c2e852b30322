//! The changing tools, as the engine calls them: bound to what was looked at, kept for undo, recognised after a crash.

use std::os::unix::fs::symlink;

use adjutant_core::content::Hash;
use adjutant_core::guard::scope::Caps;
use adjutant_core::tool::{Probe, ResourceAction, ToolOutcome};
use serde_json::{Value, json};

use crate::notebook::folder_hash;
use crate::testing::{Stage, message};

#[tokio::test]
async fn a_write_is_shown_first_and_then_does_what_was_shown() {
    let stage = Stage::with(&[("/todo.md", "# Todo\n- milk\n- tea\n")]);
    let arguments = json!({"path": "/todo.md", "content": "# Todo\n- milk\n- bread\n- jam\n"});
    let prepared = stage.prepare("write_file", arguments.clone()).await.unwrap();
    assert_eq!(prepared.summary, "write_file /todo.md +2 −1");
    assert_eq!(
        prepared.diff.as_deref(),
        Some("--- /todo.md\n+++ /todo.md\n@@ -1,3 +1,4 @@\n # Todo\n - milk\n-- tea\n+- bread\n+- jam\n")
    );
    assert_eq!(stage.get("/todo.md").unwrap(), "# Todo\n- milk\n- tea\n", "looking changes nothing");
    assert_eq!(prepared.target.0["/todo.md"], Some(Hash::of(b"# Todo\n- milk\n- tea\n")));

    let ToolOutcome::Done(done) = stage.run("write_file", arguments, &prepared).await else { panic!() };
    assert_eq!(done.output, "Wrote /todo.md (4 lines, 28 bytes).");
    assert_eq!(stage.get("/todo.md").unwrap(), "# Todo\n- milk\n- bread\n- jam\n");
    let resource = &done.resources[0];
    assert_eq!((resource.kind.as_str(), resource.path.as_str()), ("file", "/todo.md"));
    assert_eq!((resource.action, resource.undoable), (ResourceAction::Changed, true));
    assert_eq!(
        (resource.before, resource.after),
        (prepared.target.0["/todo.md"], prepared.intended.unwrap().0["/todo.md"])
    );
    assert_eq!(done.keep, [b"# Todo\n- milk\n- tea\n".to_vec()]);
    assert_eq!(resource.before, Some(Hash::of(&done.keep[0])));
}

#[tokio::test]
async fn a_write_to_a_file_that_is_not_there_creates_it() {
    let stage = Stage::with(&[]);
    let arguments = json!({"path": "/x/new.md", "content": "one\n"});
    let prepared = stage.prepare("write_file", arguments.clone()).await.unwrap();
    assert_eq!((prepared.summary.as_str(), prepared.target.0["/x/new.md"]), ("write_file /x/new.md +1", None));
    assert_eq!(prepared.diff.as_deref(), Some("--- /dev/null\n+++ /x/new.md\n@@ -0,0 +1 @@\n+one\n"));
    let ToolOutcome::Done(done) = stage.run("write_file", arguments, &prepared).await else { panic!() };
    assert_eq!(done.output, "Created /x/new.md (1 line, 4 bytes).");
    assert_eq!((done.resources[0].action, done.resources[0].before), (ResourceAction::Created, None));
    assert!(done.keep.is_empty() && done.resources[0].undoable);
}

#[tokio::test]
async fn writing_what_is_already_there_changes_nothing() {
    let stage = Stage::with(&[("/a.md", "same")]);
    let done = stage.done("write_file", json!({"path": "/a.md", "content": "same"})).await;
    assert_eq!(done.output, "/a.md already has this content; nothing was changed.");
    assert!(done.resources.is_empty() && done.keep.is_empty());
}

#[tokio::test]
async fn properties_given_to_a_write_are_merged_into_the_front_matter() {
    let stage = Stage::with(&[("/a.md", "---\n# mine\nstatus: draft\ntags: [x]\n---\nOld body\n")]);
    stage.done("write_file", json!({"path": "/a.md", "content": "New body\n", "properties": {"status": "done"}})).await;
    assert_eq!(stage.get("/a.md").unwrap(), "---\n# mine\nstatus: done\ntags: [x]\n---\nNew body\n");
    let own = "---\ntitle: Own\n---\nBody\n";
    stage.done("write_file", json!({"path": "/a.md", "content": own, "properties": {"status": "new"}})).await;
    assert_eq!(stage.get("/a.md").unwrap(), "---\ntitle: Own\nstatus: new\n---\nBody\n");
    stage.done("write_file", json!({"path": "/a.md", "content": "plain"})).await;
    assert_eq!(stage.get("/a.md").unwrap(), "plain");
}

#[tokio::test]
async fn a_file_that_changed_after_the_look_is_left_alone() {
    for (tool, arguments) in every_change() {
        let stage = Stage::with(&[("/a.md", "---\nk: 1\n---\nseen\n")]);
        let prepared = stage.prepare(tool, arguments.clone()).await.unwrap();
        let path = arguments["path"].as_str().unwrap();
        stage.put(path, "a person wrote this");
        let message = message(stage.run(tool, arguments.clone(), &prepared).await);
        let taken = format!("Not allowed: {path} is already there and is not overwritten.");
        let changed = format!("{path} changed since it was looked at, nothing was written. Read it again.");
        assert_eq!(message, if tool == "create_file" { taken } else { changed }, "{tool}");
        assert_eq!(stage.get(path).unwrap(), "a person wrote this");
    }
}

/// Each changing tool on a notebook that holds `/a.md` and no `/new.md`.
fn every_change() -> [(&'static str, Value); 4] {
    [
        ("write_file", json!({"path": "/a.md", "content": "written\n"})),
        ("create_file", json!({"path": "/new.md", "content": "created\n"})),
        ("delete_file", json!({"path": "/a.md"})),
        ("update_file_properties", json!({"path": "/a.md", "set": {"k": 2}})),
    ]
}

#[tokio::test]
async fn after_a_crash_a_change_is_known_to_have_happened_or_not_or_is_in_doubt() {
    for (tool, arguments) in every_change() {
        let stage = Stage::with(&[("/a.md", "---\nk: 1\n---\nseen\n")]);
        let prepared = stage.prepare(tool, arguments.clone()).await.unwrap();
        assert_eq!(stage.reconcile(tool, arguments.clone(), &prepared).await, Probe::NotHappened, "{tool}");

        let ToolOutcome::Done(run) = stage.run(tool, arguments.clone(), &prepared).await else { panic!("{tool}") };
        let Probe::Happened(ToolOutcome::Done(found)) = stage.reconcile(tool, arguments.clone(), &prepared).await
        else {
            panic!("{tool}")
        };
        assert_eq!(found.output, run.output);
        let (found, run) = (&found.resources[0], &run.resources[0]);
        assert_eq!((found.before, found.after, found.action), (run.before, run.after, run.action));
        assert!(found.undoable, "what was there before was kept before the change began");

        stage.put(arguments["path"].as_str().unwrap(), "something else");
        assert_eq!(stage.reconcile(tool, arguments, &prepared).await, Probe::Unknown, "{tool}");
    }
}

#[tokio::test]
async fn a_probe_that_cannot_look_does_not_guess() {
    let mut stage = Stage::with(&[("/a.md", "x")]);
    let arguments = json!({"path": "/a.md", "content": "y"});
    let prepared = stage.prepare("write_file", arguments.clone()).await.unwrap();
    std::fs::remove_file(stage.host("/a.md")).unwrap();
    symlink("elsewhere", stage.host("/a.md")).unwrap();
    assert_eq!(stage.reconcile("write_file", arguments.clone(), &prepared).await, Probe::Unknown);
    stage.world.notebook = None;
    assert_eq!(stage.reconcile("write_file", arguments, &prepared).await, Probe::Unknown);
}

#[tokio::test]
async fn creating_never_overwrites() {
    let stage = Stage::with(&[("/a.md", "old"), ("/folder/x", "")]);
    for path in ["/a.md", "/folder"] {
        let message = stage.failure("create_file", json!({"path": path, "content": "new"})).await;
        assert!(message.contains("already there"), "{message}");
    }
    symlink("missing", stage.host("/dangling.md")).unwrap();
    let message = stage.failure("create_file", json!({"path": "/dangling.md"})).await;
    assert!(message.contains("symbolic link"), "{message}");
    assert_eq!(stage.get("/a.md").unwrap(), "old");
}

#[tokio::test]
async fn a_template_is_filled_in_and_followed_by_the_content() {
    let stage = Stage::with(&[("/templates/daily.md", "---\ndate: {{date}}\n---\n# {{title}}")]);
    let arguments = json!({
        "path": "/log/Friday.md", "template": "daily.md", "content": "Notes\n", "properties": {"mood": "good"},
    });
    let prepared = stage.prepare("create_file", arguments.clone()).await.unwrap();
    assert_eq!(prepared.summary, "create_file /log/Friday.md +6");
    stage.run("create_file", arguments, &prepared).await;
    assert_eq!(stage.get("/log/Friday.md").unwrap(), "---\ndate: 2026-01-30\nmood: good\n---\n# Friday\nNotes\n");
}

#[tokio::test]
async fn a_template_is_read_only_where_the_agent_may_read() {
    let files = [("/templates/daily.md", "needle"), ("/templates/other.md", "")];
    let mut stage = Stage::with(&files);
    let missing = stage.failure("create_file", json!({"path": "/a.md", "template": "none.md"})).await;
    assert!(missing.contains("there are: daily.md, other.md"), "{missing}");
    for name in ["../outside.md", "a/b.md", "..", ""] {
        let message = stage.failure("create_file", json!({"path": "/a.md", "template": name})).await;
        assert!(message.contains("is not the name of a template"), "{message}");
    }
    stage.rescope(json!({"folders": ["/drafts"]}), Caps::ALL);
    let message = stage.failure("create_file", json!({"path": "/drafts/a.md", "template": "daily.md"})).await;
    assert!(message.starts_with("Not allowed: /templates/daily.md"), "{message}");
    stage.rescope(json!({"folders": ["/"]}), Caps { read: false, ..Caps::ALL });
    let message = stage.failure("create_file", json!({"path": "/drafts/a.md", "template": "daily.md"})).await;
    assert!(message.contains("can_read") && stage.get("/drafts/a.md").is_none(), "{message}");
}

#[tokio::test]
async fn a_deleted_file_is_shown_and_kept() {
    let stage = Stage::with(&[("/a.md", "one\ntwo\n")]);
    let prepared = stage.prepare("delete_file", json!({"path": "/a.md"})).await.unwrap();
    assert_eq!(prepared.summary, "delete_file /a.md −2");
    assert_eq!(prepared.diff.as_deref(), Some("--- /a.md\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"));
    let done = stage.done("delete_file", json!({"path": "/a.md"})).await;
    assert_eq!((done.output.as_str(), stage.get("/a.md")), ("Deleted /a.md.", None));
    assert_eq!((done.resources[0].action, done.resources[0].after), (ResourceAction::Deleted, None));
    assert_eq!(done.keep, [b"one\ntwo\n".to_vec()]);
    let again = stage.failure("delete_file", json!({"path": "/a.md"})).await;
    assert_eq!(again, "/a.md: there is nothing at this path.");
}

#[tokio::test]
async fn only_an_empty_folder_is_deleted_and_never_where_types_are_restricted() {
    let mut stage = Stage::with(&[("/full/a.md", "x")]);
    std::fs::create_dir(stage.host("/empty")).unwrap();
    assert_eq!(stage.failure("delete_file", json!({"path": "/full"})).await, "/full: the folder is not empty.");
    assert!(stage.failure("delete_file", json!({"path": "/"})).await.contains("root"));
    let prepared = stage.prepare("delete_file", json!({"path": "/empty"})).await.unwrap();
    assert_eq!(prepared.summary, "delete_file /empty/ (an empty folder)");
    assert_eq!(prepared.target.0["/empty"], Some(folder_hash()));
    stage.rescope(json!({"folders": ["/"], "file_types": ["*"]}), Caps::ALL);
    assert!(stage.failure("delete_file", json!({"path": "/empty"})).await.contains("file types"));
    stage.rescope(json!({"folders": ["/"]}), Caps::ALL);
    assert_eq!(stage.output("delete_file", json!({"path": "/empty"})).await, "Deleted /empty/.");
    assert!(!stage.host("/empty").exists() && stage.host("/full/a.md").exists());
}

#[tokio::test]
async fn properties_are_updated_without_touching_the_rest() {
    let note = "---\r\ntitle: Old # keep\r\nstatus: draft\r\n---\r\nBody\r\n";
    let stage = Stage::with(&[("/a.md", note), ("/bad.md", "---\na: [\n---\nBody\n"), ("/plain.md", "Body")]);
    let arguments = json!({"path": "/a.md", "set": {"title": "New"}, "remove": ["status"]});
    let prepared = stage.prepare("update_file_properties", arguments.clone()).await.unwrap();
    assert_eq!(prepared.summary, "update_file_properties /a.md +1 −2");
    stage.run("update_file_properties", arguments, &prepared).await;
    assert_eq!(stage.get("/a.md").unwrap(), "---\r\ntitle: New # keep\r\n---\r\nBody\r\n");
    stage.done("update_file_properties", json!({"path": "/plain.md", "set": {"a": [1, "b"]}})).await;
    assert_eq!(stage.get("/plain.md").unwrap(), "---\na: [1, b]\n---\nBody");
    let bad = stage.failure("update_file_properties", json!({"path": "/bad.md", "set": {"b": 1}})).await;
    assert!(
        bad.starts_with("/bad.md: the front matter is malformed: ") && bad.ends_with("Nothing was changed."),
        "{bad}"
    );
    assert_eq!(stage.get("/bad.md").unwrap(), "---\na: [\n---\nBody\n");
    let absent = stage.failure("update_file_properties", json!({"path": "/none.md", "set": {"b": 1}})).await;
    assert_eq!(absent, "/none.md: there is nothing at this path.");
}

#[tokio::test]
async fn a_change_out_of_scope_is_refused_before_anything_is_looked_at() {
    let files = [("/private/a.md", "secret"), ("/drafts/a.md", ""), ("/drafts/.env", ""), ("/.vscode/x.md", "")];
    let stage = Stage::scoped(&files, json!({"folders": ["/drafts", "/.vscode"], "file_types": ["*.md"]}));
    for path in
        ["/private/a.md", "/private/none.md", "/drafts/.env", "/drafts/b.txt", "/.vscode/x.md", "/drafts/.git/a.md"]
    {
        for (tool, mut arguments) in every_change() {
            arguments["path"] = json!(path);
            let message = stage.failure(tool, arguments).await;
            assert!(message.starts_with("Not allowed: ") && !message.contains("secret"), "{tool} {message}");
        }
    }
    assert_eq!(stage.get("/private/a.md").unwrap(), "secret");
}

#[tokio::test]
async fn each_capability_allows_its_own_change_only() {
    let mut stage = Stage::with(&[("/a.md", "---\nk: 1\n---\n")]);
    let new = json!({"path": "/new.md", "content": "x"});
    stage.rescope(json!({"folders": ["/"]}), Caps { write: true, ..Caps::NONE });
    assert!(stage.failure("write_file", new.clone()).await.contains("can_create"));
    assert!(stage.failure("create_file", new.clone()).await.contains("can_create"));
    assert!(stage.failure("delete_file", json!({"path": "/a.md"})).await.contains("can_delete"));
    stage.done("update_file_properties", json!({"path": "/a.md", "set": {"k": 2}})).await;
    stage.rescope(json!({"folders": ["/"]}), Caps { create: true, ..Caps::NONE });
    stage.done("write_file", new).await;
    assert!(stage.failure("write_file", json!({"path": "/a.md", "content": "x"})).await.contains("can_write"));
    assert_eq!(stage.get("/a.md").unwrap(), "---\nk: 2\n---\n");
}

#[tokio::test]
async fn a_permit_for_another_file_opens_nothing() {
    let stage = Stage::with(&[("/a.md", "x"), ("/b.md", "x")]);
    let other = stage.prepare("write_file", json!({"path": "/b.md", "content": "y"})).await.unwrap();
    let outcome = stage.run("write_file", json!({"path": "/a.md", "content": "y"}), &other).await;
    assert!(message(outcome).contains("changed since it was looked at"));
    assert_eq!(stage.get("/a.md").unwrap(), "x");
}

#[tokio::test]
async fn text_with_a_nul_is_not_written() {
    let stage = Stage::with(&[]);
    for tool in ["write_file", "create_file"] {
        let message = stage.failure(tool, json!({"path": "/a.md", "content": "a\u{0}b"})).await;
        assert!(message.contains("NUL"), "{message}");
    }
    assert_eq!(stage.get("/a.md"), None);
}
