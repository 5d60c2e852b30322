//! `get_tool_help`: what one tool of the agent does and takes.

use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::looking;
use crate::arguments::{definition, help, parse, permitted};
use crate::output::capped;
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The name of the tool, as search_tools gives it.
    #[schemars(length(min = 1, max = 128))]
    tool_name: String,
}

/// Describes a tool.
pub(crate) struct GetToolHelp(ToolSpec);

impl GetToolHelp {
    pub(crate) fn new() -> Self {
        let about = "Describe a tool you may use: what it does, its parameters, its limits.";
        Self(looking(definition::<Arguments>("get_tool_help", about)))
    }

    fn describe(&self, permit: &Permit, world: &World) -> Result<String, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, permitted(&self.0, permit)?)?;
        // One that is not granted and one that does not exist look alike (guard T2).
        let known = world.catalog.specs().find(|spec| spec.name() == arguments.tool_name);
        let spec = known.ok_or_else(|| {
            ToolOutcome::failed("There is no such tool for this agent. search_tools finds those there are.")
        })?;
        let mut text = format!("{}\n{}", spec.definition.description, help(spec));
        if let Some(calls) = spec.per_minute {
            text.push_str(&format!("\nAt most {calls} calls a minute."));
        }
        text.push_str(&format!("\nSchema: {}", spec.definition.schema));
        Ok(capped(text, self.0.output_cap))
    }
}

#[async_trait]
impl Tool for GetToolHelp {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"tool_name": "read_file"}))
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        self.describe(&permit, world).map_or_else(|outcome| outcome, ToolOutcome::output)
    }
}
