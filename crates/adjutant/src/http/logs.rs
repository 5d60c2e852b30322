//! `/runs/{run}/logs`: what a run did, one line for each of its calls.

use adjutant_core::tool::ToolSpec;
use adjutant_engine::ActionReport;
use adjutant_engine::store::row::CallRow;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Path, given};
use super::door::Signed;
use super::page::{Page, Slice, limit, page};
use super::problem::Problem;
use super::runs::find_run;
use super::server::Server;
use crate::wire::Moment;

/// Characters of a summary: what fits in a line.
const SUMMARY_CHARS: usize = 200;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(logs))
}

/// A tool call as one line.
#[derive(Serialize, ToSchema)]
struct CallLine {
    call_id: String,
    /// The tool.
    r#type: String,
    /// The first path, web address or key that it is about.
    target: Option<String>,
    /// The beginning of its arguments, as JSON text.
    input_summary: String,
    /// The beginning of what it answered; none before it has.
    output_summary: Option<String>,
    /// `allow`, `ask` or `deny`, once judged.
    verdict: Option<String>,
    /// Whether it was started.
    allowed: bool,
    attempts: u32,
    proposed_at: Moment,
    started_at: Option<Moment>,
    finished_at: Option<Moment>,
    is_error: Option<bool>,
    /// How long it ran, as in `actions` of the run; none before it has ended.
    ms: Option<u64>,
}

impl CallLine {
    fn of(call: &CallRow, action: Option<&ActionReport>, target: Option<String>) -> Self {
        Self {
            call_id: call.call.to_string(),
            r#type: call.tool.clone(),
            target: call.target.clone().or(target),
            input_summary: action.map(|action| summary(&action.arguments)).unwrap_or_default(),
            output_summary: action.and_then(|action| action.output.as_deref()).map(summary),
            verdict: call.verdict.clone(),
            allowed: call.started_at.is_some(),
            attempts: call.attempts,
            proposed_at: call.proposed_at.into(),
            started_at: call.started_at.map(Moment::from),
            finished_at: call.ended.map(|end| end.at.into()),
            is_error: call.ended.map(|end| end.is_error),
            ms: call.started_at.zip(call.ended).and(action).map(|action| action.ms),
        }
    }
}

/// The beginning of a text.
pub(super) fn summary(text: &str) -> String {
    text.chars().take(SUMMARY_CHARS).collect()
}

/// What a call is about: the first of its arguments that is a path, a web address or a key, also where only the schema says it.
pub(super) fn target(server: &Server, action: &ActionReport) -> Option<String> {
    let arguments: Value = serde_json::from_str(&action.arguments).ok()?;
    let spec = server.engine.tools().get(&action.tool_name)?.spec();
    about(spec).find_map(|name| {
        let usual = &spec.definition.schema["properties"][name]["default"];
        arguments[name].as_str().or(usual.as_str()).map(str::to_owned)
    })
}

fn about(spec: &ToolSpec) -> impl Iterator<Item = &str> {
    let checks = &spec.checks;
    spec.paths.keys().chain(&checks.urls).chain(&checks.memory_keys).map(|name| &**name)
}

/// The tool calls of a run, one line each.
#[utoipa::path(get, operation_id = "list_run_calls", path = "/runs/{run}/logs", tag = "runs", params(("run" = String, Path, description = "Its id"), Slice), responses((status = 200, description = "Actions", body = Page<CallLine>)))]
async fn logs(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Page<CallLine>>, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    let most = limit(slice.limit)?;
    let skip: usize = given("cursor", slice.cursor.as_deref())?.unwrap_or(0);
    let calls = server.engine.store().calls(access.workspace, row.id).await?;
    let actions = server.engine.report(access.workspace, row.id).await?.actions;
    let rows: Vec<_> = calls.into_iter().enumerate().skip(skip).take(most as usize + 1).collect();
    let line = |call: &CallRow| {
        let action = actions.iter().find(|action| action.call_id == call.call);
        CallLine::of(call, action, action.and_then(|action| target(&server, action)))
    };
    Ok(page(rows, most, |(index, _)| (index + 1).to_string(), |(_, call)| line(call)))
}
