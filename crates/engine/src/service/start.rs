//! Starting runs: from a message or from an edit. Everything a request will need is recorded in the first event.

use std::collections::BTreeMap;

use adjutant_core::guard::policy::Autonomy;
use adjutant_core::id::{AgentId, ChatId, KeyId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::money::MicroUsd;
use adjutant_core::options::{ModelOptions, ToolChoice};
use adjutant_core::run::event::{Attachment, Base, Effects, Event};
use adjutant_core::run::status::Status;
use adjutant_core::safety::abilities;
use adjutant_models::catalog::ModelFacts;
use adjutant_models::lineup;
use adjutant_models::router::Needs;
use adjutant_store::StoreError;
use adjutant_store::row::ChatRow;
use serde_json::Value;

use super::chats::check_message;
use super::plan::{Asked, MESSAGE, Plan, check_choice, checked_schema};

use crate::base::state_at;
use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::projection::preview;
use crate::safety::refuse_weaker;
use crate::spending::{self, Named};

/// How often a start that lost a race is tried again.
const RACES: usize = 8;

/// A request to start a run.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The run that a message waits to be; a new one when none.
    pub id: Option<RunId>,
    /// Who asks.
    pub user: UserId,
    /// The agent.
    pub agent: AgentId,
    /// The chat; a new one when none.
    pub chat: Option<ChatId>,
    /// The notebook of a new chat; chosen by the agent's scope when none.
    pub notebook: Option<NotebookId>,
    /// What the person says.
    pub message: String,
    /// Paths of files in the chat's notebook that come with it.
    pub attachments: Vec<String>,
    /// Another model than the agent's.
    pub model: Option<String>,
    /// What the run may cost, where that is less than the agent allows.
    pub max_cost: Option<MicroUsd>,
    /// Its model turns, where those are fewer than the agent has.
    pub max_turns: Option<u32>,
    /// The stored key to use for the provider it is for, in place of the agent's.
    pub key: Option<KeyId>,
    /// Its own autonomy: it lowers the agent's and never raises it.
    pub autonomy: Option<Autonomy>,
    /// Whether effects are real.
    pub effects: Effects,
    /// The JSON Schema that the answer has to fit.
    pub output_schema: Option<Value>,
    /// Whether what goes over the wire in its model calls is kept.
    pub debug: bool,
    /// A number that makes answers alike, in place of the agent's.
    pub seed: Option<u32>,
    /// Whether the first answer has to use a tool, in place of what the agent says.
    pub tool_choice: Option<ToolChoice>,
    /// Free fields.
    pub metadata: BTreeMap<String, String>,
}

impl StartRun {
    /// A message, with nothing said about how.
    #[must_use]
    pub fn new(user: UserId, agent: AgentId, message: &str) -> Self {
        Self {
            id: None,
            user,
            agent,
            chat: None,
            notebook: None,
            message: message.to_owned(),
            attachments: Vec::new(),
            model: None,
            max_cost: None,
            max_turns: None,
            key: None,
            autonomy: None,
            effects: Effects::Live,
            output_schema: None,
            debug: false,
            seed: None,
            tool_choice: None,
            metadata: BTreeMap::new(),
        }
    }
}

impl Engine {
    /// Starts a run.
    ///
    /// # Errors
    /// When the agent is off, the chat is busy, or the message cannot be used.
    pub async fn start_run(&self, workspace: WorkspaceId, ask: StartRun) -> Result<RunId, EngineError> {
        check_message(&ask.message)?;
        let agent = self.active_agent(workspace, ask.agent, ask.user).await?;
        let output_schema = checked_schema(ask.output_schema.as_ref().or(agent.config.output_schema.as_ref()))?;
        check_choice(&agent, ask.tool_choice.as_ref())?;
        let (message, filtered) = self.filter_prompt(workspace, ask.user, &agent, &ask.message).await?;
        let mut files = self.attached(workspace, &agent, &ask).await?;
        files.filtered.splice(..0, filtered);
        let mut chat = match ask.chat {
            Some(id) => self.chat_for(workspace, id, &agent).await?,
            None => self.new_chat(workspace, ask.user, &agent, ask.notebook, preview(&message), None).await?,
        };
        for _ in 0..RACES {
            let (base, labels) = self.branch_end(workspace, &chat).await?;
            let plan = Plan {
                run: ask.id.unwrap_or_else(|| self.env().id()),
                waited: ask.id.is_some(),
                trigger: MESSAGE,
                workspace,
                user: ask.user,
                agent: &agent,
                chat: chat.clone(),
                message: Some(&message),
                attachments: files.attachments.clone(),
                filtered: files.filtered.clone(),
                base,
                labels: labels.join(files.labels),
                supersedes: None,
                model: ask.model.clone(),
                fallbacks: Vec::new(),
                max_cost: ask.max_cost,
                turns: ask.max_turns.map(|most| most.clamp(1, agent.config.max_turns)),
                key: ask.key,
                autonomy: ask.autonomy,
                effects: ask.effects,
                output_schema: output_schema.clone(),
                debug: ask.debug,
                instructions: None,
                seed: ask.seed,
                tool_choice: ask.tool_choice.clone(),
                metadata: ask.metadata.clone(),
            };
            match self.begin(plan).await {
                Err(EngineError::Store(StoreError::Stale { .. })) => {
                    chat = self
                        .store()
                        .chat(workspace, chat.id)
                        .await?
                        .ok_or_else(|| EngineError::not_found("chat", chat.id))?;
                }
                other => return other,
            }
        }
        Err(EngineError::Store(StoreError::Stale { fenced: false }))
    }

    /// Whether a run could be started from this, once its chat is free.
    pub(super) async fn check_start(&self, workspace: WorkspaceId, ask: &StartRun) -> Result<(), EngineError> {
        check_message(&ask.message)?;
        checked_schema(ask.output_schema.as_ref())?;
        let agent = self.active_agent(workspace, ask.agent, ask.user).await?;
        check_choice(&agent, ask.tool_choice.as_ref())?;
        if let Some(chat) = ask.chat {
            self.chat_for(workspace, chat, &agent).await?;
        }
        self.attached(workspace, &agent, ask).await?;
        self.filter_prompt(workspace, ask.user, &agent, &ask.message).await.map(drop)
    }

    /// Says something else in place of an earlier message: the run and what followed it are kept, marked superseded.
    ///
    /// # Errors
    /// When there is no such run, or the message cannot be used.
    pub async fn edit_run(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        run: RunId,
        message: &str,
    ) -> Result<RunId, EngineError> {
        check_message(message)?;
        let row = self.run_row(workspace, run).await?;
        let agent = self.active_agent(workspace, row.agent, user).await?;
        let (message, filtered) = self.filter_prompt(workspace, user, &agent, message).await?;
        if Status::parse(&row.state.status).is_some_and(|status| !status.is_end()) {
            self.cancel_and_wait(workspace, user, run).await?;
        }
        let state = state_at(self, workspace, run, u64::MAX).await?;
        let start = state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        let chat =
            self.store().chat(workspace, row.chat).await?.ok_or_else(|| EngineError::not_found("chat", row.chat))?;
        let (attachments, noted) = self.attached_again(workspace, user, &agent, &start.attachments).await?;
        let wishes = self.wishes(start, chat.model.as_deref()).await?;
        let plan = Plan {
            message: Some(&message),
            attachments,
            filtered: filtered.into_iter().chain(noted).collect(),
            supersedes: Some(run),
            model: wishes.model,
            fallbacks: Vec::new(),
            max_cost: wishes.max_cost,
            turns: wishes.turns.map(|turns| turns.min(agent.config.max_turns)),
            seed: wishes.seed,
            tool_choice: wishes.tool_choice,
            ..Plan::after(self.env().id(), user, &agent, chat, start, (start.base, start.labels))
        };
        self.begin(plan).await
    }

    /// An agent that this person may run now: every start comes by here, whatever it starts from.
    pub(super) async fn active_agent(
        &self,
        workspace: WorkspaceId,
        id: AgentId,
        user: UserId,
    ) -> Result<CurrentAgent, EngineError> {
        let agent = self.current_agent(workspace, id).await?;
        if agent.owner.is_some_and(|owner| owner != user) {
            self.check_shared(workspace, id, user).await?;
        }
        if agent.config.is_active { Ok(agent) } else { Err(EngineError::AgentInactive(agent.config.slug.clone())) }
    }

    /// What a new run of a chat is built on. A chat whose last run goes on is busy.
    async fn branch_end(&self, workspace: WorkspaceId, chat: &ChatRow) -> Result<(Option<Base>, Labels), EngineError> {
        let Some(tip) = chat.tip else { return Ok((None, Labels::NONE)) };
        let row = self.run_row(workspace, tip).await?;
        if Status::parse(&row.state.status).is_none_or(|status| !status.is_end()) {
            return Err(EngineError::Busy(tip));
        }
        match self.tip_state(workspace, tip, row.head.seq).await {
            Ok(state) => Ok((Some(Base { run: tip, seq: row.head.seq }), state.labels)),
            // Nobody can say any more what it had seen, so it counts as having seen everything.
            Err(EngineError::Erased { .. }) => {
                let labels = Labels::PRIVATE.join(Labels::UNTRUSTED);
                Ok((Some(Base { run: tip, seq: row.head.seq }), labels))
            }
            Err(other) => Err(other),
        }
    }

    pub(super) async fn begin(&self, mut plan: Plan<'_>) -> Result<RunId, EngineError> {
        if let Some(instructions) = &mut plan.instructions {
            self.load_texts(plan.workspace, &mut [instructions]).await?;
        }
        let now = self.env().now();
        let config = &plan.agent.config;
        self.refuse_halted(plan.workspace).await?;
        // A run that could not open its files would say so only once it asks for one.
        if let Some(notebook) = plan.chat.notebook {
            self.notebook(plan.workspace, notebook).await?;
        }
        self.check_requests(plan.agent, now).await?;
        let zone = self.store().workspace(plan.workspace).await?.map_or_else(|| "UTC".to_owned(), |row| row.time_zone);
        let shown = &plan.agent.shown;
        self.check_budgets(plan.workspace, plan.agent, plan.user, now, &zone).await?;
        let images = plan.attachments.iter().any(Attachment::is_image);
        let needs = Needs { tools: !shown.definitions.is_empty(), images, ..Needs::default() };
        let needs = needs.and(&abilities(&config.requires));
        self.check_key(plan.workspace, plan.agent.id, plan.user, plan.key).await?;
        let named = Named { run: plan.model.as_deref(), chat: plan.chat.model.as_deref() };
        let mut wanted = self.wanted(plan.agent, named, now, &zone).await?;
        wanted.fallbacks.extend(plan.fallbacks.iter().cloned());
        let wanted = self.wanted_here(plan.workspace, plan.user, wanted).await?;
        let source = self.source(plan.workspace, Some(plan.agent.id), plan.user).await?;
        // A model that can be held to a schema is better where there is one; others are held to it here.
        let held = Needs { structured: true, ..needs };
        let first = if plan.output_schema.is_some() { &held } else { &needs };
        let lineup = lineup(&source, &wanted, self.default_model(), first)
            .or_else(|_| lineup(&source, &wanted, self.default_model(), &needs))
            .map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        let facts = self.models().facts(&lineup.model);
        if images && facts.as_ref().is_some_and(ModelFacts::is_blind) {
            return Err(EngineError::Invalid(format!(
                "the model `{}` cannot see pictures; choose a model that can, or leave the picture out",
                lineup.model
            )));
        }
        let models: Vec<_> = std::iter::once(&lineup.model).chain(&lineup.fallbacks).map(String::as_str).collect();
        let safety = self.safety_of(plan.workspace, plan.agent, plan.user, plan.key, &models).await?;
        refuse_weaker(&config.slug, &config.requires, &safety)?;
        let asked = Asked {
            safety,
            model: lineup.model,
            fallbacks: lineup.fallbacks,
            strategy: lineup.choice.map(|choice| choice.strategy),
            budget: config.budget.run().into_iter().chain(plan.max_cost).min(),
            temperature: config.temperature,
            options: ModelOptions {
                seed: plan.seed.or(config.model_options.seed),
                tool_choice: plan.tool_choice.clone().or_else(|| config.model_options.tool_choice.clone()),
                ..config.model_options.clone()
            },
            limits: spending::run_limits(config, facts.as_ref(), plan.turns),
        };
        let started = Event::RunStarted(plan.started(asked, now, zone));
        let events: Vec<Event> =
            std::iter::once(started).chain(plan.filtered.iter().cloned().map(Event::from)).collect();
        self.record_start(&plan, now, events).await
    }
}
