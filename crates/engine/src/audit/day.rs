//! Closing days: once a day, where every log ends is written down and signed with the instance's key. Never on the way of
//! a run: it happens when somebody looks after midnight (UTC).

use adjutant_core::audit::{AuditEvent, DayHeads, DayRecord, StreamHead, day_of};
use adjutant_core::content::Hash;
use adjutant_core::id::{NodeId, WorkspaceId};
use adjutant_core::run::chain::{Head, StreamId};
use adjutant_core::time::Time;
use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use serde::{Deserialize, Serialize};

use super::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;

/// Where the signing key is kept, sealed.
const KEY: &str = "audit_signing_key";
/// Where the last closed day is kept, sealed: cutting off the end of the instance's log does not go unseen.
const LAST: &str = "audit_last_day";
/// Ends of runs in one entry.
const HEADS: u32 = 512;
/// How far the clocks of nodes may be apart, and how long a commit may take: what moved shortly before the last look is
/// looked at again.
const OVERLAP: i64 = 10 * 60 * 1000;

/// The last day that was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastDay {
    /// The day.
    pub(crate) day: String,
    /// The entry that closed it.
    pub(crate) head: Head,
    /// What the next record refers to.
    pub(crate) link: Hash,
    /// When it was closed.
    pub(crate) at: Time,
}

/// Who closes a day, and since when.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Closing {
    node: NodeId,
    at: Time,
}

impl Engine {
    /// Closes the days that are over, if that was not done yet: every log that moved is named in a signed record. Says
    /// whether there was something to close.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn close_days(&self) -> Result<bool, EngineError> {
        let today = day_of(self.env().now());
        if self.closed_before(&today) {
            return Ok(false);
        }
        let last = self.last_day().await?;
        let yesterday = day_of(Time::from_millis(self.env().now().millis() - 24 * 60 * 60 * 1000));
        let closed = last.as_ref().is_some_and(|last| last.day >= yesterday);
        if !closed && self.has_history(&today).await? && self.may_close(&yesterday).await? {
            self.close_day(yesterday, last).await?;
        }
        self.note_closed(today);
        Ok(!closed)
    }

    /// Whether anything was recorded before today.
    async fn has_history(&self, today: &str) -> Result<bool, EngineError> {
        let log = AuditLog::Instance;
        let first = self.store().events(log.tenant(), log.stream(), 0, 1).await?.pop();
        if first.is_some_and(|entry| day_of(entry.time).as_str() < today) {
            return Ok(true);
        }
        let workspaces = self.store().workspaces().await?;
        Ok(workspaces.iter().any(|row| day_of(row.created_at).as_str() < today))
    }

    /// Of several nodes that look after midnight, one closes the day; another takes over when it has not come back.
    async fn may_close(&self, day: &str) -> Result<bool, EngineError> {
        let (key, now) = (format!("audit_closing_{day}"), self.env().now());
        let mine = Closing { node: self.node(), at: now };
        let text = serde_json::to_vec(&mine).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        let held = self.store().meta_set_if_absent(&key, &text).await?;
        let held: Closing = serde_json::from_slice(&held).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        if held == mine {
            return Ok(true);
        }
        let lost = now.millis() - held.at.millis() > OVERLAP;
        if lost {
            self.store().meta_set(&key, &text).await?;
        }
        Ok(lost)
    }

    async fn close_day(&self, day: String, last: Option<LastDay>) -> Result<(), EngineError> {
        let since = last.as_ref().map_or(0, |last| last.at.millis() - OVERLAP);
        let mut heads = Vec::new();
        for workspace in self.store().workspaces().await? {
            // Nothing is recorded any more in the log of one that was taken away.
            let log = match workspace.is_closed() {
                true => AuditLog::Instance,
                false => AuditLog::Workspace(workspace.id),
            };
            self.name_ends(workspace.id, log, &day, Time::from_millis(since)).await?;
            let stream = StreamId::Workspace(workspace.id);
            let head = self.store().head(workspace.id, stream).await?;
            if head != Head::START {
                heads.push(StreamHead { stream, head });
            }
        }
        let instance = AuditLog::Instance;
        let head = self.store().head(instance.tenant(), instance.stream()).await?;
        heads.push(StreamHead { stream: instance.stream(), head });
        let key = self.signing_key().await?;
        let mut record = DayRecord {
            day: day.clone(),
            previous: last.map(|last| last.link),
            heads,
            key: hex(key.verifying_key().as_bytes()),
            signature: String::new(),
        };
        record.signature = hex(&key.sign(&record.message()).to_bytes());
        let link = record.link();
        let head = self.append_audit(instance, &AuditEvent::Day(record), Done::default()).await?;
        let last = LastDay { day, head, link, at: self.env().now() };
        let text = serde_json::to_vec(&last).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        Ok(self.store().meta_set(LAST, &text).await?)
    }

    /// Writes down where the runs of a workspace end that moved.
    async fn name_ends(
        &self,
        workspace: WorkspaceId,
        log: AuditLog,
        day: &str,
        since: Time,
    ) -> Result<(), EngineError> {
        let mut after = None;
        loop {
            let moved = self.store().moved_heads(workspace, since, after, HEADS).await?;
            let Some((last, _)) = moved.last() else { return Ok(()) };
            after = Some(*last);
            let heads =
                moved.iter().map(|(run, head)| StreamHead { stream: StreamId::Run(*run), head: *head }).collect();
            let event = AuditEvent::Heads(DayHeads { day: day.to_owned(), heads });
            self.append_audit(log, &event, Done::default()).await?;
        }
    }

    pub(crate) async fn last_day(&self) -> Result<Option<LastDay>, EngineError> {
        let text = self.store().meta_get(LAST).await?;
        text.map(|text| serde_json::from_slice(&text))
            .transpose()
            .map_err(|bad| EngineError::Invalid(format!("the last closed day cannot be read: {bad}")))
    }

    /// The public half of the key that signs the days, in hexadecimal.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn audit_key(&self) -> Result<String, EngineError> {
        Ok(hex(self.signing_key().await?.verifying_key().as_bytes()))
    }

    async fn signing_key(&self) -> Result<SigningKey, EngineError> {
        let bytes = match self.store().meta_get(KEY).await? {
            Some(bytes) => bytes,
            None => self.store().meta_set_if_absent(KEY, &self.env().random::<32>()).await?,
        };
        let bytes: [u8; 32] = bytes
            .try_into()
            .map_err(|_| EngineError::Invalid("the key that signs the days cannot be read".to_owned()))?;
        Ok(SigningKey::from_bytes(&bytes))
    }
}

/// Whether a record is signed by the key it names.
pub(crate) fn is_signed(record: &DayRecord) -> bool {
    let key = unhex::<32>(&record.key).and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
    let signature = unhex::<64>(&record.signature).map(|bytes| Signature::from_bytes(&bytes));
    key.zip(signature).is_some_and(|(key, signature)| key.verify(&record.message(), &signature).is_ok())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| pair.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}
