//! This process's lease among those that share the store: how long it certainly holds, and the end of a life in which it
//! was lost. Measured by a clock that never jumps, from before each renewal, so that it never ends later than in the store.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use adjutant_core::limits;
use adjutant_tools::notebook::Fence;
use tokio::sync::Notify;

use crate::engine::{Engine, lock};
use crate::env::Env;
use crate::error::EngineError;

/// How often somebody who waits for the end of the lease looks at the clock: timers stand still while a machine is suspended.
const LOOK: Duration = Duration::from_secs(1);

/// A node's life: from joining until it was taken for dead. What was claimed in one life is not ours in the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life(u64);

#[derive(Debug, Clone, Copy)]
struct Held {
    life: Life,
    until: Option<Duration>,
}

/// The lease as this process knows it.
#[derive(Debug)]
pub(crate) struct Lease {
    held: Mutex<Held>,
    /// Wakes those who wait in the order in which they came: a schedule that is played again is the same.
    changed: Notify,
    env: Env,
}

impl Lease {
    pub(crate) fn new(env: Env) -> Self {
        Self { held: Mutex::new(Held { life: Life(0), until: None }), changed: Notify::new(), env }
    }

    /// The present life.
    pub(crate) fn life(&self) -> Life {
        self.now().life
    }

    /// Comes back once this life is over.
    pub(crate) async fn lost(&self, life: Life) {
        self.comes_to(|held| held.life != life).await;
    }

    /// Comes back as soon as an effect may begin: in this life, while the lease certainly holds (rule D3). Never comes back
    /// in another life.
    pub(crate) async fn holds(&self, life: Life) {
        if self.comes_to(|held| held.life != life || self.in_time(held)).await.life != life {
            std::future::pending::<()>().await;
        }
    }

    /// How it stands, as soon as it stands like this.
    async fn comes_to(&self, wanted: impl Fn(Held) -> bool) -> Held {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Before the look, so that no change falls between the two.
            changed.as_mut().enable();
            let held = self.now();
            if wanted(held) {
                return held;
            }
            changed.await;
        }
    }

    fn now(&self) -> Held {
        *lock(&self.held)
    }

    fn change(&self, how: impl FnOnce(&mut Held)) {
        how(&mut lock(&self.held));
        self.changed.notify_waiters();
    }

    /// Comes back once the lease of this life may be over: others may drive our runs from then on.
    async fn over(&self, life: Life) {
        loop {
            let held = self.now();
            let left = held.until.unwrap_or_default().saturating_sub(self.env.steady());
            if held.life != life || left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK)).await;
        }
    }

    /// Does something while the lease of this life certainly holds. None: it was given up when that was over, or has to be.
    /// Each time it goes on the clock is read first: whoever was stopped in between is not to go on where it was.
    pub(crate) async fn while_held<T>(&self, life: Life, doing: impl Future<Output = T>) -> Option<T> {
        let mut doing = pin!(doing);
        let in_time = poll_fn(|context| match self.is_held_in(life) {
            true => doing.as_mut().poll(context).map(Some),
            false => Poll::Ready(None),
        });
        tokio::select! {
            biased;
            done = in_time => done,
            () = self.over(life) => None,
        }
    }

    /// Whether it certainly holds now.
    fn is_held(&self) -> bool {
        self.in_time(self.now())
    }

    /// Whether it certainly holds now, in this life.
    fn is_held_in(&self, life: Life) -> bool {
        let held = self.now();
        held.life == life && self.in_time(held)
    }

    fn in_time(&self, held: Held) -> bool {
        held.until.is_some_and(|until| self.env.steady() < until)
    }

    fn prolong(&self, from: Duration) {
        self.change(|held| held.until = Some(from + limits::LEASE));
    }

    fn begin_again(&self) {
        self.change(|held| *held = Held { life: Life(held.life.0 + 1), until: None });
    }
}

impl Engine {
    /// Whether this node may begin effects. It may not while the store could have taken it for dead.
    #[must_use]
    pub fn holds_lease(&self) -> bool {
        self.lease().is_held()
    }

    /// What asks, right before something is changed, whether the run may still be driven here.
    pub(crate) fn fence(&self, life: Life) -> Fence {
        let engine = self.clone();
        Fence::new(move || engine.lease().is_held_in(life))
    }

    /// Begins this node's life in the store. Joining gives back what it owned, so whoever drives here stops first.
    pub(crate) async fn join(&self) -> Result<(), EngineError> {
        self.lease().begin_again();
        let from = self.env().steady();
        self.store().join(self.node()).await?;
        self.lease().prolong(from);
        Ok(())
    }

    /// Prolongs this node's life in the store, or begins another when it was taken for dead.
    pub(crate) async fn renew_lease(&self) -> Result<(), EngineError> {
        let from = self.env().steady();
        if self.store().renew(self.node()).await? {
            self.lease().prolong(from);
            return Ok(());
        }
        tracing::warn!(node = %self.node(), "this node was taken for dead; its runs may be driven elsewhere");
        self.join().await
    }
}
