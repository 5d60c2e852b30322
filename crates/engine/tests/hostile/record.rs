//! What the log says about the attack.

use std::collections::BTreeMap;
use std::fmt;

use adjutant_core::guard::judge::Decision;
use adjutant_core::id::RunId;
use adjutant_core::run::event::{Decision as Answer, Event};
use adjutant_engine::{Agent, Redaction};

use crate::attack::{Shown, THROUGH};

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) proposed: u64,
    pub(crate) ran: u64,
    pub(crate) refused: u64,
    /// Calls that waited for somebody.
    pub(crate) held: u64,
    /// Calls that ran through `use_tool`.
    pub(crate) through: u64,
    runs: u64,
    rules: BTreeMap<String, u64>,
    /// How often each tool ran.
    pub(crate) tools: BTreeMap<String, u64>,
}

/// What is known of one call.
#[derive(Default)]
struct Seen {
    allowed: bool,
    started: u32,
    ended: u32,
}

impl Tally {
    /// Reads a run and asserts what must hold for each of its calls.
    pub(crate) async fn read(&mut self, agent: &Agent, run: RunId, shown: &Shown) {
        let (engine, workspace) = (agent.engine(), agent.workspace());
        let mut calls: BTreeMap<_, Seen> = BTreeMap::new();
        for recorded in engine.recorded(workspace, run, 0, None).await.unwrap() {
            match recorded.event {
                Event::CallProposed(proposed) => {
                    assert!(calls.insert(proposed.call, Seen::default()).is_none(), "an id was used twice");
                    self.proposed += 1;
                }
                Event::CallJudged(judged) => {
                    calls.get_mut(&judged.call).unwrap().allowed = judged.verdict.decision == Decision::Allow;
                }
                Event::ApprovalAsked(asked) => {
                    let seen = &calls[&asked.call];
                    assert!(!seen.allowed && seen.started == 0, "{} ran before anybody was asked", asked.tool);
                    self.held += 1;
                }
                Event::ApprovalDecided(decided) => {
                    calls.get_mut(&decided.call).unwrap().allowed = decided.decision == Answer::Approve;
                }
                Event::CallStarted(started) => {
                    self.through += u64::from(started.arguments.text().contains(THROUGH));
                    let seen = calls.get_mut(&started.call).unwrap();
                    assert!(seen.allowed, "{} ran without a recorded allowance", started.tool);
                    seen.started += 1;
                }
                Event::CallEnded(ended) => {
                    let seen = calls.get_mut(&ended.call).unwrap();
                    seen.ended += 1;
                    assert_eq!(ended.allowed, seen.started > 0, "what is said to have run did");
                    if ended.allowed {
                        self.ran += 1;
                        *self.tools.entry(ended.tool).or_default() += 1;
                    } else {
                        self.refused += 1;
                        *self.rules.entry(ended.rule.unwrap_or_default()).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        assert!(calls.values().all(|seen| seen.ended == 1), "each call has one result");
        engine.verify_run(workspace, run).await.unwrap();
        let exported = engine.export_run(workspace, run, Redaction::Raw).await.unwrap();
        let found: Vec<_> = exported.iter().flat_map(|line| shown.found_in(line)).collect();
        assert!(found.is_empty(), "{run} has seen what lies beyond its scope: {found:?}");
        self.runs += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { proposed, ran, refused, held, through, runs, rules, tools } = self;
        write!(
            f,
            "{proposed} calls in {runs} runs: {ran} ran ({through} through use_tool) {tools:?}, {held} were asked about, {refused} refused {rules:?}"
        )
    }
}
