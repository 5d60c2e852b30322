//! Strict replay: the recorded log is walked again with the present code and no effects. What comes next, requests, verdicts
//! and results must come out as they were recorded; anything else is a divergence, named by its event.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use adjutant_core::audit::{AuditEvent, Deed};
use adjutant_core::content::Hash;
use adjutant_core::guard::arguments;
use adjutant_core::guard::filter::Filter;
use adjutant_core::guard::judge::{Authority, Caller, Definition, Life, Question, Verdict, judge};
use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::guard::rule::{Rule, Rules};
use adjutant_core::guard::scope::Scope;
use adjutant_core::id::{RuleId, RunId, WorkspaceId};
use adjutant_core::message::Message;
use adjutant_core::run::course;
use adjutant_core::run::event::{CallJudged, Event, Standing};
use adjutant_core::run::state::State;
use adjutant_core::run::status::Status;
use adjutant_core::run::transcript;
use adjutant_core::time::Time;
use adjutant_core::tool::ToolDefinitions;
use serde::Serialize;

use crate::asking::tool_definitions;
use crate::audit::AuditLog;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::{Recorded, RunLog};
use crate::toolbox::{NOT_POSSIBLE, authority};

/// Verdicts that were not the guard's alone, or depend on more than is in the log: limits of the turn, a target that changed,
/// an equal call.
pub(crate) const NOT_THE_GUARDS: [&str; 9] = [
    "rate",
    "calls_per_turn",
    "cut_off",
    "max_tool_calls",
    "same_call",
    "target_changed",
    "approval_expired",
    NOT_POSSIBLE,
    "rejected_before",
];

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// The run.
    pub run_id: RunId,
    /// The events that were walked.
    pub events: usize,
    /// Model requests that were built again and compared.
    pub requests: usize,
    /// Verdicts that were given again and compared.
    pub verdicts: usize,
    /// Verdicts that were not the guard's alone, or whose policy is not kept: they were taken as they are.
    pub skipped: usize,
    /// Where the run ended up.
    pub status: Status,
    /// What came out differently.
    pub divergences: Vec<Divergence>,
}

/// Something that came out differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The event.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
    /// What is recorded.
    pub recorded: String,
    /// What came out.
    pub found: String,
}

/// What is read once before the walk; after that nothing outside is touched.
struct Material {
    base: Vec<Message>,
    tools: Arc<ToolDefinitions>,
    policies: HashMap<Hash, (AgentConfig, Scope)>,
    rules: HashMap<RuleId, Rule>,
}

impl Engine {
    /// Walks a recorded run again.
    ///
    /// # Errors
    /// When there is no such run, or its log cannot be followed.
    pub async fn replay(&self, workspace: WorkspaceId, run: RunId) -> Result<Replay, EngineError> {
        let log = RunLog::load(self.store(), self.env(), workspace, run).await?;
        let start = log.state.start.as_ref().ok_or_else(|| EngineError::not_found("run", run))?;
        let mut recorded = self.recorded(workspace, run, 0, None).await?;
        let judged_by = |item: &&mut Recorded| matches!(item.event, Event::CallProposed(_) | Event::ApprovalDecided(_));
        let mut arguments: Vec<_> =
            recorded.iter_mut().filter(judged_by).flat_map(|item| item.event.contents_mut()).collect();
        self.load_texts(workspace, &mut arguments).await?;
        let material = Material {
            base: self.base_messages(workspace, start.base, start.limits.context_bytes).await?,
            tools: tool_definitions(self, &log).await?,
            policies: self.policies(workspace, start.agent, &recorded).await?,
            rules: self.rules_of(workspace, &recorded).await?,
        };
        let mut walk = Walk {
            engine: self,
            material: &material,
            state: State::default(),
            requests: 0,
            verdicts: 0,
            skipped: 0,
            divergences: Vec::new(),
        };
        for item in &recorded {
            walk.step(item).map_err(|bad| EngineError::impossible(run, &bad))?;
        }
        let Walk { state, requests, verdicts, skipped, mut divergences, .. } = walk;
        if state != log.state {
            divergences.push(Divergence {
                seq: log.head.seq,
                kind: "state".to_owned(),
                recorded: "the folded log".to_owned(),
                found: "another state".to_owned(),
            });
        }
        let (events, status) = (recorded.len(), state.status());
        Ok(Replay { run_id: run, events, requests, verdicts, skipped, status, divergences })
    }

    /// The standing rules that verdicts were given by. One that was removed is read from the entry that says so.
    async fn rules_of(
        &self,
        workspace: WorkspaceId,
        recorded: &[Recorded],
    ) -> Result<HashMap<RuleId, Rule>, EngineError> {
        let mut wanted = BTreeSet::new();
        for item in recorded {
            if let Event::CallJudged(CallJudged { standing: Some(standing), .. }) = &item.event {
                wanted.extend(standing.rules.iter().copied());
            }
        }
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        let kept = self.rules(workspace).await?;
        let mut rules: HashMap<RuleId, Rule> = kept.into_iter().map(|rule| (rule.id, rule)).collect();
        if wanted.iter().any(|id| !rules.contains_key(id)) {
            for entry in self.audit_log(AuditLog::Workspace(workspace)).await? {
                let Some(AuditEvent::Act(act)) = entry.event else { continue };
                let gone = if act.deed == Deed::RuleRemoved { "whole" } else { "replaced" };
                let rule = act.detail.get(gone).and_then(|gone| serde_json::from_value::<Rule>(gone.clone()).ok());
                rules.extend(rule.map(|rule| (rule.id, rule)));
            }
        }
        Ok(rules)
    }

    /// Every configuration the agent has had, and those that were kept with what was judged under them, by their hashes.
    async fn policies(
        &self,
        workspace: WorkspaceId,
        agent: adjutant_core::id::AgentId,
        recorded: &[Recorded],
    ) -> Result<HashMap<Hash, (AgentConfig, Scope)>, EngineError> {
        let mut policies = HashMap::new();
        let current = self.store().agent(workspace, agent).await?.map_or(0, |row| row.version);
        for version in 1..=current {
            let Some(row) = self.store().agent_version(workspace, agent, version).await? else { continue };
            let Ok(config) = serde_json::from_str::<AgentConfig>(&row.spec) else { continue };
            let scope = config.compile_scope();
            policies.insert(config.hash(), (config, scope));
        }
        let judged = recorded.iter().filter_map(|item| match &item.event {
            Event::CallJudged(body) => Some(body.policy),
            _ => None,
        });
        let kept: Vec<_> = judged.filter(|policy| !policies.contains_key(policy)).collect();
        for (policy, bytes) in self.store().blocks(workspace, &kept).await? {
            let Ok(config) = serde_json::from_slice::<AgentConfig>(&bytes) else { continue };
            let scope = config.compile_scope();
            policies.insert(policy, (config, scope));
        }
        Ok(policies)
    }
}

struct Walk<'a> {
    engine: &'a Engine,
    material: &'a Material,
    state: State,
    requests: usize,
    verdicts: usize,
    skipped: usize,
    divergences: Vec<Divergence>,
}

impl Walk<'_> {
    fn step(&mut self, item: &Recorded) -> Result<(), adjutant_core::run::state::Impossible> {
        if let Some(course::Departure { recorded, found }) = course::departure(&self.state, &item.event, item.at) {
            self.compare(item, recorded, found);
        }
        match &item.event {
            Event::ModelRequested(body) => {
                let found = match transcript::request(&self.state, &self.material.base, &self.material.tools) {
                    Ok((request, _)) => request.hash().to_string(),
                    Err(overflow) => overflow.to_string(),
                };
                self.requests += 1;
                self.compare(item, body.request.to_string(), found);
            }
            Event::CallJudged(body) => {
                if let Some(verdict) = self.judge_again(body, item.at) {
                    self.verdicts += 1;
                    self.compare(item, in_words(&body.verdict), in_words(&verdict));
                } else {
                    self.skipped += 1;
                }
            }
            Event::RunEnded(body) => {
                self.compare(item, body.result.hash().to_string(), self.state.last_text().hash().to_string());
                self.compare(item, format!("{:?}", body.usage), format!("{:?}", self.state.usage));
                self.compare(item, body.cost.to_string(), self.state.cost.to_string());
            }
            _ => {}
        }
        self.state.apply(&item.event, item.seq, item.at)
    }

    fn compare(&mut self, item: &Recorded, recorded: String, found: String) {
        if recorded != found {
            self.divergences.push(Divergence { seq: item.seq, kind: item.event.kind().to_owned(), recorded, found });
        }
    }

    /// The verdict under the recorded policy. None where it was not the guard's alone: limits of the turn, a target that
    /// changed, an equal call.
    fn judge_again(&self, body: &CallJudged, at: Time) -> Option<Verdict> {
        let rule = body.verdict.rule.as_str();
        let (rules, authority) = match &body.standing {
            Some(Standing { rules, role }) => {
                let rules: Option<Vec<Rule>> = rules.iter().map(|id| self.material.rules.get(id).cloned()).collect();
                (Rules::new(rules?), authority(role.as_deref()))
            }
            None if rule == "role" || rule.starts_with("rule ") => return None,
            None => (Rules::default(), Authority::Acts),
        };
        if NOT_THE_GUARDS.contains(&rule) {
            return None;
        }
        let (config, scope) = self.material.policies.get(&body.policy)?;
        let call = self.state.call(&body.call)?;
        let tool = self.engine.tools().get(&call.tool);
        let checked = self.engine.checked(&call.tool, arguments::parse(&call.arguments.text()));
        Some(judge(&Question {
            agent: config,
            scope,
            tool: &call.tool,
            spec: tool.map(|tool| tool.spec()),
            arguments: checked.as_ref().map_err(String::as_str),
            prepared: body.prepared.as_ref(),
            life: Life::Running,
            definition: Definition::AsPinned,
            outside: &config.compile_outside(),
            filter: &Filter::new(&config.content_filter),
            effects: self.state.start.as_ref()?.effects,
            autonomy: self.state.start.as_ref()?.autonomy,
            notebook: body.verdict.rule != "notebook",
            labels: self.state.labels,
            caller: Caller {
                agent: self.state.start.as_ref()?.agent,
                chat: self.state.start.as_ref()?.chat,
                run: self.state.start.as_ref()?.run,
                notebook: self.state.start.as_ref()?.notebook,
                now: at,
            },
            rules: &rules,
            authority,
            answer: call.answer(),
        }))
    }
}

fn in_words(verdict: &Verdict) -> String {
    format!("{} by {}", verdict.decision.word(), verdict.rule)
}
