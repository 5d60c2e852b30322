//! `create_file`: makes a new file, from a text, a template or both. Never overwrites.

use std::sync::Arc;

use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::scope::Action;
use adjutant_core::tool::{Category, Checks, Effect, Prepared, Probe, Target, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::change::{self, Change};
use super::{changing, failed, front_matter, path, template};
use crate::arguments::{definition, parse, permitted, refuse};
use crate::limits;
use crate::notebook::{FileError, State};
use crate::tool::Tool;
use crate::world::World;

const NAME: &str = "create_file";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Path of the new file, from the root of the notebook. Folders on the way are made.
    #[schemars(length(min = 1, max = 4096))]
    path: String,
    /// The text of the file. With a template it comes after the template's text.
    #[serde(default)]
    content: String,
    /// Name of a file in /templates to begin with; {{date}} and {{title}} in it are filled in.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 255))]
    template: Option<String>,
    /// Properties to set in the front matter (the YAML between two --- lines at the top).
    #[serde(default)]
    #[schemars(extend("maxProperties" = crate::limits::PROPERTIES))]
    properties: Map<String, Value>,
}

/// Creates a file.
pub(crate) struct CreateFile(ToolSpec);

impl CreateFile {
    pub(crate) fn new() -> Self {
        let about = "Create a new text file in the notebook. Fails if there is already something at the path.";
        let definition = definition::<Arguments>(NAME, about);
        let sources = vec![(Arc::from("template"), Arc::from(template::FOLDER))];
        let spec = changing(definition, Category::FileWrite, Effect::Create, Action::Create);
        Self(ToolSpec { checks: Arc::new(Checks { sources, ..Checks::default() }), ..spec })
    }

    async fn plan(&self, arguments: &Value, intended: Option<&Target>, world: &World) -> Result<Change, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, arguments)?;
        if arguments.content.contains('\0') {
            return Err(refuse(&self.0, "content holds a NUL character, so it is not text"));
        }
        let path = path(&arguments.path)?;
        let before = change::look(world, Action::Create, &path).await?;
        if before != State::Absent {
            return Err(failed(&path, &FileError::Exists));
        }
        let template = match &arguments.template {
            Some(name) => Some(template::load(world, name).await?),
            None => None,
        };
        // The date is the one a person was shown, even if midnight has passed since.
        let wanted = intended.and_then(|intended| intended.0.get(path.as_str()).copied()).flatten();
        let mut first = None;
        for day in template::days(world.now, &world.zone, limits::TEMPLATE_DAYS) {
            let text = text(&arguments, template.as_deref(), &path, &day)
                .map_err(|malformed| change::malformed(&path, &malformed))?
                .into_bytes();
            if wanted.is_none_or(|wanted| wanted == Hash::of(&text)) {
                return Ok(Change { path, before, after: Some(text) });
            }
            first = first.or(Some(text));
        }
        Ok(Change { path, before, after: first })
    }
}

fn text(
    arguments: &Arguments,
    template: Option<&str>,
    path: &NotePath,
    date: &str,
) -> Result<String, front_matter::Malformed> {
    let mut text = template.map(|text| template::fill(text, date, template::title_of(path))).unwrap_or_default();
    if !text.is_empty() && !text.ends_with('\n') && !arguments.content.is_empty() {
        text.push('\n');
    }
    text.push_str(&arguments.content);
    front_matter::edit(&text, &arguments.properties, &[])
}

#[async_trait]
impl Tool for CreateFile {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"path": "/notes/today.md", "content": "# Today\n"}))
    }

    async fn prepare(&self, arguments: &Value, world: &World) -> Result<Prepared, ToolOutcome> {
        self.plan(arguments, None, world).await?.prepared(NAME).await
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        let arguments = match permitted(&self.0, &permit) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        match self.plan(arguments, permit.intended(), world).await {
            Ok(change) => change.carry_out(&permit, world).await,
            Err(outcome) => outcome,
        }
    }

    async fn reconcile(&self, arguments: &Value, target: &Target, intended: Option<&Target>, world: &World) -> Probe {
        change::probe(arguments, target, intended, world).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Stage;

    #[tokio::test]
    async fn the_date_is_the_one_that_was_shown_even_after_midnight() {
        let mut stage = Stage::with(&[("/templates/day.md", "{{date}}\n")]);
        let tool = CreateFile::new();
        let arguments = json!({"path": "/a.md", "template": "day.md"});
        let shown = tool.prepare(&arguments, &stage.world).await.unwrap().intended.unwrap();
        stage.world.now = "2026-01-31T09:59:00Z".parse().unwrap();
        let approved = tool.plan(&arguments, Some(&shown), &stage.world).await.unwrap();
        assert_eq!(approved.after.unwrap(), b"2026-01-30\n");
        let anew = tool.plan(&arguments, None, &stage.world).await.unwrap();
        assert_eq!(anew.after.unwrap(), b"2026-01-31\n");
    }
}
