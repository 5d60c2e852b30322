//! Traces for whoever watches over the process: runs, model calls, tool calls and requests as OpenTelemetry spans. They hold
//! names, numbers and ids, and nothing that was said, read or written. Without `Tracing::start` nothing here does anything.

mod export;
mod request;
mod run;

use std::collections::HashMap;
use std::sync::OnceLock;

pub use export::{Collector, Tracing};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
pub use request::{RequestTrace, trace_of};
pub(crate) use run::RunTrace;

/// The header that carries a trace from one program to the next, and the form in which a run keeps its own.
const PARENT: &str = "traceparent";
/// The header for what others add to it.
const STATE: &str = "tracestate";

/// A process has one, as it has one log.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Whether anybody watches.
fn tracer() -> Option<&'static SdkTracer> {
    TRACER.get()
}

/// The trace that the present task belongs to, as a run keeps it: any node may drive it, at any time.
pub(crate) fn present() -> Option<String> {
    tracer()?;
    let context = Context::current();
    let span = context.span().span_context().clone();
    span.is_valid().then(|| written(&span))
}

fn written(span: &SpanContext) -> String {
    format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags())
}

/// What somebody's headers say the next span belongs to.
fn read<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Context {
    let carried = [PARENT, STATE].into_iter().filter_map(|name| Some((name.to_owned(), header(name)?.to_owned())));
    let carried: HashMap<String, String> = carried.collect();
    TraceContextPropagator::new().extract_with_context(&Context::new(), &carried)
}

/// A number as the standard has them.
fn number(key: &'static str, value: u64) -> KeyValue {
    KeyValue::new(key, i64::try_from(value).unwrap_or(i64::MAX))
}
