//! Standing rules: kept until they are removed, found by agent and moment, written together with the decision that makes them.

use adjutant_store::StoreError;
use adjutant_store::row::{AgentRow, PolicyNames, RuleRow};

use crate::fixture::*;
use crate::world::World;

stories! {
    async fn a_rule_is_kept_until_it_is_removed_and_is_its_workspaces_own(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        let store = &world.store;
        let first = RuleRow { agent: Some(home.agent), run: Some(run_id()), expires_at: Some(at(50)), ..rule(&home) };
        let second = rule(&home);
        add_rule(store, &first).await.unwrap();
        add_rule(store, &second).await.unwrap();
        add_rule(store, &RuleRow { body: "another".into(), ..first.clone() }).await.unwrap();
        let nowhere = RuleRow { workspace: workspace_id(), id: rule_id(), ..first.clone() };
        assert!(matches!(add_rule(store, &nowhere).await, Err(StoreError::NotFound)));
        assert_eq!(store.rules(home.workspace).await.unwrap(), [first.clone(), second.clone()]);
        assert_eq!(store.rule(home.workspace, first.id).await.unwrap(), Some(first.clone()));
        assert_eq!(store.rule(other.workspace, first.id).await.unwrap(), None);
        let others = remove_rule(store, other.workspace, first.id).await;
        assert!(matches!(others, Err(StoreError::NotFound)), "another tenant's rule: {others:?}");
        remove_rule(store, home.workspace, first.id).await.unwrap();
        assert!(matches!(remove_rule(store, home.workspace, first.id).await, Err(StoreError::NotFound)));
        assert_eq!(store.rules(home.workspace).await.unwrap(), [second]);
    }

    async fn a_rule_counts_for_its_agent_until_the_moment_it_ends(world: &World) {
        let home = Home::new(&world.store).await;
        let store = &world.store;
        let all = rule(&home);
        let mine = RuleRow { agent: Some(home.agent), expires_at: Some(at(50)), ..rule(&home) };
        let others = RuleRow { agent: Some(agent_id()), ..rule(&home) };
        for row in [&all, &mine, &others] {
            add_rule(store, row).await.unwrap();
        }
        let found = store.rules_for(home.workspace, home.agent, at(49)).await.unwrap();
        assert_eq!(found, [all.clone(), mine]);
        let later = store.rules_for(home.workspace, home.agent, at(50)).await.unwrap();
        assert_eq!(later, [all], "at its end a rule is over");
    }

    async fn a_policy_names_the_version_of_an_agent_and_the_rules_that_count_at_a_moment(world: &World) {
        let home = Home::new(&world.store).await;
        let store = &world.store;
        let policy = |now| store.policy(home.workspace, home.agent, now);
        let names = |agent, rules| Some(PolicyNames { agent, workspace: 1, rules });
        assert_eq!(policy(at(1)).await.unwrap(), None, "no such agent");
        let agent = AgentRow {
            id: home.agent,
            workspace: home.workspace,
            slug: "guide".into(),
            version: 0,
            active: true,
            spec: "{}".into(),
            saved_at: at(1),
            owner: None,
        };
        save_agent(store, &agent, 0).await.unwrap();
        assert_eq!(policy(at(1)).await.unwrap(), names(1, vec![]));
        let all = rule(&home);
        let mine = RuleRow { agent: Some(home.agent), expires_at: Some(at(50)), ..rule(&home) };
        let others = RuleRow { agent: Some(agent_id()), ..rule(&home) };
        for row in [&all, &mine, &others] {
            add_rule(store, row).await.unwrap();
        }
        assert_eq!(policy(at(49)).await.unwrap(), names(1, vec![all.id, mine.id]));
        assert_eq!(policy(at(50)).await.unwrap(), names(1, vec![all.id]), "at its end a rule is over");
        save_agent(store, &agent, 1).await.unwrap();
        remove_rule(store, home.workspace, all.id).await.unwrap();
        assert_eq!(policy(at(49)).await.unwrap(), names(2, vec![mine.id]));
        let elsewhere = Home::new(store).await;
        assert_eq!(store.policy(elsewhere.workspace, home.agent, at(1)).await.unwrap(), None, "another tenant's agent");
    }

    async fn a_rule_is_written_with_the_append_that_makes_it_or_not_at_all(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let row = rule(&home);
        let mut append = run.say(&["approved for longer"]);
        append.rules.push(row.clone());
        let late = append.clone();
        world.store.append(append).await.unwrap();
        assert_eq!(world.store.rules(home.workspace).await.unwrap(), std::slice::from_ref(&row));
        let mut stale = late;
        stale.rules = vec![rule(&home)];
        assert!(is_stale(&world.store.append(stale).await));
        assert_eq!(world.store.rules(home.workspace).await.unwrap(), [row], "the loser of a race leaves nothing");
    }
}
