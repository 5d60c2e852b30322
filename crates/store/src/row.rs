//! What goes into the store and comes out of it: plain values, no SQL, no decisions.

mod audit;
mod change;
mod doing;
mod guard;
mod money;
mod workspace;

use std::collections::BTreeMap;

use std::collections::BTreeSet;

use adjutant_core::budget::Spend;
use adjutant_core::content::Hash;
use adjutant_core::guard::rate::Taking;
use adjutant_core::id::{AgentId, ApprovalId, CallId, ChatId, NodeId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::time::Time;

pub use crate::access::{InviteRow, SessionRow, TokenRow};
pub use crate::admission::Admission;
pub use crate::filter::{ApprovalFilter, ChatFilter, Order, RunFilter};
pub use crate::keys::Rewrapped;
pub use crate::kv::Owner;
pub use crate::people::{LoginRow, MemberRow, MembershipRow};
pub use crate::provider_keys::{KeyChange, OpenKey};
pub use crate::replies::Reply;
pub use crate::retention::{OldPlace, OldRuns, Sizes};
pub use crate::tenants::NewTenant;
pub use crate::waiting::WaitingRow;
pub use audit::{AuditFilter, AuditPlace, AuditRow};
pub use change::{Change, ChangedChat};
pub use doing::{Doing, Switch};
pub use guard::{MarkRow, RuleRow};
pub(crate) use money::ANSWERED;
pub use money::{BudgetRow, ModelCallRow, ProviderKeyRow, UsageFilter, UsageRow};
pub use workspace::{Policy, PolicyNames, Under, WorkspaceRow};

/// Who appends. Owners carry the epoch of their claim and are refused once it is stale (fencing); commands come from any
/// node and carry none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The driver that holds the run.
    Owner {
        /// Its node.
        node: NodeId,
        /// The epoch of its claim.
        epoch: u64,
    },
    /// Somebody who asks for something.
    Command,
}

/// One atomic addition to a stream: events, blocks and the projection rows that follow from them.
#[derive(Debug, Clone)]
pub struct Append {
    /// The tenant.
    pub workspace: WorkspaceId,
    /// The log.
    pub stream: StreamId,
    /// The head the events were made for; anything else in the store is answered Stale.
    pub expected: Head,
    /// Who appends.
    pub writer: Writer,
    /// The events, in order.
    pub entries: Vec<Entry>,
    /// Contents the events refer to.
    pub blocks: Vec<Block>,
    /// The run's row after these events; none for an audit log.
    pub run: Option<RunChange>,
    /// Inbox rows that these events make or change.
    pub approvals: Vec<ApprovalRow>,
    /// Call rows that these events make or change.
    pub calls: Vec<CallRow>,
    /// Standing rules that these events make. One that is there already is left as it is.
    pub rules: Vec<RuleRow>,
    /// What an audit reads of these events.
    pub audit: Vec<AuditRow>,
    /// Contents of files that count as untrusted from now on.
    pub marks: Vec<MarkRow>,
    /// What its calls take from rates. If one of them does not fit, nothing is written; only a run that goes on takes.
    pub takings: Vec<Taking>,
    /// Model calls that are over with these events.
    pub model_calls: Vec<ModelCallRow>,
    /// What is done with these events. If it cannot be, nothing is written.
    pub doing: Option<Doing>,
    /// What changes in purses. If one change is refused, nothing is written; only a run that goes on spends.
    pub spends: Vec<Spend>,
    /// The policy that its calls were judged by; answered Stale when another counts. Only a run that goes on has one.
    pub under: Option<Under>,
}

/// The run's row after an append.
#[derive(Debug, Clone)]
pub enum RunChange {
    /// The run is new. `tip` moves the chat's branch in the same transaction.
    Start {
        /// The row.
        row: Box<RunRow>,
        /// The chat's branch before and after.
        tip: Tip,
        /// How many runs of its agent may be driven at the same time, this one among them.
        places: u32,
    },
    /// The run goes on.
    Update {
        /// The columns that change.
        state: RunState,
        /// Gives the run back: nobody owns it any more.
        release: bool,
    },
}

/// Moves the end of a chat's branch; Stale when another run got there first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tip {
    /// The last run of the branch, as the caller saw it.
    pub expected: Option<RunId>,
    /// A run that the new one replaces (an edit): it and what follows it are marked superseded.
    pub supersedes: Option<RunId>,
    /// Whether the chat's branch now ends in the new run (no for child runs that have no chat of their own).
    pub advance: bool,
}

/// A content-addressed piece of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The hash of `bytes`.
    pub hash: Hash,
    /// The content.
    pub bytes: Vec<u8>,
}

/// A run, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub id: RunId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// Its chat.
    pub chat: ChatId,
    /// Its agent.
    pub agent: AgentId,
    /// The version of the agent.
    pub agent_version: u64,
    /// Its notebook, if it has one.
    pub notebook: Option<NotebookId>,
    /// The run it continues (its transcript comes before this one's) and that run's last sequence number then.
    pub base: Option<(RunId, u64)>,
    /// The run it was made from: forked, edited or extended.
    pub parent: Option<RunId>,
    /// The person it acts for.
    pub initiator: UserId,
    /// `message`, `schedule`, …
    pub trigger: String,
    /// When it was asked for.
    pub created_at: Time,
    /// The run that replaced it, after an edit.
    pub superseded_by: Option<RunId>,
    /// Where its log ends.
    pub head: Head,
    /// The node that drives it.
    pub owner: Option<NodeId>,
    /// How often it was claimed.
    pub epoch: u64,
    /// What changes while it goes on.
    pub state: RunState,
}

/// The columns of a run that change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunState {
    /// One of the API's status words.
    pub status: String,
    /// When somebody should drive it next: now for a run that can go on, the next expiry for one that waits, none for one
    /// that only a command can move.
    pub due: Option<Time>,
    /// When its last event was recorded.
    pub updated_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Model turns so far.
    pub turns: u32,
    /// Tool calls so far.
    pub calls: u32,
    /// Tokens so far.
    pub usage: TokenUsage,
    /// Money so far.
    pub cost: MicroUsd,
    /// What lists show beyond the columns (title, error, result preview): JSON, sealed at rest.
    pub summary: String,
}

/// One item of the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// The approval.
    pub id: ApprovalId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// The run that waits.
    pub run: RunId,
    /// The chat of the run.
    pub chat: ChatId,
    /// The agent of the run.
    pub agent: AgentId,
    /// The call it is about, if any.
    pub call: Option<CallId>,
    /// `call`, `in_doubt` or `budget`.
    pub kind: String,
    /// `pending`, `approved`, `rejected`, `expired`, `superseded`.
    pub status: String,
    /// The tool, if any.
    pub tool: Option<String>,
    /// When it was asked.
    pub created_at: Time,
    /// When it counts as rejected.
    pub expires_at: Option<Time>,
    /// When it was decided.
    pub decided_at: Option<Time>,
    /// The whole card: JSON, sealed at rest.
    pub card: String,
}

/// One tool call of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow {
    /// The run.
    pub run: RunId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The first path it touches, if any.
    pub target: Option<String>,
    /// `allow`, `ask`, `deny`, once judged.
    pub verdict: Option<String>,
    /// How often it was started.
    pub attempts: u32,
    /// When it was proposed.
    pub proposed_at: Time,
    /// When it was first started.
    pub started_at: Option<Time>,
    /// The sequence number of its one terminal result. A second one for the same call is refused by the database.
    pub ended: Option<CallEnd>,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd {
    /// The event that ended it.
    pub seq: u64,
    /// When.
    pub at: Time,
    /// Whether it failed or was refused.
    pub is_error: bool,
}

/// A run that this node drives from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The run.
    pub run: RunId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// The epoch every append must carry.
    pub epoch: u64,
}

/// What came of a look for runs to drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// These are driven from now on. None where what is due is not for this node to take now.
    Runs(Vec<Claim>),
    /// Nothing is due before this moment, or nothing at all.
    NoneBefore(Option<Time>),
}

/// A folder tree of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotebookRow {
    /// The notebook.
    pub id: NotebookId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// Its short name, unique in the workspace.
    pub slug: String,
    /// The host folder of a linked notebook; none for a managed one.
    pub linked: Option<String>,
    /// When it was made.
    pub created_at: Time,
}

/// A thread of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRow {
    /// The chat.
    pub id: ChatId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// Its agent.
    pub agent: AgentId,
    /// Its notebook, fixed when it is made.
    pub notebook: Option<NotebookId>,
    /// Who started it.
    pub owner: UserId,
    /// Its title, sealed at rest.
    pub title: String,
    /// The last run of its current branch.
    pub tip: Option<RunId>,
    /// The chat and run it was forked from.
    pub forked_from: Option<RunId>,
    /// When it was made.
    pub created_at: Time,
    /// Whether everybody in the workspace may see it; otherwise its starter and the admins.
    pub shared: bool,
    /// A name that a client chose for it, unique in the workspace.
    pub alias: Option<String>,
    /// The model of its runs that name none; none is its agent's.
    pub model: Option<String>,
    /// Free fields of whoever made it: JSON, sealed at rest.
    pub metadata: Option<String>,
}

/// One version of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    /// The agent.
    pub id: AgentId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// Its short name, unique in the workspace.
    pub slug: String,
    /// The version, from 1.
    pub version: u64,
    /// Whether it may run.
    pub active: bool,
    /// The configuration: JSON.
    pub spec: String,
    /// When this version was saved.
    pub saved_at: Time,
    /// The person the agent belongs to; none for one of the workspace.
    pub owner: Option<UserId>,
    /// The person who made the agent; counts when it is made, and stays as it was then.
    pub created_by: Option<UserId>,
    /// Who else has to do with the agent now, whichever version this is.
    pub people: AgentPeople,
}

/// Who has to do with an agent beside its owner and the admins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentPeople {
    /// Those who see it and run it as its owner does.
    pub shared_with: BTreeSet<UserId>,
    /// Those who may decide what it asks, whoever started the run.
    pub approvers: BTreeSet<UserId>,
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// The person.
    pub id: UserId,
    /// The name they sign in with, unique.
    pub name: String,
    /// When they were added.
    pub created_at: Time,
}

/// A file as the search index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedFile {
    /// The notebook path.
    pub path: String,
    /// Its size when it was read.
    pub size: u64,
    /// Its modification time then, in milliseconds.
    pub modified: i64,
    /// Its text.
    pub text: String,
}

/// What the index knows of each path: size and modification time.
pub type IndexState = BTreeMap<String, (u64, i64)>;

/// A match of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The notebook path.
    pub path: String,
    /// The text around the match, the matched words in `[` `]`.
    pub snippet: String,
}
