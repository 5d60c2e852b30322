//! A request as a span. It names the route, never the path: paths hold names of files.

use std::time::SystemTime;

use opentelemetry::trace::{FutureExt as _, SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};

use super::{number, read, tracer};

/// The methods that are named; anybody can make up another.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The trace that a request says it belongs to: 32 hexadecimal digits.
#[must_use]
pub fn trace_of<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let context = read(header);
    let span = context.span().span_context().clone();
    span.is_valid().then(|| span.trace_id().to_string())
}

/// One request that is being answered.
#[derive(Debug)]
pub struct RequestTrace(Context);

impl RequestTrace {
    /// Begins the span of a request; none while nobody watches. `header` gives the value of a header by its name.
    #[must_use]
    pub fn begin<'a>(method: &str, route: &str, header: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let tracer = tracer()?;
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER");
        let attributes = [KeyValue::new("http.request.method", method), KeyValue::new("http.route", route.to_owned())];
        let builder =
            tracer.span_builder(format!("{method} {route}")).with_kind(SpanKind::Server).with_attributes(attributes);
        let parent = read(header);
        let span = tracer.build_with_context(builder, &parent);
        Some(Self(parent.with_span(span)))
    }

    /// The trace it is part of: 32 hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> String {
        self.0.span().span_context().trace_id().to_string()
    }

    /// Answers the request within its span: what it starts belongs to the same trace.
    pub async fn within<F: Future>(&self, answering: F) -> F::Output {
        answering.with_context(self.0.clone()).await
    }

    /// Ends the span with the status of the answer.
    pub fn end(self, status: u16) {
        let span = self.0.span();
        span.set_attribute(number("http.response.status_code", status.into()));
        if status >= 500 {
            span.set_attribute(KeyValue::new("error.type", status.to_string()));
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(SystemTime::now());
    }
}
