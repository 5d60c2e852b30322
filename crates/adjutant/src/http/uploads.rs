//! Room for files that are taken in: each is in memory until it is kept, and comes as slowly as whoever brings it likes. So nobody
//! has all the room, and who finds none is told so instead of waiting for the slowest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Files that are taken in at the same time.
const PLACES: usize = 16;
/// Those of them that one party brings.
const EACH: usize = 4;
/// How long somebody waits for room.
const PATIENCE: Duration = Duration::from_secs(2);

/// All the room there is.
pub(super) struct Uploads {
    places: Arc<Semaphore>,
    /// How many files each party brings, or waits to bring.
    brought: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// There is no room, or a party has all that one gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Room for one file, until this is dropped.
pub(super) struct Room {
    _place: OwnedSemaphorePermit,
    _part: Part,
}

/// One of those that a party brings.
struct Part {
    party: String,
    brought: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Default for Uploads {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(PLACES)), brought: Arc::default() }
    }
}

impl Uploads {
    /// Room for one file of a party.
    ///
    /// # Errors
    /// [`Full`] when there is none within moments.
    pub(super) async fn enter(&self, party: String) -> Result<Room, Full> {
        let part = self.part(party).ok_or(Full)?;
        let place = tokio::time::timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await;
        match place {
            Ok(Ok(place)) => Ok(Room { _place: place, _part: part }),
            Ok(Err(_)) | Err(_) => Err(Full),
        }
    }

    fn part(&self, party: String) -> Option<Part> {
        let mut brought = self.brought.lock().unwrap_or_else(PoisonError::into_inner);
        let count = brought.entry(party.clone()).or_default();
        if *count >= EACH {
            return None;
        }
        *count += 1;
        Some(Part { party, brought: Arc::clone(&self.brought) })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut brought = self.brought.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = brought.get_mut(&self.party) {
            *count -= 1;
            if *count == 0 {
                brought.remove(&self.party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_party_never_has_all_the_room_and_nobody_waits_for_long() {
        let uploads = Uploads::default();
        let mut held = Vec::new();
        for party in 0..PLACES / EACH {
            for _ in 0..EACH {
                held.push(uploads.enter(format!("party {party}")).await.ok().unwrap());
            }
            assert_eq!(uploads.enter(format!("party {party}")).await.err(), Some(Full), "it has its part");
        }
        let began = tokio::time::Instant::now();
        assert_eq!(uploads.enter("late".to_owned()).await.err(), Some(Full));
        assert!(began.elapsed() <= PATIENCE, "{:?}", began.elapsed());
        held.pop();
        assert!(uploads.enter("late".to_owned()).await.is_ok(), "what one gives back another gets");
        held.clear();
        assert!(uploads.brought.lock().unwrap().is_empty(), "nobody is remembered who brings nothing");
    }
}
