//! People who decide, change their minds, go away and come back, through whichever node answers them.

use std::sync::Arc;

use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::id::{ApprovalId, RunId};
use adjutant_core::run::command::{Command, Decide};
use adjutant_core::run::event::{Actor, ApprovalKind, Decision, DoubtOutcome, GrantScope};
use adjutant_core::run::state::{Approval, State};
use adjutant_engine::{Engine, EngineError, StartRun};
use adjutant_store::StoreError;
use adjutant_store::row::{RunFilter, RunRow};
use serde_json::json;

use crate::chance::Dice;
use crate::model::PATHS;
use crate::plan::AgentPlan;
use crate::scene::Scene;
use crate::tools::FORBIDDEN;

/// What somebody sets out to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Decide,
    Cancel,
    Pause,
    Resume,
    Message,
    Edit,
    Policy,
    Remove,
}

/// How many runs a schedule has at the most: a person who only starts runs would keep it going for ever.
const RUNS: usize = 4;

/// One person at one node.
pub(crate) struct Person {
    pub(crate) scene: Arc<Scene>,
    pub(crate) engine: Engine,
    pub(crate) node: String,
    pub(crate) dice: Dice,
}

/// The agent, as the plan says; `strict` forbids a tool that was granted.
pub(crate) fn agent(plan: &AgentPlan, strict: Option<&str>) -> AgentSpec {
    AgentSpec {
        name: "Simulated".to_owned(),
        toolsets: Some(["sim".to_owned()].into()),
        can_write: Some(true),
        can_access_integrations: Some(true),
        denied_tools: Some([Some(FORBIDDEN), strict].into_iter().flatten().map(str::to_owned).collect()),
        requires_approval: Some(plan.always_asks.into_iter().map(str::to_owned).collect()),
        autonomy: Some(plan.autonomy),
        max_turns: Some(plan.max_turns),
        max_tool_calls: Some(plan.max_calls),
        approval_expires_in: Some(plan.expires.to_owned()),
        ..AgentSpec::default()
    }
}

/// The runs of the schedule.
pub(crate) async fn runs(scene: &Scene) -> Vec<RunRow> {
    let filter = RunFilter { superseded: true, ..RunFilter::default() };
    scene.store.runs(scene.tenant().workspace, &filter, 100).await.unwrap_or_default()
}

impl Person {
    /// Does it, and takes whatever answer comes.
    pub(crate) async fn act(self, deed: Deed) {
        let runs = runs(&self.scene).await;
        let Some(row) = self.dice.pick(&self.of_interest(deed, &runs)).copied() else { return };
        let done = match deed {
            Deed::Decide => self.decide(row.id).await,
            Deed::Cancel => self.command(row.id, Command::Cancel { by: self.me(), reason: "enough".to_owned() }).await,
            Deed::Pause => self.command(row.id, Command::Pause { by: self.me() }).await,
            Deed::Resume => self.command(row.id, Command::Resume { by: self.me() }).await,
            Deed::Message if runs.len() < RUNS => self.say(row).await,
            Deed::Edit if runs.len() < RUNS => self.edit(row.id).await,
            Deed::Policy => self.change_policy().await,
            Deed::Remove => self.remove_agent().await,
            Deed::Message | Deed::Edit => Ok(()),
        };
        self.judge_answer(&format!("{deed:?} of {}", row.id), done);
    }

    /// The runs somebody would think of. Now and then people do what makes no sense, too.
    fn of_interest<'a>(&self, deed: Deed, runs: &'a [RunRow]) -> Vec<&'a RunRow> {
        let anything = self.dice.one_in(8);
        let fits = |row: &&RunRow| match (deed, row.state.status.as_str()) {
            (Deed::Resume, status) => status == "PAUSED",
            (Deed::Decide, status) => matches!(status, "WAITING_APPROVAL" | "IN_DOUBT"),
            (Deed::Cancel | Deed::Pause, _) => row.state.ended_at.is_none(),
            (Deed::Message | Deed::Edit | Deed::Policy | Deed::Remove, _) => true,
        };
        runs.iter().filter(|row| anything || fits(row)).collect()
    }

    /// Decides whatever waits, so that every run comes to its end.
    pub(crate) async fn attend(self) {
        for row in runs(&self.scene).await {
            let done = match row.state.status.as_str() {
                "PAUSED" => self.command(row.id, Command::Resume { by: self.me() }).await,
                "WAITING_APPROVAL" | "IN_DOUBT" => self.decide(row.id).await,
                _ => Ok(()),
            };
            self.judge_answer(&format!("attending to {}", row.id), done);
        }
    }

    /// A person may be told no, or not be answered; what they may not be told is that the log makes no sense.
    fn judge_answer(&self, what: &str, done: Result<(), EngineError>) {
        self.scene.note(&self.node, || match &done {
            Ok(()) => format!("a person: {what}"),
            Err(error) => format!("a person: {what}: {error}"),
        });
        match done {
            Ok(()) => {}
            Err(EngineError::Refused(_)) => self.scene.hit("people: refused"),
            Err(EngineError::Busy(_)) => self.scene.hit("people: told that the chat is busy"),
            Err(EngineError::Store(StoreError::Unavailable(_))) => self.scene.hit("people: not answered"),
            Err(EngineError::Store(StoreError::Full(_))) => self.scene.hit("people: told that the disk is full"),
            Err(EngineError::NotFound { what: "agent", .. }) => self.scene.hit("people: told that the agent is gone"),
            Err(EngineError::Store(StoreError::Stale { .. })) => self.scene.hit("people: lost every race"),
            // Two people saved the agent at the same time.
            Err(EngineError::Invalid(why)) if why.contains("was changed meanwhile") => {}
            Err(other) => self.scene.broken(format!("{what} was answered with: {other}")),
        }
    }

    fn me(&self) -> Actor {
        Actor::User(self.scene.tenant().user)
    }

    async fn command(&self, run: RunId, command: Command) -> Result<(), EngineError> {
        self.engine.command(self.scene.tenant().workspace, run, &command).await.map(drop)
    }

    async fn decide(&self, run: RunId) -> Result<(), EngineError> {
        let workspace = self.scene.tenant().workspace;
        let state = self.engine.run_state(workspace, run).await?;
        let pending: Vec<_> = state.approvals.iter().filter(|(_, item)| item.is_pending()).collect();
        let Some((id, item)) = self.dice.pick(&pending) else { return Ok(()) };
        // People take their time: what they saw may not be what is there when they say it.
        tokio::time::sleep(self.dice.millis(0, 3000)).await;
        match item.kind {
            ApprovalKind::InDoubt => self.resolve(run, item).await,
            ApprovalKind::Call | ApprovalKind::Budget => {
                let decide = self.decision(**id, item, &state);
                self.engine.decide(workspace, decide).await.map(drop)
            }
        }
    }

    fn decision(&self, approval: ApprovalId, item: &Approval, state: &State) -> Decide {
        let dice = &self.dice;
        let decision = match dice.below(12) {
            0 | 1 => Decision::Reject,
            2 => Decision::Respond,
            3 | 4 => Decision::Edit,
            5 if dice.one_in(3) => Decision::Stop,
            _ => Decision::Approve,
        };
        let edited = match dice.below(8) {
            0 => "not JSON".to_owned(),
            1 => json!({"path": "/a"}).to_string(),
            // Too long to be kept with the event.
            2 => {
                let note = format!("{:5000}", format!("edited {}", dice.number()));
                json!({"path": dice.pick(&PATHS), "note": note}).to_string()
            }
            _ => json!({"path": dice.pick(&PATHS), "note": format!("edited {}", dice.number())}).to_string(),
        };
        let tool = state.call(&item.call).map(|call| call.tool.clone()).unwrap_or_default();
        self.scene.note(&self.node, || format!("a person: {decision:?} for {tool} {}", item.call));
        Decide {
            approval,
            decision,
            scope: if dice.one_in(5) { GrantScope::Run } else { GrantScope::Once },
            lasts: None,
            by: self.me(),
            arguments: (decision == Decision::Edit).then_some(edited),
            message: (decision == Decision::Respond).then(|| "Use another one.".to_owned()),
            fingerprint: item.asked.as_ref().map(|asked| asked.fingerprint).filter(|_| dice.one_in(2)),
        }
    }

    async fn resolve(&self, run: RunId, item: &Approval) -> Result<(), EngineError> {
        let outcome = match self.dice.below(3) {
            0 => DoubtOutcome::Happened,
            1 => DoubtOutcome::Run,
            _ => DoubtOutcome::Abandon,
        };
        let result = (outcome == DoubtOutcome::Happened && self.dice.one_in(2)).then(|| "It is there.".to_owned());
        self.scene.note(&self.node, || format!("a person: {outcome:?} for {}", item.call));
        self.command(run, Command::Resolve { call: item.call.clone(), outcome, result, by: self.me() }).await
    }

    async fn say(&self, row: &RunRow) -> Result<(), EngineError> {
        let tenant = self.scene.tenant();
        let ask = StartRun {
            chat: self.dice.one_in(2).then_some(row.chat),
            ..StartRun::new(tenant.user, tenant.agent, "Go on.")
        };
        self.engine.start_run(tenant.workspace, ask).await.map(drop)
    }

    async fn edit(&self, run: RunId) -> Result<(), EngineError> {
        let tenant = self.scene.tenant();
        self.engine.edit_run(tenant.workspace, tenant.user, run, "I meant something else.").await?;
        self.scene.hit("people: edited a message");
        Ok(())
    }

    async fn change_policy(&self) -> Result<(), EngineError> {
        let tenant = self.scene.tenant();
        let current = self.engine.current_agent(tenant.workspace, tenant.agent).await?;
        let strict = self.dice.pick(&[None, Some("send"), Some("write"), Some("look")]).copied().flatten();
        let spec = agent(&self.scene.plan.agent, strict);
        self.engine.save_agent(tenant.workspace, self.me(), spec, current.version).await?;
        self.scene.hit("people: changed the policy");
        Ok(())
    }

    async fn remove_agent(&self) -> Result<(), EngineError> {
        let tenant = self.scene.tenant();
        let Some(row) = self.scene.store.agent(tenant.workspace, tenant.agent).await? else { return Ok(()) };
        self.engine.delete_agent(self.me(), &row).await?;
        self.scene.hit("people: removed the agent");
        Ok(())
    }
}
