//! `fetch_web_page`: reads a page.

use adjutant_core::guard::host::{Method, Url};
use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{Category, Effect, Level, Prepared, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{NetError, Request, outgoing, previewed, shown, unanswered};
use crate::arguments::{definition, parse, permitted};
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The address, beginning with https://.
    #[schemars(length(min = 1, max = 8192))]
    url: String,
}

/// Reads a page.
pub(crate) struct FetchWebPage(ToolSpec);

impl FetchWebPage {
    pub(crate) fn new() -> Self {
        let about = "Read a page of the web as text. Only hosts that you were given can be reached.";
        let definition = definition::<Arguments>("fetch_web_page", about);
        Self(outgoing(definition, Category::NetworkRead, Level::Read, Effect::Read))
    }
}

#[async_trait]
impl Tool for FetchWebPage {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"url": "https://docs.example.org/guide"}))
    }

    async fn prepare(&self, arguments: &Value, _world: &World) -> Result<Prepared, ToolOutcome> {
        let Arguments { url } = parse(&self.0, arguments)?;
        Ok(Prepared { summary: format!("GET {}", previewed(&url)), ..Prepared::default() })
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        let arguments = permitted(&self.0, &permit).and_then(|arguments| parse(&self.0, arguments));
        let Arguments { url } = match arguments {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        let url = Url::parse(&url).map_err(NetError::from);
        let asked = match url {
            Ok(url) => {
                let request = Request { method: Method::Get, url, headers: Vec::new(), body: None };
                world.connector.send(&world.outside.hosts, request).await
            }
            Err(refused) => Err(refused),
        };
        asked.map_or_else(|error| unanswered(&self.0, &error), |answer| shown(&self.0, &answer))
    }
}
