//! What every handler can reach: the engine, who is known at the moment, who follows which run, and the numbers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use adjutant_core::audit::{Act, Deed};
use adjutant_core::content::Hash;
use adjutant_core::guard::address::Network;
use adjutant_core::id::UserId;
use adjutant_core::run::event::Actor;
use adjutant_engine::models::Models;
use adjutant_engine::{AuditLog, Caller, Engine, EngineError, Home, Secret};
use tokio::sync::{Semaphore, watch};

use super::line::Lines;
use super::metrics::Metrics;
use super::news::News;
use super::origin::Origin;
use super::strangers::Strangers;
use super::turn::Turns;
use super::uploads::Uploads;
use crate::agent_file::Problem as AgentFileProblem;
use crate::config::Config;

/// How long it is believed that somebody is who they were: well below the second within which a revocation must cut.
const BELIEVED: Duration = Duration::from_millis(300);
/// Callers remembered at the most.
const REMEMBERED: usize = 10_000;
/// Requests inside for each that is worked on: the others wait for their turn.
const INSIDE: usize = 8;
/// Connections beyond those that are inside: they rest, or are told that the server is full.
const RESTING: usize = 1024;

/// What every handler can reach. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Server(Arc<Inner>);

pub(crate) struct Inner {
    pub(super) engine: Engine,
    pub(super) home: Home,
    pub(super) place: Place,
    pub(super) about: About,
    pub(super) lines: Lines,
    pub(super) news: News,
    pub(super) metrics: Metrics,
    /// Connections that are open at the most.
    pub(super) connections: usize,
    /// Requests that are inside, worked on or waiting.
    pub(super) requests: Arc<Semaphore>,
    /// Requests that are worked on.
    pub(super) turns: Turns,
    /// Files that are taken in.
    pub(super) uploads: Uploads,
    /// Streams, and requests that wait for a run.
    pub(super) streams: Arc<Semaphore>,
    /// Turns true when the server is told to stop.
    pub(super) closing: watch::Receiver<bool>,
    local: Hash,
    /// How often somebody's rights were changed at this node.
    changes: AtomicU64,
    known: Mutex<HashMap<Hash, (Instant, Arc<Caller>)>>,
    strangers: Strangers,
}

/// What the server was started with.
pub(crate) struct About {
    /// Its settings.
    pub(crate) config: Config,
    /// What is wrong with the agent files.
    pub(crate) agent_problems: Vec<AgentFileProblem>,
    /// The providers of models.
    pub(crate) models: Arc<Models>,
}

/// Where the server stands in the network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// The host of the address that others know it by.
    pub(crate) public_host: Option<String>,
    /// Whether others reach it over https.
    pub(crate) secure: bool,
    /// Whether it listens to this machine only.
    pub(crate) loopback: bool,
    /// The proxies that may say where a request comes from.
    pub(crate) proxies: Vec<Network>,
}

/// What somebody shows at the door.
#[derive(Debug, Clone)]
pub(super) enum Credential {
    Cookie(Secret),
    Token(Secret),
}

impl Credential {
    fn hash(&self) -> Hash {
        let (Self::Cookie(secret) | Self::Token(secret)) = self;
        secret.hash()
    }
}

impl std::ops::Deref for Server {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Server {
    /// `local` is the token of whoever holds the data directory.
    pub(crate) fn new(
        engine: Engine,
        home: Home,
        place: Place,
        about: About,
        local: &Secret,
        closing: watch::Receiver<bool>,
    ) -> Self {
        let (requests, streams) = (about.config.most.requests.value, about.config.most.streams.value);
        let inside = requests.saturating_mul(INSIDE).saturating_add(streams);
        Self(Arc::new(Inner {
            lines: Lines::default(),
            news: News::default(),
            engine,
            home,
            place,
            about,
            metrics: Metrics::default(),
            connections: inside.saturating_add(RESTING),
            requests: Arc::new(Semaphore::new(inside)),
            turns: Turns::new(requests, requests),
            uploads: Uploads::default(),
            streams: Arc::new(Semaphore::new(streams)),
            closing,
            local: local.hash(),
            changes: AtomicU64::new(0),
            known: Mutex::default(),
            strangers: Strangers::default(),
        }))
    }

    /// Whoever shows this at the door. What is no good is counted for where it came from.
    ///
    /// # Errors
    /// As [`Server::caller`], and [`EngineError::TooMany`] when too much of it was no good.
    pub(super) async fn caller_from(
        &self,
        Origin(from): Origin,
        credential: &Credential,
    ) -> Result<Arc<Caller>, EngineError> {
        let hash = credential.hash();
        if hash == self.local {
            return self.caller(credential).await;
        }
        if let Some(retry_after) = self.strangers.wait(from, &hash, Instant::now()) {
            return Err(EngineError::TooMany { retry_after });
        }
        let found = self.caller(credential).await;
        match &found {
            Ok(_) => self.strangers.note(from, hash, true, Instant::now()),
            Err(EngineError::Unauthenticated) => self.strangers.note(from, hash, false, Instant::now()),
            // What the database could not say is nobody's fault.
            Err(_) => {}
        }
        found
    }

    /// Whoever shows this. Asked of the database unless it was asked a moment ago.
    pub(super) async fn caller(&self, credential: &Credential) -> Result<Arc<Caller>, EngineError> {
        let hash = credential.hash();
        let known = self.known().get(&hash).filter(|(at, _)| at.elapsed() < BELIEVED).map(|(_, who)| Arc::clone(who));
        if let Some(caller) = known {
            return Ok(caller);
        }
        let caller = Arc::new(match credential {
            Credential::Cookie(cookie) => self.engine.caller_by_cookie(cookie).await?,
            Credential::Token(_) if hash == self.local => self.engine.caller_by_data(self.home.user).await?,
            Credential::Token(token) => self.engine.caller_by_token(token).await?,
        });
        let mut known = self.known();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(hash, (Instant::now(), Arc::clone(&caller)));
        Ok(caller)
    }

    /// Writes down in the instance's own log what was done about who may come in.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) async fn record(&self, deed: Deed, by: Option<UserId>, summary: String) -> Result<(), EngineError> {
        let act = Act::new(deed, by.map(Actor::User), summary);
        self.engine.audit(AuditLog::Instance, act).await.map(drop)
    }

    /// Forgets who everybody is: somebody's rights have changed.
    pub(super) fn forget_callers(&self) {
        self.known().clear();
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// How often somebody's rights were changed at this node. Whoever tells something remembers it, and looks again when it has
    /// grown.
    pub(super) fn changes_of_rights(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Hash, (Instant, Arc<Caller>)>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
