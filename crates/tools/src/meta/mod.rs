//! Toolset `meta`: tools about tools, for agents that have many. A model then reads three definitions instead of all of
//! them. They show what the agent was granted and nothing else.

mod get_tool_help;
mod search_tools;
mod use_tool;

use std::sync::Arc;

use adjutant_core::label::Labels;
use adjutant_core::tool::{Category, Effect, Level, Recovery, ToolDefinition, ToolSpec};

pub(crate) use get_tool_help::GetToolHelp;
pub(crate) use search_tools::SearchTools;
pub(crate) use use_tool::UseTool;

/// The name of the toolset.
const TOOLSET: &str = "meta";

/// What every tool of this set declares: it looks at declarations, which hold nobody's data.
fn looking(definition: ToolDefinition) -> ToolSpec {
    ToolSpec {
        toolset: Arc::from(TOOLSET),
        category: Category::Memory,
        level: Level::None,
        effect: Effect::Read,
        undoable: true,
        recovery: Recovery::Pure,
        egress: false,
        labels: Labels::NONE,
        ..ToolSpec::undeclared(definition)
    }
}

/// The first sentence of a description.
fn brief(description: &str) -> &str {
    description.split_inclusive(". ").next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests;
