//! The server's numbers, in the text form that Prometheus reads. They count; they name nobody.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use adjutant_engine::store::Tallies;
use adjutant_engine::{BUCKETS_MS, Numbers, Right, Times};
use axum::extract::State;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};

use super::door;
use super::origin::Origin;
use super::problem::Problem;
use super::server::Server;
use crate::log_queue;

/// Counters of this process.
#[derive(Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    latency: Mutex<BTreeMap<String, Times>>,
    pub(super) streams: Arc<Gauge>,
}

/// How many are there now.
#[derive(Debug, Default)]
pub(super) struct Gauge(AtomicU64);

/// One of them, for as long as this lives.
pub(super) struct Entered(Arc<Gauge>);

impl Gauge {
    pub(super) fn enter(self: Arc<Self>) -> Entered {
        self.0.fetch_add(1, Ordering::Relaxed);
        Entered(self)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts an answer. The route is the pattern, never the path: ids would make a series each.
    pub(super) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let key = (method.to_owned(), route.to_owned(), status);
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
        let mut all = self.latency.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(route.to_owned()).or_default().add(took);
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "# HELP adjutant_http_requests_total Answers.\n# TYPE adjutant_http_requests_total counter")?;
        for ((method, route, status), count) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            writeln!(text, "adjutant_http_requests_total{{{labels}}} {count}")?;
        }
        head(text, "adjutant_http_request_seconds", "histogram", "Time to the first byte.")?;
        for (route, times) in &*self.latency.lock().unwrap_or_else(PoisonError::into_inner) {
            histogram(text, "adjutant_http_request_seconds", &format!("route=\"{route}\","), times)?;
        }
        let streams = self.streams.0.load(Ordering::Relaxed);
        writeln!(text, "# HELP adjutant_sse_clients Open streams.\n# TYPE adjutant_sse_clients gauge")?;
        writeln!(text, "adjutant_sse_clients {streams}")?;
        head(text, "adjutant_log_lines_lost_total", "counter", "Log lines that nobody read in time.")?;
        writeln!(text, "adjutant_log_lines_lost_total {}", log_queue::lost())
    }
}

/// Serves the numbers: to everybody on this machine while nobody else can connect, to the owner otherwise. A public address
/// means that others can, by a proxy on this machine, which cannot be told from somebody here.
pub(super) async fn metrics(
    State(server): State<Server>,
    origin: Origin,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !server.place.loopback || server.place.public_host.is_some() {
        let signed = door::admit(&server, origin, &Method::GET, &headers).await?;
        signed.need_owner()?;
        signed.need(Right::Admin)?;
    }
    let asked = Instant::now();
    let tallies = server.engine.store().tallies(server.engine.env().now()).await?;
    let answered = asked.elapsed().as_secs_f64();
    let mut text = String::new();
    let written = server
        .metrics
        .write(&mut text)
        .and_then(|()| now(&mut text, &tallies, answered))
        .and_then(|()| done(&mut text, &server.engine.meter().read()));
    written.map_err(|_| Problem::invalid("The numbers could not be written."))?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) -> std::fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// `labels` end with a comma, or are empty.
fn histogram(text: &mut String, name: &str, labels: &str, times: &Times) -> std::fmt::Result {
    for (most, count) in BUCKETS_MS.iter().zip(times.buckets) {
        let seconds = Duration::from_millis(*most).as_secs_f64();
        writeln!(text, "{name}_bucket{{{labels}le=\"{seconds}\"}} {count}")?;
    }
    let (sum, count) = (times.sum.as_secs_f64(), times.count);
    writeln!(text, "{name}_bucket{{{labels}le=\"+Inf\"}} {count}")?;
    let bare = labels.trim_end_matches(',');
    writeln!(text, "{name}_sum{{{bare}}} {sum}\n{name}_count{{{bare}}} {count}")
}

/// How things stand, over all nodes.
fn now(text: &mut String, tallies: &Tallies, answered: f64) -> std::fmt::Result {
    head(text, "adjutant_runs", "gauge", "Runs that have not ended.")?;
    for (status, count) in &tallies.runs {
        writeln!(text, "adjutant_runs{{status=\"{status}\"}} {count}")?;
    }
    for (name, help, count) in [
        ("adjutant_approvals_waiting", "Inbox items.", tallies.approvals),
        ("adjutant_queue_depth", "Runs that could go on and that nobody drives.", tallies.queued),
        ("adjutant_messages_waiting", "Messages that wait until their chat is free.", tallies.waiting),
    ] {
        head(text, name, "gauge", help)?;
        writeln!(text, "{name} {count}")?;
    }
    head(text, "adjutant_store_seconds", "gauge", "One look at the database.")?;
    writeln!(text, "adjutant_store_seconds {answered}")
}

/// What this process has done since it began.
fn done(text: &mut String, numbers: &Numbers) -> std::fmt::Result {
    head(text, "adjutant_runs_ended_total", "counter", "Runs that ended here.")?;
    for (status, count) in &numbers.ended {
        writeln!(text, "adjutant_runs_ended_total{{status=\"{status}\"}} {count}")?;
    }
    for (name, help, count) in [
        ("adjutant_steps_total", "Model turns that were answered.", numbers.steps),
        ("adjutant_model_failures_total", "Model calls that failed.", numbers.model_failures),
    ] {
        head(text, name, "counter", help)?;
        writeln!(text, "{name} {count}")?;
    }
    head(text, "adjutant_model_seconds", "histogram", "Time to the end of an answer.")?;
    histogram(text, "adjutant_model_seconds", "", &numbers.model_times)?;
    head(text, "adjutant_tokens_total", "counter", "Tokens of model calls.")?;
    let tokens = numbers.tokens;
    for (kind, count) in
        [("input", tokens.input), ("output", tokens.output), ("cached", tokens.cached), ("reasoning", tokens.reasoning)]
    {
        writeln!(text, "adjutant_tokens_total{{kind=\"{kind}\"}} {count}")?;
    }
    head(text, "adjutant_cost_usd_total", "counter", "What model calls cost, where the price is known.")?;
    writeln!(text, "adjutant_cost_usd_total {}", numbers.cost.dollars())?;
    head(text, "adjutant_tool_calls_total", "counter", "Tool calls that have their result.")?;
    for (tool, numbers) in &numbers.tools {
        for (outcome, count) in [("done", numbers.done), ("failed", numbers.failed), ("refused", numbers.refused)] {
            writeln!(text, "adjutant_tool_calls_total{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}")?;
        }
    }
    head(text, "adjutant_tool_seconds", "histogram", "Time that tool calls ran.")?;
    for (tool, numbers) in &numbers.tools {
        histogram(text, "adjutant_tool_seconds", &format!("tool=\"{tool}\","), &numbers.times)?;
    }
    head(text, "adjutant_commit_seconds", "histogram", "Time until the events of a run were durable.")?;
    histogram(text, "adjutant_commit_seconds", "", &numbers.commits)
}
