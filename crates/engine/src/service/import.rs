//! Chats from a file: what was said elsewhere becomes runs that have ended, so an agent can go on from there. Nothing of it was
//! done here, and all of it counts as private and untrusted.

use adjutant_core::content::Content;
use adjutant_core::id::{AgentId, ChatId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::limits;
use adjutant_core::message::FinishReason;
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::options::ModelOptions;
use adjutant_core::run::event::{
    Base, Effects, EndStatus, Event, ModelAnswered, ModelRequested, RunEnded, RunStarted, Said,
};
use adjutant_core::run::state::State;
use adjutant_core::run::transcript;
use adjutant_store::row::ChatRow;

use super::chats::check_message;
use super::plan::{Asked, Plan};
use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::spending;

/// What started a run that was made elsewhere.
const TRIGGER: &str = "import";

/// A chat to be taken in.
#[derive(Debug, Clone)]
pub struct ImportChat {
    /// Who takes it in.
    pub user: UserId,
    /// The agent that goes on with it.
    pub agent: AgentId,
    /// The notebook it goes on with; chosen by the agent's scope when none.
    pub notebook: Option<NotebookId>,
    /// Its title.
    pub title: String,
    /// What was said, oldest first.
    pub said: Vec<ImportedRun>,
}

/// A message and what was answered.
#[derive(Debug, Clone)]
pub struct ImportedRun {
    /// What the person said; none where it went on from what was before.
    pub message: Option<String>,
    /// The answer.
    pub answer: String,
    /// The model that gave it.
    pub model: String,
}

impl Engine {
    /// Takes in a chat that was exported here or elsewhere. One that cannot be used is refused whole.
    ///
    /// # Errors
    /// When the agent is off, or something in it cannot be used.
    pub async fn import_chat(&self, workspace: WorkspaceId, import: ImportChat) -> Result<ChatRow, EngineError> {
        check(&import)?;
        self.refuse_halted(workspace).await?;
        let agent = self.active_agent(workspace, import.agent, import.user).await?;
        let title = import.title.clone();
        let mut chat = self.new_chat(workspace, import.user, &agent, import.notebook, title, None).await?;
        let id = chat.id;
        match self.take_in(&mut chat, &agent, &import).await {
            Ok(()) => Ok(chat),
            Err(error) => {
                self.forget(workspace, import.user, id).await;
                Err(error)
            }
        }
    }

    /// Half a chat would be mistaken for a whole one.
    async fn forget(&self, workspace: WorkspaceId, user: UserId, chat: ChatId) {
        if let Err(error) = self.delete_chat(workspace, user, chat).await {
            tracing::warn!(%chat, %error, "a chat that was only half taken in could not be taken away");
        }
    }

    async fn take_in(&self, chat: &mut ChatRow, agent: &CurrentAgent, import: &ImportChat) -> Result<(), EngineError> {
        let workspace = chat.workspace;
        let zone = self.store().workspace(workspace).await?.map_or_else(|| "UTC".to_owned(), |row| row.time_zone);
        let mut base = None;
        for said in &import.said {
            let (run, now) = (self.env().id::<RunId>(), self.env().now());
            let plan = Plan {
                run,
                waited: false,
                trigger: TRIGGER,
                workspace,
                user: import.user,
                agent,
                chat: chat.clone(),
                message: said.message.as_deref(),
                attachments: Vec::new(),
                filtered: Vec::new(),
                base,
                // A file says nothing of what the chat has seen: it may be anybody's, and hold anything.
                labels: Labels::PRIVATE.join(Labels::UNTRUSTED),
                supersedes: None,
                model: None,
                fallbacks: Vec::new(),
                max_cost: None,
                turns: None,
                key: None,
                autonomy: None,
                effects: Effects::Dry,
                output_schema: None,
                debug: false,
                instructions: None,
                seed: None,
                tool_choice: None,
                metadata: std::collections::BTreeMap::new(),
            };
            let asked = Asked {
                model: said.model.clone(),
                fallbacks: Vec::new(),
                strategy: None,
                budget: None,
                temperature: None,
                options: ModelOptions::default(),
                limits: spending::run_limits(&agent.config, None, plan.turns),
                // Nothing of it happened here.
                safety: std::collections::BTreeMap::new(),
            };
            let started = plan.started(asked, now, zone.clone());
            let events = self.ended(started, agent, said).await?;
            let seq = events.len() as u64;
            self.record_start(&plan, now, events).await?;
            chat.tip = Some(run);
            base = Some(Base { run, seq });
        }
        Ok(())
    }

    /// A run as if the model had been asked and had said this. The request is the one that it would have been asked with, so
    /// that a replay comes out the same.
    async fn ended(
        &self,
        started: RunStarted,
        agent: &CurrentAgent,
        said: &ImportedRun,
    ) -> Result<Vec<Event>, EngineError> {
        let (run, workspace) = (started.run, started.workspace);
        let messages = self.base_messages(workspace, started.base, started.limits.context_bytes).await?;
        let started = Event::RunStarted(started);
        let mut state = State::default();
        state.apply(&started, 1, self.env().now()).map_err(|bad| EngineError::impossible(run, &bad))?;
        let request = transcript::request(&state, &messages, &agent.shown.definitions);
        let (request, dropped) = request.map_err(|overflow| EngineError::Invalid(overflow.to_string()))?;
        let (usage, answer) = (TokenUsage::default(), Content::from(said.answer.as_str()));
        Ok(vec![
            started,
            Event::ModelRequested(ModelRequested {
                turn: 1,
                attempt: 1,
                model: said.model.clone(),
                request: request.hash(),
                dropped,
                reserved: None,
                purses: Vec::new(),
                key: None,
                price_version: None,
            }),
            Event::Said(Said { turn: 1, text: answer.clone() }),
            Event::ModelAnswered(ModelAnswered {
                turn: 1,
                calls: 0,
                usage,
                estimated: false,
                cost: Some(MicroUsd(0)),
                price_version: None,
                finish: FinishReason::Stop,
                served_model: said.model.clone(),
                ms: 0,
                first_ms: None,
                unfit: None,
                frames: None,
            }),
            Event::RunEnded(RunEnded {
                status: EndStatus::Completed,
                result: answer,
                usage,
                cost: MicroUsd(0),
                files_modified: Vec::new(),
            }),
        ])
    }
}

fn check(import: &ImportChat) -> Result<(), EngineError> {
    let invalid = |why: String| Err(EngineError::Invalid(why));
    if import.said.is_empty() || import.said.len() > limits::IMPORTED_RUNS {
        return invalid(format!("a chat to be taken in has 1 to {} runs", limits::IMPORTED_RUNS));
    }
    for (index, said) in import.said.iter().enumerate() {
        if let Some(message) = &said.message {
            check_message(message).map_err(|bad| EngineError::Invalid(format!("run {}: {bad}", index + 1)))?;
        }
        if said.answer.len() > limits::MESSAGE_BYTES {
            return invalid(format!("the answer of run {} is longer than {} bytes", index + 1, limits::MESSAGE_BYTES));
        }
        if said.model.len() > 200 {
            return invalid(format!("the model of run {} has a name of more than 200 bytes", index + 1));
        }
    }
    Ok(())
}
