//! A yes that lasts: the narrow rule that an approval for the run, for the chat or for longer writes.

use std::time::Duration;

use super::{Origin, Rule};
use crate::guard::judge::Decision;
use crate::id::UserId;
use crate::limits::LASTING_YES;
use crate::run::event::{ApprovalAsked, GrantScope, RunStarted};
use crate::time::Time;

/// A person's yes, and how long it is to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yes {
    /// Who says it.
    pub by: UserId,
    /// How far it reaches.
    pub scope: GrantScope,
    /// How long it lasts; as long as such a yes may when none.
    pub lasts: Option<Duration>,
    /// When it is said.
    pub now: Time,
}

impl Rule {
    /// The rule that a yes writes: this agent, this tool, the place that was offered, in the notebook of the run. None for a
    /// yes to this call alone, and where nothing was offered. The rule has the number of its approval, so that one approval
    /// writes one rule.
    #[must_use]
    pub fn from_yes(start: &RunStarted, asked: &ApprovalAsked, yes: Yes) -> Option<Self> {
        let (run, chat) = match yes.scope {
            GrantScope::Once => return None,
            GrantScope::Run => (Some(start.run), None),
            GrantScope::Chat => (None, Some(start.chat)),
            GrantScope::Always => (None, None),
        };
        Some(Self {
            id: asked.approval.into(),
            owner: yes.by,
            origin: Origin::Approval(asked.approval),
            agent: Some(start.agent),
            chat,
            run,
            notebook: start.notebook,
            tool: asked.tool.clone(),
            when: asked.place.clone()?,
            decision: Decision::Allow,
            expires_at: Some(yes.now.after(yes.lasts.unwrap_or(LASTING_YES).min(LASTING_YES))),
            created_at: yes.now,
            note: String::new(),
            must_allow: Vec::new(),
            must_deny: Vec::new(),
        })
    }
}
