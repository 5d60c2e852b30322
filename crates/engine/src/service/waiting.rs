//! Messages to a busy chat: refused, or kept until the chat is free. A kept one has the id of the run it will be.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use adjutant_core::guard::policy::Autonomy;
use adjutant_core::id::{AgentId, ChatId, KeyId, RunId, WorkspaceId};
use adjutant_core::limits;
use adjutant_core::money::MicroUsd;
use adjutant_core::options::ToolChoice;
use adjutant_core::run::event::Effects;
use adjutant_store::StoreError;
use adjutant_store::row::WaitingRow;
use serde::{Deserialize, Serialize};

use super::access::Role;
use super::start::StartRun;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::held::Record;

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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<String>,
    model: Option<String>,
    max_cost: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_turns: Option<u32>,
    #[serde(default)]
    key: Option<KeyId>,
    autonomy: Option<Autonomy>,
    effects: Effects,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    debug: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    metadata: BTreeMap<String, String>,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Kept {
    fn read(row: &WaitingRow) -> Result<Self, EngineError> {
        serde_json::from_str(&row.body)
            .map_err(|bad| EngineError::Invalid(format!("a message that waits cannot be read: {bad}")))
    }

    fn write(&self) -> Result<String, EngineError> {
        serde_json::to_string(self).map_err(|bad| EngineError::Invalid(bad.to_string()))
    }
}

impl Engine {
    /// Takes a message back that waits; says whether it still waited.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn take_back(&self, workspace: WorkspaceId, run: RunId) -> Result<bool, EngineError> {
        Ok(self.store().remove_waiting(workspace, run).await?)
    }

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
        if waiting.iter().all(|row| row.failed) {
            match self.start_run(workspace, ask.clone()).await {
                Err(EngineError::Busy(_)) => {}
                other => return other.map(Heard::Started),
            }
        } else {
            self.check_start(workspace, &ask).await?;
        }
        let tip = self.store().chat(workspace, chat).await?.and_then(|chat| chat.tip);
        if waiting.len() >= limits::MESSAGES_WAITING as usize {
            // One that could not be started makes room.
            let failed = waiting.iter().find(|row| row.failed);
            let removed = match failed {
                Some(row) => self.store().remove_waiting(workspace, row.id).await?,
                None => false,
            };
            if !removed {
                return Err(tip.map_or_else(|| EngineError::not_found("chat", chat), EngineError::Busy));
            }
        }
        let (id, created_at, person) = (self.env().id::<RunId>(), self.env().now(), ask.user);
        let kept = Kept {
            agent: ask.agent,
            message: self.held(Record::Run(workspace, ask.agent, ask.user)).await?.clean(&ask.message).into_owned(),
            attachments: ask.attachments,
            model: ask.model,
            max_cost: ask.max_cost,
            max_turns: ask.max_turns,
            key: ask.key,
            autonomy: ask.autonomy,
            effects: ask.effects,
            output_schema: ask.output_schema,
            debug: ask.debug,
            seed: ask.seed,
            tool_choice: ask.tool_choice,
            metadata: ask.metadata,
            failure: None,
        };
        let body = kept.write()?;
        self.store().add_waiting(&WaitingRow { id, workspace, chat, person, created_at, body, failed: false }).await?;
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
        let mut seen = 0;
        // All of the free ones, because those that cannot be started yet stay first.
        loop {
            let chats = self.store().chats_waited_for(CHATS, seen).await?;
            for (workspace, chat, free) in &chats {
                if *free && let Err(error) = self.start_waiting_in(*workspace, *chat).await {
                    tracing::warn!(%chat, %error, "the messages that wait in a chat cannot be looked at");
                }
            }
            seen += u32::try_from(chats.len()).unwrap_or(u32::MAX);
            if chats.len() < CHATS as usize || !chats.last().is_some_and(|(_, _, free)| *free) {
                return Ok(seen > 0);
            }
        }
    }

    /// Starts the first message that waits in a chat, if the chat is free. One that would have been refused if it were said now
    /// is kept with the reason, and no longer stands in the way of the next.
    async fn start_waiting_in(&self, workspace: WorkspaceId, chat: ChatId) -> Result<(), EngineError> {
        while let Some(row) = self.store().next_waiting(workspace, chat).await? {
            match self.start_kept(&row).await {
                Ok(_) => {}
                // The chat is taken, or everything is: this message has its turn later.
                Err(EngineError::Busy(_) | EngineError::Halted { .. } | EngineError::RateLimited { .. }) => {
                    return Ok(());
                }
                // It was taken back, or another node has started it.
                Err(EngineError::Store(StoreError::NotFound | StoreError::Stale { .. })) => {
                    if self.store().next_waiting(workspace, chat).await?.is_some_and(|next| next.id == row.id) {
                        return Ok(());
                    }
                }
                Err(EngineError::Store(error)) => return Err(error.into()),
                Err(error) => self.keep_failed(row, &error).await?,
            }
        }
        Ok(())
    }

    async fn start_kept(&self, row: &WaitingRow) -> Result<RunId, EngineError> {
        let kept = Kept::read(row)?;
        let role = self.role_now(row.workspace, row.person).await?;
        if role.is_none_or(|role| role < Role::Write) {
            return Err(EngineError::Invalid("whoever said it may no longer start runs in this workspace".to_owned()));
        }
        let chat = self.store().chat(row.workspace, row.chat).await?;
        let chat = chat.ok_or_else(|| EngineError::not_found("chat", row.chat))?;
        if !chat.shared && chat.owner != row.person && role != Some(Role::Admin) {
            return Err(EngineError::Invalid("the chat is no longer shared with whoever said it".to_owned()));
        }
        let ask = StartRun {
            id: Some(row.id),
            user: row.person,
            agent: kept.agent,
            chat: Some(row.chat),
            notebook: None,
            message: kept.message,
            attachments: kept.attachments,
            model: kept.model,
            max_cost: kept.max_cost,
            max_turns: kept.max_turns,
            key: kept.key,
            autonomy: kept.autonomy,
            effects: kept.effects,
            output_schema: kept.output_schema,
            debug: kept.debug,
            seed: kept.seed,
            tool_choice: kept.tool_choice,
            metadata: kept.metadata,
        };
        self.start_run(row.workspace, ask).await
    }

    async fn keep_failed(&self, row: WaitingRow, error: &EngineError) -> Result<(), EngineError> {
        tracing::info!(run = %row.id, %error, "a message that waited could not be started");
        let body = match Kept::read(&row) {
            Ok(kept) => Kept { failure: Some(error.to_string()), ..kept }.write()?,
            Err(_) => row.body.clone(),
        };
        Ok(self.store().fail_waiting(&WaitingRow { body, failed: true, ..row }).await?)
    }
}
