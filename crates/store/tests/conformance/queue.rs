//! The queue: a due run is driven by one living node, and whoever lost it cannot write any more.

use adjutant_core::id::NodeId;
use adjutant_store::row::{Claimed, RunChange, Writer};
use adjutant_store::{Store, StoreError};

use crate::fixture::*;
use crate::world::World;

async fn joined(store: &Store) -> NodeId {
    let node = node_id();
    store.join(node).await.unwrap();
    node
}

stories! {
    async fn a_due_run_is_claimed_by_one_node_only(world: &World) {
        let home = Home::new(&world.store).await;
        let other = world.another().await;
        let (one, two) = (joined(&world.store).await, joined(&other).await);
        let mut runs = Vec::new();
        for _ in 0..20 {
            runs.push(home.started(&world.store).await.id);
        }
        let mut claimed = Vec::new();
        while claimed.len() < 20 {
            let (ones, twos) = futures::join!(world.store.claim(one, at(10), 3), other.claim(two, at(10), 3));
            let both: Vec<_> = ones.unwrap().into_iter().chain(twos.unwrap()).collect();
            assert!(!both.is_empty(), "what is due is found");
            assert!(both.iter().all(|claim| claim.epoch == 1 && claim.workspace == home.workspace));
            claimed.extend(both.into_iter().map(|claim| claim.run));
        }
        claimed.sort_unstable();
        assert_eq!(claimed, runs, "each once");
        assert!(world.store.claim(one, at(10), 9).await.unwrap().is_empty());
        assert_eq!(world.store.next_due().await.unwrap(), None, "all have a living owner");
    }

    async fn a_workspace_with_many_runs_does_not_keep_another_waiting(world: &World) {
        let (busy, quiet) = (Home::new(&world.store).await, Home::new(&world.store).await);
        let node = joined(&world.store).await;
        for _ in 0..40 {
            busy.started(&world.store).await;
        }
        let late = quiet.started(&world.store).await.id;
        let claims = world.store.claim(node, at(10), 4).await.unwrap();
        assert_eq!(claims.len(), 4);
        assert_eq!(claims.iter().filter(|claim| claim.run == late).count(), 1, "not behind forty others");
        let more = world.store.claim(node, at(10), 3).await.unwrap();
        assert_eq!(more.len(), 3, "what one workspace has no use for is the other's");
        while !world.store.claim(node, at(10), 2).await.unwrap().is_empty() {}
        assert!(world.store.next_due().await.unwrap().is_some_and(|due| due <= at(10)), "the busy one is not done");
        let later = quiet.started(&world.store).await.id;
        let claims = world.store.claim(node, at(10), 2).await.unwrap();
        assert_eq!(claims.iter().map(|claim| claim.run).collect::<Vec<_>>(), [later], "room was left for it");
    }

    async fn an_agent_has_no_more_runs_driven_at_once_than_it_has_places(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home { agent: agent_id(), ..home };
        let nodes = [joined(&world.store).await, joined(&world.store).await];
        let [one, two] = nodes;
        let mut runs = Vec::new();
        for _ in 0..6 {
            runs.push(home.started_with(&world.store, 2).await.id);
        }
        let free = other.started_with(&world.store, 1).await.id;
        let mut claims = Vec::new();
        // Both at once, until neither finds anything: the fourth look in a row is made when nobody else is at it.
        for _ in 0..4 {
            let (ones, twos) = futures::join!(world.store.claim(one, at(10), 9), world.store.claim(two, at(10), 9));
            claims.extend(ones.unwrap().into_iter().map(|claim| (one, claim)));
            claims.extend(twos.unwrap().into_iter().map(|claim| (two, claim)));
        }
        let mut claimed: Vec<_> = claims.iter().map(|(_, claim)| claim.run).collect();
        claimed.sort_unstable();
        assert_eq!(claimed, [runs[0], runs[1], free], "two of the one, and the other does not wait behind them");
        assert_eq!(world.store.claim_due(one, at(10), 9).await.unwrap(), Claimed::Runs(vec![]), "they are due all the same");
        let (node, claim) = claims.into_iter().find(|(_, claim)| claim.run == runs[0]).unwrap();
        world.store.release(node, claim.run, claim.epoch).await.unwrap();
        let again = world.store.claim(two, at(10), 9).await.unwrap();
        assert_eq!(again.iter().map(|claim| claim.run).collect::<Vec<_>>(), [runs[0]], "one place, and the oldest takes it");
        for node in nodes {
            world.store.leave(node).await.unwrap();
        }
        let node = joined(&world.store).await;
        assert_eq!(world.store.claim(node, at(10), 9).await.unwrap().len(), 3, "places of nodes that are gone are free");
    }

    async fn a_run_counts_the_places_that_its_agent_had_when_it_started(world: &World) {
        let home = Home::new(&world.store).await;
        let node = joined(&world.store).await;
        for places in [3, 3, 3, 1, 4] {
            home.started_with(&world.store, places).await;
        }
        let mut driven = 0;
        for _ in 0..3 {
            driven += world.store.claim(node, at(10), 9).await.unwrap().len();
        }
        assert_eq!(driven, 4, "the last has room for four, the one before it for itself alone");
    }

    async fn of_many_runs_that_are_due_at_once_every_node_finds_some(world: &World) {
        let home = Home::new(&world.store).await;
        let (one, two) = (joined(&world.store).await, joined(&world.store).await);
        for _ in 0..100 {
            home.started(&world.store).await;
        }
        assert_eq!(world.store.claim(one, at(10), 1024).await.unwrap().len(), 64);
        assert_eq!(world.store.claim(two, at(10), 1024).await.unwrap().len(), 36);
    }

    async fn runs_are_claimed_oldest_due_first_and_never_before(world: &World) {
        let home = Home::new(&world.store).await;
        let node = joined(&world.store).await;
        let mut runs = Vec::new();
        for due in [Some(30), Some(10), None, Some(20), Some(10)] {
            let run = home.started(&world.store).await;
            let mut append = run.say(&["waits"]);
            append.run = Some(RunChange::Update { state: state("QUEUED", due.map(at)), release: true });
            world.store.append(append).await.unwrap();
            runs.push(run.id);
        }
        assert_eq!(world.store.next_due().await.unwrap(), Some(at(10)));
        assert!(world.store.claim(node, at(9), 9).await.unwrap().is_empty());
        let early = world.store.claim_due(node, at(9), 9).await.unwrap();
        assert_eq!(early, Claimed::NoneBefore(Some(at(10))), "a look that finds nothing says when to look again");
        let claims = world.store.claim(node, at(25), 9).await.unwrap();
        assert_eq!(claims.iter().map(|claim| claim.run).collect::<Vec<_>>(), [runs[1], runs[4], runs[3]]);
        assert_eq!(world.store.next_due().await.unwrap(), Some(at(30)));
        assert!(world.store.claim_run(node, at(29), runs[0]).await.unwrap().is_none());
        assert!(world.store.claim_run(node, at(99), runs[2]).await.unwrap().is_none(), "only a command moves it");
        assert_eq!(world.store.claim_run(node, at(30), runs[0]).await.unwrap().unwrap().epoch, 1);
        assert_eq!(world.store.next_due().await.unwrap(), None);
        assert_eq!(world.store.claim_due(node, at(99), 9).await.unwrap(), Claimed::NoneBefore(None));
    }

    async fn an_owner_writes_with_its_epoch_and_a_command_without(world: &World) {
        let home = Home::new(&world.store).await;
        let node = joined(&world.store).await;
        let mut run = home.started(&world.store).await;
        assert!(is_fenced(&world.store.append(Run { writer: Writer::Owner { node, epoch: 1 }, ..run }.say(&["?"])).await));
        let claim = world.store.claim_run(node, at(10), run.id).await.unwrap().unwrap();
        let mut owner = Run { writer: Writer::Owner { node, epoch: claim.epoch }, ..run };
        owner.said(&world.store, &["by the owner"]).await.unwrap();
        assert!(is_stale(&world.store.append(run.say(&["a late command"])).await));
        run.head = owner.head;
        run.said(&world.store, &["a command"]).await.unwrap();
        assert!(is_stale(&world.store.append(owner.say(&["the owner did not see it"])).await), "late, but not fenced");
        owner.head = run.head;
        for (node, epoch) in [(node, claim.epoch + 1), (node_id(), claim.epoch)] {
            let stranger = Run { writer: Writer::Owner { node, epoch }, ..owner };
            assert!(is_fenced(&world.store.append(stranger.say(&["not its owner"])).await));
        }
        owner.said(&world.store, &["by the owner again"]).await.unwrap();
        assert_eq!(run.row(&world.store).await.owner, Some(node), "a command does not take the run away");
    }

    async fn a_released_run_can_be_claimed_again_with_a_higher_epoch(world: &World) {
        let home = Home::new(&world.store).await;
        let (one, two) = (joined(&world.store).await, joined(&world.store).await);
        let run = home.started(&world.store).await;
        let claim = world.store.claim_run(one, at(10), run.id).await.unwrap().unwrap();
        assert!(world.store.claim_run(two, at(10), run.id).await.unwrap().is_none());
        let mut owner = Run { writer: Writer::Owner { node: one, epoch: claim.epoch }, ..run };
        let mut append = owner.say(&["parked"]);
        append.run = Some(RunChange::Update { state: state("QUEUED", Some(at(0))), release: true });
        owner.head = world.store.append(append).await.unwrap();
        assert!(is_fenced(&world.store.append(owner.say(&["after the release"])).await));

        let again = world.store.claim_run(two, at(10), run.id).await.unwrap().unwrap();
        assert_eq!(again.epoch, 2);
        world.store.release(one, run.id, claim.epoch).await.unwrap();
        assert_eq!(run.row(&world.store).await.owner, Some(two), "an old claim releases nothing");
        let mut changes = world.store.changes();
        world.store.release(two, run.id, again.epoch).await.unwrap();
        assert_eq!(changes.recv().await.unwrap(), adjutant_store::row::Change::Due);
        assert_eq!(world.store.claim(one, at(10), 9).await.unwrap()[0].epoch, 3);
    }

    async fn the_runs_of_an_expired_node_go_to_another_and_its_old_epoch_is_fenced(world: &World) {
        let home = Home::new(&world.store).await;
        let other = world.another().await;
        let dead = joined(&world.store).await;
        let run = home.started(&world.store).await;
        let claim = world.store.claim_run(dead, at(10), run.id).await.unwrap().unwrap();
        let owner = Run { writer: Writer::Owner { node: dead, epoch: claim.epoch }, ..run };
        assert_eq!(other.next_due().await.unwrap(), None);

        world.expire(dead).await;
        let alive = joined(&other).await;
        assert_eq!(other.next_due().await.unwrap(), Some(at(0)));
        let claims = other.claim(alive, at(10), 9).await.unwrap();
        assert_eq!((claims.len(), claims[0].run, claims[0].epoch), (1, run.id, 2));
        assert!(is_fenced(&world.store.append(owner.say(&["from beyond"])).await));
        let mut heir = Run { writer: Writer::Owner { node: alive, epoch: 2 }, ..run };
        heir.said(&other, &["by the heir"]).await.unwrap();
        assert!(is_fenced(&world.store.append(owner.say(&["from beyond"])).await));
        assert_eq!(run.texts(&world.store).await, ["run started", "by the heir"]);
    }

    async fn a_node_that_did_not_join_claims_nothing(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let stranger = node_id();
        assert!(matches!(world.store.claim(stranger, at(10), 9).await, Err(StoreError::Stale { fenced: true })));
        assert!(matches!(world.store.claim_run(stranger, at(10), run.id).await, Err(StoreError::Stale { fenced: true })));
        assert_eq!(run.row(&world.store).await.epoch, 0);
    }

    async fn a_run_whose_log_cannot_be_followed_is_given_back_and_not_taken_up_again(world: &World) {
        let home = Home::new(&world.store).await;
        let (one, two) = (joined(&world.store).await, joined(&world.store).await);
        let (strange, other) = (home.started(&world.store).await, home.started(&world.store).await);
        let claim = world.store.claim_run(one, at(10), strange.id).await.unwrap().unwrap();
        world.store.leave_to_newer(two, strange.id, claim.epoch).await.unwrap();
        world.store.leave_to_newer(one, strange.id, claim.epoch + 1).await.unwrap();
        assert_eq!(strange.row(&world.store).await.owner, Some(one), "only its owner gives it back");
        let mut changes = world.store.changes();
        world.store.leave_to_newer(one, strange.id, claim.epoch).await.unwrap();
        assert_eq!(changes.recv().await.unwrap(), adjutant_store::row::Change::Due, "a newer node hears of it");
        assert_eq!(strange.row(&world.store).await.owner, None);
        let claims = world.store.claim(two, at(10), 9).await.unwrap();
        assert_eq!(claims.iter().map(|claim| claim.run).collect::<Vec<_>>(), [other.id]);
        assert!(world.store.claim_run(two, at(10), strange.id).await.unwrap().is_none());
        assert_eq!(world.store.next_due().await.unwrap(), None, "nobody waits for it, either");
    }
}

postgres_stories! {
    async fn a_node_whose_connections_are_all_in_use_keeps_its_lease(world: &World) {
        let node = joined(&world.store).await;
        let home = Home::new(&world.store).await;
        let mut lock = world.connection().await;
        sqlx::raw_sql("BEGIN; LOCK TABLE chats IN ACCESS EXCLUSIVE MODE").execute(&mut lock).await.unwrap();
        // More than there are connections; all of them wait for the table.
        let reading = (0..40).map(|_| world.store.chat(home.workspace, home.chat));
        let renewed = async {
            // One of the sixteen listens to other nodes.
            while world.number("SELECT count(*) FROM pg_locks WHERE NOT granted").await < 15 {}
            let renewed = world.store.renew(node).await;
            sqlx::raw_sql("COMMIT").execute(&mut lock).await.unwrap();
            renewed
        };
        let (read, renewed) = futures::join!(futures::future::join_all(reading), renewed);
        assert!(renewed.unwrap(), "others that wait are not in its way");
        assert!(read.into_iter().all(|chat| chat.unwrap().is_some()));
    }
}

database_stories! {
    async fn a_newer_program_takes_up_what_an_older_one_could_not_follow(world: &World) {
        let home = Home::new(&world.store).await;
        let node = joined(&world.store).await;
        let run = home.started(&world.store).await;
        let claim = world.store.claim_run(node, at(10), run.id).await.unwrap().unwrap();
        world.store.leave_to_newer(node, run.id, claim.epoch).await.unwrap();
        world.execute("UPDATE runs SET beyond = beyond - 1").await;
        assert_eq!(world.store.next_due().await.unwrap(), Some(at(0)));
        assert_eq!(world.store.claim(node, at(10), 9).await.unwrap()[0].epoch, 2);
    }
}
