//! Chats: threads of runs with one agent, on one notebook.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{AgentId, ChatId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::limits;
use adjutant_core::run::event::Actor;
use adjutant_store::StoreError;
use adjutant_store::row::ChatRow;

use crate::audit::AuditLog;
use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;

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
    ) -> Result<ChatRow, EngineError> {
        let agent = self.active_agent(workspace, agent).await?;
        self.new_chat(workspace, user, &agent, notebook, title, None).await
    }

    /// Makes a chat under a name that a client chose; the one that has the name already, if there is one.
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
        let agent = self.active_agent(workspace, agent).await?;
        let notebook = self.choose_notebook(workspace, &agent, None).await?;
        let (id, created_at, alias) = (self.env().id(), self.env().now(), Some(name.to_owned()));
        let (agent, title) = (agent.id, name.to_owned());
        let chat = ChatRow {
            id,
            workspace,
            agent,
            notebook,
            owner: user,
            title,
            tip: None,
            forked_from: None,
            created_at,
            shared: false,
            alias,
        };
        match self.store().create_chat(&chat).await {
            Ok(()) => Ok(chat),
            // Two first messages at once: the chat of the faster one is taken, if it is the same person's.
            Err(StoreError::Conflict(_)) => {
                let known = self.store().chat_by_alias(workspace, name).await?.filter(|known| known.owner == user);
                known.ok_or(EngineError::Taken { what: "chat", name: name.to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a chat another title and says who may see it. That somebody else may is recorded first.
    ///
    /// # Errors
    /// When there is no such chat any more.
    pub async fn change_chat(
        &self,
        user: UserId,
        chat: &ChatRow,
        title: &str,
        shared: bool,
    ) -> Result<ChatRow, EngineError> {
        if shared != chat.shared {
            let who = if shared { "everybody in the workspace" } else { "its starter and admins alone" };
            let act = Act::new(Deed::ChatShared, Some(Actor::User(user)), format!("{} is seen by {who}", chat.id));
            self.audit(AuditLog::Workspace(chat.workspace), act.with("shared", shared)).await?;
        }
        if !self.store().change_chat(chat.workspace, chat.id, title, shared).await? {
            return Err(EngineError::not_found("chat", chat.id));
        }
        Ok(ChatRow { title: title.to_owned(), shared, ..chat.clone() })
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
        let notebook = self.choose_notebook(workspace, agent, notebook).await?;
        let created_at = self.env().now();
        let chat = ChatRow {
            id: self.env().id(),
            workspace,
            agent: agent.id,
            notebook,
            owner: user,
            title,
            tip: None,
            forked_from,
            created_at,
            shared: false,
            alias: None,
        };
        self.store().create_chat(&chat).await?;
        Ok(chat)
    }

    /// The notebook that was asked for, if the scope allows it; else the oldest that it allows; else none.
    pub(super) async fn choose_notebook(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        asked: Option<NotebookId>,
    ) -> Result<Option<NotebookId>, EngineError> {
        let mut rows = self.store().notebooks(workspace).await?;
        rows.retain(|row| agent.scope.admits_notebook(&row.id.to_string(), &row.slug));
        rows.sort_by_key(|row| row.id);
        match asked {
            None => Ok(rows.first().map(|row| row.id)),
            Some(id) if rows.iter().any(|row| row.id == id) => Ok(Some(id)),
            Some(id) => Err(EngineError::not_found("notebook in the agent's scope", id)),
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
