//! Counting what logs tell, so that a full run shows which paths it took.

use adjutant_core::run::event::{Actor, Decision, DoubtOutcome, EndStatus, Event};
use adjutant_core::run::state::{Call, State};

use crate::scene::Scene;

/// Counts one event, seen from the state before it.
pub(crate) fn event(scene: &Scene, before: &State, event: &Event) {
    let what = match event {
        Event::ModelFailed(body) if body.class == "lost" => "log: model call lost in a crash",
        Event::ModelFailed(body) if body.retry_at.is_some() => "log: retry of a model call",
        Event::CallStarted(body) if body.attempt > 1 => "log: retry of a tool call",
        Event::CallInDoubt(_) => "log: call in doubt",
        Event::InDoubtResolved(body) => match body.outcome {
            DoubtOutcome::Happened => "log: doubt resolved: happened",
            DoubtOutcome::Run => "log: doubt resolved: run",
            DoubtOutcome::Abandon => "log: doubt resolved: abandon",
        },
        Event::ApprovalAsked(body) => {
            if before.call(&body.call).is_some_and(|call| call.approval.is_some()) {
                "log: asked again"
            } else {
                "log: asked"
            }
        }
        Event::ApprovalDecided(body) => match (body.decision, &body.by) {
            (_, Actor::Clock) => "log: expired",
            (Decision::Approve, _) => "log: approved",
            (Decision::Edit, _) => "log: edited",
            (Decision::Respond, _) => "log: answered instead",
            (Decision::Reject, _) => "log: rejected",
            (Decision::Stop, _) => "log: stopped at an approval",
        },
        Event::CallEnded(body) if !body.allowed => "log: denied",
        Event::CancelAsked(_) => match (&before.asking, before.calls().any(Call::is_running)) {
            (Some(_), _) => "log: cancel during a model call",
            (None, true) => "log: cancel during a tool call",
            (None, false) => "log: cancel while waiting",
        },
        Event::Paused(_) => "log: paused",
        Event::Resumed(_) => "log: resumed",
        Event::RunEnded(body) => match body.status {
            EndStatus::Completed => "end: completed",
            EndStatus::Failed => "end: failed",
            EndStatus::Cancelled => "end: cancelled",
        },
        _ => return scene.hit("log: other events"),
    };
    scene.hit(what);
}
