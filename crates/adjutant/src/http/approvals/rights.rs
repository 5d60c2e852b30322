//! Who may decide an item: whoever started the run, the owner of the agent, one of its approvers, or an admin; about money of
//! others only an admin.

use std::collections::BTreeMap;

use adjutant_core::budget::RUN_PURSE;
use adjutant_core::id::{AgentId, ApprovalId, RunId};
use adjutant_core::run::event::{ApprovalKind, GrantScope};
use adjutant_engine::store::row::{ApprovalRow, RunRow};
use adjutant_engine::{Right, Role};

use super::super::ask::id;
use super::super::door::{Access, Signed};
use super::super::problem::Problem;
use super::super::runs::find_run;
use super::super::server::Server;
use super::{PENDING, word_of};
use crate::wire;

/// Whether they may change an agent for everybody: its owner, or an admin.
async fn rules_agent(server: &Server, access: Access, agent: AgentId) -> Result<bool, Problem> {
    if access.role == Role::Admin {
        return Ok(true);
    }
    let agent = server.engine.store().agent(access.workspace, agent).await?;
    Ok(agent.is_some_and(|agent| access.member().rules(&agent)))
}

/// Whether they may decide what an agent asks, whoever started the run: its owner, an approver, or an admin.
pub(super) async fn decides_for(server: &Server, access: Access, agent: AgentId) -> Result<bool, Problem> {
    if access.role == Role::Admin {
        return Ok(true);
    }
    let agent = server.engine.store().agent(access.workspace, agent).await?;
    Ok(agent.is_some_and(|agent| access.member().decides_for(&agent)))
}

/// Whether they may decide what a run asks: whoever started it, and whoever decides for its agent.
pub(super) async fn may_decide(server: &Server, access: Access, run: RunId) -> Result<bool, Problem> {
    let run = server.engine.run_row(access.workspace, run).await?;
    Ok(run.initiator == access.user || decides_for(server, access, run.agent).await?)
}

/// A run for whose calls the caller may answer: one that they started, or of an agent that they decide for, whether or not they
/// may read what is said in it.
///
/// # Errors
/// 404 when there is none that they may know of, 403 when the answer is not theirs.
pub(in crate::http) async fn answered_run(
    server: &Server,
    signed: &Signed,
    name: &str,
) -> Result<(Access, RunRow), Problem> {
    let run: RunId = id("run", name)?;
    for access in signed.workspaces(None)? {
        let Some(row) = server.engine.store().run(access.workspace, run).await? else { continue };
        if may_decide(server, access, run).await? {
            return Ok((signed.must(access, Role::Write, Right::Decide)?, row));
        }
    }
    find_run(server, signed, name).await?;
    Err(Problem::forbidden(NOT_YOURS))
}

/// What somebody is told who may see a question and not answer it.
pub(super) const NOT_YOURS: &str = "Only whoever started the run, the owner of the agent or one of its approvers, or an admin may decide. \
                                    Nothing was decided.";

/// Whether their yes may reach as far as this: for a chat it takes its owner, because it counts for whatever they say there
/// later, or whoever decides for the agent; for always whoever may change it.
pub(super) async fn may_give(
    server: &Server,
    access: Access,
    row: &ApprovalRow,
    scope: GrantScope,
) -> Result<bool, Problem> {
    match scope {
        GrantScope::Once | GrantScope::Run => Ok(true),
        GrantScope::Chat => {
            let chat = server.engine.store().chat(access.workspace, row.chat).await?;
            let own = chat.is_some_and(|chat| chat.owner == access.user);
            Ok(own || decides_for(server, access, row.agent).await?)
        }
        GrantScope::Always => rules_agent(server, access, row.agent).await,
    }
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
    let mut known: BTreeMap<AgentId, bool> = BTreeMap::new();
    let mut mine = Vec::new();
    for row in rows.iter().filter(|row| row.status == PENDING) {
        let decides = match known.get(&row.agent) {
            Some(known) => *known,
            None => *known.entry(row.agent).or_insert(decides_for(server, access, row.agent).await?),
        };
        let card = wire::card(row);
        let started = card.as_ref().is_some_and(|card| card.initiator == Some(access.user));
        // Money of others takes an admin.
        let purse = card.and_then(|card| card.ask).map(|ask| ask.purse);
        let own = row.kind != word_of(ApprovalKind::Budget) || purse.is_some_and(|purse| purse == RUN_PURSE);
        if (started || decides) && (own || access.role == Role::Admin) {
            mine.push(row.id);
        }
    }
    Ok(mine)
}
