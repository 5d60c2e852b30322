//! Rates: of tools, of model calls, of a person.

use std::collections::BTreeMap;

use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::run::event::{Event, PauseReason};
use adjutant_core::run::status::Status;
use adjutant_engine::EngineError;
use adjutant_engine::store::row::RunFilter;
use futures::future::join_all;

use super::{Clock, Stage, ask};

fn limit(tool: &str, calls: u32) -> impl FnOnce(&mut AgentSpec) {
    let limits = BTreeMap::from([(tool.to_owned(), calls)]);
    move |spec| spec.tool_limits = Some(limits)
}

#[tokio::test]
async fn of_sixty_four_runs_that_call_at_once_exactly_as_many_get_through_as_the_rate_allows() {
    let script = "- when: { turn: 2 }\n  text: \"${last_result}\"\n- calls: [{ name: kv_get, arguments: { key: a } }]";
    let stage = Stage::new(&[]);
    let clock = Clock::new();
    let builder = stage.agent(script).env(clock.env()).configure(limit("kv_get", 10));
    let agent = builder.build().await.unwrap();
    let mut runs = Vec::new();
    for _ in 0..64 {
        runs.push(agent.engine().start_run(agent.workspace(), ask(&agent)).await.unwrap());
    }
    let reports = join_all(runs.iter().map(|run| agent.resume(*run))).await;
    let (mut passed, mut refused) = (0, 0);
    for report in reports {
        let report = report.unwrap();
        assert_eq!(report.status, Status::Completed, "{report:#?}");
        let action = &report.actions[0];
        passed += action.attempts;
        if action.attempts == 0 {
            refused += 1;
            assert_eq!(action.rule.as_deref(), Some("rate"));
            assert!(report.result.contains("There is room again in 6 s."), "{}", report.result);
        }
        let replay = agent.engine().replay(agent.workspace(), report.id).await.unwrap();
        assert!(replay.divergences.is_empty(), "{replay:#?}");
    }
    assert_eq!((passed, refused), (10, 54));
}

#[tokio::test]
async fn the_calls_of_a_turn_take_in_order_and_the_rest_is_refused_until_there_is_room() {
    let calls: Vec<_> = (0..5).map(|n| format!("{{ name: kv_get, arguments: {{ key: k{n} }} }}")).collect();
    let script = format!("- when: {{ turn: 2 }}\n  text: done\n- calls: [{}]", calls.join(", "));
    let stage = Stage::new(&[]);
    let clock = Clock::new();
    let agent = stage.agent(&script).env(clock.env()).configure(limit("kv_get", 3)).build().await.unwrap();
    let ran = async || {
        let report = agent.run("go").await.unwrap();
        report.actions.iter().map(|action| action.attempts).collect::<Vec<_>>()
    };
    assert_eq!(ran().await, [1, 1, 1, 0, 0]);
    let runs = agent.engine().store().runs(agent.workspace(), &RunFilter::default(), 1).await.unwrap();
    let events = agent.engine().recorded(agent.workspace(), runs[0].id, 0, None).await.unwrap();
    let grants = events.iter().filter_map(|recorded| match &recorded.event {
        Event::CallJudged(body) if body.verdict.rule == "rate" => body.verdict.smallest_grant.as_deref(),
        _ => None,
    });
    assert_eq!(grants.collect::<Vec<_>>(), ["tool_limits: kv_get: 4"; 2]);
    assert_eq!(ran().await, [0; 5]);
    clock.forward(20);
    assert_eq!(ran().await, [1, 0, 0, 0, 0], "a third of a minute is room for one of three");
}

#[tokio::test]
async fn a_person_has_one_allowance_over_all_tools() {
    let script = r#"
- when: { turn: 2 }
  text: done
- calls:
    - { name: kv_get, arguments: { key: a } }
    - { name: kv_list }
    - { name: list_files }
"#;
    let stage = Stage::new(&[]);
    let clock = Clock::new();
    let agent = stage.agent(script).env(clock.env()).calls_per_minute(Some(2)).build().await.unwrap();
    let report = agent.run("go").await.unwrap();
    let rules: Vec<_> = report.actions.iter().map(|action| action.rule.as_deref()).collect();
    assert_eq!((report.actions[2].attempts, rules[2]), (0, Some("rate")), "{report:#?}");
    assert_eq!(report.actions.iter().filter(|action| action.attempts == 1).count(), 2);
}

#[tokio::test]
async fn a_run_that_has_no_model_call_left_holds_and_goes_on_by_itself() {
    let script = r#"
- when: { turn: 3 }
  text: done
- calls: [{ name: kv_get, arguments: { key: "k${turn}" } }]
"#;
    let stage = Stage::new(&[]);
    let clock = Clock::new();
    let few = |spec: &mut AgentSpec| spec.max_requests_per_hour = Some(2);
    let agent = stage.agent(script).env(clock.env()).configure(few).build().await.unwrap();
    let held = agent.run("go").await.unwrap();
    assert_eq!((held.status, held.steps), (Status::Paused, 2), "{held:#?}");
    let state = agent.engine().run_state(agent.workspace(), held.id).await.unwrap();
    assert_eq!(state.pause.as_ref().map(|pause| pause.reason), Some(PauseReason::Rate));
    let row = agent.engine().run_row(agent.workspace(), held.id).await.unwrap();
    assert_eq!(row.state.due, state.pause.and_then(|pause| pause.until), "whoever looks then takes it up");

    let Err(EngineError::RateLimited { wait, .. }) = agent.run("more").await else { panic!("nothing is started") };
    assert_eq!(wait.as_secs(), 1800);
    clock.forward(1799);
    assert_eq!(agent.resume(held.id).await.unwrap().status, Status::Paused, "not before its time");
    clock.forward(1);
    let report = agent.resume(held.id).await.unwrap();
    assert_eq!((report.status, report.result.as_str()), (Status::Completed, "done"), "{report:#?}");
    let events = agent.engine().recorded(agent.workspace(), held.id, 0, None).await.unwrap();
    assert!(!events.iter().any(|recorded| matches!(recorded.event, Event::Resumed(_))), "nobody had to say so");
}

#[tokio::test]
async fn an_approved_call_takes_when_it_runs_and_not_when_it_is_asked_about() {
    let script = r#"
- when: { turn: 2 }
  text: "${last_result}"
- calls: [{ name: create_file, arguments: { path: "/${user}.md", content: x } }]
"#;
    let stage = Stage::new(&[]);
    let clock = Clock::new();
    let agent = stage.agent(script).env(clock.env()).configure(limit("create_file", 1)).build().await.unwrap();
    let (one, two) = (agent.run("one").await.unwrap(), agent.run("two").await.unwrap());
    for report in [&one, &two] {
        agent.decide(report.pending_approvals[0], adjutant_core::run::event::Decision::Approve).await.unwrap();
    }
    assert_eq!(agent.resume(two.id).await.unwrap().actions[0].attempts, 1);
    let late = agent.resume(one.id).await.unwrap();
    assert_eq!((late.actions[0].attempts, late.actions[0].rule.as_deref()), (0, Some("rate")), "{late:#?}");
    assert!(stage.exists("/two.md") && !stage.exists("/one.md"));
}
