//! What a run of an agent is told before it is asked anything: its instructions and its tools.

use std::sync::Arc;

use adjutant_core::content::Content;
use adjutant_core::guard::judge::is_shown;
use adjutant_core::guard::meta;
use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::id::WorkspaceId;
use adjutant_core::tool::{ToolDefinition, ToolDefinitions};

use crate::current::ShownTools;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::prompt;

/// What a run of an agent would be told.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectivePrompt {
    /// The instructions, with what was added to them.
    pub system_prompt: String,
    /// The tools it would see.
    pub tools: Vec<ToolDefinition>,
}

impl Engine {
    /// What a run of the agent would be told now: its instructions, what was added to them, and its tools.
    ///
    /// # Errors
    /// When the workspace cannot be read.
    pub async fn effective_prompt(
        &self,
        workspace: WorkspaceId,
        config: &AgentConfig,
    ) -> Result<EffectivePrompt, EngineError> {
        let zone = self.store().workspace(workspace).await?.map_or_else(|| "UTC".to_owned(), |row| row.time_zone);
        let tools = self.shown_tools(config)?.definitions.to_vec();
        let system_prompt = prompt::compose(config, &config.system_prompt, &tools, self.env().now(), &zone);
        Ok(EffectivePrompt { system_prompt, tools })
    }

    /// The tools that an agent's model is shown.
    pub(crate) fn shown_tools(&self, config: &AgentConfig) -> Result<ShownTools, EngineError> {
        let finds = config.grants_tool(meta::USE_TOOL, "meta");
        let definitions: ToolDefinitions = self
            .tools()
            .iter()
            .map(|tool| tool.spec())
            .filter(|spec| is_shown(config, spec))
            // An agent with `use_tool` reads a few definitions and finds the others, unless it was given them by name.
            .filter(|spec| !finds || *spec.toolset == *"meta" || config.tools.contains(spec.name()))
            .map(|spec| spec.definition.clone())
            .collect();
        let text = serde_json::to_string(&definitions).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        let (definitions, text) = (Arc::new(definitions), Content::new(text));
        Ok(ShownTools { definitions, text })
    }
}
