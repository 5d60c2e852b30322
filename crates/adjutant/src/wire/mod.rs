//! The public JSON: what clients and scripts read. The only promise about shapes besides the stored events; both are pinned
//! by snapshots.

mod csv;
mod embeddings;
mod event;
mod failed;
mod item;
mod keys;
mod models;
mod moment;
mod money;
mod reach;
mod row;
mod texts;

pub(crate) use csv::{AUDIT_COLUMNS, audit_row};
pub(crate) use embeddings::{EmbeddingList, EmbeddingsAsk, EmbeddingsInput, EmbeddingsPurpose, embeddings};
pub(crate) use event::{WireEvent, actor, event};
pub(crate) use failed::meaning;
pub(crate) use item::{Item, Secrets, approval, card, events_of, hide, hide_arguments, item};
pub(crate) use keys::{KeyLine, KeyList, KeyTested, key};
pub(crate) use models::{Explained, ModelLine, ModelList, ProviderLine, RankedModel, explained, models};
pub(crate) use moment::Moment;
pub(crate) use money::{
    BudgetLine, BudgetList, Estimate, Limits, RepricedSum, SpentOf, UsageList, budget, usage, usage_csv,
};
pub(crate) use reach::{can, reach};
pub(crate) use row::{RunLine, TokenSum, agent, cost, run, written};
pub(crate) use texts::Texts;
