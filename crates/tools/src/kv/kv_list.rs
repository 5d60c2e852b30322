//! `kv_list`: the keys that begin with a prefix.

use adjutant_core::guard::permit::Permit;
use adjutant_core::label::Labels;
use adjutant_core::tool::{Done, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{check_key, failed, reading};
use crate::arguments::{definition, parse, permitted};
use crate::limits::KV_LIST;
use crate::output::capped;
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Only keys that begin with this text; without it, all keys.
    #[serde(default)]
    #[schemars(regex(pattern = "^([A-Za-z0-9][A-Za-z0-9_.:-]{0,127})?$"))]
    prefix: String,
}

/// Lists keys.
pub(crate) struct KvList(ToolSpec);

impl KvList {
    pub(crate) fn new() -> Self {
        Self(reading(definition::<Arguments>("kv_list", "List the keys you stored with kv_set, one per line.")))
    }

    async fn list(&self, permit: &Permit, world: &World) -> Result<Done, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, permitted(&self.0, permit)?)?;
        if !arguments.prefix.is_empty() {
            check_key(&self.0, &arguments.prefix)?;
        }
        let mut found = world.kv.list(&arguments.prefix, KV_LIST + 1).await.map_err(|error| failed(&error))?;
        if found.is_empty() {
            return Ok(Done { output: "(no keys)".to_owned(), ..Done::default() });
        }
        let more = found.len() > KV_LIST;
        found.truncate(KV_LIST);
        // A name, too, was chosen by whoever wrote the value.
        let labels = found.iter().fold(Labels::NONE, |labels, (_, own)| labels.join(*own));
        let mut keys: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
        if more {
            keys.push(format!("… more than {KV_LIST} keys; a longer prefix shows fewer"));
        }
        Ok(Done { output: capped(keys.join("\n"), self.0.output_cap), labels, ..Done::default() })
    }
}

#[async_trait]
impl Tool for KvList {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"prefix": "report."}))
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        match self.list(&permit, world).await {
            Ok(done) => ToolOutcome::Done(done),
            Err(outcome) => outcome,
        }
    }
}
