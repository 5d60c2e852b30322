//! `kv_delete`: removes a key.

use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{Done, Effect, Prepared, Resource, ResourceAction, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{change, changing, check_key, failed, is_due};
use crate::arguments::{definition, parse, permitted};
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The key.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$"))]
    key: String,
}

/// Removes a key.
pub(crate) struct KvDelete(ToolSpec);

impl KvDelete {
    pub(crate) fn new() -> Self {
        let about = "Remove a key and its value. Removing a key that is not there is fine.";
        Self(changing(definition::<Arguments>("kv_delete", about), Effect::Delete))
    }

    fn checked(&self, arguments: &Value) -> Result<Arguments, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, arguments)?;
        check_key(&self.0, &arguments.key)?;
        Ok(arguments)
    }
}

#[async_trait]
impl Tool for KvDelete {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"key": "last_report"}))
    }

    async fn prepare(&self, arguments: &Value, world: &World) -> Result<Prepared, ToolOutcome> {
        let Arguments { key } = self.checked(arguments)?;
        change(world, format!("kv_delete {key}"), key, None).await
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        let Arguments { key } = match permitted(&self.0, &permit).and_then(|arguments| self.checked(arguments)) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        match is_due(&permit, world, &key).await {
            Err(outcome) => return outcome,
            Ok(false) => {}
            Ok(true) => {
                if let Err(error) = world.kv.delete(&key).await {
                    return failed(&error);
                }
            }
        }
        // The same words whether it was there or not: a second attempt must answer what the first would have.
        let output = format!("There is nothing under `{key}` now.");
        let resource = Resource {
            kind: "kv".to_owned(),
            path: key,
            action: ResourceAction::Deleted,
            undoable: false,
            before: None,
            after: None,
        };
        ToolOutcome::Done(Done { output, resources: vec![resource], ..Done::default() })
    }
}
