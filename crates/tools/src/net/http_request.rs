//! `http_request`: any request, also one that changes something at the other end.

use adjutant_core::guard::host::{Method, Url};
use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{Category, Effect, Level, Prepared, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{NetError, Request, outgoing, previewed, shown, unanswered};
use crate::arguments::{definition, parse, permitted, refuse};
use crate::tool::Tool;
use crate::world::World;

/// The header by which a server that knows it does once what is asked twice: also what was in doubt and is sent again.
const KEY: &str = "Idempotency-Key";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    #[schemars(length(min = 1, max = 8))]
    method: String,
    /// The address, beginning with https://.
    #[schemars(length(min = 1, max = 8192))]
    url: String,
    /// Header lines, such as `Accept: application/json`.
    #[serde(default)]
    #[schemars(length(max = 32))]
    headers: Vec<String>,
    /// What to send, such as JSON; give its `Content-Type` as a header.
    #[serde(default)]
    #[schemars(with = "String")]
    body: Option<String>,
}

/// Sends a request.
pub(crate) struct HttpRequest(ToolSpec);

impl HttpRequest {
    pub(crate) fn new() -> Self {
        let about = "Send a request to a server and read its answer. Only hosts that you were given can be reached.";
        let definition = definition::<Arguments>("http_request", about);
        Self(outgoing(definition, Category::NetworkWrite, Level::Write, Effect::Send))
    }

    fn checked(&self, arguments: &Value) -> Result<(Method, Arguments), ToolOutcome> {
        let arguments: Arguments = parse(&self.0, arguments)?;
        let method = Method::parse(&arguments.method);
        let method = method.ok_or_else(|| refuse(&self.0, "method is none of GET, HEAD, POST, PUT, PATCH, DELETE"))?;
        if method.is_reading() && arguments.body.is_some() {
            return Err(refuse(&self.0, "GET and HEAD carry no body"));
        }
        Ok((method, arguments))
    }
}

#[async_trait]
impl Tool for HttpRequest {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(
            json!({"method": "GET", "url": "https://api.example.org/v1/items", "headers": ["Accept: application/json"]}),
        )
    }

    async fn prepare(&self, arguments: &Value, _world: &World) -> Result<Prepared, ToolOutcome> {
        let (method, arguments) = self.checked(arguments)?;
        let carried = arguments.body.map(|body| format!(" with {} bytes", body.len())).unwrap_or_default();
        Ok(Prepared { summary: format!("{method} {}{carried}", previewed(&arguments.url)), ..Prepared::default() })
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        let arguments = permitted(&self.0, &permit).and_then(|arguments| self.checked(arguments));
        let (method, Arguments { url, mut headers, body, .. }) = match arguments {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        let named = |line: &String| line.split(':').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(KEY));
        if !method.is_reading() && !headers.iter().any(named) {
            headers.push(format!("{KEY}: {}", permit.key()));
        }
        let asked = match Url::parse(&url).map_err(NetError::from) {
            Ok(url) => world.connector.send(&world.outside.hosts, Request { method, url, headers, body }).await,
            Err(refused) => Err(refused),
        };
        asked.map_or_else(|error| unanswered(&self.0, &error), |answer| shown(&self.0, &answer))
    }
}
