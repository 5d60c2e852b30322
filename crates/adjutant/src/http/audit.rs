//! `/audit`: who did what, for admins; the log of the instance itself for its owner.

use std::convert::Infallible;

use adjutant_core::audit::filter::{self, Wanted};
use adjutant_core::audit::{Act, Deed};
use adjutant_core::run::event::Actor;
use adjutant_engine::{AuditEntry, AuditLog, AuditPage, LogsOf, PageOf, Redaction, Right, Role};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body as JsonBody};
use super::door::{Access, Signed};
use super::page::limit;
use super::problem::{Kind, Problem};
use super::server::Server;
use crate::wire;

/// Entries of an export read at a time.
const PAGE: usize = 500;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(search))
        .routes(routes!(export))
        .routes(routes!(verify))
        .routes(routes!(record_backup))
}

/// What to look for.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Sought {
    /// The workspace (id or short name); your only one without it.
    workspace_id: Option<String>,
    /// As in `agent:guide tool:write_file verdict:deny path:/drafts/** since:7d "some text"`.
    q: Option<String>,
    /// Only about this agent.
    agent: Option<String>,
    /// `allow`, `ask` or `deny`.
    decision: Option<String>,
    /// `7d`, a day, or a time.
    since: Option<String>,
    /// A path, or a pattern of paths.
    path: Option<String>,
    /// Shows what looks like a secret, too. That is recorded.
    raw: Option<bool>,
    /// How many, from 1 to 200.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// Of an export: `jsonl` or `csv`.
    format: Option<String>,
}

/// A search that is allowed.
struct Search {
    access: Access,
    wanted: Wanted,
    page: PageOf,
}

fn search_of(server: &Server, signed: &Signed, sought: &Sought) -> Result<Search, Problem> {
    let access = signed.workspace_or_only(sought.workspace_id.as_deref(), Role::Admin, Right::Admin)?;
    let owner = signed.need_owner().is_ok();
    let now = server.engine.env().now();
    let refused = |parameter: &str, why: String| {
        Problem::invalid("Nothing was searched.")
            .error(parameter, why)
            .hint("agent:guide verdict:deny since:7d \"some text\"")
    };
    let mut wanted = filter::parse(sought.q.as_deref().unwrap_or_default(), now).map_err(|why| refused("q", why))?;
    for (parameter, value) in
        [("agent", &sought.agent), ("decision", &sought.decision), ("since", &sought.since), ("path", &sought.path)]
    {
        if let Some(value) = value {
            wanted.narrow(parameter, value.clone(), now).map_err(|why| refused(parameter, why))?;
        }
    }
    let redaction = if sought.raw == Some(true) { Redaction::Raw } else { Redaction::On };
    let logs = if owner { LogsOf::AndInstance } else { LogsOf::Workspace };
    let limit = limit(sought.limit)? as usize;
    Ok(Search { access, wanted, page: PageOf { limit, cursor: sought.cursor.clone(), redaction, logs } })
}

/// One entry of the audit.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what the engine's entry writes")]
struct AuditRow {
    /// The log it stands in: a run, a workspace, or `sys`.
    stream: String,
    /// Its place there.
    seq: u64,
    /// When.
    #[schema(format = DateTime)]
    time: String,
    /// The kind of the event.
    kind: String,
    /// Who did it; none for an agent or the instance.
    by: Option<String>,
    /// The short name of the agent.
    agent: Option<String>,
    agent_id: Option<String>,
    run_id: Option<String>,
    tool: Option<String>,
    path: Option<String>,
    /// What the guard said of a call.
    verdict: Option<String>,
    /// The rule that stopped it.
    rule: Option<String>,
    /// Whether it failed or was refused.
    is_error: bool,
    /// One line in words.
    summary: String,
    /// What was recorded.
    #[schema(value_type = Object)]
    detail: Value,
    /// Whether that was erased.
    erased: bool,
}

/// A page of the audit.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what the engine's page writes")]
struct AuditRows {
    /// The entries, newest first.
    data: Vec<AuditRow>,
    /// Where the next page begins; none when this is the last.
    next_cursor: Option<String>,
    /// Whether there may be more.
    has_more: bool,
}

/// Who did what, newest first. For admins of the workspace; the owner of the instance also sees its own log.
#[utoipa::path(get, operation_id = "search_audit", path = "/audit", tag = "audit", params(Sought), responses((status = 200, description = "Entries", body = AuditRows)))]
async fn search(
    State(server): State<Server>,
    signed: Signed,
    Asked(sought): Asked<Sought>,
) -> Result<Json<AuditPage>, Problem> {
    let search = search_of(&server, &signed, &sought)?;
    if search.page.redaction == Redaction::Raw {
        let place = format!("in a search of the record: {}", sought.q.as_deref().unwrap_or("everything"));
        server.engine.record_raw(search.access.workspace, search.access.user, place, None).await?;
    }
    Ok(Json(server.engine.search_audit(search.access.workspace, &search.wanted, &search.page).await?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Jsonl,
    Csv,
}

impl Format {
    const fn kind(self) -> &'static str {
        match self {
            Self::Jsonl => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }

    fn line(self, entry: &AuditEntry) -> String {
        match self {
            Self::Jsonl => serde_json::to_string(entry).unwrap_or_default(),
            Self::Csv => wire::audit_row(entry),
        }
    }
}

/// Everything that a search finds, as JSON lines or CSV. It is recorded that it was exported.
#[utoipa::path(get, operation_id = "export_audit", path = "/audit/export", tag = "audit", params(Sought), responses((status = 200, description = "The entries, newest first", content((String = "application/x-ndjson"), (String = "text/csv")))))]
async fn export(
    State(server): State<Server>,
    signed: Signed,
    Asked(sought): Asked<Sought>,
) -> Result<Response, Problem> {
    let format = match sought.format.as_deref() {
        None | Some("jsonl") => Format::Jsonl,
        Some("csv") => Format::Csv,
        Some(_) => {
            return Err(Problem::invalid("Nothing was exported.").error("format", "is neither `jsonl` nor `csv`"));
        }
    };
    let mut search = search_of(&server, &signed, &sought)?;
    // A cursor that is none is refused before anything is recorded or sent.
    search.page.limit = 1;
    server.engine.search_audit(search.access.workspace, &search.wanted, &search.page).await?;
    search.page.limit = PAGE;
    let words = sought.q.clone().unwrap_or_default();
    let act = Act::new(Deed::AuditExported, Some(Actor::User(search.access.user)), words)
        .with("raw", sought.raw.unwrap_or(false));
    server.engine.audit(AuditLog::Workspace(search.access.workspace), act).await?;
    let head = (format == Format::Csv).then(|| format!("{}\n", wire::AUDIT_COLUMNS.join(",")));
    let pages = futures::stream::unfold(Some((server, search)), move |state| async move {
        let (server, mut search) = state?;
        let found = server.engine.search_audit(search.access.workspace, &search.wanted, &search.page).await;
        let page = match found {
            Ok(page) => page,
            Err(error) => {
                tracing::error!(%error, "an export of the audit is cut short");
                return None;
            }
        };
        let text: String = page.data.iter().map(|entry| format.line(entry) + "\n").collect();
        search.page.cursor.clone_from(&page.next_cursor);
        Some((text, page.next_cursor.is_some().then_some((server, search))))
    });
    let lines = futures::StreamExt::chain(futures::stream::iter(head), pages);
    let bytes = futures::StreamExt::map(lines, |text| Ok::<_, Infallible>(Bytes::from(text)));
    let name = if format == Format::Csv {
        "attachment; filename=\"audit.csv\""
    } else {
        "attachment; filename=\"audit.jsonl\""
    };
    let headers = [(header::CONTENT_TYPE, format.kind()), (header::CONTENT_DISPOSITION, name)];
    Ok((StatusCode::OK, headers, Body::from_stream(bytes)).into_response())
}

/// What a check of all logs found.
#[derive(Serialize, ToSchema)]
struct AuditCheck {
    /// Whether everything fits.
    is_whole: bool,
    /// Runs whose logs were walked.
    runs: u64,
    /// Audit logs that were walked.
    logs: u64,
    /// Events of all of them.
    events: u64,
    /// Bodies that were erased.
    erased: u64,
    /// Signed days.
    days: u64,
    /// The last of them.
    last_day: Option<String>,
    /// The public key that signed them.
    key: Option<String>,
    /// What does not fit: `stream` and `reason`.
    #[schema(value_type = Vec<Object>)]
    problems: Value,
}

/// Checks every hash chain and signed day of the instance. Reads every log. For its owner.
#[utoipa::path(get, operation_id = "verify_audit", path = "/audit/verify", tag = "audit", responses((status = 200, description = "What was found", body = AuditCheck)))]
async fn verify(State(server): State<Server>, signed: Signed) -> Result<Json<AuditCheck>, Problem> {
    signed.need_owner()?;
    let found = server.engine.verify_all().await.map_err(|error| match error {
        adjutant_engine::EngineError::BadLog { .. } => Problem::from(error),
        other => Problem::new(Kind::Unavailable, format!("The logs cannot be read to their end: {other}.")),
    })?;
    Ok(Json(AuditCheck {
        is_whole: found.problems.is_empty(),
        runs: found.runs,
        logs: found.logs,
        events: found.events,
        erased: found.erased,
        days: found.days,
        last_day: found.last_day,
        key: found.key,
        problems: serde_json::to_value(&found.problems).unwrap_or_default(),
    }))
}

/// A copy that is about to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewBackup {
    /// The file that it is written to, 1 to 4096 characters.
    file: String,
}

/// Records that a copy of the instance is about to be written to a file. For the owner of the instance.
#[utoipa::path(post, path = "/audit/backups", tag = "audit", request_body = NewBackup, responses((status = 204, description = "Recorded")))]
async fn record_backup(
    State(server): State<Server>,
    signed: Signed,
    JsonBody(body): JsonBody<NewBackup>,
) -> Result<StatusCode, Problem> {
    signed.need_owner()?;
    if !(1..=4096).contains(&body.file.chars().count()) {
        return Err(Problem::invalid("Nothing was recorded.").error("/file", "has 1 to 4096 characters"));
    }
    server.engine.record_backup(signed.caller.user, &body.file).await?;
    Ok(StatusCode::NO_CONTENT)
}
