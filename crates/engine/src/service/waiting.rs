//! Messages to a busy chat: refused, or kept until the chat is free. A kept one has the id of the run it will be.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use adjutant_core::guard::policy::Autonomy;
use adjutant_core::id::{AgentId, ChatId, RunId, WorkspaceId};
use adjutant_core::limits;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::event::Effects;
use adjutant_store::row::WaitingRow;
use serde::{Deserialize, Serialize};

use super::start::StartRun;
use crate::engine::Engine;
use crate::error::EngineError;

/// Chats looked at in one go.
const CHATS: u32 = 64;

/// What becomes of a message to a chat whose last run has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// It is refused.
    #[default]
    Refuse,
    /// It waits for its turn.
    Queue,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It is a run.
    Started(RunId),
    /// It waits, and will be this run.
    Waits(RunId),
}

/// What is kept of a message.
#[derive(Serialize, Deserialize)]
struct Kept {
    agent: AgentId,
    message: String,
    model: Option<String>,
    max_cost: Option<MicroUsd>,
    autonomy: Option<Autonomy>,
    effects: Effects,
    metadata: BTreeMap<String, String>,
}

impl Engine {
    /// Says something in a chat, or keeps it until the chat is free.
    ///
    /// # Errors
    /// Those of a start; [`EngineError::Busy`] when it is not to wait, or too many wait already.
    pub async fn say(&self, workspace: WorkspaceId, ask: StartRun, busy: WhenBusy) -> Result<Heard, EngineError> {
        let (Some(chat), WhenBusy::Queue) = (ask.chat, busy) else {
            return self.start_run(workspace, ask).await.map(Heard::Started);
        };
        // Whoever came first is heard first.
        let waiting = self.store().waiting_in(workspace, chat, limits::MESSAGES_WAITING).await?;
        if waiting.is_empty() {
            match self.start_run(workspace, ask.clone()).await {
                Err(EngineError::Busy(_)) => {}
                other => return other.map(Heard::Started),
            }
        } else {
            self.check_start(workspace, &ask).await?;
        }
        let tip = self.store().chat(workspace, chat).await?.and_then(|chat| chat.tip);
        if waiting.len() >= limits::MESSAGES_WAITING as usize {
            return Err(tip.map_or_else(|| EngineError::not_found("chat", chat), EngineError::Busy));
        }
        let (id, created_at, person) = (self.env().id::<RunId>(), self.env().now(), ask.user);
        let kept = Kept {
            agent: ask.agent,
            message: ask.message,
            model: ask.model,
            max_cost: ask.max_cost,
            autonomy: ask.autonomy,
            effects: ask.effects,
            metadata: ask.metadata,
        };
        let body = serde_json::to_string(&kept).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        self.store().add_waiting(&WaitingRow { id, workspace, chat, person, created_at, body }).await?;
        self.waiting().store(true, Ordering::SeqCst);
        // It may have become free in the meantime.
        self.start_waiting_in(workspace, chat).await?;
        let started = self.store().run(workspace, id).await?.is_some();
        Ok(if started { Heard::Started(id) } else { Heard::Waits(id) })
    }

    /// Starts what waits in chats that are free. Says whether somebody still waits.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn start_waiting(&self) -> Result<bool, EngineError> {
        let chats = self.store().chats_waited_for(CHATS).await?;
        for (workspace, chat, free) in &chats {
            if *free && let Err(error) = self.start_waiting_in(*workspace, *chat).await {
                tracing::warn!(%chat, %error, "a message waits on: it cannot be started");
            }
        }
        Ok(!chats.is_empty())
    }

    /// Starts the first message that waits in a chat, if the chat is free. A message that cannot be started waits on.
    async fn start_waiting_in(&self, workspace: WorkspaceId, chat: ChatId) -> Result<(), EngineError> {
        while let Some(row) = self.store().waiting_in(workspace, chat, 1).await?.pop() {
            if self.store().run(workspace, row.id).await?.is_none() {
                let kept: Kept = serde_json::from_str(&row.body)
                    .map_err(|bad| EngineError::Invalid(format!("a message that waits cannot be read: {bad}")))?;
                let ask = StartRun {
                    id: Some(row.id),
                    user: row.person,
                    agent: kept.agent,
                    chat: Some(chat),
                    notebook: None,
                    message: kept.message,
                    model: kept.model,
                    max_cost: kept.max_cost,
                    autonomy: kept.autonomy,
                    effects: kept.effects,
                    metadata: kept.metadata,
                };
                match self.start_run(workspace, ask).await {
                    Ok(_) => {}
                    // The chat is still taken, or was taken again.
                    Err(EngineError::Busy(_)) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            // It is a run now. A crash before this line is found out by looking for the run.
            self.store().remove_waiting(workspace, row.id).await?;
        }
        Ok(())
    }
}
