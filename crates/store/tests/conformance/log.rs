//! The log: what is appended is there, once, in order, and nowhere else.

use adjutant_core::run::chain::{Head, StreamId};
use adjutant_store::StoreError;
use adjutant_store::row::{Change, RunChange, Writer};

use crate::fixture::*;
use crate::world::World;

stories! {
    async fn an_append_is_read_back_as_it_was_written(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let mut append = run.say(&["hello", "quote \" backslash \\ line\n zero \0 é 🦀", ""]);
        append.blocks = vec![block("a long text")];
        append.calls = vec![run.call()];
        append.approvals = vec![approval(&home, run.id, "pending")];
        let (entries, calls, approvals) = (append.entries.clone(), append.calls.clone(), append.approvals.clone());
        run.head = world.store.append(append).await.unwrap();

        assert_eq!(run.head, entries[2].head());
        assert_eq!(world.store.events(home.workspace, run.stream(), 1, 100).await.unwrap(), entries);
        assert_eq!(world.store.calls(home.workspace, run.id).await.unwrap(), calls);
        let found = world.store.approval(home.workspace, approvals[0].id).await.unwrap();
        assert_eq!(found.as_ref(), approvals.first());
        let row = run.row(&world.store).await;
        assert_eq!((row.head, row.state, row.agent_version), (run.head, state("RUNNING", Some(at(0))), 3));
        assert_eq!(world.store.find_run(run.id).await.unwrap(), Some(home.workspace));
        run.texts(&world.store).await;
    }

    async fn a_reader_gets_what_comes_after_its_cursor_and_no_more_than_it_asked_for(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        run.said(&world.store, &["two", "three", "four"]).await.unwrap();
        let page = world.store.events(home.workspace, run.stream(), 1, 2).await.unwrap();
        assert_eq!(page.iter().map(text).collect::<Vec<_>>(), ["two", "three"]);
        assert!(world.store.events(home.workspace, run.stream(), 4, 2).await.unwrap().is_empty());
    }

    async fn an_append_for_an_old_head_is_stale_and_writes_nothing(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let old = run;
        run.said(&world.store, &["first"]).await.unwrap();
        let mut late = old.say(&["late"]);
        late.blocks = vec![block("late block")];
        late.calls = vec![old.call()];
        late.approvals = vec![approval(&home, run.id, "pending")];
        let (hash, card) = (late.blocks[0].hash, late.approvals[0].id);

        assert!(is_stale(&world.store.append(late).await));
        assert_eq!(run.texts(&world.store).await, ["run started", "first"]);
        assert!(world.store.blocks(home.workspace, &[hash]).await.unwrap().is_empty());
        assert!(world.store.calls(home.workspace, run.id).await.unwrap().is_empty());
        assert!(world.store.approval(home.workspace, card).await.unwrap().is_none());
    }

    async fn an_append_after_another_event_of_the_same_number_is_stale(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let mut other = run;
        other.head.hash.0[0] ^= 1;
        assert!(is_stale(&world.store.append(other.say(&["on another history"])).await));
        assert_eq!(run.texts(&world.store).await, ["run started"]);
    }

    async fn an_append_to_a_run_that_is_not_there_is_not_found(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let lost = Run { id: run_id(), ..run };
        assert!(matches!(world.store.append(lost.say(&["?"])).await, Err(StoreError::NotFound)));
        let foreign = Run { workspace: other.workspace, ..run };
        assert!(matches!(world.store.append(foreign.say(&["?"])).await, Err(StoreError::NotFound)));
        assert_eq!(run.texts(&world.store).await, ["run started"]);
    }

    async fn of_many_racing_appends_exactly_one_wins(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let other = world.another().await;
        for round in 0..5 {
            let texts: Vec<String> = (0..8).map(|racer| format!("round {round} racer {racer}")).collect();
            let racers = texts.iter().enumerate().map(|(n, text)| {
                let store = if n % 2 == 0 { &world.store } else { &other };
                store.append(run.say(&[text]))
            });
            let results = futures::future::join_all(racers).await;
            let won: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
            assert_eq!(won.len(), 1, "{results:?}");
            assert_eq!(results.iter().filter(|result| is_stale(result)).count(), 7, "{results:?}");
            run.head = *won[0];
        }
        assert_eq!(run.texts(&world.store).await.len(), 6);
    }

    async fn a_call_has_exactly_one_terminal_result(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let call = run.call();
        let mut proposed = run.say(&["call proposed"]);
        proposed.calls.push(call.clone());
        run.head = world.store.append(proposed).await.unwrap();
        assert_eq!(world.store.calls(home.workspace, run.id).await.unwrap(), std::slice::from_ref(&call));

        let first = run.end(&call);
        let ended = first.calls[0].clone();
        run.head = world.store.append(first).await.unwrap();
        let second = world.store.append(run.end(&call)).await;
        assert!(matches!(second, Err(StoreError::Conflict(_))), "{second:?}");
        assert_eq!(run.texts(&world.store).await, ["run started", "call proposed", "call ended"]);
        assert_eq!(world.store.calls(home.workspace, run.id).await.unwrap(), [ended]);

        // Naming an ended call again, without a new end, is no second result.
        let mut again = run.say(&["something else"]);
        again.calls = world.store.calls(home.workspace, run.id).await.unwrap();
        run.head = world.store.append(again).await.unwrap();
        let other = run.call();
        let mut twice = run.end(&other);
        twice.calls.push(twice.calls[0].clone());
        assert!(matches!(world.store.append(twice).await, Err(StoreError::Conflict(_))));
    }

    async fn audit_logs_are_guarded_like_runs(world: &World) {
        let home = Home::new(&world.store).await;
        for stream in [StreamId::Workspace(home.workspace), StreamId::System] {
            let first = world.store.append(add(home.workspace, stream, Head::START, &["login", "logout"])).await.unwrap();
            assert!(is_stale(&world.store.append(add(home.workspace, stream, Head::START, &["again"])).await));
            world.store.append(add(home.workspace, stream, first, &["policy"])).await.unwrap();
            assert!(is_stale(&world.store.append(add(home.workspace, stream, first, &["late"])).await));
            let entries = world.store.events(home.workspace, stream, 0, 10).await.unwrap();
            assert_eq!(entries.iter().map(text).collect::<Vec<_>>(), ["login", "logout", "policy"]);
        }
    }

    async fn nothing_of_one_workspace_is_seen_from_another(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let mut append = run.say(&["secret"]);
        append.blocks = vec![block("a secret block")];
        append.calls = vec![run.call()];
        append.approvals = vec![approval(&home, run.id, "pending")];
        let (hash, card) = (append.blocks[0].hash, append.approvals[0].id);
        run.head = world.store.append(append).await.unwrap();

        let (store, stranger) = (&world.store, other.workspace);
        assert!(store.events(stranger, run.stream(), 0, 10).await.unwrap().is_empty());
        assert!(store.events(stranger, StreamId::Workspace(home.workspace), 0, 10).await.is_err());
        assert!(store.blocks(stranger, &[hash]).await.unwrap().is_empty());
        assert!(store.run(stranger, run.id).await.unwrap().is_none());
        assert!(store.calls(stranger, run.id).await.unwrap().is_empty());
        assert!(store.approval(stranger, card).await.unwrap().is_none());
        assert!(store.chat(stranger, home.chat).await.unwrap().is_none());
        assert!(store.runs(stranger, &adjutant_store::row::RunFilter::default(), 10).await.unwrap().is_empty());
    }

    async fn equal_blocks_of_a_workspace_are_kept_once(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        let shared = block("the same long text");
        for home in [home, home, other] {
            let run = home.started(&world.store).await;
            let mut append = run.say(&["refers to it"]);
            append.blocks = vec![shared.clone(), shared.clone()];
            world.store.append(append).await.unwrap();
        }
        world.store.put_blocks(home.workspace, vec![shared.clone(), block("unreferred"), shared.clone()]).await.unwrap();
        let wanted = [shared.hash, block("unreferred").hash, block("never stored").hash];
        let found = world.store.blocks(home.workspace, &wanted).await.unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[&shared.hash], shared.bytes);
        if world.is_sqlite() || world.is_postgres() {
            assert_eq!(world.number("SELECT count(*) FROM blocks").await, 3, "one each, and the other workspace's own");
        }
        assert!(world.store.blocks(home.workspace, &[]).await.unwrap().is_empty());
    }

    async fn a_commit_is_told_once_it_is_there(world: &World) {
        let home = Home::new(&world.store).await;
        let mut changes = world.store.changes();
        let run = home.started(&world.store).await;
        assert_eq!(changes.recv().await.unwrap(), Change::Command(run.stream()));
        assert_eq!(changes.recv().await.unwrap(), Change::Due, "a start gives somebody work");

        let node = node_id();
        world.store.join(node).await.unwrap();
        let claim = world.store.claim_run(node, at(10), run.id).await.unwrap().unwrap();
        let mut parked = run.say(&["asked"]);
        parked.writer = Writer::Owner { node, epoch: claim.epoch };
        parked.run = Some(RunChange::Update { state: state("WAITING_APPROVAL", None), release: true });
        let head = world.store.append(parked).await.unwrap();
        let run = Run { head, ..run };
        world.store.append(run.say(&["decided"])).await.unwrap();
        let mut told = Vec::new();
        while let Ok(change) = changes.try_recv() {
            told.push(change);
        }
        let (own, command) = (Change::Stream(run.stream()), Change::Command(run.stream()));
        assert_eq!(told, [own, command, Change::Due], "parking gives nobody work, a command does");
    }

    async fn events_that_do_not_follow_each_other_are_a_bug_and_not_written(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let mut gap = run.say(&["two", "three"]);
        gap.entries.remove(0);
        assert!(matches!(world.store.append(gap).await, Err(StoreError::Other(_))));
        let mut bare = run.say(&["no row"]);
        bare.run = None;
        assert!(matches!(world.store.append(bare).await, Err(StoreError::Other(_))));
        let mut wrong = run.say(&["a block under a false name"]);
        wrong.blocks = vec![adjutant_store::row::Block { hash: block("a").hash, bytes: b"b".to_vec() }];
        assert!(matches!(world.store.append(wrong).await, Err(StoreError::Other(_))));
        assert_eq!(run.texts(&world.store).await, ["run started"]);
    }
}
