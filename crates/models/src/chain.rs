//! One model after the other: tries a model again where that may help, then those that may stand in for it. Each attempt is
//! reported, so that whoever asked can record it.
//!
//! Another provider is asked only for what another provider can cure (time, load, network), only if it is allowed, because
//! the conversation goes to another company, and never once a piece of an answer was shown.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjutant_core::limits::{BACKOFF_MOST, MODEL_ATTEMPTS};
use adjutant_core::message::{Delta, ModelAnswer, ModelRequest};
use adjutant_core::money::TokenUsage;
use async_trait::async_trait;
use tokio::time::{Instant, sleep};

use crate::retry::backoff;
use crate::{DeltaSink, Model, ModelError};

/// Whether another provider may succeed where this one failed.
#[must_use]
pub const fn may_fall_back(error: &ModelError) -> bool {
    match error {
        ModelError::RateLimited { .. }
        | ModelError::Overloaded { .. }
        | ModelError::Timeout { .. }
        | ModelError::Network { .. }
        | ModelError::Truncated { .. } => true,
        // These would fail elsewhere too, or the conversation should not go elsewhere because of them.
        ModelError::Unauthorized { .. }
        | ModelError::NoCredit { .. }
        | ModelError::UnknownModel { .. }
        | ModelError::ContextOverflow { .. }
        | ModelError::BadRequest { .. }
        | ModelError::Policy { .. }
        | ModelError::Broken { .. }
        | ModelError::Diverged { .. }
        | ModelError::Unknown { .. } => false,
    }
}

/// What came of one attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The model that was asked, `provider/model`.
    pub model: String,
    /// Which attempt with this model it was; the first is 1.
    pub number: u32,
    /// How long it took.
    pub took: Duration,
    /// What came of it.
    pub outcome: Outcome,
    /// What happens now.
    pub next: Next,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// It answered.
    Answered {
        /// The model that really answered.
        served_model: String,
        /// Tokens, none where the provider did not say.
        usage: Option<TokenUsage>,
    },
    /// It failed.
    Failed(ModelError),
}

/// What follows an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: there is an answer, or no hope of one.
    End,
    /// The same model after a wait.
    Again(Duration),
    /// Another model.
    Other(String),
}

/// One model and those that may stand in for it.
pub struct Chain {
    links: Vec<(String, Arc<dyn Model>)>,
    left_out: Vec<String>,
    chance: Arc<dyn Fn() -> f64 + Send + Sync>,
    report: Arc<dyn Fn(Attempt) + Send + Sync>,
}

impl Chain {
    /// A chain of one. `chance` gives random numbers from 0 to 1; `report` hears of every attempt.
    pub fn new(
        name: impl Into<String>,
        model: Arc<dyn Model>,
        chance: impl Fn() -> f64 + Send + Sync + 'static,
        report: impl Fn(Attempt) + Send + Sync + 'static,
    ) -> Self {
        let links = vec![(name.into(), model)];
        Self { links, left_out: Vec::new(), chance: Arc::new(chance), report: Arc::new(report) }
    }

    /// Adds a model that may stand in, if its provider is allowed.
    #[must_use]
    pub fn or(mut self, name: impl Into<String>, model: Arc<dyn Model>, allowed: impl Fn(&str) -> bool) -> Self {
        let name = name.into();
        let provider = name.split('/').next().unwrap_or_default();
        if allowed(provider) {
            self.links.push((name, model));
        } else {
            self.left_out.push(name);
        }
        self
    }

    /// The models that may not stand in, because their provider is not allowed.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// What follows a failure of attempt `number` with the link `at`.
    fn next(&self, at: usize, number: u32, error: &ModelError, shown: bool) -> Next {
        if shown {
            return Next::End;
        }
        let other = self.links.get(at + 1).filter(|_| may_fall_back(error)).map(|(name, _)| name.clone());
        let wait = backoff(number, error.retry_after(), (self.chance)());
        // Who asks for patience is given it only where nobody else can help.
        let patient = error.retry_after().is_none_or(|wait| wait <= BACKOFF_MOST) || other.is_none();
        if error.retryable() && number < MODEL_ATTEMPTS && patient {
            return Next::Again(wait);
        }
        other.map_or(Next::End, Next::Other)
    }
}

#[async_trait]
impl Model for Chain {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let (mut at, mut number) = (0, 1);
        loop {
            let (name, model) = &self.links[at];
            let mut asked = request.clone();
            asked.model.clone_from(name);
            let (sink, shown) = noting(deltas);
            let began = Instant::now();
            let answer = model.answer(&asked, &sink).await;
            let (outcome, next) = match &answer {
                Ok(answer) => {
                    let (served_model, usage) = (answer.served_model.clone(), answer.usage);
                    (Outcome::Answered { served_model, usage }, Next::End)
                }
                Err(error) => {
                    let next = self.next(at, number, error, shown.load(Ordering::SeqCst));
                    (Outcome::Failed(error.clone()), next)
                }
            };
            let took = began.elapsed();
            (self.report)(Attempt { model: name.clone(), number, took, outcome, next: next.clone() });
            match next {
                Next::End => return answer,
                Next::Again(wait) => {
                    sleep(wait).await;
                    number += 1;
                }
                Next::Other(_) => (at, number) = (at + 1, 1),
            }
        }
    }
}

/// A sink that hands everything on and notes whether there was anything.
fn noting(deltas: &DeltaSink) -> (DeltaSink, Arc<AtomicBool>) {
    let shown = Arc::new(AtomicBool::new(false));
    let (note, hand_on) = (Arc::clone(&shown), deltas.clone());
    let sink = DeltaSink::new(move |delta| {
        note.store(true, Ordering::SeqCst);
        match delta {
            Delta::Text(piece) => hand_on.text(&piece),
            Delta::Thinking(piece) => hand_on.thinking(&piece),
        }
    });
    (sink, shown)
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.links.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::Detail;
    use crate::view::tests::{answer, request};

    /// Fails with these, one after the other, then answers with the name it was asked by.
    struct Script(Mutex<Vec<ModelError>>, &'static str);

    #[async_trait]
    impl Model for Script {
        async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
            deltas.text(self.1);
            match self.0.lock().unwrap().pop() {
                Some(error) => Err(error),
                None => Ok(answer(&request.model)),
            }
        }
    }

    fn script(errors: &[ModelError]) -> Arc<dyn Model> {
        Arc::new(Script(Mutex::new(errors.iter().rev().cloned().collect()), ""))
    }

    type Reports = Arc<Mutex<Vec<String>>>;

    /// A chain of `a/one`, with these failures, and `b/two`; and what it reports.
    fn chain(model: Arc<dyn Model>, allowed: &'static [&'static str]) -> (Chain, Reports) {
        let reports = Reports::default();
        let heard = Arc::clone(&reports);
        let report = move |attempt: Attempt| {
            let outcome = match &attempt.outcome {
                Outcome::Answered { .. } => "answered",
                Outcome::Failed(error) => error.class(),
            };
            let next = match &attempt.next {
                Next::End => "end".to_owned(),
                Next::Again(wait) => format!("again in {} s", wait.as_secs()),
                Next::Other(model) => model.clone(),
            };
            heard.lock().unwrap().push(format!("{} {} {outcome}: {next}", attempt.model, attempt.number));
        };
        let chain = Chain::new("a/one", model, || 1.0, report);
        (chain.or("b/two", script(&[]), |provider| allowed.contains(&provider)), reports)
    }

    async fn ask(chain: &Chain) -> Result<ModelAnswer, ModelError> {
        chain.answer(&request(&["hi"]), &DeltaSink::none()).await
    }

    const BUSY: ModelError = ModelError::Overloaded { retry_after: None, status: Some(503) };

    fn limited(secs: u64) -> ModelError {
        ModelError::RateLimited { retry_after: Some(Duration::from_secs(secs)), status: Some(429) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_is_tried_again_with_growing_waits_and_then_another_stands_in() {
        let (chain, reports) = chain(script(&[BUSY, BUSY, BUSY, BUSY]), &["b"]);
        let began = Instant::now();
        assert_eq!(ask(&chain).await.unwrap().text, "b/two");
        assert_eq!(began.elapsed(), Duration::from_secs(1 + 2 + 4));
        assert_eq!(
            *reports.lock().unwrap(),
            [
                "a/one 1 overloaded: again in 1 s",
                "a/one 2 overloaded: again in 2 s",
                "a/one 3 overloaded: again in 4 s",
                "a/one 4 overloaded: b/two",
                "b/two 1 answered: end",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_another_provider_can_cure_is_taken_to_another() {
        let detail = Detail::default;
        let timeout = ModelError::Timeout { what: "answer", limit: Duration::from_secs(1) };
        let network = ModelError::Network { reason: "x", source: None };
        let cured = [timeout, network, BUSY, limited(1), ModelError::Truncated { reason: "x" }];
        for error in cured {
            let (chain, _) = chain(script(&vec![error.clone(); 4]), &["b"]);
            assert_eq!(ask(&chain).await.unwrap().text, "b/two", "{error}");
        }
        let final_ones = [
            ModelError::Unauthorized { status: Some(401), detail: detail() },
            ModelError::NoCredit { status: None },
            ModelError::UnknownModel { model: "x".into(), hint: String::new() },
            ModelError::ContextOverflow { status: None, detail: detail() },
            ModelError::BadRequest { status: Some(400), code: None, detail: detail() },
            ModelError::Policy { status: None, detail: detail() },
            ModelError::broken("x"),
            ModelError::Unknown { reason: "x", status: None, detail: detail() },
        ];
        for error in final_ones {
            let (chain, reports) = chain(script(std::slice::from_ref(&error)), &["b"]);
            assert_eq!(ask(&chain).await.unwrap_err().class(), error.class());
            assert_eq!(reports.lock().unwrap().len(), 1, "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_is_not_allowed_never_gets_the_conversation() {
        let (chain, reports) = chain(script(&vec![BUSY; 4]), &["c"]);
        assert_eq!(chain.left_out(), ["b/two"]);
        assert_eq!(ask(&chain).await.unwrap_err().class(), "overloaded");
        assert!(reports.lock().unwrap().iter().all(|report| report.starts_with("a/one")));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_tried_again_once_a_piece_was_shown() {
        let partial = Arc::new(Script(Mutex::new(vec![BUSY]), "so far"));
        let (chain, reports) = chain(partial, &["b"]);
        assert!(ask(&chain).await.is_err());
        assert_eq!(*reports.lock().unwrap(), ["a/one 1 overloaded: end"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_wait_is_borne_only_where_nobody_stands_in() {
        let (with, reports) = chain(script(&[limited(60)]), &["b"]);
        assert_eq!(ask(&with).await.unwrap().text, "b/two");
        assert_eq!(reports.lock().unwrap()[0], "a/one 1 rate_limited: b/two");
        let (alone, _) = chain(script(&[limited(60)]), &[]);
        let began = Instant::now();
        assert_eq!(ask(&alone).await.unwrap().text, "a/one");
        assert_eq!(began.elapsed(), Duration::from_secs(61), "what was asked for, and chance on top");
    }
}
