//! `search_tools`: finds tools of the agent by keywords.

use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{Category, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{brief, looking};
use crate::arguments::{definition, parse, permitted};
use crate::output::capped;
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Keywords that all have to occur in a tool's name or description; `all` lists every tool.
    #[schemars(length(min = 1, max = 200))]
    query: String,
    /// Only tools of this category, for example file_read.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 40))]
    category: Option<String>,
}

/// Finds tools.
pub(crate) struct SearchTools(ToolSpec);

impl SearchTools {
    pub(crate) fn new() -> Self {
        let about = "Find tools you may use, by keywords. Then read get_tool_help, and call the tool with use_tool.";
        Self(looking(definition::<Arguments>("search_tools", about)))
    }

    fn find(&self, permit: &Permit, world: &World) -> Result<String, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, permitted(&self.0, permit)?)?;
        let words: Vec<String> = arguments.query.split_whitespace().map(str::to_lowercase).collect();
        let everything = words == ["all"];
        let fits = |spec: &&ToolSpec| {
            let text = format!("{} {}", spec.name().replace('_', " "), spec.definition.description).to_lowercase();
            let named = |word: &String| text.contains(word.as_str()) || spec.name().contains(word.as_str());
            (everything || words.iter().all(named))
                && arguments.category.as_deref().is_none_or(|category| category == category_word(spec.category))
        };
        let line = |spec: &ToolSpec| {
            format!("{} ({}): {}", spec.name(), category_word(spec.category), brief(&spec.definition.description))
        };
        let found: Vec<_> = world.catalog.specs().filter(fits).map(line).collect();
        if found.is_empty() {
            return Ok("No tool fits. Try fewer words, or `all`.".to_owned());
        }
        Ok(capped(found.join("\n"), self.0.output_cap))
    }
}

fn category_word(category: Category) -> String {
    serde_json::to_value(category).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

#[async_trait]
impl Tool for SearchTools {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"query": "file", "category": "file_read"}))
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        self.find(&permit, world).map_or_else(|outcome| outcome, ToolOutcome::output)
    }
}
