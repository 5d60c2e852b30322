//! What an agent may do, in words: for prompts and lists, and for whoever lets one version stand in for another.

use std::collections::BTreeSet;

use super::{AgentConfig, Flow};
use crate::budget::{Budget, micros};
use crate::guard::host::HostSpec;
use crate::guard::scope::{FolderEntry, Operation};

impl AgentConfig {
    /// The scope in words, for prompts and lists.
    #[must_use]
    pub fn reach(&self) -> String {
        let hosts = self.allowed_hosts.hosts.as_deref().unwrap_or_default();
        let web = (self.can_access_integrations && !hosts.is_empty()).then(|| format!("reach {}", hosts.join(", ")));
        let parts: Vec<String> = self.files().into_iter().chain(web).collect();
        if parts.is_empty() { "no files".to_owned() } else { parts.join("; ") }
    }

    /// What it may do to files: folders with the same operations stand together.
    fn files(&self) -> Option<String> {
        let mut groups: Vec<(Vec<Operation>, Vec<&str>)> = Vec::new();
        for entry in self.scope.folders.iter().flatten() {
            let (path, own) = match entry {
                FolderEntry::Pattern(pattern) => (pattern.as_str(), None),
                FolderEntry::Narrowed(narrowed) => (narrowed.path.as_str(), Some(&narrowed.operations)),
                FolderEntry::Broken(_) => continue,
            };
            let granted = |operation: &Operation| {
                let mut lists = own.into_iter().chain(&self.scope.operations);
                self.caps().allows(*operation) && lists.all(|list| list.contains(operation))
            };
            // Running a file is no work of folders: it is said apart.
            let files = Operation::ALL.into_iter().filter(|operation| *operation != Operation::Execute);
            let operations: Vec<_> = files.filter(granted).collect();
            match groups.iter_mut().find(|(known, _)| *known == operations) {
                Some((_, paths)) => paths.push(path),
                None if operations.is_empty() => {}
                None => groups.push((operations, vec![path])),
            }
        }
        let types = self.scope.file_types.as_ref().map(|types| format!(" ({})", types.join(", ")));
        let said = groups.iter().map(|(operations, paths)| {
            let verbs: Vec<_> = operations.iter().map(ToString::to_string).collect();
            format!("{} in {}", verbs.join(", "), paths.join(", "))
        });
        let said = said.collect::<Vec<_>>().join("; ");
        (!said.is_empty()).then(|| said + &types.unwrap_or_default())
    }

    /// What changes in what an agent may do when this takes the place of another, one line for each thing. Nothing said is
    /// nothing changed.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let or_none = |said: String| if said.is_empty() { "none".to_owned() } else { said };
        let differ = before.told().into_iter().zip(self.told()).filter(|(old, new)| old != new);
        differ.map(|((_, old), (what, new))| format!("{what} {} (before: {})", or_none(new), or_none(old))).collect()
    }

    /// Everything that says what it may do. A field that is new has to say here on which side it is.
    #[allow(clippy::too_many_lines, reason = "one line for each field")]
    fn told(&self) -> Vec<(&'static str, String)> {
        let Self {
            // What it is called, which model it asks and how.
            name: _,
            slug: _,
            description: _,
            emoji: _,
            category: _,
            keywords: _,
            model: _,
            fallback_models: _,
            routing: _,
            temperature: _,
            model_options: _,
            output_schema: _,
            system_prompt: _,
            metadata: _,
            // It is off wherever it is said.
            memory: _,
            // All that `files` reads.
            can_read: _,
            can_write: _,
            can_create: _,
            can_delete: _,
            requires,
            scope,
            can_execute_code,
            can_access_integrations,
            permission_level,
            categories,
            tools,
            toolsets,
            denied_tools,
            allowed_hosts,
            autonomy,
            flow,
            requires_approval,
            max_turns,
            max_tool_calls,
            max_tokens_per_request,
            max_requests_per_hour,
            max_concurrent_runs,
            tool_limits,
            content_filter,
            approval_expires_secs,
            provider_key_id,
            budget,
            data_access,
            is_active,
        } = self;
        let texts = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
        let rates: Vec<_> = tool_limits.iter().map(|(tool, calls)| format!("{tool} {calls} a minute")).collect();
        vec![
            ("may", self.files().unwrap_or_else(|| "touch no files".to_owned())),
            ("notebooks", scope.notebooks.clone().unwrap_or_default().join(", ")),
            ("running code is", on(*can_execute_code)),
            ("the network is", on(*can_access_integrations)),
            ("hosts", hosts(allowed_hosts)),
            ("tools", [texts(toolsets), texts(tools)].concat().join(", ")),
            ("tools of the kinds", categories.iter().map(word).collect::<Vec<_>>().join(", ")),
            ("tools up to the level", word(permission_level)),
            ("never uses", texts(denied_tools).join(", ")),
            ("autonomy", word(autonomy)),
            ("always asks before", texts(requires_approval).join(", ")),
            ("private data on its way out is", flow_of(*flow)),
            ("starts only with", requires.iter().map(word).collect::<Vec<_>>().join(", ")),
            ("content filter", content_filter.iter().map(json).collect::<Vec<_>>().join(", ")),
            ("turns of a run:", max_turns.to_string()),
            ("tool calls of a run:", max_tool_calls.to_string()),
            ("tokens of a model call:", max_tokens_per_request.to_string()),
            ("model calls in an hour:", max_requests_per_hour.to_string()),
            ("runs at the same time:", max_concurrent_runs.to_string()),
            ("calls of single tools:", rates.join(", ")),
            ("seconds that a question waits:", approval_expires_secs.to_string()),
            ("budget", money(budget)),
            ("stored key", provider_key_id.as_ref().map(ToString::to_string).unwrap_or_default()),
            ("kinds of data:", texts(data_access).join(", ")),
            ("is", on(*is_active)),
        ]
    }
}

fn on(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

fn flow_of(flow: Flow) -> String {
    match flow {
        Flow::Ask => "asked about",
        Flow::Deny => "refused",
    }
    .to_owned()
}

/// Hosts, and what else has to hold there.
fn hosts(spec: &HostSpec) -> String {
    let HostSpec { hosts, schemes, ports, allow_private, path_prefix } = spec;
    let listed = |before: &str, list: &Option<Vec<String>>| {
        list.as_ref().map(|list| format!("{before}{}", list.join(", "))).unwrap_or_default()
    };
    let ports = ports.as_ref().map(|ports| ports.iter().map(json).collect::<Vec<_>>());
    let path = path_prefix.as_ref().map(|path| format!(" below {path}")).unwrap_or_default();
    [
        listed("", hosts),
        listed(" over ", schemes),
        listed(" at port ", &ports),
        path,
        listed(" and the private networks ", allow_private),
    ]
    .concat()
}

fn money(budget: &Budget) -> String {
    let Budget { run_usd, day_usd, month_usd, alert_at_usd, soft_usd, cheaper_model, allow_unpriced } = budget;
    let limit = |usd: Option<f64>, of: &str| match usd {
        Some(usd) => format!("{} a {of}", micros(usd)),
        None => format!("no limit a {of}"),
    };
    let alerts: Vec<_> = alert_at_usd.iter().map(|usd| micros(*usd).to_string()).collect();
    let cheaper = soft_usd.zip(cheaper_model.as_ref());
    let parts = [
        Some([limit(*run_usd, "run"), limit(*day_usd, "day"), limit(*month_usd, "month")].join(", ")),
        (!alerts.is_empty()).then(|| format!("pointed out at {}", alerts.join(", "))),
        cheaper.map(|(usd, model)| format!("{model} from {} on", micros(usd))),
        allow_unpriced.then(|| "models without a known price too".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The stored word of a value.
fn word(value: &impl serde::Serialize) -> String {
    json(value).trim_matches('"').to_owned()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::guard::policy::{AgentConfig, AgentSpec};

    fn agent(fields: &str) -> AgentConfig {
        let text = format!(r#"{{"name": "A", {fields}}}"#);
        serde_json::from_str::<AgentSpec>(&text).unwrap().complete().unwrap()
    }

    fn reach(folders: &str, more: &str) -> String {
        agent(&format!(r#""can_write": true, {more} "scope": {{"folders": {folders}}}"#)).reach()
    }

    #[test]
    fn the_operations_of_a_folder_are_said_with_it() {
        let narrow = r#"[{"path": "/", "operations": ["read"]}, "/projects"]"#;
        assert_eq!(reach(narrow, r#""can_create": true,"#), "read in /; read, write, create in /projects");
        assert_eq!(reach(r#"["/a", "/b"]"#, ""), "read, write in /a, /b");
        let unused = r#"[{"path": "/projects", "operations": ["read", "create"]}]"#;
        assert_eq!(reach(unused, ""), "read in /projects", "a flag that is off grants nothing");
        assert_eq!(reach(r#"[{"path": "/x", "operations": ["delete"]}]"#, ""), "no files");
    }

    #[test]
    fn whatever_lets_an_agent_do_more_is_a_line_of_its_own() {
        let strict = r#""can_access_integrations": true, "denied_tools": ["write_file"], "flow": "deny",
            "requires_approval": ["create_file"], "budget": {"run_usd": 0.1}, "allowed_hosts": ["a.example"],
            "tool_limits": {"read_file": 3}, "max_turns": 3, "max_tool_calls": 4, "autonomy": "none",
            "content_filter": [{"category": "secrets", "points": ["input"], "action": "block"}]"#;
        let lines = agent(r#""can_access_integrations": true, "allowed_hosts": ["*"]"#).changes_since(&agent(strict));
        for line in [
            "hosts * (before: a.example)",
            "never uses none (before: write_file)",
            "autonomy low (before: none)",
            "always asks before none (before: create_file)",
            "private data on its way out is asked about (before: refused)",
            "calls of single tools: none (before: read_file 3 a minute)",
        ] {
            assert!(lines.iter().any(|said| said == line), "{line}: {lines:#?}");
        }
        for start in
            ["content filter none (before: ", "turns of a run: ", "tool calls of a run: ", "budget $0.50 a run, "]
        {
            assert_eq!(lines.iter().filter(|line| line.starts_with(start)).count(), 1, "{start}: {lines:#?}");
        }
        assert_eq!(lines.len(), 10, "{lines:#?}");
    }

    #[test]
    fn one_folder_with_more_operations_is_a_change() {
        let of = |operations: &str| {
            agent(&format!(
                r#""can_write": true, "scope": {{"folders": [{{"path": "/", "operations": {operations}}}]}}"#
            ))
        };
        let (reads, writes) = (of(r#"["read"]"#), of(r#"["read", "write"]"#));
        assert_eq!(writes.changes_since(&reads), ["may read, write in / (before: read in /)"]);
        assert!(reads.changes_since(&reads).is_empty());
    }
}
