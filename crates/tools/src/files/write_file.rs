//! `write_file`: the whole new content of a file, which is created if it is not there.

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

const NAME: &str = "write_file";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Path of the file, from the root of the notebook, for example /notes/today.md.
    #[schemars(length(min = 1, max = 4096))]
    path: String,
    /// The whole new content of the file; it replaces what is there.
    content: String,
    /// Properties to set in the front matter (the YAML between two --- lines at the top). If content has no front matter,
    /// the one that the file has now is kept.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>", extend("maxProperties" = crate::limits::PROPERTIES))]
    properties: Option<Map<String, Value>>,
}

/// Writes a file.
pub(crate) struct WriteFile(ToolSpec);

impl WriteFile {
    pub(crate) fn new() -> Self {
        let about = "Write a text file of the notebook: replaces its whole content, or creates it (and the folders it lies \
                     in) if it is not there. Read the file first if you want to keep parts of it.";
        let definition = definition::<Arguments>(NAME, about);
        Self(changing(definition, Category::FileWrite, Effect::Write, Action::Write))
    }

    async fn plan(&self, arguments: &Value, world: &World) -> Result<Change, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, arguments)?;
        if arguments.content.contains('\0') {
            return Err(refuse(&self.0, "content holds a NUL character, so it is not text"));
        }
        let path = path(&arguments.path)?;
        let before = change::look(world, Action::Write, &path).await?;
        let text = match &before {
            State::Folder => return Err(failed(&path, &FileError::IsFolder)),
            State::Absent => merged(&arguments, None),
            State::File(content) => merged(&arguments, content.text().ok()),
        };
        let text = text.map_err(|malformed| change::malformed(&path, &malformed))?;
        Ok(Change { path, before, after: Some(text.into_bytes()) })
    }
}

/// The content with the properties in its front matter; a content without one takes over the front matter of the old text.
fn merged(arguments: &Arguments, old: Option<&str>) -> Result<String, front_matter::Malformed> {
    let Some(properties) = &arguments.properties else {
        return Ok(arguments.content.clone());
    };
    let own = front_matter::split(&arguments.content)?;
    match (own, old.map(front_matter::split).transpose()?.flatten()) {
        (None, Some((kept, _))) => front_matter::edit(&[kept, &arguments.content].concat(), properties, &[]),
        (Some(_), _) | (None, None) => front_matter::edit(&arguments.content, properties, &[]),
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"path": "/notes/today.md", "content": "# Today\n\nBuy milk.\n"}))
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
