//! How much of everything a node takes on at once.

use std::time::Duration;

use super::{Origin, Reader, Setting, parse_seconds};

const CALLS: &str = "600";
const RUNS: &str = "1024";
/// More would only wait for the database.
const REQUESTS: &str = "512";
const STREAMS: &str = "8192";
const PATIENCE: &str = "20s";
/// How long a node that was told to stop still lets new requests in: on this machine nobody has to be told first, elsewhere a
/// load balancer has to ask once more.
const DRAIN: (&str, &str) = ("0s", "5s");

/// The most that there may be at once.
#[derive(Debug, Clone)]
pub(crate) struct Most {
    /// Tool calls a minute of one person's runs.
    pub(crate) user_calls_per_minute: Setting<u32>,
    /// Runs driven at the same time.
    pub(crate) runs: Setting<usize>,
    /// Requests worked on at the same time.
    pub(crate) requests: Setting<usize>,
    /// Streams, and requests that wait for a run, open at the same time.
    pub(crate) streams: Setting<usize>,
    /// How long somebody may take nothing of what is sent before the connection is given up.
    pub(crate) stream_patience: Setting<Duration>,
    /// How long new connections are taken after the node was told to stop.
    pub(crate) drain: Setting<Duration>,
}

impl Most {
    pub(super) fn read(reader: &mut Reader<'_>, loopback: bool) -> Option<Self> {
        let calls = number(reader, "user_calls_per_minute", CALLS);
        let runs = number(reader, "max_runs", RUNS);
        let requests = number(reader, "max_requests", REQUESTS);
        let streams = number(reader, "max_streams", STREAMS);
        let patience = reader.parsed("stream_patience", None, PATIENCE, "a span such as 20s or 2m", |text| {
            parse_seconds(text).filter(|seconds| *seconds > 0).map(Duration::from_secs)
        });
        let usual = if loopback { DRAIN.0 } else { DRAIN.1 };
        let drain = reader.parsed("drain", None, usual, "a span such as 0s or 5s", |text| {
            parse_seconds(text).map(Duration::from_secs)
        });
        Some(Self {
            user_calls_per_minute: calls?,
            runs: runs?,
            requests: requests?,
            streams: streams?,
            stream_patience: patience?,
            drain: drain?,
        })
    }

    /// The settings as lines of key, value and origin.
    pub(super) fn shown(&self) -> Vec<(String, String, Origin)> {
        let line = |name: &str, value: String, origin: &Origin| (name.to_owned(), value, origin.clone());
        let calls = &self.user_calls_per_minute;
        let patience = &self.stream_patience;
        let mut lines = vec![line("user_calls_per_minute", calls.value.to_string(), &calls.origin)];
        let most = [("max_runs", &self.runs), ("max_requests", &self.requests), ("max_streams", &self.streams)];
        lines.extend(most.map(|(name, most)| line(name, most.value.to_string(), &most.origin)));
        lines.push(line("stream_patience", format!("{}s", patience.value.as_secs()), &patience.origin));
        lines.push(line("drain", format!("{}s", self.drain.value.as_secs()), &self.drain.origin));
        lines
    }
}

/// A number from 1.
fn number<T: std::str::FromStr + PartialOrd + Default>(
    reader: &mut Reader<'_>,
    name: &'static str,
    usual: &str,
) -> Option<Setting<T>> {
    reader.parsed(name, None, usual, "a number from 1", |text| text.parse().ok().filter(|most| *most > T::default()))
}
