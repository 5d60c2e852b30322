//! What several stories over HTTP begin with: a model that looks, writes or ponders when it is told to, and the names of the
//! contract.

use super::client::{Sent, Server};
use crate::house::House;

/// It looks when it hears *look*, writes when it hears *write*, ponders when it hears *ponder*, and is polite otherwise. Told
/// that its answer does not fit, it ponders until somebody stops it.
pub(crate) const SCRIPT: &str = r#"
- when: { user: look, turn: 1 }
  text: Let me look.
  calls: [{ name: list_files, arguments: { path: / } }]
- when: { user: look }
  thinking: That is all there is.
  text: There are notes.
- when: { user: write, turn: 1 }
  text: I write it down.
  calls: [{ name: create_file, arguments: { path: /new.md, content: hello } }]
- when: { user: write }
  text: Written.
- when: { user: ponder }
  thinking: Where do I begin?
  text: At the beginning.
- when: { user: does not fit }
  delay_ms: 600000
  text: Too late.
- text: Good day.
"#;

/// The names that the contract takes over from its oldest clients; what was added is left out.
const NAMES: [&str; 11] = [
    "interaction_started",
    "tool_call",
    "tool_result",
    "thinking",
    "answer",
    "approval_required",
    "approved",
    "rejected",
    "cancelled",
    "error",
    "interaction_complete",
];

/// The names of the contract among those of some events, in order.
pub(crate) fn names(events: &[Sent]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).filter(|name| NAMES.contains(name)).collect()
}

/// A house whose model follows a script.
pub(crate) fn scripted(script: &str) -> House {
    let house = House::new();
    house.script(script);
    house
}

/// A server whose model follows the script of this file.
pub(crate) fn server() -> Server {
    Server::start(scripted(SCRIPT))
}
