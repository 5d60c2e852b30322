//! What a tool is.

use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{Prepared, Probe, Target, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use serde_json::Value;

use crate::world::World;

/// Something an agent can do.
///
/// To add one: write a file beside its siblings (arguments as a struct that derives `Deserialize` and `JsonSchema`, a unit
/// struct that holds the spec, this trait), and name it in the list of `registry.rs`. Then:
///
/// - `spec` says everything about the tool that the guard needs. Be honest about effect, egress and recovery: a tool that
///   claims too little is refused or asks, one that claims too much harms someone.
/// - `example` shows people one call. It fits the schema; a test holds every built-in tool to that.
/// - `prepare` looks and changes nothing: what the call would touch (`target`), what it would leave behind (`intended`),
///   one line and a diff for a person. The approval is bound to the target.
/// - `run` acts. It takes the permit by value: one permit, one call. It looks again whether the world still is what the
///   permit says (`permit.target()`) and does nothing when it is not. A failure is an answer to the model, in words that
///   say what happened and what to do next; it never holds a host path or a secret. A caller that drops the future (a
///   timeout, a cancelled run) does not take back what was begun: the call is then in doubt, and `reconcile` is asked. What goes
///   on all the same, in a thread of its own, asks `world.fence` right before it acts.
/// - `reconcile` says whether a call that was started took place. Only a tool of class `Reconcile` is asked.
/// - `keepsakes` gives back what the call will replace or delete. They are durable before `run` is called, so that a crash
///   in between does not take the only copy with it. Only a tool of class `Reconcile` is asked.
/// - Whatever opens a path checks the scope and the rules itself as well, and filters what it returns item by item (F7). The
///   guard has done so before, but it judged the arguments; only the tool knows what they lead to.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the tool declares about itself.
    fn spec(&self) -> &ToolSpec;

    /// Arguments that such a call may have, to show to people.
    fn example(&self) -> Option<Value> {
        None
    }

    /// Looks at what the call would do, without doing it.
    async fn prepare(&self, arguments: &Value, world: &World) -> Result<Prepared, ToolOutcome> {
        let _ = (arguments, world);
        Ok(Prepared { summary: self.spec().name().to_owned(), ..Prepared::default() })
    }

    /// What the call will replace or delete, as far as it still is the target.
    async fn keepsakes(&self, arguments: &Value, target: &Target, world: &World) -> Vec<Vec<u8>> {
        let _ = (arguments, target, world);
        Vec::new()
    }

    /// Does it.
    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome;

    /// Finds out whether a call that was started took place.
    async fn reconcile(&self, arguments: &Value, target: &Target, intended: Option<&Target>, world: &World) -> Probe {
        let _ = (arguments, target, intended, world);
        Probe::Unknown
    }
}
