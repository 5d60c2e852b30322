//! What a conversation is built on: read together, newest first, and counted when something of it is erased.

use adjutant_store::StoreError;

use crate::fixture::*;
use crate::world::World;

stories! {
    async fn a_branch_is_read_newest_first_and_each_run_as_far_as_the_next_is_built_on_it(world: &World) {
        let home = Home::new(&world.store).await;
        let mut tip = None;
        let mut runs = Vec::new();
        for name in ["first", "second", "third"] {
            let mut run = home.started_here(&world.store, tip).await;
            run.said(&world.store, &[name, "2", "3", "4", "5", "6", "beyond the base"]).await.unwrap();
            tip = Some(run.id);
            runs.push(run);
        }
        // The fixture builds each run on the seventh event of the one before it.
        let [first, second, third] = [runs[0].id, runs[1].id, runs[2].id];
        let read = |run, seq, limit| world.store.branch(home.workspace, run, seq, limit);
        let links = read(third, 2, 10).await.unwrap();
        assert_eq!(links.iter().map(|link| link.run).collect::<Vec<_>>(), [third, second, first]);
        assert_eq!(links[0].entries.iter().map(text).collect::<Vec<_>>(), ["run started", "third"]);
        for (link, name) in links[1..].iter().zip(["second", "first"]) {
            assert_eq!(link.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
            assert_eq!(text(&link.entries[1]), name);
        }
        let some = read(third, 2, 2).await.unwrap();
        assert_eq!(some.iter().map(|link| link.run).collect::<Vec<_>>(), [third, second], "only as many as asked for");
        assert_eq!(read(run_id(), 5, 10).await.unwrap(), []);
        let other = Home::new(&world.store).await;
        assert_eq!(world.store.branch(other.workspace, third, 9, 10).await.unwrap(), [], "another tenant's run");
    }

    async fn every_erasure_is_counted_for_its_workspace(world: &World) {
        let (home, other) = (Home::new(&world.store).await, Home::new(&world.store).await);
        let run = home.started(&world.store).await;
        assert_eq!(world.store.erasures(home.workspace).await.unwrap(), 0);
        world.store.erase_bodies(home.workspace, run.stream()).await.unwrap();
        assert_eq!(world.store.erasures(home.workspace).await.unwrap(), 1);
        assert_eq!(world.store.erasures(other.workspace).await.unwrap(), 0);
        assert!(matches!(world.store.erasures(workspace_id()).await, Err(StoreError::NotFound)));
    }
}
