//! The rows that follow from a run's state. Pure: the log is the truth, and these can be made again at any time.

mod budget;

use std::collections::BTreeSet;

use adjutant_core::budget::BudgetAsk;
use adjutant_core::id::{ApprovalId, CallId, UserId};
use adjutant_core::run::chain::Head;
use adjutant_core::run::event::{Actor, ApprovalKind, Decision, Event, Risk};
use adjutant_core::run::state::{Approval, Call, State};
use adjutant_store::row::{ApprovalRow, CallEnd, CallRow, RunRow, RunState};
use serde::{Deserialize, Serialize};

/// Characters of a message or result that lists show.
const PREVIEW: usize = 160;

/// What lists show of a run beyond its columns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunSummary {
    /// What the person said, cut short.
    pub title: String,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The answer, cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Whether tokens or prices of some call are estimated or not known.
    #[serde(default)]
    pub cost_estimated: bool,
    /// The code of what went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Whether the price of some call is not known. Rows that were written before this was kept do not say, so it may be.
    #[serde(default = "maybe")]
    pub unpriced: bool,
}

const fn maybe() -> bool {
    true
}

/// The inbox item as a person sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// One line: what would happen, or what is known.
    pub summary: String,
    /// `low`, `medium` or `high`.
    pub risk: String,
    /// Why it asks.
    pub reason: String,
    /// The rule that asks.
    pub rule: String,
    /// What was decided: `approve`, `reject`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Who started the run, and so may decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator: Option<UserId>,
    /// What is asked for, where it is money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<BudgetAsk>,
}

/// The row of a run that nobody drives, if it has begun. What replaced it is in the log of that run, not in its own.
pub(crate) fn run_row(state: &State, head: Head) -> Option<RunRow> {
    let start = state.start.as_ref()?;
    Some(RunRow {
        id: start.run,
        workspace: start.workspace,
        chat: start.chat,
        agent: start.agent,
        agent_version: start.agent_version,
        notebook: start.notebook,
        base: start.base.map(|base| (base.run, base.seq)),
        parent: start.parent(),
        initiator: start.initiator,
        trigger: start.trigger.clone(),
        created_at: state.started_at,
        superseded_by: None,
        head,
        owner: None,
        epoch: 0,
        state: run_state(state),
    })
}

/// The columns of the run's row that change.
pub(crate) fn run_state(state: &State) -> RunState {
    let title = state
        .start
        .as_ref()
        .and_then(|start| start.user_message.as_ref())
        .map(|text| preview(&text.text()))
        .unwrap_or_default();
    let summary = RunSummary {
        title,
        error: state.error.as_ref().map(|error| error.message.clone()),
        result: state.end.as_ref().map(|(end, _)| preview(&end.result.text())).filter(|text| !text.is_empty()),
        cost_estimated: state.estimated || state.unpriced,
        error_code: state.error.as_ref().map(|error| error.code.clone()),
        unpriced: state.unpriced,
    };
    RunState {
        status: state.status().word().to_owned(),
        due: state.due(),
        updated_at: state.updated_at,
        ended_at: state.end.as_ref().map(|(_, at)| *at),
        turns: u32::try_from(state.turns.len()).unwrap_or(u32::MAX),
        calls: u32::try_from(state.calls().count()).unwrap_or(u32::MAX),
        usage: state.usage,
        cost: state.cost,
        summary: serde_json::to_string(&summary).unwrap_or_default(),
    }
}

/// The first line of a text, cut to what a list shows.
pub(crate) fn preview(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if line.chars().count() <= PREVIEW {
        line.to_owned()
    } else {
        line.chars().take(PREVIEW - 1).chain(['…']).collect()
    }
}

/// The inbox rows that these events make or change.
pub(crate) fn approval_rows<'a>(state: &State, events: impl IntoIterator<Item = &'a Event>) -> Vec<ApprovalRow> {
    let mut touched: BTreeSet<ApprovalId> = BTreeSet::new();
    for event in events {
        match event {
            Event::ApprovalAsked(body) => {
                // A newer item replaces the older ones of its call.
                touched.extend(state.approvals.iter().filter(|(_, other)| other.call == body.call).map(|(id, _)| *id));
            }
            Event::ApprovalDecided(body) => {
                touched.insert(body.approval);
            }
            Event::CallInDoubt(body) => {
                touched.insert(body.approval);
            }
            Event::InDoubtResolved(body) => {
                touched.insert(body.approval);
            }
            Event::CallEnded(body) => {
                touched.extend(state.approvals.iter().filter(|(_, other)| other.call == body.call).map(|(id, _)| *id));
            }
            Event::RunEnded(_) => touched.extend(state.approvals.keys().chain(state.budget_items.keys())),
            // A run that holds for money asks; whatever moves it answers.
            Event::Paused(_) | Event::Resumed(_) | Event::CancelAsked(_) | Event::ModelRequested(_) => {
                touched.extend(state.budget_items.keys());
            }
            Event::RunStarted(_)
            | Event::Thought(_)
            | Event::Said(_)
            | Event::ModelAnswered(_)
            | Event::ModelFailed(_)
            | Event::CallProposed(_)
            | Event::CallJudged(_)
            | Event::CallStarted(_)
            | Event::LabelsRaised(_)
            | Event::ContentFiltered(_)
            | Event::BudgetAlerted(_)
            | Event::Cancelled(_)
            | Event::Errored(_) => {}
        }
    }
    touched.into_iter().filter_map(|id| approval_row(state, id)).collect()
}

/// Every inbox row of a run.
pub(crate) fn all_approval_rows(state: &State) -> Vec<ApprovalRow> {
    state.approvals.keys().chain(state.budget_items.keys()).filter_map(|id| approval_row(state, *id)).collect()
}

fn approval_row(state: &State, id: ApprovalId) -> Option<ApprovalRow> {
    let start = state.start.as_ref()?;
    if let Some(item) = state.budget_items.get(&id) {
        return Some(budget::row(start, id, item, state.pause.as_ref()));
    }
    let approval = state.approvals.get(&id)?;
    let call = state.call(&approval.call);
    let decided_at = approval.decided.as_ref().map(|(_, at)| *at);
    let resolved_at = approval.resolved.as_ref().map(|(_, at)| *at);
    let kind = match approval.kind {
        ApprovalKind::Call => "call",
        ApprovalKind::InDoubt => "in_doubt",
        ApprovalKind::Budget => "budget",
    };
    Some(ApprovalRow {
        id,
        workspace: start.workspace,
        run: start.run,
        chat: start.chat,
        agent: start.agent,
        call: Some(approval.call.clone()),
        kind: kind.to_owned(),
        status: approval_status(approval).to_owned(),
        tool: call.map(|call| call.tool.clone()),
        created_at: approval.asked_at,
        expires_at: approval.expires_at(),
        decided_at: decided_at.or(resolved_at),
        card: serde_json::to_string(&card(start.initiator, approval)).unwrap_or_default(),
    })
}

fn approval_status(approval: &Approval) -> &'static str {
    match &approval.decided {
        Some((decided, _)) => match (decided.decision, &decided.by) {
            (Decision::Approve | Decision::Edit, _) => "approved",
            (_, Actor::Clock) => "expired",
            (Decision::Respond | Decision::Reject | Decision::Stop, Actor::User(_) | Actor::Rule(_)) => "rejected",
        },
        None if approval.is_pending() => "pending",
        None if approval.resolved.is_some() => "approved",
        None => "superseded",
    }
}

fn card(initiator: UserId, approval: &Approval) -> Card {
    let decided = approval.decided.as_ref().map(|(decided, _)| (word(&decided.decision), actor(&decided.by)));
    let resolved = approval.resolved.as_ref().map(|(resolved, _)| (word(&resolved.outcome), actor(&resolved.by)));
    let (decision, decided_by) = decided.or(resolved).unzip();
    let (summary, risk, reason, rule) = match (&approval.asked, &approval.doubt) {
        (Some(asked), _) => {
            // Where a person put other arguments in place of what was asked, those are what was said yes to.
            let edited = approval.decided.as_ref().and_then(|(decided, _)| decided.edited(&asked.tool));
            (
                edited.unwrap_or_else(|| asked.summary.clone()),
                word(&asked.risk),
                asked.reason.clone(),
                asked.rule.clone(),
            )
        }
        (None, Some(doubt)) => {
            let summary = if doubt.summary.is_empty() { &doubt.tool } else { &doubt.summary };
            (summary.clone(), word(&Risk::High), doubt.message.clone(), "in_doubt".to_owned())
        }
        (None, None) => Default::default(),
    };
    Card { summary, risk, reason, rule, decision, decided_by, initiator: Some(initiator), ask: None }
}

/// Who did something, as text.
pub(crate) fn actor(actor: &Actor) -> String {
    match actor {
        Actor::User(id) => id.to_string(),
        Actor::Clock => "clock".to_owned(),
        Actor::Rule(name) => format!("rule {name}"),
    }
}

/// The stored word of a unit enum.
pub(crate) fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The call rows that these events make or change.
pub(crate) fn call_rows<'a>(state: &State, events: impl IntoIterator<Item = &'a Event>) -> Vec<CallRow> {
    let touched: BTreeSet<&CallId> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::CallProposed(body) => Some(&body.call),
            Event::CallJudged(body) => Some(&body.call),
            Event::CallStarted(body) => Some(&body.call),
            Event::CallEnded(body) => Some(&body.call),
            Event::CallInDoubt(body) => Some(&body.call),
            // A yes takes the verdict back: the guard looks once more.
            Event::ApprovalDecided(body) => Some(&body.call),
            Event::InDoubtResolved(body) => Some(&body.call),
            Event::RunStarted(_)
            | Event::ModelRequested(_)
            | Event::Thought(_)
            | Event::Said(_)
            | Event::ModelAnswered(_)
            | Event::ModelFailed(_)
            | Event::ApprovalAsked(_)
            | Event::LabelsRaised(_)
            | Event::ContentFiltered(_)
            | Event::BudgetAlerted(_)
            | Event::Paused(_)
            | Event::Resumed(_)
            | Event::CancelAsked(_)
            | Event::Cancelled(_)
            | Event::Errored(_)
            | Event::RunEnded(_) => None,
        })
        .collect();
    state.calls().filter(|call| touched.contains(&call.id)).filter_map(|call| call_row(state, call)).collect()
}

/// Every call row of a run.
pub(crate) fn all_call_rows(state: &State) -> Vec<CallRow> {
    state.calls().filter_map(|call| call_row(state, call)).collect()
}

fn call_row(state: &State, call: &Call) -> Option<CallRow> {
    let start = state.start.as_ref()?;
    Some(CallRow {
        run: start.run,
        workspace: start.workspace,
        call: call.id.clone(),
        tool: call.tool.clone(),
        target: call.target().and_then(|target| target.0.keys().next().cloned()),
        verdict: call.judged.as_ref().map(|judged| judged.verdict.decision.word().to_owned()),
        attempts: call.started.as_ref().map_or(0, |started| started.attempt),
        proposed_at: call.proposed_at,
        started_at: call.started_at,
        ended: call.ended.as_ref().map(|(ended, seq, at)| CallEnd { seq: *seq, at: *at, is_error: ended.is_error }),
    })
}
