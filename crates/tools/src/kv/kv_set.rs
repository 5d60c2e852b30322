//! `kv_set`: puts a value under a key.

use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{Done, Effect, Prepared, Resource, ResourceAction, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{change, changing, check_key, failed, is_due};
use crate::arguments::{definition, parse, permitted, refuse};
use crate::limits::KV_VALUE_BYTES;
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The key.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"))]
    key: String,
    /// The text to keep, at most 65536 bytes.
    #[schemars(length(max = 65536))]
    value: String,
}

/// Writes a key.
pub(crate) struct KvSet(ToolSpec);

impl KvSet {
    pub(crate) fn new() -> Self {
        let about = "Keep a small text under a key. It stays after this run, and only you can read it.";
        Self(changing(definition::<Arguments>("kv_set", about), Effect::Write))
    }

    fn checked(&self, arguments: &Value) -> Result<Arguments, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, arguments)?;
        check_key(&self.0, &arguments.key)?;
        if arguments.value.len() > KV_VALUE_BYTES {
            return Err(refuse(&self.0, &format!("value has more than {KV_VALUE_BYTES} bytes")));
        }
        Ok(arguments)
    }
}

#[async_trait]
impl Tool for KvSet {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"key": "last_report", "value": "2026-11-18"}))
    }

    async fn prepare(&self, arguments: &Value, world: &World) -> Result<Prepared, ToolOutcome> {
        let Arguments { key, value } = self.checked(arguments)?;
        let summary = format!("kv_set {key} ({} bytes)", value.len());
        change(world, summary, key, Some(value)).await
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        let Arguments { key, value } = match permitted(&self.0, &permit).and_then(|arguments| self.checked(arguments)) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        match is_due(&permit, world, &key).await {
            Err(outcome) => return outcome,
            Ok(false) => {}
            Ok(true) => {
                if let Err(error) = world.kv.set(&key, &value).await {
                    return failed(&error);
                }
            }
        }
        let output = format!("Kept {} bytes under `{key}`.", value.len());
        let resource = Resource {
            kind: "kv".to_owned(),
            path: key,
            action: ResourceAction::Changed,
            undoable: false,
            before: None,
            after: Some(adjutant_core::content::Hash::of(value.as_bytes())),
        };
        ToolOutcome::Done(Done { output, resources: vec![resource], ..Done::default() })
    }
}
