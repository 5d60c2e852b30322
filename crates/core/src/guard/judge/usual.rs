//! What the guard says to calls of a tool as a rule, before it knows with what it is called.

use serde_json::Value;

use super::asks::is_free;
use super::{Caller, Decision, is_shown};
use crate::guard::policy::AgentConfig;
use crate::guard::rule::{Asked, Rules};
use crate::tool::ToolSpec;

/// What is said to calls of a tool, as a rule: standing rules that hold whatever it is called with are counted. With its
/// arguments a call may be refused all the same, and a standing rule about these may say something else.
#[must_use]
pub fn usually(caller: Caller, agent: &AgentConfig, spec: &ToolSpec, rules: &Rules) -> Decision {
    if !is_shown(agent, spec) {
        return Decision::Deny;
    }
    let arguments = Value::Object(serde_json::Map::new());
    // What counts where an argument is left out is one way to call it, not every way.
    let schema = &Value::Null;
    let any = Asked { caller, tool: spec.name(), arguments: &arguments, schema, touches: &[], sources: &[] };
    let rule = rules.strongest(&any).map(|rule| rule.decision);
    if rule == Some(Decision::Deny) {
        return Decision::Deny;
    }
    let asks = rule == Some(Decision::Ask) || agent.requires_approval.contains(spec.name());
    let free = rule == Some(Decision::Allow) || is_free(agent.autonomy, spec.effect, spec.undoable);
    if free && !asks { Decision::Allow } else { Decision::Ask }
}
