//! The life of a node: it joins, renews, is taken for dead, leaves.

use adjutant_store::StoreError;
use adjutant_store::row::{RunChange, Writer};

use crate::fixture::*;
use crate::world::{World, sealed};

stories! {
    async fn a_node_that_was_taken_for_dead_must_join_again(world: &World) {
        let home = Home::new(&world.store).await;
        let (late, other) = (node_id(), node_id());
        assert!(!world.store.renew(late).await.unwrap(), "it never joined");
        world.store.join(late).await.unwrap();
        assert!(world.store.renew(late).await.unwrap());
        let run = home.started(&world.store).await;
        world.store.claim_run(late, at(10), run.id).await.unwrap().unwrap();

        world.expire(late).await;
        let due = home.started(&world.store).await;
        assert!(matches!(world.store.claim_run(late, at(10), due.id).await, Err(StoreError::Stale { fenced: true })));
        assert!(world.store.renew(late).await.unwrap(), "nobody noticed: late is not too late");

        world.expire(late).await;
        world.store.join(other).await.unwrap();
        assert_eq!(world.store.claim(other, at(10), 9).await.unwrap().len(), 2);
        assert!(!world.store.renew(late).await.unwrap());
        world.store.join(late).await.unwrap();
        assert!(world.store.renew(late).await.unwrap());
        assert_eq!(run.row(&world.store).await.owner, Some(other));
    }

    async fn a_node_that_leaves_or_joins_anew_gives_back_what_it_owned(world: &World) {
        let home = Home::new(&world.store).await;
        let (one, two) = (node_id(), node_id());
        world.store.join(one).await.unwrap();
        world.store.join(two).await.unwrap();
        let run = home.started(&world.store).await;
        for node in [one, two] {
            world.store.claim_run(node, at(10), run.id).await.unwrap().unwrap();
            let mut changes = world.store.changes();
            world.store.leave(node).await.unwrap();
            assert_eq!(changes.recv().await.unwrap(), adjutant_store::row::Change::Due);
            assert_eq!(run.row(&world.store).await.owner, None);
            assert!(!world.store.renew(node).await.unwrap());
        }
        world.store.join(one).await.unwrap();
        world.store.claim_run(one, at(10), run.id).await.unwrap().unwrap();
        world.store.join(one).await.unwrap();
        assert_eq!(run.row(&world.store).await.owner, None, "a new life starts with nothing");
    }
}

postgres_stories! {
    async fn a_lease_that_is_over_is_waited_for_no_more(world: &World) {
        let home = Home::new(&world.store).await;
        let (dead, alive) = (node_id(), node_id());
        world.store.join(dead).await.unwrap();
        world.store.join(alive).await.unwrap();
        let run = home.started(&world.store).await;
        let claim = world.store.claim_run(dead, at(10), run.id).await.unwrap().unwrap();
        assert!(world.store.next_expiry(alive).await.unwrap().is_some());
        assert_eq!(world.store.next_expiry(dead).await.unwrap(), None, "one's own is nobody's to wait for");
        let owner = Run { writer: Writer::Owner { node: dead, epoch: claim.epoch }, ..run };
        let mut append = owner.say(&["sits out a wait"]);
        append.run = Some(RunChange::Update { state: state("RUNNING", Some(at(9_000))), release: false });
        world.store.append(append).await.unwrap();
        world.expire(dead).await;
        assert_eq!(world.store.next_expiry(alive).await.unwrap(), None);
        assert_eq!(world.store.next_due().await.unwrap(), Some(at(9_000)), "then it is taken up");
    }
}

database_stories! {
    async fn the_runs_of_a_process_that_died_are_free_once_its_lease_is_over(world: &World) {
        let home = Home::new(&world.store).await;
        let (dead, alive) = (node_id(), node_id());
        world.store.join(dead).await.unwrap();
        let run = home.started(&world.store).await;
        world.store.claim_run(dead, at(10), run.id).await.unwrap().unwrap();
        let store = world.reopen(sealed()).await.unwrap();
        if world.is_postgres() {
            // Others may be alive there: only the clock says who is not. On SQLite the lock of the directory says it.
            assert_eq!(store.next_due().await.unwrap(), None);
            world.expire(dead).await;
        }
        store.join(alive).await.unwrap();
        assert_eq!(store.claim(alive, at(10), 9).await.unwrap()[0].epoch, 2);
        store.close().await;
    }

    async fn a_node_whose_program_the_database_has_left_behind_cannot_join(world: &World) {
        let node = node_id();
        world.execute("UPDATE meta SET value = '9' WHERE key IN ('schema', 'min_binary')").await;
        let joined = world.store.join(node).await;
        assert!(matches!(joined, Err(StoreError::NewerSchema { found: 9, .. })), "{joined:?}");
        assert!(!world.store.renew(node).await.unwrap(), "nothing was written");
        world.execute("UPDATE meta SET value = '1' WHERE key = 'min_binary'").await;
        world.store.join(node).await.unwrap();
        assert_eq!(world.number("SELECT count(*) FROM nodes WHERE schema BETWEEN 1 AND 8").await, 1, "it says what it knows");
    }
}
