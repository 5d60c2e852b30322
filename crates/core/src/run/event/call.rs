//! What is recorded of a tool call, from the moment the model asks for it to its one result.

use serde::{Deserialize, Serialize};

use super::approval::Actor;
use crate::content::{Content, Hash};
use crate::guard::judge::Verdict;
use crate::id::{ApprovalId, CallId, RuleId};
use crate::label::Labels;
use crate::tool::{Prepared, Recovery, Resource, Target, Touch};

/// The model asked for a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallProposed {
    /// The turn.
    pub turn: u32,
    /// The call.
    pub call: CallId,
    /// The tool, as the model wrote it.
    pub tool: String,
    /// The arguments, as the model wrote them.
    pub arguments: Content,
}

/// The guard judged a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallJudged {
    /// The call.
    pub call: CallId,
    /// The verdict with its deciding rule.
    pub verdict: Verdict,
    /// The hash of the policy it was judged under.
    pub policy: Hash,
    /// What the tool saw before, if the call came that far. The judgement depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
    /// The paths it reads or changes: calls that meet on one wait for each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Touch>,
    /// What else it was judged by; none in logs that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// The labels of what a refusal quotes.
    #[serde(default, skip_serializing_if = "Labels::is_none")]
    pub labels: Labels,
}

/// What counts beside the policy of the agent, at the moment of a judgement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standing {
    /// The standing rules about the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleId>,
    /// What whoever started the run was in the workspace; none for somebody who is no member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// A tool call is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments that run.
    pub arguments: Content,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The idempotency key.
    pub key: Hash,
    /// What becomes of it if its end is never recorded.
    pub recovery: Recovery,
    /// The state of the target before.
    #[serde(default, skip_serializing_if = "Target::is_empty")]
    pub target: Target,
    /// The state it is meant to leave behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended: Option<Target>,
    /// What allowed it, where the guard looked once more before it was started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<StartedAgain>,
}

/// What allowed a call to be started once more, after a crash or a failure without effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedAgain {
    /// The hash of the policy it was judged under.
    pub policy: Hash,
    /// What decided.
    pub rule: String,
}

/// A call has its one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallEnded {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// What the model reads.
    pub output: Content,
    /// Whether it failed or was refused.
    pub is_error: bool,
    /// Whether it was allowed to run.
    pub allowed: bool,
    /// The rule that stopped it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
    /// What its output adds to the run's labels.
    #[serde(default, skip_serializing_if = "Labels::is_none")]
    pub labels: Labels,
    /// What it created, changed or deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// The decision it ran or was refused under; none for a call that was never judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Decided>,
}

/// What the guard last decided about a call, so that its one line in the audit tells it whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The deciding rule.
    pub rule: String,
    /// The hash of the policy.
    pub policy: Hash,
    /// The hash of the arguments, as they were written.
    pub arguments: Hash,
}

/// A started call may or may not have happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallInDoubt {
    /// The call.
    pub call: CallId,
    /// The inbox item that asks a person.
    pub approval: ApprovalId,
    /// The tool.
    pub tool: String,
    /// What is known.
    pub message: String,
    /// One line: what was to happen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// The arguments it was started with: whoever says that it is to run sees what would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Content>,
}

/// What became of a call in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoubtOutcome {
    /// It happened.
    Happened,
    /// It did not: run it.
    Run,
    /// Leave it.
    Abandon,
}

/// A person said what became of a call in doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InDoubtResolved {
    /// The inbox item.
    pub approval: ApprovalId,
    /// The call.
    pub call: CallId,
    /// What became of it.
    pub outcome: DoubtOutcome,
    /// Its result, if it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Content>,
    /// Who said so.
    pub by: Actor,
}
