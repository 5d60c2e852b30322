//! Starting runs: from a message, from an edit, from a fork. Everything a request will need is recorded in the first event.

use std::collections::BTreeMap;

use adjutant_core::content::Content;
use adjutant_core::guard::policy::Autonomy;
use adjutant_core::id::{AgentId, ChatId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::run::event::{Base, ContentFiltered, Effects, Event, RunStarted};
use adjutant_core::run::state::State;
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_models::router::Needs;
use adjutant_models::{WithKeys, lineup};
use adjutant_store::StoreError;
use adjutant_store::row::{Append, ChatRow, RunChange, RunRow, Tip, Writer};

use super::chats::check_message;
use crate::audit::run_rows;
use crate::base::state_at;
use crate::engine::{CurrentAgent, Engine};
use crate::error::EngineError;
use crate::log::blocks_of;
use crate::projection::{self, preview};
use crate::prompt;
use crate::spending;

/// What starts a run when somebody says something.
const MESSAGE: &str = "message";
/// How often a start that lost a race is tried again.
const RACES: usize = 8;

/// A request to start a run.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The id of the run, where it was given out before; a new one when none.
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
    /// Another model than the agent's.
    pub model: Option<String>,
    /// What the run may cost, where that is less than the agent allows.
    pub max_cost: Option<MicroUsd>,
    /// Its own autonomy: it lowers the agent's and never raises it.
    pub autonomy: Option<Autonomy>,
    /// Whether effects are real.
    pub effects: Effects,
    /// Free fields.
    pub metadata: BTreeMap<String, String>,
}

impl StartRun {
    /// A message, with nothing said about how.
    #[must_use]
    pub fn new(user: UserId, agent: AgentId, message: &str) -> Self {
        let (message, metadata) = (message.to_owned(), BTreeMap::new());
        let (id, chat, notebook, model, max_cost, autonomy) = (None, None, None, None, None, None);
        Self { id, user, agent, chat, notebook, message, model, max_cost, autonomy, effects: Effects::Live, metadata }
    }
}

/// A request to go on from a point of another run.
#[derive(Debug, Clone, Default)]
pub struct Fork {
    /// The event to go on from; the beginning when none.
    pub at: Option<u64>,
    /// Another model.
    pub model: Option<String>,
    /// Whether effects are real.
    pub effects: Effects,
}

/// What the first event is made from.
pub(super) struct Plan<'a> {
    pub(super) run: RunId,
    /// What started it.
    pub(super) trigger: &'static str,
    pub(super) workspace: WorkspaceId,
    pub(super) user: UserId,
    pub(super) agent: &'a CurrentAgent,
    pub(super) chat: ChatRow,
    pub(super) message: Option<&'a str>,
    /// What the content filter did to it.
    pub(super) filtered: Option<ContentFiltered>,
    pub(super) base: Option<Base>,
    pub(super) labels: Labels,
    pub(super) supersedes: Option<RunId>,
    pub(super) model: Option<String>,
    pub(super) max_cost: Option<MicroUsd>,
    pub(super) autonomy: Option<Autonomy>,
    pub(super) effects: Effects,
    pub(super) metadata: BTreeMap<String, String>,
}

impl Engine {
    /// Starts a run.
    ///
    /// # Errors
    /// When the agent is off, the chat is busy, or the message cannot be used.
    pub async fn start_run(&self, workspace: WorkspaceId, ask: StartRun) -> Result<RunId, EngineError> {
        check_message(&ask.message)?;
        let agent = self.active_agent(workspace, ask.agent).await?;
        let (message, filtered) = self.filter_prompt(workspace, ask.user, &agent, &ask.message).await?;
        let mut chat = match ask.chat {
            Some(id) => self.chat_for(workspace, id, &agent).await?,
            None => self.new_chat(workspace, ask.user, &agent, ask.notebook, preview(&message), None).await?,
        };
        for _ in 0..RACES {
            let (base, labels) = self.branch_end(workspace, &chat).await?;
            let plan = Plan {
                run: ask.id.unwrap_or_else(|| self.env().id()),
                trigger: MESSAGE,
                workspace,
                user: ask.user,
                agent: &agent,
                chat: chat.clone(),
                message: Some(&message),
                filtered: filtered.clone(),
                base,
                labels,
                supersedes: None,
                model: ask.model.clone(),
                max_cost: ask.max_cost,
                autonomy: ask.autonomy,
                effects: ask.effects,
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
        let agent = self.active_agent(workspace, ask.agent).await?;
        if let Some(chat) = ask.chat {
            self.chat_for(workspace, chat, &agent).await?;
        }
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
        let agent = self.active_agent(workspace, row.agent).await?;
        let (message, filtered) = self.filter_prompt(workspace, user, &agent, message).await?;
        if Status::parse(&row.state.status).is_some_and(|status| !status.is_end()) {
            self.cancel_and_wait(workspace, user, run).await?;
        }
        let state = state_at(self, workspace, run, u64::MAX).await?;
        let start = state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        let chat =
            self.store().chat(workspace, row.chat).await?.ok_or_else(|| EngineError::not_found("chat", row.chat))?;
        let plan = Plan {
            run: self.env().id(),
            trigger: MESSAGE,
            workspace,
            user,
            agent: &agent,
            chat,
            message: Some(&message),
            filtered,
            base: start.base,
            labels: start.labels,
            supersedes: Some(run),
            model: None,
            max_cost: None,
            autonomy: start.autonomy,
            effects: start.effects,
            metadata: start.metadata.clone(),
        };
        self.begin(plan).await
    }

    /// Goes on from a point of another run, in a chat of its own. The other run is left as it is.
    ///
    /// # Errors
    /// When there is no such run or point.
    pub async fn fork_run(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        run: RunId,
        fork: Fork,
    ) -> Result<RunId, EngineError> {
        let row = self.run_row(workspace, run).await?;
        let (at, state) = self.turn_end(workspace, run, fork.at.unwrap_or(1)).await?;
        let start = state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        let agent = self.active_agent(workspace, row.agent).await?;
        let title = format!(
            "Fork of {}",
            preview(&start.user_message.as_ref().map(|text| text.text().into_owned()).unwrap_or_default())
        );
        let chat = self.new_chat(workspace, user, &agent, row.notebook, title, Some(run)).await?;
        let plan = Plan {
            run: self.env().id(),
            trigger: MESSAGE,
            workspace,
            user,
            agent: &agent,
            chat,
            message: None,
            filtered: None,
            base: Some(Base { run, seq: at }),
            labels: state.labels,
            supersedes: None,
            model: Some(fork.model.unwrap_or_else(|| start.model.clone())),
            max_cost: None,
            autonomy: start.autonomy,
            effects: fork.effects,
            metadata: start.metadata.clone(),
        };
        self.begin(plan).await
    }

    /// The last event, up to `at`, after which no call is open and no answer given; and the state there.
    async fn turn_end(&self, workspace: WorkspaceId, run: RunId, at: u64) -> Result<(u64, State), EngineError> {
        let mut state = State::default();
        let mut best = None;
        for recorded in self.recorded(workspace, run, 0, None).await? {
            if recorded.seq > at {
                break;
            }
            state
                .apply(&recorded.event, recorded.seq, recorded.at)
                .map_err(|bad| EngineError::impossible(run, &bad))?;
            let open = state.turns.last().is_some_and(|turn| !turn.is_complete() || turn.calls.is_empty());
            if !open && state.asking.is_none() && state.end.is_none() {
                best = Some((recorded.seq, state.clone()));
            }
        }
        best.ok_or_else(|| EngineError::Invalid(format!("{run} has no event {at} to go on from")))
    }

    pub(super) async fn active_agent(&self, workspace: WorkspaceId, id: AgentId) -> Result<CurrentAgent, EngineError> {
        let agent = self.current_agent(workspace, id).await?;
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

    async fn begin(&self, plan: Plan<'_>) -> Result<RunId, EngineError> {
        let (run, now) = (plan.run, self.env().now());
        let config = &plan.agent.config;
        self.refuse_halted(plan.workspace).await?;
        self.check_requests(plan.agent, now).await?;
        let zone = self.store().workspace(plan.workspace).await?.map_or_else(|| "UTC".to_owned(), |row| row.time_zone);
        let shown = &plan.agent.shown;
        let prompt = prompt::compose(config, &shown.definitions, now, &zone);
        self.check_budgets(plan.workspace, plan.agent, plan.user, now, &zone).await?;
        let needs = Needs { tools: !shown.definitions.is_empty(), ..Needs::default() };
        let wanted = self.wanted(plan.agent, plan.model.as_deref(), now, &zone).await?;
        let providers = self.keyed_providers(plan.workspace, plan.agent.id, plan.user).await?;
        let source = WithKeys { source: self.models(), providers };
        let lineup = lineup(&source, &wanted, self.default_model(), &needs)
            .map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        let facts = self.models().facts(&lineup.model);
        let started = Event::RunStarted(RunStarted {
            run,
            workspace: plan.workspace,
            chat: plan.chat.id,
            agent: plan.agent.id,
            agent_version: plan.agent.version,
            policy: plan.agent.policy,
            notebook: plan.chat.notebook,
            initiator: plan.user,
            trigger: plan.trigger.to_owned(),
            base: plan.base,
            supersedes: plan.supersedes,
            user_message: plan.message.map(Content::from),
            model: lineup.model,
            fallbacks: lineup.fallbacks,
            strategy: lineup.choice.map(|choice| choice.strategy),
            budget: config.budget.run().into_iter().chain(plan.max_cost).min(),
            temperature: config.temperature,
            system_prompt: Content::new(prompt),
            tools: shown.text.clone(),
            labels: plan.labels,
            limits: spending::run_limits(config, facts.as_ref()),
            autonomy: plan.autonomy,
            effects: plan.effects,
            time_zone: zone,
            metadata: plan.metadata.clone(),
        });
        let events: Vec<Event> = std::iter::once(started).chain(plan.filtered.clone().map(Event::from)).collect();
        self.record_start(&plan, run, now, &events).await
    }

    /// Writes the first events, the run's row, and the end of the chat's branch in one transaction.
    pub(super) async fn record_start(
        &self,
        plan: &Plan<'_>,
        run: RunId,
        now: Time,
        events: &[Event],
    ) -> Result<RunId, EngineError> {
        let (mut state, mut head, mut entries) = (State::default(), Head::START, Vec::new());
        for event in events {
            let body = event.encode(self.env().random()).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
            let entry = Entry::next(StreamId::Run(run), head, event.kind(), now, body);
            head = entry.head();
            state.apply(event, head.seq, now).map_err(|bad| EngineError::impossible(run, &bad))?;
            entries.push(entry);
        }
        let row = RunRow {
            id: run,
            workspace: plan.workspace,
            chat: plan.chat.id,
            agent: plan.agent.id,
            agent_version: plan.agent.version,
            notebook: plan.chat.notebook,
            base: plan.base.map(|base| (base.run, base.seq)),
            parent: None,
            initiator: plan.user,
            trigger: plan.trigger.to_owned(),
            created_at: now,
            superseded_by: None,
            head,
            owner: None,
            epoch: 0,
            state: projection::run_state(&state),
        };
        let append = Append {
            workspace: plan.workspace,
            stream: StreamId::Run(run),
            expected: Head::START,
            writer: Writer::Command,
            entries,
            blocks: blocks_of(events.iter().flat_map(Event::contents)),
            run: Some(RunChange::Start {
                row: Box::new(row),
                tip: Tip { expected: plan.chat.tip, supersedes: plan.supersedes, advance: true },
            }),
            approvals: Vec::new(),
            calls: Vec::new(),
            rules: Vec::new(),
            audit: run_rows(&state, (1..).zip(events).map(|(seq, event)| (seq, now, event))),
            marks: Vec::new(),
            takings: Vec::new(),
            model_calls: Vec::new(),
            doing: None,
            spends: Vec::new(),
        };
        self.store().append(append).await?;
        Ok(run)
    }
}
