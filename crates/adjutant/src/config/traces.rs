//! Whether traces are sent, and where: by our own setting, or by the variables that every program with OpenTelemetry reads.

use super::reader::Reader;
use super::{Origin, Setting};

/// What is added to an address that is the collector's and not that of its traces.
const PATH: &str = "/v1/traces";
const WANTED: &str = "an address such as http://127.0.0.1:4318, without a name or password in it";

/// Where traces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traces {
    /// Where they are posted to.
    pub(crate) endpoint: String,
    /// What this program calls itself there.
    pub(crate) service: String,
}

impl Traces {
    /// The host they go to: what follows it may hold a secret.
    pub(super) fn host(&self) -> String {
        let (scheme, rest) = self.endpoint.split_once("://").unwrap_or_default();
        format!("{scheme}://{}", rest.split(['/', '?', '#']).next().unwrap_or_default())
    }
}

impl Reader<'_> {
    /// Where traces go; none unless somebody said so.
    pub(super) fn traces(&mut self) -> Option<Setting<Traces>> {
        let said = |name: &str, word: &str| self.env.get(name).is_some_and(|text| text.eq_ignore_ascii_case(word));
        if said("OTEL_SDK_DISABLED", "true") || said("OTEL_TRACES_EXPORTER", "none") {
            return None;
        }
        let place = self.place()?;
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(other) = self.env.get(name).filter(|protocol| *protocol != "http/protobuf") {
                self.problems.push(format!("environment {name}: `{other}` is not spoken here; use http/protobuf"));
            }
        }
        let host = place.value.strip_prefix("http://").or_else(|| place.value.strip_prefix("https://"));
        if host.is_none_or(|rest| rest.is_empty() || rest.starts_with('/') || rest.contains(['@', '#'])) {
            // The address is not repeated: it may hold a password.
            self.problems.push(format!("{}: otlp_endpoint has to be {WANTED}", place.origin));
            return None;
        }
        let service = self.env.get("OTEL_SERVICE_NAME").unwrap_or("adjutant").to_owned();
        Some(Setting { value: Traces { endpoint: place.value, service }, origin: place.origin })
    }

    fn place(&mut self) -> Option<Setting<String>> {
        let ours = self.pick("otlp_endpoint", None);
        let is_file = ours.as_ref().is_none_or(|setting| matches!(setting.origin, Origin::File(..)));
        let variable = |name: &str| {
            let value = self.env.get(name).filter(|_| is_file)?.to_owned();
            Some(Setting { value, origin: Origin::Env(name.to_owned()) })
        };
        if let Some(exact) = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            return Some(exact);
        }
        let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT").or(ours)?;
        let trimmed = base.value.trim_end_matches('/');
        let value = if trimmed.ends_with(PATH) { trimmed.to_owned() } else { format!("{trimmed}{PATH}") };
        Some(Setting { value, origin: base.origin })
    }
}
