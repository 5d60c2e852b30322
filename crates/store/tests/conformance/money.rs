//! Money: what many spend at once is what one after another could, and what was spent is found again.

use adjutant_core::budget::{Change, Spend};
use adjutant_core::id::{KeyId, UserId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::{Head, StreamId};
use adjutant_store::row::{Append, BudgetRow, Doing, KeyChange, ModelCallRow, ProviderKeyRow, UsageFilter};
use adjutant_store::{Store, StoreError};
use futures::future::join_all;

use crate::fixture::*;
use crate::world::World;

fn reserve(purse: &str, amount: u64, limit: u64) -> Spend {
    let change = Change::Reserve { amount: MicroUsd(amount), limit: Some(MicroUsd(limit)) };
    Spend { purse: purse.into(), change }
}

fn settle(purse: &str, reserved: u64, cost: u64) -> Spend {
    let change = Change::Settle { reserved: MicroUsd(reserved), cost: MicroUsd(cost) };
    Spend { purse: purse.into(), change }
}

fn person() -> UserId {
    UserId::new(at(1), [3; 10])
}

fn spends(run: &Run, spends: Vec<Spend>) -> Append {
    Append { spends, ..run.say(&["model requested"]) }
}

fn call(home: &Home, run: &Run, turn: u32, model: &str, cost: Option<u64>) -> ModelCallRow {
    ModelCallRow {
        workspace: home.workspace,
        log: run.stream(),
        turn,
        attempt: 1,
        agent: Some(home.agent),
        person: person(),
        key: None,
        model: model.into(),
        // One that broke off may have said who it is.
        served: Some(model.to_owned()),
        at: at(i64::from(turn) * 20 * 60 * 1000),
        outcome: if cost.is_some() { "stop" } else { "truncated" }.into(),
        usage: TokenUsage { input: 100, output: 10, cached: 5, reasoning: 2, cache_write: 1 },
        estimated: false,
        cost: cost.map(MicroUsd),
        price_version: cost.map(|_| "2026-07-01".to_owned()),
        ms: 12,
    }
}

stories! {
    async fn all_that_answered_in_a_models_name_are_told_each_once(world: &World) {
        let (home, foreign) = (Home::new(&world.store).await, Home::new(&world.store).await);
        for (home, served) in [(&home, ["b/x", "a/x", "b/x"]), (&foreign, ["c/x", "c/x", "c/x"])] {
            let mut run = home.started(&world.store).await;
            for (turn, served) in (1..).zip(served) {
                let answered = ModelCallRow { served: Some(served.into()), ..call(home, &run, turn, "auto/x", Some(1)) };
                let failed = ModelCallRow { attempt: 2, served: None, ..answered.clone() };
                let other = ModelCallRow { attempt: 3, model: "b/x".into(), served: Some("d/x".into()), ..answered.clone() };
                let append = Append { model_calls: vec![answered, failed, other], ..run.say(&["answered"]) };
                run.head = world.store.append(append).await.unwrap();
            }
        }
        let mut told = world.store.served_as(home.workspace, "auto/x").await.unwrap();
        told.sort();
        assert_eq!(told, ["a/x", "b/x"]);
        assert_eq!(world.store.served_as(home.workspace, "never/asked").await.unwrap(), [""; 0]);
    }

    async fn of_sixty_four_runs_at_once_exactly_as_many_spend_as_the_budget_holds(world: &World) {
        let home = Home::new(&world.store).await;
        let mut runs = Vec::new();
        for _ in 0..64 {
            runs.push(home.started(&world.store).await);
        }
        let appends = runs.iter().map(|run| world.store.append(spends(run, vec![reserve("agent/a/day/x", 100, 1000)])));
        let answers = join_all(appends).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 10);
        for answer in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            let StoreError::Overspent(refused) = answer else { panic!("{answer}") };
            assert_eq!((refused[0].purse.as_str(), refused[0].limit, refused[0].needed), ("agent/a/day/x", MicroUsd(1000), MicroUsd(100)));
        }
        assert_eq!(world.store.purse("agent/a/day/x").await.unwrap().spent, MicroUsd(1000));
        for (run, answer) in runs.iter().zip(&answers) {
            assert_eq!(run.texts(&world.store).await.len() == 2, answer.is_ok(), "what was refused left nothing in its log");
        }
    }

    async fn what_a_call_did_not_cost_is_there_for_the_next_and_a_raise_makes_room(world: &World) {
        let home = Home::new(&world.store).await;
        let (mut one, mut two) = (home.started(&world.store).await, home.started(&world.store).await);
        let store = &world.store;
        one.head = store.append(spends(&one, vec![reserve("a", 80, 100), reserve("b", 80, 1000)])).await.unwrap();
        assert!(matches!(store.append(spends(&two, vec![reserve("b", 80, 1000), reserve("a", 80, 100)])).await, Err(StoreError::Overspent(_))));
        assert_eq!(store.purse("b").await.unwrap().spent, MicroUsd(80), "nothing of it was reserved");
        one.head = store.append(spends(&one, vec![settle("a", 80, 20), settle("b", 80, 20)])).await.unwrap();
        two.head = store.append(spends(&two, vec![reserve("a", 80, 100)])).await.unwrap();
        assert!(store.append(spends(&one, vec![reserve("a", 1, 100)])).await.is_err());
        let raise = Spend { purse: "a".into(), change: Change::Raise(MicroUsd(1)) };
        one.head = store.append(spends(&one, vec![raise])).await.unwrap();
        one.head = store.append(spends(&one, vec![reserve("a", 1, 100)])).await.unwrap();
        let alert = |at| vec![Spend { purse: "a".into(), change: Change::Alert(MicroUsd(at)) }];
        store.append(spends(&two, alert(50))).await.unwrap();
        assert!(store.append(spends(&one, alert(50))).await.is_err(), "it is pointed out once");
        let purse = store.purse("a").await.unwrap();
        assert_eq!((purse.spent, purse.raised, purse.alerted), (MicroUsd(101), MicroUsd(1), MicroUsd(50)));
        assert_eq!(store.purse("never").await.unwrap(), adjutant_core::budget::Purse::default());
    }

    async fn who_loses_a_race_spends_nothing(world: &World) {
        let home = Home::new(&world.store).await;
        let run = home.started(&world.store).await;
        let append = spends(&run, vec![reserve("a", 10, 100)]);
        let late = append.clone();
        world.store.append(append).await.unwrap();
        assert!(is_stale(&world.store.append(late).await));
        assert_eq!(world.store.purse("a").await.unwrap().spent, MicroUsd(10));
    }

    async fn model_calls_are_summed_by_what_they_have_in_common(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        let store = &world.store;
        let mut run = home.started(store).await;
        let rows = [call(&home, &run, 1, "a/x", Some(7)), call(&home, &run, 2, "a/x", Some(5)), call(&home, &run, 2, "b/y", None)];
        let rows = [rows[0].clone(), rows[1].clone(), ModelCallRow { attempt: 2, ..rows[2].clone() }];
        run.head = store.append(Append { model_calls: rows[..2].to_vec(), ..run.say(&["one", "two"]) }).await.unwrap();
        run.head = store.append(Append { model_calls: rows[2..].to_vec(), ..run.say(&["three"]) }).await.unwrap();
        assert_eq!(store.model_calls(home.workspace, &UsageFilter::default(), 0, 10).await.unwrap(), rows);
        assert_eq!(store.model_calls(home.workspace, &UsageFilter::default(), 1, 1).await.unwrap(), rows[1..2]);
        let sums = store.usage(home.workspace, &UsageFilter::default()).await.unwrap();
        let seen: Vec<_> = sums.iter().map(|sum| (sum.model.as_str(), sum.at, sum.calls, sum.failed, sum.unpriced, sum.cost.0)).collect();
        // The clock here begins 100 seconds before a quarter of an hour.
        let quarter = |minutes: i64| at(minutes * 60 * 1000 + 100_000);
        assert_eq!(seen, [("a/x", quarter(15), 1, 0, 0, 7), ("a/x", quarter(30), 1, 0, 0, 5), ("b/y", quarter(30), 1, 1, 1, 0)]);
        assert_eq!(sums[0].usage, TokenUsage { input: 100, output: 10, cached: 5, reasoning: 2, cache_write: 1 });
        let workspace = home.workspace;
        let only = |filter: UsageFilter| async move { store.usage(workspace, &filter).await.unwrap().len() };
        assert_eq!(only(UsageFilter { model: Some("b/y".into()), ..UsageFilter::default() }).await, 1);
        assert_eq!(only(UsageFilter { from: Some(at(30 * 60 * 1000)), ..UsageFilter::default() }).await, 2);
        assert_eq!(only(UsageFilter { to: Some(at(30 * 60 * 1000)), run: Some(run.id), ..UsageFilter::default() }).await, 1);
        assert_eq!(only(UsageFilter { agent: Some(agent_id()), ..UsageFilter::default() }).await, 0);
        assert_eq!(store.usage(other.workspace, &UsageFilter::default()).await.unwrap(), [], "another tenant's");
    }

    async fn money_outside_of_runs_is_put_aside_with_the_entry_that_says_so_or_neither_is(world: &World) {
        let home = Home::new(&world.store).await;
        let store = &world.store;
        let stream = StreamId::Workspace(home.workspace);
        let spend = async |kind: &str, spends: Vec<Spend>, model_calls: Vec<ModelCallRow>| {
            let append = add(home.workspace, stream, store.head(home.workspace, stream).await.unwrap(), &[kind]);
            store.append(Append { doing: Some(Doing::Spend(spends)), model_calls, ..append }).await
        };
        spend("asked", vec![reserve("w", 70, 100)], Vec::new()).await.unwrap();
        let refused = spend("asked", vec![reserve("v", 1, 9), reserve("w", 70, 100)], Vec::new()).await;
        assert!(matches!(&refused, Err(StoreError::Overspent(over)) if over[0].purse == "w"), "{refused:?}");
        assert_eq!(store.head(home.workspace, stream).await.unwrap().seq, 1, "nothing was recorded");
        assert_eq!(store.purse("v").await.unwrap().spent, MicroUsd(0));
        let run = home.started(store).await;
        let row = ModelCallRow { log: stream, agent: None, ..call(&home, &run, 2, "a/x", Some(5)) };
        spend("ended", vec![settle("w", 70, 5)], vec![row.clone()]).await.unwrap();
        assert_eq!(store.purse("w").await.unwrap().spent, MicroUsd(5));
        let all = UsageFilter::default();
        assert_eq!(store.model_calls(home.workspace, &all, 0, 10).await.unwrap(), std::slice::from_ref(&row));
        assert_eq!(store.usage(home.workspace, &all).await.unwrap()[0].agent, None);
        let again = ModelCallRow { cost: Some(MicroUsd(6)), ..row };
        store.rebuild_model_calls(home.workspace, stream, vec![again.clone()]).await.unwrap();
        assert_eq!(store.model_calls(home.workspace, &all, 0, 10).await.unwrap(), [again]);
    }

    async fn a_budget_takes_the_place_of_the_one_before(world: &World) {
        let home = Home::new(&world.store).await;
        let store = &world.store;
        let row = |body: &str| BudgetRow { workspace: home.workspace, kind: "person".into(), subject: person().to_string(), body: body.into(), saved_at: at(1) };
        store.save_budget(&row("{}")).await.unwrap();
        store.save_budget(&row("[]")).await.unwrap();
        assert_eq!(store.budgets(home.workspace).await.unwrap(), [row("[]")]);
        assert!(matches!(store.save_budget(&BudgetRow { workspace: workspace_id(), ..row("{}") }).await, Err(StoreError::NotFound)));
        assert!(store.remove_budget(home.workspace, "person", &person().to_string()).await.unwrap());
        assert!(!store.remove_budget(home.workspace, "person", &person().to_string()).await.unwrap());
        assert_eq!(store.budgets(home.workspace).await.unwrap(), []);
    }
}

const CANARY: &[u8] = b"sk-canary-0123456789-do-not-leak";

fn key(home: &Home, number: u8) -> ProviderKeyRow {
    ProviderKeyRow {
        id: KeyId::new(at(1), [number; 10]),
        workspace: home.workspace,
        kind: "workspace".into(),
        subject: home.workspace.to_string(),
        provider: "openai".into(),
        name: format!("key {number}"),
        hint: "leak".into(),
        hosts: vec!["api.openai.com".into()],
        created_by: person(),
        created_at: at(1),
        rotated_at: None,
    }
}

/// Changes keys of a workspace, and records it.
async fn change(store: &Store, workspace: WorkspaceId, change: KeyChange) -> Result<(), StoreError> {
    let stream = StreamId::Workspace(workspace);
    let mut append = add(workspace, stream, store.head(workspace, stream).await?, &["key changed"]);
    append.doing = Some(Doing::Key(change));
    store.append(append).await.map(drop)
}

async fn keep(store: &Store, row: &ProviderKeyRow, value: &[u8]) -> Result<(), StoreError> {
    let sealed = store.seal_key(row, value).await?;
    change(store, row.workspace, KeyChange::Add(Box::new(row.clone()), sealed)).await
}

database_stories! {
    async fn a_key_comes_back_only_where_it_was_put(world: &World) {
        let home = Home::new(&world.store).await;
        let other = Home::new(&world.store).await;
        let store = &world.store;
        let row = key(&home, 1);
        keep(store, &row, CANARY).await.unwrap();
        assert!(matches!(keep(store, &ProviderKeyRow { id: KeyId::new(at(2), [9; 10]), ..row.clone() }, CANARY).await, Err(StoreError::Conflict(_))), "its name is taken");
        assert_eq!(store.provider_keys(home.workspace).await.unwrap(), std::slice::from_ref(&row));
        let (found, value) = store.provider_key(home.workspace, row.id).await.unwrap().unwrap();
        assert_eq!((found, value.as_slice()), (row.clone(), CANARY));
        assert!(store.provider_key(other.workspace, row.id).await.unwrap().is_none());
        let turned = ProviderKeyRow { hint: "ther".into(), rotated_at: Some(at(5)), ..row.clone() };
        let sealed = store.seal_key(&turned, b"another").await.unwrap();
        change(store, home.workspace, KeyChange::Rotate(Box::new(turned.clone()), sealed.clone())).await.unwrap();
        let (found, value) = store.provider_key(home.workspace, row.id).await.unwrap().unwrap();
        assert_eq!((found.hint.as_str(), found.rotated_at, value.as_slice()), ("ther", Some(at(5)), b"another".as_slice()));
        assert!(change(store, other.workspace, KeyChange::Rotate(Box::new(turned.clone()), sealed.clone())).await.is_err());
        assert!(matches!(change(store, other.workspace, KeyChange::Remove(row.id)).await, Err(StoreError::NotFound)));
        assert_eq!(store.head(other.workspace, StreamId::Workspace(other.workspace)).await.unwrap(), Head::START);
        change(store, home.workspace, KeyChange::Remove(row.id)).await.unwrap();
        let gone = change(store, home.workspace, KeyChange::Rotate(Box::new(turned), sealed)).await;
        assert!(matches!(gone, Err(StoreError::NotFound)));
        assert!(store.provider_key(home.workspace, row.id).await.unwrap().is_none());
    }

    async fn a_key_moved_to_another_row_or_host_does_not_open(world: &World) {
        let home = Home::new(&world.store).await;
        let store = &world.store;
        let (one, two, three) = (key(&home, 1), key(&home, 2), key(&home, 3));
        keep(store, &one, CANARY).await.unwrap();
        keep(store, &two, b"harmless").await.unwrap();
        keep(store, &three, CANARY).await.unwrap();
        world.execute(&format!("UPDATE provider_keys SET value = (SELECT value FROM provider_keys WHERE id = '{}') WHERE id = '{}'", one.id, two.id)).await;
        assert!(matches!(store.provider_key(home.workspace, two.id).await, Err(StoreError::Corrupt(_))));
        assert!(store.provider_key(home.workspace, one.id).await.unwrap().is_some());
        world.execute(&format!("UPDATE provider_keys SET hosts = 'evil.example' WHERE id = '{}'", one.id)).await;
        assert!(matches!(store.provider_key(home.workspace, one.id).await, Err(StoreError::Corrupt(_))), "it is bound to its hosts");
        world.execute(&format!("UPDATE provider_keys SET subject = 'somebody' WHERE id = '{}'", three.id)).await;
        assert!(store.provider_key(home.workspace, three.id).await.is_err(), "it is bound to its owner");
    }
}
