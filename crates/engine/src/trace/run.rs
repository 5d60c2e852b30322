//! A run as spans, by the GenAI conventions of OpenTelemetry: `invoke_agent` for each time it is driven, `chat` for a model
//! call, `execute_tool` for a tool call. Read off the events as they become durable, so a span tells what the log tells.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adjutant_core::run::event::{CallEnded, Event, ModelAnswered, ModelFailed};
use adjutant_core::run::state::State;
use adjutant_core::time::Time;
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::SdkTracer;

use super::{PARENT, number, read, tracer};
use crate::driver::Driver;

/// What a tool is called that does not exist: a model may write any name.
const OTHER: &str = "other";

/// One time that a run is driven.
pub(crate) struct RunTrace {
    tracer: &'static SdkTracer,
    /// The span of the run.
    context: Context,
    /// The model that was asked, and when.
    asked: Option<(String, Time)>,
}

impl RunTrace {
    /// Begins the span of a run; none while nobody watches. `agent` is what people call its agent.
    fn begin(state: &State, agent: &str, now: Time) -> Option<Self> {
        let (tracer, start) = (tracer()?, state.start.as_deref()?);
        let (provider, model) = parts(&start.model);
        let attributes = [
            KeyValue::new("gen_ai.operation.name", "invoke_agent"),
            KeyValue::new("gen_ai.provider.name", provider),
            KeyValue::new("gen_ai.request.model", model),
            KeyValue::new("gen_ai.agent.id", start.agent.to_string()),
            KeyValue::new("gen_ai.agent.name", agent.to_owned()),
            KeyValue::new("gen_ai.agent.version", start.agent_version.to_string()),
            KeyValue::new("gen_ai.conversation.id", start.chat.to_string()),
            KeyValue::new("adjutant.run.id", start.run.to_string()),
            KeyValue::new("adjutant.run.trigger", start.trigger.clone()),
            KeyValue::new("adjutant.workspace.id", start.workspace.to_string()),
        ];
        let builder = tracer
            .span_builder(format!("invoke_agent {agent}"))
            .with_kind(SpanKind::Internal)
            .with_start_time(moment(now))
            .with_attributes(attributes);
        let parent = read(|name| start.traceparent.as_deref().filter(|_| name == PARENT));
        let span = tracer.build_with_context(builder, &parent);
        Some(Self { tracer, context: parent.with_span(span), asked: None })
    }

    /// Tells what has become durable. `is_tool` says which names of tools are real.
    fn written(&mut self, state: &State, events: &[(Time, Event)], is_tool: impl Fn(&str) -> bool) {
        for (at, event) in events {
            match event {
                Event::ModelRequested(body) => self.asked = Some((body.model.clone(), *at)),
                Event::ModelAnswered(body) => self.answered(body, *at),
                Event::ModelFailed(body) => self.failed(body, *at),
                Event::CallEnded(body) => self.called(state, body, *at, &is_tool),
                _ => {}
            }
        }
    }

    /// Ends the span of the run with where it is now.
    fn end(self, state: &State, now: Time) {
        let span = self.context.span();
        span.set_attribute(KeyValue::new("adjutant.run.status", word(state.status())));
        span.set_attribute(number("gen_ai.usage.input_tokens", state.usage.input));
        span.set_attribute(number("gen_ai.usage.output_tokens", state.usage.output));
        if let Some(error) = &state.error {
            span.set_attribute(KeyValue::new("error.type", error.code.clone()));
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(moment(now));
    }

    fn answered(&mut self, body: &ModelAnswered, at: Time) {
        let finish = Value::Array(Array::String(vec![StringValue::from(word(body.finish))]));
        let mut attributes = vec![
            KeyValue::new("gen_ai.response.model", body.served_model.clone()),
            KeyValue::new("gen_ai.response.finish_reasons", finish),
            number("gen_ai.usage.input_tokens", body.usage.input),
            number("gen_ai.usage.output_tokens", body.usage.output),
            number("gen_ai.usage.cache_read.input_tokens", body.usage.cached),
        ];
        attributes.extend(body.cost.map(|cost| KeyValue::new("adjutant.cost_usd", cost.dollars())));
        let asked = self.asked.take();
        let model = asked.map_or_else(|| body.served_model.clone(), |(model, _)| model);
        self.chat(&model, before(at, body.ms), at, attributes, None);
    }

    fn failed(&mut self, body: &ModelFailed, at: Time) {
        let (model, from) = self.asked.take().unwrap_or_else(|| (body.model.clone(), at));
        let mut attributes: Vec<_> = body
            .served_model
            .as_ref()
            .map(|served| KeyValue::new("gen_ai.response.model", parts(served).1))
            .into_iter()
            .collect();
        if let Some(usage) = body.usage {
            attributes.push(number("gen_ai.usage.input_tokens", usage.input));
            attributes.push(number("gen_ai.usage.output_tokens", usage.output));
        }
        self.chat(&model, moment(from), at, attributes, Some(&body.class));
    }

    fn chat(&self, model: &str, from: SystemTime, to: Time, more: Vec<KeyValue>, error: Option<&str>) {
        let (provider, model) = parts(model);
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", provider),
            KeyValue::new("gen_ai.request.model", model.clone()),
        ];
        attributes.extend(more);
        let builder = self.tracer.span_builder(format!("chat {model}")).with_kind(SpanKind::Client);
        self.child(builder.with_start_time(from).with_attributes(attributes), to, error);
    }

    fn called(&self, state: &State, body: &CallEnded, at: Time, is_tool: &impl Fn(&str) -> bool) {
        let tool = if is_tool(&body.tool) { body.tool.as_str() } else { OTHER };
        let asked = state.call(&body.call).is_some_and(|call| call.approval.is_some());
        let verdict = match (asked, body.allowed) {
            (true, _) => "ask",
            (false, true) => "allow",
            (false, false) => "deny",
        };
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", tool.to_owned()),
            KeyValue::new("gen_ai.tool.type", "function"),
            KeyValue::new("gen_ai.tool.call.id", body.call.to_string()),
            KeyValue::new("adjutant.verdict", verdict),
            KeyValue::new("adjutant.allowed", body.allowed),
        ];
        let error = match (body.is_error, body.allowed) {
            (false, _) => None,
            (true, true) => Some("tool_failed"),
            (true, false) => Some("not_run"),
        };
        let builder = self.tracer.span_builder(format!("execute_tool {tool}")).with_kind(SpanKind::Internal);
        self.child(builder.with_start_time(before(at, body.ms)).with_attributes(attributes), at, error);
    }

    /// A span within that of the run, over already.
    fn child(&self, builder: SpanBuilder, to: Time, error: Option<&str>) {
        let mut span = self.tracer.build_with_context(builder, &self.context);
        if let Some(error) = error {
            span.set_attribute(KeyValue::new("error.type", error.to_owned()));
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(moment(to));
    }
}

impl Driver {
    /// Begins the span of the run that is being driven.
    pub(crate) async fn begin_trace(&mut self) {
        if tracer().is_none() {
            return;
        }
        // A run whose agent is gone is driven to its error, and seen as such.
        let name = self.known_agent().await.map(|agent| agent.config.name.clone()).unwrap_or_default();
        self.trace = RunTrace::begin(self.state(), &name, self.now());
    }

    /// What is about to become durable, if anybody watches.
    pub(crate) fn watched(&self) -> Vec<(Time, Event)> {
        self.trace.as_ref().map(|_| self.log.pending()).unwrap_or_default()
    }

    /// Tells what has become durable.
    pub(crate) fn show(&mut self, events: &[(Time, Event)]) {
        if let Some(trace) = &mut self.trace {
            trace.written(&self.log.state, events, |name| self.engine.tools().get(name).is_some());
        }
    }

    /// Ends the span of the run.
    pub(crate) fn end_trace(&mut self) {
        let now = self.now();
        if let Some(trace) = self.trace.take() {
            trace.end(&self.log.state, now);
        }
    }
}

/// A model's provider, by the name the conventions have for it, and what the provider calls the model.
fn parts(model: &str) -> (String, String) {
    let (provider, model) = model.split_once('/').unwrap_or((model, model));
    let known = match provider {
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "gemini" => "gcp.gemini",
        "vertex" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        own => own,
    };
    (known.to_owned(), model.to_owned())
}

/// The one word for a thing, as the log and the API have it.
fn word(thing: impl serde::Serialize) -> String {
    match serde_json::to_value(thing) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn moment(at: Time) -> SystemTime {
    UNIX_EPOCH + at.since(Time::from_millis(0))
}

fn before(at: Time, ms: u64) -> SystemTime {
    moment(at).checked_sub(Duration::from_millis(ms)).unwrap_or(UNIX_EPOCH)
}
