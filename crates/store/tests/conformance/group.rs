//! Group commit: many appends in one transaction, each with its own fate.

use adjutant_store::StoreError;

use crate::fixture::*;
use crate::world::World;

stories! {
    async fn appends_of_many_runs_made_together_all_arrive(world: &World) {
        let home = Home::new(&world.store).await;
        let mut runs = Vec::new();
        for _ in 0..40 {
            runs.push(home.started(&world.store).await);
        }
        for round in 0..3 {
            let text = format!("round {round}");
            let appends = runs.iter().map(|run| world.store.append(run.say(&[&text, "and more"])));
            let heads = futures::future::join_all(appends).await;
            for (run, head) in runs.iter_mut().zip(heads) {
                run.head = head.unwrap();
            }
        }
        for run in &runs {
            assert_eq!(run.texts(&world.store).await.len(), 7);
        }
    }

    async fn one_poisoned_append_of_a_group_fails_alone(world: &World) {
        let home = Home::new(&world.store).await;
        let mut runs = Vec::new();
        for _ in 0..9 {
            runs.push(home.started(&world.store).await);
        }
        let call = runs[4].call();
        runs[4].head = world.store.append(runs[4].end(&call)).await.unwrap();
        let stale = runs[6];
        runs[6].said(&world.store, &["moved on"]).await.unwrap();
        let appends = runs.iter().enumerate().map(|(n, run)| {
            world.store.append(match n {
                4 => run.end(&call),
                6 => stale.say(&["too late"]),
                _ => run.end(&run.call()),
            })
        });
        let results = futures::future::join_all(appends).await;
        for (n, result) in results.iter().enumerate() {
            match n {
                4 => assert!(matches!(result, Err(StoreError::Conflict(_))), "{result:?}"),
                6 => assert!(is_stale(result), "{result:?}"),
                _ => assert!(result.is_ok(), "{result:?}"),
            }
        }
        for (n, run) in runs.iter().enumerate() {
            let texts = run.texts(&world.store).await;
            let last = if n == 6 { "moved on" } else { "call ended" };
            assert_eq!(texts, ["run started", last], "run {n}");
        }
    }

    async fn a_caller_that_knows_the_next_head_may_queue_behind_itself(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let first = run.say(&["one"]);
        let next = Run { head: first.entries[0].head(), ..run };
        let (first, second) = futures::join!(world.store.append(first), world.store.append(next.say(&["two"])));
        first.unwrap();
        second.unwrap();
        assert_eq!(run.texts(&world.store).await, ["run started", "one", "two"]);
    }

    async fn an_append_happens_even_when_its_caller_stops_waiting(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let mut changes = world.store.changes();
        let task = tokio::spawn({
            let (store, append) = (world.store.clone(), run.say(&["said and gone"]));
            async move { store.append(append).await }
        });
        while changes.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        task.abort();
        assert_eq!(run.texts(&world.store).await, ["run started", "said and gone"]);
    }
}
