//! Which tools there are at all: the operator's switches. What is off does not exist, for any agent of any workspace.

use adjutant_core::tool::{Category, ToolSpec};
use adjutant_engine::tools::Registry;

use super::reader::Reader;
use super::{Origin, Setting};

/// The operator's switches.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    /// The toolsets and tools there are; all when nobody said.
    enabled: Option<Setting<Vec<String>>>,
    /// Whether agents may use a shell of this machine.
    shell: Setting<bool>,
    /// Whether agents may run code.
    code: Setting<bool>,
    /// Whether agents may use the network.
    network: Setting<bool>,
}

impl Tools {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let enabled = reader.optional("tools_enabled", "toolsets and tools such as files, kv_get", known);
        let mut switch =
            |name, usual: &str| reader.parsed(name, None, usual, "true or false", |text| text.parse().ok());
        let shell = switch("tools_shell", "false");
        let code = switch("tools_code", "false");
        let network = switch("tools_network", "true");
        Some(Self { enabled, shell: shell?, code: code?, network: network? })
    }

    /// The tools that are left of these.
    pub(crate) fn of(&self, mut tools: Registry) -> Registry {
        tools.retain(|spec| self.admit(spec));
        tools
    }

    fn admit(&self, spec: &ToolSpec) -> bool {
        let on = match spec.category {
            Category::System => self.shell.value,
            Category::CodeExecute => self.code.value,
            Category::NetworkRead | Category::NetworkWrite => self.network.value,
            Category::FileRead | Category::FileWrite | Category::FileDelete | Category::Memory | Category::Custom => {
                self.network.value || !spec.egress
            }
        };
        let names = [&*spec.toolset, spec.name()];
        on && self.enabled.as_ref().is_none_or(|some| some.value.iter().any(|name| names.contains(&name.as_str())))
    }

    /// The switches as lines of key, value and origin.
    pub(super) fn shown(&self) -> Vec<(String, String, Origin)> {
        let enabled = self.enabled.as_ref();
        let named = enabled.map_or_else(|| "all".to_owned(), |some| some.value.join(", "));
        let origin = enabled.map_or(Origin::Default, |some| some.origin.clone());
        let switches = [("shell", &self.shell), ("code", &self.code), ("network", &self.network)];
        let switches = switches.map(|(name, on)| (format!("tools.{name}"), on.value.to_string(), on.origin.clone()));
        [("tools.enabled".to_owned(), named, origin)].into_iter().chain(switches).collect()
    }
}

/// Names with commas between them, each of a tool or a toolset.
fn known(text: &str) -> Option<Vec<String>> {
    let tools = Registry::builtin();
    let is_known = |name: &str| tools.iter().any(|tool| name == tool.spec().name() || name == &*tool.spec().toolset);
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| is_known(name).then(|| name.to_owned())).collect()
}
