//! A call that runs, in a task of its own, and how it ends.

use std::collections::BTreeMap;

use adjutant_core::id::CallId;
use adjutant_core::tool::{Recovery, ToolOutcome};
use futures::future::{FutureExt, select_all};
use tokio::task::JoinHandle;

/// A call that runs.
pub(crate) struct Work {
    pub(crate) task: JoinHandle<(ToolOutcome, u64)>,
    pub(crate) recovery: Recovery,
}

/// How a call's task ended.
pub(crate) struct WorkEnded {
    pub(crate) outcome: ToolOutcome,
    pub(crate) ms: u64,
    pub(crate) recovery: Recovery,
}

impl WorkEnded {
    /// A call whose end was found out by looking.
    pub(crate) const fn seen(outcome: ToolOutcome, recovery: Recovery) -> Self {
        Self { outcome, ms: 0, recovery }
    }

    /// Whether nobody knows what became of it.
    pub(crate) const fn is_in_doubt(&self) -> bool {
        matches!(self.outcome, ToolOutcome::InDoubt { .. })
    }
}

impl Work {
    pub(crate) async fn ended(&mut self) -> WorkEnded {
        let recovery = self.recovery;
        match (&mut self.task).await {
            Ok((outcome, ms)) => WorkEnded { outcome, ms, recovery },
            // The task panicked: what it did before is not known.
            Err(_) => WorkEnded {
                outcome: ToolOutcome::InDoubt { message: "The tool stopped unexpectedly.".to_owned() },
                ms: 0,
                recovery,
            },
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The next of these calls that ends.
pub(crate) async fn next_ended(running: &mut BTreeMap<CallId, Work>) -> Option<(CallId, WorkEnded)> {
    if running.is_empty() {
        return None;
    }
    let waits = running.iter_mut().map(|(id, work)| async move { (id.clone(), work.ended().await) }.boxed());
    let ((id, ended), _, _) = select_all(waits).await;
    running.remove(&id);
    Some((id, ended))
}

/// What the model reads of an outcome.
pub(crate) fn said(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Done(done) => done.output.clone(),
        ToolOutcome::Failed { message, .. } | ToolOutcome::InDoubt { message } => message.clone(),
    }
}
