//! How providers are doing, known to all runs of a process: how many calls each may have at once, whether it is left alone
//! for a while after it failed, and how fast it has been. Nothing here is kept over a restart.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjutant_core::message::{ModelAnswer, ModelRequest};
use async_trait::async_trait;
use tokio::sync::futures::OwnedNotified;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::{DeltaSink, Embedded, Model, ModelError, Purpose};

/// How long a call waits for its turn.
const TURN_PATIENCE: Duration = Duration::from_secs(60);
/// Failures in a row after which a provider is left alone.
const FAILURES: u32 = 5;
/// For how long at first; it doubles while the provider keeps failing.
const REST_FIRST: Duration = Duration::from_secs(30);
/// For how long at the most, whoever says so.
const REST_MOST: Duration = Duration::from_secs(300);
/// The part of a measurement in the running average, as one over this.
const WEIGHT: u32 = 4;

/// How providers are doing. Cheap to clone; clones know the same.
#[derive(Debug, Clone, Default)]
pub struct Health {
    states: Arc<Mutex<HashMap<String, State>>>,
    /// The calls that each provider may still have. Whoever came first is first.
    turns: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    rests: u32,
    rests_until: Option<Instant>,
    /// Somebody looks whether it is well again; all others wait for what they find.
    probed: bool,
    /// Tells those who wait that somebody has looked.
    looked: Arc<Notify>,
    first_piece: Option<Duration>,
}

/// Where a model's calls take their turn, and what their failures are held against.
#[derive(Debug)]
pub(crate) struct Place {
    /// The provider: all its calls share their turns, whichever key they are made with.
    pub(crate) provider: String,
    /// How many it may have at once.
    pub(crate) at_once: NonZeroUsize,
    /// What failures are held against: the provider, or one key of it.
    pub(crate) watched: String,
    /// The model's full name.
    pub(crate) model: String,
}

/// Whether a call may be made.
enum Admitted {
    /// It may.
    Well,
    /// It may, and all others wait for what comes of it.
    ToLook,
    /// Not for so long.
    No(Duration),
    /// Perhaps, once somebody has looked.
    Once(OwnedNotified),
}

/// The right to one call of a provider. Dropping it without a word (a cancelled call) says nothing about the provider.
#[derive(Debug)]
struct Turn {
    health: Health,
    watched: String,
    probes: bool,
    _permit: OwnedSemaphorePermit,
}

impl Health {
    /// How long a provider is still left alone. One that is called only with keys that people brought is, as long as none of
    /// those keys is admitted.
    #[must_use]
    pub fn resting(&self, provider: &str) -> Option<Duration> {
        let (states, now) = (self.lock(), Instant::now());
        let left =
            |state: &State| Some(state.rests_until?.saturating_duration_since(now)).filter(|left| !left.is_zero());
        if let Some(own) = states.get(provider) {
            return left(own);
        }
        let with_keys = states.iter().filter(|(watched, _)| is_key_of(watched, provider));
        let lefts: Option<Vec<Duration>> = with_keys.map(|(_, state)| left(state)).collect();
        lefts?.into_iter().min()
    }

    /// How long it took a model lately until the first piece of its answer.
    #[must_use]
    pub fn first_piece(&self, model: &str) -> Option<Duration> {
        self.lock().get(model)?.first_piece
    }

    async fn turn(&self, place: &Place) -> Result<Turn, ModelError> {
        let busy = |wait| ModelError::Overloaded { retry_after: Some(wait), status: None };
        let late = || busy(Duration::from_secs(1));
        let until = Instant::now() + TURN_PATIENCE;
        loop {
            let turns = self.turns(place);
            let permit = timeout_at(until, turns.acquire_owned()).await.map_err(|_| late())?.map_err(|_| late())?;
            let (health, watched) = (self.clone(), place.watched.clone());
            match self.admitted(&place.watched) {
                Admitted::Well => return Ok(Turn { health, watched, probes: false, _permit: permit }),
                Admitted::ToLook => return Ok(Turn { health, watched, probes: true, _permit: permit }),
                Admitted::No(left) => return Err(busy(left)),
                Admitted::Once(looked) => {
                    // Calls with another key need not wait for this one.
                    drop(permit);
                    timeout_at(until, looked).await.map_err(|_| late())?;
                }
            }
        }
    }

    /// Whether a call may be made now.
    fn admitted(&self, watched: &str) -> Admitted {
        let mut states = self.lock();
        let state = states.entry(watched.to_owned()).or_default();
        match state.rests_until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => Admitted::Well,
            Some(left) if !left.is_zero() => Admitted::No(left),
            // Whoever has this in hand hears of the end, also of one before they wait for it.
            Some(_) if state.probed => Admitted::Once(Arc::clone(&state.looked).notified_owned()),
            Some(_) => {
                state.probed = true;
                Admitted::ToLook
            }
        }
    }

    fn turns(&self, place: &Place) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Semaphore::new(place.at_once.get().min(Semaphore::MAX_PERMITS)));
        Arc::clone(turns.entry(place.provider.clone()).or_insert_with(new))
    }

    fn succeeded(&self, turn: &Turn) {
        let mut states = self.lock();
        let state = states.entry(turn.watched.clone()).or_default();
        (state.failures, state.rests, state.rests_until) = (0, 0, None);
        state.looked.notify_waiters();
    }

    fn failed(&self, turn: &Turn, error: &ModelError) {
        // What is wrong with a request or a key says nothing about the provider's health.
        if !error.retryable() {
            return;
        }
        let mut states = self.lock();
        let state = states.entry(turn.watched.clone()).or_default();
        let named = error.retry_after().filter(|wait| !wait.is_zero()).map(|wait| wait.min(REST_MOST));
        let rest = match state.rests_until {
            // It was still underway when the provider was left alone: that it fails, too, is no news.
            Some(_) if !turn.probes => named,
            // A time that it names itself is better than a guess of ours.
            Some(_) => Some(named.unwrap_or_else(|| state.next_rest())),
            None => {
                state.failures = state.failures.saturating_add(1);
                let own = (state.failures >= FAILURES).then(|| state.next_rest());
                own.max(named)
            }
        };
        if let Some(rest) = rest {
            state.rests_until = state.rests_until.max(Some(Instant::now() + rest));
        }
    }

    fn measured(&self, model: &str, first_piece: Duration) {
        let mut states = self.lock();
        let known = &mut states.entry(model.to_owned()).or_default().first_piece;
        *known = Some(known.map_or(first_piece, |before| (before * (WEIGHT - 1) + first_piece) / WEIGHT));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What failures with a key that somebody brought are held against.
pub(crate) fn with_key(provider: &str, key: &str) -> String {
    format!("{provider} with {key}")
}

fn is_key_of(watched: &str, provider: &str) -> bool {
    watched.strip_prefix(provider).is_some_and(|rest| rest.starts_with(" with "))
}

impl State {
    /// How long the provider is left alone now: longer each time it is found unwell.
    fn next_rest(&mut self) -> Duration {
        let rest = REST_FIRST.saturating_mul(1 << self.rests.min(8)).min(REST_MOST);
        self.rests = self.rests.saturating_add(1);
        rest
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.probes
            && let Some(state) = self.health.lock().get_mut(&self.watched)
        {
            state.probed = false;
            state.looked.notify_waiters();
        }
    }
}

/// A model whose calls take turns and whose failures are remembered.
pub(crate) struct Watched {
    inner: Arc<dyn Model>,
    health: Health,
    place: Place,
}

impl Watched {
    /// Watches over a model.
    pub(crate) const fn new(inner: Arc<dyn Model>, health: Health, place: Place) -> Self {
        Self { inner, health, place }
    }
}

#[async_trait]
impl Model for Watched {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let turn = self.health.turn(&self.place).await?;
        let began = Instant::now();
        let first = Arc::new(Mutex::new(None));
        let heard = Arc::clone(&first);
        let timed = deltas.noticing(move || {
            heard.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| began.elapsed());
        });
        let answer = self.inner.answer(request, &timed).await;
        match &answer {
            Ok(_) => {
                self.health.succeeded(&turn);
                let first = *first.lock().unwrap_or_else(PoisonError::into_inner);
                self.health.measured(&self.place.model, first.unwrap_or_else(|| began.elapsed()));
            }
            Err(error) => self.health.failed(&turn, error),
        }
        drop(turn);
        answer
    }

    fn patience(&self) -> Duration {
        self.inner.patience()
    }

    fn texts_at_once(&self) -> usize {
        self.inner.texts_at_once()
    }

    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Embedded, ModelError> {
        let turn = self.health.turn(&self.place).await?;
        let embedded = self.inner.embed(texts, purpose).await;
        match &embedded {
            Ok(_) => self.health.succeeded(&turn),
            Err(error) => self.health.failed(&turn, error),
        }
        drop(turn);
        embedded
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::time::timeout;

    use super::*;
    use crate::view::tests::{answer, request};

    /// A model that fails so many times, then answers after a while.
    struct Faulty {
        failures: AtomicUsize,
        error: ModelError,
        calls: AtomicUsize,
        at_once: AtomicUsize,
        most_at_once: AtomicUsize,
    }

    impl Faulty {
        fn new(failures: usize, error: ModelError) -> Arc<Self> {
            let zero = || AtomicUsize::new(0);
            let failures = AtomicUsize::new(failures);
            Arc::new(Self { failures, error, calls: zero(), at_once: zero(), most_at_once: zero() })
        }
    }

    #[async_trait]
    impl Model for Faulty {
        async fn answer(&self, _: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(2)).await;
            deltas.text("piece");
            tokio::time::sleep(Duration::from_secs(5)).await;
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            let left = self.failures.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if left.is_ok() { Err(self.error.clone()) } else { Ok(answer("fine")) }
        }
    }

    const AT_ONCE: NonZeroUsize = NonZeroUsize::new(3).unwrap();

    fn watched(model: &Arc<Faulty>, health: &Health) -> Watched {
        watched_as(model, health, "p")
    }

    fn watched_as(model: &Arc<Faulty>, health: &Health, watched: &str) -> Watched {
        let (provider, model_name) = ("p".to_owned(), "p/m".to_owned());
        let place = Place { provider, at_once: AT_ONCE, watched: watched.to_owned(), model: model_name };
        Watched::new(Arc::clone(model) as Arc<dyn Model>, health.clone(), place)
    }

    const DOWN: ModelError = ModelError::Overloaded { retry_after: None, status: Some(503) };

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_keeps_failing_is_left_alone_by_all_and_then_tried_by_one() {
        let health = Health::default();
        let model = Faulty::new(6, DOWN);
        let ask = async || watched(&model, &health).answer(&request(&["hi"]), &DeltaSink::none()).await;
        for _ in 0..5 {
            assert!(ask().await.is_err());
        }
        assert_eq!(health.resting("p"), Some(REST_FIRST));
        let error = ask().await.unwrap_err();
        assert_eq!((error.class(), error.retry_after()), ("overloaded", Some(REST_FIRST)));
        assert_eq!(model.calls.load(Ordering::SeqCst), 5, "nobody called it");

        tokio::time::advance(REST_FIRST).await;
        let (first, second) = tokio::join!(ask(), ask());
        assert!(first.is_err() && second.is_err());
        assert_eq!(model.calls.load(Ordering::SeqCst), 6, "one looked");
        assert_eq!(health.resting("p"), Some(REST_FIRST * 2), "and it is left alone for longer");
        tokio::time::advance(REST_FIRST * 2).await;
        assert!(ask().await.is_ok());
        assert_eq!(health.resting("p"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_names_a_time_is_left_alone_at_once_but_not_for_ever() {
        let health = Health::default();
        let wait = Some(Duration::from_secs(7));
        let limited = Faulty::new(1, ModelError::RateLimited { retry_after: wait, status: Some(429) });
        assert!(watched(&limited, &health).answer(&request(&["hi"]), &DeltaSink::none()).await.is_err());
        assert_eq!(health.resting("p"), wait);
        let health = Health::default();
        let day = Some(Duration::from_secs(86_400));
        let limited = Faulty::new(1, ModelError::RateLimited { retry_after: day, status: Some(429) });
        assert!(watched(&limited, &health).answer(&request(&["hi"]), &DeltaSink::none()).await.is_err());
        assert_eq!(health.resting("p"), Some(REST_MOST));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_while_one_looks_waits_for_what_comes_of_it() {
        let health = Health::default();
        let wait = Some(Duration::from_secs(7));
        let model = Faulty::new(1, ModelError::RateLimited { retry_after: wait, status: Some(429) });
        let ask = async |_: usize| watched(&model, &health).answer(&request(&["hi"]), &DeltaSink::none()).await;
        assert!(ask(0).await.is_err());
        tokio::time::advance(Duration::from_secs(7)).await;
        let all = join_all((0..4).map(ask)).await;
        assert!(all.iter().all(Result::is_ok), "{all:?}");
        assert_eq!(model.calls.load(Ordering::SeqCst), 5);

        let (health, model) = (Health::default(), Faulty::new(6, DOWN));
        let ask = async |_: usize| watched(&model, &health).answer(&request(&["hi"]), &DeltaSink::none()).await;
        for number in 0..5 {
            assert!(ask(number).await.is_err());
        }
        tokio::time::advance(REST_FIRST).await;
        let looks = timeout(Duration::from_secs(1), ask(5));
        let (dropped, ..) = tokio::join!(looks, ask(6));
        assert!(dropped.is_err(), "it was cancelled");
        assert_eq!(model.calls.load(Ordering::SeqCst), 7, "and the next one looked");
        assert_eq!(health.resting("p"), Some(REST_FIRST * 2));
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_were_underway_when_a_provider_failed_do_not_lengthen_its_rest() {
        let (health, second) = (Health::default(), Duration::from_secs(1));
        let model = Faulty::new(9, ModelError::RateLimited { retry_after: Some(second), status: Some(429) });
        let places = Place { at_once: NonZeroUsize::new(8).unwrap(), ..watched(&model, &health).place };
        let eight = Watched::new(Arc::clone(&model) as Arc<dyn Model>, health.clone(), places);
        let asked = request(&["hi"]);
        let ask = async |_: usize| eight.answer(&asked, &DeltaSink::none()).await;
        assert!(join_all((0..8).map(ask)).await.iter().all(Result::is_err));
        assert_eq!(health.resting("p"), Some(second), "as long as it asked for");
        tokio::time::advance(second).await;
        assert!(ask(8).await.is_err());
        assert_eq!(health.resting("p"), Some(second), "who looks is told the time, too");

        let (health, model) = (Health::default(), Faulty::new(8, DOWN));
        let places = Place { at_once: NonZeroUsize::new(8).unwrap(), ..watched(&model, &health).place };
        let eight = Watched::new(Arc::clone(&model) as Arc<dyn Model>, health.clone(), places);
        let ask = async |_: usize| eight.answer(&asked, &DeltaSink::none()).await;
        assert!(join_all((0..8).map(ask)).await.iter().all(Result::is_err));
        assert_eq!(health.resting("p"), Some(REST_FIRST), "five failures are one rest, and so are eight");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bad_request_says_nothing_about_the_provider() {
        let health = Health::default();
        let model = Faulty::new(9, ModelError::NoCredit { status: None });
        for _ in 0..9 {
            assert!(watched(&model, &health).answer(&request(&["hi"]), &DeltaSink::none()).await.is_err());
        }
        assert_eq!(health.resting("p"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_take_turns_whichever_key_they_are_made_with_and_a_dropped_one_gives_its_turn_back() {
        let health = Health::default();
        let model = Faulty::new(0, DOWN);
        let one = async |watched: &'static str| {
            watched_as(&model, &health, watched).answer(&request(&["hi"]), &DeltaSink::none()).await
        };
        let keys = ["p", "p with key_1", "p with key_2", "p with key_1", "p"];
        let all = join_all(keys.into_iter().chain(keys).map(one)).await;
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(model.most_at_once.load(Ordering::SeqCst), AT_ONCE.get());
        let dropped = join_all(keys.into_iter().take(AT_ONCE.get()).map(one));
        assert!(timeout(Duration::from_secs(1), dropped).await.is_err());
        assert!(one("p").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_first_is_called_first_and_nobody_waits_for_ever() {
        let (health, model, order) = (Health::default(), Faulty::new(0, DOWN), Mutex::new(Vec::new()));
        let one = async |number: usize| {
            let answered = watched(&model, &health).answer(&request(&["hi"]), &DeltaSink::none()).await;
            if answered.is_ok() {
                order.lock().unwrap().push(number);
            }
            answered
        };
        // Each call takes seven seconds, and so many of them fit into a minute of waiting.
        let all = join_all((0..AT_ONCE.get() * 10).map(one)).await;
        assert!(order.lock().unwrap().is_sorted(), "{order:?}");
        let refused: Vec<_> = all.iter().filter_map(|answer| answer.as_ref().err()).collect();
        assert!(!refused.is_empty() && refused.iter().all(|error| error.class() == "overloaded"), "{refused:?}");
        assert!(all[..AT_ONCE.get() * 8].iter().all(Result::is_ok), "{all:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_to_the_first_piece_is_measured() {
        let health = Health::default();
        let model = Faulty::new(0, DOWN);
        watched(&model, &health).answer(&request(&["hi"]), &DeltaSink::none()).await.unwrap();
        assert_eq!(health.first_piece("p/m"), Some(Duration::from_secs(2)));
        health.measured("p/m", Duration::from_secs(6));
        assert_eq!(health.first_piece("p/m"), Some(Duration::from_secs(3)));
    }
}
