//! Runs that reach a limit, or whose model misbehaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adjutant_core::guard::policy::Autonomy;
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_engine::{EngineError, Env, Source};

use super::Stage;

/// The machine's clock, and chance that hardly ever says anything: waits that are asked for are not lengthened.
fn no_jitter() -> Env {
    struct Counting(AtomicU64);
    impl Source for Counting {
        fn now(&self) -> Time {
            Env::system().now()
        }
        fn fill(&self, bytes: &mut [u8]) {
            let count = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            bytes.fill(0);
            let from = bytes.len().saturating_sub(count.len());
            let tail = &mut bytes[from..];
            tail.copy_from_slice(&count[count.len() - tail.len()..]);
        }
    }
    Env::new(Arc::new(Counting(AtomicU64::new(1))))
}

#[tokio::test]
async fn a_run_ends_at_its_limit_of_turns() {
    let stage = Stage::new(&[("/a.md", "x")]);
    let script = r#"- calls: [{ name: kv_get, arguments: { key: "k${turn}" } }]"#;
    let agent = stage.agent(script).configure(|spec| spec.max_turns = Some(5)).build().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.status, report.steps), (Status::Failed, 5));
    assert_eq!(report.error.unwrap().code, "max_turns");
}

#[tokio::test]
async fn a_call_that_waits_for_another_on_its_path_or_key_has_its_place_at_the_limit() {
    let stage = Stage::new(&[("/a.md", "old")]);
    for (first, second, says) in [
        ("write_file, arguments: { path: /a.md, content: new }", "read_file, arguments: { path: /a.md }", "new"),
        ("kv_set, arguments: { key: note, value: one }", "kv_get, arguments: { key: note }", "one"),
        ("kv_delete, arguments: { key: note }", "kv_list", "(no keys)"),
    ] {
        let script = format!(
            "- when: {{ turn: 2 }}\n  text: \"${{last_result}}\"\n- calls: [{{ name: {first} }}, {{ name: {second} }}]"
        );
        let builder = stage.agent(&script).configure(|spec| {
            (spec.autonomy, spec.max_tool_calls) = (Some(Autonomy::Full), Some(2));
        });
        let report = builder.build().await.unwrap().run("go").await.unwrap();
        assert_eq!(report.status, Status::Completed, "{report:#?}");
        assert!(report.result.contains(says), "{second} after {first}: {}", report.result);
    }
}

#[tokio::test]
async fn a_run_that_stopped_at_a_limit_is_gone_on_with_and_stays_as_it_is() {
    let stage = Stage::new(&[]);
    let script = r#"
- when: { turn: 4 }
  text: "that was all"
- calls: [{ name: kv_get, arguments: { key: "k${turn}" } }]
"#;
    let agent = stage.agent(script).configure(|spec| spec.max_turns = Some(2)).build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let stopped = agent.run("go").await.unwrap();
    assert_eq!(stopped.error.unwrap().code, "max_turns");
    for turns in [0, 201] {
        let refused = engine.extend_run(workspace, agent.user(), stopped.id, turns).await;
        assert!(matches!(refused, Err(EngineError::Invalid(_))), "{refused:?}");
    }
    let short = engine.extend_run(workspace, agent.user(), stopped.id, 1).await.unwrap();
    let short = agent.resume(short).await.unwrap();
    assert_eq!((short.status, short.steps, short.base_run_id), (Status::Failed, 1, Some(stopped.id)));
    let gone_on = engine.extend_run(workspace, agent.user(), stopped.id, 5).await;
    assert!(matches!(&gone_on, Err(EngineError::Invalid(why)) if why.contains("has gone on since")), "{gone_on:?}");
    let done = engine.extend_run(workspace, agent.user(), short.id, 5).await.unwrap();
    let done = agent.resume(done).await.unwrap();
    assert_eq!((done.status, done.result.as_str(), done.chat_id), (Status::Completed, "that was all", stopped.chat_id));
    assert!(engine.replay(workspace, done.id).await.unwrap().divergences.is_empty());
    let ended = engine.extend_run(workspace, agent.user(), done.id, 5).await;
    assert!(matches!(&ended, Err(EngineError::Invalid(why)) if why.contains("did not stop at a limit")), "{ended:?}");
    assert_eq!(engine.run_row(workspace, stopped.id).await.unwrap().state.status, "FAILED");
}

#[tokio::test]
async fn calls_beyond_the_limit_of_the_run_are_refused_one_by_one() {
    let stage = Stage::new(&[]);
    let call = "{ name: kv_get, arguments: { key: a } }";
    let script = format!("- calls: [{}]", [call; 4].join(", "));
    let agent = stage.agent(&script).configure(|spec| spec.max_tool_calls = Some(3)).build().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(report.status, Status::Failed);
    assert_eq!(report.actions.iter().filter(|action| action.attempts > 0).count(), 3);
    assert_eq!(report.actions[3].rule.as_deref(), Some("max_tool_calls"));
    assert_eq!(report.error.unwrap().code, "max_tool_calls");
}

#[tokio::test]
async fn a_turn_holds_sixteen_calls_and_refuses_the_rest() {
    let stage = Stage::new(&[]);
    let calls: Vec<_> = (0..20).map(|n| format!("{{ name: kv_get, arguments: {{ key: k{n} }} }}")).collect();
    let script = format!("- when: {{ turn: 2 }}\n  text: done\n- calls: [{}]", calls.join(", "));
    let report = stage.agent(&script).build().await.unwrap().run("go").await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    assert_eq!(report.actions.iter().filter(|action| action.attempts > 0).count(), 16);
    assert!(report.actions[16..].iter().all(|action| action.rule.as_deref() == Some("calls_per_turn")));
}

#[tokio::test]
async fn the_same_call_with_the_same_result_again_and_again_is_stopped() {
    let stage = Stage::new(&[]);
    let report = stage.agent("- calls: [{ name: kv_list }]").build().await.unwrap().run("go").await.unwrap();
    assert_eq!(report.error.unwrap().code, "stuck");
    assert_eq!(report.actions.len(), adjutant_core::limits::STUCK_REPEATS);
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_never_run() {
    let stage = Stage::new(&[]);
    let script = r#"
- when: { turn: 2 }
  text: done
- calls: [{ name: kv_get, arguments: { key: a } }, { name: kv_set, arguments: { key: a, value: half } }]
  finish: length
"#;
    let report = stage.agent(script).build().await.unwrap().run("go").await.unwrap();
    assert_eq!((report.actions[0].attempts, report.actions[1].attempts), (1, 0));
    assert_eq!(report.actions[1].rule.as_deref(), Some("cut_off"));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_answered_with_help() {
    let stage = Stage::new(&[("/a.md", "x")]);
    let bad =
        [r#"{"path":1}"#, r#"{"path":"/a.md","path":"/b.md"}"#, r#"{"path":"/a.md","confirmed":true}"#, "[]", "{", ""];
    for raw in bad {
        let script = serde_json::json!([
            {"when": {"turn": 2}, "text": "${last_result}"},
            {"calls": [{"name": "read_file", "arguments_raw": raw}]}
        ]);
        let report = stage.agent(&script.to_string()).build().await.unwrap().run("go").await.unwrap();
        assert_eq!(report.status, Status::Completed, "{raw}: {report:#?}");
        assert_eq!(report.actions[0].rule.as_deref(), Some("arguments"), "{raw}");
        assert_eq!(report.actions[0].attempts, 0, "{raw}");
    }
}

#[tokio::test]
async fn a_model_that_recovers_is_asked_again_and_one_that_does_not_ends_the_run() {
    let script = r#"
- times: 2
  error: { class: rate_limited, retry_after: 0, status: 429 }
- text: here I am
"#;
    let stage = Stage::new(&[]);
    let report = stage.agent(script).env(no_jitter()).build().await.unwrap().run("go").await.unwrap();
    assert_eq!((report.status, report.model_calls.len()), (Status::Completed, 3), "{report:#?}");
    let report =
        stage.agent("- error: { class: unauthorized, status: 401 }").build().await.unwrap().run("go").await.unwrap();
    assert_eq!((report.status, report.model_calls.len()), (Status::Failed, 1));
    assert_eq!(report.error.unwrap().code, "unauthorized");
}

#[tokio::test]
async fn an_unknown_tool_and_one_that_is_not_granted_look_alike() {
    let stage = Stage::new(&[]);
    let mut told = Vec::new();
    for name in ["delete_file", "no_such_tool"] {
        let script = format!(
            "- when: {{ turn: 2 }}\n  text: \"${{last_result}}\"\n- calls: [{{ name: {name}, arguments: {{ path: /a.md }} }}]"
        );
        let deny = |spec: &mut adjutant_core::guard::policy::AgentSpec| {
            spec.denied_tools = Some(["delete_file".to_owned()].into())
        };
        let report = stage.agent(&script).configure(deny).build().await.unwrap().run("go").await.unwrap();
        told.push(report.result.replace(name, "X"));
    }
    assert_eq!(told[0], told[1]);
}
