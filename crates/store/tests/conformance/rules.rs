//! Standing rules: kept until they are removed, found by agent and moment, written together with the decision that makes them.

use adjutant_core::run::chain::StreamId;
use adjutant_store::row::{Append, Doing, PolicyNames, RuleRow, Under};
use adjutant_store::{StoreError, halt_key};

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
        let policy = async |now| {
            let policy = store.policy(home.workspace, home.agent, None, now).await;
            policy.map(|policy| policy.map(|policy| policy.names))
        };
        let names = |agent, rules| Some(PolicyNames { agent, workspace: 1, rules });
        assert_eq!(policy(at(1)).await.unwrap(), None, "no such agent");
        let agent = agent_row(&home, "guide");
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
        assert_eq!(store.policy(elsewhere.workspace, home.agent, None, at(1)).await.unwrap(), None, "another tenant's agent");
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

    async fn an_append_concluded_from_what_no_longer_counts_is_stale_and_one_that_still_counts_is_not(world: &World) {
        let (home, store) = (Home::new(&world.store).await, &world.store);
        let agent = agent_row(&home, "guide");
        save_agent(store, &agent, 0).await.unwrap();
        let mut run = home.started(store).await;
        let person = user_id();
        let read = async || {
            let policy = store.policy(home.workspace, home.agent, Some(person), at(1)).await.unwrap().unwrap();
            Some(Under { agent: home.agent, person, at: at(1), policy })
        };
        let first = read().await;
        run.head = store.append(Append { under: first.clone(), ..run.say(&["counts"]) }).await.unwrap();
        let added = rule(&home);
        add_rule(store, &added).await.unwrap();
        assert!(is_stale(&store.append(Append { under: first, ..run.say(&["a rule came"]) }).await));
        let second = read().await;
        run.head = store.append(Append { under: second.clone(), ..run.say(&["counts"]) }).await.unwrap();
        remove_rule(store, home.workspace, added.id).await.unwrap();
        assert!(is_stale(&store.append(Append { under: second, ..run.say(&["a rule went"]) }).await));
        let third = read().await;
        save_agent(store, &agent, 1).await.unwrap();
        assert!(is_stale(&store.append(Append { under: third, ..run.say(&["another version"]) }).await));
        let mut fourth = read().await;
        run.head = store.append(Append { under: fourth.clone(), ..run.say(&["counts"]) }).await.unwrap();
        if let Some(under) = &mut fourth {
            under.policy.role = Some("owner".to_owned());
        }
        assert!(is_stale(&store.append(Append { under: fourth, ..run.say(&["another role"]) }).await));
        let mut fifth = read().await;
        if let Some(under) = &mut fifth {
            under.agent = agent_id();
        }
        assert!(is_stale(&store.append(Append { under: fifth, ..run.say(&["no such agent"]) }).await));
        assert_eq!(run.texts(store).await.len(), 4, "what was refused left nothing");
    }

    async fn nothing_is_announced_while_a_stop_switch_is_on(world: &World) {
        let (home, elsewhere, store) = (Home::new(&world.store).await, Home::new(&world.store).await, &world.store);
        for home in [&home, &elsewhere] {
            save_agent(store, &agent_row(home, "guide"), 0).await.unwrap();
        }
        let person = user_id();
        let read = async |home: &Home| {
            let policy = store.policy(home.workspace, home.agent, Some(person), at(1)).await.unwrap().unwrap();
            Under { agent: home.agent, person, at: at(1), policy }
        };
        let mut run = home.started(store).await;
        for (of, log) in [(None, StreamId::System), (Some(home.workspace), StreamId::Workspace(home.workspace))] {
            let turn = async |value: Option<&[u8]>| {
                let head = store.head(home.workspace, log).await.unwrap();
                let doing = Some(Doing::Halt(store.switch(of, value).await.unwrap()));
                let turned = store.append(Append { doing, ..add(home.workspace, log, head, &["turned"]) }).await;
                assert_eq!(store.head(home.workspace, log).await.unwrap() == head, turned.is_err());
                turned
            };
            let before = read(&home).await;
            turn(Some(b"on")).await.unwrap();
            assert_eq!(store.meta_get(&halt_key(of)).await.unwrap().as_deref(), Some(&b"on"[..]));
            assert!(store.meta_replace(&halt_key(of), b"still on").await.unwrap());
            assert!(is_stale(&store.append(Append { under: Some(before), ..run.say(&["before"]) }).await));
            let during = read(&home).await;
            assert!(during.policy.halted);
            assert_eq!(read(&elsewhere).await.policy.halted, of.is_none(), "the switch of a workspace is its own");
            assert!(is_stale(&store.append(Append { under: Some(during), ..run.say(&["during"]) }).await));
            turn(None).await.unwrap();
            assert!(matches!(turn(None).await, Err(StoreError::NotFound)), "it was off already");
            assert!(!store.meta_replace(&halt_key(of), b"on again").await.unwrap(), "off stays off");
            let after = Some(read(&home).await);
            run.head = store.append(Append { under: after, ..run.say(&["after"]) }).await.unwrap();
        }
    }
}

postgres_stories! {
    async fn an_announcement_waits_for_a_policy_that_is_being_changed_and_is_held_to_it(world: &World) {
        let (home, store) = (Home::new(&world.store).await, &world.store);
        save_agent(store, &agent_row(&home, "guide"), 0).await.unwrap();
        let run = home.started(store).await;
        let person = user_id();
        let policy = store.policy(home.workspace, home.agent, Some(person), at(1)).await.unwrap().unwrap();
        let under = Some(Under { agent: home.agent, person, at: at(1), policy });
        // Another node is about to commit a new version: it has its turn, and nobody sees the version yet.
        let mut other = world.connection().await;
        for sql in [
            "BEGIN".to_owned(),
            "SELECT pg_advisory_xact_lock(4703912)".to_owned(),
            format!("UPDATE agents SET version = version + 1 WHERE id = '{}'", home.agent),
        ] {
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut other).await.unwrap();
        }
        let announced = tokio::spawn({
            let (store, append) = (store.clone(), Append { under, ..run.say(&["announced"]) });
            async move { store.append(append).await }
        });
        let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 4703912 \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        while world.number(waiting).await == 0 {
            assert!(!announced.is_finished(), "it did not wait");
        }
        sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
        assert!(is_stale(&announced.await.unwrap()));
        assert_eq!(run.texts(store).await.len(), 1, "what was refused left nothing");
    }
}
