//! Chats: threads of runs with one agent, on one notebook.

use std::collections::BTreeMap;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{AgentId, ChatId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::limits;
use adjutant_core::routing::{DEFAULT, Wanted};
use adjutant_core::run::event::Actor;
use adjutant_store::StoreError;
use adjutant_store::row::{ChatRow, NotebookRow};

use crate::audit::AuditLog;
use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::held::Record;

/// What to change of a chat; what is none stays.
#[derive(Debug, Clone, Default)]
pub struct ChatChange {
    /// Its title.
    pub title: Option<String>,
    /// Whether everybody in the workspace may see it.
    pub shared: Option<bool>,
    /// The model of its runs that name none; `default` is its agent's.
    pub model: Option<String>,
    /// Its free fields.
    pub metadata: Option<BTreeMap<String, String>>,
}

/// A model that somebody names as a default; none is the one that would count without it.
pub(super) fn default_named(name: &str) -> Result<Option<String>, EngineError> {
    Wanted::of(Some(name.into()), None, None).map_err(|(_, why)| EngineError::Invalid(format!("the model: {why}")))?;
    Ok(Some(name.to_owned()).filter(|name| name != DEFAULT))
}

impl Engine {
    /// A chat that this agent may go on with: its own, on a notebook that its scope still admits.
    pub(super) async fn chat_for(
        &self,
        workspace: WorkspaceId,
        id: ChatId,
        agent: &CurrentAgent,
    ) -> Result<ChatRow, EngineError> {
        let chat = self.store().chat(workspace, id).await?.ok_or_else(|| EngineError::not_found("chat", id))?;
        if chat.agent != agent.id {
            return Err(EngineError::Invalid(format!("the chat {id} belongs to another agent; start a new chat")));
        }
        self.choose_notebook(workspace, agent, chat.notebook).await?;
        Ok(chat)
    }

    /// Makes a chat with an agent, before anything is said in it.
    ///
    /// # Errors
    /// When the agent is off, or its scope does not admit the notebook.
    pub async fn create_chat(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        agent: AgentId,
        notebook: Option<NotebookId>,
        title: String,
        metadata: &BTreeMap<String, String>,
    ) -> Result<ChatRow, EngineError> {
        let agent = self.active_agent(workspace, agent, user).await?;
        let chat = self.chat_row(workspace, user, &agent, notebook, title).await?;
        let chat = ChatRow { metadata: self.fields(workspace, metadata).await?, ..chat };
        self.store().create_chat(&chat).await?;
        Ok(chat)
    }

    /// Makes a chat under a name that a client chose; the one of this person that has the name already, if there is one.
    ///
    /// # Errors
    /// When the agent is off.
    pub async fn create_named_chat(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        agent: AgentId,
        name: &str,
    ) -> Result<ChatRow, EngineError> {
        let agent = self.active_agent(workspace, agent, user).await?;
        let chat = self.chat_row(workspace, user, &agent, None, name.to_owned()).await?;
        let chat = ChatRow { alias: Some(name.to_owned()), ..chat };
        match self.store().create_chat(&chat).await {
            Ok(()) => Ok(chat),
            // Two first messages at once: the chat of the faster one is taken.
            Err(StoreError::Conflict(_)) => {
                let known = self.store().chat_by_alias(workspace, user, name).await?;
                known.ok_or(EngineError::Taken { what: "chat", name: name.to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Changes a chat. That somebody else may see it, and who is told what is said in it, is recorded first.
    ///
    /// # Errors
    /// When the model cannot be one, or there is no such chat any more.
    pub async fn change_chat(&self, user: UserId, chat: &ChatRow, change: ChatChange) -> Result<ChatRow, EngineError> {
        let row = ChatRow {
            title: change.title.unwrap_or_else(|| chat.title.clone()),
            shared: change.shared.unwrap_or(chat.shared),
            model: match change.model {
                Some(name) => default_named(&name)?,
                None => chat.model.clone(),
            },
            metadata: match &change.metadata {
                Some(fields) => self.fields(chat.workspace, fields).await?,
                None => chat.metadata.clone(),
            },
            ..chat.clone()
        };
        if row.shared != chat.shared {
            let who = if row.shared { "everybody in the workspace" } else { "its starter and admins alone" };
            let act = Act::new(Deed::ChatShared, Some(Actor::User(user)), format!("{} is seen by {who}", chat.id));
            self.audit(AuditLog::Workspace(chat.workspace), act.with("shared", row.shared)).await?;
        }
        if row.model != chat.model {
            let model = row.model.as_deref().unwrap_or("that of its agent");
            let act =
                Act::new(Deed::SettingChanged, Some(Actor::User(user)), format!("the model of {} is {model}", chat.id));
            self.audit(AuditLog::Workspace(chat.workspace), act.with("model", row.model.clone())).await?;
        }
        if !self.store().change_chat(&row).await? {
            return Err(EngineError::not_found("chat", chat.id));
        }
        Ok(row)
    }

    /// Gives the runs that a person starts another default model, where their agents leave it to the default. It is recorded first.
    ///
    /// # Errors
    /// When it cannot be one, or there is no such person.
    pub async fn set_default_model(&self, user: UserId, model: &str) -> Result<Option<String>, EngineError> {
        let model = default_named(model)?;
        let named = model.as_deref().unwrap_or("that of the workspace");
        let act =
            Act::new(Deed::SettingChanged, Some(Actor::User(user)), format!("the default model of {user} is {named}"));
        self.audit(AuditLog::Instance, act.with("default_model", model.clone())).await?;
        if !self.store().set_default_model(user, model.as_deref()).await? {
            return Err(EngineError::not_found("person", user));
        }
        Ok(model)
    }

    /// Free fields as they are kept: without what no log may hold.
    async fn fields(
        &self,
        workspace: WorkspaceId,
        fields: &BTreeMap<String, String>,
    ) -> Result<Option<String>, EngineError> {
        if fields.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_string(fields).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        Ok(Some(self.held(Record::Workspace(workspace)).await?.clean(&text).into_owned()))
    }

    pub(super) async fn new_chat(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        agent: &CurrentAgent,
        notebook: Option<NotebookId>,
        title: String,
        forked_from: Option<RunId>,
    ) -> Result<ChatRow, EngineError> {
        let chat = self.chat_row(workspace, user, agent, notebook, title).await?;
        let chat = ChatRow { forked_from, ..chat };
        self.store().create_chat(&chat).await?;
        Ok(chat)
    }

    /// A chat that is not kept yet.
    async fn chat_row(
        &self,
        workspace: WorkspaceId,
        owner: UserId,
        agent: &CurrentAgent,
        notebook: Option<NotebookId>,
        title: String,
    ) -> Result<ChatRow, EngineError> {
        Ok(ChatRow {
            id: self.env().id(),
            workspace,
            agent: agent.id,
            notebook: self.choose_notebook(workspace, agent, notebook).await?,
            owner,
            title,
            tip: None,
            forked_from: None,
            created_at: self.env().now(),
            shared: false,
            alias: None,
            model: None,
            metadata: None,
        })
    }

    /// The notebook that was asked for, if the scope allows it; else the oldest that it allows; else none.
    pub(super) async fn choose_notebook(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        asked: Option<NotebookId>,
    ) -> Result<Option<NotebookId>, EngineError> {
        let rows = self.store().notebooks(workspace).await?;
        let admits = |row: &NotebookRow| agent.scope.admits_notebook(&row.id.to_string(), &row.slug);
        let Some(id) = asked else {
            return Ok(rows.iter().filter(|row| admits(row)).map(|row| row.id).min());
        };
        match rows.iter().find(|row| row.id == id) {
            Some(row) if admits(row) => Ok(Some(id)),
            Some(row) => Err(EngineError::OutOfScope { agent: agent.config.slug.clone(), notebook: row.slug.clone() }),
            None => Err(EngineError::not_found("notebook", id)),
        }
    }
}

/// A message that can be said.
pub(super) fn check_message(message: &str) -> Result<(), EngineError> {
    if message.trim().is_empty() {
        return Err(EngineError::Invalid("the message is empty".to_owned()));
    }
    if message.len() > limits::MESSAGE_BYTES {
        return Err(EngineError::Invalid(format!("the message is longer than {} bytes", limits::MESSAGE_BYTES)));
    }
    Ok(())
}

/// Instructions that one run can be given in place of its agent's.
pub(super) fn check_instructions(text: &str) -> Result<&str, EngineError> {
    if text.trim().is_empty() {
        return Err(EngineError::Invalid("system_prompt is empty; leave it out for the agent's own".to_owned()));
    }
    if text.len() > limits::MESSAGE_BYTES {
        return Err(EngineError::Invalid(format!("system_prompt is longer than {} bytes", limits::MESSAGE_BYTES)));
    }
    Ok(text)
}
