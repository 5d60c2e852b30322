//! Ctrl-C, heard from the moment somebody listens: one that comes while something else is looked at is not lost.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// Whether a person pressed Ctrl-C.
#[derive(Clone)]
pub(super) struct Interrupt(Arc<Notify>);

impl Interrupt {
    /// Listens from now on, in place of the process just ending.
    pub(super) fn listen() -> Self {
        let heard = Self(Arc::new(Notify::new()));
        // Without a handler Ctrl-C ends the process, which loses nothing but the last words.
        if let Ok(mut signals) = signal(SignalKind::interrupt()) {
            let notify = Arc::clone(&heard.0);
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    notify.notify_one();
                }
            });
        }
        heard
    }

    /// Comes back when it was pressed.
    pub(super) async fn heard(&self) {
        self.0.notified().await;
    }
}
