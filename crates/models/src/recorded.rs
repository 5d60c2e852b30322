//! A model that answers from a recording, for replay: the same requests in the same order get the same answers, and any
//! other request is a divergence, never a guess.

use std::sync::Mutex;
use std::sync::PoisonError;

use adjutant_core::content::Hash;
use adjutant_core::message::{ModelAnswer, ModelRequest};
use async_trait::async_trait;

use crate::{DeltaSink, Model, ModelError};

/// One recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The hash of the request.
    pub request: Hash,
    /// What was answered.
    pub answer: ModelAnswer,
}

/// Answers from a list of recordings, in order.
#[derive(Debug)]
pub struct Recorded {
    recordings: Vec<Recording>,
    next: Mutex<usize>,
}

impl Recorded {
    /// A model that gives these answers.
    #[must_use]
    pub const fn new(recordings: Vec<Recording>) -> Self {
        Self { recordings, next: Mutex::new(0) }
    }

    /// How many recordings have not been asked for yet; a complete replay leaves none.
    #[must_use]
    pub fn left(&self) -> usize {
        self.recordings.len() - *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for Recorded {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let found = request.hash();
        let answer = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            match self.recordings.get(*next) {
                Some(recording) if recording.request == found => {
                    *next += 1;
                    recording.answer.clone()
                }
                other => {
                    return Err(ModelError::Diverged { expected: other.map(|recording| recording.request), found });
                }
            }
        };
        answer.thinking.iter().for_each(|thinking| deltas.thinking(&thinking.text));
        deltas.text(&answer.text);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{answer, request};

    #[tokio::test]
    async fn a_recording_answers_in_order_and_then_has_ended() {
        let (first, second) = (request(&["one"]), request(&["two"]));
        let model = Recorded::new(vec![
            Recording { request: first.hash(), answer: answer("1") },
            Recording { request: second.hash(), answer: answer("2") },
        ]);
        assert_eq!(model.answer(&first, &DeltaSink::none()).await.unwrap().text, "1");
        assert_eq!(model.answer(&second, &DeltaSink::none()).await.unwrap().text, "2");
        assert_eq!(model.left(), 0);
        let error = model.answer(&second, &DeltaSink::none()).await.unwrap_err();
        assert!(matches!(error, ModelError::Diverged { expected: None, found } if found == second.hash()));
    }

    #[tokio::test]
    async fn another_request_diverges_and_takes_nothing_from_the_recording() {
        let recorded = request(&["one"]);
        let model = Recorded::new(vec![Recording { request: recorded.hash(), answer: answer("1") }]);
        let error = model.answer(&request(&["two"]), &DeltaSink::none()).await.unwrap_err();
        assert!(matches!(error, ModelError::Diverged { expected: Some(hash), .. } if hash == recorded.hash()));
        assert_eq!(model.left(), 1);
        assert!(model.answer(&recorded, &DeltaSink::none()).await.is_ok());
    }
}
