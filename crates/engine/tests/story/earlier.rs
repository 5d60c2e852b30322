//! Runs as earlier builds recorded and exported them (`crates/engine/tests/recorded`). Every build reads them as they were meant:
//! the chain holds, each event folds and is what comes next, each request to the model comes out the same to its hash, and a
//! recording answers it.
//! Files are added there, and never changed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use adjutant_core::content::Hash;
use adjutant_core::message::{FinishReason, ModelAnswer, ModelRequest, RawCall};
use adjutant_core::run::course;
use adjutant_core::run::event::{CallEnded, EndStatus, Errored, Event, ModelRequested, RunEnded};
use adjutant_core::run::state::{State, Turn};
use adjutant_core::run::transcript;
use adjutant_core::time::Time;
use adjutant_core::tool::ToolDefinitions;
use adjutant_engine::models::{DeltaSink, Model, Recorded, Recording};
use adjutant_engine::verify_export;
use serde_json::Value;

/// Each file, and where its run ended up.
const RUNS: [(&str, &str, &str); 4] = [
    ("approved", "COMPLETED", include_str!("../recorded/approved.jsonl")),
    ("waiting", "WAITING_APPROVAL", include_str!("../recorded/waiting.jsonl")),
    ("long", "COMPLETED", include_str!("../recorded/long.jsonl")),
    ("limited", "FAILED", include_str!("../recorded/limited.jsonl")),
];

/// What a walk through a run gathers.
#[derive(Default)]
struct Walk {
    state: State,
    tools: Arc<ToolDefinitions>,
    requests: Vec<ModelRequest>,
    /// The kinds of events that were put differently, to see whether it is noticed.
    twisted: BTreeSet<&'static str>,
}

/// What an event would be if another program had decided: none for what no program decides.
fn otherwise(event: &Event) -> Vec<Event> {
    match event.clone() {
        Event::ModelRequested(body) => {
            let (turn, attempt) = (body.turn + 1, body.attempt + 1);
            vec![ModelRequested { turn, ..body.clone() }.into(), ModelRequested { attempt, ..body }.into()]
        }
        Event::Errored(body) => {
            let message = "Something else.".to_owned();
            let code = if body.code == "stuck" { "max_turns" } else { "stuck" }.to_owned();
            vec![Errored { code, ..body.clone() }.into(), Errored { message, ..body }.into()]
        }
        Event::CallEnded(body) if !body.allowed => {
            let output = "Something else.".into();
            vec![CallEnded { output, ..body.clone() }.into(), CallEnded { is_error: !body.is_error, ..body }.into()]
        }
        Event::RunEnded(body) => {
            let others = [EndStatus::Completed, EndStatus::Failed, EndStatus::Cancelled];
            let others = others.into_iter().filter(|status| *status != body.status);
            others.map(|status| RunEnded { status, ..body.clone() }.into()).collect()
        }
        _ => Vec::new(),
    }
}

impl Walk {
    fn step(&mut self, event: &Event, seq: u64, at: Time) {
        assert_eq!(course::departure(&self.state, event, at), None, "event {seq}");
        for other in otherwise(event) {
            self.twisted.insert(event.kind());
            assert!(course::departure(&self.state, &other, at).is_some(), "event {seq} could as well be {other:?}");
        }
        match event {
            Event::RunStarted(start) => self.tools = serde_json::from_str(&start.tools.text()).unwrap(),
            Event::ModelRequested(asked) => {
                let (request, _) = transcript::request(&self.state, &[], &self.tools).unwrap();
                assert_eq!(request.hash(), asked.request, "event {seq}");
                self.requests.push(request);
            }
            _ => {}
        }
        self.state.apply(event, seq, at).unwrap();
        transcript::check(&transcript::messages(&self.state)).unwrap();
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

fn walk(lines: &[Value]) -> Walk {
    let blocks = lines.iter().filter(|line| line["line"] == "block");
    let texts: HashMap<Hash, Arc<str>> =
        blocks.map(|line| (text(&line["hash"]).parse().unwrap(), text(&line["text"]).into())).collect();
    let mut walk = Walk::default();
    for line in lines.iter().filter(|line| line["line"] == "event") {
        let mut event = Event::decode(text(&line["kind"]), text(&line["body"]).as_bytes()).unwrap();
        for content in event.contents_mut() {
            if let Some(found) = content.missing().and_then(|hash| texts.get(&hash)) {
                content.fill(found);
            }
        }
        let at: Time = serde_json::from_value(line["time"].clone()).unwrap();
        walk.step(&event, line["seq"].as_u64().unwrap(), at);
    }
    walk
}

fn answer(turn: &Turn) -> ModelAnswer {
    let call =
        |name: &str, arguments: &str| RawCall { id: None, name: name.to_owned(), arguments: arguments.to_owned() };
    ModelAnswer {
        thinking: Vec::new(),
        text: turn.words().map(|words| words.text().into_owned()).unwrap_or_default(),
        calls: turn.calls.iter().map(|made| call(&made.tool, &made.arguments.text())).collect(),
        usage: None,
        charged: None,
        finish: turn.answered.as_ref().map_or(FinishReason::Stop, |answered| answered.finish),
        served_model: "recorded".to_owned(),
    }
}

#[tokio::test]
async fn runs_of_earlier_builds_are_read_as_they_were_meant_and_answered_from_their_recording() {
    let mut twisted = BTreeSet::new();
    for (name, status, file) in RUNS {
        let verified = verify_export(file.as_bytes()).unwrap_or_else(|bad| panic!("{name}: {bad}"));
        let lines: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let Walk { state, requests, twisted: kinds, .. } = walk(&lines);
        twisted.extend(kinds);
        assert_eq!((state.status().word(), state.seq), (status, verified.events), "{name}");
        assert!(state.turns.len() == requests.len() && !requests.is_empty(), "{name}: nothing failed in it");
        let asked = requests.iter().zip(&state.turns);
        let model = Recorded::new(
            asked.map(|(request, turn)| Recording { request: request.hash(), answer: answer(turn) }).collect(),
        );
        for (request, turn) in requests.iter().zip(&state.turns) {
            assert_eq!(model.answer(request, &DeltaSink::none()).await.unwrap(), answer(turn), "{name}");
        }
        assert_eq!(model.left(), 0, "{name}");
    }
    assert_eq!(twisted.into_iter().collect::<Vec<_>>(), ["call_ended", "errored", "model_requested", "run_ended"]);
}
