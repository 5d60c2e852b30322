//! Faults that only the simulation can make at will.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::time::Time;
use adjutant_store::{Fault, MemoryConfig, Store, StoreError};

use crate::fixture::*;

#[tokio::test]
async fn a_failed_append_writes_nothing_and_a_lost_reply_everything() {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let store = Store::memory(MemoryConfig {
        faults: Arc::new(move |point| {
            assert_eq!(point.events, 1);
            match seen.fetch_add(1, Ordering::Relaxed) {
                1 => Fault::FailBefore,
                2 => Fault::LostReply,
                _ => Fault::None,
            }
        }),
        ..MemoryConfig::new(Arc::new(|| Time::from_millis(0)))
    });
    let home = Home::new(&store).await;
    let run = home.started(&store).await;
    assert!(matches!(store.append(run.say(&["one"])).await, Err(StoreError::Unavailable(_))));
    assert_eq!(run.texts(&store).await, ["run started"]);
    assert!(matches!(store.append(run.say(&["two"])).await, Err(StoreError::Unavailable(_))));
    assert_eq!(run.texts(&store).await, ["run started", "two"]);
    assert!(is_stale(&store.append(run.say(&["two"])).await));
    assert_eq!(count.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn an_append_that_is_delivered_twice_is_written_once_and_its_caller_is_told_that_it_is_stale() {
    let store = Store::memory(MemoryConfig {
        faults: Arc::new(|point| if point.after > 0 { Fault::Twice } else { Fault::None }),
        ..MemoryConfig::new(Arc::new(|| Time::from_millis(0)))
    });
    let home = Home::new(&store).await;
    let run = home.started(&store).await;
    assert!(is_stale(&store.append(run.say(&["one"])).await));
    assert_eq!(run.texts(&store).await, ["run started", "one"]);
}
