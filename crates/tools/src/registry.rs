//! The one list of built-in tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::tool::Tool;
use crate::{files, kv};

/// The tools of an instance, by name.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Arc<dyn Tool>>,
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

    /// The tool of this name, byte for byte.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name)
    }

    /// The names of the tools in a toolset, sorted.
    #[must_use]
    pub fn names_of_toolset(&self, set: &str) -> Vec<&str> {
        self.iter().map(|tool| tool.spec()).filter(|spec| spec.toolset == set).map(|spec| spec.name()).collect()
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
    ]
}
