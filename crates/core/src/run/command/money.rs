//! Answers to a run whose money is used up, or that cannot tell what it spends: more of it, a yes, or an end.

use super::{Decide, Refusal};
use crate::budget::{Raise, micros};
use crate::guard::arguments;
use crate::money::MicroUsd;
use crate::run::event::{CancelAsked, Decision, Event, GrantScope, Resumed};
use crate::run::state::{BudgetItem, State};

pub(super) fn accept(state: &State, item: &BudgetItem, decide: &Decide) -> Result<Vec<Event>, Refusal> {
    if state.end.is_some() {
        return Err(Refusal::Ended(state.status()));
    }
    if !item.is_pending() {
        return Err(Refusal::Superseded);
    }
    if decide.scope != GrantScope::Once {
        return Err(Refusal::ScopeNotOffered);
    }
    let resumed = |raised, unpriced| Ok(vec![Event::Resumed(Resumed { by: decide.by.clone(), raised, unpriced })]);
    let raised = |amount| resumed(Some(Raise { purse: item.ask.purse.clone(), amount }), None);
    match (decide.decision, decide.arguments.as_deref()) {
        (Decision::Approve, None) if item.ask.unpriced.is_some() => resumed(None, item.ask.unpriced.clone()),
        (Decision::Edit, _) if item.ask.unpriced.is_some() => {
            Err(Refusal::BadArguments("there is no amount to change: approve or reject".to_owned()))
        }
        (Decision::Approve, None) => raised(item.ask.raise),
        (Decision::Edit, Some(text)) => raised(amount(text)?),
        (Decision::Edit, None) => Err(Refusal::BadArguments("an edit needs arguments".to_owned())),
        (Decision::Approve | Decision::Respond | Decision::Reject | Decision::Stop, Some(_)) => {
            Err(Refusal::BadArguments("only an edit takes arguments".to_owned()))
        }
        (Decision::Respond, None) => Err(Refusal::BadArguments("money cannot be answered in words".to_owned())),
        (Decision::Reject | Decision::Stop, None) if state.cancel.is_some() => Ok(Vec::new()),
        (Decision::Reject | Decision::Stop, None) => {
            let reason = decide.message.clone().unwrap_or_else(|| "no more money was given".to_owned());
            Ok(vec![Event::CancelAsked(CancelAsked { by: decide.by.clone(), reason })])
        }
    }
}

/// Another amount than what was asked for: `{"raise_usd": 1.5}`.
fn amount(text: &str) -> Result<MicroUsd, Refusal> {
    let bad = |why: &str| Refusal::BadArguments(why.to_owned());
    let parsed = arguments::parse(text).map_err(|problem| bad(&problem.to_string()))?;
    let usd = parsed.get("raise_usd").and_then(serde_json::Value::as_f64);
    let usd = usd.filter(|usd| *usd > 0.0 && usd.is_finite()).ok_or_else(|| bad("write {\"raise_usd\": DOLLARS}"))?;
    Ok(micros(usd))
}
