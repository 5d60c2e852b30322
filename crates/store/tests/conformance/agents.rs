//! Agents: versions follow each other, and none is lost.

use adjutant_store::StoreError;
use adjutant_store::row::AgentRow;

use crate::fixture::*;
use crate::world::World;

fn agent(home: &Home, slug: &str, spec: &str) -> AgentRow {
    AgentRow {
        id: agent_id(),
        workspace: home.workspace,
        slug: slug.into(),
        version: 0,
        active: true,
        spec: spec.into(),
        saved_at: at(1),
        owner: None,
    }
}

stories! {
    async fn an_agent_keeps_all_its_versions(world: &World) {
        let home = Home::new(&world.store).await;
        let first = agent(&home, "guide", "{\"v\":1}");
        assert_eq!(world.store.save_agent(&first, 0).await.unwrap(), 1);
        let second = AgentRow { slug: "helper".into(), spec: "{\"v\":2}".into(), active: false, ..first.clone() };
        assert_eq!(world.store.save_agent(&second, 1).await.unwrap(), 2);

        let (ws, id) = (home.workspace, first.id);
        let current = AgentRow { version: 2, ..second };
        assert_eq!(world.store.agent(ws, id).await.unwrap(), Some(current.clone()));
        assert_eq!(world.store.agent_by_slug(ws, "helper").await.unwrap(), Some(current.clone()));
        assert_eq!(world.store.agent_by_slug(ws, "guide").await.unwrap(), None);
        assert_eq!(world.store.agents(ws).await.unwrap(), [current]);
        assert_eq!(world.store.agent_version(ws, id, 1).await.unwrap(), Some(AgentRow { version: 1, ..first }));
        assert_eq!(world.store.agent_version(ws, id, 3).await.unwrap(), None);
        assert_eq!(world.store.agent(Home::new(&world.store).await.workspace, id).await.unwrap(), None);
    }

    async fn a_version_that_somebody_else_saved_first_is_stale(world: &World) {
        let home = Home::new(&world.store).await;
        let row = agent(&home, "guide", "{}");
        world.store.save_agent(&row, 0).await.unwrap();
        for wrong in [0, 2] {
            let result = world.store.save_agent(&row, wrong).await;
            assert!(matches!(result, Err(StoreError::Stale { fenced: false })), "{result:?}");
        }
        let (one, two) = futures::join!(world.store.save_agent(&row, 1), world.store.save_agent(&row, 1));
        assert_eq!([one.is_ok(), two.is_ok()].iter().filter(|ok| **ok).count(), 1, "{one:?} {two:?}");
        assert_eq!(world.store.agent(home.workspace, row.id).await.unwrap().unwrap().version, 2);
    }

    async fn a_slug_is_unique_in_its_workspace(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        world.store.save_agent(&agent(&home, "guide", "{}"), 0).await.unwrap();
        let second = world.store.save_agent(&agent(&home, "guide", "{}"), 0).await;
        assert!(matches!(second, Err(StoreError::Conflict(_))), "{second:?}");
        world.store.save_agent(&agent(&other, "guide", "{}"), 0).await.unwrap();
        let nowhere = Home { workspace: workspace_id(), ..home };
        assert!(matches!(world.store.save_agent(&agent(&nowhere, "guide", "{}"), 0).await, Err(StoreError::NotFound)));
    }
}
