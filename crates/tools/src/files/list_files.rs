//! `list_files`: what a folder holds, as far as the agent may see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::rule::Held;
use adjutant_core::guard::scope::{Action, Kind, Scope};
use adjutant_core::limits::{LIST_ENTRIES, WALK_ENTRIES};
use adjutant_core::tool::{ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::pattern::Pattern;
use super::{Exists, allowed, failed, left_out, notebook, path, reading};
use crate::arguments::{definition, parse, permitted, refuse};
use crate::notebook::{Entry, FileError, Notebook, Visit, Walked};
use crate::output::capped;
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Path of the folder, from the root of the notebook.
    #[serde(default = "root")]
    #[schemars(length(min = 1, max = 4096))]
    path: String,
    /// Only what matches this pattern: *.md for names, or with a slash a path below the folder, for example **/2026-*.md.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 256))]
    pattern: Option<String>,
    /// Also what lies in the folders below.
    #[serde(default)]
    recursive: bool,
    /// How many entries to return.
    #[serde(default = "most")]
    #[schemars(range(min = 1, max = 500))]
    limit: usize,
}

fn root() -> String {
    "/".to_owned()
}

const fn most() -> usize {
    LIST_ENTRIES
}

/// Lists a folder.
pub(crate) struct ListFiles(ToolSpec);

impl ListFiles {
    pub(crate) fn new() -> Self {
        let about = "List a folder of the notebook: one path per line, folders end with a slash.";
        Self(reading(definition::<Arguments>("list_files", about), BTreeMap::from([("path", Action::List)])))
    }

    async fn list(&self, permit: &Permit, world: &World) -> Result<String, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, permitted(&self.0, permit)?)?;
        if !(1..=LIST_ENTRIES).contains(&arguments.limit) {
            return Err(refuse(&self.0, &format!("limit must be from 1 to {LIST_ENTRIES}")));
        }
        let pattern = arguments.pattern.as_deref().map(Pattern::parse).transpose();
        let pattern = pattern.map_err(|reason| refuse(&self.0, &format!("pattern: {reason}")))?;
        let folder = path(&arguments.path)?;
        allowed(world, Action::List, &folder, Kind::Dir, Exists::Yes)?;
        let (scope, held) = (Arc::clone(&world.scope), Arc::clone(&world.held));
        let wanted = Wanted { folder: folder.clone(), pattern, recursive: arguments.recursive, limit: arguments.limit };
        let found = notebook(world)?
            .run(move |notebook| wanted.collect(notebook, &scope, &held))
            .await
            .map_err(|error| failed(&folder, &error))?;
        Ok(capped(found.lines(left_out(world)), self.0.output_cap))
    }
}

#[async_trait]
impl Tool for ListFiles {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"path": "/notes", "pattern": "*.md"}))
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        match self.list(&permit, world).await {
            Ok(output) => ToolOutcome::output(output),
            Err(outcome) => outcome,
        }
    }
}

/// What was asked for.
struct Wanted {
    folder: NotePath,
    pattern: Option<Pattern>,
    recursive: bool,
    limit: usize,
}

/// What was found.
#[derive(Default)]
struct Found {
    shown: Vec<String>,
    more: usize,
    cut: bool,
}

impl Wanted {
    fn collect(&self, notebook: &Notebook, scope: &Scope, held: &Held) -> Result<Found, FileError> {
        let mut found = Found::default();
        let walked = notebook.walk(&self.folder, WALK_ENTRIES, &mut |entry| {
            if !visible(scope, entry) {
                return Visit::Skip;
            }
            let wanted = self.pattern.as_ref().is_none_or(|pattern| pattern.matches(&self.folder, &entry.path));
            // A rule may be about a folder alone, so what lies below is looked at by itself.
            if wanted && held.holding(&entry.path).is_none() {
                found.take(entry, self.limit);
            }
            if self.recursive { Visit::Enter } else { Visit::Skip }
        })?;
        found.cut = walked == Walked::Cut;
        Ok(found)
    }
}

/// Whether the agent may know of an entry: of a file it may read, of a folder it may list.
fn visible(scope: &Scope, entry: &Entry) -> bool {
    let action = match entry.kind {
        Kind::File => Action::Read,
        Kind::Dir => Action::List,
        Kind::Other => return false,
    };
    scope.check(action, &entry.path, entry.kind, true).is_ok()
}

impl Found {
    fn take(&mut self, entry: &Entry, limit: usize) {
        if self.shown.len() == limit {
            self.more += 1;
            return;
        }
        let slash = if entry.kind == Kind::Dir { "/" } else { "" };
        self.shown.push(format!("{}{slash}", entry.path));
    }

    fn lines(mut self, note: Option<&str>) -> String {
        if self.shown.is_empty() && !self.cut {
            self.shown.push("(nothing here)".to_owned());
        }
        match (self.more, self.cut) {
            (0, false) => {}
            (more, false) => self.shown.push(format!("… {more} more")),
            (more, true) => self.shown.push(format!("… {more} more, and the tree is too large to look at all of it")),
        }
        self.shown.extend(note.map(str::to_owned));
        self.shown.join("\n")
    }
}
