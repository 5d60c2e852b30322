//! What an agent may do and reaches, asked beforehand.

use adjutant_core::guard::survey::{Survey, Verb};
use adjutant_engine::{Can, ReachReport};
use serde_json::{Map, Value, json};

/// The answer to whether an agent may do something.
pub(crate) fn can(can: &Can) -> Value {
    let verdict = &can.verdict;
    json!({
        "verdict": verdict.decision.word(), "rule": verdict.rule, "reason": verdict.reason,
        "smallest_grant": verdict.smallest_grant, "tool": can.tool,
    })
}

/// The verbs in the order a person reads them.
const fn verbs(survey: &Survey) -> [(&'static str, &Verb); 5] {
    [
        ("read", &survey.read),
        ("list", &survey.list),
        ("write", &survey.write),
        ("create", &survey.create),
        ("delete", &survey.delete),
    ]
}

/// How much of a notebook an agent reaches.
pub(crate) fn reach(report: &ReachReport) -> Value {
    let survey = &report.survey;
    let verb = |(name, found): (&str, &Verb)| {
        let verdict = report.verdicts.get(name).map(can);
        (name.to_owned(), json!({"count": found.count, "samples": found.samples, "first": verdict}))
    };
    let verbs: Map<String, Value> = verbs(survey).into_iter().map(verb).collect();
    let mut shown = json!({
        "notebook": report.notebook, "entries": survey.entries, "cut": report.cut, "reach": verbs,
        "just_outside": {"count": survey.outside, "samples": survey.just_outside},
    });
    if let Some(change) = &report.change {
        shown["change"] = json!(change);
    }
    shown
}
