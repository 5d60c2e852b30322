//! The demo model `demo/guide`: free, scripted, and with real tool calls over whatever notebook it is given. What it
//! says follows from the request alone: what it lists, reads and rewrites is what its tools really answered. It calls
//! only tools that the request shows, and it never claims to be more than it is.

mod desk;
mod digest;
mod intent;
mod samples;
mod spelling;
mod talk;
mod tidy;

use std::time::Duration;

use adjutant_core::message::{FinishReason, ModelAnswer, ModelRequest, RawCall};
use async_trait::async_trait;

pub use self::samples::sample_files;
use crate::{DeltaSink, Model, ModelError, tokens};

/// The demo model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Demo {
    /// A wait after each word, for a show; none streams as fast as it can.
    pub pace: Option<Duration>,
}

/// What the model says and which tools it wants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reply {
    text: String,
    calls: Vec<RawCall>,
}

impl Reply {
    fn say(text: impl Into<String>) -> Self {
        Self { text: text.into(), calls: Vec::new() }
    }
}

#[async_trait]
impl Model for Demo {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let Reply { text, calls } = talk::reply(request);
        let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let served_model = request.model.clone();
        let mut answer =
            ModelAnswer { thinking: Vec::new(), text, calls, usage: None, charged: None, finish, served_model };
        answer.usage = Some(tokens::estimate(request, &answer));
        for word in answer.text.split_inclusive(char::is_whitespace) {
            deltas.text(word);
            if let Some(pace) = self.pace {
                tokio::time::sleep(pace).await;
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests;
