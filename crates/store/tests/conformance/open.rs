//! Opening a database: the right key, the right schema, and nothing readable on the disk.

use adjutant_core::run::chain::StreamId;
use adjutant_store::row::Change;
use adjutant_store::{Durability, MasterKey, Sealing, Store, StoreError};

use crate::fixture::*;
use crate::world::{World, sealed};

const CANARY: &str = "canary-7f3a-in-the-coal-mine";

/// Writes a canary into everything that is to be sealed.
async fn sing(store: &Store) -> Run {
    let home = Home::new(store).await;
    let mut run = home.started(store).await;
    let mut append = run.say(&[CANARY]);
    append.blocks = vec![block(CANARY)];
    append.approvals =
        vec![adjutant_store::row::ApprovalRow { card: CANARY.into(), ..approval(&home, run.id, "pending") }];
    append.run = Some(adjutant_store::row::RunChange::Update {
        state: adjutant_store::row::RunState { summary: CANARY.into(), ..state("RUNNING", None) },
        release: false,
    });
    run.head = store.append(append).await.unwrap();
    let audit = add(home.workspace, StreamId::System, adjutant_core::run::chain::Head::START, &[CANARY]);
    store.append(audit).await.unwrap();
    let owner = home.driven(store).await;
    store.kv_set(home.workspace, home.agent, "key", &plain(CANARY), owner).await.unwrap();
    store.leave(owner.node).await.unwrap();
    add_rule(store, &adjutant_store::row::RuleRow { body: CANARY.into(), ..rule(&home) }).await.unwrap();
    store.meta_set("secret", CANARY.as_bytes()).await.unwrap();
    let chat = store.chat(home.workspace, home.chat).await.unwrap().unwrap();
    let chat =
        adjutant_store::row::ChatRow { id: chat_id(), title: CANARY.into(), metadata: Some(CANARY.into()), ..chat };
    store.create_chat(&chat).await.unwrap();
    run
}

/// How often the canary is in the files of a directory.
fn heard(dir: &std::path::Path) -> usize {
    let files = std::fs::read_dir(dir).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.map(|bytes| bytes.windows(CANARY.len()).filter(|part| *part == CANARY.as_bytes()).count()).sum()
}

#[tokio::test]
async fn sealed_content_is_not_in_the_raw_files() {
    for (sealing, found) in [(sealed(), false), (Sealing::Off, true)] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_sqlite(&dir.path().join("a.db"), Durability::Normal, sealing).await.unwrap();
        let run = sing(&store).await;
        assert_eq!(heard(dir.path()) > 0, found, "while it is open");
        assert_eq!(run.texts(&store).await, ["run started", CANARY]);
        store.close().await;
        assert_eq!(heard(dir.path()) > 0, found, "once it is closed; the plain one proves that we would hear it");
    }
}

#[tokio::test]
async fn the_database_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(&dir.path().join("a.db"), Durability::Full, sealed()).await.unwrap();
    Home::new(&store).await;
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
    }
    store.close().await;
}

#[tokio::test]
async fn a_file_that_is_no_database_of_ours_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    std::fs::write(&text, "This is a letter and not a database. ".repeat(100)).unwrap();
    let opened = Store::open_sqlite(&text, Durability::Full, sealed()).await;
    assert!(matches!(opened.as_ref().err(), Some(StoreError::Corrupt(_))), "{:?}", opened.err());

    let other = dir.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let opened = Store::open_sqlite(&other, Durability::Full, sealed()).await;
    assert!(matches!(opened.as_ref().err(), Some(StoreError::Corrupt(_))), "{:?}", opened.err());

    let nowhere = dir.path().join("no/such/directory/a.db");
    assert!(matches!(Store::open_sqlite(&nowhere, Durability::Full, sealed()).await.err(), Some(StoreError::Other(_))));
}

#[tokio::test]
async fn a_damaged_page_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.db");
    let store = Store::open_sqlite(&file, Durability::Full, sealed()).await.unwrap();
    let home = Home::new(&store).await;
    let mut run = home.started(&store).await;
    for _ in 0..50 {
        run.said(&store, &["x".repeat(2000).as_str()]).await.unwrap();
    }
    store.check_integrity().await.unwrap();
    store.close().await;
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..].fill(0xff);
    std::fs::write(&file, bytes).unwrap();
    let found = match Store::open_sqlite(&file, Durability::Full, sealed()).await {
        Ok(store) => store.check_integrity().await,
        Err(error) => Err(error),
    };
    assert!(matches!(found, Err(StoreError::Corrupt(_))), "{found:?}");
}

database_stories! {
    async fn what_was_written_is_there_after_a_restart(world: &World) {
        let run = sing(&world.store).await;
        let store = world.reopen(sealed()).await.unwrap();
        assert_eq!(run.texts(&store).await, ["run started", CANARY]);
        assert_eq!(store.blocks(run.workspace, &[block(CANARY).hash]).await.unwrap()[&block(CANARY).hash], CANARY.as_bytes());
        assert_eq!(store.meta_get("secret").await.unwrap().as_deref(), Some(CANARY.as_bytes()));
        assert_eq!(run.row(&store).await.state.summary, CANARY);
        store.close().await;
    }

    async fn a_wrong_master_key_is_refused_and_never_replaced(world: &World) {
        let run = sing(&world.store).await;
        let wrong = world.reopen(Sealing::On(MasterKey::new([1; 32]))).await;
        assert!(matches!(wrong.as_ref().err(), Some(StoreError::WrongKey)), "{:?}", wrong.err());
        let none = world.reopen(Sealing::Off).await;
        assert!(matches!(none.as_ref().err(), Some(StoreError::WrongKey)), "{:?}", none.err());
        let store = world.reopen(sealed()).await.unwrap();
        assert_eq!(run.texts(&store).await, ["run started", CANARY], "the right key still opens it");
        store.close().await;
    }

    async fn a_sealed_body_that_was_moved_or_changed_does_not_open(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        run.said(&world.store, &["two", "three"]).await.unwrap();
        let moved = "UPDATE events SET body = (SELECT other.body FROM events other WHERE other.stream = events.stream \
                     AND other.seq = 2) WHERE seq = 3";
        world.execute(moved).await;
        let read = world.store.events(home.workspace, run.stream(), 0, 10).await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    }

    async fn another_master_key_opens_everything_and_the_old_one_nothing(world: &World) {
        let run = sing(&world.store).await;
        let (workspace, new) = (run.workspace, || Sealing::On(MasterKey::new([9; 32])));
        let keys = world.store.rewrap(&MasterKey::new([9; 32])).await.unwrap();
        let replace = async |keys: &adjutant_store::row::Rewrapped| {
            let head = world.store.head(workspace, StreamId::System).await.unwrap();
            let mut append = add(workspace, StreamId::System, head, &["replaced"]);
            append.doing = Some(adjutant_store::row::Doing::ReplaceMaster(keys.clone()));
            world.store.append(append).await
        };
        let node = node_id();
        world.store.join(node).await.unwrap();
        assert!(matches!(replace(&keys).await, Err(StoreError::Conflict(_))), "a node is alive");
        world.store.leave(node).await.unwrap();
        Home::new(&world.store).await;
        assert!(matches!(replace(&keys).await, Err(StoreError::Conflict(_))), "a workspace was made meanwhile");

        let keys = world.store.rewrap(&MasterKey::new([9; 32])).await.unwrap();
        assert_eq!(keys.count(), 3, "the instance's own and two tenants'");
        replace(&keys).await.unwrap();
        let made = world.store.create_workspace(&workspace_row(workspace_id())).await;
        assert!(matches!(made, Err(StoreError::WrongKey)), "who holds the old key seals nothing new: {made:?}");
        assert!(matches!(world.reopen(sealed()).await.err(), Some(StoreError::WrongKey)));
        let store = world.reopen(new()).await.unwrap();
        assert_eq!(run.texts(&store).await, ["run started", CANARY]);
        assert_eq!(store.meta_get("secret").await.unwrap().as_deref(), Some(CANARY.as_bytes()));
        store.close().await;
    }

    async fn a_newer_schema_is_refused_with_nothing_changed(world: &World) {
        world.execute("UPDATE meta SET value = '9' WHERE key IN ('schema', 'min_binary')").await;
        let opened = world.reopen(sealed()).await;
        let error = opened.err();
        assert!(matches!(error, Some(StoreError::NewerSchema { found: 9, known: 1..=8 })), "{error:?}");
        assert_eq!(world.number("SELECT count(*) FROM meta WHERE value = '9'").await, 2);

        world.execute("UPDATE meta SET value = '1' WHERE key = 'min_binary'").await;
        let store = world.reopen(sealed()).await.unwrap();
        assert_eq!(store.health().await.unwrap().schema, 9, "a schema that only added is used as it is");
        store.close().await;
    }

    async fn what_is_sealed_aside_opens_under_its_name_alone(world: &World) {
        let home = Home::new(&world.store).await;
        let (store, secret) = (&world.store, CANARY.as_bytes());
        let sealed = store.seal_aside(home.workspace, "one", secret).await.unwrap();
        assert!(!sealed.windows(secret.len()).any(|bytes| bytes == secret));
        assert_eq!(store.open_aside(home.workspace, "one", sealed.clone()).await.unwrap(), secret);
        let moved = store.open_aside(home.workspace, "another", sealed).await;
        assert!(matches!(moved, Err(StoreError::Corrupt(_))), "{moved:?}");
    }

    async fn a_database_of_another_build_is_refused_with_nothing_changed(world: &World) {
        for tampered in ["UPDATE meta SET value = 'another' WHERE key = 'made_by'", "DELETE FROM meta WHERE key = 'made_by'"] {
            world.execute(tampered).await;
            let opened = world.reopen(sealed()).await;
            assert!(matches!(opened.as_ref().err(), Some(StoreError::OtherBuild)), "{tampered}: {:?}", opened.err());
        }
        assert_eq!(world.number("SELECT count(*) FROM meta WHERE key = 'made_by'").await, 0);
    }

    async fn a_plain_database_is_not_sealed_halfway(world: &World) {
        world.execute("UPDATE meta SET value = 'off' WHERE key = 'sealing'").await;
        let opened = world.reopen(sealed()).await;
        assert!(matches!(opened.as_ref().err(), Some(StoreError::Conflict(_))), "{:?}", opened.err());
        let store = world.reopen(Sealing::Off).await.unwrap();
        assert!(!store.health().await.unwrap().sealed);
        store.close().await;
    }

    async fn a_closed_store_says_that_it_is_unavailable(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let store = world.store.clone();
        store.clone().close().await;
        assert!(matches!(store.append(run.say(&["too late"])).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(store.run(home.workspace, run.id).await, Err(StoreError::Unavailable(_))));
    }
}

postgres_stories! {
    async fn other_nodes_hear_of_a_commit(world: &World) {
        let other = world.another().await;
        let mut changes = other.changes();
        let home = Home::new(&world.store).await;
        // The listener may still be connecting: what it missed is not told again, so write until it hears.
        let mut runs = Vec::new();
        let heard = loop {
            runs.push(home.started(&world.store).await);
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            if let Ok(change) = changes.try_recv() {
                break change;
            }
        };
        assert!(runs.iter().any(|run| heard == Change::Command(run.stream())), "{heard:?}");
        assert_eq!(changes.recv().await.unwrap(), Change::Due);
        other.close().await;
    }
    async fn a_node_that_could_not_listen_for_a_while_reads_everything_again(world: &World) {
        let mut changes = world.store.changes();
        let listeners = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        while world.number(listeners).await == 0 {
            tokio::task::yield_now().await;
        }
        world
            .execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'")
            .await;
        assert_eq!(changes.recv().await.unwrap(), Change::Reread);
    }
}
