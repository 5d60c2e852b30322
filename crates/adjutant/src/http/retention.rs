//! `/workspaces/{workspace}/size`, `/archive` and `/erase`: how much a workspace holds, taking old runs away as a file, and
//! forgetting what was said in them. For admins.

use std::convert::Infallible;

use adjutant_core::audit::filter::moment;
use adjutant_core::id::RunId;
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_engine::{Archive, Right, Role, kept_for};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body, Path};
use super::door::Signed;
use super::problem::Problem;
use super::server::Server;
use crate::wire::Moment;

/// Runs that one request erases, so that it is answered in good time.
const PART: usize = 200;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(size)).routes(routes!(archive)).routes(routes!(erase))
}

/// What a workspace holds, in bytes as they are stored. Files of its notebooks are not counted.
#[derive(Serialize, ToSchema)]
struct WorkspaceSize {
    /// All of it.
    bytes: u64,
    runs: u64,
    /// Runs that have not ended.
    open_runs: u64,
    /// Runs whose words were erased.
    erased_runs: u64,
    /// Events of its runs.
    events: u64,
    event_bytes: u64,
    /// Long texts that events refer to.
    contents: u64,
    content_bytes: u64,
    /// Its audit log.
    audit_bytes: u64,
    /// How long what was said in runs that have ended is kept: `forever`, or a span such as `90d`.
    keep_runs: String,
    /// Runs that are older than that and are about to be erased.
    due_runs: u64,
}

/// How much a workspace holds, and how much of it is about to be erased. For admins.
#[utoipa::path(get, operation_id = "get_workspace_size", path = "/workspaces/{workspace}/size", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name")), responses((status = 200, description = "Its sizes", body = WorkspaceSize)))]
async fn size(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<WorkspaceSize>, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let row = server.engine.store().workspace(access.workspace).await?;
    let row = row.ok_or_else(|| Problem::not_found("workspace", &name))?;
    let sizes = server.engine.sizes(access.workspace).await?;
    let due_runs = match kept_for(&row) {
        Some(kept) => {
            let before = server.engine.env().now().before(kept);
            server.engine.old_runs(access.workspace, before).await?.runs
        }
        None => 0,
    };
    Ok(Json(WorkspaceSize {
        bytes: sizes.event_bytes + sizes.content_bytes + sizes.audit_bytes,
        runs: sizes.runs,
        open_runs: sizes.open,
        erased_runs: sizes.erased,
        events: sizes.events,
        event_bytes: sizes.event_bytes,
        contents: sizes.contents,
        content_bytes: sizes.content_bytes,
        audit_bytes: sizes.audit_bytes,
        keep_runs: super::workspaces::keep_runs(&row),
        due_runs,
    }))
}

fn before(server: &Server, text: &str) -> Result<Time, Problem> {
    moment(text, server.engine.env().now())
        .map_err(|why| Problem::invalid("Nothing was looked for or changed.").error("/before", why))
}

/// Which runs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Old {
    /// They ended before this: `90d` ago, a day, or a time.
    before: String,
}

/// Every run that ended before a moment and is not erased, as one file that `adjutant audit verify FILE` can check anywhere.
/// Nothing is erased. A file without its last line was cut short. For admins; it is recorded that it was taken.
#[utoipa::path(get, operation_id = "archive_workspace", path = "/workspaces/{workspace}/archive", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name"), Old), responses((status = 200, description = "JSON lines", body = String, content_type = "application/x-ndjson")))]
async fn archive(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(old): Asked<Old>,
) -> Result<Response, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let before = before(&server, &old.before)?;
    let archive = server.engine.archive(access.workspace, access.user, before).await?;
    let parts = futures::stream::unfold(Some(archive), |archive| async {
        let mut archive: Archive = archive?;
        match archive.next().await {
            Ok(lines) => lines.map(|lines| (lines, Some(archive))),
            Err(error) => {
                tracing::error!(%error, "an archive is cut short");
                None
            }
        }
    });
    let bytes = futures::StreamExt::map(parts, |mut lines| {
        // So that the last line ends, too.
        lines.push(String::new());
        Ok::<_, Infallible>(Bytes::from(lines.join("\n")))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"archive.jsonl\""),
    ];
    Ok((StatusCode::OK, headers, axum::body::Body::from_stream(bytes)).into_response())
}

/// What is to be erased: either `before`, or `runs`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Erasure {
    /// What was said in runs that ended before this: `90d` ago, a day, or a time.
    before: Option<String>,
    /// What was said in these runs, at most 200: those of an archive.
    #[schema(value_type = Option<Vec<String>>, max_items = 200)]
    runs: Option<Vec<RunId>>,
    /// Does it; without, it is only said what would be erased.
    #[serde(default)]
    confirm: bool,
}

/// What was erased, or would be.
#[derive(Serialize, ToSchema)]
struct ErasureReport {
    /// Whether it was done.
    erased: bool,
    /// The moment that was meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Moment>,
    /// Runs.
    runs: u64,
    /// Events whose words are gone; 0 when nothing was done.
    bodies: u64,
    /// Bytes that are freed, as they are stored; only when nothing was done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Runs from that time that have not ended or wait for a decision, and stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_runs: Option<u64>,
    /// Whether there is more: send it again.
    more: bool,
}

/// Erases what was said in runs that have ended, at most 200 at a time, the oldest first; or says what would be erased. Chains
/// still verify, and the runs stay on the list. For admins; it is recorded before it begins and after it has ended.
#[utoipa::path(post, operation_id = "erase_workspace", path = "/workspaces/{workspace}/erase", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name")), request_body = Erasure, responses((status = 200, description = "What was erased, or would be", body = ErasureReport)))]
async fn erase(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<Erasure>,
) -> Result<Json<ErasureReport>, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let (engine, workspace) = (&server.engine, access.workspace);
    let (part, meant) = match (body.before, body.runs) {
        (Some(text), None) => {
            let before = before(&server, &text)?;
            if !body.confirm {
                let old = engine.old_runs(workspace, before).await?;
                return Ok(Json(ErasureReport {
                    erased: false,
                    before: Some(before.into()),
                    runs: old.runs,
                    bodies: 0,
                    bytes: Some(old.bytes),
                    open_runs: Some(old.open),
                    more: old.runs > 0,
                }));
            }
            let most = u32::try_from(PART).unwrap_or(u32::MAX);
            (engine.erase_old(workspace, Actor::User(access.user), before, most).await?, Some(before))
        }
        (None, Some(runs)) if runs.len() <= PART && body.confirm => {
            (engine.erase_these(workspace, access.user, &runs).await?, None)
        }
        (None, Some(_)) => {
            let why = format!("at most {PART} runs, with `confirm`");
            return Err(Problem::invalid("Nothing was erased.").error("/runs", why));
        }
        (None, None) | (Some(_), Some(_)) => {
            return Err(Problem::invalid("Nothing was erased.").error("/before", "say either `before` or `runs`"));
        }
    };
    Ok(Json(ErasureReport {
        erased: true,
        before: meant.map(Moment::from),
        runs: part.runs,
        bodies: part.bodies,
        bytes: None,
        open_runs: None,
        more: part.more,
    }))
}
