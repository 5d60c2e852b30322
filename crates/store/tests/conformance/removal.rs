//! Taking away notebooks and workspaces: what goes, what stays, and that nothing starts where something is being taken away.

use adjutant_core::content::Hash;
use adjutant_core::id::{NotebookId, WorkspaceId};
use adjutant_core::run::chain::{Head, StreamId};
use adjutant_store::row::{
    Append, AuditFilter, AuditRow, ChatFilter, Doing, IndexedFile, MarkRow, RunChange, RunFilter, RunState,
    WorkspaceRow,
};
use adjutant_store::{Durability, Sealing, Store, StoreError};

use crate::fixture::*;
use crate::world::World;

/// Takes a notebook away.
async fn remove(store: &Store, home: &Home, notebook: NotebookId) -> Result<Head, StoreError> {
    act(store, home.workspace, |append| append.doing = Some(Doing::RemoveNotebook(notebook))).await
}

/// Takes a workspace away, recorded in the log of the instance.
async fn close(store: &Store, workspace: WorkspaceId) -> Result<Head, StoreError> {
    let head = store.head(workspace, StreamId::System).await?;
    let doing = Some(Doing::CloseWorkspace(workspace));
    store.append(Append { doing, ..add(workspace, StreamId::System, head, &["taken away"]) }).await
}

/// Ends a run.
async fn end(store: &Store, run: &mut Run) {
    let ended = RunState { ended_at: Some(at(9)), due: None, ..state("COMPLETED", None) };
    let over = Some(RunChange::Update { state: ended, release: true });
    run.head = store.append(Append { run: over, ..run.say(&["over"]) }).await.unwrap();
}

/// Puts something into every corner of a workspace.
async fn furnish(store: &Store, home: &Home, text: &str) {
    save_agent(store, &agent_row(home, "guide"), 0).await.unwrap();
    add_rule(store, &rule(home)).await.unwrap();
    home.keep(store, "key", &plain(text)).await;
    let file = IndexedFile { path: "/a.md".into(), size: 1, modified: 1, text: text.into() };
    store.index_put(home.workspace, home.notebook, vec![file]).await.unwrap();
    store.put_blocks(home.workspace, vec![block(text)]).await.unwrap();
    let said = |append: &mut Append| {
        append.blocks.push(block(&format!("{text}, at length")));
        append.marks.push(MarkRow { notebook: home.notebook, path: "/a.md".into(), hash: Hash::of(b"a") });
        append.audit.push(AuditRow {
            stream: append.stream,
            seq: append.expected.seq + 1,
            time: at(2),
            kind: "setting_changed".into(),
            actor: None,
            agent: None,
            run: None,
            tool: None,
            target: Some(text.into()),
            verdict: None,
            is_error: false,
        });
    };
    act(store, home.workspace, said).await.unwrap();
}

/// How much of it is found.
async fn found(store: &Store, home: &Home, text: &str) -> [usize; 7] {
    let Home { workspace, agent, notebook, .. } = *home;
    [
        store.agents(workspace).await.unwrap().len(),
        store.rules(workspace).await.unwrap().len(),
        // Where the key is gone there is nothing to open it with.
        store.kv_list(workspace, agent, "", 9).await.map_or(0, |found| found.len()),
        store.search(workspace, notebook, text, 9).await.unwrap().len(),
        store.marks(workspace, notebook, "/").await.unwrap().len(),
        store.blocks(workspace, &[block(text).hash]).await.unwrap().len(),
        store.audit(Some(workspace), &AuditFilter::default(), 9).await.unwrap().len(),
    ]
}

stories! {
    async fn a_notebook_goes_with_what_is_known_of_its_files_once_no_run_works_on_it(world: &World) {
        let store = &world.store;
        let (home, elsewhere) = (Home::new(store).await, Home::new(store).await);
        for home in [&home, &elsewhere] {
            furnish(store, home, "planted").await;
        }
        let mut run = home.started(store).await;
        let before = store.head(home.workspace, StreamId::Workspace(home.workspace)).await.unwrap();
        assert!(matches!(remove(store, &home, home.notebook).await, Err(StoreError::Conflict(_))));
        assert_eq!(store.head(home.workspace, StreamId::Workspace(home.workspace)).await.unwrap(), before);
        assert_eq!(found(store, &home, "planted").await, [1; 7], "nothing was changed");
        assert!(store.notebook(home.workspace, home.notebook).await.unwrap().is_some());
        end(store, &mut run).await;
        remove(store, &home, home.notebook).await.unwrap();
        assert_eq!(found(store, &home, "planted").await, [1, 1, 1, 0, 0, 1, 1]);
        assert_eq!(store.notebook(home.workspace, home.notebook).await.unwrap(), None);
        assert!(matches!(remove(store, &home, home.notebook).await, Err(StoreError::NotFound)));
        assert!(is_stale(&store.append(home.start(None)).await), "no run starts on it");
        assert_eq!(store.chat(home.workspace, home.chat).await.unwrap().unwrap().tip, None);
        assert_eq!(run.texts(store).await, ["run started", "over"], "what was said stays");
        assert_eq!(found(store, &elsewhere, "planted").await, [1; 7], "another workspace is untouched");
        assert!(store.append(elsewhere.start(None)).await.is_ok());
    }

    async fn a_workspace_goes_with_all_that_is_in_it_once_its_runs_have_ended_and_are_erased(world: &World) {
        let store = &world.store;
        let (home, elsewhere) = (Home::new(store).await, Home::new(store).await);
        for home in [&home, &elsewhere] {
            furnish(store, home, "planted").await;
        }
        let mut run = home.started(store).await;
        let refused = async |why: &str| {
            let before = store.head(home.workspace, StreamId::System).await.unwrap();
            assert!(matches!(close(store, home.workspace).await, Err(StoreError::Conflict(_))), "{why}");
            assert_eq!(store.head(home.workspace, StreamId::System).await.unwrap(), before, "{why}");
            assert_eq!(found(store, &home, "planted").await, [1; 7], "{why}");
        };
        refused("a run goes on").await;
        end(store, &mut run).await;
        refused("what was said is not erased").await;
        assert!(matches!(store.sweep_workspace(home.workspace).await, Err(StoreError::Conflict(_))), "it is there");
        store.erase_bodies(home.workspace, run.stream()).await.unwrap();
        close(store, home.workspace).await.unwrap();
        store.sweep_workspace(home.workspace).await.unwrap();
        store.sweep_workspace(home.workspace).await.unwrap();
        assert_eq!(found(store, &home, "planted").await, [0; 7]);
        assert!(store.chats(home.workspace, &ChatFilter::default(), 9).await.unwrap_or_default().is_empty());
        assert_eq!(store.workspace(home.workspace).await.unwrap(), None);
        assert!(matches!(close(store, home.workspace).await, Err(StoreError::NotFound)));
        assert!(store.append(home.start(None)).await.is_err(), "no run starts in it");
        assert!(act(store, home.workspace, |_| {}).await.is_err(), "nothing is recorded in it");
        let again = WorkspaceRow { id: workspace_id(), ..workspace_row(home.workspace) };
        store.create_workspace(&again).await.unwrap();
        assert_eq!(store.workspace_by_slug(&again.slug).await.unwrap(), Some(again), "its name is free");

        for log in [run.stream(), StreamId::Workspace(home.workspace)] {
            let entries = store.events(home.workspace, log, 0, 99).await.unwrap();
            let head = entries.iter().try_fold(Head::START, |head, entry| entry.follows(head)).unwrap();
            assert_eq!(head, store.head(home.workspace, log).await.unwrap(), "the chain of {log} stays");
            assert!(entries.iter().all(|entry| entry.body.is_none()), "and nothing is said in it");
        }
        let runs = store.runs(home.workspace, &RunFilter { superseded: true, ..RunFilter::default() }, 9).await.unwrap();
        assert_eq!(runs.iter().map(|row| row.id).collect::<Vec<_>>(), [run.id]);
        assert_eq!(found(store, &elsewhere, "planted").await, [1; 7], "another workspace is untouched");
        assert!(store.append(elsewhere.start(None)).await.is_ok());
    }

    async fn nothing_starts_on_a_notebook_while_it_is_taken_away(world: &World) {
        let other = world.another().await;
        for _ in 0..8 {
            let home = Home::new(&world.store).await;
            let (mut started, mut removed) = (Err(StoreError::NotFound), Err(StoreError::NotFound));
            let starting = async { started = other.append(home.start(None)).await };
            let removing = async { removed = remove(&world.store, &home, home.notebook).await };
            futures::future::join(starting, removing).await;
            assert_ne!(started.is_ok(), removed.is_ok(), "{started:?} {removed:?}");
        }
    }
}

database_stories! {
    async fn a_workspace_takes_its_data_key_along_and_the_others_open_as_before(world: &World) {
        let store = &world.store;
        let (home, elsewhere) = (Home::new(store).await, Home::new(store).await);
        let kept = elsewhere.started(store).await;
        let other = world.another().await;
        other.put_blocks(home.workspace, vec![block("x")]).await.unwrap();
        let keys = format!("SELECT count(*) FROM data_keys WHERE workspace = '{}'", home.workspace);
        assert_eq!(world.number(&keys).await, 1);
        close(store, home.workspace).await.unwrap();
        assert_eq!(world.number(&keys).await, 0);
        assert!(matches!(store.put_blocks(home.workspace, vec![block("x")]).await, Err(StoreError::NotFound)));
        other.forget_key(home.workspace);
        assert!(matches!(other.put_blocks(home.workspace, vec![block("x")]).await, Err(StoreError::NotFound)));
        assert_eq!(kept.texts(&other).await, ["run started"]);
        let master = adjutant_store::MasterKey::new([7; 32]);
        assert_eq!(store.rewrap(&master).await.unwrap().count(), 2, "the instance's own and that of the other workspace");
    }
}

postgres_stories! {
    async fn a_start_waits_for_a_notebook_that_is_being_taken_away_and_does_not_happen(world: &World) {
        let (home, store) = (Home::new(&world.store).await, &world.store);
        // Another node is about to commit: it has its turn, and the notebook is still seen.
        let mut other = world.connection().await;
        for sql in [
            "BEGIN".to_owned(),
            "SELECT pg_advisory_xact_lock(4703912)".to_owned(),
            format!("DELETE FROM notebooks WHERE id = '{}'", home.notebook),
        ] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut other).await.unwrap();
        }
        let started = tokio::spawn({
            let (store, append) = (store.clone(), home.start(None));
            async move { store.append(append).await }
        });
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 4703912 \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        while world.number(waiting).await == 0 {
            assert!(!started.is_finished(), "it did not wait");
        }
        sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
        assert!(is_stale(&started.await.unwrap()));
        let runs = store.runs(home.workspace, &RunFilter { superseded: true, ..RunFilter::default() }, 9).await.unwrap();
        assert!(runs.is_empty(), "what was refused left nothing");
    }
}

/// How often something is in the files of a directory.
fn seen(dir: &std::path::Path, what: &[u8]) -> usize {
    let files = std::fs::read_dir(dir).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.map(|bytes| bytes.windows(what.len()).filter(|part| *part == what).count()).sum()
}

#[tokio::test]
async fn nothing_of_a_workspace_that_was_taken_away_is_left_in_the_raw_file() {
    // One text that lies within a page, one that fills many; and one word of the search index.
    let (short, word) = ("canary-in-a-page", "canarybird");
    let long = format!("{word} ") + &"canary-over-many-pages ".repeat(2000);
    for sealing in [Sealing::Off, crate::world::sealed()] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.db");
        let is_sealed = matches!(sealing, Sealing::On(_));
        let store = Store::open_sqlite(&file, Durability::Normal, sealing).await.unwrap();
        let (home, elsewhere) = (Home::new(&store).await, Home::new(&store).await);
        furnish(&store, &elsewhere, "somebody else's").await;
        furnish(&store, &home, short).await;
        let file_row =
            |path: &str, text: &str| IndexedFile { path: path.into(), size: 1, modified: 1, text: text.into() };
        store.index_put(home.workspace, home.notebook, vec![file_row("/b.md", &long)]).await.unwrap();
        home.keep(&store, "long", &plain(&long)).await;
        act(&store, home.workspace, |append| append.blocks.push(block(&long))).await.unwrap();
        let key = format!("SELECT wrapped FROM data_keys WHERE workspace = '{}'", home.workspace);
        let reader = rusqlite::Connection::open(&file).unwrap();
        let key: Option<Vec<u8>> = reader.query_row(&key, [], |row| row.get(0)).ok();
        drop(reader);
        assert_eq!(key.is_some(), is_sealed);
        let mut run = home.started(&store).await;
        run.said(&store, &[short, &long]).await.unwrap();
        end(&store, &mut run).await;
        let planted = || [short, word, "canary-over-many-pages"].map(|text| seen(dir.path(), text.as_bytes()));
        assert!(planted().iter().all(|count| *count > 0), "we would see it");
        assert!(key.as_ref().is_none_or(|key| seen(dir.path(), key) > 0));
        store.erase_bodies(home.workspace, run.stream()).await.unwrap();
        close(&store, home.workspace).await.unwrap();
        store.sweep_workspace(home.workspace).await.unwrap();
        assert_eq!(planted(), [0; 3], "while it is open");
        assert!(key.as_ref().is_none_or(|key| seen(dir.path(), key) == 0));
        store.close().await;
        assert_eq!(planted(), [0; 3], "once it is closed");
        assert!(key.as_ref().is_none_or(|key| seen(dir.path(), key) == 0));
        assert!(seen(dir.path(), b"somebody else's") > 0);
    }
}
