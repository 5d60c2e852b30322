//! Where a node stands in the simulated world: its clock, its chance, its way to the store, and whether it lives. A node
//! that starts again after a crash has a new one.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use adjutant_core::id::NodeId;
use adjutant_core::time::Time;
use adjutant_engine::Source;
use adjutant_store::{Fault, FaultPoint, Gate, MemoryConfig};
use tokio::time::Instant;

use crate::chance::Dice;
use crate::scene::{Scene, lock};

/// Longer than any schedule: what waits for this has been left behind by a crash.
const FOREVER: Duration = Duration::from_secs(10_000_000);

/// The place of an engine that takes no part.
pub(crate) const OBSERVER: usize = usize::MAX;

/// How a node is out of touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It goes on, but the store does not answer it.
    CutOff,
    /// Nothing of it moves, and then it goes on as if nothing had been.
    Frozen,
}

pub(crate) struct Post {
    pub(crate) scene: Arc<Scene>,
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) dice: Dice,
    pub(crate) node: OnceLock<NodeId>,
    skew: AtomicI64,
    dead: AtomicBool,
    trouble: Mutex<Option<(Trouble, Instant)>>,
}

impl Source for Post {
    fn now(&self) -> Time {
        Time::from_millis(self.scene.now().millis() + self.skew.load(Ordering::Relaxed))
    }

    fn steady(&self) -> Duration {
        self.scene.now().since(Time::from_millis(0))
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.dice.fill(bytes);
    }
}

impl Post {
    pub(crate) fn new(scene: &Arc<Scene>, place: usize, life: u32) -> Arc<Self> {
        let dice = scene.dice.fork();
        let skew = if scene.is_calm() { 0 } else { dice.between(0, 4000) as i64 - 2000 };
        Arc::new(Self {
            scene: Arc::clone(scene),
            place,
            name: format!("node {place}.{life}"),
            dice,
            node: OnceLock::new(),
            skew: AtomicI64::new(skew),
            dead: AtomicBool::new(false),
            trouble: Mutex::default(),
        })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// From now on nothing of it has any effect.
    pub(crate) fn bury(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    fn crash(&self, what: &'static str) {
        self.scene.hit(what);
        self.scene.note(&self.name, || what.to_owned());
        self.bury();
        let _ = self.scene.deaths.send(self.place);
    }

    /// The process ends here and now.
    pub(crate) async fn die(&self, what: &'static str) -> ! {
        self.crash(what);
        std::future::pending().await
    }

    pub(crate) fn set_clock(&self, skew: i64) {
        self.skew.store(skew, Ordering::Relaxed);
    }

    pub(crate) fn jump(&self, by: i64) {
        self.skew.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn trouble(&self, trouble: Trouble, time: Duration) {
        *lock(&self.trouble) = Some((trouble, Instant::now() + time));
    }

    pub(crate) fn heal(&self) {
        *lock(&self.trouble) = None;
    }

    fn troubled(&self) -> Option<(Trouble, Duration)> {
        let (trouble, until) = (*lock(&self.trouble))?;
        let rest = until.saturating_duration_since(Instant::now());
        (!rest.is_zero()).then_some((trouble, rest))
    }

    /// Time goes by for something that this node does: longer when it is frozen, for ever when it is dead.
    pub(crate) async fn take(&self, time: Duration) {
        tokio::time::sleep(time).await;
        while let Some((Trouble::Frozen, rest)) = self.troubled() {
            tokio::time::sleep(rest).await;
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether a fault of this rate strikes now. Whoever only observes is never disturbed.
    pub(crate) fn strikes(&self, rate: u64) -> bool {
        self.place != OBSERVER && !self.scene.is_calm() && self.dice.per_mille(rate)
    }

    /// This node's own way to the shared tables.
    pub(crate) fn store(self: &Arc<Self>) -> MemoryConfig {
        let (clock, gate, faults, hears, seen) =
            (Arc::clone(&self.scene), Arc::clone(self), Arc::clone(self), Arc::clone(self), Arc::clone(&self.scene));
        MemoryConfig {
            clock: Arc::new(move || clock.now()),
            gate: Arc::new(move || gate.gate()),
            faults: Arc::new(move |point| faults.fault(point)),
            hears: Arc::new(move |_| hears.hears()),
            seen: Arc::new(move |point, answer| seen.appended(point, answer)),
        }
    }

    fn gate(&self) -> Gate {
        if self.is_dead() {
            return Gate::Wait(FOREVER);
        }
        match self.troubled() {
            Some((Trouble::CutOff, _)) => return Gate::Shut,
            Some((Trouble::Frozen, rest)) => return Gate::Wait(rest),
            None => {}
        }
        let plan = &self.scene.plan;
        if self.strikes(plan.node.crash_before_call) {
            self.crash("fault: crash before a store call");
            return Gate::Wait(FOREVER);
        }
        if self.strikes(plan.store.call_fails) {
            self.scene.hit("fault: call failed");
            return Gate::Shut;
        }
        if self.strikes(plan.store.call_reply_lost) {
            self.scene.hit("fault: call reply lost");
            return Gate::LostReply;
        }
        if self.strikes(plan.store.call_slow) {
            return Gate::Wait(self.dice.millis(1, 2000));
        }
        if self.dice.one_in(3) { Gate::Wait(Duration::ZERO) } else { Gate::Open }
    }

    fn fault(&self, point: &FaultPoint) -> Fault {
        let plan = &self.scene.plan;
        let fault = if self.strikes(plan.node.crash_after_append) {
            self.crash("fault: crash after an append");
            return Fault::SlowReply(FOREVER);
        } else if self.strikes(plan.store.append_fails) {
            Fault::FailBefore
        } else if self.strikes(plan.store.append_reply_lost) {
            Fault::LostReply
        } else if self.strikes(plan.store.append_slow) {
            Fault::SlowReply(self.dice.millis(10, 15_000))
        } else if self.strikes(plan.store.append_late) {
            Fault::Late(self.dice.millis(1, 6000))
        } else if self.strikes(plan.store.append_twice) {
            Fault::Twice
        } else if self.strikes(plan.store.append_full) {
            Fault::Full
        } else {
            Fault::None
        };
        self.scene.faulted(fault);
        self.scene.note(&self.name, || {
            let (from, events) = (point.after + 1, point.events);
            format!("appends {events} from {from} as {:?}, {fault:?}", point.writer)
        });
        fault
    }

    fn hears(&self) -> bool {
        if self.is_dead() || self.troubled().is_some() {
            return false;
        }
        let lost = self.strikes(self.scene.plan.store.notice_lost);
        if lost {
            self.scene.hit("fault: notice lost");
        }
        !lost
    }
}
