//! One tool call of a run, as its events tell it.

use crate::content::{Content, Hash};
use crate::guard::judge::{Answer, Decision, Verdict};
use crate::id::{ApprovalId, CallId};
use crate::label::Labels;
use crate::run::event::{CallEnded, CallStarted, Decided, DoubtOutcome, InDoubtResolved};
use crate::time::Time;
use crate::tool::{Prepared, Recovery, Target, Touch};

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its id.
    pub id: CallId,
    /// The tool, as the model wrote it.
    pub tool: String,
    /// The arguments as the model wrote them, or as a person edited them.
    pub arguments: Content,
    /// When it was proposed.
    pub proposed_at: Time,
    /// What the guard last said. None before, and again after a person approved: the guard looks once more.
    pub judged: Option<Judged>,
    /// Its latest inbox item; one about a doubt is kept with the doubt.
    pub approval: Option<ApprovalId>,
    /// Whether a person said yes, and to which state of the target.
    pub answered: Option<Answered>,
    /// Its latest start.
    pub started: Option<CallStarted>,
    /// When it was first started.
    pub started_at: Option<Time>,
    /// How many of its starts a permit was handed out for.
    pub(super) permits: u32,
    /// Whether nobody knows if it happened, and what a person said about it.
    pub doubt: Option<Doubt>,
    /// Its one result, with its sequence number and time.
    pub ended: Option<(CallEnded, u64, Time)>,
}

/// What the guard said of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// What the tool saw.
    pub prepared: Option<Prepared>,
    /// The paths it reads or changes.
    pub touches: Vec<Touch>,
    /// The hash of the policy it was judged under.
    pub policy: Hash,
    /// The labels of what a refusal quotes.
    pub labels: Labels,
    /// The event that said so.
    pub seq: u64,
}

/// What a person said to a call that is to run.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    /// They wrote the arguments; what these do, nobody has seen yet.
    Edited,
    /// Yes, to what they saw; nothing is known of that for a call that is taken up again.
    Yes(Option<Seen>),
}

/// What a person's yes is bound to.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The state of the target.
    pub target: Target,
    /// The state it would leave behind: the content that was shown.
    pub intended: Option<Target>,
    /// Tool, definition, arguments and target in one hash; none for a call in doubt, which runs as it was started.
    pub fingerprint: Option<Hash>,
    /// When the question expires that it answers; none for a call in doubt.
    pub until: Option<Time>,
}

impl Seen {
    /// Whether the yes still counts: what would run now is what the person saw, and the question has not expired since, however
    /// long the run was held after it.
    ///
    /// # Errors
    /// The rule by which it does not, and why.
    pub fn holds(&self, prepared: &Prepared, print: Hash, now: Time) -> Result<(), (&'static str, &'static str)> {
        if self.until.is_some_and(|until| until <= now) {
            return Err(("approval_expired", "It was approved so long ago that the question has expired since."));
        }
        let same = self.target == prepared.target && self.intended == prepared.intended;
        if !same || self.fingerprint.is_some_and(|seen| seen != print) {
            let why = "What would run is not what was approved: its target, its content or the tool has changed.";
            return Err(("target_changed", why));
        }
        Ok(())
    }
}

/// A call that may or may not have happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// The inbox item.
    pub approval: ApprovalId,
    /// What is known.
    pub message: String,
    /// What a person said.
    pub resolved: Option<InDoubtResolved>,
}

impl Call {
    pub(super) fn proposed(id: CallId, tool: &str, arguments: Content, at: Time) -> Self {
        Self {
            id,
            tool: tool.to_owned(),
            arguments,
            proposed_at: at,
            judged: None,
            approval: None,
            answered: None,
            started: None,
            started_at: None,
            permits: 0,
            doubt: None,
            ended: None,
        }
    }

    /// Whether it was started and nobody has said yet what became of it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.started.is_some() && self.ended.is_none() && self.doubt.is_none()
    }

    /// What becomes of it after a crash, once it was started.
    #[must_use]
    pub fn recovery(&self) -> Option<Recovery> {
        self.started.as_ref().map(|started| started.recovery)
    }

    /// Whether nobody knows if it happened, and no person has said so yet.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.ended.is_none() && self.doubt.as_ref().is_some_and(|doubt| doubt.resolved.is_none())
    }

    /// What a person said to it, as the guard is told.
    #[must_use]
    pub const fn answer(&self) -> Answer {
        match self.answered {
            None => Answer::None,
            Some(Answered::Edited) => Answer::Edited,
            Some(Answered::Yes(_)) => Answer::Yes,
        }
    }

    /// What a person saw when they said yes.
    #[must_use]
    pub const fn seen(&self) -> Option<&Seen> {
        match &self.answered {
            Some(Answered::Yes(seen)) => seen.as_ref(),
            Some(Answered::Edited) | None => None,
        }
    }

    /// The decision that its end is recorded with.
    #[must_use]
    pub fn decided(&self) -> Option<Decided> {
        let judged = self.judged.as_ref()?;
        let (rule, arguments) = (judged.verdict.rule.clone(), self.arguments.hash());
        Some(Decided { rule, policy: judged.policy, arguments })
    }

    /// What the guard last decided.
    #[must_use]
    pub fn decision(&self) -> Option<Decision> {
        self.judged.as_ref().map(|judged| judged.verdict.decision)
    }

    /// Whether it counts against the limit of the run: it ran, or it may still run. What was refused does not.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        let may_run = match self.decision() {
            Some(Decision::Allow | Decision::Ask) => true,
            Some(Decision::Deny) => false,
            None => self.answered.is_some(),
        };
        self.started.is_some() || (self.ended.is_none() && may_run)
    }

    /// Whether this call and another must not run side by side.
    #[must_use]
    pub fn clashes(&self, other: &Self) -> bool {
        let (Some(mine), Some(theirs)) = (&self.judged, &other.judged) else { return false };
        mine.touches.iter().any(|mine| theirs.touches.iter().any(|theirs| mine.clashes(theirs)))
    }

    /// The state of what it touches, as far as it is known: as the guard last saw it, else as it was started on.
    #[must_use]
    pub fn target(&self) -> Option<&Target> {
        let prepared = self.judged.as_ref().and_then(|judged| judged.prepared.as_ref());
        let started = self.started.as_ref().map(|started| &started.target);
        prepared.map(|prepared| &prepared.target).or(started)
    }

    /// Whether a person said that it is to be run again.
    #[must_use]
    pub fn is_to_be_rerun(&self) -> bool {
        let resolved = self.doubt.as_ref().and_then(|doubt| doubt.resolved.as_ref());
        resolved.is_some_and(|resolved| resolved.outcome == DoubtOutcome::Run)
    }
}
