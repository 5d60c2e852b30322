//! A run that is started over HTTP: answered as a stream, after a while, or at once.

use std::collections::BTreeMap;
use std::time::Duration;

use adjutant_core::budget::micros;
use adjutant_core::guard::policy::Autonomy;
use adjutant_core::id::{ChatId, NotebookId, RunId};
use adjutant_core::run::event::Effects;
use adjutant_core::run::status::Status;
use adjutant_engine::store::row::{AgentRow, RunRow};
use adjutant_engine::{Heard, StartRun, WhenBusy};
use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use utoipa::{IntoParams, ToSchema};

use super::door::{Access, Signed};
use super::frame::overloaded;
use super::problem::Problem;
use super::server::Server;
use super::stream::{stream, wants_stream};
use super::waiting::{self, WaitingMessage};

/// The longest a request waits for a run, in seconds.
pub(super) const LONGEST_WAIT: u64 = 60;

/// How to wait for the run.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    /// Seconds to wait for the run to end or ask, up to 60.
    pub(super) wait: Option<u64>,
}

/// What a run is started from.
pub(super) struct Started {
    pub(super) agent: AgentRow,
    pub(super) chat: Option<ChatId>,
    pub(super) notebook: Option<NotebookId>,
    pub(super) message: String,
    pub(super) attachments: Vec<AttachedFile>,
    pub(super) model: Option<String>,
    pub(super) max_cost_usd: Option<f64>,
    pub(super) max_turns: Option<u32>,
    pub(super) provider_key_id: Option<String>,
    pub(super) autonomy: Option<Mode>,
    pub(super) output_schema: Option<Value>,
    pub(super) when_busy: WhenBusy,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) cancel_on_disconnect: bool,
}

/// A file that comes with a message.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AttachedFile {
    /// Its path in the notebook of the chat, where it has to be already.
    pub(super) path: String,
}

/// How freely a run acts: it lowers what the agent may do by itself, and never raises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// It only reads; everything else is refused.
    Plan,
    /// Every call asks.
    None,
    /// Reads are free, the rest asks.
    Low,
    /// Reads, creates and undoable writes are free.
    Medium,
    /// Only what cannot be undone asks.
    High,
    /// As the agent.
    Full,
}

impl Mode {
    const fn autonomy(self) -> Option<Autonomy> {
        match self {
            Self::Plan => None,
            Self::None => Some(Autonomy::None),
            Self::Low => Some(Autonomy::Low),
            Self::Medium => Some(Autonomy::Medium),
            Self::High => Some(Autonomy::High),
            Self::Full => Some(Autonomy::Full),
        }
    }
}

/// A run that begins.
#[derive(Serialize, ToSchema)]
pub(super) struct Begins {
    id: String,
    chat_id: String,
    agent_id: String,
    /// Where it is.
    status: String,
    /// Where its events are.
    event_stream: String,
}

impl Begins {
    fn of(row: &RunRow) -> Self {
        Self {
            id: row.id.to_string(),
            chat_id: row.chat.to_string(),
            agent_id: row.agent.to_string(),
            status: row.state.status.clone(),
            event_stream: format!("/api/v1/runs/{}/events", row.id),
        }
    }
}

/// A run that begins, or a message that waits until its chat is free.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Begun {
    Run(Begins),
    Waits(WaitingMessage),
}

/// Starts a run and answers in the form that was asked for.
pub(super) async fn begin(
    server: &Server,
    signed: &Signed,
    access: Access,
    headers: &HeaderMap,
    wait: Wait,
    started: Started,
) -> Result<Response, Problem> {
    check_metadata(&started.metadata)?;
    if started.max_cost_usd.is_some_and(|usd| !(0.0..=1e9).contains(&usd)) {
        return Err(Problem::invalid("Nothing was started.").error("/max_cost_usd", "is no amount of dollars"));
    }
    if started.max_turns == Some(0) {
        return Err(Problem::invalid("Nothing was started.").error("/max_turns", "a run has at least one turn"));
    }
    let unknown = |id: &String| Problem::not_found("key", id);
    let named = started.provider_key_id.as_ref();
    let key = named.map(|id| id.parse().map_err(|_| unknown(id))).transpose()?;
    let ask = StartRun {
        id: None,
        key,
        user: access.user,
        agent: started.agent.id,
        chat: started.chat,
        notebook: started.notebook,
        message: started.message,
        attachments: started.attachments.into_iter().map(|file| file.path).collect(),
        model: started.model,
        max_cost: started.max_cost_usd.map(micros),
        max_turns: started.max_turns,
        autonomy: started.autonomy.and_then(Mode::autonomy),
        effects: if started.autonomy == Some(Mode::Plan) { Effects::Dry } else { Effects::Live },
        output_schema: started.output_schema,
        metadata: started.metadata,
    };
    let run = match server.engine.say(access.workspace, ask, started.when_busy).await? {
        Heard::Started(run) => run,
        // There is nothing to stream yet, whatever was asked for.
        Heard::Waits(run) => {
            let location = [(header::LOCATION, format!("/api/v1/runs/{run}"))];
            let row = server.engine.store().waiting_message(access.workspace, run).await?;
            let body = match row {
                Some(row) => Begun::Waits(waiting::shown(&row)),
                // The chat was free in the same moment.
                None => Begun::Run(Begins::of(&server.engine.run_row(access.workspace, run).await?)),
            };
            return Ok((StatusCode::ACCEPTED, location, Json(body)).into_response());
        }
    };
    let on_leave = if started.cancel_on_disconnect { OnLeave::Cancel } else { OnLeave::Nothing };
    answer(server, signed, access, headers, wait, run, on_leave).await
}

/// What becomes of a run when the client that streams it goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnLeave {
    /// It goes on.
    Nothing,
    /// It is cancelled, because the client asked for that.
    Cancel,
}

/// Answers about a run that was just started: as a stream, after a while, or at once.
pub(super) async fn answer(
    server: &Server,
    signed: &Signed,
    access: Access,
    headers: &HeaderMap,
    wait: Wait,
    run: RunId,
    on_leave: OnLeave,
) -> Result<Response, Problem> {
    let location = format!("/api/v1/runs/{run}");
    let mut response = if wants_stream(headers) {
        let streamed = stream(server, signed, access, run, 0).await?;
        match on_leave {
            OnLeave::Nothing => streamed,
            OnLeave::Cancel => super::leave::cancel_on_leave(server, access, run, streamed),
        }
    } else if let Some(seconds) = wait.wait {
        wait_for(server, access, run, Duration::from_secs(seconds.min(LONGEST_WAIT))).await?;
        Json(super::runs::document(server, access, run).await?).into_response()
    } else {
        let row = server.engine.run_row(access.workspace, run).await?;
        (StatusCode::ACCEPTED, Json(Begun::Run(Begins::of(&row)))).into_response()
    };
    if let Ok(location) = location.parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), Problem> {
    let long = |(key, value): (&String, &String)| key.len() > 64 || value.len() > 512;
    if metadata.len() > 16 || metadata.iter().any(long) {
        return Err(
            Problem::invalid("Nothing was started.").error("/metadata", "at most 16 keys of 64, values of 512 bytes")
        );
    }
    Ok(())
}

/// Waits until a run has ended or waits for somebody, but not for ever.
pub(super) async fn wait_for(server: &Server, access: Access, run: RunId, most: Duration) -> Result<(), Problem> {
    let _seat =
        server.streams.clone().try_acquire_owned().map_err(|_| overloaded("Too many requests wait already."))?;
    super::turn::give_back();
    let rests = |status: &str| match Status::parse(status) {
        Some(status) => status.is_end() || matches!(status, Status::WaitingApproval | Status::InDoubt | Status::Paused),
        None => true,
    };
    let waiting = async {
        let row = server.engine.run_row(access.workspace, run).await?;
        let mut line = server.lines.join(&server.engine, access.workspace, run, row.head.seq);
        while !rests(&server.engine.run_row(access.workspace, run).await?.state.status) {
            // Anything that is told may have changed the status. A line ends with its run.
            if matches!(line.recv().await, Err(RecvError::Closed)) {
                break;
            }
        }
        Ok::<_, Problem>(())
    };
    match tokio::time::timeout(most, waiting).await {
        Ok(done) => done,
        Err(_) => Ok(()),
    }
}
