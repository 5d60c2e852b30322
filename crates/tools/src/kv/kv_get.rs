//! `kv_get`: the value under a key.

use adjutant_core::guard::permit::Permit;
use adjutant_core::label::Labelled;
use adjutant_core::tool::{Done, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{check_key, failed, keyed, reading};
use crate::arguments::{definition, parse, permitted};
use crate::output::capped;
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The key.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"))]
    key: String,
}

/// Reads a key.
pub(crate) struct KvGet(ToolSpec);

impl KvGet {
    pub(crate) fn new() -> Self {
        Self(keyed(reading(definition::<Arguments>("kv_get", "Get the value you stored under a key with kv_set."))))
    }

    async fn get(&self, permit: &Permit, world: &World) -> Result<Done, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, permitted(&self.0, permit)?)?;
        check_key(&self.0, &arguments.key)?;
        match world.kv.get(&arguments.key).await.map_err(|error| failed(&error))? {
            Some(Labelled { text, labels }) => {
                Ok(Done { output: capped(text, self.0.output_cap), labels, ..Done::default() })
            }
            None => Err(ToolOutcome::failed(format!("There is nothing under the key `{}`.", arguments.key))),
        }
    }
}

#[async_trait]
impl Tool for KvGet {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"key": "last_report"}))
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        match self.get(&permit, world).await {
            Ok(done) => ToolOutcome::Done(done),
            Err(outcome) => outcome,
        }
    }
}
