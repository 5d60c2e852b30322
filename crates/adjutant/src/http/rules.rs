//! `/rules`: standing rules of a workspace. Those of all agents are for everybody in it to see, others for those who may see the
//! agent and the chat they are about. Admins write them and take them away; a lasting yes also whoever gave it or has the chat.

use adjutant_core::guard::judge::Decision;
use adjutant_core::guard::rule::{Origin, Rule};
use adjutant_core::id::{AgentId, RuleId};
use adjutant_engine::{EngineError, NewRule, Right, Role};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::find_agent;
use super::ask::{Asked, Body, Path, id, parse};
use super::chats::find_chat;
use super::door::{Access, Signed};
use super::merge::merge;
use super::page::{Page, Slice, id_of, sliced};
use super::problem::{Kind, Problem};
use super::runs::find_run;
use super::server::Server;
use super::shape::{NewStandingRule, StandingRule, StandingRuleChange};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, change, remove))
}

/// Which workspace.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Where {
    /// The workspace (id or short name).
    workspace_id: Option<String>,
}

/// Which rules.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only of this workspace (id or short name).
    workspace_id: Option<String>,
    /// How many, from 1 to 200; all without it.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A rule, what it says in one line, and whether it counts.
async fn shown(server: &Server, access: Access, rule: &Rule) -> Result<Value, Problem> {
    let mut shown = serde_json::to_value(rule).unwrap_or_default();
    shown["workspace_id"] = json!(access.workspace);
    shown["says"] = json!(rule.in_words());
    shown["live"] = json!(server.engine.rule_counts(access.workspace, rule).await?);
    Ok(shown)
}

/// Whether they may know a rule: what it is about tells of folders, hosts and habits of whoever it is for.
async fn may_know(server: &Server, signed: &Signed, access: Access, rule: &Rule) -> Result<bool, Problem> {
    if access.role == Role::Admin || rule.owner == access.user {
        return Ok(true);
    }
    let mut known = true;
    if let Some(agent) = rule.agent {
        known &= is_found(find_agent(server, signed, None, &agent.to_string()).await)?;
    }
    if let Some(chat) = rule.chat {
        known &= is_found(find_chat(server, signed, &chat.to_string()).await)?;
    }
    if let Some(run) = rule.run {
        known &= is_found(find_run(server, signed, &run.to_string()).await)?;
    }
    Ok(known)
}

fn is_found<T>(found: Result<T, Problem>) -> Result<bool, Problem> {
    match found {
        Ok(_) => Ok(true),
        Err(problem) if problem.is(Kind::NotFound) => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// Whether they may take a rule away without being an admin: a lasting yes that they gave, or one for a chat of theirs.
async fn may_withdraw(server: &Server, access: Access, rule: &Rule) -> Result<bool, Problem> {
    match (rule.origin, rule.chat) {
        (Origin::Person, _) => Ok(false),
        (Origin::Approval(_), _) if rule.owner == access.user => Ok(true),
        (Origin::Approval(_), None) => Ok(false),
        (Origin::Approval(_), Some(chat)) => {
            let chat = server.engine.store().chat(access.workspace, chat).await?;
            Ok(chat.is_some_and(|chat| chat.owner == access.user))
        }
    }
}

/// A rule of one of the caller's workspaces that they may know.
async fn find(server: &Server, signed: &Signed, name: &str) -> Result<(Access, Rule), Problem> {
    let rule: RuleId = id("rule", name)?;
    for access in signed.workspaces(None)? {
        match server.engine.rule(access.workspace, rule).await {
            Ok(rule) if may_know(server, signed, access, &rule).await? => return Ok((access, rule)),
            Ok(_) | Err(EngineError::NotFound { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err(Problem::not_found("rule", name))
}

/// Puts the id of the agent that a rule is about in the place of its short name: names pass on to others, what a rule says does not.
async fn name_by_id(server: &Server, signed: &Signed, access: Access, rule: &mut Value) -> Result<(), Problem> {
    let Some(agent) = rule.get_mut("agent") else { return Ok(()) };
    let named = agent.as_str().filter(|name| name.parse::<AgentId>().is_err()).map(str::to_owned);
    if let Some(name) = named {
        let (_, row) = find_agent(server, signed, Some(&access.workspace.to_string()), &name).await?;
        *agent = json!(row.id);
    }
    Ok(())
}

/// Standing rules that you may know, oldest first, also those that have ended.
#[utoipa::path(get, operation_id = "list_rules", path = "/rules", tag = "rules", params(Wanted), responses((status = 200, description = "Rules", body = Page<StandingRule>)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Wanted>,
) -> Result<Json<Page<Value>>, Problem> {
    let mut data = Vec::new();
    for access in signed.workspaces(asked.workspace_id.as_deref())? {
        for rule in server.engine.rules(access.workspace).await? {
            if may_know(&server, &signed, access, &rule).await? {
                data.push(shown(&server, access, &rule).await?);
            }
        }
    }
    sliced(data, &Slice { limit: asked.limit, cursor: asked.cursor }, id_of)
}

/// Writes a rule, if its examples hold: `tool`, `decision` (allow, ask, deny), and optionally `agent`, `chat`, `when`, `expires_at`, `note`, `must_allow`, `must_deny`. For admins.
#[utoipa::path(post, operation_id = "create_rule", path = "/rules", tag = "rules", params(Where), request_body = NewStandingRule, responses((status = 201, description = "The rule", body = StandingRule)))]
async fn create(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Where>,
    Body(mut body): Body<Value>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let access = signed.workspace_or_only(asked.workspace_id.as_deref(), Role::Admin, Right::Admin)?;
    name_by_id(&server, &signed, access, &mut body).await?;
    let body: NewRule = parse(&serde_json::to_vec(&body).unwrap_or_default())?;
    // A standing yes answers what would be asked, and needs the right to.
    if body.decision == Decision::Allow {
        signed.need(Right::Decide)?;
    }
    let rule = server.engine.add_rule(access.workspace, access.user, body).await?;
    Ok((StatusCode::CREATED, Json(shown(&server, access, &rule).await?)))
}

/// One rule.
#[utoipa::path(get, operation_id = "get_rule", path = "/rules/{rule}", tag = "rules", params(("rule" = String, Path, description = "Its id")), responses((status = 200, description = "The rule", body = StandingRule)))]
async fn get(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    let (access, rule) = find(&server, &signed, &name).await?;
    Ok(Json(shown(&server, access, &rule).await?))
}

/// Puts a changed rule in the place of one, if its examples hold: only what changes is named, `null` takes something away. The
/// answer is a rule with an id of its own, as what was judged by the old one refers to that; the old one counts no more from the
/// next judgement on. For admins.
#[utoipa::path(patch, operation_id = "change_rule", path = "/rules/{rule}", tag = "rules", params(("rule" = String, Path, description = "Its id")), request_body = StandingRuleChange, responses((status = 200, description = "The rule that counts now", body = StandingRule)))]
async fn change(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(mut patch): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let (access, old) = find(&server, &signed, &name).await?;
    let access = signed.must(access, Role::Admin, Right::Admin)?;
    // What is put in its place may ask less than it did.
    signed.need(Right::Decide)?;
    name_by_id(&server, &signed, access, &mut patch).await?;
    let mut written = serde_json::to_value(NewRule::of(&old)).unwrap_or_default();
    merge(&mut written, patch);
    let new: NewRule = serde_json::from_value(written)
        .map_err(|bad| Problem::invalid("The rule is as it was.").error("", bad.to_string()))?;
    let rule = server.engine.replace_rule(access.workspace, access.user, &old, new).await?;
    Ok(Json(shown(&server, access, &rule).await?))
}

/// Takes a rule away. It counts no more from the next judgement on. For admins; a lasting yes also for whoever gave it, and one for
/// a chat for whose chat it is.
#[utoipa::path(delete, operation_id = "remove_rule", path = "/rules/{rule}", tag = "rules", params(("rule" = String, Path, description = "Its id")), responses((status = 204, description = "Gone")))]
async fn remove(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    let (access, rule) = find(&server, &signed, &name).await?;
    let access = if may_withdraw(&server, access, &rule).await? {
        signed.must(access, Role::Write, Right::Write)?
    } else {
        if rule.decision != Decision::Allow {
            signed.need(Right::Decide)?;
        }
        signed.must(access, Role::Admin, Right::Admin)?
    };
    server.engine.remove_rule(access.workspace, access.user, rule.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
