//! The one list of built-in tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::tool::ToolSpec;

use crate::tool::Tool;
use crate::{files, kv, meta, net};

/// The tools of an instance, by name.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    /// Those that were left out, with their toolsets: their names stay known words.
    left_out: BTreeMap<String, Arc<str>>,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

impl Registry {
    /// Every tool that comes with Adjutant.
    #[must_use]
    pub fn builtin() -> Self {
        let mut registry = Self::default();
        for tool in builtin() {
            registry.add(tool);
        }
        registry
    }

    /// Adds a tool; one of the same name is replaced.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        self.tools.insert(tool.spec().name().to_owned(), tool);
    }

    /// Leaves out the tools for which this is not true.
    pub fn retain(&mut self, keep: impl Fn(&ToolSpec) -> bool) {
        let left_out = self.iter().map(|tool| tool.spec()).filter(|spec| !keep(spec));
        let left_out: Vec<_> = left_out.map(|spec| (spec.name().to_owned(), Arc::clone(&spec.toolset))).collect();
        self.tools.retain(|_, tool| keep(tool.spec()));
        self.left_out.extend(left_out);
    }

    /// Whether this is the name of a tool, be it one that was left out.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.tools.contains_key(name) || self.left_out.contains_key(name)
    }

    /// Whether this is the name of a toolset, be it one that was left out.
    #[must_use]
    pub fn knows_toolset(&self, set: &str) -> bool {
        self.iter().any(|tool| *tool.spec().toolset == *set) || self.left_out.values().any(|other| **other == *set)
    }

    /// The tool of this name, byte for byte.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
    }

    /// The names of the tools in a toolset, sorted.
    #[must_use]
    pub fn names_of_toolset(&self, set: &str) -> Vec<&str> {
        self.iter().map(|tool| tool.spec()).filter(|spec| *spec.toolset == *set).map(|spec| spec.name()).collect()
    }

    /// All tools, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.values()
    }
}

fn builtin() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(files::CreateFile::new()),
        Arc::new(files::DeleteFile::new()),
        Arc::new(files::GetFileMetadata::new()),
        Arc::new(files::ListFiles::new()),
        Arc::new(files::ReadFile::new()),
        Arc::new(files::SearchContent::new()),
        Arc::new(files::UpdateFileProperties::new()),
        Arc::new(files::WriteFile::new()),
        Arc::new(kv::KvDelete::new()),
        Arc::new(kv::KvGet::new()),
        Arc::new(kv::KvList::new()),
        Arc::new(kv::KvSet::new()),
        Arc::new(meta::GetToolHelp::new()),
        Arc::new(meta::SearchTools::new()),
        Arc::new(meta::UseTool::new()),
        Arc::new(net::FetchWebPage::new()),
        Arc::new(net::HttpRequest::new()),
    ]
}

#[cfg(test)]
mod tests {
    use adjutant_core::label::Labels;
    use adjutant_core::tool::{Category, Effect, Recovery};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_tool_is_in_a_toolset_under_its_own_name() {
        let registry = Registry::builtin();
        let files = [
            "create_file",
            "delete_file",
            "get_file_metadata",
            "list_files",
            "read_file",
            "search_content",
            "update_file_properties",
            "write_file",
        ];
        assert_eq!(registry.names_of_toolset("files"), files);
        assert_eq!(registry.names_of_toolset("kv"), ["kv_delete", "kv_get", "kv_list", "kv_set"]);
        assert_eq!(registry.names_of_toolset("meta"), ["get_tool_help", "search_tools", "use_tool"]);
        assert_eq!(registry.names_of_toolset("web"), ["fetch_web_page", "http_request"]);
        assert_eq!(registry.iter().count(), 17);
        assert!(registry.get("read_file").is_some() && registry.get("Read_File").is_none());
    }

    #[test]
    fn every_tool_declares_itself_honestly() {
        for tool in Registry::builtin().iter() {
            let spec = tool.spec();
            let reads = spec.effect == Effect::Read;
            let goes_out = *spec.toolset == *"web";
            let expected = match (reads, spec.category) {
                (true, _) => Recovery::Pure,
                (false, Category::Memory) => Recovery::Idempotent,
                (false, Category::NetworkWrite) => Recovery::AskHuman,
                (false, _) => Recovery::Reconcile,
            };
            assert_eq!(spec.recovery, expected, "{}", spec.name());
            let about_tools = *spec.toolset == *"meta";
            assert_eq!(spec.labels.covers(Labels::PRIVATE), reads && !about_tools && !goes_out, "{}", spec.name());
            assert_eq!(spec.labels.covers(Labels::UNTRUSTED), goes_out, "{}", spec.name());
            assert_eq!(spec.egress, goes_out, "{}", spec.name());
            assert_eq!(spec.checks.urls.len(), usize::from(goes_out), "{}", spec.name());
            assert!(spec.per_minute.is_none(), "{}", spec.name());
            for argument in spec.paths.keys() {
                assert_eq!(spec.definition.schema["properties"][&**argument]["type"], "string", "{}", spec.name());
            }
        }
    }

    #[test]
    fn every_schema_is_closed_described_and_free_of_references() {
        for tool in Registry::builtin().iter() {
            let schema = &tool.spec().definition.schema;
            assert_eq!(schema["type"], "object");
            assert_eq!(schema["additionalProperties"], false, "{}", tool.spec().name());
            assert!(!schema.to_string().contains("$ref") && !schema.to_string().contains("$schema"));
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{}.{name}", tool.spec().name());
                assert!(!matches!(property["type"], Value::Array(_)), "{}.{name} takes null", tool.spec().name());
            }
        }
    }

    #[test]
    fn every_tool_shows_a_call_that_fits_its_schema() {
        for tool in Registry::builtin().iter() {
            let example = tool.example().unwrap_or_else(|| panic!("{} shows none", tool.spec().name()));
            let fits = adjutant_core::guard::arguments::validate(&tool.spec().definition.schema, &example);
            assert!(fits.is_ok(), "{}: {fits:?}", tool.spec().name());
        }
    }

    #[test]
    fn a_schema_says_what_the_guard_checks() {
        let registry = Registry::builtin();
        let schema = |name: &str| registry.get(name).unwrap().spec().definition.schema.clone();
        let list = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "path": {
                    "type": "string", "default": "/", "minLength": 1, "maxLength": 4096,
                    "description": "Path of the folder, from the root of the notebook.",
                },
                "pattern": {
                    "type": "string", "minLength": 1, "maxLength": 256,
                    "description": "Only what matches this pattern: *.md for names, or with a slash a path below the \
                                    folder, for example **/2026-*.md.",
                },
                "recursive": {"type": "boolean", "default": false, "description": "Also what lies in the folders below."},
                "limit": {
                    "type": "integer", "default": 500, "minimum": 1, "maximum": 500,
                    "description": "How many entries to return.",
                },
            },
        });
        assert_eq!(schema("list_files"), list);
        assert_eq!(schema("kv_set")["properties"]["key"]["pattern"], "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$");
        assert_eq!(schema("kv_set")["required"], json!(["key", "value"]));
        assert_eq!(schema("write_file")["properties"]["properties"]["maxProperties"], 64);
    }
}
