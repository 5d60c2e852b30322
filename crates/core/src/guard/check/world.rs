//! A world for `check calls`: one agent, its tools, and what each case changes about it. Only the shapes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::guard::host::HostSpec;
use crate::guard::scope::{Action, Operation, ScopeSpec};
use crate::label::Labels;
use crate::tool::{Effect, Level};

/// A complete policy: what it does not state is not checked, but nothing it does not list is granted.
#[derive(Debug, Clone, Deserialize)]
pub struct World {
    /// The one agent.
    pub agent: WorldAgent,
    /// The answers of the resolver.
    #[serde(default)]
    pub dns: BTreeMap<String, Vec<String>>,
    /// Limits of the run.
    #[serde(default)]
    pub limits: WorldLimits,
    /// The tools the agent is granted.
    #[serde(default)]
    pub tools: BTreeMap<String, WorldTool>,
    /// Tools that exist and are not granted.
    #[serde(default)]
    pub registered_not_granted: BTreeSet<String>,
    /// Names that no model may ever call.
    #[serde(default)]
    pub control_plane: BTreeSet<String>,
    /// Memory keys that may not be written, nor anything below them.
    #[serde(default)]
    pub reserved_memory: BTreeSet<String>,
    /// Ids that belong to the agent.
    #[serde(default)]
    pub own_ids: BTreeSet<String>,
}

/// The agent of a world.
#[derive(Debug, Clone, Deserialize)]
pub struct WorldAgent {
    /// Its id.
    pub id: String,
    /// Its handle.
    #[serde(default)]
    pub handle: String,
    /// Its file capabilities.
    #[serde(default)]
    pub caps: Vec<Operation>,
    /// What of the notebook it reaches.
    #[serde(default)]
    pub scope: ScopeSpec,
    /// What of the network it reaches.
    #[serde(default)]
    pub net: HostSpec,
    /// The domains it may write mail to.
    #[serde(default)]
    pub mail_domains: Vec<String>,
    /// The right it has.
    pub level: Option<Level>,
    /// How much asks; `full` if the world does not say.
    pub autonomy: Option<String>,
    /// The run it is in.
    #[serde(default)]
    pub run: String,
}

/// The limits of a world's run.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct WorldLimits {
    /// Calls of one turn.
    pub calls_per_turn: Option<usize>,
    /// Calls of the run.
    pub calls_per_run: Option<usize>,
    /// Bytes of one call's arguments.
    pub argument_bytes: Option<usize>,
    /// Nesting of one call's arguments.
    pub argument_depth: Option<usize>,
}

/// A tool of a world.
#[derive(Debug, Clone, Deserialize)]
pub struct WorldTool {
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// Arguments that are paths, with what is done to them.
    #[serde(default)]
    pub paths: BTreeMap<String, Action>,
    /// Arguments that are URLs.
    #[serde(default)]
    pub urls: Vec<String>,
    /// Arguments that are mail addresses.
    #[serde(default)]
    pub emails: Vec<String>,
    /// Arguments without controls or line breaks.
    #[serde(default)]
    pub single_line: Vec<String>,
    /// Arguments that may not begin with `-`.
    #[serde(default)]
    pub no_option: Vec<String>,
    /// Arguments that must be one of the agent's own ids.
    #[serde(default)]
    pub own_ids: Vec<String>,
    /// Whether every call asks.
    #[serde(default)]
    pub approval: bool,
    /// Whether its arguments leave the house.
    #[serde(default)]
    pub egress: bool,
    /// What its output adds to the run's labels.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Whether it is about other tools.
    #[serde(default)]
    pub meta: bool,
    /// Whether its definition is pinned.
    #[serde(default)]
    pub pinned: bool,
    /// The right it needs, if the world says so.
    pub level: Option<Level>,
    /// What it does to the world, if the world says so.
    pub effect: Option<Effect>,
    /// Whether what it does can be taken back.
    #[serde(default)]
    pub undoable: bool,
}

impl WorldTool {
    /// The labels its output adds; a word that is not known adds both.
    #[must_use]
    pub fn added_labels(&self) -> Labels {
        labels(&self.labels)
    }
}

/// One turn of a model.
#[derive(Debug, Clone, Deserialize)]
pub struct CallsCase {
    /// What the case changes about its world.
    #[serde(default)]
    pub context: CallsContext,
    /// The calls as they were emitted, field by field, because an unknown field refuses the call.
    #[serde(default)]
    pub turn: Vec<Value>,
    /// Text beside the calls: nothing may come out of it.
    pub assistant_text: Option<String>,
    /// What is expected of each call.
    pub expect: Option<Vec<Value>>,
}

/// What a case changes about its world.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct CallsContext {
    /// The files there are.
    #[serde(default)]
    pub fs: CallsFiles,
    /// The run's labels at the start of the turn.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Call ids the run has used.
    #[serde(default)]
    pub used_ids: Vec<String>,
    /// Calls left in the run.
    pub calls_left: Option<usize>,
    /// Calls left before the rate is used up.
    pub rate_left: Option<Value>,
    /// Tools whose definition is no longer the pinned one.
    #[serde(default)]
    pub tools_changed: Vec<String>,
    /// Calls that wait for an answer.
    #[serde(default)]
    pub pending: Vec<Value>,
    /// Calls that were approved.
    #[serde(default)]
    pub approved: Vec<Value>,
    /// What state the run is in; running if it does not say.
    pub run_state: Option<String>,
}

/// The files of a case.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct CallsFiles {
    /// Paths of files.
    #[serde(default)]
    pub files: Vec<String>,
    /// Links with their targets.
    #[serde(default)]
    pub symlinks: BTreeMap<String, String>,
}

/// The labels of these words; one that is not known counts as both.
pub(super) fn labels(words: &[String]) -> Labels {
    words.iter().fold(Labels::NONE, |labels, word| {
        labels.join(match word.as_str() {
            "private" => Labels::PRIVATE,
            "untrusted" => Labels::UNTRUSTED,
            _ => Labels::PRIVATE.join(Labels::UNTRUSTED),
        })
    })
}
