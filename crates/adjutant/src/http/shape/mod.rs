//! The shapes of what rooms below serialise themselves, for the description of the API: they know nothing of HTTP, so their
//! documents are described here. The tests of the API hold every answer against its description, to the last field.
#![allow(dead_code, reason = "these only describe; what they describe is made in other rooms")]

mod account;
mod agent;
mod rule;
mod run;
mod words;

pub(super) use self::account::SafetyStanding;
pub(super) use self::agent::{Agent, AgentBody, ContentFilter, ResyncedAgent};
pub(super) use self::rule::{NewStandingRule, StandingRule, StandingRuleChange};
pub(super) use self::run::{ChainCheck, ChatExport, EventLine, ReplayAnswer, Resource, RunDocument, SeenCall};
