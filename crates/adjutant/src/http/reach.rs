//! What an agent may do, asked beforehand: one wish, everything in a notebook, its past under a draft, and what it is told.

use adjutant_core::audit::filter::moment;
use adjutant_core::guard::judge::Decision;
use adjutant_core::guard::scope::Action;
use adjutant_core::time::Time;
use adjutant_engine::{Right, Role, Wish};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::{changed, find_agent, read};
use super::ask::{Body, Path};
use super::door::Signed;
use super::problem::Problem;
use super::runs::notebook;
use super::server::Server;
use super::shape::AgentBody;
use crate::wire;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(can)).routes(routes!(preview)).routes(routes!(backtest)).routes(routes!(prompt))
}

/// The tool that a web address is asked about.
const READS_ADDRESSES: &str = "fetch_web_page";

/// What an agent might want.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewWish {
    /// `read`, `list`, `write`, `create`, `delete`, `execute`, `move` or `copy`, with a `path`.
    #[schema(value_type = Option<String>)]
    action: Option<Action>,
    /// The path.
    path: Option<String>,
    /// Or a web address that it would read.
    url: Option<String>,
    /// Or a tool.
    tool: Option<String>,
    /// Its arguments.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Value>,
    /// The notebook; the one a run would get without it.
    notebook_id: Option<String>,
}

/// What the guard says.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `wire::can` writes")]
struct CanAnswer {
    /// `allow`, `ask` or `deny`.
    verdict: String,
    /// The deciding rule.
    rule: String,
    /// Why.
    reason: String,
    /// The smallest grant that would change it.
    smallest_grant: Option<String>,
    /// The tool it was asked for.
    tool: Option<String>,
}

fn wish(body: NewWish) -> Result<Wish, Problem> {
    match (body.action, body.path, body.url, body.tool) {
        (Some(action), Some(path), None, None) => Ok(Wish::Path { action, path }),
        (None, None, Some(url), None) => {
            Ok(Wish::Call { tool: READS_ADDRESSES.to_owned(), arguments: json!({ "url": url }) })
        }
        (None, None, None, Some(tool)) => {
            Ok(Wish::Call { tool, arguments: body.arguments.unwrap_or_else(|| json!({})) })
        }
        (_, _, _, _) => Err(Problem::invalid("Nothing was asked.")
            .error("", "give an `action` with a `path`, a `url`, or a `tool` with its `arguments`")),
    }
}

/// Whether an agent may do something: answered by the guard that judges its calls, with the deciding rule and the smallest grant.
#[utoipa::path(post, operation_id = "ask_can", path = "/agents/{agent}/can", tag = "agents", params(("agent" = String, Path, description = "Id or short name")), request_body = NewWish, responses((status = 200, description = "What the guard says", body = CanAnswer)))]
async fn can(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<NewWish>,
) -> Result<Json<Value>, Problem> {
    let (access, row) = find_agent(&server, &signed, None, &name).await?;
    let access = signed.must(access, Role::Write, Right::Read)?;
    let notebook = notebook(&server, access, body.notebook_id.as_deref()).await?;
    let agent = server.engine.current_agent(access.workspace, row.id).await?;
    let answer = server.engine.can(access.workspace, &agent, notebook, &wish(body)?).await?;
    Ok(Json(wire::can(&answer)))
}

/// How much of a notebook an agent reaches by one verb.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `wire::reach` writes")]
struct ReachedBy {
    /// How many files, or folders for `list` and `create`.
    count: usize,
    /// The first of them.
    samples: Vec<String>,
    /// What the guard says to the first.
    first: Option<CanAnswer>,
}

/// The verbs.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `wire::reach` writes")]
struct ReachedByAll {
    read: ReachedBy,
    list: ReachedBy,
    write: ReachedBy,
    create: ReachedBy,
    delete: ReachedBy,
}

/// What lies just outside.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `wire::reach` writes")]
struct JustOutside {
    /// How many things.
    count: usize,
    /// The first of them: path, rule, reason, smallest grant.
    #[schema(value_type = Vec<Object>)]
    samples: Vec<Value>,
}

/// Things of one verb.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `wire::reach` writes")]
struct Things {
    /// How many.
    count: usize,
    /// The first hundred of them.
    samples: Vec<String>,
}

/// What an edit changes by one verb.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `wire::reach` writes")]
struct ChangedBy {
    /// What is reached now and was not.
    added: Things,
    /// What was reached and is not any more.
    removed: Things,
}

/// What an edit changes.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `wire::reach` writes")]
struct ChangedByAll {
    read: ChangedBy,
    list: ChangedBy,
    write: ChangedBy,
    create: ChangedBy,
    delete: ChangedBy,
}

/// What an agent reaches of a notebook.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what `wire::reach` writes")]
struct Reach {
    /// The notebook; none where the scope admits none.
    notebook: Option<String>,
    /// Files and folders that were looked at.
    entries: usize,
    /// Whether there is more than was looked at.
    cut: bool,
    /// By verb.
    reach: ReachedByAll,
    /// What lies just outside.
    just_outside: JustOutside,
    /// What is different from the agent that `against` names; left out without it.
    change: Option<ChangedByAll>,
}

/// A draft of an agent, and what to hold it against.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `preview` reads")]
struct PreviewBody {
    #[schema(inline)]
    #[serde(flatten)]
    agent: AgentBody,
    /// The notebook that is looked at (id or short name); the one a run would get without it.
    notebook_id: Option<String>,
    /// An agent (id or short name) of the workspace: what the draft adds to what that one reaches and takes away is told, too.
    against: Option<String>,
}

/// Counts and samples of what a draft of an agent could read, write, create and delete. The body is an agent, which is not saved,
/// with an optional `notebook_id`, and an optional `against`: an agent (id or short name) of the workspace, for what the draft adds
/// to what that one reaches and takes away from it.
#[utoipa::path(post, operation_id = "preview_scope", path = "/scope/preview", tag = "agents", request_body = PreviewBody, responses((status = 200, description = "What it reaches", body = Reach)))]
async fn preview(
    State(server): State<Server>,
    signed: Signed,
    Body(mut body): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let mut word = |name: &str| match body.as_object_mut().and_then(|fields| fields.remove(name)) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) => Ok(Some(word)),
        Some(_) => Err(Problem::invalid("Nothing was looked at.").error(format!("/{name}"), "is not a text")),
    };
    let (named, against) = (word("notebook_id")?, word("against")?);
    let draft = read(body)?;
    let access = signed.workspace_or_only(draft.workspace.as_deref(), Role::Write, Right::Read)?;
    let named = named.as_deref();
    let notebook = notebook(&server, access, named).await?;
    let config = server.engine.complete_agent(draft.spec)?;
    let agent = server.engine.draft_agent(access.workspace, config).await?;
    let report = match against {
        None => server.engine.reach(access.workspace, &agent, notebook).await?,
        Some(name) => {
            let (there, row) = find_agent(&server, &signed, Some(&access.workspace.to_string()), &name).await?;
            let before = server.engine.current_agent(there.workspace, row.id).await?;
            server.engine.reach_against(access.workspace, &agent, &before, notebook).await?
        }
    };
    Ok(Json(wire::reach(&report)))
}

/// A draft to judge the past under.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Draft {
    /// The agent as it would be; nothing is saved.
    #[schema(value_type = Object)]
    agent: Value,
    /// Only runs since then: `30d`, a day, or a time.
    since: Option<String>,
}

/// What would have been different.
#[derive(Serialize, ToSchema)]
struct BacktestAnswer {
    /// When the standing rules were read that all calls were judged under: they are those of today, not of the day of a call.
    #[schema(value_type = String)]
    rules_as_of: Time,
    /// Runs that were read.
    runs: usize,
    /// Runs of which nothing is left to read.
    erased: usize,
    /// Calls that were judged again.
    calls: usize,
    /// Calls that were not the guard's to decide.
    skipped: usize,
    /// How many come out differently.
    newly: Newly,
    /// Calls that come out differently, newest run first.
    #[schema(value_type = Vec<Object>)]
    changes: Value,
}

/// How many come out differently.
#[derive(Serialize, ToSchema)]
struct Newly {
    allowed: usize,
    asked: usize,
    denied: usize,
}

/// Judges every recorded call of an agent again under a draft of it. For whoever may change the agent.
#[utoipa::path(post, operation_id = "backtest_agent", path = "/agents/{agent}/backtest", tag = "agents", params(("agent" = String, Path, description = "Id or short name")), request_body = Draft, responses((status = 200, description = "What would have been different", body = BacktestAnswer)))]
async fn backtest(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<Draft>,
) -> Result<Json<BacktestAnswer>, Problem> {
    let (access, row) = changed(&server, &signed, &name).await?;
    let draft = server.engine.complete_agent(read(body.agent)?.spec)?;
    let since = body.since.as_deref().map(|text| moment(text, server.engine.env().now())).transpose();
    let since = since.map_err(|why| Problem::invalid("Nothing was judged.").error("/since", why))?;
    let found = server.engine.backtest(access.workspace, row.id, &draft, since).await?;
    Ok(Json(BacktestAnswer {
        rules_as_of: found.rules_as_of,
        runs: found.runs,
        erased: found.erased,
        calls: found.calls,
        skipped: found.skipped,
        newly: Newly {
            allowed: found.newly(Decision::Allow),
            asked: found.newly(Decision::Ask),
            denied: found.newly(Decision::Deny),
        },
        changes: serde_json::to_value(&found.changes).unwrap_or_default(),
    }))
}

/// What a run would be told.
#[derive(Serialize, ToSchema)]
struct PromptAnswer {
    /// The instructions, with what Adjutant adds to them.
    system_prompt: String,
    /// The tools it would see: name, description, schema.
    #[schema(value_type = Vec<Object>)]
    tools: Value,
}

/// What a run of the agent would be told now: its instructions with what is added to them, and its tools.
#[utoipa::path(get, operation_id = "get_agent_prompt", path = "/agents/{agent}/prompt", tag = "agents", params(("agent" = String, Path, description = "Id or short name")), responses((status = 200, description = "The prompt", body = PromptAnswer)))]
async fn prompt(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<PromptAnswer>, Problem> {
    let (access, row) = find_agent(&server, &signed, None, &name).await?;
    let agent = server.engine.current_agent(access.workspace, row.id).await?;
    let told = server.engine.effective_prompt(access.workspace, &agent.config).await?;
    let tools = serde_json::to_value(&told.tools).unwrap_or_default();
    Ok(Json(PromptAnswer { system_prompt: told.system_prompt, tools }))
}
