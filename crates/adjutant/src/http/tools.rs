//! `/tools`: what agents can call.

use adjutant_core::guard::judge::is_free;
use adjutant_core::guard::policy::Autonomy;
use adjutant_core::tool::{Category, Effect, Level, Recovery, ToolSpec};
use adjutant_engine::Right;
use adjutant_engine::tools::Tool as Callable;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Path};
use super::door::Signed;
use super::page::{Page, all};
use super::problem::Problem;
use super::server::Server;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(search)).routes(routes!(get))
}

/// A tool that agents can be given.
#[derive(Serialize, ToSchema)]
struct Tool {
    name: String,
    description: String,
    /// The group it belongs to.
    toolset: String,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    schema: Value,
    /// What becomes of it after a crash: `pure`, `idempotent`, `reconcile`, `ask_human`.
    #[schema(value_type = String)]
    recovery: Recovery,
    /// What kind of thing it touches: `file_read`, `network_read`, …
    #[schema(value_type = String)]
    category: Category,
    /// The right it needs: an agent reaches every tool up to its own level.
    #[schema(value_type = String)]
    level: Level,
    /// What it does to the world: `read`, `write`, …
    #[schema(value_type = String)]
    effect: Effect,
    /// Whether what it does can be taken back.
    undoable: bool,
    /// Whether its arguments leave the house.
    egress: bool,
    /// What its output makes of a run: `private`, `untrusted`.
    labels: Vec<&'static str>,
    /// Calls a minute, where they are limited.
    per_minute: Option<u32>,
    /// How long it may run.
    timeout_ms: u64,
    /// Bytes of output that are handed to the model.
    output_bytes: usize,
    /// Entries of a list that it returns at the most, where it is asked for a number of them.
    max_items: Option<u64>,
    /// Words that it is found by, too: its group, its kind, its effect.
    tags: Vec<String>,
    /// Whether it asks at the autonomy that agents have by themselves, `low`, where nothing else decides.
    asks: bool,
    /// Arguments of a call, as they may be.
    #[schema(value_type = Option<Object>)]
    example: Option<Value>,
    /// The account that has to be connected first; none does.
    required_account: Option<String>,
}

/// The stored word of a value.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn tags(spec: &ToolSpec) -> Vec<String> {
    vec![spec.toolset.to_string(), word(spec.category), word(spec.effect)]
}

fn shown(tool: &dyn Callable) -> Tool {
    let spec = tool.spec();
    Tool {
        name: spec.definition.name.clone(),
        description: spec.definition.description.clone(),
        toolset: spec.toolset.to_string(),
        schema: spec.definition.schema.clone(),
        recovery: spec.recovery,
        category: spec.category,
        level: spec.level,
        effect: spec.effect,
        undoable: spec.undoable,
        egress: spec.egress,
        labels: [("private", spec.labels.private), ("untrusted", spec.labels.untrusted)]
            .into_iter()
            .filter_map(|(name, has)| has.then_some(name))
            .collect(),
        per_minute: spec.per_minute,
        timeout_ms: u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
        output_bytes: spec.output_cap,
        max_items: spec.definition.schema["properties"]["limit"]["maximum"].as_u64(),
        tags: tags(spec),
        asks: !is_free(Autonomy::Low, spec.effect, spec.undoable),
        example: tool.example(),
        required_account: None,
    }
}

/// Every tool.
#[utoipa::path(get, operation_id = "list_tools", path = "/tools", tag = "tools", responses((status = 200, description = "Tools", body = Page<Tool>)))]
async fn list(State(server): State<Server>, signed: Signed) -> Result<Json<Page<Tool>>, Problem> {
    signed.need(Right::Read)?;
    Ok(all(server.engine.tools().iter().map(|tool| shown(&**tool)).collect()))
}

/// Words.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Words {
    /// Words that stand in its name, its description or its tags.
    q: String,
}

/// Tools whose name, description and tags have all of the words.
#[utoipa::path(get, operation_id = "search_tools", path = "/tools/search", tag = "tools", params(Words), responses((status = 200, description = "Tools", body = Page<Tool>)))]
async fn search(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Words>,
) -> Result<Json<Page<Tool>>, Problem> {
    signed.need(Right::Read)?;
    let words = asked.q.to_lowercase();
    let matches = |spec: &ToolSpec| {
        let text = format!("{} {} {}", spec.definition.name, spec.definition.description, tags(spec).join(" "));
        let text = text.to_lowercase();
        words.split_whitespace().all(|word| text.contains(word))
    };
    let found = server.engine.tools().iter().filter(|tool| matches(tool.spec()));
    Ok(all(found.map(|tool| shown(&**tool)).collect()))
}

/// One tool.
#[utoipa::path(get, operation_id = "get_tool", path = "/tools/{tool}", tag = "tools", params(("tool" = String, Path, description = "Its name")), responses((status = 200, description = "The tool", body = Tool)))]
async fn get(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<Json<Tool>, Problem> {
    signed.need(Right::Read)?;
    let tool = server.engine.tools().get(&name).ok_or_else(|| Problem::not_found("tool", &name))?;
    Ok(Json(shown(&**tool)))
}
