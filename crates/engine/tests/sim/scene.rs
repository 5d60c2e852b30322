//! What every part of one schedule shares: time, chance, the plan, the tables, the outside world, and what went wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_core::id::{AgentId, NodeId, RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::{Head, StreamId};
use adjutant_core::time::Time;
use adjutant_store::row::Writer;
use adjutant_store::{Fault, FaultPoint, MemoryConfig, Store, StoreError};
use tokio::sync::mpsc;

use crate::chance::Dice;
use crate::cover::Cover;
use crate::plan::Plan;
use crate::world::Outside;

/// When every schedule begins.
const DAWN: i64 = 1_769_767_200_000;

/// Who lives where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenant {
    pub(crate) workspace: WorkspaceId,
    pub(crate) user: UserId,
    pub(crate) agent: AgentId,
}

/// The last owner append of a run.
#[derive(Debug, Clone, Copy)]
struct Owned {
    epoch: u64,
    node: NodeId,
    released: bool,
}

pub(crate) struct Scene {
    pub(crate) dice: Dice,
    pub(crate) plan: Plan,
    /// The tables, seen without any fault.
    pub(crate) store: Store,
    pub(crate) outside: Mutex<Outside>,
    pub(crate) tenant: Mutex<Option<Tenant>>,
    /// Nodes that have to die now.
    pub(crate) deaths: mpsc::UnboundedSender<usize>,
    calm: AtomicBool,
    dawn: tokio::time::Instant,
    cover: Mutex<Cover>,
    wrong: Mutex<Vec<String>>,
    trace: Option<Mutex<String>>,
    owned: Mutex<BTreeMap<RunId, Owned>>,
}

impl Scene {
    pub(crate) fn new(seed: u64, traced: bool) -> (Arc<Self>, mpsc::UnboundedReceiver<usize>) {
        let dice = Dice::new(seed);
        let plan = Plan::draw(&dice.fork());
        let dawn = tokio::time::Instant::now();
        let (deaths, dying) = mpsc::unbounded_channel();
        let scene = Self {
            plan,
            store: Store::memory(MemoryConfig::new(Arc::new(move || since(dawn)))),
            outside: Mutex::default(),
            tenant: Mutex::default(),
            deaths,
            calm: AtomicBool::new(false),
            dawn,
            cover: Mutex::default(),
            wrong: Mutex::default(),
            trace: traced.then(Mutex::default),
            owned: Mutex::default(),
            dice,
        };
        (Arc::new(scene), dying)
    }

    /// The database's time, which is also the true one.
    pub(crate) fn now(&self) -> Time {
        since(self.dawn)
    }

    /// Whether the faults are over.
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    pub(crate) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    pub(crate) fn tenant(&self) -> Tenant {
        lock(&self.tenant).expect("the tenant is set up before anybody acts")
    }

    /// Counts something that happened.
    pub(crate) fn hit(&self, what: &'static str) {
        lock(&self.cover).hit(what);
    }

    /// A promise was broken: the schedule has failed.
    pub(crate) fn broken(&self, what: String) {
        self.note("BROKEN", || what.clone());
        lock(&self.wrong).push(what);
    }

    /// A line of the trace, made only when somebody will read it.
    pub(crate) fn note(&self, who: &str, what: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            let at = self.dawn.elapsed().as_millis();
            let _ = writeln!(lock(trace), "{at:>8} ms  {who:<8} {}", what());
        }
    }

    pub(crate) fn take_cover(&self) -> Cover {
        std::mem::take(&mut *lock(&self.cover))
    }

    pub(crate) fn take_wrong(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.wrong))
    }

    pub(crate) fn take_trace(&self) -> String {
        self.trace.as_ref().map(|trace| std::mem::take(&mut *lock(trace))).unwrap_or_default()
    }

    /// What really became of an append: epochs only grow, and one epoch is one node's.
    pub(crate) fn appended(&self, point: &FaultPoint, answer: &Result<Head, StoreError>) {
        let (StreamId::Run(run), Writer::Owner { node, epoch }) = (point.stream, point.writer) else { return };
        match answer {
            Ok(_) => {}
            Err(StoreError::Stale { fenced: true }) => return self.hit("append fenced"),
            Err(StoreError::Stale { fenced: false }) => return self.hit("append lost a race"),
            Err(other) => return self.broken(format!("{run}: an append of {node} was refused: {other}")),
        }
        let mut owned = lock(&self.owned);
        let last = owned.insert(run, Owned { epoch, node, released: point.release });
        drop(owned);
        let Some(last) = last else { return };
        if epoch < last.epoch || (epoch == last.epoch && (node != last.node || last.released)) {
            self.broken(format!("{run}: {node} wrote under epoch {epoch} after {} under {}", last.node, last.epoch));
        }
        if epoch > last.epoch && !last.released {
            self.hit(if node == last.node { "taken up again by the same node" } else { "taken over" });
        }
    }

    /// Counts an injected fault.
    pub(crate) fn faulted(&self, fault: Fault) {
        match fault {
            Fault::None => {}
            Fault::FailBefore => self.hit("fault: append failed"),
            Fault::Full => self.hit("fault: disk full"),
            Fault::Broken => self.hit("fault: disk failed"),
            Fault::LostReply => self.hit("fault: append reply lost"),
            Fault::SlowReply(_) => self.hit("fault: append slow"),
            Fault::Late(_) => self.hit("fault: append late"),
            Fault::Twice => self.hit("fault: append delivered twice"),
        }
    }
}

fn since(dawn: tokio::time::Instant) -> Time {
    Time::from_millis(DAWN).after(dawn.elapsed())
}

/// A lock that a simulated panic does not spoil.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
