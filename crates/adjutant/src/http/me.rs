//! `/me`: who is asking, as a document for programs and in words for people and models.

use adjutant_core::routing::DEFAULT;
use std::collections::BTreeMap;

use adjutant_core::guard::judge::{Decision, usually};
use adjutant_engine::store::row::{AgentRow, ApprovalFilter};
use adjutant_engine::{BudgetReport, CurrentAgent, Right, Spent, Via};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::config;
use super::ask::{Body, accepts};
use super::door::{Access, Signed};
use super::problem::Problem;
use super::server::Server;
use crate::wire::{self, Secrets, Texts};

/// Inbox items counted at the most.
const COUNTED: u32 = 1000;
/// Inbox items named at the most.
const NAMED: u32 = 5;
/// Characters of an agent's instructions that are told.
const BEGINNING: usize = 200;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(me, change))
}

/// Who is asking, and what they may do.
#[derive(Serialize, ToSchema)]
struct Me {
    /// `user`, `token` or `local`.
    kind: &'static str,
    user_id: String,
    name: String,
    /// Whether they own the instance.
    is_owner: bool,
    /// The token, where one was sent.
    token_id: Option<String>,
    /// `read`, `run`, `write`, `approvals:decide`, `admin`.
    scopes: Vec<&'static str>,
    workspaces: Vec<Mine>,
    /// The model of the runs they start whose agent leaves it to the default; `default` is the workspace's.
    default_model: String,
}

/// A workspace of the caller.
#[derive(Serialize, ToSchema)]
struct Mine {
    id: String,
    slug: String,
    name: String,
    /// `read`, `write` or `admin`.
    role: &'static str,
}

/// The caller. `Accept: text/markdown` gives the same in words, with notebooks, agents and what they reach, money and inbox.
#[utoipa::path(get, operation_id = "get_me", path = "/me", tag = "people", responses((status = 200, description = "Who you are", content((Me = "application/json"), (String = "text/markdown")))))]
async fn me(State(server): State<Server>, signed: Signed, headers: HeaderMap) -> Result<Response, Problem> {
    if accepts(&headers, "text/markdown") {
        let text = in_words(&server, &signed).await?;
        return Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], text).into_response());
    }
    let own = server.engine.store().default_model(signed.caller.user).await?;
    Ok(Json(shown(&signed, own)).into_response())
}

/// What to change of oneself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MyChange {
    /// The model of the runs you start whose agent leaves it to the default, or a strategy that chooses one; `default` is the workspace's.
    default_model: String,
}

/// Changes what counts for the caller alone.
#[utoipa::path(patch, operation_id = "change_me", path = "/me", tag = "people", request_body = MyChange, responses((status = 200, description = "Who you are", body = Me)))]
async fn change(State(server): State<Server>, signed: Signed, Body(body): Body<MyChange>) -> Result<Json<Me>, Problem> {
    signed.need(Right::Write)?;
    let own = server.engine.set_default_model(signed.caller.user, &body.default_model).await?;
    Ok(Json(shown(&signed, own)))
}

fn shown(signed: &Signed, default_model: Option<String>) -> Me {
    let caller = &signed.caller;
    let workspaces = caller.memberships.iter().map(|member| Mine {
        id: member.workspace.to_string(),
        slug: member.slug.clone(),
        name: member.name.clone(),
        role: member.role.word(),
    });
    let (kind, token) = match caller.via {
        Via::Session => ("user", None),
        Via::Token(token) => ("token", Some(token)),
        Via::Local => ("local", None),
    };
    Me {
        kind,
        user_id: caller.user.to_string(),
        name: caller.name.clone(),
        is_owner: caller.owner,
        token_id: token.map(|token| token.to_string()),
        scopes: caller.rights.words(),
        workspaces: workspaces.collect(),
        default_model: default_model.unwrap_or_else(|| DEFAULT.to_owned()),
    }
}

async fn in_words(server: &Server, signed: &Signed) -> Result<String, Problem> {
    let caller = &signed.caller;
    let mut text = format!("# {}\n\n`{}`", caller.name, caller.user);
    text += if caller.owner { ", owner of this instance.\n" } else { ".\n" };
    text += &format!("\nMay: {}.\n", caller.rights.words().join(", "));
    if caller.memberships.is_empty() {
        text += "\nIn no workspace. An admin can let you into one.\n";
    }
    // A token that may not read learns where it is, and nothing of what is there.
    let places = if signed.need(Right::Read).is_ok() { signed.workspaces(None)? } else { Vec::new() };
    for member in &caller.memberships {
        text += &format!("\n## {} (`{}`): {}\n", member.name, member.slug, member.role);
        if let Some(access) = places.iter().find(|access| access.workspace == member.workspace) {
            text += &place_in_words(server, *access).await?;
        }
    }
    Ok(text)
}

/// What somebody has in a workspace.
async fn place_in_words(server: &Server, access: Access) -> Result<String, Problem> {
    let (engine, workspace) = (&server.engine, access.workspace);
    let mut text = String::new();
    let notebooks = engine.store().notebooks(workspace).await?;
    let names: Vec<_> = notebooks.iter().map(|row| format!("`{}`", row.slug)).collect();
    text += &format!("\nNotebooks: {}.\n", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
    let pending = ApprovalFilter {
        status: Some("pending".to_owned()),
        visible_to: access.visible_to(),
        ..ApprovalFilter::default()
    };
    text += &match engine.store().count_approvals(workspace, &pending, COUNTED).await? {
        0 => "\nNothing waits for a decision.\n".to_owned(),
        1 => "\nOne thing waits for a decision.\n".to_owned(),
        many => format!("\n{many} things wait for a decision.\n"),
    };
    for (nth, item) in engine.store().approvals(workspace, &pending, NAMED).await?.iter().enumerate() {
        let summary = wire::approval(item, None, &Texts::default(), Secrets::Hidden).summary.unwrap_or_default();
        text += &format!("{}- `{}`: {summary}\n", if nth == 0 { "\n" } else { "" }, item.id);
    }
    let money: String = engine.budgets(workspace, access.member()).await?.iter().filter_map(left).collect();
    if !money.is_empty() {
        text += &format!("\nMoney left:\n\n{money}");
    }
    text += "\nAgents:\n\n";
    for row in engine.store().agents(workspace).await? {
        if access.member().sees(&row) {
            text += &agent_in_words(server, access, &row).await?;
        }
    }
    Ok(text)
}

async fn agent_in_words(server: &Server, access: Access, row: &AgentRow) -> Result<String, Problem> {
    let config = config(row)?;
    let agent = server.engine.current_agent(access.workspace, row.id).await?;
    let mut text = format!("- **{}** (`{}`)", config.name, row.slug);
    text += match row.owner {
        Some(owner) if owner == access.user => ", yours",
        Some(_) if row.people.shared_with.contains(&access.user) => ", shared with you",
        Some(_) | None => "",
    };
    text += if config.is_active { "" } else { ", switched off" };
    text += &format!(": {}. Model `{}`.", config.reach(), config.model);
    text += &tools_in_words(server, &agent);
    if !config.requires_approval.is_empty() {
        let asks: Vec<&str> = config.requires_approval.iter().map(String::as_str).collect();
        text += &format!(" Always asks before: {}.", asks.join(", "));
    }
    let first = config.system_prompt.lines().map(str::trim).find(|line| !line.is_empty());
    if let Some(first) = first {
        let beginning: String = first.chars().take(BEGINNING).collect();
        text += &format!(" Instructions begin: \"{beginning}\"");
    }
    Ok(text + "\n")
}

/// The tools that an agent was given, by what the guard says to them as a rule. With what a call brings it may still be refused.
fn tools_in_words(server: &Server, agent: &CurrentAgent) -> String {
    let caller = server.engine.anybody(agent, None);
    let granted = server.engine.tools().iter().map(|tool| tool.spec());
    let granted = granted.filter(|spec| agent.config.grants_tool(spec.name(), &spec.toolset));
    let mut said: BTreeMap<Decision, Vec<&str>> = BTreeMap::new();
    for spec in granted {
        said.entry(usually(caller, &agent.config, spec, &agent.rules)).or_default().push(spec.name());
    }
    if said.is_empty() {
        return " No tools.".to_owned();
    }
    let parts: Vec<String> =
        said.iter().map(|(word, names)| format!("{}: {}", word.word(), names.join(", "))).collect();
    format!(" Tools: {}.", parts.join("; "))
}

/// What is left of a budget, where it has a limit.
fn left(report: &BudgetReport) -> Option<String> {
    let of = |spent: &Spent, when: &str| {
        let limit = spent.limit?;
        let left = (limit.dollars() - spent.spent.dollars()).max(0.0);
        Some(format!("${left:.2} of ${:.2} {when}", limit.dollars()))
    };
    let parts: Vec<String> =
        [of(&report.day, "today"), of(&report.month, "this month")].into_iter().flatten().collect();
    let name = report.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
    (!parts.is_empty()).then(|| format!("- {}{name}: {}\n", report.owner.word(), parts.join(", ")))
}
