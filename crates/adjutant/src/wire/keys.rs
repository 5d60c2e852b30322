//! Keys of providers: what the server answers, and what the command line reads from it. A value is in neither.

use adjutant_core::time::Time;
use adjutant_engine::store::row::ProviderKeyRow;
use adjutant_engine::{KeyTest, UsageLine};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A key, without its value.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct KeyLine {
    pub(crate) id: String,
    pub(crate) workspace_id: String,
    /// `workspace`, `person` or `agent`.
    pub(crate) owner: String,
    /// The id of the workspace, person or agent.
    pub(crate) owner_id: String,
    pub(crate) provider: String,
    pub(crate) name: String,
    /// The last four characters.
    pub(crate) hint: String,
    /// The hosts it may go to.
    pub(crate) hosts: Vec<String>,
    pub(crate) created_by: String,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Time,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) rotated_at: Option<Time>,
    /// Model calls that were made with it.
    pub(crate) calls: u64,
    /// What they cost, as far as it is known.
    pub(crate) cost_microusd: u64,
}

/// Keys.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct KeyList {
    pub(crate) data: Vec<KeyLine>,
}

/// A key for clients, with what was used of it.
pub(crate) fn key(row: ProviderKeyRow, usage: &[UsageLine]) -> KeyLine {
    let used = usage.iter().find(|line| line.group == row.id.to_string());
    KeyLine {
        id: row.id.to_string(),
        workspace_id: row.workspace.to_string(),
        owner: row.kind,
        owner_id: row.subject,
        provider: row.provider,
        name: row.name,
        hint: row.hint,
        hosts: row.hosts,
        created_by: row.created_by.to_string(),
        created_at: row.created_at,
        rotated_at: row.rotated_at,
        calls: used.map_or(0, |line| line.calls),
        cost_microusd: used.map_or(0, |line| line.cost.0),
    }
}

/// What became of a test of a key.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct KeyTested {
    /// Whether the provider let it in.
    pub(crate) ok: bool,
    /// The model that was asked.
    pub(crate) model: String,
    /// What kind of failure it was: `unauthorized`, `network`, …
    pub(crate) code: Option<String>,
    /// What happened.
    pub(crate) message: Option<String>,
}

impl From<KeyTest> for KeyTested {
    fn from(test: KeyTest) -> Self {
        Self { ok: test.ok, model: test.model, code: test.class, message: test.message }
    }
}
