//! What whoever started a run asked for beyond what its agent said then: a run that follows it takes that over, beside what the
//! agent says by now.

use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::money::MicroUsd;
use adjutant_core::options::ToolChoice;
use adjutant_core::routing::DEFAULT;
use adjutant_core::run::event::RunStarted;
use adjutant_models::ModelSource;

use crate::engine::Engine;
use crate::error::EngineError;

/// What somebody asked for.
pub(super) struct Wishes {
    /// Another model.
    pub(super) model: Option<String>,
    /// Less money.
    pub(super) max_cost: Option<MicroUsd>,
    /// Another number of turns.
    pub(super) turns: Option<u32>,
    /// Another seed.
    pub(super) seed: Option<u32>,
    /// Another choice of a tool.
    pub(super) tool_choice: Option<ToolChoice>,
}

impl Engine {
    /// The wishes that a run was started with, beside the model that its chat says.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn wishes(&self, start: &RunStarted, of_chat: Option<&str>) -> Result<Wishes, EngineError> {
        let row = self.store().agent_version(start.workspace, start.agent, start.agent_version).await?;
        let then: Option<AgentConfig> = row.and_then(|row| serde_json::from_str(&row.spec).ok());
        let Some(then) = then else {
            // Nobody can say what the agent allowed. Whoever meant less must not get more.
            return Ok(Wishes {
                model: None,
                max_cost: start.budget,
                turns: Some(start.limits.turns),
                seed: None,
                tool_choice: None,
            });
        };
        let options = &start.options;
        Ok(Wishes {
            model: self.chosen(start, &then, of_chat).await?,
            max_cost: start.budget.filter(|limit| Some(*limit) != then.budget.run()),
            turns: Some(start.limits.turns).filter(|turns| *turns != then.max_turns),
            seed: options.seed.filter(|_| options.seed != then.model_options.seed),
            tool_choice: options.tool_choice.clone().filter(|_| options.tool_choice != then.model_options.tool_choice),
        })
    }

    /// The model of a run, if it was neither the agent's nor the chat's, and can still be asked.
    async fn chosen(
        &self,
        start: &RunStarted,
        then: &AgentConfig,
        of_chat: Option<&str>,
    ) -> Result<Option<String>, EngineError> {
        let own = self.default_here(start.workspace, start.initiator).await?;
        let default = own.as_deref().unwrap_or_else(|| self.default_model());
        let is = |name: &str| {
            let name = if name == DEFAULT { default } else { name };
            if name.contains('/') { start.model == name } else { start.model.rsplit('/').next() == Some(name) }
        };
        let said = [Some(then.model.as_str()), then.budget.cheaper_model.as_deref(), of_chat];
        if start.strategy.is_some() || !start.fallbacks.is_empty() || said.into_iter().flatten().any(is) {
            return Ok(None);
        }
        let source = self.source(start.workspace, Some(start.agent), start.initiator).await?;
        Ok(source.reachable(&start.model).is_ok().then(|| start.model.clone()))
    }
}
