//! Calling the model: build the request from the log, announce it, make the call, record the answer.

mod answered;

use std::sync::{Arc, OnceLock};

use adjutant_core::causes::causes;
use adjutant_core::content::Content;
use adjutant_core::guard::filter::{Filter, FilterPoint};
use adjutant_core::id::CallId;
use adjutant_core::message::{Message, ModelAnswer, ModelRequest, RawCall};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::event::{
    CallProposed, Errored, ModelAnswered, ModelFailed, ModelRequested, PauseReason, Paused, Said,
};
use adjutant_core::run::{output, transcript};
use adjutant_core::time::Time;
use adjutant_core::tool::ToolDefinitions;
use adjutant_models::catalog::Cost;
use adjutant_models::chain::Next;
use adjutant_models::{Allowed, DeltaSink, Model, ModelError, Notes, Tape, tokens};

pub(crate) use self::answered::{frames, in_time};
use self::answered::{meant, thoughts};
use crate::counting::HeardOf;
use crate::driver::Driver;
use crate::engine::Engine;
use crate::env::millis;
use crate::error::EngineError;
use crate::held::Record;
use crate::log::{Flushed, RunLog, texts};
use crate::patience::Hold;
use crate::rates;
use crate::spending::{self, Reserved};

impl Driver {
    /// Announces a model call, makes it, and records what came of it.
    pub(crate) async fn ask_model(&mut self, turn: u32, attempt: u32) -> Result<Flushed, EngineError> {
        if let Some(limited) = self.log.limited.remove(&None) {
            // The run holds, costs a row, and goes on by itself.
            self.log.push(Paused { reason: PauseReason::Rate, until: Some(limited.until), by: None, ask: None })?;
            return Ok(Flushed::Written);
        }
        if let Some(over) = self.log.overspent.take() {
            return self.hold_for_money(over);
        }
        let Some((request, model)) = self.request(turn, attempt).await? else {
            return if self.toolbox.is_halted() { self.hold_for_switch().await } else { Ok(Flushed::Written) };
        };
        let flushed = self.flush(Hold::Keep).await?;
        if flushed != Flushed::Written || self.state().cancel.is_some() {
            return Ok(flushed);
        }
        let from = self.now();
        let filter = self.known_agent().await?.filter;
        let first = Arc::new(OnceLock::new());
        let pieces = self.listening(turn, &filter, &first);
        let answer = match model {
            Err(error) => Err(error),
            Ok(model) => tokio::select! {
                biased;
                // Dropping the call is what stops it.
                cancelled = self.cancelled() => return cancelled,
                answer = in_time(model.patience(), model.answer(&request, &pieces)) => answer,
            },
        };
        let (asked, frames) = (self.state().asking.clone(), frames(self.tape.take()));
        let cost = match answer {
            Ok(answer) => {
                let took = Took {
                    usage: self.engine.usage_of(&request, &answer).await,
                    ms: millis(self.now().since(from)),
                    first: first.get().map(|at| millis(at.since(from))),
                    frames,
                };
                self.record_answer(turn, &request, &filter, answer, took)?;
                self.state().turns.last().and_then(|turn| turn.answered.as_ref()).and_then(|answered| answered.cost)
            }
            Err(error) => {
                let allowed = self.allowed_by_now().await?;
                let heard = self.engine.heard_of(&request, self.notes.take()).await;
                let failed = Failure { error, partial: first.get().is_some(), heard, frames };
                self.record_failure(turn, attempt, &allowed, failed)?
            }
        };
        if let Some(asked) = asked {
            self.point_out(&asked, cost).await?;
        }
        Ok(Flushed::Written)
    }

    /// Where the pieces of an answer go; the first one is noted with its time.
    fn listening(&mut self, turn: u32, filter: &Filter, first: &Arc<OnceLock<Time>>) -> DeltaSink {
        let (heard, env) = (Arc::clone(first), self.engine.env().clone());
        let pieces = self.engine.pieces(self.log.run, turn).noticing(move || {
            heard.get_or_init(|| env.now());
        });
        let pieces = self.engine.filtered_pieces(pieces, filter);
        // What a filter may take out of an answer is in no log, not in this one either.
        self.tape = (self.is_debugged() && !filter.may_change(FilterPoint::Output)).then(Tape::default);
        self.notes = Notes::default();
        pieces.taped(self.tape.clone()).noted(self.notes.clone())
    }

    /// Whether what goes over the wire in its model calls is kept.
    fn is_debugged(&self) -> bool {
        self.state().start.as_ref().is_some_and(|start| start.debug)
    }

    /// The providers whose models may be asked next. Where that cannot be read, those that were allowed when the model was
    /// asked: what became of the call has still to be recorded, and whoever stands in is looked at again before it is asked.
    async fn allowed_by_now(&mut self) -> Result<Arc<Allowed>, EngineError> {
        let agent = match self.agent().await {
            Ok(agent) => agent,
            Err(error) => {
                tracing::warn!(run = %self.log.run, error = %causes(&error), "what a run may ask next cannot be read at the moment");
                self.known_agent().await?
            }
        };
        Ok(agent.providers)
    }

    /// Ends the run, because its model cannot be asked.
    fn unasked<T>(&mut self, code: &str, message: String) -> Result<Option<T>, EngineError> {
        self.log.push(Errored { code: code.to_owned(), message, retryable: false })?;
        Ok(None)
    }

    /// Announces the next request; none where something keeps it from being made. The model is found before: what cannot be looked
    /// at is no reason to say that it failed.
    async fn request(&mut self, turn: u32, attempt: u32) -> Result<Option<(ModelRequest, Found)>, EngineError> {
        // A key that was brought since the last turn is looked for from this one on.
        let record = Record::of_run(self.log.workspace, self.state());
        self.log.hold(self.engine.held(record).await?);
        let base = self.base().await?;
        let tools = self.definitions().await?;
        let (request, dropped) = match transcript::request(self.state(), &base, &tools) {
            Ok(fitting) => fitting,
            Err(overflow) => {
                let message = format!(
                    "The conversation does not fit the model's window: {overflow}. Nothing was sent. Start a new chat, or use a model with a larger window."
                );
                return self.unasked("context_overflow", message);
            }
        };
        let agent = self.agent().await?;
        if self.toolbox.is_halted() {
            return Ok(None);
        }
        if !agent.providers.admits(&request.model) {
            let message = format!("{}. Nothing was sent.", Allowed::refusal(&request.model));
            return self.unasked("provider_not_allowed", message);
        }
        let key = match self.key_for(&agent, &request.model).await {
            Err(EngineError::Model(error)) => {
                let message = format!("The model cannot be asked: {error}. Nothing was sent.");
                return self.unasked(error.run_code(), message);
            }
            other => other?,
        };
        let model = match self.engine.keyed_model(self.log.workspace, &request.model, key).await {
            Ok(model) => Ok(model),
            Err(EngineError::Model(error)) => Err(error),
            Err(other) => return Err(other),
        };
        let reserved = match self.reserve(&request, &agent, key).await? {
            Reserved::Fits(reserved) => reserved,
            Reserved::TooMuch(over) => {
                self.hold_for_money(over)?;
                return Ok(None);
            }
            Reserved::Unpriced(escaped) => {
                self.hold_for_price(&request.model, escaped)?;
                return Ok(None);
            }
        };
        let requested = ModelRequested {
            turn,
            attempt,
            model: request.model.clone(),
            request: request.hash(),
            dropped,
            reserved: reserved.amount,
            purses: reserved.purses(),
            key,
            price_version: reserved.version.clone(),
        };
        let taking = rates::of_request(agent.id, &agent.config, self.now());
        self.log.push_spending(requested, Some(taking), reserved.spends)?;
        Ok(Some((self.complete(request).await?, model)))
    }

    /// Fills in what a request says only by its hash.
    async fn complete(&self, mut request: ModelRequest) -> Result<ModelRequest, EngineError> {
        let loaded = texts(self.engine.store(), self.log.workspace, &request.missing()).await?;
        request.fill(&loaded);
        // A picture of an earlier message, or one that a stand-in cannot see, is no reason to fail.
        if self.engine.models().facts(&request.model).is_some_and(|facts| facts.is_blind()) {
            request.describe_images();
        }
        Ok(request)
    }

    async fn base(&mut self) -> Result<Arc<Vec<Message>>, EngineError> {
        if let Some(base) = &self.base {
            return Ok(Arc::clone(base));
        }
        let start = self.state().start.as_ref();
        let window = start.map_or(0, |start| start.limits.context_bytes);
        let base = start.and_then(|start| start.base);
        let base = Arc::new(self.engine.base_messages(self.log.workspace, base, window).await?);
        self.base = Some(Arc::clone(&base));
        Ok(base)
    }

    async fn definitions(&mut self) -> Result<Arc<ToolDefinitions>, EngineError> {
        if let Some(definitions) = &self.definitions {
            return Ok(Arc::clone(definitions));
        }
        let definitions = tool_definitions(&self.engine, &self.log).await?;
        self.definitions = Some(Arc::clone(&definitions));
        Ok(definitions)
    }

    fn record_answer(
        &mut self,
        turn: u32,
        request: &ModelRequest,
        filter: &Filter,
        answer: ModelAnswer,
        took: Took,
    ) -> Result<(), EngineError> {
        let mut answer = self.filter_answer(filter, answer)?;
        let has_calls = !answer.calls.is_empty();
        if let Some(counted) = answer.usage {
            self.engine.ratios().learn(&request.model, request, counted.input);
        }
        let cost = self.cost_of_answer(request, &answer);
        let unfit = if has_calls { None } else { self.unfit(&answer.text) };
        // What does not fit the schema is no answer: exactly one ends a run.
        let is_answer = !has_calls && unfit.is_none();
        for thought in thoughts(turn, &mut answer, is_answer) {
            self.log.push(thought)?;
        }
        if is_answer {
            self.log.push(Said { turn, text: Content::new(answer.text) })?;
        }
        self.log.push(ModelAnswered {
            turn,
            calls: u32::try_from(answer.calls.len()).unwrap_or(u32::MAX),
            usage: took.usage,
            estimated: answer.usage.is_none(),
            cost: cost.as_ref().map(|cost| cost.amount),
            price_version: cost.map(|cost| cost.version),
            finish: answer.finish,
            served_model: answer.served_model,
            ms: took.ms,
            first_ms: took.first,
            unfit,
            frames: took.frames,
        })?;
        for call in answer.calls {
            let id = self.call_id(&call);
            let (tool, arguments) = meant(call);
            let arguments = self.filter_arguments(filter, &id, &tool, arguments)?;
            self.log.push(CallProposed { turn, call: id, tool, arguments: Content::new(arguments) })?;
        }
        Ok(())
    }

    /// What an answer cost, if anybody can tell.
    fn cost_of_answer(&self, request: &ModelRequest, answer: &ModelAnswer) -> Option<Cost> {
        let asking = self.state().asking.as_ref();
        let reserved = asking.and_then(|asking| {
            let version = asking.price_version.clone().unwrap_or_default();
            asking.reserved.map(|amount| Cost { amount, version })
        });
        let call = spending::Call {
            asked: &request.model,
            served: &answer.served_model,
            key: asking.and_then(|asking| asking.key),
            reserved,
            charged: answer.charged,
            most: (tokens::bound(request), u64::from(request.max_tokens)),
        };
        self.engine.bill(call, answer.usage.as_ref())
    }

    /// Why an answer does not fit the schema of the run, if it has one.
    fn unfit(&self, text: &str) -> Option<String> {
        let schema = self.state().start.as_ref()?.output_schema.as_deref()?;
        output::read(schema, text).err()
    }

    /// The id of a call: the provider's, unless it sent none, an unusable one, or one that is taken (rule T5).
    fn call_id(&self, call: &RawCall) -> CallId {
        let sent = call.id.as_deref().and_then(CallId::parse);
        sent.filter(|id| self.state().call(id).is_none()).unwrap_or_else(|| self.engine.env().id())
    }

    /// Records what failed and what follows; says what it counts as.
    fn record_failure(
        &mut self,
        turn: u32,
        attempt: u32,
        allowed: &Allowed,
        Failure { error, partial, heard, frames }: Failure,
    ) -> Result<Option<MicroUsd>, EngineError> {
        let Some(asking) = self.state().asking.clone() else { return Ok(None) };
        let cost = spending::of_failure(&error, partial, asking.reserved);
        let follows = self.after_failure(allowed, &asking.model, &error, partial);
        let message = error.to_string();
        tracing::warn!(run = %self.log.run, turn, attempt, class = error.class(), %message, "a model call failed");
        let (retry_at, next) = match follows {
            Next::End => (None, None),
            Next::Again(pause) => (Some(self.now().after(pause)), None),
            Next::Other(model) => (Some(self.now()), Some(model)),
        };
        self.log.push(ModelFailed {
            turn,
            attempt,
            class: error.class().to_owned(),
            message: message.clone(),
            retry_at,
            model: asking.model,
            next,
            partial,
            cost,
            frames,
            served_model: heard.served,
            usage: heard.usage,
            estimated: heard.estimated,
        })?;
        if retry_at.is_none() {
            let message = format!(
                "The model did not answer: {message}. What was done so far stays. Try again, or choose another model."
            );
            self.log.push(Errored { code: error.run_code().to_owned(), message, retryable: error.retryable() })?;
        }
        Ok(cost)
    }
}

/// The model that a request is for.
type Found = Result<Arc<dyn Model>, ModelError>;

/// How many tokens and how long an answer took, and what went over the wire where that is kept.
struct Took {
    usage: TokenUsage,
    ms: u64,
    /// Until its first piece, where it came in pieces.
    first: Option<u64>,
    frames: Option<Content>,
}

/// A model call that failed.
struct Failure {
    error: ModelError,
    /// Whether some of the answer was shown.
    partial: bool,
    /// What is known of the answer that never came whole.
    heard: HeardOf,
    frames: Option<Content>,
}

/// The tools the run shows its model.
pub(crate) async fn tool_definitions(engine: &Engine, log: &RunLog) -> Result<Arc<ToolDefinitions>, EngineError> {
    let Some(start) = &log.state.start else { return Ok(Arc::default()) };
    let hash = start.tools.hash();
    if let Some(known) = engine.known_definitions(hash) {
        return Ok(known);
    }
    let mut tools = start.tools.clone();
    if let Some(hash) = tools.missing()
        && let Some(text) = texts(engine.store(), log.workspace, &[hash]).await?.get(&hash)
    {
        tools.fill(text);
    }
    let definitions = serde_json::from_str(&tools.text()).map(Arc::new);
    let definitions = definitions.map_err(|bad| EngineError::BadLog {
        run: log.run,
        why: format!("its tool definitions cannot be read: {bad}"),
    })?;
    engine.keep_definitions(hash, &definitions);
    Ok(definitions)
}
