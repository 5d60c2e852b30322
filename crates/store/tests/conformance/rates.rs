//! Rates: what many take at once is what one after another would get.

use std::time::Duration;

use adjutant_core::guard::rate::{Rate, Take, Taking};
use adjutant_core::id::AgentId;
use adjutant_store::StoreError;
use adjutant_store::row::{Append, RunChange};
use futures::future::join_all;

use crate::fixture::*;
use crate::world::World;

/// Of an hour: nothing comes back while a test lasts.
fn taking(takes: &[(&str, u32)]) -> Taking {
    let take = |(key, calls): &(&str, u32)| Take { key: (*key).to_owned(), rate: Rate::per_hour(*calls) };
    Taking { at: at(0), takes: takes.iter().map(take).collect() }
}

fn calls(run: &Run, takings: Vec<Taking>) -> Append {
    Append { takings, ..run.say(&["call started"]) }
}

stories! {
    async fn of_sixty_four_calls_at_once_exactly_as_many_pass_as_the_rate_allows(world: &World) {
        let home = Home::new(&world.store).await;
        let mut runs = Vec::new();
        for _ in 0..64 {
            runs.push(home.started(&world.store).await);
        }
        let appends = runs.iter().map(|run| world.store.append(calls(run, vec![taking(&[("tool/a/b", 10)])])));
        let answers = join_all(appends).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 10);
        for answer in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            let StoreError::UsedUp(refused) = answer else { panic!("{answer}") };
            assert_eq!((refused.len(), refused[0].key.as_str()), (1, "tool/a/b"));
            assert!(refused[0].wait <= Duration::from_secs(360) && !refused[0].wait.is_zero());
        }
        let mut said = 0;
        for (run, answer) in runs.iter().zip(&answers) {
            let texts = run.texts(&world.store).await;
            assert_eq!(texts.len() == 2, answer.is_ok(), "what was refused left nothing in its log");
            said += usize::from(texts.len() == 2);
        }
        assert_eq!(said, 10);
    }

    async fn of_four_triggers_at_once_exactly_three_start_their_agent(world: &World) {
        let home = Home::new(&world.store).await;
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(home.started(&world.store).await);
        }
        let [agent, other] = [1, 2].map(|number| AgentId::new(at(0), [number; 10]));
        let fired = |run: &Run, agent| calls(run, vec![Taking::of_trigger(agent, at(0))]);
        let answers = join_all(runs.iter().take(4).map(|run| world.store.append(fired(run, agent)))).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3);
        let refused = answers.into_iter().find_map(Result::err);
        let Some(StoreError::UsedUp(refused)) = refused else { panic!("{refused:?}") };
        assert!(refused[0].wait <= Duration::from_secs(20));
        world.store.append(fired(&runs[4], other)).await.unwrap();
    }

    async fn an_append_takes_all_or_nothing_and_says_which_of_its_calls_do_not_fit(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let three = || vec![taking(&[("a", 2), ("all", 9)]), taking(&[("a", 2), ("all", 9)]), taking(&[("a", 2)])];
        let refused = world.store.append(calls(&run, three())).await.unwrap_err();
        let StoreError::UsedUp(refused) = refused else { panic!("{refused}") };
        assert_eq!(refused.iter().map(|used| used.taking).collect::<Vec<_>>(), [2]);
        let both = taking(&[("a", 2), ("all", 9)]);
        assert_eq!(world.store.wait_for(&both).await.unwrap(), None, "nothing was taken");
        let two = three().into_iter().take(2).collect();
        run.head = world.store.append(calls(&run, two)).await.unwrap();
        let more = calls(&run, vec![taking(&[("a", 2)])]);
        assert!(matches!(world.store.append(more).await, Err(StoreError::UsedUp(_))));
        let wait = world.store.wait_for(&both).await.unwrap().unwrap();
        assert!(wait <= Duration::from_secs(1800) && !wait.is_zero());
        assert_eq!(world.store.wait_for(&taking(&[("all", 9)])).await.unwrap(), None);
    }

    async fn who_loses_a_race_takes_nothing(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let one = || calls(&run, vec![taking(&[("b", 2)])]);
        let answers = join_all([world.store.append(one()), world.store.append(one()), world.store.append(one())]).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert_eq!(answers.iter().filter(|answer| is_stale(answer)).count(), 2);
        let other = home.started(&world.store).await;
        world.store.append(calls(&other, vec![taking(&[("b", 2)])])).await.unwrap();
        let third = home.started(&world.store).await;
        let full = world.store.append(calls(&third, vec![taking(&[("b", 2)])])).await;
        assert!(matches!(full, Err(StoreError::UsedUp(_))), "the two that were stale spent nothing, the two that passed did");
    }

    async fn a_run_that_is_given_back_takes_like_any_other(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let mut append = calls(&run, vec![taking(&[("c", 1)]), taking(&[("c", 1)])]);
        append.run = Some(RunChange::Update { state: state("PAUSED", None), release: true });
        assert!(matches!(world.store.append(append).await, Err(StoreError::UsedUp(_))));
        assert_eq!(run.row(&world.store).await.state.status, "QUEUED");
    }
}

postgres_stories! {
    async fn two_nodes_share_one_allowance(world: &World) {
        let home = Home::new(&world.store).await;
        let other = world.another().await;
        let mut runs = Vec::new();
        for _ in 0..40 {
            runs.push(home.started(&world.store).await);
        }
        let stores = [&world.store, &other];
        let appends = runs.iter().zip(stores.iter().cycle());
        let appends = appends.map(|(run, store)| store.append(calls(run, vec![taking(&[("shared", 10)])])));
        let passed = join_all(appends).await.into_iter().filter(Result::is_ok).count();
        assert_eq!(passed, 10);
        other.close().await;
    }

    async fn a_node_whose_clock_is_wrong_neither_shuts_others_out_nor_gets_more(world: &World) {
        let home = Home::new(&world.store).await;
        let one = |run: &Run, clock: i64| calls(run, vec![Taking { at: at(clock), ..taking(&[("skewed", 3)]) }]);
        for clock in [10_000_000, -10_000_000, 0] {
            let run = home.started(&world.store).await;
            world.store.append(one(&run, clock)).await.unwrap();
        }
        let run = home.started(&world.store).await;
        let refused = world.store.append(one(&run, 10_000_000)).await;
        assert!(matches!(refused, Err(StoreError::UsedUp(_))), "what its clock says is no more room");
    }
}
