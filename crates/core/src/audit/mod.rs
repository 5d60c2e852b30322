//! What is recorded outside of runs, in its stored form: the acts of people and of the instance, and the day records over
//! where every log ends. A body gains fields only with a default; a kind never changes meaning.

pub mod filter;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::Hash;
use crate::guard::redact::Held;
use crate::id::{AgentId, RunId};
use crate::run::chain::{Head, StreamId};
use crate::run::event::{Actor, BadEvent, salted};
use crate::time::Time;

macro_rules! deeds {
    ($($(#[$doc:meta])* $name:ident $kind:literal;)*) => {
        /// What was done. The name is the kind under which it is stored.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Deed {$( $(#[$doc])* $name, )*}

        impl Deed {
            /// Every deed.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The stored name.
            #[must_use]
            pub const fn kind(self) -> &'static str {
                match self {$( Self::$name => $kind, )*}
            }
        }
    };
}

deeds! {
    /// The instance was started, with these settings.
    InstanceStarted "instance_started";
    /// An agent was made, or its next version saved.
    AgentSaved "agent_saved";
    /// An agent was switched on or off.
    AgentSwitched "agent_switched";
    /// An agent was taken away.
    AgentRemoved "agent_removed";
    /// A standing rule was made or changed.
    RuleSaved "rule_saved";
    /// A standing rule was taken away.
    RuleRemoved "rule_removed";
    /// Files are about to be put back as they were before a run.
    UndoBegun "undo_begun";
    /// What became of that.
    UndoEnded "undo_ended";
    /// What was said in runs is about to be erased.
    EraseBegun "erase_begun";
    /// What became of that.
    EraseEnded "erase_ended";
    /// Runs were written to a file, to be kept elsewhere.
    RunsArchived "runs_archived";
    /// A chat is about to be shown to everybody in the workspace, or to its starter alone again.
    ChatShared "chat_shared";
    /// A chat was taken away, with what was said in it.
    ChatDeleted "chat_deleted";
    /// The audit was written to a file.
    AuditExported "audit_exported";
    /// Somebody signed in.
    SignedIn "signed_in";
    /// Somebody could not sign in.
    SignInRefused "sign_in_refused";
    /// Somebody signed out.
    SignedOut "signed_out";
    /// A person was added or changed.
    UserSaved "user_saved";
    /// A person was taken away.
    UserRemoved "user_removed";
    /// Somebody has another password.
    PasswordChanged "password_changed";
    /// A link was made that lets somebody in, or renews a password.
    LinkMade "link_made";
    /// A link that nobody had used was taken back.
    LinkWithdrawn "link_withdrawn";
    /// An access token was made.
    TokenMade "token_made";
    /// An access token was taken back.
    TokenRevoked "token_revoked";
    /// Somebody said to an agent what its content filter forbids.
    MessageBlocked "message_blocked";
    /// A workspace was made.
    WorkspaceMade "workspace_made";
    /// A workspace was taken away, with all that was in it.
    WorkspaceRemoved "workspace_removed";
    /// A provider is about to be asked for the vectors of texts; the money is put aside.
    EmbeddingAsked "embedding_asked";
    /// What became of that, and what it cost.
    EmbeddingEnded "embedding_ended";
    /// A model is about to be asked for a word, to see whether a key is good; the money is put aside.
    KeyTestAsked "key_test_asked";
    /// What became of that, and what it cost.
    KeyTestEnded "key_test_ended";
    /// Spending outside of runs has reached an amount that somebody wanted to hear of.
    AmountReached "amount_reached";
    /// A setting was changed.
    SettingChanged "setting_changed";
    /// A workspace, or the whole instance, was stopped.
    Halted "halted";
    /// It was let go on.
    HaltLifted "halt_lifted";
    /// A person is about to make or change a file.
    FileSaved "file_saved";
    /// A person is about to delete a file or folder.
    FileDeleted "file_deleted";
    /// A person is about to move a file.
    FileMoved "file_moved";
    /// A change of a file that was recorded was not made after all.
    FileKept "file_kept";
    /// Secrets were shown as they were recorded: in what an agent asks to somebody who may decide it, in a search or a file to an
    /// admin.
    SecretsRevealed "secrets_revealed";
    /// A copy of the instance is about to be written to a file.
    BackupMade "backup_made";
    /// The instance was put back from such a file.
    BackupRestored "backup_restored";
    /// The instance was moved here from another database.
    DatabaseMoved "database_moved";
    /// The tables beside the logs are about to be made again from the logs.
    TablesRebuilt "tables_rebuilt";
}

/// Something that somebody did to the instance or a workspace: who, what, and to what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Act {
    /// What was done.
    #[serde(skip, default = "unnamed")]
    pub deed: Deed,
    /// Who did it; none for the instance itself, or somebody who is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// The agent it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The run it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// One line for a person: what it was done to.
    pub summary: String,
    /// The particulars.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub detail: Map<String, Value>,
}

/// Stands in until the kind is known: a body does not name its own kind.
const fn unnamed() -> Deed {
    Deed::InstanceStarted
}

impl Act {
    /// An act, in one line.
    #[must_use]
    pub fn new(deed: Deed, by: Option<Actor>, summary: impl Into<String>) -> Self {
        Self { deed, by, agent: None, run: None, summary: summary.into(), detail: Map::new() }
    }

    /// The agent it is about.
    #[must_use]
    pub const fn agent(mut self, agent: AgentId) -> Self {
        self.agent = Some(agent);
        self
    }

    /// The run it is about.
    #[must_use]
    pub const fn run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// One of the particulars. Never a secret: what is recorded here is read by others.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }
}

/// Where a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamHead {
    /// The log.
    pub stream: StreamId,
    /// Its end.
    #[serde(flatten)]
    pub head: Head,
}

/// Where the runs of a workspace ended when a day was closed; one part of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DayHeads {
    /// The day, as in `2026-11-15`.
    pub day: String,
    /// The runs that moved.
    pub heads: Vec<StreamHead>,
}

/// The record of a day: where the audit logs ended when it was closed, signed by the instance. Those logs name the ends of
/// the runs, so the one signature covers them all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayRecord {
    /// The day, as in `2026-11-15`.
    pub day: String,
    /// The hash of the signature of the day before it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Hash>,
    /// The logs of the workspaces, and of the instance up to this record.
    pub heads: Vec<StreamHead>,
    /// The public key, in hexadecimal.
    pub key: String,
    /// The signature, in hexadecimal.
    pub signature: String,
}

impl DayRecord {
    /// The bytes that are signed.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let mut message = b"adjutant-day-v1\0".to_vec();
        let mut part = |bytes: &[u8]| {
            message.extend((bytes.len() as u64).to_le_bytes());
            message.extend(bytes);
        };
        part(self.day.as_bytes());
        part(self.previous.as_ref().map_or(&[][..], |hash| &hash.0));
        part(self.key.as_bytes());
        for end in &self.heads {
            part(end.stream.to_string().as_bytes());
            part(&end.head.seq.to_le_bytes());
            part(&end.head.hash.0);
        }
        message
    }

    /// What the next day's record refers to.
    #[must_use]
    pub fn link(&self) -> Hash {
        Hash::of(self.signature.as_bytes())
    }
}

/// One entry of an audit log.
#[derive(Debug, Clone, PartialEq)]
pub enum AuditEvent {
    /// Somebody did something.
    Act(Act),
    /// Ends of runs.
    Heads(DayHeads),
    /// A day was closed.
    Day(DayRecord),
}

impl AuditEvent {
    const HEADS: &'static str = "day_heads";
    const DAY: &'static str = "day_closed";

    /// The stored name of the kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Act(act) => act.deed.kind(),
            Self::Heads(_) => Self::HEADS,
            Self::Day(_) => Self::DAY,
        }
    }

    /// The stored body: JSON with a random salt first.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn encode(&self, salt: [u8; 16]) -> Result<Vec<u8>, serde_json::Error> {
        Ok(salted(&self.json()?, salt))
    }

    fn json(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Act(act) => serde_json::to_string(act),
            Self::Heads(heads) => serde_json::to_string(heads),
            Self::Day(day) => serde_json::to_string(day),
        }
    }

    /// The entry without the credentials that are held here, as far as it can be read again.
    #[must_use]
    pub fn without(&self, held: &Held) -> Cow<'_, Self> {
        let clean = self.json().ok().and_then(|json| held.clean_json(&json));
        match clean.map(|body| Self::decode(self.kind(), &body)) {
            Some(Ok(clean)) => Cow::Owned(clean),
            Some(Err(_)) | None => Cow::Borrowed(self),
        }
    }

    /// Reads a stored entry.
    ///
    /// # Errors
    /// An unknown kind, or a body that is not of its kind.
    pub fn decode(kind: &str, body: &[u8]) -> Result<Self, BadEvent> {
        let bad = |kind: &'static str| move |source| BadEvent::Body { kind, source };
        match kind {
            Self::HEADS => serde_json::from_slice(body).map(Self::Heads).map_err(bad(Self::HEADS)),
            Self::DAY => serde_json::from_slice(body).map(Self::Day).map_err(bad(Self::DAY)),
            _ => {
                let deed = Deed::ALL.iter().find(|deed| deed.kind() == kind);
                let deed = *deed.ok_or_else(|| BadEvent::UnknownKind(kind.to_owned()))?;
                let act: Act = serde_json::from_slice(body).map_err(bad(deed.kind()))?;
                Ok(Self::Act(Act { deed, ..act }))
            }
        }
    }
}

/// The UTC day of a moment, as in `2026-11-15`.
#[must_use]
pub fn day_of(time: Time) -> String {
    time.to_string().chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::UserId;

    #[test]
    fn an_act_reads_back_as_it_was_written() {
        let by = Actor::User(UserId::new(Time::from_millis(5), [7; 10]));
        let run = RunId::new(Time::from_millis(6), [8; 10]);
        let act = AuditEvent::Act(Act::new(Deed::UndoBegun, Some(by), "a run").run(run).with("files", vec!["/a.md"]));
        let body = act.encode([1; 16]).unwrap();
        assert!(body.starts_with(br#"{"salt":"01010101010101010101010101010101","#));
        assert_eq!(AuditEvent::decode(act.kind(), &body).unwrap(), act);
        assert!(AuditEvent::decode("made_up", &body).is_err());
    }

    #[test]
    fn a_kind_stands_for_one_deed() {
        let mut kinds: Vec<_> = Deed::ALL.iter().map(|deed| deed.kind()).collect();
        kinds.extend([AuditEvent::HEADS, AuditEvent::DAY]);
        let all = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), all);
        assert!(kinds.iter().all(|kind| !crate::run::event::Event::KINDS.contains(kind)));
    }

    #[test]
    fn every_part_of_a_day_is_signed() {
        let head = Head { seq: 3, hash: Hash::of(b"three") };
        let day = DayRecord {
            day: "2026-11-15".to_owned(),
            previous: Some(Hash::of(b"before")),
            heads: vec![StreamHead { stream: StreamId::System, head }],
            key: "k".to_owned(),
            signature: "s".to_owned(),
        };
        let others = [
            DayRecord { day: "2026-11-16".to_owned(), ..day.clone() },
            DayRecord { previous: None, ..day.clone() },
            DayRecord { heads: vec![], ..day.clone() },
            DayRecord {
                heads: vec![StreamHead { stream: StreamId::System, head: Head { seq: 4, ..head } }],
                ..day.clone()
            },
            DayRecord { key: "other".to_owned(), ..day.clone() },
        ];
        for other in others {
            assert_ne!(day.message(), other.message(), "{other:?}");
        }
    }

    #[test]
    fn a_day_ends_at_midnight_utc() {
        assert_eq!(day_of(Time::from_millis(1_763_251_199_999)), "2025-11-15");
        assert_eq!(day_of(Time::from_millis(1_763_251_200_000)), "2025-11-16");
    }
}
