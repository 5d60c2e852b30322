//! `delete_file`: removes a file or an empty folder. What a file held is kept, so that it can be brought back.

use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::scope::Action;
use adjutant_core::tool::{Category, Effect, Prepared, Probe, Target, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::change::{self, Change};
use super::{changing, failed, notebook, path};
use crate::arguments::{definition, parse, permitted};
use crate::notebook::{FileError, State};
use crate::tool::Tool;
use crate::world::World;

const NAME: &str = "delete_file";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Path of the file (or of an empty folder), from the root of the notebook.
    #[schemars(length(min = 1, max = 4096))]
    path: String,
}

/// Deletes a file.
pub(crate) struct DeleteFile(ToolSpec);

impl DeleteFile {
    pub(crate) fn new() -> Self {
        let about = "Delete a file of the notebook, or a folder that is empty.";
        let definition = definition::<Arguments>(NAME, about);
        Self(changing(definition, Category::FileDelete, Effect::Delete, Action::Delete))
    }

    async fn plan(&self, arguments: &Value, world: &World) -> Result<Change, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, arguments)?;
        let path = path(&arguments.path)?;
        let before = change::look(world, Action::Delete, &path).await?;
        match &before {
            State::Absent => return Err(failed(&path, &FileError::NotFound)),
            State::File(_) => {}
            State::Folder => {
                let looked = path.clone();
                let listing = notebook(world)?.run(move |notebook| notebook.list(&looked)).await;
                if !listing.map_err(|error| failed(&path, &error))?.is_bare() {
                    return Err(failed(&path, &FileError::NotEmpty));
                }
            }
        }
        Ok(Change { path, before, after: None })
    }
}

#[async_trait]
impl Tool for DeleteFile {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"path": "/drafts/old.md"}))
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
