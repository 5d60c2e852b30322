//! Runs that go on from another: from a point of it, or from the limit it stopped at.

use adjutant_core::content::Content;
use adjutant_core::id::{RunId, UserId, WorkspaceId};
use adjutant_core::limits::TURNS_CEILING;
use adjutant_core::run::event::{Base, Effects};
use adjutant_core::run::state::State;
use adjutant_core::run::step::AT_A_LIMIT;

use super::chats::check_instructions;
use super::plan::Plan;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::projection::preview;

/// A request to go on from a point of another run.
#[derive(Debug, Clone, Default)]
pub struct Fork {
    /// The event to go on from; the beginning when none.
    pub at: Option<u64>,
    /// Another model.
    pub model: Option<String>,
    /// Other instructions than the agent's, for this run.
    pub system_prompt: Option<String>,
    /// Whether effects are real; as in the other run when none.
    pub effects: Option<Effects>,
}

impl Engine {
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
        if let Some(at) = fork.at.filter(|at| *at > row.head.seq) {
            let (last, text) = (row.head.seq, "the run has no event");
            return Err(EngineError::Invalid(format!("{text} {at} to go on from: its last one is {last}")));
        }
        let (at, state) = self.turn_end(workspace, run, fork.at.unwrap_or(1)).await?;
        let start = state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        let agent = self.active_agent(workspace, row.agent, user).await?;
        let (instructions, filtered) = match &fork.system_prompt {
            Some(text) => self
                .filter_prompt(workspace, user, &agent, check_instructions(text)?)
                .await
                .map(|(text, noted)| (Some(text), noted))?,
            None => (None, None),
        };
        let title = format!(
            "Fork of {}",
            preview(&start.user_message.as_ref().map(|text| text.text().into_owned()).unwrap_or_default())
        );
        let chat = self.new_chat(workspace, user, &agent, row.notebook, title, Some(run)).await?;
        let base = (Some(Base { run, seq: at }), state.labels);
        let wishes = self.wishes(start, None).await?;
        let mut plan = Plan {
            max_cost: wishes.max_cost,
            turns: wishes.turns.map(|turns| turns.min(agent.config.max_turns)),
            seed: wishes.seed,
            tool_choice: wishes.tool_choice,
            effects: fork.effects.unwrap_or(start.effects),
            filtered: filtered.into_iter().collect(),
            ..Plan::after(self.env().id(), user, &agent, chat, start, base)
        };
        if fork.model.is_some() {
            (plan.model, plan.fallbacks) = (fork.model, Vec::new());
        }
        if let Some(text) = instructions {
            plan.instructions = Some(Content::new(text));
        }
        self.begin(plan).await
    }

    /// Goes on with a run that stopped at a limit: a new one of the same chat, built on it, with so many turns. The old one
    /// stays as it is.
    ///
    /// # Errors
    /// When there is no such run, it did not stop at a limit, or its chat has gone on since.
    pub async fn extend_run(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        run: RunId,
        extra_turns: u32,
    ) -> Result<RunId, EngineError> {
        if !(1..=TURNS_CEILING).contains(&extra_turns) {
            return Err(EngineError::Invalid(format!("extra_turns is from 1 to {TURNS_CEILING}")));
        }
        let row = self.run_row(workspace, run).await?;
        // Before it was told how the run ended: the model goes on where it was stopped.
        let (at, state) = self.turn_end(workspace, run, row.head.seq).await?;
        let start = state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        let stopped = state.error.as_ref().is_some_and(|error| AT_A_LIMIT.contains(&error.code.as_str()));
        if !stopped || row.state.ended_at.is_none() {
            return Err(EngineError::Invalid(format!("{run} did not stop at a limit; only such a run is extended")));
        }
        let chat =
            self.store().chat(workspace, row.chat).await?.ok_or_else(|| EngineError::not_found("chat", row.chat))?;
        if chat.tip != Some(run) {
            return Err(EngineError::Invalid(format!("the chat of {run} has gone on since; say there what to do")));
        }
        let agent = self.active_agent(workspace, row.agent, user).await?;
        let base = (Some(Base { run, seq: at }), state.labels);
        let wishes = self.wishes(start, None).await?;
        let plan = Plan {
            max_cost: wishes.max_cost,
            turns: Some(extra_turns),
            // A tool that had to be used first was used, or asked for: it goes on from there.
            seed: wishes.seed,
            ..Plan::after(self.env().id(), user, &agent, chat, start, base)
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
}
