//! A lease that is to outlive a store which is away for a while, and what becomes of a tool when it does not.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use adjutant_core::guard::permit::Permit;
use adjutant_core::limits::{LEASE, LEASE_RENEWAL};
use adjutant_core::run::event::Event;
use adjutant_core::time::Time;
use adjutant_core::tool::{ToolOutcome, ToolSpec};
use adjutant_engine::models::{Model, ModelError};
use adjutant_engine::tools::{Tool, World};
use adjutant_engine::{Engine, Env, Parts, Source, Unpriced};
use adjutant_store::{Gate, MemoryConfig, Store};
use tokio::time::Instant;

use crate::full::{sending, spec};

/// The runtime's own time, which the tests move.
struct Paused(Instant);

impl Source for Paused {
    fn now(&self) -> Time {
        Time::from_millis(i64::try_from(self.steady().as_millis()).unwrap())
    }

    fn steady(&self) -> Duration {
        self.0.elapsed()
    }

    fn fill(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&Env::system().random::<64>()[..bytes.len()]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_could_not_be_renewed_is_tried_again_before_it_runs_out() {
    let begun = Instant::now();
    // The store is back after the last renewal by the plain beat, and before the lease is over.
    let away = LEASE_RENEWAL / 2..LEASE - Duration::from_millis(800);
    let env = Env::new(Arc::new(Paused(begun)));
    let (clock, gate) = (env.clone(), move || if away.contains(&begun.elapsed()) { Gate::Shut } else { Gate::Open });
    let config = MemoryConfig { gate: Arc::new(gate), ..MemoryConfig::new(Arc::new(move || clock.now())) };
    let engine = Engine::new(Parts {
        store: Store::memory(config),
        env,
        models: Arc::new(|_: &str| -> Result<Arc<dyn Model>, ModelError> { unreachable!("nothing runs") }),
        tools: adjutant_tools::Registry::default(),
        notebooks: PathBuf::from("/nowhere"),
        default_model: "none".to_owned(),
        connector: adjutant_tools::net::Connector::default(),
        user_rate: None,
        max_runs: 1,
        unpriced: Unpriced::Allow,
    });
    let engine = engine.unwrap();
    let attendance = engine.attend().await.unwrap();
    tokio::time::sleep_until(begun + LEASE + Duration::from_millis(500)).await;
    assert!(engine.holds_lease());
    attendance.leave().await;
}

/// A tool that has its effect a little later than its lease can last: the store is away from the moment it was called.
struct Slow {
    spec: ToolSpec,
    away: Arc<AtomicBool>,
    sent: AtomicUsize,
}

#[async_trait::async_trait]
impl Tool for Slow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, _: Permit, _: &World) -> ToolOutcome {
        self.away.store(true, Ordering::SeqCst);
        tokio::time::sleep(LEASE + Duration::from_millis(1)).await;
        self.sent.fetch_add(1, Ordering::SeqCst);
        ToolOutcome::output("it was sent")
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_given_up_when_the_lease_of_its_node_is_over() {
    let away = Arc::new(AtomicBool::new(false));
    let env = Env::new(Arc::new(Paused(Instant::now())));
    let (clock, shut) = (env.clone(), Arc::clone(&away));
    let config = MemoryConfig {
        gate: Arc::new(move || if shut.load(Ordering::SeqCst) { Gate::Shut } else { Gate::Open }),
        ..MemoryConfig::new(Arc::new(move || clock.now()))
    };
    let slow = Arc::new(Slow { spec: spec(), away: Arc::clone(&away), sent: AtomicUsize::new(0) });
    let tool = Arc::clone(&slow) as Arc<dyn Tool>;
    let (engine, workspace, run) = sending(Store::memory(config), env, tool, Path::new("/nowhere")).await;
    let worker = engine.start_worker().await.unwrap();
    tokio::time::sleep(LEASE * 3).await;
    away.store(false, Ordering::SeqCst);
    tokio::time::sleep(LEASE * 3).await;
    let told = |event: Event| match event {
        Event::CallInDoubt(body) => Some(body.message),
        Event::CallEnded(body) => Some(body.output.text().into_owned()),
        _ => None,
    };
    let events = engine.recorded(workspace, run, 0, None).await.unwrap();
    let told: Vec<_> = events.into_iter().filter_map(|item| told(item.event)).collect();
    worker.stop().await;
    assert_eq!(slow.sent.load(Ordering::SeqCst), 0, "it had its effect when the run could have been another node's");
    assert!(matches!(told.as_slice(), [doubt] if doubt.contains("may or may not have happened")), "{told:?}");
}
