//! An agent's configuration: as a person writes it ([`AgentSpec`], almost everything optional) and as it is stored and
//! judged ([`AgentConfig`], every field written out, so that a missing key can never mean "allowed", rule G2).

mod told;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::budget::Budget;
use crate::canonical;
use crate::content::Hash;
use crate::guard::filter::FilterEntry;
use crate::guard::host::{HostPolicy, HostSpec};
use crate::guard::judge::Outside;
use crate::guard::rate::Rate;
use crate::guard::scope::{Caps, Scope, ScopeSpec};
use crate::id::KeyId;
use crate::limits;
use crate::options::ModelOptions;
use crate::routing::Strategy;
use crate::safety::Requirements;
use crate::tool::{Category, Level, ToolSpec};

pub use self::written::{AgentProblem, AgentSpec};
pub use crate::guard::words::{is_metadata, is_slug, parse_seconds, slug_of, span_of};

/// How much an agent does without asking. A field of the policy, never read from a prompt or from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Autonomy {
    /// Every call asks.
    None,
    /// Reads are free, the rest asks.
    Low,
    /// Reads, creates and undoable writes are free.
    Medium,
    /// Only what cannot be undone asks.
    High,
    /// Nothing asks by autonomy.
    Full,
}

impl Autonomy {
    /// All of them, the shortest first.
    pub const ALL: [Self; 5] = [Self::None, Self::Low, Self::Medium, Self::High, Self::Full];
}

/// What becomes of a call that would carry private data out of a run that has read untrusted content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// A person decides.
    Ask,
    /// It is refused.
    Deny,
}

/// Whether an agent remembers from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Whether it does.
    pub enabled: bool,
}

/// An agent as it is stored and judged: nothing is left to a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "they are the capability flags of the public agent body")]
pub struct AgentConfig {
    /// Its name.
    pub name: String,
    /// Its short name.
    pub slug: String,
    /// What it is for.
    pub description: String,
    /// A picture for lists.
    pub emoji: String,
    /// What kind of work it does, for lists.
    pub category: String,
    /// Words in a message that speak for this agent when none is named.
    pub keywords: BTreeSet<String>,
    /// A model by name, or `default`.
    pub model: String,
    /// Models that may stand in for it, in order.
    pub fallback_models: Vec<String>,
    /// How to choose a model where it is left open, and who stands in where nobody is named.
    #[serde(deserialize_with = "written_out")]
    pub routing: Option<Strategy>,
    /// Sampling temperature; none is the provider's own.
    #[serde(deserialize_with = "written_out")]
    pub temperature: Option<f64>,
    /// How its model is asked beyond that. This, the next two, `max_concurrent_runs`, `memory` and `data_access` came later than
    /// stored agents and recorded policies, which do not say: there nothing was chosen, required or named. None of them grants
    /// anything.
    #[serde(default, skip_serializing_if = "ModelOptions::is_empty")]
    pub model_options: ModelOptions,
    /// What a model has to be able to do to be chosen, or to stand in, beside what a run needs; and what has to be enforced.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub requires: Requirements,
    /// The stored key that its runs use for the provider it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_key_id: Option<KeyId>,
    /// The JSON Schema that its answers have to fit, unless a run brings one of its own.
    #[serde(deserialize_with = "written_out")]
    pub output_schema: Option<Value>,
    /// Its instructions.
    pub system_prompt: String,
    /// What it may touch.
    pub scope: ScopeSpec,
    /// Whether it may read files.
    pub can_read: bool,
    /// Whether it may change files.
    pub can_write: bool,
    /// Whether it may create files.
    pub can_create: bool,
    /// Whether it may delete files.
    pub can_delete: bool,
    /// Whether it may run code.
    pub can_execute_code: bool,
    /// Whether it may use the network and other integrations.
    pub can_access_integrations: bool,
    /// Its level.
    pub permission_level: Level,
    /// The categories of tools it may use.
    pub categories: BTreeSet<Category>,
    /// Tools by name.
    pub tools: BTreeSet<String>,
    /// Groups of tools.
    pub toolsets: BTreeSet<String>,
    /// Tools it never gets.
    pub denied_tools: BTreeSet<String>,
    /// The hosts it may reach.
    pub allowed_hosts: HostSpec,
    /// How much it does without asking.
    pub autonomy: Autonomy,
    /// What becomes of private data on its way out of a run that has read untrusted content.
    pub flow: Flow,
    /// Tools that always ask.
    pub requires_approval: BTreeSet<String>,
    /// Model turns of a run.
    pub max_turns: u32,
    /// Tool calls of a run.
    pub max_tool_calls: u32,
    /// Output tokens of one model call.
    pub max_tokens_per_request: u32,
    /// Model calls in one hour, over all its runs.
    pub max_requests_per_hour: u32,
    /// Runs that are driven at the same time; more wait for their turn.
    #[serde(default = "usual_runs", skip_serializing_if = "is_usual")]
    pub max_concurrent_runs: u32,
    /// Calls a minute of single tools, by name.
    pub tool_limits: BTreeMap<String, u32>,
    /// What texts may hold at points of a run.
    pub content_filter: Vec<FilterEntry>,
    /// How long an approval waits, in seconds.
    pub approval_expires_secs: u64,
    /// What it may spend.
    pub budget: Budget,
    /// Whether it remembers, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The kinds of data it is meant for. Kept for people; no tool asks for one yet, so it narrows nothing.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub data_access: BTreeSet<String>,
    /// Whether it may run.
    pub is_active: bool,
    /// Free fields, never shown to a model.
    pub metadata: BTreeMap<String, String>,
}

/// Reads a field that may be null but not missing.
fn written_out<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

fn usual_runs() -> u32 {
    limits::CONCURRENT_RUNS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_usual(runs: &u32) -> bool {
    *runs == limits::CONCURRENT_RUNS
}

impl AgentConfig {
    /// Whether a person is asked about less than before, or less is refused that would have been theirs to answer.
    #[must_use]
    pub fn asks_less_than(&self, before: &Self) -> bool {
        self.autonomy > before.autonomy
            || !self.requires_approval.is_superset(&before.requires_approval)
            || (self.flow, before.flow) == (Flow::Ask, Flow::Deny)
            || before.content_filter.iter().any(|entry| !self.content_filter.contains(entry))
    }

    const fn lowest_level(&self) -> Level {
        if self.can_execute_code {
            Level::Execute
        } else if self.can_write || self.can_create || self.can_delete || self.can_access_integrations {
            Level::Write
        } else {
            Level::Read
        }
    }

    /// The file capabilities of the flags.
    #[must_use]
    pub const fn caps(&self) -> Caps {
        Caps {
            read: self.can_read,
            write: self.can_write,
            create: self.can_create,
            delete: self.can_delete,
            execute: self.can_execute_code,
        }
    }

    /// The scope, ready to be asked.
    #[must_use]
    pub fn compile_scope(&self) -> Scope {
        Scope::compile(&self.scope, self.caps())
    }

    /// Whether a tool is granted: named or in a granted set, and not denied (check 1).
    #[must_use]
    pub fn grants_tool(&self, name: &str, toolset: &str) -> bool {
        !self.denied_tools.contains(name) && (self.tools.contains(name) || self.toolsets.contains(toolset))
    }

    /// How often a tool may be called: as often as the tool allows, or less.
    #[must_use]
    pub fn tool_rate(&self, spec: &ToolSpec) -> Option<Rate> {
        let own = self.tool_limits.get(spec.name()).copied().map(Rate::per_minute);
        own.into_iter().chain(spec.rate()).min_by_key(|rate| rate.calls)
    }

    /// What it reaches outside its notebook, made ready for many questions.
    #[must_use]
    pub fn compile_outside(&self) -> Outside {
        Outside { hosts: HostPolicy::compile(&self.allowed_hosts), ..Outside::default() }
    }

    /// The hash that says which policy a call was judged under.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(self.text().as_bytes())
    }

    /// The text that its hash is of, from which it can be read again.
    #[must_use]
    pub fn text(&self) -> String {
        canonical::text(&serde_json::to_value(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::host::Port;

    #[test]
    fn a_preset_is_written_out_and_gives_way_to_what_is_named_beside_it() {
        let of = |text: &str| serde_json::from_str::<AgentSpec>(text).unwrap().complete().unwrap();
        let flags = |agent: &AgentConfig| {
            (agent.can_read, agent.can_write, agent.can_create, agent.can_delete, agent.can_execute_code)
        };
        let reads = of(r#"{"name": "A", "preset": "read-only"}"#);
        assert_eq!((flags(&reads), reads.permission_level), ((true, false, false, false, false), Level::Read));
        assert_eq!(reads.categories, [Category::FileRead, Category::Memory].into());
        let standard = of(r#"{"name": "A", "preset": "standard", "can_create": false}"#);
        assert_eq!((flags(&standard), standard.permission_level), ((true, true, false, false, false), Level::Write));
        assert!(!standard.can_access_integrations && !standard.categories.contains(&Category::NetworkRead));
        let full = of(r#"{"name": "A", "preset": "full", "categories": ["file_read"]}"#);
        assert_eq!((flags(&full), full.permission_level), ((true, true, true, true, true), Level::Admin));
        assert!(full.can_access_integrations);
        assert_eq!(full.categories, [Category::FileRead].into());
        assert!(serde_json::from_str::<AgentSpec>(r#"{"name": "A", "preset": "more"}"#).is_err());
    }

    #[test]
    fn an_agent_with_only_a_name_can_read_nothing() {
        let config = AgentSpec { name: "My Agent!".to_owned(), ..AgentSpec::default() }.complete().unwrap();
        assert_eq!(config.slug, "my-agent");
        assert_eq!(config.reach(), "no files");
        assert!(config.can_read && !config.can_write);
        assert_eq!(config.permission_level, Level::Read);
        assert!(config.grants_tool("read_file", "files") && !config.grants_tool("kv_get", "kv"));
    }

    #[test]
    fn hosts_are_a_list_or_a_policy_and_are_checked() {
        let read =
            |hosts: &str| serde_json::from_str::<AgentSpec>(&format!(r#"{{"name": "a", "allowed_hosts": {hosts}}}"#));
        let config = |hosts: &str| read(hosts).unwrap().complete();
        let listed = config(r#"["docs.example.org"]"#).unwrap();
        assert_eq!(listed.allowed_hosts.hosts.as_deref().unwrap(), ["docs.example.org"]);
        assert_eq!(listed.reach(), "no files", "a host without the flag is out of reach");
        let whole = config(r#"{"hosts": ["a.example"], "ports": [8443]}"#).unwrap();
        assert_eq!(whole.allowed_hosts.ports.as_deref().unwrap(), [Port::Number(8443)]);
        assert_eq!(config("null").unwrap().allowed_hosts, HostSpec::default());
        let bad = config(r#"["exa mple", "a.example"]"#).unwrap_err();
        assert_eq!(bad[0].field, "allowed_hosts.hosts[0]");
        assert!(read(r#"{"host": []}"#).is_err(), "an unknown key is an error");
    }

    #[test]
    fn an_explicit_empty_list_grants_nothing() {
        let spec = AgentSpec { name: "a".to_owned(), toolsets: Some(BTreeSet::new()), ..AgentSpec::default() };
        assert!(!spec.complete().unwrap().grants_tool("read_file", "files"));
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let spec = AgentSpec {
            name: " ".to_owned(),
            slug: Some("-x".to_owned()),
            max_turns: Some(0),
            approval_expires_in: Some("soon".to_owned()),
            ..AgentSpec::default()
        };
        let fields: Vec<_> = spec.complete().unwrap_err().into_iter().map(|problem| problem.field).collect();
        assert_eq!(fields, ["name", "slug", "approval_expires_in", "max_turns"]);
    }

    #[test]
    fn an_agent_asks_less_when_it_is_more_free_or_something_that_asked_is_gone() {
        let of = |text: &str| serde_json::from_str::<AgentSpec>(text).unwrap().complete().unwrap();
        let entry = |word: &str| format!(r#"{{"pattern": "{word}", "points": ["input"], "action": "ask"}}"#);
        let agent = |autonomy: &str, tools: &str, flow: &str, filter: &str| {
            of(&format!(
                r#"{{"name": "A", "autonomy": "{autonomy}", "requires_approval": [{tools}], "flow": "{flow}", "content_filter": [{filter}]}}"#
            ))
        };
        let before = agent("low", r#""write_file""#, "ask", &entry("salary"));
        assert!(!before.asks_less_than(&before));
        let stern = agent("low", r#""write_file""#, "deny", &entry("salary"));
        for less in [
            agent("medium", r#""write_file""#, "ask", &entry("salary")),
            agent("low", "", "ask", &entry("salary")),
            agent("low", r#""delete_file""#, "ask", &entry("salary")),
            agent("low", r#""write_file""#, "ask", ""),
            agent("low", r#""write_file""#, "ask", &entry("wages")),
        ] {
            assert!(less.asks_less_than(&before), "{less:?}");
        }
        assert!(before.asks_less_than(&stern), "what was refused is asked");
        for more in [
            agent("none", r#""write_file""#, "ask", &entry("salary")),
            agent("low", r#""write_file", "delete_file""#, "ask", &entry("salary")),
            agent("low", r#""write_file""#, "ask", &[entry("wages"), entry("salary")].join(",")),
            stern,
        ] {
            assert!(!more.asks_less_than(&before), "{more:?}");
        }
    }

    #[test]
    fn a_stored_configuration_with_a_key_missing_is_refused() {
        let plain = AgentSpec { name: "a".to_owned(), ..AgentSpec::default() }.complete().unwrap();
        // Every key is written, also those that are left out where they say nothing.
        let config = AgentConfig {
            model_options: serde_json::from_value(serde_json::json!({"top_p": 0.5})).unwrap(),
            requires: serde_json::from_value(serde_json::json!(["tools"])).unwrap(),
            provider_key_id: Some(KeyId::new(crate::time::Time::from_millis(0), [1; 10])),
            memory: Some(Memory { enabled: false }),
            data_access: ["mail".to_owned()].into(),
            max_concurrent_runs: 1,
            ..plain.clone()
        };
        let whole = serde_json::to_value(&config).unwrap();
        assert_eq!(serde_json::from_value::<AgentConfig>(whole.clone()).unwrap(), config);
        let mut may_be_missing = Vec::new();
        for key in whole.as_object().unwrap().keys() {
            let mut cut = whole.clone();
            cut.as_object_mut().unwrap().remove(key);
            may_be_missing.extend(serde_json::from_value::<AgentConfig>(cut).is_ok().then_some(key.as_str()));
        }
        assert_eq!(
            may_be_missing,
            ["data_access", "max_concurrent_runs", "memory", "model_options", "provider_key_id", "requires"],
            "what earlier versions did not write"
        );
        assert_eq!(
            serde_json::to_value(&plain).unwrap().as_object().unwrap().len() + 6,
            whole.as_object().unwrap().len()
        );
    }
}
