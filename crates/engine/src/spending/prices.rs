//! What models cost, as far as anybody knows: by the name that was asked for, or by those that have answered to it.

use adjutant_core::id::{KeyId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_models::catalog::{Cost, ModelFacts};

use crate::engine::Engine;
use crate::error::EngineError;

/// A call that was answered, as far as its price is concerned.
pub(crate) struct Call<'a> {
    /// The model that was asked.
    pub(crate) asked: &'a str,
    /// The model that answered.
    pub(crate) served: &'a str,
    /// The key it was made with.
    pub(crate) key: Option<KeyId>,
    /// What was put aside for it.
    pub(crate) reserved: Option<Cost>,
    /// What the provider says that it took.
    pub(crate) charged: Option<MicroUsd>,
    /// Tokens it can have read and written at the most.
    pub(crate) most: (u64, u64),
}

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

    /// What a call that was answered counts as. Where its provider counted no tokens, that is all that was put aside for it, or
    /// else the most it can have cost by the price of the model that answered: an estimate of ours may be too low.
    pub(crate) fn bill(&self, call: Call<'_>, counted: Option<&TokenUsage>) -> Option<Cost> {
        let Call { asked, served, key, reserved, charged, most: (input, output) } = call;
        let ours = match counted {
            Some(usage) => self.cost_of(asked, served, key, usage),
            None => reserved.or_else(|| dearest(&[self.price_list(served, key)?], input, output)),
        };
        dearer(ours, charged)
    }

    /// What a use costs: by the price of the model that was asked, or else of the one that answered.
    pub(crate) fn cost_of(&self, asked: &str, served: &str, key: Option<KeyId>, usage: &TokenUsage) -> Option<Cost> {
        let of = |model: &str| self.price_list(model, key).and_then(|facts| facts.cost(usage));
        of(asked).or_else(|| of(served))
    }
}

/// The version of a price that the provider said itself.
const REPORTED: &str = "reported";

/// What counts: what we reckon, or what the provider says that it took if that is more or all there is. It may take less from us
/// because it takes the rest elsewhere, where somebody brought a key of another's.
fn dearer(ours: Option<Cost>, charged: Option<MicroUsd>) -> Option<Cost> {
    let said = charged.filter(|charged| ours.as_ref().is_none_or(|ours| *charged > ours.amount));
    said.map(|amount| Cost { amount, version: REPORTED.to_owned() }).or(ours)
}

/// The most that so many tokens cost at these prices, whichever applies; none where there are none.
pub(crate) fn dearest(known: &[ModelFacts], input: u64, output: u64) -> Option<Cost> {
    let bound = |facts: &ModelFacts| Some((facts.prices.bound(input, output)?, facts.version.clone()));
    let bounds: Option<Vec<_>> = known.iter().map(bound).collect();
    bounds?.into_iter().max().map(|(amount, version)| Cost { amount, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_took_counts_where_it_is_more_than_we_reckon() {
        let ours = |amount: u64| Some(Cost { amount: MicroUsd(amount), version: "2026-11-18".to_owned() });
        let said = |amount: u64| Some(Cost { amount: MicroUsd(amount), version: "reported".to_owned() });
        assert_eq!(dearer(ours(100), Some(MicroUsd(101))), said(101));
        assert_eq!(dearer(ours(100), Some(MicroUsd(100))), ours(100));
        assert_eq!(dearer(ours(100), Some(MicroUsd(0))), ours(100), "the rest may be taken elsewhere");
        assert_eq!(dearer(None, Some(MicroUsd(7))), said(7), "it is all there is");
        assert_eq!((dearer(ours(100), None), dearer(None, None)), (ours(100), None));
    }
}
