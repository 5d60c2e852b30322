//! A lease that is to outlive a store which is away for a while.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::limits::{LEASE, LEASE_RENEWAL};
use adjutant_core::time::Time;
use adjutant_engine::models::{Model, ModelError};
use adjutant_engine::{Engine, Env, Parts, Unpriced};
use adjutant_store::{Gate, MemoryConfig, Store};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_lease_that_could_not_be_renewed_is_tried_again_before_it_runs_out() {
    let begun = Instant::now();
    // The store is back after the last renewal by the plain beat, and before the lease is over.
    let away = LEASE_RENEWAL / 2..LEASE - Duration::from_millis(800);
    let clock = move || Time::from_millis(i64::try_from(begun.elapsed().as_millis()).unwrap());
    let gate = move || if away.contains(&begun.elapsed()) { Gate::Shut } else { Gate::Open };
    let engine = Engine::new(Parts {
        store: Store::memory(MemoryConfig { gate: Arc::new(gate), ..MemoryConfig::new(Arc::new(clock)) }),
        env: Env::system(),
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
