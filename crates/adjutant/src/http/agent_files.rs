//! `/agents/file` and `/agents/{agent}/file`: an agent as the file that people keep, review and pass on.

use std::path::Path as FilePath;

use adjutant_engine::{Right, Role};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::{config, find_agent};
use super::ask::{Body, Path};
use super::door::Signed;
use super::problem::Problem;
use super::server::Server;
use super::shape::AgentBody;
use super::templates::body_of;
use crate::{agent_file, instance};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(read)).routes(routes!(write))
}

/// An agent file.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WrittenAgent {
    /// Its text: fields between two lines `---`, then the instructions.
    text: String,
    /// The workspace (id or short name) it is meant for; your only one without it.
    workspace_id: Option<String>,
}

/// Reads an agent file and gives it as a body for `POST /agents`. Saves nothing.
#[utoipa::path(post, operation_id = "read_agent_file", path = "/agents/file", tag = "agents", request_body = WrittenAgent, responses((status = 200, description = "The agent", body = AgentBody)))]
async fn read(
    State(server): State<Server>,
    signed: Signed,
    Body(body): Body<WrittenAgent>,
) -> Result<Json<Value>, Problem> {
    signed.workspace_or_only(body.workspace_id.as_deref(), Role::Write, Right::Read)?;
    let known = instance::known(server.engine.tools());
    // A text has no name of its own: the short name is the one it says, or comes from its name.
    match agent_file::parse(FilePath::new(""), &body.text, &known) {
        // Whoever fills a form from it sees what a preset stands for.
        Ok(file) => Ok(Json(body_of(&file.spec.without_preset()))),
        Err(found) => {
            let refused = Problem::invalid("This is no agent file. Nothing was read.");
            Err(found.iter().fold(refused, |all, one| all.error("/text", format!("line {}: {}", one.line, one.detail))))
        }
    }
}

/// An agent as a file, without what is as usual.
#[utoipa::path(get, operation_id = "get_agent_file", path = "/agents/{agent}/file", tag = "agents", params(("agent" = String, Path, description = "Id or short name")), responses((status = 200, description = "The file", content((String = "text/markdown")))))]
async fn write(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<Response, Problem> {
    let (_, row) = find_agent(&server, &signed, None, &name).await?;
    let text = agent_file::write(&config(&row)?, &instance::known(server.engine.tools()));
    let name = format!("attachment; filename=\"{}.md\"", row.slug);
    let headers =
        [(header::CONTENT_TYPE, "text/markdown; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, text).into_response())
}
