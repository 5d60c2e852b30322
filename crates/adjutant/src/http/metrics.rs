//! The server's numbers, in the text form that Prometheus reads. They count; they name nobody.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use adjutant_engine::Right;
use axum::extract::State;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};

use super::door;
use super::problem::Problem;
use super::server::Server;

/// Upper ends of the buckets, in milliseconds.
const BUCKETS: [u64; 9] = [1, 5, 10, 25, 100, 250, 1000, 5000, 30_000];

/// Counters of this process.
#[derive(Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
    latency: Mutex<BTreeMap<String, Latency>>,
    pub(super) streams: Arc<Gauge>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Latency {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: Duration,
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
        let latency = all.entry(route.to_owned()).or_default();
        for (bucket, most) in latency.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(took <= Duration::from_millis(most));
        }
        latency.count += 1;
        latency.sum += took;
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "# HELP adjutant_http_requests_total Answers.\n# TYPE adjutant_http_requests_total counter")?;
        for ((method, route, status), count) in &*self.requests.lock().unwrap_or_else(PoisonError::into_inner) {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            writeln!(text, "adjutant_http_requests_total{{{labels}}} {count}")?;
        }
        writeln!(text, "# HELP adjutant_http_request_seconds Time to the first byte.")?;
        writeln!(text, "# TYPE adjutant_http_request_seconds histogram")?;
        for (route, latency) in &*self.latency.lock().unwrap_or_else(PoisonError::into_inner) {
            for (most, count) in BUCKETS.iter().zip(latency.buckets) {
                let seconds = Duration::from_millis(*most).as_secs_f64();
                writeln!(text, "adjutant_http_request_seconds_bucket{{route=\"{route}\",le=\"{seconds}\"}} {count}")?;
            }
            let (sum, count) = (latency.sum.as_secs_f64(), latency.count);
            writeln!(text, "adjutant_http_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}")?;
            writeln!(text, "adjutant_http_request_seconds_sum{{route=\"{route}\"}} {sum}")?;
            writeln!(text, "adjutant_http_request_seconds_count{{route=\"{route}\"}} {count}")?;
        }
        let streams = self.streams.0.load(Ordering::Relaxed);
        writeln!(text, "# HELP adjutant_sse_clients Open streams.\n# TYPE adjutant_sse_clients gauge")?;
        writeln!(text, "adjutant_sse_clients {streams}")
    }
}

/// Serves the numbers: to everybody on this machine while nobody else can connect, to admins otherwise.
pub(super) async fn metrics(State(server): State<Server>, headers: HeaderMap) -> Result<Response, Problem> {
    if !server.place.loopback {
        let signed = door::admit(&server, &Method::GET, &headers).await?;
        signed.need_owner()?;
        signed.need(Right::Admin)?;
    }
    let asked = Instant::now();
    let tallies = server.engine.store().tallies().await?;
    let answered = asked.elapsed().as_secs_f64();
    let mut text = String::new();
    let written = server.metrics.write(&mut text).and_then(|()| {
        writeln!(text, "# HELP adjutant_runs Runs that have not ended.\n# TYPE adjutant_runs gauge")?;
        for (status, count) in &tallies.runs {
            writeln!(text, "adjutant_runs{{status=\"{status}\"}} {count}")?;
        }
        writeln!(text, "# HELP adjutant_approvals_waiting Inbox items.\n# TYPE adjutant_approvals_waiting gauge")?;
        writeln!(text, "adjutant_approvals_waiting {}", tallies.approvals)?;
        writeln!(text, "# HELP adjutant_store_seconds One look.\n# TYPE adjutant_store_seconds gauge")?;
        writeln!(text, "adjutant_store_seconds {answered}")
    });
    written.map_err(|_| Problem::invalid("The numbers could not be written."))?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
