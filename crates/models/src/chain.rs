//! One model after the other: what follows a failed call. Pure: whoever asked records the failure with what follows from it,
//! and makes the next call.
//!
//! Another model is asked only for what another provider can cure (time, load, network), and never once a piece of an answer
//! was shown. A conversation that must not go to another company stays with the models of its provider.

use std::time::Duration;

use adjutant_core::limits::{BACKOFF_MOST, MODEL_ATTEMPTS};

use crate::ModelError;
use crate::retry::backoff;

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

/// Where a conversation may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To every model of the line-up.
    Anywhere,
    /// Only to models of the same provider: what was said must not reach another company.
    SameProvider,
    /// To no other model: a piece of an answer was shown.
    Here,
}

/// A call that failed.
#[derive(Debug, Clone, Copy)]
pub struct Failed<'a> {
    /// The models of the run, in order.
    pub lineup: &'a [String],
    /// The one that was asked.
    pub model: &'a str,
    /// How often it was asked in this turn, this time included.
    pub number: u32,
    /// Why it failed.
    pub error: &'a ModelError,
    /// Where the conversation may go.
    pub reach: Reach,
}

/// What follows a failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: there is no hope of an answer.
    End,
    /// The same model after a wait.
    Again(Duration),
    /// Another model, at once.
    Other(String),
}

/// What follows a failed call. `chance` is a random number from 0 to 1.
#[must_use]
pub fn after(failed: &Failed<'_>, chance: f64) -> Next {
    let Failed { number, error, .. } = *failed;
    let other = stand_in(failed).filter(|_| may_fall_back(error));
    let wait = backoff(number, error.retry_after(), chance);
    // Who asks for patience is given it only where nobody else can help.
    let patient = error.retry_after().is_none_or(|wait| wait <= BACKOFF_MOST) || other.is_none();
    if error.retryable() && number < MODEL_ATTEMPTS && patient {
        return Next::Again(wait);
    }
    other.map_or(Next::End, |model| Next::Other(model.to_owned()))
}

/// The first model after the one that failed that the conversation may go to.
fn stand_in<'a>(failed: &Failed<'a>) -> Option<&'a str> {
    let at = failed.lineup.iter().position(|model| model == failed.model)?;
    let provider = |model: &'a str| model.split('/').next().unwrap_or_default();
    let mut later = failed.lineup[at + 1..].iter().map(String::as_str);
    later.find(|model| match failed.reach {
        Reach::Anywhere => true,
        Reach::SameProvider => provider(model) == provider(failed.model),
        Reach::Here => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Detail;

    const BUSY: ModelError = ModelError::Overloaded { retry_after: None, status: Some(503) };

    fn limited(secs: u64) -> ModelError {
        ModelError::RateLimited { retry_after: Some(Duration::from_secs(secs)), status: Some(429) }
    }

    /// What follows a failure of `model` in the line-up `a/one`, `b/two`, `a/three`.
    fn next(model: &str, number: u32, error: &ModelError, reach: Reach) -> Next {
        let lineup = ["a/one", "b/two", "a/three"].map(str::to_owned);
        after(&Failed { lineup: &lineup, model, number, error, reach }, 1.0)
    }

    fn again(secs: u64) -> Next {
        Next::Again(Duration::from_secs(secs))
    }

    #[test]
    fn a_model_is_tried_again_with_growing_waits_and_then_another_stands_in() {
        let waits: Vec<_> = (1..=4).map(|number| next("a/one", number, &BUSY, Reach::Anywhere)).collect();
        assert_eq!(waits, [again(1), again(2), again(4), Next::Other("b/two".into())]);
        assert_eq!(next("b/two", 4, &BUSY, Reach::Anywhere), Next::Other("a/three".into()));
        assert_eq!(next("a/three", 4, &BUSY, Reach::Anywhere), Next::End);
    }

    #[test]
    fn only_what_another_provider_can_cure_is_taken_to_another() {
        let detail = Detail::default;
        let timeout = ModelError::Timeout { what: "answer", limit: Duration::from_secs(1) };
        let network = ModelError::Network { reason: "x", source: None };
        for error in [timeout, network, BUSY, limited(1), ModelError::Truncated { reason: "x" }] {
            assert_eq!(next("a/one", 4, &error, Reach::Anywhere), Next::Other("b/two".into()), "{error}");
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
            assert_eq!(next("a/one", 1, &error, Reach::Anywhere), Next::End, "{error}");
        }
    }

    #[test]
    fn a_conversation_goes_no_further_than_it_may() {
        assert_eq!(next("a/one", 4, &BUSY, Reach::SameProvider), Next::Other("a/three".into()));
        assert_eq!(next("b/two", 4, &BUSY, Reach::SameProvider), Next::End);
        assert_eq!(next("a/one", 4, &BUSY, Reach::Here), Next::End);
        assert_eq!(next("a/one", 1, &BUSY, Reach::Here), again(1), "the same model may try again");
        assert_eq!(next("z/gone", 4, &BUSY, Reach::Anywhere), Next::End, "one that is not in the line-up");
    }

    #[test]
    fn nobody_waits_long_for_a_provider_while_another_can_answer() {
        assert_eq!(next("a/one", 1, &limited(90), Reach::Anywhere), Next::Other("b/two".into()));
        assert_eq!(next("a/three", 1, &limited(90), Reach::Anywhere), again(91));
        assert_eq!(next("a/one", 1, &limited(5), Reach::Anywhere), again(6));
    }
}
