//! Listens to what the engine logs: an error there is something that must not happen in any schedule.

use std::fmt::Write as _;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::scene::Scene;

struct Witness {
    scene: Arc<Scene>,
    most: Level,
}

/// Listens on this thread until the guard is dropped.
pub(crate) fn watch(scene: &Arc<Scene>, traced: bool) -> DefaultGuard {
    let most = if traced { Level::WARN } else { Level::ERROR };
    tracing::subscriber::set_default(Witness { scene: Arc::clone(scene), most })
}

impl Subscriber for Witness {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.most
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        if *event.metadata().level() == Level::ERROR {
            self.scene.broken(format!("the engine says: {}", words.0));
        } else {
            self.scene.note("engine", || words.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
