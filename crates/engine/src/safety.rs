//! How what keeps runs safe stands here: at an instance, and for one run with its model.

use adjutant_core::id::{KeyId, UserId, WorkspaceId};
use adjutant_core::safety::{Requirements, Safety, Standing, Standings, missing};

use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::spending::Unpriced;

impl Engine {
    /// How it stands, whatever is run.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn safety(&self) -> Result<Standings, EngineError> {
        let (kept, connector) = (self.keeping().await?, self.connector());
        let encryption =
            if kept.sealed { Standing::Enforced } else { Standing::off("encrypt = false: stored as plain text") };
        let durability =
            if kept.durable { Standing::Enforced } else { Standing::degraded("a power cut may take the last commits") };
        let egress = match connector.opened() {
            [] => Standing::Enforced,
            opened => {
                let opened: Vec<String> = opened.iter().map(ToString::to_string).collect();
                Standing::degraded(&format!(
                    "agents may be let into networks that are not public: {}",
                    opened.join(", ")
                ))
            }
        };
        let price = match self.unpriced() {
            Unpriced::Ask => Standing::Enforced,
            Unpriced::Allow => Standing::degraded("models without a known price are asked: no budget holds for those"),
        };
        Ok(Standings::from([
            (Safety::Encryption, encryption),
            (Safety::Durability, durability),
            (Safety::AuditChain, Standing::Enforced),
            (Safety::EgressFilter, egress),
            (Safety::PriceKnown, price),
            (Safety::Sandbox, Standing::off("no tool runs code or commands in this version")),
        ]))
    }

    /// How it stands for a run of an agent, started by a person, perhaps with a key that is named for it, that asks these models.
    pub(crate) async fn safety_of(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        person: UserId,
        key: Option<KeyId>,
        models: &[&str],
    ) -> Result<Standings, EngineError> {
        let mut standings = self.safety().await?;
        standings.insert(Safety::PriceKnown, Standing::Enforced);
        let named = [key, agent.config.provider_key_id];
        for model in models {
            let key = match self.key_for(workspace, Some(agent.id), person, &named, model).await {
                // Without the key that is meant for it a model is not asked at all.
                Err(EngineError::Model(_)) => continue,
                other => other?,
            };
            if self.priced(workspace, model, key).await?.is_empty() {
                let reason = format!("the price of `{model}` is not known");
                standings.insert(Safety::PriceKnown, Standing::Off { reason });
            }
        }
        Ok(standings)
    }
}

/// Refuses a run that would have less than its agent requires.
pub(crate) fn refuse_weaker(agent: &str, required: &Requirements, standings: &Standings) -> Result<(), EngineError> {
    let Some((safety, standing)) = missing(required, standings) else { return Ok(()) };
    let why = match standing {
        Some(Standing::Degraded { reason } | Standing::Off { reason }) => reason.as_str(),
        Some(Standing::Enforced) | None => "nobody knows how it stands",
    };
    let word = safety.word();
    Err(EngineError::Invalid(format!("`{agent}` requires `{word}`, which is not enforced here: {why}")))
}
