//! `use_tool`: calls a tool by its name. Only a declaration: the call is recorded, judged and run as the tool it names, and
//! what cannot be read as such a call is refused by the guard.

use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::looking;
use crate::arguments::definition;
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is the schema the model sees; the guard takes the call apart")]
struct Arguments {
    /// The name of the tool.
    #[schemars(length(min = 1, max = 128))]
    tool_name: String,
    /// The arguments of that tool.
    arguments: Map<String, Value>,
}

/// Stands for the tool it names.
pub(crate) struct UseTool(ToolSpec);

impl UseTool {
    pub(crate) fn new() -> Self {
        let about = "Call a tool by its name, with the arguments that get_tool_help describes.";
        Self(looking(definition::<Arguments>("use_tool", about)))
    }
}

#[async_trait]
impl Tool for UseTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"tool_name": "read_file", "arguments": {"path": "/notes/today.md"}}))
    }

    async fn run(&self, _permit: Permit, _world: &World) -> ToolOutcome {
        ToolOutcome::failed("use_tool names one tool and its arguments. Nothing was done.")
    }
}
