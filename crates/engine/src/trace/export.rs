//! Where spans go: in batches to a collector, by OTLP over HTTP. A collector that is slow, wrong or gone costs spans, never a
//! run: they are handed over without waiting, and those that find no room are dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::runtime::Tokio;
use opentelemetry_sdk::trace::span_processor_with_async_runtime::BatchSpanProcessor;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};

use super::TRACER;
use crate::error::EngineError;

/// How long the last spans may take on their way out. Whoever ends the process waits for it.
const FAREWELL: Duration = Duration::from_secs(3);

/// Who takes the spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    /// Where they are posted to, path and all.
    pub endpoint: String,
    /// What this process calls itself.
    pub service: String,
    /// Its version.
    pub version: &'static str,
    /// Which of several it is.
    pub node: String,
}

/// Spans are made as long as this is held.
#[derive(Debug)]
pub struct Tracing(SdkTracerProvider);

impl Tracing {
    /// Begins to make spans and to send them. A second start in one process is left out.
    ///
    /// # Errors
    /// When the collector cannot be talked to at all.
    pub fn start(collector: Collector, client: reqwest::Client) -> Result<Self, EngineError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(collector.endpoint)
            .with_http_client(Post { client, failing: AtomicBool::new(false) })
            .build()
            .map_err(|error| EngineError::Invalid(format!("traces cannot be sent: {error}")))?;
        let about =
            [KeyValue::new("service.version", collector.version), KeyValue::new("service.instance.id", collector.node)];
        let resource = Resource::builder().with_service_name(collector.service).with_attributes(about).build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter, Tokio).build())
            .with_resource(resource)
            // Whether a run leaves a trace is not for whoever asks for it to say.
            .with_sampler(Sampler::AlwaysOn)
            .build();
        let scope = InstrumentationScope::builder("adjutant").with_version(collector.version).build();
        let _ = TRACER.set(provider.tracer_with_scope(scope));
        Ok(Self(provider))
    }

    /// Sends what is left, for a moment.
    pub async fn stop(self) {
        // The library waits on the thread that asks.
        let last = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(FAREWELL));
        if tokio::time::timeout(FAREWELL, last).await.is_err() {
            tracing::warn!("the last traces did not reach their collector in time");
        }
    }
}

/// Posts what the library hands over, and says in the log when that begins to fail and when it works again.
#[derive(Debug)]
struct Post {
    client: reqwest::Client,
    failing: AtomicBool,
}

#[async_trait::async_trait]
impl HttpClient for Post {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.send_bytes(request).await;
        let failed = match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answered {}", answer.status())),
            // The text of the error would repeat the address, which may hold a secret.
            Err(_) => Some("it cannot be reached".to_owned()),
        };
        let before = self.failing.swap(failed.is_some(), Ordering::Relaxed);
        match failed {
            Some(why) if !before => tracing::warn!(why, "traces do not reach their collector; runs go on without"),
            None if before => tracing::info!("traces reach their collector again"),
            Some(_) | None => {}
        }
        answer
    }
}
