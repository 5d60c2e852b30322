//! `/approvals`: what waits for a person, and their decisions. Only a person, or a token that was given the right by name,
//! decides.

mod batch;
mod rights;

use std::collections::BTreeSet;
use std::time::Duration;

use adjutant_core::budget::RUN_PURSE;
use adjutant_core::content::Hash;
use adjutant_core::guard::policy::parse_seconds;
use adjutant_core::guard::redact::was_hidden;
use adjutant_core::id::{ApprovalId, RunId};
use adjutant_core::run::command::{Command, Decide};
use adjutant_core::run::event::{Actor, ApprovalKind, Decision, DoubtOutcome, GrantScope};
use adjutant_core::run::state::State as RunState;
use adjutant_engine::store::row::{ApprovalFilter, ApprovalRow, Order};
use adjutant_engine::{Right, Role};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::rights::answered_run;
use self::rights::{NOT_YOURS, decidable, decides_for, may_decide, may_give};
use super::agents::listed;
use super::ask::{Asked, Body, Path, given, id, unknown_word};
use super::door::{Access, Signed};
use super::page::{Page, limit, page};
use super::problem::{Kind, Problem};
use super::server::Server;
use crate::wire::{self, Item, Secrets, Texts};

/// Where an item can be.
const STATUSES: [&str; 5] = [PENDING, "approved", "rejected", "expired", "superseded"];
const PENDING: &str = "pending";
/// Anywhere but there.
const DECIDED: &str = "decided";

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).merge(batch::router()).routes(routes!(get)).routes(routes!(decide))
}

/// Which items.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// `pending`, `approved`, `rejected`, `expired`, `superseded`; `decided` is all but `pending`.
    status: Option<String>,
    /// `asc` (the oldest first, as without it) or `desc`.
    order: Option<String>,
    /// Only of this workspace (id or short name).
    workspace_id: Option<String>,
    /// Only of this agent (id or short name).
    agent: Option<String>,
    /// Only of this run.
    run: Option<String>,
    /// How many, from 1 to 200.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Inbox items that you may see, oldest first or newest first.
#[utoipa::path(get, operation_id = "list_approvals", path = "/approvals", tag = "approvals", params(Wanted), responses((status = 200, description = "Items", body = Page<Item>)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<Page<Item>>, Problem> {
    let most = limit(wanted.limit)?;
    let (status, except) = match wanted.status.as_deref() {
        Some(DECIDED) => (None, Some(PENDING.to_owned())),
        Some(word) if !STATUSES.contains(&word) => return Err(unknown_word("status", word)),
        known => (known.map(str::to_owned), None),
    };
    let order = match wanted.order.as_deref() {
        None | Some("asc") => Order::OldestFirst,
        Some("desc") => Order::NewestFirst,
        Some(word) => return Err(unknown_word("order", word)),
    };
    let mut rows: Vec<ApprovalRow> = Vec::new();
    let mut mine: BTreeSet<ApprovalId> = BTreeSet::new();
    let places = listed(&server, &signed, wanted.workspace_id.as_deref(), wanted.agent.as_deref()).await?;
    for (access, agent) in places {
        let filter = ApprovalFilter {
            status: status.clone(),
            except: except.clone(),
            run: given::<RunId>("run", wanted.run.as_deref())?,
            agent,
            visible_to: access.visible_to(),
            order,
            after: given::<ApprovalId>("cursor", wanted.cursor.as_deref())?,
        };
        let found = server.engine.store().approvals(access.workspace, &filter, most + 1).await?;
        mine.extend(decidable(&server, &signed, access, &found).await?);
        rows.extend(found);
    }
    rows.sort_by_key(|row| row.id);
    if order == Order::NewestFirst {
        rows.reverse();
    }
    let show = |row: &ApprovalRow| {
        let mut item = wire::approval(row, None, &Texts::default(), Secrets::Hidden);
        item.may_decide = Some(mine.contains(&row.id));
        item
    };
    Ok(page(rows, most, |row| row.id.to_string(), show))
}

/// An item that the caller may see.
pub(super) async fn find(server: &Server, signed: &Signed, name: &str) -> Result<(Access, ApprovalRow), Problem> {
    let approval: ApprovalId = id("approval", name)?;
    for access in signed.workspaces(None)? {
        if let Some(row) = server.engine.store().approval(access.workspace, approval).await? {
            // Whoever may see the run may see what it asks; so may whoever decides for the agent.
            return match super::runs::find_run(server, signed, &row.run.to_string()).await {
                Ok(_) => Ok((access, row)),
                Err(problem) if !problem.is(Kind::NotFound) => Err(problem),
                Err(_) if decides_for(server, access, row.agent).await? => Ok((access, row)),
                Err(_) => Err(Problem::not_found("approval", name)),
            };
        }
    }
    Err(Problem::not_found("approval", name))
}

async fn shown(
    server: &Server,
    signed: &Signed,
    access: Access,
    row: &ApprovalRow,
    state: &RunState,
    secrets: Secrets,
) -> Result<Item, Problem> {
    let events = state.approvals.get(&row.id).map(wire::events_of).unwrap_or_default();
    let texts = Texts::load(&server.engine, access.workspace, &events).await?;
    let mut shown = wire::item(row, state, &texts, secrets);
    shown.may_decide = Some(!decidable(server, signed, access, std::slice::from_ref(row)).await?.is_empty());
    for scope in [GrantScope::Chat, GrantScope::Always] {
        if !may_give(server, access, row, scope).await? {
            shown.allowed_scopes.iter_mut().for_each(|scopes| scopes.retain(|offered| *offered != scope));
        }
    }
    Ok(shown)
}

/// How one item is shown.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Look {
    /// Shows the secrets in it, to whoever may decide it. That is recorded.
    reveal: Option<bool>,
}

/// One item, with what would run and what it would change. A secret in it shows its kind and its length.
#[utoipa::path(get, operation_id = "get_approval", path = "/approvals/{approval}", tag = "approvals", params(("approval" = String, Path, description = "Its id"), Look), responses((status = 200, description = "The item", body = Item)))]
async fn get(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(look): Asked<Look>,
) -> Result<Json<Item>, Problem> {
    let (access, row) = find(&server, &signed, &name).await?;
    let secrets = if look.reveal == Some(true) {
        let access = signed.must(access, Role::Write, Right::Decide)?;
        if !may_decide(&server, access, row.run).await? {
            return Err(Problem::forbidden("Only whoever may decide it may see the secrets in it. Nothing was shown."));
        }
        server.engine.record_reveal(access.workspace, access.user, &row).await?;
        Secrets::Shown
    } else {
        Secrets::Hidden
    };
    let state = server.engine.run_state(access.workspace, row.run).await?;
    Ok(Json(shown(&server, &signed, access, &row, &state, secrets).await?))
}

/// A decision: in our form, or as `approved` or `confirmed`, which older clients send.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NewDecision {
    /// `approve`, `edit`, `respond`, `reject` or `stop`; for a call in doubt `happened`, `run` or `abandon`.
    pub(super) decision: Option<String>,
    /// The full replacement of the arguments, for `edit`.
    #[schema(value_type = Option<Object>)]
    pub(super) arguments: Option<Value>,
    /// What to tell the agent; the answer itself for `respond`; the result for `happened`.
    pub(super) message: Option<String>,
    /// `once`, `run`, `chat` or `always`: `allowed_scopes` of the item says what is offered.
    #[schema(value_type = Option<String>)]
    pub(super) scope: Option<GrantScope>,
    /// How long a yes lasts that reaches further than this call, such as `15m`.
    pub(super) expires_in: Option<String>,
    /// What you saw. Without it the decision is about what is asked now.
    #[schema(value_type = Option<String>)]
    pub(super) fingerprint: Option<Hash>,
    /// The item, where the address does not name it.
    pub(super) approval_id: Option<String>,
    /// The same under an older name.
    pub(super) action_id: Option<String>,
    /// True for `approve`, false for `reject`.
    pub(super) approved: Option<bool>,
    /// The same under an older name.
    pub(super) confirmed: Option<bool>,
}

impl NewDecision {
    fn word(&self) -> Result<&str, Problem> {
        match (self.decision.as_deref(), self.approved.or(self.confirmed)) {
            (Some(word), _) => Ok(word),
            (None, Some(true)) => Ok("approve"),
            (None, Some(false)) => Ok("reject"),
            (None, None) => Err(Problem::invalid("Nothing was decided.").error("/decision", "is needed")),
        }
    }

    /// Which item is meant, where the address does not say.
    pub(super) fn names(&self) -> Option<&str> {
        self.approval_id.as_deref().or(self.action_id.as_deref())
    }
}

/// Decides. Already decided 409 with the earlier decision, expired 410, stale fingerprint 412 with what it shows now. Needs `approvals:decide`.
#[utoipa::path(post, operation_id = "decide_approval", path = "/approvals/{approval}/decision", tag = "approvals", params(("approval" = String, Path, description = "Its id")), request_body = NewDecision, responses((status = 200, description = "The item, decided", body = Item)))]
async fn decide(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<NewDecision>,
) -> Result<Json<Item>, Problem> {
    decided(&server, &signed, &name, body).await.map(Json)
}

/// Decides one item for the caller.
pub(super) async fn decided(server: &Server, signed: &Signed, name: &str, body: NewDecision) -> Result<Item, Problem> {
    let (access, row) = find(server, signed, name).await?;
    let access = signed.must(access, Role::Write, Right::Decide)?;
    if !may_decide(server, access, row.run).await? {
        return Err(Problem::forbidden(NOT_YOURS));
    }
    if !may_give(server, access, &row, body.scope.unwrap_or(GrantScope::Once)).await? {
        let text = "An approval for always changes the agent for everybody, so it takes the owner of the agent or an admin; one \
                    for a chat takes its owner or whoever decides for the agent. Nothing was decided.";
        return Err(Problem::forbidden(text).hint("approve it for this run"));
    }
    if row.kind == word_of(ApprovalKind::Budget) && access.role < Role::Admin {
        let state = server.engine.run_state(access.workspace, row.run).await?;
        let own = state.budget_items.get(&row.id).is_some_and(|item| item.ask.purse == RUN_PURSE);
        if !own {
            let text = "Only an admin may add to the budget of an agent, a person or a workspace. Nothing was decided.";
            return Err(Problem::forbidden(text));
        }
    }
    if body.names().is_some_and(|other| other != name) {
        return Err(
            Problem::invalid("Nothing was decided.").error("/approval_id", "is another than that of the address")
        );
    }
    if body.arguments.as_ref().is_some_and(|arguments| was_hidden(&arguments.to_string())) {
        let text = "The arguments hold the mark of a secret that was hidden. Nothing was decided.";
        return Err(Problem::invalid(text).error("/arguments", "edit what `?reveal=true` shows"));
    }
    let command = command(access, &row, &body)?;
    let state = match server.engine.command(access.workspace, row.run, &command).await {
        Ok(state) => state,
        Err(error) => return Err(with_preview(server, signed, access, &row, error.into()).await),
    };
    let row = server.engine.store().approval(access.workspace, row.id).await?.unwrap_or(row);
    shown(server, signed, access, &row, &state, Secrets::Hidden).await
}

fn command(access: Access, row: &ApprovalRow, body: &NewDecision) -> Result<Command, Problem> {
    let unknown =
        |words: &str| Problem::invalid("Nothing was decided.").error("/decision", format!("is none of {words}"));
    let (word, by) = (body.word()?, Actor::User(access.user));
    if row.kind == word_of(ApprovalKind::InDoubt) {
        let outcome: DoubtOutcome =
            serde_json::from_value(json!(word)).map_err(|_| unknown("happened, run, abandon"))?;
        let call = row.call.clone().ok_or_else(|| Problem::not_found("call", "in doubt"))?;
        return Ok(Command::Resolve { call, outcome, result: body.message.clone(), by });
    }
    let decision: Decision =
        serde_json::from_value(json!(word)).map_err(|_| unknown("approve, edit, respond, reject, stop"))?;
    let arguments = body.arguments.as_ref().map(|arguments| match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let lasts = body.expires_in.as_deref().map(|span| {
        let seconds = parse_seconds(span).map(Duration::from_secs);
        seconds.ok_or_else(|| {
            Problem::invalid("Nothing was decided.").error("/expires_in", "is no span such as 15m or 24h")
        })
    });
    Ok(Command::Decide(Decide {
        lasts: lasts.transpose()?,
        approval: row.id,
        decision,
        scope: body.scope.unwrap_or(GrantScope::Once),
        by,
        arguments,
        message: body.message.clone(),
        fingerprint: body.fingerprint,
    }))
}

fn word_of(kind: ApprovalKind) -> &'static str {
    match kind {
        ApprovalKind::Call => "call",
        ApprovalKind::InDoubt => "in_doubt",
        ApprovalKind::Budget => "budget",
    }
}

/// A person who decided about something old gets to see what it is now.
async fn with_preview(
    server: &Server,
    signed: &Signed,
    access: Access,
    row: &ApprovalRow,
    problem: Problem,
) -> Problem {
    if !problem.is(Kind::StaleVersion) {
        return problem;
    }
    let now = async {
        let state = server.engine.run_state(access.workspace, row.run).await?;
        shown(server, signed, access, row, &state, Secrets::Hidden).await
    };
    match now.await {
        Ok(shown) => problem.with("approval", json!(shown)),
        Err(_) => problem,
    }
}
