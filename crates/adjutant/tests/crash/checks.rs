//! What has to be true of a run: right after a crash, and at its end.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bell::{Seen, names};
use crate::house::{Done, House, KEPT};

/// The tools of the rounds, in their order.
const TOOLS: [&str; 4] = ["read_file", "kv_set", "write_file", "ring_bell"];
/// What a notebook holds from the beginning.
const SAMPLES: [&str; 7] = ["garden.md", "ideas.md", "meeting.md", "projects", "recipe.md", "todo.md", "welcome.md"];

/// What the log says, read by a process that drives nothing.
pub(crate) struct Told {
    pub(crate) run: String,
    pub(crate) events: Vec<Value>,
}

impl Told {
    /// The only run; none if the process died before there was one. Every id begins alike for centuries to come.
    pub(crate) async fn read(house: &House) -> Option<Self> {
        let done = house.adjutant(&["runs", "show", "run_0", "--events", "--json"]).await;
        if !done.status.success() {
            assert!(done.err.contains("not_found"), "{done}");
            return None;
        }
        let mut shown: Value = serde_json::from_str(&done.out).unwrap();
        let events: Vec<Value> = serde_json::from_value(shown["data"].take()).unwrap();
        Some(Self { run: events[0]["data"]["run_id"].as_str().unwrap().to_owned(), events })
    }

    /// What a process said that followed the run from its beginning to its end.
    pub(crate) fn heard(done: &Done) -> Self {
        assert_eq!(done.status.code(), Some(0), "{done}");
        let events: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { run: events[0]["data"]["run_id"].as_str().unwrap().to_owned(), events }
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["event"] == name).map(|event| &event["data"])
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.of(name).next().is_some()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.has("interaction_complete")
    }

    /// Whether a call of this tool was announced.
    pub(crate) fn started(&self, tool: &str) -> bool {
        self.of("tool_call").any(|call| call["tool_name"] == tool)
    }

    /// Whether a call of this tool has its result.
    pub(crate) fn ended(&self, tool: &str) -> bool {
        self.of("tool_result").any(|result| result["tool_name"] == tool)
    }

    /// How often each call got a result.
    fn results(&self) -> BTreeMap<&str, usize> {
        let mut results = BTreeMap::new();
        for result in self.of("tool_result") {
            *results.entry(result["id"].as_str().unwrap()).or_default() += 1;
        }
        results
    }
}

/// Nothing was done that had not been announced, nothing is recorded that was not done, and nothing was done twice.
pub(crate) fn right_after_a_crash(told: Option<&Told>, seen: &Seen) {
    let started = |tool| told.is_some_and(|told| told.started(tool));
    let ended = |tool| told.is_some_and(|told| told.ended(tool));
    assert!(seen.rings <= 1, "rung twice: {seen:?}");
    assert!(seen.rings == 0 || started("ring_bell"), "rung without a word");
    assert!(seen.rings == 1 || !ended("ring_bell"), "recorded and never rung");
    assert!(seen.written.is_none() || started("write_file"), "written without a word");
    assert!(seen.written.is_some() || !ended("write_file"), "recorded and never written");
}

/// The run is complete, everything happened once, and the record is whole.
pub(crate) async fn at_the_end(house: &House, told: &Told, crashed: &Seen) {
    let report = house.document(&["runs", "show", &told.run]).await;
    assert_eq!(report["status"], "COMPLETED", "{report}");
    assert_eq!(report["result"], "The rounds are made.", "{report}");

    let actions = report["actions"].as_array().unwrap();
    let tools: Vec<_> = actions.iter().map(|action| action["tool_name"].as_str().unwrap()).collect();
    assert_eq!(tools, TOOLS, "{report}");
    for action in actions {
        assert!(action["output"].is_string() && action["is_error"] == false, "{action}");
    }
    let once: Vec<_> = actions.iter().map(|action| (action["call_id"].as_str().unwrap(), 1)).collect();
    assert_eq!(told.results(), once.into_iter().collect(), "each call has one result");
    assert_eq!(told.of("interaction_complete").count(), 1);

    let seen = Seen::look(house);
    assert_eq!(seen.rings, 1, "the bell is rung once in the end");
    assert!(seen.written.is_some(), "the file is not written");
    assert!(crashed.written.is_none() || crashed.written == seen.written, "written twice: {crashed:?}, {seen:?}");
    assert_eq!(names(house), SAMPLES, "something is left lying about");

    let replay = house.adjutant(&["runs", "replay", &told.run]).await;
    assert_eq!(replay.status.code(), Some(0), "{replay}");
    assert_eq!(house.kept().await, KEPT);
    let audit = house.document(&["audit", "verify"]).await;
    assert_eq!((&audit["valid"], &audit["runs"]), (&json!(true), &json!(2)), "{audit}");
}
