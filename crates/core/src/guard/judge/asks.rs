//! What asks a person: the agent's list, a standing rule, the content filter, what the run has seen, and last its autonomy.

use super::{Answer, Question, Verdict, named, word};
use crate::guard::filter::Filtered;
use crate::guard::judge::Decision;
use crate::guard::policy::{Autonomy, Flow};
use crate::guard::rule::Rule;
use crate::label::Labels;
use crate::run::event::GrantScope;
use crate::tool::{Category, Effect, ToolSpec};

/// What a person has to answer whatever the autonomy: the agent's list, a standing rule, the content filter (check 8).
pub(super) fn asks(
    question: &Question<'_>,
    spec: &ToolSpec,
    rule: Option<&Rule>,
    filtered: &Filtered<'_>,
) -> Option<Verdict> {
    let ask =
        |name: &str, reason: String, grant: String| Some(Verdict::ask(name, reason, Some(grant), &[GrantScope::Once]));
    // Whoever wrote the arguments has been asked about the tool.
    if question.answer == Answer::None && question.agent.requires_approval.contains(spec.name()) {
        let grant = format!("take `{}` off requires_approval", spec.name());
        return ask("requires_approval", format!("`{}` always asks.", spec.name()), grant);
    }
    if let Some(rule) = rule.filter(|rule| rule.decision == Decision::Ask) {
        return ask(&named(rule), format!("A standing rule asks: {}.", rule.in_words()), without_rule(rule));
    }
    let entry = filtered.asks?;
    ask("content_filter", format!("Entry {entry} of the content filter asks."), without_entry(entry))
}

pub(super) fn without_rule(rule: &Rule) -> String {
    format!("remove rule {}", rule.id)
}

pub(super) fn without_entry(entry: impl std::fmt::Display) -> String {
    format!("take entry {entry} off the content filter")
}

/// What the run has seen decides what may leave it (check 9): private and untrusted content together make every way out ask,
/// and what an untrusted run wants to remember asks too. Autonomy and standing rules do not lift it (rule I1, guard T9).
pub(super) fn flow(question: &Question<'_>, spec: &ToolSpec) -> Option<Verdict> {
    let Labels { private, untrusted } = question.labels;
    let remembers = spec.category == Category::Memory && spec.effect != Effect::Read && untrusted;
    let leaves = spec.egress && private && untrusted;
    let reason = match (leaves, remembers) {
        (true, _) => "The run has read private data and content that no member wrote: nothing leaves without a person.",
        (false, true) => "The run has read content that no member wrote: what it wants to remember needs a person.",
        (false, false) => return None,
    };
    Some(match question.agent.flow {
        // Nothing that could be granted lifts it.
        Flow::Ask => Verdict::ask("flow", reason, None, &[GrantScope::Once]),
        Flow::Deny => Verdict::deny("flow", reason, Some("flow: ask".to_owned())),
    })
}

/// What the call does, now that it is known what is there: writing what is not there is creating it.
fn effect_of(question: &Question<'_>, spec: &ToolSpec) -> Effect {
    let creates = question
        .prepared
        .is_some_and(|prepared| !prepared.target.is_empty() && prepared.target.0.values().all(Option::is_none));
    if spec.effect == Effect::Write && creates { Effect::Create } else { spec.effect }
}

pub(super) fn by_autonomy(question: &Question<'_>, spec: &ToolSpec) -> Verdict {
    let effect = effect_of(question, spec);
    // A run may be kept shorter than its agent, never longer.
    let autonomy = question.autonomy.map_or(question.agent.autonomy, |own| own.min(question.agent.autonomy));
    if is_free(autonomy, effect, spec.undoable) {
        return Verdict::allow("autonomy", "The agent may do this without asking.");
    }
    let doing = match effect {
        Effect::Read => "reading",
        Effect::Create => "creating",
        Effect::Write => "writing",
        Effect::Delete => "deleting",
        Effect::Execute => "running code",
        Effect::Send => "sending",
    };
    let reason = format!("At this agent's autonomy, {doing} asks.");
    let enough = Autonomy::ALL.into_iter().find(|level| is_free(*level, effect, spec.undoable));
    let grant = enough.map(|level| match level <= question.agent.autonomy {
        true => "start the run without an autonomy of its own".to_owned(),
        false => format!("autonomy: {}", word(&level)),
    });
    Verdict::ask("autonomy", reason, grant, &GrantScope::ALL)
}

/// Whether an effect is free at an autonomy (check 10).
#[must_use]
pub fn is_free(autonomy: Autonomy, effect: Effect, undoable: bool) -> bool {
    match autonomy {
        Autonomy::None => false,
        Autonomy::Low => effect == Effect::Read,
        Autonomy::Medium => match effect {
            Effect::Read | Effect::Create => true,
            Effect::Write => undoable,
            Effect::Delete | Effect::Execute | Effect::Send => false,
        },
        Autonomy::High => effect == Effect::Read || undoable,
        Autonomy::Full => true,
    }
}
