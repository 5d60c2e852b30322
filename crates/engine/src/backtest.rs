//! The past under another policy: every recorded call of an agent is judged again under a draft, from what was recorded
//! then. Acts on nothing and calls no model; costs what reading the logs costs.

use adjutant_core::guard::arguments;
use adjutant_core::guard::judge::{Answer, Authority, Caller, Decision, Definition, Life, Question, Verdict, judge};
use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::id::{AgentId, CallId, NotebookId, RunId, WorkspaceId};
use adjutant_core::run::event::{CallJudged, Event};
use adjutant_core::run::state::State;
use adjutant_core::time::Time;
use adjutant_store::row::{RunFilter, RunRow};
use serde::Serialize;

use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::texts;
use crate::replay::NOT_THE_GUARDS;

/// Runs looked up at a time.
const PAGE: u32 = 128;

/// What would have been different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backtest {
    /// The agent.
    pub agent_id: AgentId,
    /// When the standing rules were read that all calls were judged under: what counted at the time of a call is not tried.
    pub rules_as_of: Time,
    /// Runs that were read.
    pub runs: usize,
    /// Runs of which nothing is left to read.
    pub erased: usize,
    /// Calls that were judged again.
    pub calls: usize,
    /// Calls that were not the guard's to decide (limits of a turn, a repeated call), and arguments that are gone.
    pub skipped: usize,
    /// Calls that come out differently, newest run first.
    pub changes: Vec<BacktestChange>,
}

impl Backtest {
    /// How many calls would newly be allowed, asked about or denied.
    #[must_use]
    pub fn newly(&self, decision: Decision) -> usize {
        self.changes.iter().filter(|change| change.would_be == decision).count()
    }
}

/// A call that comes out differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BacktestChange {
    /// The run.
    pub run_id: RunId,
    /// The call.
    pub call_id: CallId,
    /// When it was judged.
    pub at: Time,
    /// The tool.
    pub tool: String,
    /// The first path that it touches.
    pub path: Option<String>,
    /// What the guard said then.
    pub was: Decision,
    /// What it would say.
    pub would_be: Decision,
    /// The rule that would decide.
    pub rule: String,
    /// Why.
    pub reason: String,
}

impl Engine {
    /// Judges every recorded call of an agent again under a draft of it.
    ///
    /// # Errors
    /// When there is no such agent, or a log cannot be followed.
    pub async fn backtest(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        draft: &AgentConfig,
        since: Option<Time>,
    ) -> Result<Backtest, EngineError> {
        let draft = self.draft_of(workspace, agent, draft.clone()).await?;
        let mut found = Backtest {
            agent_id: agent,
            rules_as_of: self.env().now(),
            runs: 0,
            erased: 0,
            calls: 0,
            skipped: 0,
            changes: Vec::new(),
        };
        let mut filter = RunFilter { agent: Some(agent), superseded: true, ..RunFilter::default() };
        loop {
            let rows = self.store().runs(workspace, &filter, PAGE).await?;
            let last = rows.len() < PAGE as usize;
            for row in rows {
                filter.before = Some(row.id);
                // Ids are in the order of time, so all that follow are older still.
                if since.is_some_and(|since| row.created_at < since) {
                    return Ok(found);
                }
                match self.backtest_run(&row, &draft, &mut found).await {
                    Ok(()) => found.runs += 1,
                    Err(EngineError::Erased { .. }) => found.erased += 1,
                    Err(error) => return Err(error),
                }
            }
            if last {
                return Ok(found);
            }
        }
    }

    async fn backtest_run(&self, row: &RunRow, draft: &CurrentAgent, found: &mut Backtest) -> Result<(), EngineError> {
        let mut state = State::default();
        let admitted = match row.notebook {
            Some(id) => self.admits(row.workspace, draft, id).await?,
            None => false,
        };
        for item in self.recorded(row.workspace, row.id, 0, None).await? {
            if let Event::CallJudged(judged) = &item.event {
                match self.again(row, &state, judged, draft, admitted, item.at).await? {
                    Again::Change(change) => {
                        found.calls += 1;
                        found.changes.push(*change);
                    }
                    Again::Same => found.calls += 1,
                    Again::NotOurs => found.skipped += 1,
                    Again::Later => {}
                }
            }
            state.apply(&item.event, item.seq, item.at).map_err(|bad| EngineError::impossible(row.id, &bad))?;
        }
        Ok(())
    }

    async fn admits(&self, workspace: WorkspaceId, draft: &CurrentAgent, id: NotebookId) -> Result<bool, EngineError> {
        let notebook = self.store().notebook(workspace, id).await?;
        Ok(notebook.is_some_and(|row| draft.scope.admits_notebook(&id.to_string(), &row.slug)))
    }

    async fn again(
        &self,
        row: &RunRow,
        state: &State,
        judged: &CallJudged,
        draft: &CurrentAgent,
        notebook: bool,
        at: Time,
    ) -> Result<Again, EngineError> {
        let (Some(start), Some(call)) = (&state.start, state.call(&judged.call)) else { return Ok(Again::NotOurs) };
        // A second look after a person's yes is not a new call.
        if call.answered.is_some() || call.judged.is_some() {
            return Ok(Again::Later);
        }
        // Who the person was is not a matter of the draft.
        if NOT_THE_GUARDS.contains(&judged.verdict.rule.as_str()) || judged.verdict.rule == "role" {
            return Ok(Again::NotOurs);
        }
        let mut written = call.arguments.clone();
        if let Some(hash) = written.missing() {
            let loaded = texts(self.store(), row.workspace, &[hash]).await?;
            let Some(text) = loaded.get(&hash) else { return Ok(Again::NotOurs) };
            written.fill(text);
        }
        let checked = self.checked(&call.tool, arguments::parse(&written.text()));
        let verdict = judge(&Question {
            agent: &draft.config,
            scope: &draft.scope,
            tool: &call.tool,
            spec: self.tools().get(&call.tool).map(|tool| tool.spec()),
            arguments: checked.as_ref().map_err(String::as_str),
            prepared: judged.prepared.as_ref(),
            life: Life::Running,
            definition: Definition::AsPinned,
            outside: &draft.outside,
            filter: &draft.filter,
            effects: start.effects,
            autonomy: start.autonomy,
            notebook,
            labels: state.labels,
            caller: Caller { agent: start.agent, chat: start.chat, run: row.id, notebook: start.notebook, now: at },
            rules: &draft.rules,
            authority: Authority::Acts,
            answer: Answer::None,
        });
        if verdict.decision == judged.verdict.decision {
            return Ok(Again::Same);
        }
        Ok(Again::Change(Box::new(change(row.id, &call.tool, judged, verdict, at))))
    }
}

/// What became of one recorded verdict.
enum Again {
    /// It comes out differently.
    Change(Box<BacktestChange>),
    /// It comes out the same.
    Same,
    /// The guard had no say in it.
    NotOurs,
    /// The call was judged before.
    Later,
}

fn change(run: RunId, tool: &str, judged: &CallJudged, verdict: Verdict, at: Time) -> BacktestChange {
    let seen = judged.prepared.as_ref().and_then(|prepared| prepared.target.0.keys().next().cloned());
    BacktestChange {
        run_id: run,
        call_id: judged.call.clone(),
        at,
        tool: tool.to_owned(),
        path: seen.or_else(|| judged.touches.first().map(|touch| touch.path.clone())),
        was: judged.verdict.decision,
        would_be: verdict.decision,
        rule: verdict.rule,
        reason: verdict.reason,
    }
}
