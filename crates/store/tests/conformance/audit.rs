//! The audit: entries of every log in one order of time, and audit logs that grow like any other.

use adjutant_core::id::{AgentId, RunId};
use adjutant_core::run::chain::{Head, StreamId};
use adjutant_core::time::Time;
use adjutant_store::row::{Append, AuditFilter, AuditRow, RunChange, RunState};

use crate::fixture::*;
use crate::world::World;

fn entry(stream: StreamId, seq: u64, time: Time) -> AuditRow {
    AuditRow {
        stream,
        seq,
        time,
        kind: "call_ended".into(),
        actor: None,
        agent: None,
        run: None,
        tool: None,
        target: None,
        verdict: None,
        is_error: false,
    }
}

fn call(run: &Run, agent: AgentId, tool: &str, verdict: &str, time: Time) -> AuditRow {
    AuditRow {
        agent: Some(agent),
        run: Some(run.id),
        tool: Some(tool.into()),
        target: Some("/notes/a.md".into()),
        verdict: Some(verdict.into()),
        is_error: verdict == "deny",
        ..entry(run.stream(), run.head.seq + 1, time)
    }
}

async fn record(world: &World, run: &mut Run, row: AuditRow) {
    let mut append = run.say(&["a call ended"]);
    append.audit = vec![row];
    run.head = world.store.append(append).await.unwrap();
}

stories! {
    async fn a_log_that_no_row_knows_is_found(world: &World) {
        let home = Home::new(&world.store).await;
        let (kept, lost) = (home.started(&world.store).await, home.started(&world.store).await);
        world.store.append(add(home.workspace, StreamId::Workspace(home.workspace), Head::START, &["an act"])).await.unwrap();
        assert_eq!(world.store.lost_logs().await.unwrap(), []);
        if world.is_sqlite() || world.is_postgres() {
            world.execute(&format!("DELETE FROM runs WHERE id = '{}'", lost.id)).await;
            assert_eq!(world.store.lost_logs().await.unwrap(), [(home.workspace, lost.stream())]);
            let foreign = Home::new(&world.store).await;
            let alone = foreign.started(&world.store).await;
            world.execute(&format!("DELETE FROM runs WHERE id = '{}'", alone.id)).await;
            let both = [(home.workspace, lost.stream()), (foreign.workspace, alone.stream())];
            assert_eq!(world.store.lost_logs().await.unwrap(), both, "in every workspace");
            assert_eq!(world.store.head(home.workspace, kept.stream()).await.unwrap(), kept.head);
        }
    }

    async fn entries_of_all_logs_come_in_one_order_of_time_page_by_page(world: &World) {
        let (home, foreign) = (Home::new(&world.store).await, Home::new(&world.store).await);
        let (mut one, mut two) = (home.started(&world.store).await, home.started(&world.store).await);
        for time in [10, 30, 50] {
            let row = call(&one, home.agent, "write_file", "allow", at(time));
            record(world, &mut one, row).await;
            let row = call(&two, home.agent, "read_file", "allow", at(time + 10));
            record(world, &mut two, row).await;
        }
        let stream = StreamId::Workspace(home.workspace);
        let mut act = add(home.workspace, stream, Head::START, &["an act"]);
        act.audit = vec![AuditRow { kind: "agent_saved".into(), actor: Some("usr_x".into()), ..entry(stream, 1, at(35)) }];
        world.store.append(act).await.unwrap();

        let mut seen = Vec::new();
        let mut filter = AuditFilter::default();
        loop {
            let page = world.store.audit(Some(home.workspace), &filter, 2).await.unwrap();
            let Some(last) = page.last() else { break };
            filter.before = Some(last.place());
            seen.extend(page.into_iter().map(|row| row.time));
        }
        assert_eq!(seen, [60, 50, 40, 35, 30, 20, 10].map(at));
        assert!(world.store.audit(Some(foreign.workspace), &AuditFilter::default(), 9).await.unwrap().is_empty());
    }

    async fn entries_of_one_moment_are_each_seen_once(world: &World) {
        let home = Home::new(&world.store).await;
        let mut runs = Vec::new();
        for _ in 0..3 {
            let mut run = home.started(&world.store).await;
            for _ in 0..2 {
                let row = call(&run, home.agent, "write_file", "allow", at(5));
                record(world, &mut run, row).await;
            }
            runs.push(run.id);
        }
        let mut seen: Vec<(Option<RunId>, u64)> = Vec::new();
        let mut filter = AuditFilter::default();
        while let Some(row) = world.store.audit(Some(home.workspace), &filter, 1).await.unwrap().pop() {
            filter.before = Some(row.place());
            seen.push((row.run, row.seq));
        }
        let all: Vec<_> = runs.iter().rev().flat_map(|run| [(Some(*run), 3), (Some(*run), 2)]).collect();
        assert_eq!(seen, all);
    }

    async fn each_filter_leaves_out_what_it_does_not_name(world: &World) {
        let home = Home::new(&world.store).await;
        let (mut mine, mut other) = (home.started(&world.store).await, home.started(&world.store).await);
        let row = call(&mine, home.agent, "write_file", "deny", at(10));
        record(world, &mut mine, row).await;
        let row = call(&other, agent_id(), "read_file", "allow", at(20));
        record(world, &mut other, row).await;
        let row = AuditRow { kind: "approval_decided".into(), actor: Some("usr_x".into()), ..entry(other.stream(), 3, at(30)) };
        record(world, &mut other, row).await;

        let filters = [
            AuditFilter { agent: Some(home.agent), ..AuditFilter::default() },
            AuditFilter { run: Some(mine.id), ..AuditFilter::default() },
            AuditFilter { tool: Some("write_file".into()), ..AuditFilter::default() },
            AuditFilter { verdict: Some("deny".into()), ..AuditFilter::default() },
            AuditFilter { is_error: Some(true), ..AuditFilter::default() },
            AuditFilter { until: Some(at(20)), ..AuditFilter::default() },
        ];
        for filter in filters {
            let found = world.store.audit(Some(home.workspace), &filter, 9).await.unwrap();
            assert_eq!(found.iter().map(|row| row.time).collect::<Vec<_>>(), [at(10)], "{filter:?}");
        }
        let filters = [
            AuditFilter { actor: Some("usr_x".into()), ..AuditFilter::default() },
            AuditFilter { kinds: vec!["approval_decided".into(), "other".into()], ..AuditFilter::default() },
            AuditFilter { since: Some(at(30)), ..AuditFilter::default() },
        ];
        for filter in filters {
            let found = world.store.audit(Some(home.workspace), &filter, 9).await.unwrap();
            assert_eq!(found.iter().map(|row| row.time).collect::<Vec<_>>(), [at(30)], "{filter:?}");
        }
    }

    async fn an_append_that_is_refused_leaves_no_entry(world: &World) {
        let home = Home::new(&world.store).await;
        let mut run = home.started(&world.store).await;
        let mut late = run.say(&["late"]);
        late.audit = vec![entry(run.stream(), 2, at(1))];
        run.said(&world.store, &["first"]).await.unwrap();
        assert!(is_stale(&world.store.append(late).await));
        assert!(world.store.audit(Some(home.workspace), &AuditFilter::default(), 9).await.unwrap().is_empty());
    }

    async fn the_logs_of_workspace_and_instance_grow_and_say_where_they_end(world: &World) {
        let home = Home::new(&world.store).await;
        for stream in [StreamId::Workspace(home.workspace), StreamId::System] {
            assert_eq!(world.store.head(home.workspace, stream).await.unwrap(), Head::START);
            let first = world.store.append(add(home.workspace, stream, Head::START, &["one"])).await.unwrap();
            assert!(is_stale(&world.store.append(add(home.workspace, stream, Head::START, &["again"])).await));
            let second = world.store.append(add(home.workspace, stream, first, &["two", "three"])).await.unwrap();
            assert_eq!(world.store.head(home.workspace, stream).await.unwrap(), second);
            assert_eq!(second.seq, 3);
        }
        let run = home.started(&world.store).await;
        assert_eq!(world.store.head(home.workspace, run.stream()).await.unwrap(), run.head);
        assert_eq!(world.store.head(home.workspace, StreamId::Run(run_id())).await.unwrap(), Head::START);
    }

    async fn the_runs_that_moved_are_found_in_order(world: &World) {
        let (home, foreign) = (Home::new(&world.store).await, Home::new(&world.store).await);
        let (one, two) = (home.started(&world.store).await, home.started(&world.store).await);
        foreign.started(&world.store).await;
        let all = world.store.moved_heads(home.workspace, at(3), None, 9).await.unwrap();
        assert_eq!(all, [(one.id, one.head), (two.id, two.head)]);
        assert_eq!(world.store.moved_heads(home.workspace, at(3), Some(one.id), 9).await.unwrap(), all[1..]);
        assert_eq!(world.store.moved_heads(home.workspace, at(3), None, 1).await.unwrap(), all[..1]);
        assert!(world.store.moved_heads(home.workspace, at(4), None, 9).await.unwrap().is_empty());

        // Also one that ended since, and was erased after that.
        let (mut kept, mut erased) = (home.started(&world.store).await, home.started(&world.store).await);
        for run in [&mut kept, &mut erased] {
            let ended = RunState { ended_at: Some(at(5)), updated_at: at(5), ..state("COMPLETED", None) };
            let over = Some(RunChange::Update { state: ended, release: false });
            run.head = world.store.append(Append { run: over, ..run.say(&["over"]) }).await.unwrap();
        }
        world.store.erase_bodies(home.workspace, erased.stream()).await.unwrap();
        let both = [(kept.id, kept.head), (erased.id, erased.head)];
        assert_eq!(world.store.moved_heads(home.workspace, at(5), None, 9).await.unwrap(), both);
        assert!(world.store.moved_heads(home.workspace, at(6), None, 9).await.unwrap().is_empty());
    }

    async fn the_entries_of_a_log_can_be_made_again(world: &World) {
        let home = Home::new(&world.store).await;
        let (mut run, mut other) = (home.started(&world.store).await, home.started(&world.store).await);
        let row = call(&run, home.agent, "write_file", "allow", at(1));
        record(world, &mut run, row).await;
        let row = call(&other, home.agent, "write_file", "allow", at(2));
        record(world, &mut other, row).await;
        let again = vec![call(&run, home.agent, "delete_file", "deny", at(3))];
        world.store.rebuild_audit(home.workspace, run.stream(), again.clone()).await.unwrap();
        let found = world.store.audit(Some(home.workspace), &AuditFilter::default(), 9).await.unwrap();
        assert_eq!(found.iter().map(|row| row.time).collect::<Vec<_>>(), [at(3), at(2)]);
        assert_eq!(found[0], again[0]);
    }
}
