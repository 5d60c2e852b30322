//! Checking logs against themselves and against each other: every chain, every signed day, and that what a day names is
//! still there. Knows no database: it is fed the instance's log first, then the workspaces', then the runs.

use std::collections::{BTreeMap, HashMap};

use adjutant_core::audit::{AuditEvent, DayRecord, StreamHead};
use adjutant_core::content::Hash;
use adjutant_core::run::chain::{Entry, Head, StreamId};
use serde::{Deserialize, Serialize};

use super::day::is_signed;

/// What a check of all logs found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditVerified {
    /// Runs whose logs were walked.
    pub runs: u64,
    /// Audit logs that were walked.
    pub logs: u64,
    /// Events of all of them.
    pub events: u64,
    /// Bodies that were erased.
    pub erased: u64,
    /// Signed days.
    pub days: u64,
    /// The last signed day.
    pub last_day: Option<String>,
    /// The public key that signed them, in hexadecimal.
    pub key: Option<String>,
    /// What does not fit.
    pub problems: Vec<AuditProblem>,
}

/// Something that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditProblem {
    /// The log.
    pub stream: StreamId,
    /// What is wrong with it.
    pub reason: String,
}

/// A log as it was at some moment, and which day says so.
#[derive(Debug, Clone)]
struct Claim {
    hash: Hash,
    day: String,
}

/// The log that is being walked.
struct Walk {
    stream: StreamId,
    head: Head,
    sound: bool,
    claims: BTreeMap<u64, Vec<Claim>>,
    /// The hashes of the instance's own log, to which its days refer.
    own: Vec<Hash>,
}

/// Walks logs.
#[derive(Default)]
pub(crate) struct Verifier {
    found: AuditVerified,
    claims: HashMap<StreamId, BTreeMap<u64, Vec<Claim>>>,
    walk: Option<Walk>,
    last: Option<DayRecord>,
}

impl Verifier {
    /// Days must be signed with this key.
    pub(crate) fn expect_key(&mut self, key: String) {
        self.found.key = Some(key);
    }

    /// A log must hold this event.
    pub(crate) fn expect(&mut self, end: StreamHead, day: &str) {
        if end.head == Head::START {
            return;
        }
        let claim = Claim { hash: end.head.hash, day: day.to_owned() };
        self.claims.entry(end.stream).or_default().entry(end.head.seq).or_default().push(claim);
    }

    /// The next events belong to this log.
    pub(crate) fn begin(&mut self, stream: StreamId) {
        match stream {
            StreamId::Run(_) => self.found.runs += 1,
            StreamId::Workspace(_) | StreamId::System => self.found.logs += 1,
        }
        let claims = self.claims.remove(&stream).unwrap_or_default();
        self.walk = Some(Walk { stream, head: Head::START, sound: true, claims, own: Vec::new() });
    }

    /// The next event.
    pub(crate) fn entry(&mut self, entry: &Entry, body: Body) {
        let Some(walk) = self.walk.as_mut().filter(|walk| walk.sound) else { return };
        self.found.events += 1;
        let stream = walk.stream;
        match entry.follows(walk.head) {
            Ok(head) => walk.head = head,
            Err(broken) => {
                walk.sound = false;
                return self.problem(stream, broken.to_string());
            }
        }
        let claimed = walk.claims.remove(&entry.seq).unwrap_or_default();
        if stream == StreamId::System {
            walk.own.push(entry.hash);
        }
        if let Some(claim) = claimed.into_iter().find(|claim| claim.hash != entry.hash) {
            self.problem(stream, format!("event {} is not the one that the record of {} names", entry.seq, claim.day));
        }
        match (&entry.body, body) {
            (Some(bytes), _) if !matches!(stream, StreamId::Run(_)) => self.read(stream, entry, bytes),
            (None, Body::Expected) => self.found.erased += 1,
            (Some(_), _) | (None, Body::LeftOut) => {}
        }
    }

    fn read(&mut self, stream: StreamId, entry: &Entry, body: &[u8]) {
        match AuditEvent::decode(&entry.kind, body) {
            Ok(AuditEvent::Day(record)) if stream == StreamId::System => self.day(entry.seq, record),
            Ok(AuditEvent::Heads(named)) => {
                for end in named.heads {
                    self.expect(end, &named.day);
                }
            }
            Ok(AuditEvent::Act(_) | AuditEvent::Day(_)) => {}
            Err(bad) => self.problem(stream, format!("event {}: {bad}", entry.seq)),
        }
    }

    fn day(&mut self, seq: u64, record: DayRecord) {
        let day = record.day.clone();
        let wrong = |why: &str| format!("the record of {day} {why}");
        if !is_signed(&record) {
            self.problem(StreamId::System, wrong("does not carry the signature of its key"));
        }
        let key = self.found.key.get_or_insert_with(|| record.key.clone());
        if *key != record.key {
            self.problem(StreamId::System, wrong("is signed with another key"));
        }
        if record.previous != self.last.as_ref().map(DayRecord::link) {
            self.problem(StreamId::System, wrong("does not follow the one before it: a day was removed or changed"));
        }
        if self.last.as_ref().is_some_and(|last| last.day >= record.day) {
            self.problem(StreamId::System, wrong("comes too late"));
        }
        for end in &record.heads {
            if end.stream == StreamId::System {
                self.own_end(seq, end, &day);
            } else {
                self.expect(*end, &day);
            }
        }
        self.found.days += 1;
        self.found.last_day = Some(record.day.clone());
        self.last = Some(record);
    }

    /// What a day says of the instance's own log lies behind it and was walked already.
    fn own_end(&mut self, seq: u64, end: &StreamHead, day: &str) {
        let own = self.walk.as_ref().map(|walk| walk.own.as_slice()).unwrap_or_default();
        let known = match usize::try_from(end.head.seq) {
            Ok(0) => Some(Hash::ZERO),
            Ok(at) if end.head.seq < seq => own.get(at - 1).copied(),
            Ok(_) | Err(_) => None,
        };
        if known != Some(end.head.hash) {
            let why = format!("the record of {day} names an event {} that is not there", end.head.seq);
            self.problem(StreamId::System, why);
        }
    }

    /// The log is over; its row says where it ends.
    pub(crate) fn end(&mut self, expected: Head) {
        let Some(walk) = self.walk.take() else { return };
        if !walk.sound {
            return;
        }
        if walk.head != expected {
            let why = format!("it ends at event {}, but its row says {}", walk.head.seq, expected.seq);
            self.problem(walk.stream, why);
        }
        if let Some((seq, claim)) = walk.claims.iter().find_map(|(seq, claims)| Some((seq, claims.first()?))) {
            let why = format!("it ends at event {}, but the record of {} names event {seq}", walk.head.seq, claim.day);
            self.problem(walk.stream, why);
        }
    }

    /// The log cannot be read.
    pub(crate) fn unreadable(&mut self, why: String) {
        if let Some(walk) = self.walk.take() {
            self.problem(walk.stream, why);
        }
    }

    /// Something else that is wrong with a log.
    pub(crate) fn problem(&mut self, stream: StreamId, reason: String) {
        self.found.problems.push(AuditProblem { stream, reason });
    }

    /// How many events were walked so far.
    pub(crate) const fn events(&self) -> u64 {
        self.found.events
    }

    /// There are no more logs.
    pub(crate) fn finish(mut self) -> AuditVerified {
        let mut missing: Vec<_> = self.claims.drain().collect();
        missing.sort_by_key(|(stream, _)| *stream);
        for (stream, claims) in missing {
            let day = claims.values().flatten().next().map(|claim| claim.day.clone()).unwrap_or_default();
            self.problem(stream, format!("the record of {day} names it, but it is gone"));
        }
        self.found
    }
}

/// Whether an event that has no body was erased, or only left out of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// It should have one.
    Expected,
    /// The file holds none.
    LeftOut,
}
