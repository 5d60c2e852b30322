//! What an audit reads of each event. Pure: the logs are the truth, and these rows can be made again at any time.

use adjutant_core::audit::AuditEvent;
use adjutant_core::guard::judge::Decision;
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::{Event, PauseReason};
use adjutant_core::run::state::{Call, State};
use adjutant_core::time::Time;
use adjutant_store::row::AuditRow;

use crate::projection::actor;

/// The entries that events of a run make: what a person did or is asked to do, and how each call ended.
pub(crate) fn run_rows<'a>(state: &State, events: impl IntoIterator<Item = (u64, Time, &'a Event)>) -> Vec<AuditRow> {
    events.into_iter().filter_map(|(seq, time, event)| run_row(state, seq, time, event)).collect()
}

fn run_row(state: &State, seq: u64, time: Time, event: &Event) -> Option<AuditRow> {
    let start = state.start.as_ref()?;
    let plain = |by: Option<String>| AuditRow {
        stream: StreamId::Run(start.run),
        seq,
        time,
        kind: event.kind().to_owned(),
        actor: by,
        agent: Some(start.agent),
        run: Some(start.run),
        tool: None,
        target: None,
        verdict: None,
        is_error: false,
    };
    let about = |by: Option<String>, call: Option<&Call>| AuditRow {
        tool: call.map(|call| call.tool.clone()),
        target: call.and_then(target),
        ..plain(by)
    };
    match event {
        Event::RunStarted(body) => Some(plain(Some(body.initiator.to_string()))),
        Event::CallEnded(body) => {
            let call = state.call(&body.call);
            let verdict = call.and_then(verdict).map(str::to_owned);
            Some(AuditRow { verdict, is_error: body.is_error, ..about(None, call) })
        }
        // A call that waits or is in doubt is found before it ends; its end is an entry of its own.
        Event::ApprovalAsked(body) => {
            let target = body.target.0.keys().next().cloned();
            let verdict = Some(Decision::Ask.word().to_owned());
            Some(AuditRow { target, verdict, ..about(None, state.call(&body.call)) })
        }
        Event::CallInDoubt(body) => {
            let call = state.call(&body.call);
            Some(AuditRow { verdict: call.and_then(verdict).map(str::to_owned), ..about(None, call) })
        }
        Event::ApprovalDecided(body) => {
            let asked = state.approvals.get(&body.approval).and_then(|approval| approval.asked.as_ref());
            let target = asked.and_then(|asked| asked.target.0.keys().next().cloned());
            Some(AuditRow { target, ..about(Some(actor(&body.by)), state.call(&body.call)) })
        }
        Event::InDoubtResolved(body) => Some(about(Some(actor(&body.by)), state.call(&body.call))),
        Event::ContentFiltered(body) => Some(about(None, body.call.as_ref().and_then(|call| state.call(call)))),
        Event::CancelAsked(body) => Some(plain(Some(actor(&body.by)))),
        Event::Paused(body) if body.reason == PauseReason::Person => Some(plain(body.by.as_ref().map(actor))),
        Event::Resumed(body) => Some(plain(Some(actor(&body.by)))),
        Event::RunEnded(_) => Some(AuditRow { is_error: state.error.is_some(), ..plain(None) }),
        Event::Paused(_)
        | Event::ModelRequested(_)
        | Event::Thought(_)
        | Event::Said(_)
        | Event::ModelAnswered(_)
        | Event::ModelFailed(_)
        | Event::CallProposed(_)
        | Event::CallJudged(_)
        | Event::CallStarted(_)
        | Event::LabelsRaised(_)
        | Event::BudgetAlerted(_)
        | Event::Cancelled(_)
        | Event::Errored(_) => None,
    }
}

/// What the guard said of a call. One that a person was asked about stays an ask, whatever they answered.
fn verdict(call: &Call) -> Option<&'static str> {
    if call.approval.is_some() { Some("ask") } else { call.decision().map(|decision| decision.word()) }
}

/// The first path that a call touches, or would have touched.
fn target(call: &Call) -> Option<String> {
    let seen = call.target().and_then(|target| target.0.keys().next().cloned());
    let touched = || call.judged.as_ref().and_then(|judged| judged.touches.first()).map(|touch| touch.path.clone());
    seen.or_else(touched)
}

/// The entry that an event of an audit log makes. Ends of logs are for machines.
pub(crate) fn audit_row(stream: StreamId, seq: u64, time: Time, event: &AuditEvent) -> Option<AuditRow> {
    let row = AuditRow {
        stream,
        seq,
        time,
        kind: event.kind().to_owned(),
        actor: None,
        agent: None,
        run: None,
        tool: None,
        target: None,
        verdict: None,
        is_error: false,
    };
    match event {
        AuditEvent::Act(act) => {
            let target = act.detail.get("path").and_then(|path| path.as_str()).map(str::to_owned);
            Some(AuditRow { actor: act.by.as_ref().map(actor), agent: act.agent, run: act.run, target, ..row })
        }
        AuditEvent::Day(_) => Some(row),
        AuditEvent::Heads(_) => None,
    }
}
