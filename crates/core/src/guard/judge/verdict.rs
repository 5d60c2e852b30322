//! What the guard says: allow, ask or deny, with the deciding rule and what would change it.

use serde::{Deserialize, Serialize};

use crate::run::event::GrantScope;

/// Allow, ask or deny. Deny outranks ask, ask outranks allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run.
    Deny,
}

impl Decision {
    /// The word of the API.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What the guard says, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Allow, ask or deny.
    pub decision: Decision,
    /// The deciding rule.
    pub rule: String,
    /// Why, in words a person understands.
    pub reason: String,
    /// The smallest grant that would change a deny or an ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_grant: Option<String>,
    /// How far an approval may reach; empty unless it asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<GrantScope>,
}

impl Verdict {
    pub(super) fn allow(rule: &str, reason: &str) -> Self {
        Self {
            decision: Decision::Allow,
            rule: rule.to_owned(),
            reason: reason.to_owned(),
            smallest_grant: None,
            scopes: Vec::new(),
        }
    }

    /// A refusal.
    #[must_use]
    pub fn deny(rule: &str, reason: impl Into<String>, smallest_grant: Option<String>) -> Self {
        Self {
            decision: Decision::Deny,
            rule: rule.to_owned(),
            reason: reason.into(),
            smallest_grant,
            scopes: Vec::new(),
        }
    }

    /// A question for a person, who may answer it in these scopes.
    #[must_use]
    pub fn ask(rule: &str, reason: impl Into<String>, smallest_grant: Option<String>, scopes: &[GrantScope]) -> Self {
        Self {
            decision: Decision::Ask,
            rule: rule.to_owned(),
            reason: reason.into(),
            smallest_grant,
            scopes: scopes.to_vec(),
        }
    }

    /// The refusal as the model reads it.
    #[must_use]
    pub fn for_model(&self) -> String {
        let stop = if self.reason.ends_with(['.', '!', '?']) { "" } else { "." };
        format!("Refused: {}{stop} Nothing was done.", self.reason)
    }
}
