//! What models cost, as far as anybody knows: by the name that was asked for, or by those that have answered to it.

use adjutant_core::id::{KeyId, WorkspaceId};
use adjutant_core::money::TokenUsage;
use adjutant_models::catalog::{Cost, ModelFacts};

use crate::engine::Engine;
use crate::error::EngineError;

impl Engine {
    /// What is known about the prices of a model that is called with this key; where that is nothing, about all that have answered
    /// in its name. A deployment may have any name, and says only in its answers what it is; a name that stands for several
    /// models may be answered by the dearest of them. If the price of one of them is not known, none is.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn priced(
        &self,
        workspace: WorkspaceId,
        model: &str,
        key: Option<KeyId>,
    ) -> Result<Vec<ModelFacts>, EngineError> {
        if let Some(known) = self.price_list(model, key) {
            return Ok(vec![known]);
        }
        let served = self.store().served_as(workspace, model).await?;
        let known: Option<Vec<_>> = served.iter().map(|served| self.price_list(served, key)).collect();
        Ok(known.unwrap_or_default())
    }

    /// What is known about a model whose price is known. What costs nothing as long as nobody shows a key has no known price for
    /// those who do.
    fn price_list(&self, model: &str, key: Option<KeyId>) -> Option<ModelFacts> {
        let facts = self.models().facts(model).filter(|facts| facts.prices.is_known());
        facts.filter(|facts| key.is_none() || !facts.is_free_without_key())
    }

    /// What a use costs: by the price of the model that was asked, or else of the one that answered.
    pub(crate) fn cost_of(&self, asked: &str, served: &str, key: Option<KeyId>, usage: &TokenUsage) -> Option<Cost> {
        let of = |model: &str| self.price_list(model, key).and_then(|facts| facts.cost(usage));
        of(asked).or_else(|| of(served))
    }
}

/// The most that so many tokens cost at these prices, whichever applies; none where there are none.
pub(crate) fn dearest(known: &[ModelFacts], input: u64, output: u64) -> Option<Cost> {
    let bound = |facts: &ModelFacts| Some((facts.prices.bound(input, output)?, facts.version.clone()));
    let bounds: Option<Vec<_>> = known.iter().map(bound).collect();
    bounds?.into_iter().max().map(|(amount, version)| Cost { amount, version })
}
