//! What can be used by whom: the operator's models, and those that keys open which people brought.

use std::collections::BTreeMap;

use adjutant_core::id::{AgentId, UserId, WorkspaceId};
use adjutant_models::{BroughtKey, ModelSource, Offer, WithKeys};

use super::keys::is_usable;
use crate::current::allowed_providers;
use crate::engine::Engine;
use crate::error::EngineError;

impl Engine {
    /// The key that a provider is asked with which models it has, where the operator has none for it: that of who asks, else the
    /// workspace's, in the first of these workspaces that has one and allows the provider.
    ///
    /// # Errors
    /// Those of the store, and [`EngineError::Model`] when the key cannot be used.
    pub async fn key_to_list(
        &self,
        workspaces: impl IntoIterator<Item = WorkspaceId> + Send,
        person: UserId,
        provider: &str,
    ) -> Result<Option<BroughtKey>, EngineError> {
        let workspaces: Vec<_> = workspaces.into_iter().collect();
        for workspace in workspaces {
            let tenant = self.store().workspace(workspace).await?;
            let tenant = tenant.ok_or_else(|| EngineError::not_found("workspace", workspace))?;
            if allowed_providers(&tenant)?.admits(provider)
                && let Some(id) = self.key_for(workspace, None, person, &[], provider).await?
            {
                return self.opened(workspace, id).await.map(Some);
            }
        }
        Ok(None)
    }

    /// The providers that stored keys make usable for a run, or outside of runs.
    async fn keyed_providers(
        &self,
        workspace: WorkspaceId,
        agent: Option<AgentId>,
        person: UserId,
    ) -> Result<Vec<String>, EngineError> {
        let rows = self.store().provider_keys(workspace).await?;
        let usable = rows.into_iter().filter(|row| is_usable(row, agent, person));
        Ok(usable.map(|row| row.provider).collect())
    }

    /// The models that somebody can use in these workspaces: the operator's, and those that keys of the workspaces and their
    /// own open. Keys of single agents are for those agents alone.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn offers(
        &self,
        workspaces: impl IntoIterator<Item = WorkspaceId> + Send,
        person: UserId,
    ) -> Result<Vec<Offer>, EngineError> {
        let workspaces: Vec<_> = workspaces.into_iter().collect();
        let mut found: BTreeMap<String, Offer> = BTreeMap::new();
        for workspace in workspaces {
            let source = self.source(workspace, None, person).await?;
            found.extend(source.offers().into_iter().map(|offer| (offer.name.clone(), offer)));
        }
        Ok(found.into_values().collect())
    }

    /// The models that somebody can use in a workspace, be it by an agent: the operator's and those that keys open, of the
    /// providers that the workspace allows.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn source(
        &self,
        workspace: WorkspaceId,
        agent: Option<AgentId>,
        person: UserId,
    ) -> Result<WithKeys<'_>, EngineError> {
        let tenant = self.store().workspace(workspace).await?;
        let tenant = tenant.ok_or_else(|| EngineError::not_found("workspace", workspace))?;
        let providers = self.keyed_providers(workspace, agent, person).await?;
        Ok(WithKeys { source: self.models(), providers, allowed: allowed_providers(&tenant)? })
    }
}
