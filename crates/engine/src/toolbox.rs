//! Judging and running tool calls: the surroundings a tool sees, the guard's question, and the task a call runs in.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use adjutant_core::content::Content;
use adjutant_core::guard::arguments::{self, ArgumentError};
use adjutant_core::guard::judge::{
    Authority, Decision, Definition, Life, Place, Question, Verdict, fingerprint, judge, over_limit, risk, touches,
};
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::redact::{Mode, redact};
use adjutant_core::guard::rule::Match;
use adjutant_core::id::CallId;
use adjutant_core::label::Labels;
use adjutant_core::limits;
use adjutant_core::message::FinishReason;
use adjutant_core::run::event::{
    ApprovalAsked, ApprovalKind, CallJudged, CallStarted, Effects, GrantScope, LabelsRaised, Standing, StartedAgain,
};
use adjutant_core::run::state::{Call, State};
use adjutant_core::tool::{Prepared, Recovery, ToolOutcome};
use adjutant_models::retry::backoff;
use adjutant_store::row::Under;
use adjutant_tools::{Tool, World};
use futures::future::FutureExt;
use serde_json::Value;

use crate::current::CurrentAgent;
use crate::driver::Driver;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::Flushed;
use crate::marks::Heard;
use crate::service::Role;
use crate::work::{Work, said};

/// How long a tool may look at what a call would do, or did.
const LOOK: Duration = Duration::from_secs(30);
/// What is known of a call that was given up with the lease.
const OUT_OF_TOUCH: &str =
    "This server lost touch with its database while the tool ran, and gave it up: it may or may not have happened.";
/// The rule that refuses what a tool could not do when it looked.
pub(crate) const NOT_POSSIBLE: &str = "not_possible";

/// What calls are judged and run with. Made when it is first needed, and again for each judgement: the policy may change.
#[derive(Default)]
pub(crate) struct Toolbox {
    agent: Option<CurrentAgent>,
    /// What they were judged by: announcements are held to it.
    under: Option<Under>,
    /// The calls that were judged since anybody last waited.
    fresh: BTreeSet<CallId>,
    /// What allowed calls that were judged again before they are started once more.
    again: BTreeMap<CallId, StartedAgain>,
}

impl Toolbox {
    /// The version of its workspace that the agent was read under last.
    pub(crate) fn workspace_version(&self) -> u64 {
        self.agent.as_ref().map_or(0, |agent| agent.names.workspace)
    }

    /// Whether a call was judged just now.
    pub(crate) fn is_fresh(&self, call: &CallId) -> bool {
        self.fresh.contains(call)
    }

    /// The policy by which calls were last judged.
    pub(crate) fn under(&self) -> Option<Under> {
        self.under.clone()
    }

    /// What whoever started the run is in its workspace. Before anybody looked: nothing.
    fn role(&self) -> Option<String> {
        self.under.as_ref().and_then(|under| under.policy.role.clone())
    }

    /// Whether a stop switch was on when the policy was last read.
    pub(crate) fn is_halted(&self) -> bool {
        self.under.as_ref().is_some_and(|under| under.policy.halted)
    }

    /// Keeps what allowed a call that is about to be started once more.
    pub(crate) fn allow_again(&mut self, call: CallId, by: StartedAgain) {
        self.again.insert(call, by);
    }

    /// What allowed a call to be started once more, if it was judged for that.
    pub(crate) fn allowed_again(&mut self, call: &CallId) -> Option<StartedAgain> {
        self.again.remove(call)
    }

    /// Time goes by: what was judged has to be judged again before it is started.
    pub(crate) fn age(&mut self) {
        self.fresh.clear();
    }
}

/// What somebody of this role may have done by a run.
pub(crate) fn authority(role: Option<&str>) -> Authority {
    match role.and_then(|role| role.parse().ok()) {
        Some(Role::Write | Role::Admin) => Authority::Acts,
        Some(Role::Read) => Authority::Reads,
        None => Authority::Gone,
    }
}

/// Lets a tool look at the world. None when it takes too long or panics: whoever writes a tool must not be able to stop the
/// run that uses it.
pub(crate) async fn look<T>(tool: &dyn Tool, looking: impl Future<Output = T>) -> Option<T> {
    let looked = tokio::time::timeout(LOOK, AssertUnwindSafe(looking).catch_unwind()).await;
    if !matches!(looked, Ok(Ok(_))) {
        tracing::warn!(tool = tool.spec().name(), "a tool could not look at what it would touch");
    }
    looked.ok()?.ok()
}

impl Engine {
    /// The arguments of a call, read strictly and checked against the tool's schema; or what is wrong, with help (check 2).
    pub(crate) fn checked(&self, tool: &str, read: Result<Value, ArgumentError>) -> Result<Value, String> {
        let Some(tool) = self.tools().get(tool).map(|tool| tool.spec()) else {
            return read.map_err(|bad| format!("The arguments cannot be used: {bad}."));
        };
        let help = || adjutant_tools::help(tool);
        let value = read.map_err(|bad| format!("The arguments cannot be used: {bad}.\n{}", help()))?;
        let Some(schema) = self.schema(tool.name()) else { return Err("This tool has no schema.".to_owned()) };
        schema.validate(&value).map_err(|problems| {
            let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
            format!("The arguments do not fit: {}.\n{}", list.join("; "), help())
        })?;
        Ok(value)
    }
}

/// A reason to refuse a call before the guard is asked: the turn or the run is full, or the call was cut off.
fn no_room(state: &State, call: &Call) -> Option<Verdict> {
    let turn = state.turns.last()?;
    let index = turn.calls.iter().position(|other| other.id == call.id)?;
    let cut = turn.answered.as_ref().is_some_and(|answered| answered.finish == FinishReason::Length);
    let most = state.start.as_ref().map_or(0, |start| start.limits.tool_calls) as usize;
    over_limit(&Place {
        index,
        per_turn: limits::CALLS_PER_TURN,
        cut_off: cut && index + 1 == turn.calls.len(),
        // A call that a person approved was counted when it was asked about, and one that is tried again when it first was. One
        // that is judged again before it starts does not take its own place.
        spent: match call.answered.is_some() || call.started.is_some() {
            true => 0,
            false => state.calls().filter(|other| other.is_spent() && other.id != call.id).count(),
        },
        most,
    })
}

impl Driver {
    /// The agent as it was when calls were last judged.
    pub(crate) async fn known_agent(&mut self) -> Result<CurrentAgent, EngineError> {
        match self.toolbox.agent.clone() {
            Some(agent) => Ok(agent),
            None => self.agent().await,
        }
    }

    pub(crate) async fn agent(&mut self) -> Result<CurrentAgent, EngineError> {
        let ids = self.state().start.as_ref().map(|start| (start.agent, start.initiator));
        let Some((id, person)) = ids else {
            return Err(EngineError::BadLog { run: self.log.run, why: "it has no start".to_owned() });
        };
        let (agent, under) = self.engine.current_for(self.log.workspace, id, person).await?;
        (self.toolbox.agent, self.toolbox.under) = (Some(agent.clone()), Some(under));
        Ok(agent)
    }

    /// Asks the guard about calls, in order, and records each verdict. Whatever asks gets an inbox item.
    pub(crate) async fn judge(&mut self, calls: &[CallId]) -> Result<Flushed, EngineError> {
        self.log.load_texts().await?;
        let agent = self.agent().await?;
        let world = self.world(&agent).await?;
        for id in calls {
            let Some(call) = self.state().call(id).cloned() else { continue };
            let (verdict, prepared) = self.verdict(&agent, &world, &call).await;
            let (verdict, labels) = match verdict.rule == NOT_POSSIBLE {
                true => self.quoted(&agent, &call, verdict).await?,
                false => (verdict, Labels::NONE),
            };
            let asks = verdict.decision == Decision::Ask;
            let diff = prepared.as_ref().and_then(|prepared| prepared.diff.clone());
            // The diff is for the person who is asked; it is kept with the question, not with the verdict.
            let kept = prepared.map(|prepared| Prepared { diff: None, ..prepared });
            let asked = asks.then(|| self.question_for(&agent, &call, &verdict, kept.as_ref(), diff)).flatten();
            let (verdict, asked) = match asked {
                Some(asked) if self.is_refused(&asked) => (refused_before(&call.tool), None),
                asked => (verdict, asked),
            };
            let touches = self.meets(&call);
            self.log.limited.remove(&Some(id.clone()));
            self.toolbox.fresh.insert(id.clone());
            if let Some(config) = &agent.kept {
                self.log.keep(config.as_bytes().to_vec());
            }
            let standing = Some(Standing { rules: agent.rules.about(&call.tool), role: self.toolbox.role() });
            let (call, policy) = (id.clone(), agent.policy);
            self.log.push(CallJudged { call, verdict, policy, prepared: kept, touches, standing, labels })?;
            if let Some(asked) = asked {
                self.log.push(asked)?;
            }
        }
        Ok(Flushed::Written)
    }

    pub(crate) async fn verdict(
        &self,
        agent: &CurrentAgent,
        world: &World,
        call: &Call,
    ) -> (Verdict, Option<Prepared>) {
        if let Some(refused) = no_room(self.state(), call).or_else(|| self.too_often(&agent.config, call)) {
            return (refused, None);
        }
        let tool = self.engine.tools().get(&call.tool);
        let checked = self.engine.checked(&call.tool, arguments::parse(&call.arguments.text()));
        let effects = self.state().start.as_ref().map_or(Effects::Dry, |start| start.effects);
        let question = Question {
            agent: &agent.config,
            scope: &agent.scope,
            tool: &call.tool,
            spec: tool.map(|tool| tool.spec()),
            arguments: checked.as_ref().map_err(String::as_str),
            prepared: None,
            life: if self.state().end_status().is_none() { Life::Running } else { Life::Over },
            definition: Definition::AsPinned,
            outside: &agent.outside,
            filter: &agent.filter,
            effects,
            autonomy: self.state().start.as_ref().and_then(|start| start.autonomy),
            notebook: world.notebook.is_some(),
            labels: self.state().labels,
            caller: self.caller(agent.id),
            rules: &agent.rules,
            authority: authority(self.toolbox.role().as_deref()),
            answer: call.answer(),
        };
        // Nothing is looked at before the guard has said that it may be.
        let first = agent.explained(&call.tool, judge(&question));
        let (Some(tool), Ok(value)) = (tool, &checked) else { return (first, None) };
        if first.decision == Decision::Deny {
            return (first, None);
        }
        let prepared = match look(&**tool, tool.prepare(value, &self.holding(agent, tool.spec(), value, world))).await {
            Some(Ok(prepared)) => prepared,
            Some(Err(outcome)) => return (Verdict::deny(NOT_POSSIBLE, said(&outcome), None), None),
            None => {
                let reason = format!("`{}` could not look at what it would touch.", call.tool);
                return (Verdict::deny(NOT_POSSIBLE, reason, None), None);
            }
        };
        let mut verdict = judge(&Question { prepared: Some(&prepared), ..question });
        let print = || fingerprint(self.log.run, &call.id, tool.spec(), value, &prepared.target);
        if verdict.decision == Decision::Allow
            && let Some(Err((rule, reason))) = call.seen().map(|seen| seen.holds(&prepared, print(), self.now()))
        {
            // A yes that does not count any more: ask again, with a new preview (rule A2).
            verdict = Verdict::ask(rule, reason, None, &[GrantScope::Once]);
        }
        if verdict.decision == Decision::Ask
            && let Some(twin) = self.state().twin(&call.id)
        {
            return (
                Verdict::deny("same_call", format!("This is the same as call {twin}; it is not run again."), None),
                None,
            );
        }
        (verdict, Some(prepared))
    }

    /// The refusal of a call whose tool looked and could not, and its labels: its words may quote what it met, so they count as a
    /// result does for labels, secrets and the content filter (rules I1, I3, R1).
    async fn quoted(
        &mut self,
        agent: &CurrentAgent,
        call: &Call,
        verdict: Verdict,
    ) -> Result<(Verdict, Labels), EngineError> {
        let declared = self.engine.tools().get(&call.tool).map_or(Labels::NONE, |tool| tool.spec().labels);
        let met = if self.touches(call).is_empty() { Labels::NONE } else { Labels::PRIVATE };
        let labels = declared.join(met).join(self.heard_labels(&call.id, Heard::Failure).await);
        if !self.state().labels.covers(labels) {
            self.log.push(LabelsRaised { labels, source: call.tool.clone() })?;
        }
        let reason = redact(&verdict.reason, Mode::Standard).into_owned();
        let reason = self.filter_output(&agent.filter, Some(&call.id), reason)?;
        Ok((Verdict { reason, ..verdict }, labels))
    }

    /// Whether a person has said no to much the same so often that nobody is asked again (rule A5).
    fn is_refused(&self, asked: &ApprovalAsked) -> bool {
        self.state().approvals.values().filter(|before| before.refuses_like(asked)).count() >= limits::REJECTIONS
    }

    fn question_for(
        &self,
        agent: &CurrentAgent,
        call: &Call,
        verdict: &Verdict,
        prepared: Option<&Prepared>,
        diff: Option<String>,
    ) -> Option<ApprovalAsked> {
        let spec = self.engine.tools().get(&call.tool)?.spec();
        let arguments: Value = serde_json::from_str(&call.arguments.text()).ok()?;
        let prepared = prepared.cloned().unwrap_or_default();
        let place = Some(Match::of_call(&arguments, &touches(spec, &arguments), &spec.checks.urls));
        Some(ApprovalAsked {
            approval: self.engine.env().id(),
            kind: ApprovalKind::Call,
            call: call.id.clone(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            summary: prepared.summary,
            diff: diff.map(Content::new),
            fingerprint: fingerprint(self.log.run, &call.id, spec, &arguments, &prepared.target),
            target: prepared.target,
            intended: prepared.intended,
            risk: risk(spec),
            reason: verdict.reason.clone(),
            rule: verdict.rule.clone(),
            labels: self.state().labels,
            allowed_scopes: verdict.scopes.clone(),
            place,
            expires_at: self.now().after(Duration::from_secs(agent.config.approval_expires_secs)),
        })
    }

    /// Keeps what a call will replace or delete, in the very append that announces it: a crash between the act and its record
    /// would take the only copy with it.
    pub(crate) async fn keep_before(&mut self, started: &CallStarted, world: &World) {
        let Some(tool) = self.engine.tools().get(&started.tool) else { return };
        let nothing_there = started.target.0.values().all(Option::is_none);
        if started.recovery != Recovery::Reconcile || nothing_there {
            return;
        }
        let Ok(arguments) = serde_json::from_str::<Value>(&started.arguments.text()) else { return };
        let kept = look(&**tool, tool.keepsakes(&arguments, &started.target, world)).await;
        // What cannot be read is not the target any more, and the tool will refuse to touch it.
        for bytes in kept.unwrap_or_default() {
            self.log.keep(bytes);
        }
    }

    /// Runs a call in a task of its own. The permit is spent by it.
    pub(crate) fn run(&mut self, permit: Permit, world: World) -> Result<(), EngineError> {
        let call = permit.call().clone();
        let Some(tool) = self.engine.tools().get(permit.tool()).cloned() else {
            return Err(EngineError::not_found("tool", permit.tool()));
        };
        let (recovery, timeout) = (tool.spec().recovery, tool.spec().timeout);
        let (engine, life, env) = (self.engine.clone(), self.life, self.engine.env().clone());
        let pause = match permit.attempt() {
            1 => None,
            again => Some(backoff(again - 1, None, env.fraction())),
        };
        let task = tokio::spawn(async move {
            // No pause is not a short one: even that would wait for the next tick of the timer.
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            engine.lease().holds(life).await;
            let from = env.now();
            let late = |message: String| ToolOutcome::InDoubt { message };
            let running = async {
                let outcome = tokio::time::timeout(timeout, tool.run(permit, &world)).await;
                outcome.unwrap_or_else(|_| late(format!("The tool did not end within {} s.", timeout.as_secs())))
            };
            // What has no effect does no harm, and a store of our own gives our runs to nobody.
            let outcome = match recovery == Recovery::Pure || engine.store().is_alone() {
                true => running.await,
                false => {
                    engine.lease().while_held(life, running).await.unwrap_or_else(|| late(OUT_OF_TOUCH.to_owned()))
                }
            };
            let ms = crate::env::millis(env.now().since(from));
            (outcome, ms)
        });
        self.running.insert(call, Work { task, recovery });
        Ok(())
    }
}

fn refused_before(tool: &str) -> Verdict {
    let times = limits::REJECTIONS;
    let reason = format!("A person said no to `{tool}` here {times} times in this run; it is not asked again.");
    Verdict::deny("rejected_before", reason, Some("say it in a new message".to_owned()))
}
