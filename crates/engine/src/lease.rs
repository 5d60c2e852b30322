//! This process's lease among those that share the store: how long it certainly holds, and the end of a life in which it
//! was lost. Measured by a clock that never jumps, from before each renewal, so that it never ends later than in the store.

use adjutant_core::limits;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::error::EngineError;

/// A node's life: from joining until it was taken for dead. What was claimed in one life is not ours in the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life(u64);

#[derive(Debug, Clone, Copy)]
struct Held {
    life: Life,
    until: Option<Instant>,
}

/// The lease as this process knows it.
#[derive(Debug)]
pub(crate) struct Lease(watch::Sender<Held>);

impl Default for Lease {
    fn default() -> Self {
        Self(watch::Sender::new(Held { life: Life(0), until: None }))
    }
}

impl Lease {
    /// The present life.
    pub(crate) fn life(&self) -> Life {
        self.0.borrow().life
    }

    /// Comes back once this life is over.
    pub(crate) async fn lost(&self, life: Life) {
        let mut held = self.0.subscribe();
        // The sender lives as long as the engine that is borrowed here.
        let _ = held.wait_for(|held| held.life != life).await;
    }

    /// Comes back as soon as an effect may begin: in this life, while the lease certainly holds (rule D3). Never comes back
    /// in another life.
    pub(crate) async fn holds(&self, life: Life) {
        let mut held = self.0.subscribe();
        let in_time = |held: &Held| held.until.is_some_and(|until| Instant::now() < until);
        let sure = held.wait_for(|held| held.life != life || in_time(held)).await.is_ok_and(|held| held.life == life);
        if !sure {
            std::future::pending::<()>().await;
        }
    }

    /// Whether it certainly holds now.
    fn is_held(&self) -> bool {
        self.0.borrow().until.is_some_and(|until| Instant::now() < until)
    }

    fn prolong(&self, from: Instant) {
        self.0.send_modify(|held| held.until = Some(from + limits::LEASE));
    }

    fn begin_again(&self) {
        self.0.send_modify(|held| *held = Held { life: Life(held.life.0 + 1), until: None });
    }
}

impl Engine {
    /// Whether this node may begin effects. It may not while the store could have taken it for dead.
    #[must_use]
    pub fn holds_lease(&self) -> bool {
        self.lease().is_held()
    }

    /// Begins this node's life in the store. Joining gives back what it owned, so whoever drives here stops first.
    pub(crate) async fn join(&self) -> Result<(), EngineError> {
        self.lease().begin_again();
        let from = Instant::now();
        self.store().join(self.node()).await?;
        self.lease().prolong(from);
        Ok(())
    }

    /// Prolongs this node's life in the store, or begins another when it was taken for dead.
    pub(crate) async fn renew_lease(&self) -> Result<(), EngineError> {
        let from = Instant::now();
        if self.store().renew(self.node()).await? {
            self.lease().prolong(from);
            return Ok(());
        }
        tracing::warn!(node = %self.node(), "this node was taken for dead; its runs may be driven elsewhere");
        self.join().await
    }
}
