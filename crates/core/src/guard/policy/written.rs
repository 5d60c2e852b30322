//! An agent as a person writes it: almost everything may be left out, and what is left out is written out here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentConfig, Autonomy, Flow, Memory};
use crate::budget::BudgetSpec;
use crate::guard::filter::{self, FilterEntry};
use crate::guard::host::{HostSpec, hosts_or_policy};
use crate::guard::scope::ScopeSpec;
use crate::guard::words::{is_metadata, is_slug, parse_seconds, slug_of};
use crate::id::KeyId;
use crate::limits;
use crate::options::ModelOptions;
use crate::routing::{ModelChoice, Strategy, Wanted};
use crate::run::output;
use crate::safety::Requirements;
use crate::tool::{Category, Level};

/// An agent as a person writes it. Only the name is required; an unknown key is an error.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// Its name.
    pub name: String,
    /// Its short name; made from the name when omitted.
    pub slug: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// A picture for lists.
    pub emoji: Option<String>,
    /// What kind of work it does, for lists.
    pub category: Option<String>,
    /// Words in a message that speak for this agent when none is named.
    pub keywords: Option<BTreeSet<String>>,
    /// A model, several in order, a strategy, or `default`.
    pub model: Option<ModelChoice>,
    /// Models that may stand in for it, in order.
    pub fallback_models: Option<Vec<String>>,
    /// How to choose a model where it is left open, and who stands in where nobody is named.
    pub routing: Option<Strategy>,
    /// Sampling temperature; the provider's own when omitted.
    pub temperature: Option<f64>,
    /// How its model is asked beyond that.
    pub model_options: Option<ModelOptions>,
    /// What a model has to be able to do to be chosen, or to stand in; and what has to be enforced for a run to start.
    pub requires: Option<Requirements>,
    /// The stored key that its runs use for the provider it is for.
    pub provider_key_id: Option<KeyId>,
    /// The JSON Schema that its answers have to fit; none when omitted.
    pub output_schema: Option<Value>,
    /// Its instructions.
    pub system_prompt: Option<String>,
    /// A bundle of grants that is written out at save; what is named beside it counts instead.
    pub preset: Option<Preset>,
    /// What it may touch; nothing when omitted.
    pub scope: Option<ScopeSpec>,
    /// Whether it may read files.
    pub can_read: Option<bool>,
    /// Whether it may change files.
    pub can_write: Option<bool>,
    /// Whether it may create files.
    pub can_create: Option<bool>,
    /// Whether it may delete files.
    pub can_delete: Option<bool>,
    /// Whether it may run code.
    pub can_execute_code: Option<bool>,
    /// Whether it may use the network and other integrations.
    pub can_access_integrations: Option<bool>,
    /// Its level; the lowest its flags need when omitted.
    pub permission_level: Option<Level>,
    /// The categories of tools it may use; all when omitted.
    pub categories: Option<BTreeSet<Category>>,
    /// Tools by name.
    pub tools: Option<BTreeSet<String>>,
    /// Groups of tools; `files` when both are omitted.
    pub toolsets: Option<BTreeSet<String>>,
    /// Tools it never gets.
    pub denied_tools: Option<BTreeSet<String>>,
    /// The hosts it may reach: a list, or a whole policy of hosts, schemes, ports and a path; none when omitted.
    #[serde(default, deserialize_with = "hosts_or_policy")]
    pub allowed_hosts: Option<HostSpec>,
    /// How much it does without asking.
    pub autonomy: Option<Autonomy>,
    /// What becomes of private data on its way out of a run that has read untrusted content.
    pub flow: Option<Flow>,
    /// Tools that always ask.
    pub requires_approval: Option<BTreeSet<String>>,
    /// Model turns of a run.
    pub max_turns: Option<u32>,
    /// Tool calls of a run.
    pub max_tool_calls: Option<u32>,
    /// Output tokens of one model call.
    pub max_tokens_per_request: Option<u32>,
    /// Model calls in one hour, over all its runs.
    pub max_requests_per_hour: Option<u32>,
    /// Runs that are driven at the same time.
    pub max_concurrent_runs: Option<u32>,
    /// Calls a minute of single tools, by name; lower than what the tool allows, never higher.
    pub tool_limits: Option<BTreeMap<String, u32>>,
    /// What texts may hold at points of a run.
    pub content_filter: Option<Vec<FilterEntry>>,
    /// How long an approval waits, such as `24h`.
    pub approval_expires_in: Option<String>,
    /// What it may spend.
    pub budget: Option<BudgetSpec>,
    /// Whether it remembers; nothing does yet.
    pub memory: Option<Memory>,
    /// The kinds of data it is meant for, in words of its own.
    pub data_access: Option<BTreeSet<String>>,
    /// Whether it may run.
    pub is_active: Option<bool>,
    /// Free fields, never shown to a model.
    pub metadata: Option<BTreeMap<String, String>>,
    /// Members, by id or name, who see it and run it beside its owner; as before when omitted. No part of what is judged by.
    pub shared_with: Option<BTreeSet<String>>,
    /// Members, by id or name, who may decide what it asks; as before when omitted. No part of what is judged by.
    pub approvers: Option<BTreeSet<String>>,
}

/// A bundle of flags, level and categories. It is a way to write them, and is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Reads files and remembers.
    ReadOnly,
    /// Changes files, too, and deletes none.
    Standard,
    /// Everything there is.
    Full,
}

impl Preset {
    const fn level(self) -> Level {
        match self {
            Self::ReadOnly => Level::Read,
            Self::Standard => Level::Write,
            Self::Full => Level::Admin,
        }
    }

    fn categories(self) -> BTreeSet<Category> {
        match self {
            Self::ReadOnly => [Category::FileRead, Category::Memory].into(),
            Self::Standard => [Category::FileRead, Category::FileWrite, Category::Memory].into(),
            Self::Full => ALL_CATEGORIES.into(),
        }
    }

    /// Writes itself out into what is left open.
    fn write_out(self, spec: &mut AgentSpec) {
        let changes = self != Self::ReadOnly;
        let all = self == Self::Full;
        spec.can_read.get_or_insert(true);
        spec.can_write.get_or_insert(changes);
        spec.can_create.get_or_insert(changes);
        spec.can_delete.get_or_insert(all);
        spec.can_execute_code.get_or_insert(all);
        spec.can_access_integrations.get_or_insert(all);
        spec.permission_level.get_or_insert(self.level());
        spec.categories.get_or_insert_with(|| self.categories());
    }
}

/// Something about an agent that cannot be saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {detail}")]
pub struct AgentProblem {
    /// The field.
    pub field: String,
    /// What is wrong and what would be right.
    pub detail: String,
}

/// Who names neither tools nor toolsets has those for files.
fn usual_toolsets(tools: Option<&BTreeSet<String>>, toolsets: Option<BTreeSet<String>>) -> BTreeSet<String> {
    match (tools, toolsets) {
        (None, None) => BTreeSet::from(["files".to_owned()]),
        (_, toolsets) => toolsets.unwrap_or_default(),
    }
}

impl AgentSpec {
    /// The same with what its preset stands for in its place.
    #[must_use]
    pub fn without_preset(mut self) -> Self {
        if let Some(preset) = self.preset.take() {
            preset.write_out(&mut self);
        }
        self
    }

    /// Writes the defaults out and checks the whole.
    ///
    /// # Errors
    /// Everything that is wrong, not only the first thing.
    pub fn complete(mut self) -> Result<AgentConfig, Vec<AgentProblem>> {
        self = self.without_preset();
        let (mut problems, limits) = (Problems::default(), Limits::of(&self));
        let slug = self.slug.unwrap_or_else(|| slug_of(&self.name));
        problems.names(&self.name, &slug);
        let scope = self.scope.unwrap_or_default();
        problems.scope(&scope);
        let allowed_hosts = problems.hosts(self.allowed_hosts.unwrap_or_default());
        let toolsets = usual_toolsets(self.tools.as_ref(), self.toolsets);
        limits.check(&mut problems);
        problems.check(self.temperature.is_none_or(|heat| (0.0..=2.0).contains(&heat)), "temperature", "use 0 to 2");
        let wanted = problems.or_note(Wanted::of(self.model, self.fallback_models, self.routing));
        let budget = problems.or_note(self.budget.unwrap_or_default().complete().map_err(|why| ("budget", why)));
        let mut config = AgentConfig {
            name: self.name,
            slug,
            description: self.description.unwrap_or_default(),
            emoji: self.emoji.unwrap_or_default(),
            category: self.category.unwrap_or_default(),
            keywords: self.keywords.unwrap_or_default(),
            model: wanted.as_ref().map(|wanted| wanted.model.clone()).unwrap_or_default(),
            fallback_models: wanted.as_ref().map(|wanted| wanted.fallbacks.clone()).unwrap_or_default(),
            routing: wanted.and_then(|wanted| wanted.strategy),
            temperature: self.temperature,
            model_options: problems.options(self.model_options.unwrap_or_default()),
            requires: self.requires.unwrap_or_default(),
            provider_key_id: self.provider_key_id,
            output_schema: problems.output_schema(self.output_schema),
            system_prompt: self.system_prompt.unwrap_or_default(),
            scope,
            can_read: self.can_read.unwrap_or(true),
            can_write: self.can_write.unwrap_or(false),
            can_create: self.can_create.unwrap_or(false),
            can_delete: self.can_delete.unwrap_or(false),
            can_execute_code: self.can_execute_code.unwrap_or(false),
            can_access_integrations: self.can_access_integrations.unwrap_or(false),
            permission_level: Level::None,
            categories: self.categories.unwrap_or_else(|| BTreeSet::from(ALL_CATEGORIES)),
            tools: self.tools.unwrap_or_default(),
            toolsets,
            denied_tools: self.denied_tools.unwrap_or_default(),
            allowed_hosts,
            autonomy: self.autonomy.unwrap_or(Autonomy::Low),
            flow: self.flow.unwrap_or(Flow::Ask),
            requires_approval: self.requires_approval.unwrap_or_default(),
            max_turns: limits.turns,
            max_tool_calls: limits.calls,
            max_tokens_per_request: limits.tokens,
            max_requests_per_hour: limits.requests,
            max_concurrent_runs: limits.runs,
            tool_limits: self.tool_limits.unwrap_or_default(),
            content_filter: problems.filter(self.content_filter.unwrap_or_default()),
            approval_expires_secs: limits.expiry.unwrap_or_default(),
            budget: budget.unwrap_or_default(),
            memory: problems.memory(self.memory),
            data_access: problems.data_access(self.data_access.unwrap_or_default()),
            is_active: self.is_active.unwrap_or(true),
            metadata: self.metadata.unwrap_or_default(),
        };
        config.permission_level = self.permission_level.unwrap_or_else(|| config.lowest_level());
        if problems.0.is_empty() { Ok(config) } else { Err(problems.0) }
    }
}

/// The limits of a run of the agent.
struct Limits {
    turns: u32,
    calls: u32,
    tokens: u32,
    requests: u32,
    runs: u32,
    /// The lowest of the rates that the agent gives to tools.
    lowest_rate: Option<u32>,
    /// Whether its free fields are few and short.
    fields: bool,
    /// Whether its keywords are few and short.
    words: bool,
    /// How long an approval waits, in seconds.
    expiry: Option<u64>,
}

impl Limits {
    fn of(spec: &AgentSpec) -> Self {
        Self {
            turns: spec.max_turns.unwrap_or(limits::TURNS),
            calls: spec.max_tool_calls.unwrap_or(limits::TOOL_CALLS),
            tokens: spec.max_tokens_per_request.unwrap_or(limits::OUTPUT_TOKENS),
            requests: spec.max_requests_per_hour.unwrap_or(limits::REQUESTS_PER_HOUR),
            runs: spec.max_concurrent_runs.unwrap_or(limits::CONCURRENT_RUNS),
            lowest_rate: spec.tool_limits.iter().flat_map(BTreeMap::values).min().copied(),
            fields: spec.metadata.as_ref().is_none_or(is_metadata),
            words: spec.keywords.as_ref().is_none_or(|words| {
                let short = |word: &String| (1..=40).contains(&word.trim().chars().count());
                words.len() <= 32 && words.iter().all(short)
            }),
            expiry: spec.approval_expires_in.as_deref().map_or(Some(limits::APPROVAL_EXPIRY.as_secs()), parse_seconds),
        }
    }

    fn check(&self, problems: &mut Problems) {
        let waits = self.expiry.is_some_and(|secs| (60..=30 * 86_400).contains(&secs));
        problems.check(waits, "approval_expires_in", "use 1m to 30d, such as 24h");
        problems.check((1..=limits::TURNS_CEILING).contains(&self.turns), "max_turns", "use 1 to 200");
        problems.check((1..=limits::TOOL_CALLS_CEILING).contains(&self.calls), "max_tool_calls", "use 1 to 1000");
        problems.check(self.tokens > 0, "max_tokens_per_request", "use 1 or more");
        problems.check(self.requests > 0, "max_requests_per_hour", "use 1 or more");
        let few = (1..=limits::CONCURRENT_RUNS_CEILING).contains(&self.runs);
        problems.check(few, "max_concurrent_runs", "use 1 to 10000");
        problems.check(self.lowest_rate != Some(0), "tool_limits", "use 1 or more calls a minute");
        problems.check(self.fields, "metadata", "use at most 16 keys of 1 to 64 bytes, values of up to 512");
        problems.check(self.words, "keywords", "use at most 32 of 1 to 40 characters");
    }
}

const ALL_CATEGORIES: [Category; 9] = [
    Category::FileRead,
    Category::FileWrite,
    Category::FileDelete,
    Category::CodeExecute,
    Category::NetworkRead,
    Category::NetworkWrite,
    Category::System,
    Category::Memory,
    Category::Custom,
];

#[derive(Default)]
struct Problems(Vec<AgentProblem>);

impl Problems {
    fn names(&mut self, name: &str, slug: &str) {
        let named = !name.trim().is_empty() && name.chars().count() <= 100;
        self.check(named, "name", "give 1 to 100 characters");
        self.check(is_slug(slug), "slug", "use 1 to 39 of a-z, 0-9, - and _, beginning with a letter or digit");
    }

    fn scope(&mut self, scope: &ScopeSpec) {
        self.0.extend(scope.problems().into_iter().map(|bad| AgentProblem {
            field: format!("scope.{}", bad.field),
            detail: format!("`{}`: {}", bad.entry, bad.reason),
        }));
    }

    fn hosts(&mut self, hosts: HostSpec) -> HostSpec {
        self.0.extend(hosts.problems().into_iter().map(|bad| AgentProblem {
            field: format!("allowed_hosts.{}", bad.field),
            detail: format!("`{}`: {}", bad.entry, bad.reason),
        }));
        hosts
    }

    fn or_note<T>(&mut self, read: Result<T, (&str, &str)>) -> Option<T> {
        read.map_err(|(field, detail)| self.check(false, field, detail)).ok()
    }

    fn options(&mut self, options: ModelOptions) -> ModelOptions {
        for (field, right) in options.problems() {
            self.check(false, &format!("model_options.{field}"), right);
        }
        options
    }

    fn output_schema(&mut self, schema: Option<Value>) -> Option<Value> {
        if let Some(why) = schema.as_ref().and_then(|schema| output::check(schema).err()) {
            self.check(false, "output_schema", &why);
        }
        schema
    }

    fn filter(&mut self, entries: Vec<FilterEntry>) -> Vec<FilterEntry> {
        let problems = filter::problems(&entries).into_iter();
        self.0.extend(problems.map(|(field, detail)| AgentProblem { field, detail }));
        entries
    }

    /// What is not there cannot be switched on: an agent that counts on it would be told nothing.
    fn memory(&mut self, memory: Option<Memory>) -> Option<Memory> {
        let off = memory.is_none_or(|memory| !memory.enabled);
        self.check(off, "memory.enabled", "agents do not remember yet; use false, or leave it out");
        memory
    }

    fn data_access(&mut self, kinds: BTreeSet<String>) -> BTreeSet<String> {
        let short = |kind: &String| (1..=limits::DATA_KIND_CHARS).contains(&kind.trim().chars().count());
        let fine = kinds.len() <= limits::DATA_KINDS && kinds.iter().all(short);
        self.check(fine, "data_access", "use at most 32 of 1 to 64 characters");
        kinds
    }

    fn check(&mut self, fine: bool, field: &str, detail: &str) {
        if !fine {
            self.0.push(AgentProblem { field: field.to_owned(), detail: detail.to_owned() });
        }
    }
}
