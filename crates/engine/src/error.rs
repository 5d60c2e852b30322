//! What can go wrong in the engine: one variant per reaction.

use std::time::Duration;

use adjutant_core::guard::policy::AgentProblem;
use adjutant_core::id::RunId;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::command::Refusal;
use adjutant_core::run::event::BadEvent;
use adjutant_core::run::state::Impossible;
use adjutant_core::time::Time;
use adjutant_models::ModelError;
use adjutant_store::StoreError;
use adjutant_tools::FileError;

use crate::rates::seconds;

/// Why the engine did not do what was asked. Unless it says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no such thing, or it belongs to somebody else.
    #[error("there is no {what} `{name}`")]
    NotFound {
        /// Its kind.
        what: &'static str,
        /// What it was called.
        name: String,
    },
    /// The run does not accept the command.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The chat's last run has not ended.
    #[error("the chat is busy with {0}")]
    Busy(RunId),
    /// Something cannot be taken away while a run of it goes on.
    #[error("the {what} is in use by {run}")]
    InUse {
        /// What it is.
        what: String,
        /// The run.
        run: RunId,
    },
    /// Whoever asks is nobody we know: no name, a wrong password, a token that is not good.
    #[error("you are not signed in, or what you signed in with is not good (any more)")]
    Unauthenticated,
    /// It was tried too often.
    #[error("it was tried too often")]
    TooMany {
        /// When it may be tried again.
        retry_after: Duration,
    },
    /// A name is in use.
    #[error("there is a {what} `{name}` already")]
    Taken {
        /// What carries it.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The agent is switched off.
    #[error("the agent `{0}` is not active")]
    AgentInactive(String),
    /// The notebook is there, and the agent's scope does not name it.
    #[error("the scope of the agent `{agent}` does not name the notebook `{notebook}`")]
    OutOfScope {
        /// The agent.
        agent: String,
        /// The notebook.
        notebook: String,
    },
    /// The agent's content filter forbids what was said.
    #[error("entry {entry} of the content filter of `{agent}` forbids this message")]
    ContentBlocked {
        /// The agent.
        agent: String,
        /// The entry, by its place in the filter.
        entry: usize,
    },
    /// The agent has made its model calls of this hour.
    #[error("the agent `{agent}` has used up its model calls of this hour; there is room again in {} s", seconds(*.wait))]
    RateLimited {
        /// The agent.
        agent: String,
        /// How long until there is room.
        wait: Duration,
    },
    /// The stop switch of the workspace or the instance is on.
    #[error("everything is stopped here: {reason}")]
    Halted {
        /// Why.
        reason: String,
    },
    /// The money of a day or a month is spent.
    #[error(
        "the budget of the {whose} for this {period} is used up: {spent} of {limit} spent; it comes back at {until}"
    )]
    BudgetExhausted {
        /// Whose: `agent`, `person`, `workspace`.
        whose: &'static str,
        /// `day` or `month`.
        period: &'static str,
        /// What was spent.
        spent: MicroUsd,
        /// What may be.
        limit: MicroUsd,
        /// When there is money again.
        until: Time,
    },
    /// Nobody knows what a model call outside of a run costs, and there is a limit.
    #[error(
        "the price of the model `{model}` is not known, so the budget of the {whose} for this {period} cannot hold"
    )]
    PriceUnknown {
        /// The model.
        model: String,
        /// Whose budget: `person`, `workspace`, `key`.
        whose: &'static str,
        /// `day` or `month`.
        period: &'static str,
    },
    /// A provider did not do what a model call outside of a run asked of it.
    #[error(transparent)]
    Model(ModelError),
    /// What was given cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// An agent's configuration cannot be used.
    #[error("the agent cannot be saved: {}", list(.0))]
    InvalidAgent(Vec<AgentProblem>),
    /// A standing rule cannot be used.
    #[error("the rule cannot be saved: {}", .0.join("; "))]
    InvalidRule(Vec<String>),
    /// The log is damaged, or was written by a newer version. The run is left alone.
    #[error("the log of {run} cannot be followed: {why}")]
    BadLog {
        /// The run.
        run: RunId,
        /// What is wrong.
        why: String,
    },
    /// The bodies of the run's events were erased: there is nothing left to read.
    #[error("what happened in {run} was erased")]
    Erased {
        /// The run.
        run: RunId,
    },
    /// A notebook's folder cannot be opened.
    #[error("the notebook `{name}` cannot be opened: {why}")]
    Notebook {
        /// The notebook.
        name: String,
        /// Why.
        why: String,
    },
    /// A file of a notebook could not be read or changed.
    #[error("{path}: {why}")]
    File {
        /// Its path in the notebook.
        path: String,
        /// Why.
        why: FileError,
    },
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(problems: &[AgentProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl EngineError {
    pub(crate) fn not_found(what: &'static str, name: impl ToString) -> Self {
        Self::NotFound { what, name: name.to_string() }
    }

    /// Whether a run that meets this cannot go on, because of its agent or its notebook. A store or a log that fails is not
    /// the run's fault.
    pub(crate) const fn ends_a_run(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::Invalid(_)
            | Self::InvalidAgent(_)
            | Self::InvalidRule(_)
            | Self::AgentInactive(_)
            | Self::OutOfScope { .. }
            | Self::Notebook { .. } => true,
            Self::Refused(_)
            | Self::Busy(_)
            | Self::Unauthenticated
            | Self::TooMany { .. }
            | Self::Taken { .. }
            | Self::ContentBlocked { .. }
            | Self::RateLimited { .. }
            | Self::Halted { .. }
            | Self::BudgetExhausted { .. }
            | Self::PriceUnknown { .. }
            | Self::Model(_)
            | Self::BadLog { .. }
            | Self::Erased { .. }
            | Self::File { .. }
            | Self::InUse { .. }
            | Self::Store(_) => false,
        }
    }

    pub(crate) fn bad_event(run: RunId, bad: &BadEvent) -> Self {
        Self::BadLog { run, why: bad.to_string() }
    }

    pub(crate) fn impossible(run: RunId, bad: &Impossible) -> Self {
        Self::BadLog { run, why: bad.to_string() }
    }
}
