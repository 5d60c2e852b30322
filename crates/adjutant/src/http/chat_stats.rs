//! `/chats/{chat}/stats`: what a chat amounts to.

use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_engine::store::row::{RunFilter, RunRow};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::Path;
use super::chats::find_chat;
use super::door::Signed;
use super::problem::Problem;
use super::server::Server;
use crate::wire::TokenSum;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(stats))
}

/// What a chat amounts to, over all of its runs.
#[derive(Serialize, ToSchema)]
struct ChatStats {
    runs: usize,
    /// Model turns.
    steps: u64,
    /// Tool calls.
    calls: u64,
    token_usage: TokenSum,
    cost_usd: f64,
    cost_microusd: u64,
}

/// What a chat amounts to.
#[utoipa::path(get, operation_id = "get_chat_stats", path = "/chats/{chat}/stats", tag = "chats", params(("chat" = String, Path, description = "Its id")), responses((status = 200, description = "Numbers", body = ChatStats)))]
async fn stats(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<ChatStats>, Problem> {
    let (access, row) = find_chat(&server, &signed, &name).await?;
    let filter = RunFilter { chat: Some(row.id), superseded: true, ..RunFilter::default() };
    let runs = server.engine.store().runs(access.workspace, &filter, 10_000).await?;
    let sum = |pick: fn(&RunRow) -> u64| runs.iter().map(pick).sum::<u64>();
    let cost = MicroUsd(sum(|run| run.state.cost.0));
    let usage = TokenUsage {
        input: sum(|run| run.state.usage.input),
        output: sum(|run| run.state.usage.output),
        cached: sum(|run| run.state.usage.cached),
        reasoning: sum(|run| run.state.usage.reasoning),
        cache_write: sum(|run| run.state.usage.cache_write),
    };
    Ok(Json(ChatStats {
        runs: runs.len(),
        steps: sum(|run| run.state.turns.into()),
        calls: sum(|run| run.state.calls.into()),
        token_usage: usage.into(),
        cost_usd: cost.dollars(),
        cost_microusd: cost.0,
    }))
}
