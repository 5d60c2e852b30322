//! Standing yeses of a run: what a person allowed for the rest of it, and whether that covers a call.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::canonical;
use crate::content::Hash;
use crate::run::event::ApprovalAsked;
use crate::tool::Target;

/// A standing yes of this run: the same tool, in the same folders or with the very same arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    tool: String,
    reach: Reach,
}

/// What a standing yes covers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    /// Calls whose paths all lie directly in these folders.
    Folders(BTreeSet<String>),
    /// Calls with the very same arguments; none covers nothing.
    Arguments(Option<Hash>),
}

impl Grant {
    /// The grant that an approval "for this run" gives: the folder of each path, or the exact arguments where there is
    /// no path. Arguments that live in a block are too long to be told apart here: such a grant covers nothing.
    #[must_use]
    pub fn from_asked(asked: &ApprovalAsked) -> Self {
        let arguments = match asked.arguments.block() {
            None => serde_json::from_str(&asked.arguments.text()).ok().map(|value: Value| canonical::hash(&value)),
            Some(_) => None,
        };
        let reach = match folders(&asked.target) {
            Some(folders) => Reach::Folders(folders),
            None => Reach::Arguments(arguments),
        };
        Self { tool: asked.tool.clone(), reach }
    }

    pub(super) fn covers(&self, tool: &str, target: &Target, arguments: &Value) -> bool {
        let reached = match &self.reach {
            Reach::Folders(granted) => folders(target).is_some_and(|wanted| wanted.is_subset(granted)),
            Reach::Arguments(exact) => *exact == Some(canonical::hash(arguments)),
        };
        self.tool == tool && reached
    }
}

/// The folders of a target that is made of paths; none of any other.
fn folders(target: &Target) -> Option<BTreeSet<String>> {
    let folder = |path: &String| path.starts_with('/').then(|| folder_of(path));
    target.0.keys().map(folder).collect::<Option<BTreeSet<_>>>().filter(|folders| !folders.is_empty())
}

fn folder_of(path: &str) -> String {
    path.rsplit_once('/').map(|(folder, _)| folder.to_owned()).unwrap_or_default()
}
