//! Every answer that is not what was asked for: RFC 9457 problems. Each says what happened, what was not done and what to do
//! next; what the machine said goes to the log and never to the client.

mod kind;
mod page;

use std::time::Duration;

use adjutant_core::causes::causes;
use adjutant_core::run::command::Refusal;
use adjutant_engine::EngineError;
use adjutant_engine::models::ModelError;
use adjutant_engine::store::StoreError;
use adjutant_engine::tools::FileError;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

pub(super) use self::kind::Kind;
pub(super) use self::page::page;
use crate::failure::sentence;

tokio::task_local! {
    /// The request that is being answered.
    pub(super) static TRACE: String;
}

/// An answer that is not what was asked for.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    kind: Kind,
    status: StatusCode,
    detail: String,
    hint: Option<String>,
    errors: Vec<(String, String)>,
    retry_after: Option<u64>,
    more: Map<String, Value>,
}

impl Problem {
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            status: kind.status(),
            detail: detail.into(),
            hint: None,
            errors: Vec::new(),
            retry_after: None,
            more: Map::new(),
        }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// One thing that is wrong, and where (a JSON pointer).
    pub(super) fn error(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.errors.push((pointer.into(), detail.into()));
        self
    }

    /// A member of its own.
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        self.more.insert(name.to_owned(), value);
        self
    }

    /// The same under another status: for paths whose clients know no other.
    pub(super) fn answered_as(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(super) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// There is no such thing here, or it is somebody else's: the two cannot be told apart.
    pub(super) fn not_found(what: &str, name: &str) -> Self {
        Self::new(Kind::NotFound, format!("There is no {what} `{}` that you may see.", shortened(name)))
            .hint("look at the list it should be in; what belongs to others is not shown")
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Kind::ValidationFailed, detail)
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, detail)
    }

    pub(super) fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }
}

/// What a client sent, short enough to be sent back.
fn shortened(text: &str) -> String {
    let shown: String = text.chars().filter(|letter| !letter.is_control()).take(80).collect();
    if shown.len() < text.len() { format!("{shown}…") } else { shown }
}

impl Problem {
    /// The problem as JSON.
    pub(super) fn shown(&self) -> Value {
        let mut body = Map::from_iter([
            ("type".to_owned(), json!(format!("/problems/{}", self.kind.code()))),
            ("title".to_owned(), json!(self.kind.title())),
            ("status".to_owned(), json!(self.status.as_u16())),
            ("detail".to_owned(), json!(self.detail)),
            ("code".to_owned(), json!(self.kind.code())),
        ]);
        if let Some(hint) = self.hint.as_deref().or(self.kind.next()) {
            body.insert("hint".to_owned(), json!(hint));
        }
        if let Ok(trace) = TRACE.try_with(Clone::clone) {
            body.insert("trace_id".to_owned(), json!(trace));
        }
        if !self.errors.is_empty() {
            let errors = self.errors.iter().map(|(pointer, detail)| json!({"pointer": pointer, "detail": detail}));
            body.insert("errors".to_owned(), errors.collect());
        }
        body.extend(self.more.clone());
        Value::Object(body)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let bytes = serde_json::to_vec(&self.shown()).unwrap_or_default();
        let mut response = (self.status, bytes).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.kind == Kind::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"adjutant\""));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(HeaderName::from_static("retry-after"), HeaderValue::from(seconds));
        }
        response
    }
}

fn content_blocked(error: &EngineError) -> Problem {
    let what = format!("{} Nothing was started, and it was recorded.", sentence(&error.to_string()));
    Problem::new(Kind::ContentBlocked, what).hint("say it without that")
}

/// Whole seconds, at least one.
fn seconds(span: Duration) -> u64 {
    span.as_secs() + 1
}

impl From<EngineError> for Problem {
    #[allow(clippy::too_many_lines, reason = "one arm for each thing that can go wrong")]
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NotFound { what, name } => Self::not_found(what, &name),
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::Busy(run) => Self::new(Kind::Busy, format!("The chat is busy with {run}. Nothing was done."))
                .hint(format!("wait for /api/v1/runs/{run}, or cancel it, then send the message again"))
                .with("run_id", json!(run)),
            EngineError::InUse { what, run } => {
                Self::new(Kind::Busy, format!("The {what} is in use by {run}. Nothing was taken away."))
                    .hint(format!("wait for /api/v1/runs/{run}, or cancel it, then ask again"))
                    .with("run_id", json!(run))
            }
            EngineError::Unauthenticated => Self::new(
                Kind::Unauthenticated,
                "You are not signed in, or what you signed in with is not good (any more). Nothing was done.",
            )
            .hint("sign in again, or send `Authorization: Bearer adj_…` with a token that is good"),
            EngineError::TooMany { retry_after } => {
                let wait = seconds(retry_after);
                Self::new(Kind::RateLimited, format!("That was tried too often. Nothing was done; wait {wait} s."))
                    .retry_after(wait)
            }
            EngineError::Taken { what, .. } => {
                let hint = if what == "notebook on the folder" {
                    "use that one, it is the same folder"
                } else {
                    "choose another name"
                };
                Self::new(Kind::Conflict, format!("{} Nothing was written.", sentence(&error.to_string()))).hint(hint)
            }
            EngineError::ContentBlocked { .. } => content_blocked(&error),
            EngineError::AgentInactive(slug) => {
                Self::new(Kind::AgentInactive, format!("The agent `{slug}` is switched off. Nothing was started."))
                    .hint(format!(
                        "switch it on (POST /api/v1/agents/{slug}/activate?active=true), or choose another agent"
                    ))
            }
            EngineError::OutOfScope { .. } => {
                Self::new(Kind::ScopeViolation, format!("{} Nothing was done.", sentence(&error.to_string())))
                    .hint("choose another notebook, or let whoever may change the agent add it to scope.notebooks")
            }
            EngineError::RateLimited { agent, wait } => {
                let what =
                    format!("The agent `{agent}` has used up its model calls of this hour. Nothing was started.");
                Self::new(Kind::RateLimited, what)
                    .hint("wait, or let an admin raise max_requests_per_hour of the agent")
                    .retry_after(seconds(wait))
            }
            EngineError::BudgetExhausted { whose, period, until, .. } => {
                let text = format!("{} Nothing was started.", sentence(&error.to_string()));
                Self::new(Kind::BudgetExhausted, text)
                    .hint(format!("wait, or let an admin raise the budget of the {whose} for the {period}"))
                    .with("resumes_at", json!(until))
            }
            EngineError::PriceUnknown { .. } => {
                let text = format!("{} Nothing was asked.", sentence(&error.to_string()));
                Self::new(Kind::PriceUnknown, text).hint(crate::failure::GIVE_PRICE)
            }
            EngineError::Invalid(why) => Self::invalid(format!("{} Nothing was done.", sentence(&why))),
            EngineError::InvalidAgent(problems) => {
                let start = Self::invalid("The agent cannot be saved; it stays as it was.");
                problems.into_iter().fold(start, |problem, found| {
                    // `scope.folders[0]` is where a person looks, `/scope/folders/0` where a program does.
                    let pointer = found.field.replace(['.', '['], "/").replace(']', "");
                    problem.error(format!("/{pointer}"), found.detail)
                })
            }
            EngineError::InvalidRule(problems) => {
                let start = Self::invalid("The rule cannot be saved. Nothing was written.");
                problems.into_iter().fold(start, |problem, found| problem.error("", found))
            }
            EngineError::BadLog { run, why } => {
                tracing::error!(%run, why, "a log cannot be followed");
                Self::new(Kind::Internal, format!("The log of {run} cannot be followed. The run is left as it is."))
                    .hint("the operator finds the reason with: adjutant audit verify")
            }
            EngineError::Erased { run } => {
                Self::new(Kind::Erased, format!("What happened in {run} was erased. Its chain still verifies."))
                    .hint("an archive, if one was taken before, holds it")
            }
            EngineError::Notebook { name, why } => {
                tracing::warn!(notebook = name, why, "a notebook cannot be opened");
                let text = format!("The notebook `{name}` cannot be opened. Nothing was read or written there.");
                Self::new(Kind::Unavailable, text).hint("the operator finds the reason with: adjutant doctor")
            }
            EngineError::File { path, why } => file(&path, &why),
            EngineError::Halted { reason } => {
                Self::new(Kind::Halted, format!("Everything is stopped here: {reason}. Nothing was started."))
                    .hint("an admin lets it go on (DELETE /api/v1/workspaces/{workspace}/halt)")
            }
            EngineError::Model(error) => provider(&error),
            EngineError::Store(error) => error.into(),
        }
    }
}

/// What a provider did not do. What is displayed of its error is fit for anybody.
fn provider(error: &ModelError) -> Problem {
    let detail = format!("{} Nothing was made.", sentence(&error.to_string()));
    let problem = match error {
        ModelError::Timeout { .. } => Problem::new(Kind::ProviderTimeout, detail),
        ModelError::UnknownModel { .. } | ModelError::Broken { .. } => return Problem::invalid(detail),
        _ => Problem::new(Kind::ProviderError, detail),
    };
    match error.retry_after() {
        Some(wait) => problem.retry_after(seconds(wait)),
        None => problem,
    }
}

/// Why a file was not read or changed.
fn file(path: &str, why: &FileError) -> Problem {
    let detail = format!("`{}` was left as it is: {why}.", shortened(path));
    match why {
        FileError::NotFound => Problem::not_found("file", path),
        FileError::Changed => {
            Problem::new(Kind::StaleVersion, detail).hint("read it again, then send your change with its new ETag")
        }
        FileError::Exists => Problem::new(Kind::StaleVersion, detail)
            .hint("choose another path, or read what is there and send your change with its ETag"),
        FileError::IsFolder => Problem::new(Kind::Conflict, detail).hint("name a file in it"),
        FileError::NotAFolder => Problem::new(Kind::Conflict, detail).hint("choose a path below a folder"),
        FileError::NotEmpty => Problem::new(Kind::Conflict, detail).hint("delete what is in it first"),
        FileError::TooLarge { .. } => Problem::new(Kind::TooLarge, detail),
        FileError::NotAFile
        | FileError::Symlink
        | FileError::Escapes
        | FileError::NotText
        | FileError::Reserved
        | FileError::Denied => Problem::forbidden(detail),
        FileError::Full | FileError::ReadOnly => {
            Problem::new(Kind::Unavailable, detail).hint("the operator has to make room, or make the folder writable")
        }
        FileError::Unconfirmed(_) | FileError::Lost | FileError::TooLate | FileError::Io(_) => {
            tracing::error!(path, %why, "a file could not be used");
            Problem::new(Kind::Unavailable, format!("`{}` could not be used.", shortened(path)))
                .hint("read it again; the operator finds the reason in the log")
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let detail = format!("{} Nothing was recorded.", sentence(&refusal.to_string()));
        match refusal {
            Refusal::NoSuchApproval => Self::not_found("approval", "of this kind"),
            Refusal::AlreadyDecided(decided) => Self::new(Kind::AlreadyDecided, detail).with(
                "decision",
                json!({"decision": decided.decision, "decided_by": crate::wire::actor(&decided.by), "scope": decided.scope}),
            ),
            Refusal::Superseded => Self::new(Kind::AlreadyDecided, detail),
            Refusal::Expired => Self::new(Kind::Expired, detail),
            Refusal::StaleFingerprint => {
                Self::new(Kind::StaleVersion, detail).hint("read the approval again and decide about what it shows now")
            }
            Refusal::ScopeNotOffered => Self::invalid(detail).hint("allowed_scopes of the approval says what is offered"),
            Refusal::BadArguments(_) | Refusal::BadSpan(_) | Refusal::NoMessage => Self::invalid(detail),
            Refusal::Ended(_) => Self::new(Kind::Conflict, detail).hint("start another run, or fork this one"),
            Refusal::NotInDoubt | Refusal::NotPaused => {
                Self::new(Kind::Conflict, detail).hint("read the run: its status says what it waits for")
            }
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Stale { .. } => {
                Self::new(Kind::StaleVersion, "It has changed since you read it. Nothing was written.")
                    .hint("read it again, then send your change with its new ETag")
            }
            StoreError::Conflict(_) => {
                Self::new(Kind::Conflict, "Something of this name is there already. Nothing was written.")
                    .hint("choose another name")
            }
            StoreError::UsedUp(_) => {
                Self::new(Kind::RateLimited, "That was done too often. Nothing was written.").retry_after(1)
            }
            StoreError::Overspent(_) => Self::new(Kind::BudgetExhausted, "A budget is used up. Nothing was written."),
            StoreError::NotFound => Self::not_found("thing", "of this name"),
            StoreError::Unavailable(_) => {
                tracing::warn!(error = %causes(&error), "the database is unavailable");
                Self::new(Kind::Overloaded, "The database does not answer at the moment. Nothing was done.")
                    .hint("try again in a moment")
                    .retry_after(2)
            }
            StoreError::Full(_) | StoreError::ReadOnly(_) => {
                tracing::error!(error = %causes(&error), "the database cannot be written");
                Self::new(Kind::Unavailable, "The server cannot write at the moment. Nothing was done.")
                    .hint("the operator has to make room, or make the data directory writable")
                    .retry_after(30)
            }
            StoreError::Corrupt(_)
            | StoreError::NewerSchema { .. }
            | StoreError::OtherBuild
            | StoreError::WrongKey
            | StoreError::Other(_) => {
                tracing::error!(error = %causes(&error), "the database failed");
                Self::new(Kind::Internal, "The server failed. Whether anything was done is in its log.")
                    .hint("tell the operator the trace_id")
            }
        }
    }
}
