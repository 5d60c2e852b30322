//! Standing rules: writing, finding and removing them, and what counts at a moment.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::guard::judge::Decision;
use adjutant_core::guard::rule::{Example, Match, Origin, Rule, Rules};
use adjutant_core::id::{AgentId, ChatId, RuleId, UserId, WorkspaceId};
use adjutant_core::limits;
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_store::StoreError;
use adjutant_store::row::{Doing, RuleRow};
use serde::{Deserialize, Serialize};

use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;

/// A rule as a person writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRule {
    /// The agent it is about; every agent of the workspace when none.
    #[serde(default)]
    pub agent: Option<AgentId>,
    /// The chat it is about; every chat when none.
    #[serde(default)]
    pub chat: Option<ChatId>,
    /// The tool, or `*` for every tool.
    pub tool: String,
    /// What it is called with; anything when empty.
    #[serde(default)]
    pub when: Match,
    /// Allow, ask or deny.
    pub decision: Decision,
    /// When it ends; never when none.
    #[serde(default)]
    pub expires_at: Option<Time>,
    /// Why.
    #[serde(default)]
    pub note: String,
    /// Calls that it must let through.
    #[serde(default)]
    pub must_allow: Vec<Example>,
    /// Calls that it must not let through.
    #[serde(default)]
    pub must_deny: Vec<Example>,
}

impl NewRule {
    /// How a person would write a rule that is there.
    #[must_use]
    pub fn of(rule: &Rule) -> Self {
        let Rule { agent, chat, decision, expires_at, .. } = *rule;
        let Rule { tool, when, note, must_allow, must_deny, .. } = rule.clone();
        Self { agent, chat, tool, when, decision, expires_at, note, must_allow, must_deny }
    }
}

impl Engine {
    /// Adds a rule, if its examples hold. It counts from the next judgement on.
    ///
    /// # Errors
    /// [`EngineError::InvalidRule`] with everything that is wrong; also when there are too many rules or no such agent.
    pub async fn add_rule(&self, workspace: WorkspaceId, owner: UserId, new: NewRule) -> Result<Rule, EngineError> {
        let rule = self.checked_rule(workspace, owner, new, None).await?;
        let done = Done { rules: vec![row(workspace, &rule)?], ..Done::default() };
        self.record_rule(workspace, Deed::RuleSaved, owner, (&rule, None), done).await?;
        Ok(rule)
    }

    /// Puts a rule in the place of another, in one transaction. A rule itself never changes, because what was judged by it
    /// refers to it: the new one has an id of its own, and the old one is kept in the record.
    ///
    /// # Errors
    /// As [`Self::add_rule`]; also when the old one is gone. Then it stays as it is.
    pub async fn replace_rule(
        &self,
        workspace: WorkspaceId,
        owner: UserId,
        old: &Rule,
        new: NewRule,
    ) -> Result<Rule, EngineError> {
        // What was given for one run or in one notebook does not come to count for all.
        let Rule { run, notebook, .. } = *old;
        let rule = Rule { run, notebook, ..self.checked_rule(workspace, owner, new, Some(old.id)).await? };
        let done =
            Done { rules: vec![row(workspace, &rule)?], doing: Some(Doing::RemoveRule(old.id)), ..Done::default() };
        match self.record_rule(workspace, Deed::RuleSaved, owner, (&rule, Some(old)), done).await {
            Err(EngineError::Store(StoreError::NotFound)) => Err(EngineError::not_found("rule", old.id)),
            saved => saved.map(|()| rule),
        }
    }

    /// A rule that could be kept, in the place of another or beside all there are.
    async fn checked_rule(
        &self,
        workspace: WorkspaceId,
        owner: UserId,
        new: NewRule,
        replaced: Option<RuleId>,
    ) -> Result<Rule, EngineError> {
        let NewRule { agent, chat, tool, when, decision, expires_at, note, must_allow, must_deny } = new;
        let rule = Rule {
            id: self.env().id(),
            owner,
            origin: Origin::Person,
            agent,
            chat,
            run: None,
            notebook: None,
            tool,
            when,
            decision,
            expires_at,
            created_at: self.env().now(),
            note,
            must_allow,
            must_deny,
        };
        let mut problems = rule.problems();
        if rule.tool != "*" && !self.tools().knows(&rule.tool) {
            problems.push(format!("tool: there is no tool `{}`", rule.tool));
        }
        if !problems.is_empty() {
            return Err(EngineError::InvalidRule(problems));
        }
        if let Some(agent) = agent {
            self.store().agent(workspace, agent).await?.ok_or_else(|| EngineError::not_found("agent", agent))?;
        }
        let counts = |known: &Rule| known.is_live(rule.created_at) && Some(known.id) != replaced;
        if self.rules(workspace).await?.iter().filter(|known| counts(known)).count() >= limits::RULES {
            return Err(EngineError::InvalidRule(vec![format!("a workspace holds at most {} rules", limits::RULES)]));
        }
        Ok(rule)
    }

    /// All rules of a workspace, oldest first, also those that have ended.
    ///
    /// # Errors
    /// When the store cannot be read, or holds a rule that cannot be.
    pub async fn rules(&self, workspace: WorkspaceId) -> Result<Vec<Rule>, EngineError> {
        self.store().rules(workspace).await?.iter().map(read).collect()
    }

    /// One rule.
    ///
    /// # Errors
    /// When there is none.
    pub async fn rule(&self, workspace: WorkspaceId, id: RuleId) -> Result<Rule, EngineError> {
        let row = self.store().rule(workspace, id).await?.ok_or_else(|| EngineError::not_found("rule", id))?;
        read(&row)
    }

    /// Whether a rule still counts: it has not ended, and neither has the run it is about.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn rule_counts(&self, workspace: WorkspaceId, rule: &Rule) -> Result<bool, EngineError> {
        let ended = match rule.run {
            Some(run) => self.store().run(workspace, run).await?.is_none_or(|row| row.state.ended_at.is_some()),
            None => false,
        };
        Ok(!ended && rule.is_live(self.env().now()))
    }

    /// Removes a rule. It counts no more from the next judgement on.
    ///
    /// # Errors
    /// When there is none.
    pub async fn remove_rule(&self, workspace: WorkspaceId, user: UserId, id: RuleId) -> Result<(), EngineError> {
        let rule = self.rule(workspace, id).await?;
        let done = Done { doing: Some(Doing::RemoveRule(id)), ..Done::default() };
        match self.record_rule(workspace, Deed::RuleRemoved, user, (&rule, None), done).await {
            Err(EngineError::Store(StoreError::NotFound)) => Err(EngineError::not_found("rule", id)),
            removed => removed,
        }
    }

    async fn record_rule(
        &self,
        workspace: WorkspaceId,
        deed: Deed,
        user: UserId,
        (rule, replaced): (&Rule, Option<&Rule>),
        done: Done,
    ) -> Result<(), EngineError> {
        // A removed rule is gone from its table: what it meant stays in the log.
        let whole = |rule| serde_json::to_value(rule).map_err(|bad| EngineError::Invalid(bad.to_string()));
        let act = Act::new(deed, Some(Actor::User(user)), rule.in_words());
        let mut act = act.with("rule", rule.id.to_string()).with("whole", whole(rule)?);
        if let Some(replaced) = replaced {
            act = act.with("replaced", whole(replaced)?);
        }
        let act = Act { agent: rule.agent, ..act };
        self.audit_done(AuditLog::Workspace(workspace), act, done).await.map(drop)
    }

    /// The rules that an agent is judged by at a moment. One that cannot be read fails the judgement: it might be a no (rule
    /// G2).
    pub(crate) async fn standing_rules(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        now: Time,
    ) -> Result<(Vec<RuleId>, Rules), EngineError> {
        let rows = self.store().rules_for(workspace, agent, now).await?;
        let ids = rows.iter().map(|row| row.id).collect();
        Ok((ids, Rules::new(rows.iter().map(read).collect::<Result<Vec<_>, _>>()?)))
    }
}

/// The row of a rule.
pub(crate) fn row(workspace: WorkspaceId, rule: &Rule) -> Result<RuleRow, EngineError> {
    let body = serde_json::to_string(rule).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
    let Rule { id, agent, run, expires_at, .. } = *rule;
    Ok(RuleRow { id, workspace, agent, run, expires_at, body })
}

fn read(row: &RuleRow) -> Result<Rule, EngineError> {
    serde_json::from_str(&row.body)
        .map_err(|bad| EngineError::Invalid(format!("the stored rule {} cannot be read: {bad}", row.id)))
}
