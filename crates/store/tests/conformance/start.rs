//! Starting runs: the branch of a chat moves once, and an edit hides what it replaces.

use adjutant_core::id::RunId;
use adjutant_store::row::{RunChange, RunFilter, Tip};

use crate::fixture::*;
use crate::world::World;

async fn listed(world: &World, home: &Home, superseded: bool) -> Vec<RunId> {
    let filter = RunFilter { chat: Some(home.chat), superseded, ..RunFilter::default() };
    world.store.runs(home.workspace, &filter, 100).await.unwrap().into_iter().map(|row| row.id).collect()
}

stories! {
    async fn a_start_moves_the_tip_once(world: &World) {
        let home = Home::new(&world.store).await;
        let first = home.started_here(&world.store, None).await;
        let tip = async || world.store.chat(home.workspace, home.chat).await.unwrap().unwrap().tip;
        assert_eq!(tip().await, Some(first.id));
        assert!(is_stale(&world.store.append(home.start(None)).await), "the branch does not end where it thinks");
        let second = home.started_here(&world.store, Some(first.id)).await;
        assert_eq!(tip().await, Some(second.id));
        assert!(is_stale(&world.store.append(home.start(Some(first.id))).await));
        assert_eq!(listed(world, &home, true).await, [second.id, first.id], "what lost left no run");
        assert_eq!(second.row(&world.store).await.base, Some((first.id, 7)));
    }

    async fn of_many_racing_starts_in_a_chat_exactly_one_wins(world: &World) {
        let home = Home::new(&world.store).await;
        let other = world.another().await;
        let starts = (0..8).map(|n| if n % 2 == 0 { &world.store } else { &other }.append(home.start(None)));
        let results = futures::future::join_all(starts).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        assert_eq!(results.iter().filter(|result| is_stale(result)).count(), 7, "{results:?}");
        let runs = listed(world, &home, true).await;
        assert_eq!(runs.len(), 1);
        assert_eq!(world.store.chat(home.workspace, home.chat).await.unwrap().unwrap().tip, Some(runs[0]));
    }

    async fn the_same_start_again_is_stale_and_changes_nothing(world: &World) {
        let home = Home::new(&world.store).await;
        let start = home.start(None);
        world.store.append(start.clone()).await.unwrap();
        assert!(is_stale(&world.store.append(start.clone()).await));
        let mut confused = start.clone();
        let Some(RunChange::Start { tip, .. }) = &mut confused.run else { unreachable!() };
        tip.expected = Some(run_of(&start));
        assert!(is_stale(&world.store.append(confused).await), "also when the tip would fit");
        assert_eq!(listed(world, &home, true).await, [run_of(&start)]);
    }

    async fn a_start_in_a_chat_that_is_not_there_is_stale(world: &World) {
        let home = Home::new(&world.store).await;
        let nowhere = Home { chat: chat_id(), ..home };
        assert!(is_stale(&world.store.append(nowhere.start(None)).await));
        assert!(listed(world, &nowhere, true).await.is_empty());
    }

    async fn an_edit_supersedes_the_run_it_replaces_and_what_follows(world: &World) {
        let home = Home::new(&world.store).await;
        let first = home.started_here(&world.store, None).await;
        let second = home.started_here(&world.store, Some(first.id)).await;
        let third = home.started_here(&world.store, Some(second.id)).await;
        let elsewhere = home.started(&world.store).await;
        let mut edit = home.start(Some(third.id));
        let Some(RunChange::Start { tip, .. }) = &mut edit.run else { unreachable!() };
        tip.supersedes = Some(second.id);
        let edited = run_of(&edit);
        world.store.append(edit).await.unwrap();

        assert_eq!(listed(world, &home, false).await, [edited, first.id]);
        assert_eq!(listed(world, &home, true).await, [edited, third.id, second.id, first.id]);
        assert_eq!(first.row(&world.store).await.superseded_by, None);
        assert_eq!(second.row(&world.store).await.superseded_by, Some(edited));
        assert_eq!(third.row(&world.store).await.superseded_by, Some(edited));
        assert_eq!(elsewhere.row(&world.store).await.superseded_by, None, "another chat is not touched");
    }

    async fn a_child_run_leaves_the_branch_alone(world: &World) {
        let home = Home::new(&world.store).await;
        let parent = home.started_here(&world.store, None).await;
        let mut child = home.start(None);
        let Some(RunChange::Start { row, tip, .. }) = &mut child.run else { unreachable!() };
        row.parent = Some(parent.id);
        *tip = Tip { expected: None, supersedes: None, advance: false };
        let id = run_of(&child);
        world.store.append(child.clone()).await.unwrap();
        assert_eq!(world.store.chat(home.workspace, home.chat).await.unwrap().unwrap().tip, Some(parent.id));
        assert_eq!(world.store.run(home.workspace, id).await.unwrap().unwrap().parent, Some(parent.id));
        assert!(is_stale(&world.store.append(child).await), "a run starts once");
    }

    async fn runs_are_listed_newest_first_and_filtered(world: &World) {
        let home = Home::new(&world.store).await;
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(home.started(&world.store).await);
        }
        runs[1].said(&world.store, &["now running"]).await.unwrap();
        let list = async |filter: RunFilter, limit| {
            let rows = world.store.runs(home.workspace, &filter, limit).await.unwrap();
            rows.iter().map(|row| runs.iter().position(|run| run.id == row.id).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(list(RunFilter::default(), 3).await, [4, 3, 2]);
        assert_eq!(list(RunFilter { before: Some(runs[2].id), ..RunFilter::default() }, 9).await, [1, 0]);
        assert_eq!(list(RunFilter { status: Some("RUNNING".into()), ..RunFilter::default() }, 9).await, [1]);
        assert_eq!(list(RunFilter { agent: Some(home.agent), ..RunFilter::default() }, 9).await, [4, 3, 2, 1, 0]);
        assert_eq!(list(RunFilter { agent: Some(agent_id()), ..RunFilter::default() }, 9).await, [0; 0]);
        let started_by = |trigger: &str| RunFilter { trigger: Some(trigger.into()), ..RunFilter::default() };
        assert_eq!(list(started_by("message"), 9).await, [4, 3, 2, 1, 0]);
        assert_eq!(list(started_by("schedule"), 9).await, [0; 0]);
    }
}
