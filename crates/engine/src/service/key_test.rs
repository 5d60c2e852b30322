//! Whether a stored key is good: its provider is asked for a word.

use std::sync::Arc;

use adjutant_core::id::{KeyId, UserId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::message::{Message, ModelRequest, Part, Role};
use adjutant_models::{Allowed, DeltaSink, Model, ModelError, tokens};

use super::outside::{Errand, Heard};
use crate::asking::in_time;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::projection::word;

/// Tokens that a test asks for.
const TEST_TOKENS: u32 = 16;
/// Models that are asked one after the other where the account has not got the ones before.
const TRIES: usize = 3;

/// What became of a test of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTest {
    /// Whether the provider let it in.
    pub ok: bool,
    /// The model that was asked.
    pub model: String,
    /// What kind of failure it was.
    pub class: Option<String>,
    /// What happened, fit for a client.
    pub message: Option<String>,
}

impl Engine {
    /// Asks a model of a key's provider for a word, to see whether the key is good: the one that is named, or else the cheapest that
    /// the account has of the first few. Each is a model call like any other: it draws from the budgets of who asks, the workspace
    /// and the key, and is recorded.
    ///
    /// # Errors
    /// When there is no such key, no money, or no model of its provider is known and none is named.
    pub async fn test_key(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        id: KeyId,
        model: Option<String>,
    ) -> Result<KeyTest, EngineError> {
        let row = self.key_row(workspace, id).await?;
        self.refuse_halted(workspace).await?;
        let known = || self.models().cheapest(&row.provider).into_iter().take(TRIES).collect();
        let models: Vec<String> = model.map_or_else(known, |model| vec![model]);
        let mut tested = None;
        for model in models {
            if !self.source(workspace, None, by).await?.allowed.admits(&model) {
                return Err(EngineError::Model(Allowed::refusal(&model)));
            }
            let asked = match self.keyed_model(workspace, &model, Some(id)).await {
                Err(EngineError::Model(error)) => return Ok(failed(model, &error)),
                other => other?,
            };
            let answer = self.ask_for_a_word(workspace, by, id, &model, &*asked).await?;
            let is_missing = matches!(answer, Err(ModelError::UnknownModel { .. }));
            tested = Some(match answer {
                Ok(()) => KeyTest { ok: true, model, class: None, message: None },
                // Whoever is told that there is no such model was let in.
                Err(ModelError::UnknownModel { .. }) => {
                    let message = Some(format!("the key is good; the model `{model}` is not there"));
                    KeyTest { ok: true, model, class: None, message }
                }
                Err(error) => failed(model, &error),
            });
            if !is_missing {
                break;
            }
        }
        tested.ok_or_else(|| EngineError::Invalid(format!("no model of `{}` is known; name one", row.provider)))
    }

    /// Asks one model. What its provider says is the answer; what keeps it from being asked is an error.
    async fn ask_for_a_word(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        id: KeyId,
        model: &str,
        asked: &dyn Model,
    ) -> Result<Result<(), ModelError>, EngineError> {
        let request = test_request(model);
        let outside = self.outside(workspace, by, model.to_owned(), Some(id)).await?;
        let most = (tokens::bound(&request), u64::from(TEST_TOKENS));
        let call = self.announce(&outside, Errand::KeyTest, 1, most).await?;
        let answer = in_time(asked.patience(), asked.answer(&request, &DeltaSink::none())).await;
        let heard = match &answer {
            Ok(answer) => Ok(Heard {
                served: answer.served_model.clone(),
                finish: word(&answer.finish),
                usage: self.usage_of(&request, answer).await,
                estimated: answer.usage.is_none(),
                charged: answer.charged,
            }),
            Err(error) => Err(error),
        };
        self.settle(&outside, &call, heard).await?;
        Ok(answer.map(drop))
    }
}

/// What a test asks.
fn test_request(model: &str) -> ModelRequest {
    let text = Part::Text { text: "Say yes.".into(), labels: Labels::NONE };
    ModelRequest {
        model: model.to_owned(),
        system: "Answer with one word.".into(),
        tools: Arc::default(),
        messages: vec![Message { role: Role::User, parts: vec![text] }],
        max_tokens: TEST_TOKENS,
        temperature: None,
        options: Arc::default(),
        output_schema: None,
    }
}

fn failed(model: String, error: &ModelError) -> KeyTest {
    let (class, message) = (Some(error.class().to_owned()), Some(error.to_string()));
    KeyTest { ok: false, model, class, message }
}
