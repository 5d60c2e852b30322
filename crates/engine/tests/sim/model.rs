//! A model that says anything: answers, parallel calls, calls cut off, bad arguments, used ids; or fails, hangs, panics.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::message::{FinishReason, ModelAnswer, ModelRequest, Part, RawCall, Thinking};
use adjutant_core::money::TokenUsage;
use adjutant_core::run::transcript;
use adjutant_engine::models::{DeltaSink, Detail, Model, ModelError};
use async_trait::async_trait;
use serde_json::json;

use crate::post::Post;
use crate::tools::NAMES;

/// Few, so that calls get in each other's way.
pub(crate) const PATHS: [&str; 3] = ["/a", "/b", "/b/c"];

pub(crate) struct SimModel {
    pub(crate) post: Arc<Post>,
}

#[async_trait]
impl Model for SimModel {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let (post, plan) = (&self.post, &self.post.scene.plan.model);
        if let Err(why) = transcript::check(&request.messages) {
            post.scene.broken(format!("a provider would refuse the request: {why}"));
        }
        if !request.missing().is_empty() {
            post.scene.broken("a request was sent without its texts".to_owned());
        }
        post.take(post.dice.millis(0, 1500)).await;
        deltas.text("…");
        if post.strikes(post.scene.plan.node.crash_in_model) {
            post.die("fault: crash in the model").await;
        }
        if post.strikes(plan.hangs) {
            post.scene.hit("model: hung");
            post.take(Duration::from_secs(100_000)).await;
        }
        if post.strikes(plan.panics) {
            post.scene.hit("model: panicked");
            panic!("simulated");
        }
        if post.strikes(plan.fails) {
            post.scene.hit("model: failed");
            return Err(self.failure());
        }
        post.take(post.dice.millis(0, 1500)).await;
        let answer = self.say(request);
        post.scene.note(&post.name, || {
            let names: Vec<_> = answer.calls.iter().map(|call| call.name.as_str()).collect();
            format!("the model says {:?}, calls {names:?}", answer.finish)
        });
        Ok(answer)
    }
}

impl SimModel {
    fn failure(&self) -> ModelError {
        let dice = &self.post.dice;
        match dice.below(8) {
            0 => ModelError::Unauthorized { status: Some(401), detail: Detail::default() },
            1 | 2 => ModelError::RateLimited { retry_after: Some(dice.millis(0, 40_000)), status: Some(429) },
            3 | 4 => ModelError::Overloaded { retry_after: None, status: Some(529) },
            5 => ModelError::Timeout { what: "answer", limit: Duration::from_secs(60) },
            6 => ModelError::Network { reason: "simulated", source: None },
            _ => ModelError::Truncated { reason: "simulated" },
        }
    }

    fn say(&self, request: &ModelRequest) -> ModelAnswer {
        let (post, dice) = (&self.post, &self.post.dice);
        let odd = post.strikes(post.scene.plan.model.odd);
        let ends = dice.one_in(if post.scene.is_calm() { 2 } else { 4 });
        let calls = if ends { 0 } else { dice.between(1, 3) + if odd && dice.one_in(8) { 16 } else { 0 } };
        let calls: Vec<_> = (0..calls).map(|_| self.call(request, odd)).collect();
        if calls.len() > 1 {
            post.scene.hit("model: parallel calls");
        }
        let finish = match (odd, calls.is_empty(), dice.below(4)) {
            (true, _, 0) => FinishReason::Length,
            (true, true, 1) => FinishReason::ContentFilter,
            (true, true, 2) => FinishReason::Error,
            (_, true, _) => FinishReason::Stop,
            (_, false, _) => FinishReason::ToolCalls,
        };
        if finish == FinishReason::Length && !calls.is_empty() {
            post.scene.hit("model: cut off");
        }
        let text = match dice.below(6) {
            0 => String::new(),
            1 if odd => "long ".repeat(1200),
            _ => format!("Answer {}.", dice.below(1000)),
        };
        let thinking = if dice.one_in(3) {
            let signature = dice.one_in(2).then(|| "sig".to_owned());
            vec![Thinking { text: "Hm.".to_owned(), signature, ..Thinking::default() }]
        } else {
            Vec::new()
        };
        let usage = dice.one_in(2).then(|| TokenUsage { input: 10, output: 5, ..TokenUsage::default() });
        ModelAnswer { thinking, text, calls, usage, charged: None, finish, served_model: "sim/model".to_owned() }
    }

    fn call(&self, request: &ModelRequest, odd: bool) -> RawCall {
        let dice = &self.post.dice;
        let name = dice.pick(&NAMES).copied().unwrap_or("look");
        let path = dice.pick(&PATHS).copied().unwrap_or("/a");
        let note = match dice.below(if odd { 10 } else { 30 }) {
            0 => "much ".repeat(1000),
            1..=4 => "same".to_owned(),
            _ => format!("note {}", dice.below(100_000)),
        };
        // Two writes of the same text could not be told apart afterwards.
        let note = if name == "write" { format!("{note} {}", dice.number()) } else { note };
        let mut call = RawCall {
            id: dice.one_in(2).then(|| format!("call_{}", dice.number())),
            name: name.to_owned(),
            arguments: json!({"path": path, "note": note}).to_string(),
        };
        if odd {
            match dice.below(8) {
                0 => call.name = "nothing".to_owned(),
                1 => call.arguments = json!({"path": path}).to_string(),
                2 => call.arguments = "{\"path\": \"/a\", \"note".to_owned(),
                3 => call.id = used_id(request),
                4 => call.id = Some("not an id, is it?".to_owned()),
                _ => {}
            }
        }
        call
    }
}

fn used_id(request: &ModelRequest) -> Option<String> {
    let mut parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.find_map(|part| if let Part::Call { id, .. } = part { Some(id.to_string()) } else { None })
}
