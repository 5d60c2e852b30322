//! Answers that have to fit a schema: asked for again where they do not, and never taken for an answer.

use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::run::event::Event;
use adjutant_core::run::status::Status;
use adjutant_engine::{Agent, EngineError, RunReport, StartRun};
use serde_json::{Value, json};

use super::{Stage, ask};

fn capital() -> Value {
    json!({"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]})
}

async fn started(agent: &Agent, schema: Value) -> Result<RunReport, EngineError> {
    let ask = StartRun { output_schema: Some(schema), ..ask(agent) };
    let run = agent.engine().start_run(agent.workspace(), ask).await?;
    agent.resume(run).await
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_and_only_one_that_does_ends_the_run() {
    let stage = Stage::new(&[]);
    let script = r#"
- times: 1
  text: It is Paris.
- times: 1
  text: '{"capital": 75}'
- text: "```json\n{\"capital\": \"Paris\"}\n```"
"#;
    let agent = stage.agent(script).build().await.unwrap();
    let report = started(&agent, capital()).await.unwrap();
    assert_eq!((report.status, report.steps), (Status::Completed, 3), "{report:#?}");
    assert_eq!(report.output, Some(json!({"capital": "Paris"})));
    let recorded = agent.engine().recorded(agent.workspace(), report.id, 0, None).await.unwrap();
    let said = recorded.iter().filter(|item| matches!(item.event, Event::Said(_))).count();
    assert_eq!(said, 1, "what does not fit is no answer");
    let unfit: Vec<_> = recorded
        .iter()
        .filter_map(|item| match &item.event {
            Event::ModelAnswered(body) => body.unfit.as_deref(),
            _ => None,
        })
        .collect();
    assert!(unfit.len() == 2 && unfit[0].contains("not JSON alone") && unfit[1].contains("/capital"), "{unfit:?}");
    let seen = agent.engine().seen(agent.workspace(), report.id, 3, adjutant_engine::Frames::LeftOut).await.unwrap();
    assert!(format!("{seen:?}").contains("does not fit the schema: at `/capital`"), "the model is told why");
    let replay = agent.engine().replay(agent.workspace(), report.id).await.unwrap();
    assert!(replay.divergences.is_empty(), "{replay:#?}");
}

#[tokio::test]
async fn a_model_that_never_fits_ends_the_run_with_one_clear_error() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: It is Paris.").build().await.unwrap();
    let report = started(&agent, capital()).await.unwrap();
    assert_eq!((report.status, report.steps, report.output), (Status::Failed, 3, None));
    assert_eq!((report.error.unwrap().code.as_str(), report.result.as_str()), ("output_invalid", "It is Paris."));
    let again = agent.run_in(Some(report.chat_id), "go on").await.unwrap();
    assert_eq!(again.status, Status::Completed, "the next message of the chat has no schema");
}

#[tokio::test]
async fn tools_may_be_called_before_an_answer_that_fits() {
    let stage = Stage::new(&[("/a.md", "Paris")]);
    let script = r#"
- when: { turn: 1 }
  calls: [{ name: read_file, arguments: { path: /a.md } }]
- text: '{"capital": "Paris"}'
"#;
    let report = started(&stage.agent(script).build().await.unwrap(), capital()).await.unwrap();
    assert_eq!((report.status, report.steps), (Status::Completed, 2));
    assert_eq!(report.output, Some(json!({"capital": "Paris"})));
}

#[tokio::test]
async fn the_schema_of_an_agent_counts_where_a_run_brings_none() {
    let stage = Stage::new(&[]);
    let script = r#"
- times: 1
  text: It is Paris.
- text: '{"capital": "Paris"}'
"#;
    let agent = stage.agent(script).configure(|spec| spec.output_schema = Some(capital())).build().await.unwrap();
    let report = agent.run("which?").await.unwrap();
    assert_eq!((report.status, report.output), (Status::Completed, Some(json!({"capital": "Paris"}))));
    let own = json!({"type": "object", "required": ["city"]});
    let report = started(&agent, own).await.unwrap();
    assert_eq!(report.error.map(|error| error.code), Some("output_invalid".to_owned()), "the run's own comes first");
    let wrong = |spec: &mut AgentSpec| spec.output_schema = Some(json!({"type": "colour"}));
    let bad = Stage::new(&[]).agent(script).configure(wrong).build().await.err().map(|bad| format!("{bad:?}"));
    assert!(bad.as_ref().is_some_and(|bad| bad.contains("output_schema")), "{bad:?}");
}

#[tokio::test]
async fn what_is_no_schema_starts_nothing() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: x").build().await.unwrap();
    for bad in [json!("object"), json!({"type": "objekt"}), json!({"$ref": "https://example.com/x"})] {
        assert!(matches!(started(&agent, bad).await, Err(EngineError::Invalid(_))));
    }
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.result.as_str(), report.output), ("x", None));
}
