//! How the log of a run begins, whatever begins it.

use std::collections::BTreeMap;

use adjutant_core::content::Content;
use adjutant_core::guard::policy::Autonomy;
use adjutant_core::id::{KeyId, RunId, UserId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::money::MicroUsd;
use adjutant_core::options::{ModelOptions, ToolChoice};
use adjutant_core::routing::Strategy;
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::run::event::{Attachment, Base, ContentFiltered, Effects, Event, RunLimits, RunStarted};
use adjutant_core::run::output;
use adjutant_core::run::state::State;
use adjutant_core::safety::Standings;
use adjutant_core::time::Time;
use adjutant_store::row::{Append, ChatRow, Doing, RunChange, Tip, Writer};
use serde_json::Value;

use crate::audit::run_rows;
use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::held::Record;
use crate::log::blocks_of;
use crate::projection;
use crate::{prompt, trace};

/// What starts a run when somebody says something.
pub(super) const MESSAGE: &str = "message";

/// What the first event is made from.
pub(super) struct Plan<'a> {
    pub(super) run: RunId,
    /// Whether a message waits to be it.
    pub(super) waited: bool,
    /// What started it.
    pub(super) trigger: &'static str,
    pub(super) workspace: WorkspaceId,
    pub(super) user: UserId,
    pub(super) agent: &'a CurrentAgent,
    pub(super) chat: ChatRow,
    pub(super) message: Option<&'a str>,
    /// What came with it.
    pub(super) attachments: Vec<Attachment>,
    /// What the content filter did to them.
    pub(super) filtered: Vec<ContentFiltered>,
    pub(super) base: Option<Base>,
    pub(super) labels: Labels,
    pub(super) supersedes: Option<RunId>,
    pub(super) model: Option<String>,
    /// Those that stand in for it; the agent's where none is named.
    pub(super) fallbacks: Vec<String>,
    pub(super) max_cost: Option<MicroUsd>,
    /// How many turns it has, where that is not for the agent to say.
    pub(super) turns: Option<u32>,
    /// The stored key that whoever starts it names.
    pub(super) key: Option<KeyId>,
    pub(super) autonomy: Option<Autonomy>,
    pub(super) effects: Effects,
    pub(super) output_schema: Option<String>,
    /// Whether what goes over the wire is kept.
    pub(super) debug: bool,
    /// Instructions of its own, in place of the agent's.
    pub(super) instructions: Option<Content>,
    /// What whoever starts it says of how the model is asked, in place of the agent.
    pub(super) seed: Option<u32>,
    pub(super) tool_choice: Option<ToolChoice>,
    pub(super) metadata: BTreeMap<String, String>,
}

/// Which model is asked, and how.
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) fallbacks: Vec<String>,
    pub(super) strategy: Option<Strategy>,
    pub(super) budget: Option<MicroUsd>,
    pub(super) temperature: Option<f64>,
    pub(super) options: ModelOptions,
    pub(super) limits: RunLimits,
    pub(super) safety: Standings,
}

/// The text of a schema, if one is asked for and can be used.
pub(super) fn checked_schema(schema: Option<&Value>) -> Result<Option<String>, EngineError> {
    let invalid = |why| EngineError::Invalid(format!("the schema of the answer cannot be used: {why}"));
    schema.map(output::check).transpose().map_err(invalid)
}

/// Refuses a choice of a tool that the agent's model is not shown: a provider would refuse the request.
pub(super) fn check_choice(agent: &CurrentAgent, choice: Option<&ToolChoice>) -> Result<(), EngineError> {
    let shown = &agent.shown.definitions;
    match choice {
        Some(ToolChoice::Required) if shown.is_empty() => {
            Err(EngineError::Invalid(format!("`{}` has no tool that it could be required to use", agent.config.slug)))
        }
        Some(ToolChoice::Tool(name)) if shown.iter().all(|tool| tool.name != *name) => {
            Err(EngineError::Invalid(format!(
                "tool_choice is auto, none, required, or a tool that `{}` is shown; `{name}` is none",
                agent.config.slug
            )))
        }
        None | Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Required | ToolChoice::Tool(_)) => Ok(()),
    }
}

impl<'a> Plan<'a> {
    /// A run that follows another, whatever it is built on: it is asked for in the same way, and nothing is said in it.
    pub(super) fn after(
        run: RunId,
        user: UserId,
        agent: &'a CurrentAgent,
        chat: ChatRow,
        other: &RunStarted,
        (base, labels): (Option<Base>, Labels),
    ) -> Self {
        Self {
            run,
            waited: false,
            trigger: MESSAGE,
            workspace: other.workspace,
            user,
            agent,
            chat,
            message: None,
            attachments: Vec::new(),
            filtered: Vec::new(),
            base,
            labels,
            supersedes: None,
            model: Some(other.model.clone()),
            fallbacks: other.fallbacks.clone(),
            max_cost: None,
            turns: None,
            key: other.key,
            autonomy: other.autonomy,
            effects: other.effects,
            output_schema: other.output_schema.clone(),
            debug: other.debug,
            instructions: other.instructions.clone(),
            seed: None,
            tool_choice: None,
            metadata: other.metadata.clone(),
        }
    }

    /// The first event.
    pub(super) fn started(&self, asked: Asked, now: Time, time_zone: String) -> RunStarted {
        let (agent, chat) = (self.agent, &self.chat);
        let own = self.instructions.as_ref().map(Content::text);
        let told = own.as_deref().unwrap_or(&agent.config.system_prompt);
        let mut prompt = prompt::compose(&agent.config, told, &agent.shown.definitions, now, &time_zone);
        prompt.extend(self.output_schema.as_deref().map(prompt::answer_form));
        RunStarted {
            run: self.run,
            workspace: self.workspace,
            chat: chat.id,
            agent: agent.id,
            agent_version: agent.version,
            policy: agent.policy,
            notebook: chat.notebook,
            initiator: self.user,
            trigger: self.trigger.to_owned(),
            base: self.base,
            supersedes: self.supersedes,
            user_message: self.message.map(Content::from),
            attachments: self.attachments.clone(),
            model: asked.model,
            fallbacks: asked.fallbacks,
            strategy: asked.strategy,
            budget: asked.budget,
            temperature: asked.temperature,
            options: asked.options,
            key: self.key,
            output_schema: self.output_schema.clone(),
            instructions: self.instructions.clone(),
            system_prompt: Content::new(prompt),
            tools: agent.shown.text.clone(),
            labels: self.labels,
            limits: asked.limits,
            autonomy: self.autonomy,
            effects: self.effects,
            quoted: true,
            debug: self.debug,
            safety: asked.safety,
            time_zone,
            metadata: self.metadata.clone(),
            traceparent: trace::present(),
        }
    }
}

impl Engine {
    /// Writes the first events, the run's row, and the end of the chat's branch in one transaction.
    pub(super) async fn record_start(
        &self,
        plan: &Plan<'_>,
        now: Time,
        events: Vec<Event>,
    ) -> Result<RunId, EngineError> {
        let run = plan.run;
        let held = self.held(Record::Run(plan.workspace, plan.agent.id, plan.user)).await?;
        let events: Vec<_> = events.into_iter().map(|event| event.without(&held)).collect();
        let (mut state, mut head, mut entries) = (State::default(), Head::START, Vec::new());
        for event in &events {
            let body = event.encode(self.env().random()).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
            let entry = Entry::next(StreamId::Run(run), head, event.kind(), now, body);
            head = entry.head();
            state.apply(event, head.seq, now).map_err(|bad| EngineError::impossible(run, &bad))?;
            entries.push(entry);
        }
        let row = projection::run_row(&state, head).ok_or_else(|| EngineError::not_found("run", run))?;
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
                places: plan.agent.config.max_concurrent_runs,
            }),
            approvals: Vec::new(),
            calls: Vec::new(),
            rules: Vec::new(),
            audit: run_rows(&state, (1..).zip(&events).map(|(seq, event)| (seq, now, event))),
            marks: Vec::new(),
            takings: Vec::new(),
            under: None,
            model_calls: Vec::new(),
            doing: plan.waited.then_some(Doing::StartWaiting(run)),
            spends: Vec::new(),
        };
        self.store().append(append).await?;
        Ok(run)
    }
}
