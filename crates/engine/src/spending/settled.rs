//! What became of a model call, in money: read off the event that ends it.

use adjutant_core::budget::{Change, RUN_PURSE, Spend};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::Event;
use adjutant_core::run::state::State;
use adjutant_core::time::Time;
use adjutant_models::ModelError;
use adjutant_store::row::ModelCallRow;

use crate::projection::word;

/// What a failed call counts as: nothing where the provider did not answer at all, otherwise all that was put aside. Where that
/// is not known, neither is what it cost.
pub(crate) fn of_failure(error: &ModelError, partial: bool, reserved: Option<MicroUsd>) -> Option<MicroUsd> {
    let answered = match error {
        ModelError::Network { .. } => error.may_have_arrived(),
        ModelError::Timeout { .. }
        | ModelError::Truncated { .. }
        | ModelError::Unknown { .. }
        | ModelError::Diverged { .. } => true,
        ModelError::RateLimited { .. }
        | ModelError::Overloaded { .. }
        | ModelError::Unauthorized { .. }
        | ModelError::NoCredit { .. }
        | ModelError::UnknownModel { .. }
        | ModelError::ContextOverflow { .. }
        | ModelError::BadRequest { .. }
        | ModelError::Policy { .. }
        | ModelError::Broken { .. } => false,
    };
    if answered || partial { reserved } else { Some(MicroUsd::ZERO) }
}

/// Puts what a call cost in the place of what was put aside for it. What cannot be priced counts as all of that.
pub(crate) fn settle(purses: Vec<String>, reserved: Option<MicroUsd>, cost: Option<MicroUsd>) -> Vec<Spend> {
    let reserved = reserved.unwrap_or_default();
    let change = Change::Settle { reserved, cost: cost.unwrap_or(reserved) };
    purses.into_iter().map(|purse| Spend { purse, change: change.clone() }).collect()
}

/// What an event changes in purses, and the model call that is over with it. Follows from the log alone, so that a fact that
/// is written again after a lost race settles what it should.
pub(crate) fn of_event(state: &State, event: &Event, at: Time) -> (Vec<Spend>, Option<ModelCallRow>) {
    if let Event::Resumed(body) = event {
        let raise = body.raised.iter().filter(|raise| raise.purse != RUN_PURSE);
        let spends = raise.map(|raise| Spend { purse: raise.purse.clone(), change: Change::Raise(raise.amount) });
        return (spends.collect(), None);
    }
    let Some(row) = model_call(state, event, at) else { return (Vec::new(), None) };
    let asking = state.asking.as_ref();
    let spends = asking.map(|asking| settle(asking.purses.clone(), asking.reserved, row.cost));
    (spends.unwrap_or_default(), Some(row))
}

/// The model call that is over with an event.
pub(crate) fn model_call(state: &State, event: &Event, at: Time) -> Option<ModelCallRow> {
    let (start, asking) = (state.start.as_ref()?, state.asking.as_ref()?);
    let row = |outcome: String| ModelCallRow {
        workspace: start.workspace,
        log: StreamId::Run(start.run),
        turn: asking.turn,
        attempt: asking.attempt,
        agent: Some(start.agent),
        person: start.initiator,
        key: asking.key,
        model: asking.model.clone(),
        served: None,
        at,
        outcome,
        usage: TokenUsage::default(),
        estimated: false,
        cost: None,
        price_version: None,
        ms: 0,
    };
    match event {
        Event::ModelAnswered(body) => Some(ModelCallRow {
            served: Some(body.served_model.clone()),
            usage: body.usage,
            estimated: body.estimated,
            cost: body.cost,
            price_version: body.price_version.clone(),
            ms: body.ms,
            ..row(word(&body.finish))
        }),
        Event::ModelFailed(body) => {
            // What it counts as was reckoned when it was put aside.
            let price_version = asking.price_version.clone();
            let (served, usage) = (body.served_model.clone(), body.usage.unwrap_or_default());
            let row = row(body.class.clone());
            Some(ModelCallRow { served, usage, estimated: body.estimated, cost: body.cost, price_version, ..row })
        }
        _ => None,
    }
}
