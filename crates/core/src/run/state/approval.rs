//! One inbox item of a run, as its events tell it.

use crate::id::CallId;
use crate::run::event::{ApprovalAsked, ApprovalDecided, ApprovalKind, CallInDoubt, Decision, InDoubtResolved};
use crate::time::Time;

/// An inbox item of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// What it is about.
    pub kind: ApprovalKind,
    /// The call.
    pub call: CallId,
    /// What was asked; none for a call in doubt.
    pub asked: Option<ApprovalAsked>,
    /// What is known of a call in doubt; none for what asks first.
    pub doubt: Option<CallInDoubt>,
    /// When it was asked.
    pub asked_at: Time,
    /// What was decided, and when.
    pub decided: Option<(ApprovalDecided, Time)>,
    /// What a person said became of a call in doubt, and when.
    pub resolved: Option<(InDoubtResolved, Time)>,
    /// Whether a newer item replaced it, or its call was settled another way.
    pub superseded: bool,
}

impl Approval {
    /// Whether a person said no to a call much like this one: the same tool on the same things, or, where it touches none, at
    /// the same hosts; other small changes do not make it another. What has neither is alike only if it is the same.
    #[must_use]
    pub fn refuses_like(&self, asked: &ApprovalAsked) -> bool {
        let Some(mine) = &self.asked else { return false };
        let no = matches!(&self.decided, Some((decided, _)) if decided.decision == Decision::Reject);
        let paths = |asked: &ApprovalAsked| asked.target.0.keys().cloned().collect::<Vec<_>>();
        let hosts = |asked: &ApprovalAsked| asked.place.as_ref().map(|place| place.hosts.clone()).unwrap_or_default();
        let is_nowhere = asked.target.is_empty() && hosts(asked).is_empty();
        let is_alike = paths(mine) == paths(asked) && hosts(mine) == hosts(asked);
        no && mine.tool == asked.tool && is_alike && (!is_nowhere || mine.place == asked.place)
    }

    /// The item that asks whether a call may run.
    pub(super) fn call(asked: &ApprovalAsked, at: Time) -> Self {
        Self {
            kind: asked.kind,
            call: asked.call.clone(),
            asked: Some(asked.clone()),
            doubt: None,
            asked_at: at,
            decided: None,
            resolved: None,
            superseded: false,
        }
    }

    /// The item that asks what became of a call.
    pub(super) fn in_doubt(doubt: &CallInDoubt, at: Time) -> Self {
        Self {
            kind: ApprovalKind::InDoubt,
            call: doubt.call.clone(),
            asked: None,
            doubt: Some(doubt.clone()),
            asked_at: at,
            decided: None,
            resolved: None,
            superseded: false,
        }
    }

    /// Whether a person still has to decide.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.decided.is_none() && self.resolved.is_none() && !self.superseded
    }

    /// When silence counts as no.
    #[must_use]
    pub fn expires_at(&self) -> Option<Time> {
        self.asked.as_ref().map(|asked| asked.expires_at)
    }
}
