//! Who may decide an item: whoever started the run, the owner of the agent, or an admin; about money of others only an admin.

use std::collections::BTreeMap;

use adjutant_core::budget::RUN_PURSE;
use adjutant_core::id::{AgentId, ApprovalId};
use adjutant_core::run::event::ApprovalKind;
use adjutant_engine::store::row::ApprovalRow;
use adjutant_engine::{Right, Role};

use super::super::door::{Access, Signed};
use super::super::problem::Problem;
use super::super::server::Server;
use super::{PENDING, word_of};
use crate::wire;

/// Whether they may change an agent for everybody: its owner, or an admin.
pub(super) async fn rules_agent(server: &Server, access: Access, agent: AgentId) -> Result<bool, Problem> {
    if access.role == Role::Admin {
        return Ok(true);
    }
    let agent = server.engine.store().agent(access.workspace, agent).await?;
    Ok(agent.is_some_and(|agent| agent.owner == Some(access.user)))
}

/// Whether they may decide: whoever started the run, the owner of the agent, or an admin.
pub(super) async fn may_decide(server: &Server, access: Access, row: &ApprovalRow) -> Result<bool, Problem> {
    let run = server.engine.run_row(access.workspace, row.run).await?;
    Ok(run.initiator == access.user || rules_agent(server, access, row.agent).await?)
}

/// Those of a workspace's items that the caller may decide now. A decision is checked for itself; this says what to offer.
pub(super) async fn decidable(
    server: &Server,
    signed: &Signed,
    access: Access,
    rows: &[ApprovalRow],
) -> Result<Vec<ApprovalId>, Problem> {
    if signed.must(access, Role::Write, Right::Decide).is_err() {
        return Ok(Vec::new());
    }
    let mut ruled: BTreeMap<AgentId, bool> = BTreeMap::new();
    let mut mine = Vec::new();
    for row in rows.iter().filter(|row| row.status == PENDING) {
        let rules = match ruled.get(&row.agent) {
            Some(known) => *known,
            None => *ruled.entry(row.agent).or_insert(rules_agent(server, access, row.agent).await?),
        };
        let card = wire::card(row);
        let started = card.as_ref().is_some_and(|card| card.initiator == Some(access.user));
        // Money of others takes an admin.
        let purse = card.and_then(|card| card.ask).map(|ask| ask.purse);
        let own = row.kind != word_of(ApprovalKind::Budget) || purse.is_some_and(|purse| purse == RUN_PURSE);
        if (started || rules) && (own || access.role == Role::Admin) {
            mine.push(row.id);
        }
    }
    Ok(mine)
}
