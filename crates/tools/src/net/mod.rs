//! The network. Whatever goes out goes through here: providers get their client ([`provider_client`]), and the toolset `web`
//! asks the [`Connector`], which judges each address itself before it connects.

mod connector;
mod fetch_web_page;
mod http_request;
mod page;
mod provider;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use adjutant_core::guard::host::Url;
use adjutant_core::label::Labels;
use adjutant_core::tool::{Category, Checks, Effect, Level, Recovery, ToolDefinition, ToolOutcome, ToolSpec};

pub use connector::{Answer, Connector, Lookup, NetError, Request, SystemLookup};
pub(crate) use fetch_web_page::FetchWebPage;
pub(crate) use http_request::HttpRequest;
pub use provider::provider_client;

use crate::limits;
use crate::output::capped;

/// What both tools declare: what comes back was written by somebody else, and what is asked for leaves the house (I1, I2).
fn outgoing(definition: ToolDefinition, category: Category, level: Level, effect: Effect) -> ToolSpec {
    let checks = Checks { urls: vec![Arc::from("url")], single_line: vec![Arc::from("headers")], ..Checks::default() };
    ToolSpec {
        toolset: Arc::from("web"),
        category,
        level,
        effect,
        undoable: false,
        recovery: if effect == Effect::Read { Recovery::Pure } else { Recovery::AskHuman },
        egress: true,
        labels: Labels::UNTRUSTED,
        per_minute: None,
        timeout: limits::NET_TIMEOUT,
        output_cap: adjutant_core::limits::OUTPUT_BYTES,
        checks: Arc::new(checks),
        ..ToolSpec::undeclared(definition)
    }
}

/// An address as a person is shown it: the one that will be called, and how it was written where that is different (A3, U1).
fn previewed(written: &str) -> String {
    match Url::parse(written) {
        Ok(url) if url.as_str() == written => written.to_owned(),
        Ok(url) => format!("{url} (written as {written})"),
        // It will be refused, whatever anybody says to it; until then it plays no tricks on whoever reads it.
        Err(_) => written.chars().flat_map(char::escape_debug).collect(),
    }
}

/// An answer as the model reads it: where it came from, what it is, and its text.
fn shown(spec: &ToolSpec, answer: &Answer) -> ToolOutcome {
    let kind = answer.content_type.as_deref().unwrap_or("no content type");
    let mut text = format!("{} {} ({kind})\n", answer.status, answer.url);
    if let Some(location) = &answer.location {
        text.push_str(&format!("It points to {location}; that was not followed.\n"));
    }
    text.push('\n');
    text.push_str(&page::text(kind, &answer.body));
    if answer.cut {
        text.push_str(&format!("\n… only the first {} bytes were read", answer.body.len()));
    }
    ToolOutcome::output(capped(text, spec.output_cap))
}

/// A request that was not answered, in words for the model. Whether something was sent decides what may follow.
fn unanswered(spec: &ToolSpec, error: &NetError) -> ToolOutcome {
    match error {
        NetError::Denied(_) | NetError::Malformed(_) => ToolOutcome::failed(format!("{error} Nothing was fetched.")),
        NetError::Unreachable(_) => {
            ToolOutcome::Failed { message: format!("{error} Nothing was sent."), retriable: true }
        }
        NetError::Broken(_) if spec.effect == Effect::Read => {
            ToolOutcome::Failed { message: format!("{error} Nothing was fetched."), retriable: true }
        }
        NetError::Broken(_) => {
            ToolOutcome::InDoubt { message: format!("{error} Whether the request was carried out is not known.") }
        }
    }
}
