//! Which models a run asks for: what is named for it, the cheaper one once much was spent, what its chat says, or its agent.

use adjutant_core::budget::{Owner, Period, micros};
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::routing::{DEFAULT, Wanted};
use adjutant_core::time::Time;
use adjutant_models::lineup;
use adjutant_models::router::Needs;

use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;

/// The models that are named beside the agent's own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Named<'a> {
    /// For this run.
    pub(crate) run: Option<&'a str>,
    /// For all runs of its chat.
    pub(crate) chat: Option<&'a str>,
}

impl Engine {
    /// The models that a run asks for. Whoever names one for the run knows what it costs; what a chat says was said before much
    /// was spent.
    pub(crate) async fn wanted(
        &self,
        agent: &CurrentAgent,
        named: Named<'_>,
        now: Time,
        zone: &str,
    ) -> Result<Wanted, EngineError> {
        let config = &agent.config;
        let invalid = |(field, why): (&str, &str)| EngineError::Invalid(format!("{field}: {why}"));
        if let Some(name) = named.run {
            return Wanted::of(Some(name.into()), None, None).map_err(invalid);
        }
        if let (Some(soft), Some(cheaper)) = (config.budget.soft_usd, &config.budget.cheaper_model) {
            let purse = Owner::Agent(agent.id).purse(Period::Month, &Period::Month.name(now, zone));
            if self.store().purse(&purse).await?.spent >= micros(soft) {
                return Ok(Wanted { model: cheaper.clone(), fallbacks: Vec::new(), strategy: None });
            }
        }
        let (fallbacks, strategy) = (config.fallback_models.clone(), config.routing);
        match named.chat {
            Some(name) => Wanted::of(Some(name.into()), Some(fallbacks), strategy).map_err(invalid),
            None => Ok(Wanted { model: config.model.clone(), fallbacks, strategy }),
        }
    }

    /// The same, with the default of the person or else of the workspace in place of that of the instance, where there is one.
    pub(crate) async fn wanted_here(
        &self,
        workspace: WorkspaceId,
        person: UserId,
        wanted: Wanted,
    ) -> Result<Wanted, EngineError> {
        if wanted.model != DEFAULT {
            return Ok(wanted);
        }
        let Some(model) = self.default_here(workspace, person).await? else { return Ok(wanted) };
        let said = Wanted::of(Some(model.as_str().into()), Some(wanted.fallbacks), wanted.strategy);
        said.map_err(|(field, why)| EngineError::Invalid(format!("the default model: {field}: {why}")))
    }

    /// What `default` means for a person in a workspace, where it is not what the instance says. A person's own counts where it may
    /// be asked, by its whole name: they did not choose it for this workspace.
    pub(crate) async fn default_here(
        &self,
        workspace: WorkspaceId,
        person: UserId,
    ) -> Result<Option<String>, EngineError> {
        if let Some(own) = self.store().default_model(person).await? {
            let source = self.source(workspace, None, person).await?;
            let wanted = Wanted::of(Some(own.as_str().into()), None, None).ok();
            let found = wanted.and_then(|wanted| {
                let found = lineup(&source, &wanted, self.default_model(), &Needs::default()).ok()?;
                Some(if wanted.open().is_some() { own } else { found.model })
            });
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(self.store().workspace(workspace).await?.and_then(|row| row.default_model))
    }
}
