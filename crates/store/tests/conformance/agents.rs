//! Agents: versions follow each other, and none is lost.

use adjutant_core::id::{NotebookId, RuleId};
use adjutant_core::run::chain::{Head, StreamId};
use adjutant_core::time::Time;
use adjutant_store::StoreError;
use adjutant_store::row::{AgentRow, Append, Doing, NotebookRow, RuleRow, WorkspaceRow};

use crate::fixture::*;
use crate::world::World;

fn agent(home: &Home, slug: &str, spec: &str) -> AgentRow {
    AgentRow { id: agent_id(), spec: spec.into(), ..agent_row(home, slug) }
}

stories! {
    async fn an_agent_keeps_all_its_versions(world: &World) {
        let home = Home::new(&world.store).await;
        let first = agent(&home, "guide", "{\"v\":1}");
        assert_eq!(save_agent(&world.store, &first, 0).await.unwrap(), 1);
        let second = AgentRow { slug: "helper".into(), spec: "{\"v\":2}".into(), active: false, ..first.clone() };
        assert_eq!(save_agent(&world.store, &second, 1).await.unwrap(), 2);

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
        save_agent(&world.store, &row, 0).await.unwrap();
        for wrong in [0, 2] {
            let result = save_agent(&world.store, &row, wrong).await;
            assert!(matches!(result, Err(StoreError::Stale { fenced: false })), "{result:?}");
        }
        let (one, two) = futures::join!(save_agent(&world.store, &row, 1), save_agent(&world.store, &row, 1));
        assert_eq!([one.is_ok(), two.is_ok()].iter().filter(|ok| **ok).count(), 1, "{one:?} {two:?}");
        assert_eq!(world.store.agent(home.workspace, row.id).await.unwrap().unwrap().version, 2);
    }

    async fn a_slug_is_unique_in_its_workspace(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        save_agent(&world.store, &agent(&home, "guide", "{}"), 0).await.unwrap();
        let second = save_agent(&world.store, &agent(&home, "guide", "{}"), 0).await;
        assert!(matches!(second, Err(StoreError::Conflict(_))), "{second:?}");
        save_agent(&world.store, &agent(&other, "guide", "{}"), 0).await.unwrap();
        let nowhere = Home { workspace: workspace_id(), ..home };
        assert!(matches!(save_agent(&world.store, &agent(&nowhere, "guide", "{}"), 0).await, Err(StoreError::NotFound)));
    }

    async fn what_is_recorded_is_done_with_it_or_not_at_all(world: &World) {
        let (store, home, other) = (&world.store, Home::new(&world.store).await, Home::new(&world.store).await);
        let log = StreamId::Workspace(home.workspace);
        let act = |head: Head, doing: Doing| Append { doing: Some(doing), ..add(home.workspace, log, head, &["done"]) };
        let save = |row: &AgentRow, version| Doing::SaveAgent(Box::new(AgentRow { version, ..row.clone() }));
        let row = agent(&home, "guide", "{}");
        let book = |id: u8, slug: &str| NotebookRow {
            id: NotebookId::new(at(1), [id; 10]),
            workspace: home.workspace,
            slug: slug.to_owned(),
            linked: Some("/srv/notes".to_owned()),
            created_at: at(1),
        };
        store.create_notebook(&book(1, "notes")).await.unwrap();
        let tenant = store.workspace(home.workspace).await.unwrap().unwrap();

        let first = store.append(act(Head::START, save(&row, 1))).await.unwrap();
        assert_eq!(store.agent(home.workspace, row.id).await.unwrap().unwrap().version, 1);
        let refused = [
            save(&row, 1),
            save(&row, 3),
            save(&agent(&home, "guide", "{}"), 1),
            Doing::RemoveRule(RuleId::new(at(1), [9; 10])),
            Doing::AddNotebook(Box::new(book(2, "notes"))),
            Doing::SaveWorkspace(Box::new(WorkspaceRow { version: 3, ..tenant.clone() })),
        ];
        for doing in refused {
            let beside = add(other.workspace, StreamId::Workspace(other.workspace), Head::START, &["beside"]);
            let (answer, neighbour) = futures::join!(store.append(act(first, doing.clone())), store.append(beside));
            let told = matches!(
                answer,
                Err(StoreError::Stale { fenced: false } | StoreError::Conflict(_) | StoreError::NotFound)
            );
            assert!(told, "{doing:?}: {answer:?}");
            // Others in the same batch do not suffer; the second time the log has moved on.
            assert!(matches!(neighbour, Ok(_) | Err(StoreError::Stale { .. })), "{neighbour:?}");
            assert_eq!(store.head(home.workspace, log).await.unwrap(), first, "{doing:?} was recorded");
        }
        assert_eq!(store.head(other.workspace, StreamId::Workspace(other.workspace)).await.unwrap().seq, 1);
        let late = store.append(act(Head::START, save(&row, 2))).await;
        assert!(matches!(late, Err(StoreError::Stale { .. })), "{late:?}");
        assert_eq!(store.agent(home.workspace, row.id).await.unwrap().unwrap().version, 1, "done without its record");

        let rule = RuleRow {
            id: RuleId::new(at(1), [7; 10]),
            workspace: home.workspace,
            agent: None,
            run: None,
            expires_at: None::<Time>,
            body: "{}".into(),
        };
        let added = Append { rules: vec![rule.clone()], ..add(home.workspace, log, first, &["rule"]) };
        let second = store.append(added).await.unwrap();
        let third = store.append(act(second, Doing::RemoveRule(rule.id))).await.unwrap();
        let more = book(3, "more");
        let fourth = store.append(act(third, Doing::AddNotebook(Box::new(more.clone())))).await.unwrap();
        let renamed = WorkspaceRow { name: "Away".into(), content_filter: "[1]".into(), tools: Some("[]".into()), default_model: Some("a/b".into()), version: 2, ..tenant };
        store.append(act(fourth, Doing::SaveWorkspace(Box::new(renamed.clone())))).await.unwrap();
        assert_eq!(store.workspace(home.workspace).await.unwrap(), Some(renamed));
        assert_eq!(store.policy(home.workspace, row.id, None, at(1)).await.unwrap().unwrap().names.workspace, 2);
        assert_eq!(store.notebook(home.workspace, more.id).await.unwrap(), Some(more));
        assert_eq!(store.rule(home.workspace, rule.id).await.unwrap(), None);
    }

    async fn a_notebook_gets_another_name_that_is_free_and_is_recorded_with_it(world: &World) {
        let (store, home) = (&world.store, Home::new(&world.store).await);
        let log = StreamId::Workspace(home.workspace);
        let rename = |head: Head, id: NotebookId, slug: &str| Append {
            doing: Some(Doing::RenameNotebook(id, slug.to_owned())),
            ..add(home.workspace, log, head, &["renamed"])
        };
        let id = NotebookId::new(at(1), [1; 10]);
        let other = NotebookRow { id, workspace: home.workspace, slug: "notes".into(), linked: None, created_at: at(1) };
        store.create_notebook(&other).await.unwrap();
        let taken = store.append(rename(Head::START, home.notebook, "notes")).await;
        assert!(matches!(taken, Err(StoreError::Conflict(_))), "{taken:?}");
        let nobody = store.append(rename(Head::START, NotebookId::new(at(1), [9; 10]), "free")).await;
        assert!(matches!(nobody, Err(StoreError::NotFound)), "{nobody:?}");
        assert_eq!(store.head(home.workspace, log).await.unwrap(), Head::START, "nothing was recorded");
        store.append(rename(Head::START, id, "less")).await.unwrap();
        assert_eq!(store.notebook(home.workspace, id).await.unwrap().unwrap().slug, "less");
        assert_eq!(store.notebook_by_slug(home.workspace, "notes").await.unwrap(), None);
    }
}
