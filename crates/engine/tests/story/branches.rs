//! Chats that go on, are edited, and are forked.

use adjutant_core::id::ChatId;
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::Actor;
use adjutant_core::run::status::Status;
use adjutant_engine::store::row::RunFilter;
use adjutant_engine::{Agent, EngineError, Fork, Redacted, Redaction};

use super::Stage;

const ECHO: &str = r#"
- when: { result: { name: kv_get } }
  text: "looked for ${user}"
- when: { user: look }
  calls: [{ name: kv_get, arguments: { key: a } }]
- text: "you said ${user}"
"#;

#[tokio::test]
async fn the_next_message_is_built_on_the_last_answer() {
    let stage = Stage::new(&[]);
    let agent = stage.agent(ECHO).build().await.unwrap();
    let first = agent.run("one").await.unwrap();
    let second = agent.run_in(Some(first.chat_id), "look two").await.unwrap();
    assert_eq!(second.result, "looked for look two");
    assert_eq!(second.base_run_id, Some(first.id));
    let replay = agent.engine().replay(agent.workspace(), second.id).await.unwrap();
    assert!(replay.divergences.is_empty(), "{replay:#?}");
}

#[tokio::test]
async fn what_was_erased_is_not_shown_to_the_model_again_even_if_it_was_a_moment_ago() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: yes").build().await.unwrap();
    let long = "a thing to be forgotten ".repeat(200);
    let first = agent.run(&long).await.unwrap();
    let chat = Some(first.chat_id);
    let remembers = agent.run_in(chat, "do you remember?").await.unwrap();
    let stream = StreamId::Run(first.id);
    agent.engine().store().erase_bodies(agent.workspace(), stream).await.unwrap();
    let forgot = agent.run_in(chat, "and now?").await.unwrap();
    // A token is about four bytes; what else is said weighs next to nothing.
    let (with, without) = (remembers.token_usage.input, forgot.token_usage.input);
    assert!(with.saturating_sub(without) > long.len() as u64 / 8, "{with} {without}");
}

#[tokio::test]
async fn a_long_chat_is_told_whole_by_whoever_never_heard_it() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: yes").build().await.unwrap();
    let mut last = agent.run("one").await.unwrap();
    for _ in 0..140 {
        last = agent.run_in(Some(last.chat_id), "more").await.unwrap();
    }
    let known = agent.run_in(Some(last.chat_id), "more").await.unwrap();
    drop(agent);
    let afresh = stage.agent("- text: yes").build().await.unwrap();
    let replay = afresh.engine().replay(afresh.workspace(), known.id).await.unwrap();
    assert!(replay.divergences.is_empty(), "{replay:#?}");
}

/// What one more run of a chat takes: events, their bytes, statements that read, rows read.
async fn cost_of_next(agent: &Agent, chat: ChatId) -> [u64; 4] {
    let store = agent.engine().store();
    let before = store.reads();
    let run = agent.run_in(Some(chat), "more").await.unwrap();
    let after = store.reads();
    let entries = store.events(agent.workspace(), StreamId::Run(run.id), 0, 100).await.unwrap();
    let bytes = entries.iter().map(|entry| entry.body.as_ref().map_or(0, Vec::len) as u64).sum();
    [entries.len() as u64, bytes, after.statements - before.statements, after.rows - before.rows]
}

#[tokio::test]
async fn a_late_run_of_a_chat_writes_and_reads_as_much_as_an_early_one() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: yes").build().await.unwrap();
    let chat = agent.run("one").await.unwrap().chat_id;
    // `make test-long` goes as far as anybody's chat would.
    let runs = if std::env::var_os("ADJUTANT_LONG").is_some() { 1_000 } else { 60 };
    let mut costs = Vec::new();
    for _ in 0..runs {
        costs.push(cost_of_next(&agent, chat).await);
    }
    // The node itself reads now and then, so what a run takes is the least of a few.
    let least = |costs: &[[u64; 4]]| [0, 1, 2, 3].map(|what| costs.iter().map(|cost| cost[what]).min().unwrap());
    let (early, late) = (least(&costs[5..15]), least(&costs[runs - 10..]));
    assert_eq!((early[0], early[2], early[3]), (late[0], late[2], late[3]), "{early:?} {late:?}");
    // Numbers of events and tokens gain a digit now and then.
    assert!(late[1] < early[1] + 64, "{early:?} {late:?}");
}

#[tokio::test]
async fn a_chat_whose_run_waits_is_busy() {
    let stage = Stage::new(&[]);
    let script = "- calls: [{ name: create_file, arguments: { path: /a.md } }]";
    let agent = stage.agent(script).build().await.unwrap();
    let waiting = agent.run("go").await.unwrap();
    assert_eq!(waiting.status, Status::WaitingApproval);
    let second = agent.run_in(Some(waiting.chat_id), "again").await;
    assert!(matches!(second, Err(EngineError::Busy(run)) if run == waiting.id), "{second:?}");
}

#[tokio::test]
async fn an_edited_message_replaces_its_run_and_what_followed_and_keeps_both() {
    let stage = Stage::new(&[]);
    let agent = stage.agent(ECHO).build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let first = agent.run("one").await.unwrap();
    let second = agent.run_in(Some(first.chat_id), "two").await.unwrap();
    let third = agent.run_in(Some(first.chat_id), "three").await.unwrap();
    let user = engine.run_row(workspace, first.id).await.unwrap().initiator;
    let edited = engine.edit_run(workspace, user, second.id, "zwei").await.unwrap();
    let edited = agent.resume(edited).await.unwrap();
    assert_eq!((edited.result.as_str(), edited.base_run_id), ("you said zwei", Some(first.id)));
    for old in [second.id, third.id] {
        assert_eq!(engine.run_row(workspace, old).await.unwrap().superseded_by, Some(edited.id));
    }
    let shown = engine
        .store()
        .runs(workspace, &RunFilter { chat: Some(first.chat_id), ..RunFilter::default() }, 10)
        .await
        .unwrap();
    assert_eq!(shown.iter().map(|row| row.id).collect::<Vec<_>>(), [edited.id, first.id]);
    let next = agent.run_in(Some(first.chat_id), "four").await.unwrap();
    assert_eq!(next.base_run_id, Some(edited.id));
}

#[tokio::test]
async fn an_edit_of_a_waiting_run_cancels_it_first() {
    let stage = Stage::new(&[]);
    let script = "- when: { user: ask }\n  calls: [{ name: create_file, arguments: { path: /a.md } }]\n- text: fine";
    let agent = stage.agent(script).build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let waiting = agent.run("ask").await.unwrap();
    let user = engine.run_row(workspace, waiting.id).await.unwrap().initiator;
    let edited = engine.edit_run(workspace, user, waiting.id, "hello").await.unwrap();
    assert_eq!(agent.resume(edited).await.unwrap().result, "fine");
    assert_eq!(agent.resume(waiting.id).await.unwrap().status, Status::Cancelled);
    assert!(!stage.exists("/a.md"));
}

#[tokio::test]
async fn a_fork_goes_on_from_the_middle_and_leaves_the_other_run_alone() {
    let stage = Stage::new(&[]);
    let agent = stage.agent(ECHO).build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let run = agent.run("look here").await.unwrap();
    let user = engine.run_row(workspace, run.id).await.unwrap().initiator;
    let before = engine.recorded(workspace, run.id, 0, None).await.unwrap();
    let at = before.iter().find(|item| item.event.kind() == "call_ended").unwrap().seq;
    let fork = engine.fork_run(workspace, user, run.id, Fork { at: Some(at), ..Fork::default() }).await.unwrap();
    let fork = agent.resume(fork).await.unwrap();
    assert_eq!(fork.result, run.result);
    assert_eq!(fork.steps, 1, "the first turn is the other run's");
    assert_ne!(fork.chat_id, run.chat_id);
    assert_eq!(engine.recorded(workspace, run.id, 0, None).await.unwrap(), before);
    let start = engine.fork_run(workspace, user, run.id, Fork::default()).await.unwrap();
    assert_eq!(agent.resume(start).await.unwrap().steps, 2);
}

#[tokio::test]
async fn a_fork_may_be_told_something_else_and_may_do_no_more_for_it() {
    let stage = Stage::new(&[]);
    let agent = stage.agent(ECHO).instructions("Be brief.").build().await.unwrap();
    let (engine, workspace, user) = (agent.engine(), agent.workspace(), agent.user());
    let run = agent.run("look here").await.unwrap();
    let start = async |run| engine.run_state(workspace, run).await.unwrap().start.unwrap();
    let before = start(run.id).await;
    // Longer than what is kept within an event.
    let told = format!("Be thorough. {}", "You may delete everything. ".repeat(300));
    let with = |text: &str| Fork { system_prompt: Some(text.to_owned()), ..Fork::default() };
    let forked = engine.fork_run(workspace, user, run.id, with(&told)).await.unwrap();
    let after = start(forked).await;
    assert_eq!(after.policy, before.policy);
    assert!(agent.resume(forked).await.unwrap().status == Status::Completed);
    let mut prompt = after.system_prompt;
    engine.load_texts(workspace, &mut [&mut prompt]).await.unwrap();
    assert!(prompt.text().starts_with("Be thorough.") && prompt.text().contains("# What you may do"));
    // Whoever says something else in its place still means the same agent.
    let edited = engine.edit_run(workspace, user, forked, "look there").await.unwrap();
    assert_eq!(start(edited).await.system_prompt.hash(), prompt.hash());
    assert_eq!(agent.resume(edited).await.unwrap().status, Status::Completed);
    assert!(engine.replay(workspace, edited).await.unwrap().divergences.is_empty());
    let plain = engine.fork_run(workspace, user, run.id, Fork::default()).await.unwrap();
    assert_eq!(start(plain).await.system_prompt.hash(), before.system_prompt.hash());
    assert!(engine.fork_run(workspace, user, run.id, with(" ")).await.is_err());
}

#[tokio::test]
async fn long_texts_live_in_blocks_and_come_back_whole() {
    let long = "all work and no play ".repeat(1000);
    let stage = Stage::new(&[("/long.md", &long)]);
    let script = r#"
- when: { turn: 2 }
  text: "${result:read_file}"
- calls: [{ name: read_file, arguments: { path: /long.md } }]
"#;
    let agent = stage.agent(script).build().await.unwrap();
    let first = agent.run("read").await.unwrap();
    assert_eq!(first.result, long);
    let events = agent.engine().recorded(agent.workspace(), first.id, 0, None).await.unwrap();
    assert!(events.iter().all(|item| item.event.encode([0; 16]).unwrap().len() < 8 * 1024));
    let second = agent.run_in(Some(first.chat_id), "again").await.unwrap();
    assert_eq!(second.result, long);
    let lines = agent.engine().export_run(agent.workspace(), second.id, Redaction::On).await.unwrap();
    let file = lines.join("\n");
    adjutant_engine::verify_export(file.as_bytes()).unwrap();
    let changed = file.replacen("no play", "no plan", 1);
    assert!(adjutant_engine::verify_export(changed.as_bytes()).is_err());
    let cut = lines[..lines.len() - 3].join("\n");
    assert!(adjutant_engine::verify_export(cut.as_bytes()).is_err());
}

#[tokio::test]
async fn a_file_of_a_run_says_whose_it_is_and_which_events_no_hash_speaks_for() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: hello").build().await.unwrap();
    let report = agent.run("my password=hunter2").await.unwrap();
    let export = |redaction| agent.engine().export_run(agent.workspace(), report.id, redaction);
    let verify = |lines: &[String]| adjutant_engine::verify_export(lines.join("\n").as_bytes());
    let whole = export(Redaction::Raw).await.unwrap();
    assert_eq!(verify(&whole).unwrap().redacted, Redacted::default());
    // Each character of the first line but the number of blanks counts.
    let named = whole[0].find("ws_").unwrap();
    for at in named + 3..named + agent.workspace().to_string().len() {
        let mut first = whole[0].clone().into_bytes();
        first[at] ^= 1;
        let first = String::from_utf8(first).unwrap();
        assert!(verify(&[&[first], &whole[1..]].concat()).is_err(), "byte {at}");
    }
    let mut lines = export(Redaction::On).await.unwrap();
    let verified = verify(&lines).unwrap();
    assert_eq!((verified.redacted.count, verified.redacted.events.as_slice()), (1, &[1][..]));
    // What somebody made up is not proved, and is named.
    let at = lines.iter().position(|line| line.contains("\"kind\":\"said\"")).unwrap();
    let mut said: serde_json::Value = serde_json::from_str(&lines[at]).unwrap();
    said["redacted"] = "{\"text\":\"something else\"}".into();
    said["body"] = serde_json::Value::Null;
    lines[at] = said.to_string();
    assert_eq!(verify(&lines).unwrap().redacted.events, [1, said["seq"].as_u64().unwrap()]);
}

#[tokio::test]
async fn a_chat_stays_with_its_agent_and_its_notebook() {
    let stage = Stage::new(&[("/a.md", "CANARY")]);
    let script =
        "- when: { turn: 2 }\n  text: \"${last_result}\"\n- calls: [{ name: read_file, arguments: { path: /a.md } }]";
    let agent = stage.agent(script).build().await.unwrap();
    let first = agent.run("read").await.unwrap();
    assert_eq!(first.result, "CANARY");
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let row = engine.run_row(workspace, first.id).await.unwrap();
    let spec = adjutant_core::guard::policy::AgentSpec { name: "Other".to_owned(), ..Default::default() };
    let other = engine.save_agent(workspace, Actor::Clock, spec, 0).await.unwrap();
    let ask = adjutant_engine::StartRun {
        chat: Some(first.chat_id),
        ..adjutant_engine::StartRun::new(row.initiator, other.id, "read")
    };
    assert!(matches!(engine.start_run(workspace, ask).await, Err(EngineError::Invalid(_))));
}

#[tokio::test]
async fn a_long_call_that_waited_runs_as_it_was_approved() {
    let stage = Stage::new(&[]);
    let long = "word ".repeat(2000);
    let script = serde_json::json!([
        {"when": {"turn": 2}, "text": "done"},
        {"calls": [{"name": "create_file", "arguments": {"path": "/long.md", "content": long}}]}
    ]);
    let waiting = {
        let agent = stage.agent(&script.to_string()).build().await.unwrap();
        agent.run("go").await.unwrap()
    };
    // Another process takes it up: nothing of the call is left in memory.
    let agent = stage.agent(&script.to_string()).on_approval(|_| adjutant_core::run::event::Decision::Approve);
    let report = agent.build().await.unwrap().resume(waiting.id).await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    assert_eq!(stage.read("/long.md"), long);
}

#[tokio::test]
async fn a_template_that_changed_after_the_preview_is_asked_about_again() {
    let stage = Stage::new(&[("/templates/note.md", "# {{title}}\nshown")]);
    let script = "- when: { turn: 2 }\n  text: done\n- calls: [{ name: create_file, arguments: { path: /n.md, template: note.md } }]";
    let agent = stage.agent(script).build().await.unwrap();
    let waiting = agent.run("go").await.unwrap();
    assert_eq!(waiting.status, Status::WaitingApproval, "{waiting:#?}");
    std::fs::write(stage.path("/templates/note.md"), "not shown").unwrap();
    agent.decide(waiting.pending_approvals[0], adjutant_core::run::event::Decision::Approve).await.unwrap();
    let again = agent.resume(waiting.id).await.unwrap();
    assert_eq!(again.status, Status::WaitingApproval);
    assert!(!stage.exists("/n.md"));
}

#[tokio::test]
async fn the_data_folder_is_out_of_reach_and_used_by_one_at_a_time() {
    let stage = Stage::new(&[]);
    let inside = stage.bare().data(stage.path("/data")).build().await;
    assert!(matches!(inside, Err(EngineError::Invalid(_))));
    let _first = stage.bare().build().await.unwrap();
    assert!(matches!(stage.bare().build().await, Err(EngineError::Invalid(_))));
}

#[tokio::test]
async fn a_run_whose_notebook_is_gone_fails_and_says_so() {
    let stage = Stage::new(&[("/a.md", "x")]);
    let script = "- calls: [{ name: read_file, arguments: { path: /a.md } }]";
    let waiting = {
        let agent =
            stage.agent(script).configure(|spec| spec.autonomy = Some(adjutant_core::guard::policy::Autonomy::None));
        agent.build().await.unwrap().run("go").await.unwrap()
    };
    assert_eq!(waiting.status, Status::WaitingApproval);
    let moved = stage.path("/").with_extension("moved");
    std::fs::rename(stage.path("/"), &moved).unwrap();
    let agent = Stage::elsewhere(&stage, script).build().await.unwrap();
    agent.decide(waiting.pending_approvals[0], adjutant_core::run::event::Decision::Approve).await.unwrap();
    let report = agent.resume(waiting.id).await.unwrap();
    std::fs::rename(&moved, stage.path("/")).unwrap();
    assert_eq!(report.status, Status::Failed, "{report:#?}");
    assert!(report.error.unwrap().message.contains("cannot be opened"));
    assert!(report.actions.iter().all(|action| action.output.is_some()));
}
