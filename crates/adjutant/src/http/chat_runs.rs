//! `GET /chats/{chat}?include=`: what comes with a chat.

use adjutant_engine::is_erased;
use adjutant_engine::store::row::{ChatRow, RunFilter};
use serde::Serialize;
use utoipa::ToSchema;

use super::chats::RUNS;
use super::problem::Problem;
use super::server::Server;
use super::shape::EventLine;
use crate::wire::{self, RunLine, Texts, WireEvent};

/// Events that come with a chat, in all: more are read run by run.
const EVENTS: u64 = 1_000;

/// A run of a chat.
#[derive(Serialize, ToSchema)]
pub(super) struct ChatRun {
    #[serde(flatten)]
    run: RunLine,
    /// Its events, as its stream sends them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<EventLine>>)]
    events: Option<Vec<WireEvent>>,
}

/// The newest runs of a chat, newest first, with the events of as many as there is room for.
pub(super) async fn of(server: &Server, chat: &ChatRow, with_events: bool) -> Result<Vec<ChatRun>, Problem> {
    let filter = RunFilter { chat: Some(chat.id), ..RunFilter::default() };
    let rows = server.engine.store().runs(chat.workspace, &filter, RUNS).await?;
    // The same name as in the list of all runs.
    let agents = server.engine.store().agents(chat.workspace).await?;
    let agent =
        agents.into_iter().find(|row| row.id == chat.agent).map_or_else(|| chat.agent.to_string(), |row| row.slug);
    let mut left = if with_events { EVENTS } else { 0 };
    let mut runs = Vec::new();
    for row in rows {
        // Whole, or not at all: a part would be taken for all of it.
        let events = if is_erased(&row) || row.head.seq > left {
            None
        } else {
            left -= row.head.seq;
            let recorded = server.engine.recorded(chat.workspace, row.id, 0, Some(row.head.seq)).await?;
            let texts = Texts::load(&server.engine, chat.workspace, recorded.iter().map(|item| &item.event)).await?;
            Some(recorded.iter().filter_map(|item| wire::event(row.id, item, &texts)).collect())
        };
        runs.push(ChatRun { run: wire::run(&row, &agent), events });
    }
    Ok(runs)
}
