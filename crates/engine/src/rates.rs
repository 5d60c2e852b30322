//! What calls take from rates, and what to say when there is no room. Taken in the append that starts the call (guard 6).

use std::time::Duration;

use adjutant_core::guard::judge::Verdict;
use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::guard::rate::{self, Rate, Take, Taking, UsedUp};
use adjutant_core::id::{AgentId, CallId, UserId};
use adjutant_core::run::event::CallStarted;
use adjutant_core::run::state::Call;
use adjutant_core::time::Time;
use adjutant_core::tool::ToolSpec;

use crate::current::CurrentAgent;
use crate::driver::Driver;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::Flushed;

/// An allowance that was used up when it was needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limited {
    kind: Kind,
    /// When there is room again.
    pub(crate) until: Time,
    wait: Duration,
}

/// Whose allowance it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tool,
    User,
    Model,
    Trigger,
}

impl Kind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::User => "user",
            Self::Model => "model",
            Self::Trigger => rate::TRIGGER,
        }
    }

    fn of(key: &str) -> Self {
        let is = |kind: Self| key.split('/').next() == Some(kind.prefix());
        if is(Self::Tool) {
            Self::Tool
        } else if is(Self::User) {
            Self::User
        } else if is(Self::Trigger) {
            Self::Trigger
        } else {
            Self::Model
        }
    }
}

impl Limited {
    pub(crate) fn new(used: &UsedUp, now: Time) -> Self {
        Self { kind: Kind::of(&used.key), until: now.after(used.wait), wait: used.wait }
    }

    /// The refusal of a call. An agent's own limit of a tool can be raised as far as the tool allows; what the tool itself
    /// allows cannot.
    pub(crate) fn verdict(&self, tool: &str, agent: &AgentConfig, own: Option<Rate>) -> Verdict {
        let what = match self.kind {
            Kind::Tool => format!("This agent has used up its calls of `{tool}` for now"),
            Kind::User | Kind::Model => "The person this run acts for has used up their tool calls for now".to_owned(),
            Kind::Trigger => "Triggers have started this agent as often as they may for now".to_owned(),
        };
        let reason = format!("{what}. There is room again in {} s.", seconds(self.wait));
        let grant = match self.kind {
            Kind::Tool => agent
                .tool_limits
                .get(tool)
                .filter(|calls| own.is_none_or(|own| **calls < own.calls))
                .map(|calls| format!("tool_limits: {tool}: {}", calls + 1)),
            Kind::User | Kind::Model => Some("user_calls_per_minute".to_owned()),
            Kind::Trigger => None,
        };
        Verdict::deny("rate", reason, grant)
    }
}

/// Whole seconds after which it is worth trying again.
pub(crate) fn seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// What a tool call takes: from the agent's calls of that tool, and from the person's calls of all.
pub(crate) fn of_call(
    agent: (AgentId, &AgentConfig),
    spec: &ToolSpec,
    user: (UserId, Option<Rate>),
    at: Time,
) -> Option<Taking> {
    let (id, config) = agent;
    let tool = config.tool_rate(spec).map(|rate| (format!("{}/{id}/{}", Kind::Tool.prefix(), spec.name()), rate));
    let person = user.1.map(|rate| (format!("{}/{}", Kind::User.prefix(), user.0), rate));
    let takes: Vec<_> = tool.into_iter().chain(person).map(|(key, rate)| Take { key, rate }).collect();
    (!takes.is_empty()).then_some(Taking { at, takes })
}

/// What a model call takes: from the agent's calls of an hour.
pub(crate) fn of_request(id: AgentId, config: &AgentConfig, at: Time) -> Taking {
    let key = format!("{}/{id}", Kind::Model.prefix());
    Taking { at, takes: vec![Take { key, rate: Rate::per_hour(config.max_requests_per_hour) }] }
}

impl Driver {
    /// The refusal of a call that found no room in its rate.
    pub(crate) fn too_often(&self, agent: &AgentConfig, call: &Call) -> Option<Verdict> {
        let own = self.engine.tools().get(&call.tool).and_then(|tool| tool.spec().rate());
        self.log.limited.get(&Some(call.id.clone())).map(|limited| limited.verdict(&call.tool, agent, own))
    }

    /// Starts calls that the guard has just allowed. One that was allowed a while ago (it waited for another) is judged
    /// again first, because the policy may have changed; so is one that found no room in its rate.
    pub(crate) async fn start_judged(&mut self, calls: &[CallId]) -> Result<Flushed, EngineError> {
        let again = |id: &&CallId| !self.toolbox.is_fresh(id) || self.log.limited.contains_key(&Some((*id).clone()));
        let again: Vec<_> = calls.iter().filter(again).cloned().collect();
        if again.is_empty() { self.start(calls).await } else { self.judge(&again).await }
    }

    /// What a call takes when it is first started. Trying it again is the same call.
    pub(crate) fn taking(&self, agent: &CurrentAgent, started: &CallStarted) -> Option<Taking> {
        let tool = self.engine.tools().get(&started.tool).filter(|_| started.attempt == 1)?;
        let user = self.state().start.as_ref()?.initiator;
        of_call((agent.id, &agent.config), tool.spec(), (user, self.engine.user_rate()), self.now())
    }
}

impl Engine {
    /// Tells whoever starts a run at once that its agent has no model call left, instead of letting it hold at its first.
    pub(crate) async fn check_requests(&self, agent: &CurrentAgent, now: Time) -> Result<(), EngineError> {
        match self.store().wait_for(&of_request(agent.id, &agent.config, now)).await? {
            None => Ok(()),
            Some(wait) => Err(EngineError::RateLimited { agent: agent.config.slug.clone(), wait }),
        }
    }
}
