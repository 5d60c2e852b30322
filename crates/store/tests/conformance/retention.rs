//! What is kept: which runs are old, how much they are, and who forgets them.

use adjutant_core::time::Time;
use adjutant_store::row::{Append, OldRuns, RunChange, RunState};

use crate::fixture::*;
use crate::world::World;

/// An append that ends a run at a moment.
fn ends(run: &Run, when: Time) -> Append {
    let ended = RunState { ended_at: Some(when), ..state("COMPLETED", None) };
    Append { run: Some(RunChange::Update { state: ended, release: false }), ..run.say(&["the last word"]) }
}

stories! {
    async fn only_what_ended_before_a_moment_and_waits_for_nobody_is_old_and_erased(world: &World) {
        let (store, home) = (&world.store, Home::new(&world.store).await);
        let (old, older) = (home.started(store).await, home.started(store).await);
        let (late, open, asked) = (home.started(store).await, home.started(store).await, home.started(store).await);
        let (own, shared) = (block("only of the old one"), block("of the old and of the late one"));
        store.append(Append { blocks: vec![own.clone(), shared.clone()], ..ends(&old, at(6)) }).await.unwrap();
        store.append(ends(&older, at(5))).await.unwrap();
        store.append(Append { blocks: vec![shared.clone()], ..ends(&late, at(50)) }).await.unwrap();
        let question = vec![approval(&home, asked.id, "pending")];
        store.append(Append { approvals: question, ..ends(&asked, at(5)) }).await.unwrap();

        let sizes = store.sizes(home.workspace).await.unwrap();
        assert_eq!((sizes.runs, sizes.open, sizes.erased, sizes.events, sizes.contents), (5, 1, 0, 9, 2));
        assert!(sizes.event_bytes > 0 && sizes.content_bytes > 0, "{sizes:?}");
        let planned = store.old_runs(home.workspace, at(10)).await.unwrap();
        assert_eq!((planned.runs, planned.open), (2, 2));
        let list = async |after, limit| store.list_old_runs(home.workspace, at(10), after, limit).await.unwrap();
        let both = [(at(5), older.id), (at(6), old.id)];
        assert_eq!((list(None, 9).await.as_slice(), list(None, 1).await.as_slice()), (&both[..], &both[..1]));
        assert_eq!(list(Some(both[0]), 9).await, both[1..]);

        for run in [open.id, asked.id, run_id()] {
            assert_eq!(store.erase_run(home.workspace, run).await.unwrap(), None);
        }
        let other = Home::new(store).await;
        assert_eq!(store.erase_run(other.workspace, old.id).await.unwrap(), None, "of another workspace");
        assert_eq!(store.erase_run(home.workspace, older.id).await.unwrap(), Some(2));
        assert_eq!(store.erase_run(home.workspace, older.id).await.unwrap(), None, "erased is erased");
        assert_eq!(store.erase_run(home.workspace, old.id).await.unwrap(), Some(2));
        let kept = store.blocks(home.workspace, &[own.hash, shared.hash]).await.unwrap();
        assert!(!kept.contains_key(&own.hash) && kept.contains_key(&shared.hash));
        let after = store.sizes(home.workspace).await.unwrap();
        assert_eq!((after.runs, after.erased, after.contents), (5, 2, 1));
        let freed = sizes.event_bytes - after.event_bytes + sizes.content_bytes - after.content_bytes;
        assert_eq!(planned.bytes, freed, "as was said before");
        let left = OldRuns { runs: 0, bytes: 0, open: 2 };
        assert_eq!(store.old_runs(home.workspace, at(10)).await.unwrap(), left);
        let chat = old.row(store).await.chat;
        assert_eq!(store.chat(home.workspace, chat).await.unwrap().unwrap().title, "(erased)");
    }
}

database_stories! {
    async fn one_node_at_a_time_has_a_chore_and_another_takes_it_over_when_it_is_gone(world: &World) {
        let (store, one, two) = (&world.store, node_id(), node_id());
        store.join(one).await.unwrap();
        store.join(two).await.unwrap();
        let take = async |node| store.take_chore("sweep", node).await.unwrap();
        assert_eq!((take(one).await, take(two).await, take(one).await), (true, false, true));
        store.leave_chore("sweep", two).await.unwrap();
        assert!(!take(two).await, "it is not its to leave");
        store.leave_chore("sweep", one).await.unwrap();
        assert_eq!((take(two).await, take(one).await), (true, false));
        store.leave(two).await.unwrap();
        assert!(take(one).await);
    }
}
