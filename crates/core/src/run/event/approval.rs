//! What is recorded when a person is asked, and when they (or the clock) decide.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{Content, Hash};
use crate::guard::rule::{Match, Rule};
use crate::id::{ApprovalId, CallId, UserId};
use crate::label::Labels;
use crate::time::Time;
use crate::tool::Target;

/// Bytes of what arguments are about: as long as a path is that people write.
const ABOUT_BYTES: usize = 1024;

/// What an approval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A tool call.
    Call,
    /// A call that may or may not have happened.
    InDoubt,
    /// More money.
    Budget,
}

/// A person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    /// The approval.
    pub approval: ApprovalId,
    /// What it is about.
    pub kind: ApprovalKind,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments that would run.
    pub arguments: Content,
    /// One line: what would happen.
    pub summary: String,
    /// What would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Content>,
    /// What the approval is bound to.
    pub fingerprint: Hash,
    /// The state of the target the person sees.
    #[serde(default, skip_serializing_if = "Target::is_empty")]
    pub target: Target,
    /// The state it would leave behind: the content that the person sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended: Option<Target>,
    /// `low`, `medium` or `high`.
    pub risk: Risk,
    /// Why it asks.
    pub reason: String,
    /// The rule that asks.
    pub rule: String,
    /// What the run has seen so far.
    #[serde(default, skip_serializing_if = "Labels::is_none")]
    pub labels: Labels,
    /// How far an approval may reach.
    pub allowed_scopes: Vec<GrantScope>,
    /// The place it is about: where a yes would hold that lasts longer than this call, and what else is alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Match>,
    /// When silence counts as no.
    pub expires_at: Time,
}

/// How much harm a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It can be taken back and makes something new.
    Low,
    /// It can be taken back.
    Medium,
    /// It cannot be taken back.
    High,
}

/// How far an approval reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// This call.
    Once,
    /// Calls of the same tool in the same place, for the rest of the run.
    Run,
    /// The same, in every run of the chat.
    Chat,
    /// The same, in every run of the agent.
    Always,
}

impl GrantScope {
    /// Every scope, narrowest first.
    pub const ALL: [Self; 4] = [Self::Once, Self::Run, Self::Chat, Self::Always];
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Run it.
    Approve,
    /// Run it with these arguments instead.
    Edit,
    /// Do not run it; this is the answer.
    Respond,
    /// Do not run it.
    Reject,
    /// Do not run it and end the run.
    Stop,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum Actor {
    /// A person.
    User(UserId),
    /// The clock: it expired.
    Clock,
    /// A rule that was given with the command.
    Rule(String),
}

/// A person (or the clock) decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalDecided {
    /// The approval.
    pub approval: ApprovalId,
    /// The call.
    pub call: CallId,
    /// The decision.
    pub decision: Decision,
    /// Who decided.
    pub by: Actor,
    /// How far it reaches.
    pub scope: GrantScope,
    /// The arguments to run instead, after an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Content>,
    /// What those are about: a path, a key, an address; empty where they name none. Long arguments are not at hand where
    /// decisions are told in one line. None without an edit, and in logs that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// What the person added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The rule that a yes for longer than this call wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Box<Rule>>,
}

impl ApprovalDecided {
    /// What the arguments of a call are about, as far as one of them says so in a few words. A longer one is left out and not
    /// cut: half a secret would not be known for one.
    #[must_use]
    pub fn about_of(arguments: &Value) -> String {
        let named = ["path", "from", "key", "url"].iter().find_map(|name| arguments.get(*name)?.as_str());
        named.filter(|about| about.len() <= ABOUT_BYTES).unwrap_or_default().to_owned()
    }

    /// The call that a person said yes to with other arguments than were asked, in one line: the tool and what it is about.
    #[must_use]
    pub fn edited(&self, tool: &str) -> Option<String> {
        let arguments = self.arguments.as_ref()?;
        let about = match &self.about {
            Some(about) => about.clone(),
            None => Self::about_of(&serde_json::from_str(arguments.loaded()?).ok()?),
        };
        Some([tool, &about].join(" ").trim_end().to_owned())
    }
}
