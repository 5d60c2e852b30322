//! `update_file_properties`: changes the front matter of a file and leaves everything else byte for byte.

use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::scope::Action;
use adjutant_core::tool::{Category, Effect, Prepared, Probe, Target, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::change::{self, Change};
use super::{changing, failed, front_matter, path};
use crate::arguments::{definition, parse, permitted, refuse};
use crate::notebook::{FileError, State};
use crate::tool::Tool;
use crate::world::World;

const NAME: &str = "update_file_properties";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Path of the file, from the root of the notebook.
    #[schemars(length(min = 1, max = 4096))]
    path: String,
    /// Properties to set, by name; a value may be a text, number, true or false, null, list or object.
    #[serde(default)]
    #[schemars(extend("maxProperties" = crate::limits::PROPERTIES))]
    set: Map<String, Value>,
    /// Names of properties to remove.
    #[serde(default)]
    #[schemars(length(max = 64))]
    remove: Vec<String>,
}

/// Sets and removes properties.
pub(crate) struct UpdateFileProperties(ToolSpec);

impl UpdateFileProperties {
    pub(crate) fn new() -> Self {
        let about = "Set or remove properties in the front matter of a text file (the YAML between two --- lines at the \
                     top; added if there is none). The text below, other properties, comments and their order stay as \
                     they are.";
        let definition = definition::<Arguments>(NAME, about);
        Self(changing(definition, Category::FileWrite, Effect::Write, Action::Write))
    }

    async fn plan(&self, arguments: &Value, world: &World) -> Result<Change, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, arguments)?;
        if arguments.set.is_empty() && arguments.remove.is_empty() {
            return Err(refuse(&self.0, "there is nothing to set or to remove"));
        }
        let path = path(&arguments.path)?;
        let before = change::look(world, Action::Write, &path).await?;
        let after = match &before {
            State::Absent => return Err(failed(&path, &FileError::NotFound)),
            State::Folder => return Err(failed(&path, &FileError::IsFolder)),
            State::File(content) => {
                let text = content.text().map_err(|error| failed(&path, &error))?;
                front_matter::edit(text, &arguments.set, &arguments.remove)
                    .map_err(|malformed| change::malformed(&path, &malformed))?
            }
        };
        Ok(Change { path, before, after: Some(after.into_bytes()) })
    }
}

#[async_trait]
impl Tool for UpdateFileProperties {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"path": "/notes/today.md", "set": {"status": "done"}, "remove": ["draft"]}))
    }

    async fn prepare(&self, arguments: &Value, world: &World) -> Result<Prepared, ToolOutcome> {
        self.plan(arguments, world).await?.prepared(NAME).await
    }

    async fn keepsakes(&self, arguments: &Value, target: &Target, world: &World) -> Vec<Vec<u8>> {
        change::keepsakes(arguments, target, world).await
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        let arguments = match permitted(&self.0, &permit) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        match self.plan(arguments, world).await {
            Ok(change) => change.carry_out(&permit, world).await,
            Err(outcome) => outcome,
        }
    }

    async fn reconcile(&self, arguments: &Value, target: &Target, intended: Option<&Target>, world: &World) -> Probe {
        change::probe(arguments, target, intended, world).await
    }
}
