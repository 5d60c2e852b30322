//! A run that is started over HTTP: answered as a stream, after a while, or at once.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use adjutant_core::budget::micros;
use adjutant_core::guard::policy::{Autonomy, is_metadata};
use adjutant_core::id::{ChatId, NotebookId, RunId};
use adjutant_core::options::ToolChoice;
use adjutant_core::run::event::Effects;
use adjutant_core::run::status::Status;
use adjutant_engine::store::row::{AgentRow, RunRow};
use adjutant_engine::{Heard, StartRun, WhenBusy};
use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::error::RecvError;
use utoipa::{IntoParams, ToSchema};

use super::door::{Access, Signed};
use super::problem::Problem;
use super::server::Server;
use super::sight::{RECHECK, Sight};
use super::stream::{every, seat, stream, wants_stream};
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
    pub(super) debug: bool,
    pub(super) seed: Option<u32>,
    pub(super) tool_choice: Option<ToolChoice>,
    pub(super) when_busy: WhenBusy,
    pub(super) metadata: BTreeMap<String, String>,
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
    Waits(Box<WaitingMessage>),
}

/// How a request that starts a run is answered, with the place that this takes. It is chosen before anything is done, so that a
/// server that has no place has started nothing.
pub(super) enum Form {
    /// As a stream.
    Streamed(OwnedSemaphorePermit),
    /// After a while.
    Waited(OwnedSemaphorePermit, Duration),
    /// At once.
    Told,
}

impl Form {
    /// What the client asks for.
    ///
    /// # Errors
    /// 503 when there is no place.
    pub(super) fn of(server: &Server, headers: &HeaderMap, wait: Wait) -> Result<Self, Problem> {
        if wants_stream(headers) {
            return Self::streamed(server);
        }
        wait.wait.map_or(Ok(Self::Told), |seconds| Self::waited(server, seconds))
    }

    pub(super) fn streamed(server: &Server) -> Result<Self, Problem> {
        Ok(Self::Streamed(seat(server)?))
    }

    pub(super) fn waited(server: &Server, seconds: u64) -> Result<Self, Problem> {
        Ok(Self::Waited(seat(server)?, Duration::from_secs(seconds.min(LONGEST_WAIT))))
    }
}

/// Starts a run, or lets its message wait.
pub(super) async fn begin(server: &Server, access: Access, started: Started) -> Result<Heard, Problem> {
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
        debug: started.debug,
        seed: started.seed,
        tool_choice: started.tool_choice,
        metadata: started.metadata,
    };
    Ok(server.engine.say(access.workspace, ask, started.when_busy).await?)
}

/// Answers about what was just said, in the form that was asked for.
pub(super) async fn reply(
    server: &Server,
    signed: &Signed,
    access: Access,
    form: Form,
    heard: Heard,
    on_leave: OnLeave,
) -> Result<Response, Problem> {
    match heard {
        Heard::Started(run) => answer(server, signed, access, form, run, on_leave).await,
        // There is nothing to stream yet, whatever was asked for.
        Heard::Waits(run) => {
            let location = [(header::LOCATION, format!("/api/v1/runs/{run}"))];
            let row = server.engine.store().waiting_message(access.workspace, run).await?;
            let body = match row {
                Some(row) => Begun::Waits(Box::new(waiting::shown(&row))),
                // The chat was free in the same moment.
                None => Begun::Run(Begins::of(&server.engine.run_row(access.workspace, run).await?)),
            };
            Ok((StatusCode::ACCEPTED, location, Json(body)).into_response())
        }
    }
}

/// What becomes of a run when the client that streams it goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnLeave {
    /// It goes on.
    Nothing,
    /// It is cancelled, because the client asked for that.
    Cancel,
}

impl OnLeave {
    pub(super) const fn cancel_if(asked: bool) -> Self {
        if asked { Self::Cancel } else { Self::Nothing }
    }
}

/// Answers about a run that was just started: as a stream, after a while, or at once.
pub(super) async fn answer(
    server: &Server,
    signed: &Signed,
    access: Access,
    form: Form,
    run: RunId,
    on_leave: OnLeave,
) -> Result<Response, Problem> {
    let location = format!("/api/v1/runs/{run}");
    let mut response = match form {
        Form::Streamed(seat) => {
            let streamed = stream(server, seat, signed, access, run, 0).await?;
            match on_leave {
                OnLeave::Nothing => streamed,
                OnLeave::Cancel => super::leave::cancel_on_leave(server, access, run, streamed),
            }
        }
        Form::Waited(seat, most) => {
            wait_for(server, seat, signed, access, run, most).await?;
            Json(super::runs::document(server, access, run).await?).into_response()
        }
        Form::Told => {
            let row = server.engine.run_row(access.workspace, run).await?;
            (StatusCode::ACCEPTED, Json(Begun::Run(Begins::of(&row)))).into_response()
        }
    };
    if let Ok(location) = location.parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Refuses free fields that are too many or too long; says what was not done because of that.
pub(super) fn check_metadata(metadata: &BTreeMap<String, String>, not_done: &str) -> Result<(), Problem> {
    if is_metadata(metadata) {
        return Ok(());
    }
    Err(Problem::invalid(not_done).error("/metadata", "at most 16 keys of 1 to 64 bytes, values of up to 512"))
}

/// Waits until a run has ended or waits for somebody, but not for ever: neither longer than whoever waits may see it, nor longer
/// than the server is there.
///
/// # Errors
/// When they may not see it any more.
pub(super) async fn wait_for(
    server: &Server,
    seat: OwnedSemaphorePermit,
    signed: &Signed,
    access: Access,
    run: RunId,
    most: Duration,
) -> Result<(), Problem> {
    super::turn::give_back();
    let row = server.engine.run_row(access.workspace, run).await?;
    let sight = Sight::of(signed, access, &row);
    // A time that is over ends the wait and not the request: whoever waited is told how things stand.
    let waited = tokio::time::timeout(most, until_it_rests(server, &sight, access, &row)).await;
    drop(seat);
    waited.unwrap_or(Ok(()))?;
    sight.lasts(server).await
}

async fn until_it_rests(server: &Server, sight: &Sight, access: Access, row: &RunRow) -> Result<(), Problem> {
    let rests = |status: &str| match Status::parse(status) {
        Some(status) => status.is_end() || matches!(status, Status::WaitingApproval | Status::InDoubt | Status::Paused),
        None => true,
    };
    let mut line = server.lines.join(&server.engine, access.workspace, row.id, row.head.seq);
    let (mut recheck, mut closing) = (every(RECHECK), server.closing.clone());
    let mut stops = pin!(async {
        let _ = closing.wait_for(|closing| *closing).await;
    });
    while !rests(&server.engine.run_row(access.workspace, row.id).await?.state.status) {
        loop {
            tokio::select! {
                // A line ends with its run.
                told = line.recv() => match told {
                    Err(RecvError::Closed) => return Ok(()),
                    Ok(frame) if !frame.rests => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => break,
                },
                _ = recheck.tick() => sight.lasts(server).await?,
                () = &mut stops => return Ok(()),
            }
        }
    }
    Ok(())
}
