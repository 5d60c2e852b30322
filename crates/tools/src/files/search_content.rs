//! `search_content`: full-text search over the files the agent may read.

use std::collections::BTreeMap;

use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::scope::{Action, Kind};
use adjutant_core::tool::{Done, ToolOutcome, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::index::{self, Freshness};
use super::{Exists, allowed, left_out, notebook, reading};
use crate::arguments::{definition, parse, permitted, refuse};
use crate::limits::{HITS, HITS_MOST, HITS_WINDOW, QUERY_CHARS};
use crate::output::capped;
use crate::tool::Tool;
use crate::world::{HandleError, Hit, World};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Words to look for.
    #[schemars(length(min = 1, max = 1000))]
    query: String,
    /// How many files to return.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
}

const fn usual() -> usize {
    HITS
}

/// Searches the notebook.
pub(crate) struct SearchContent(ToolSpec);

impl SearchContent {
    pub(crate) fn new() -> Self {
        let about = "Search the text files of the notebook: one line per file, its path and a piece of the text.";
        Self(reading(definition::<Arguments>("search_content", about), BTreeMap::new()))
    }

    async fn search(&self, permit: &Permit, world: &World) -> Result<Done, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, permitted(&self.0, permit)?)?;
        let query = arguments.query.trim();
        if query.is_empty() || query.chars().count() > QUERY_CHARS {
            return Err(refuse(&self.0, &format!("query needs 1 to {QUERY_CHARS} characters")));
        }
        if !(1..=HITS_MOST).contains(&arguments.limit) {
            return Err(refuse(&self.0, &format!("limit must be from 1 to {HITS_MOST}")));
        }
        let notebook = notebook(world)?;
        let fresh = index::refresh(world.index.as_ref(), &world.scope, world.now, notebook).await;
        let freshness = fresh.map_err(|error| unavailable(&error))?;
        let hits = readable_hits(world, query, arguments.limit).await.map_err(|error| unavailable(&error))?;
        let mut lines: Vec<String> = hits.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("Nothing found.".to_owned());
        }
        lines.extend(left_out(world).map(str::to_owned));
        if freshness == Freshness::Behind {
            lines.push("(The index is behind: some recent changes may be missing. Search again for more.)".to_owned());
        }
        let output = capped(lines.join("\n"), self.0.output_cap);
        Ok(Done { output, read: hits.into_iter().map(|hit| (hit.path, None)).collect(), ..Done::default() })
    }
}

/// Asks the index for more until enough hits are in reach: what it holds belongs to other agents as well.
async fn readable_hits(world: &World, query: &str, limit: usize) -> Result<Vec<Hit>, HandleError> {
    let mut window = limit.saturating_mul(4);
    loop {
        let mut hits = world.index.search(query, window).await?;
        let all = hits.len() < window;
        hits.retain(|hit| readable(world, &hit.path));
        if hits.len() >= limit || all || window >= HITS_WINDOW {
            hits.truncate(limit);
            return Ok(hits);
        }
        window = window.saturating_mul(4).min(HITS_WINDOW);
    }
}

fn readable(world: &World, path: &str) -> bool {
    NotePath::parse(path).is_ok_and(|path| allowed(world, Action::Read, &path, Kind::File, Exists::Yes).is_ok())
}

fn line(hit: &Hit) -> String {
    let snippet: Vec<&str> = hit.snippet.split_whitespace().collect();
    format!("{}: {}", hit.path, snippet.join(" "))
}

fn unavailable(error: &HandleError) -> ToolOutcome {
    let retriable = match error {
        HandleError::Busy(_) => true,
        HandleError::Full(_) | HandleError::Failed(_) => false,
    };
    ToolOutcome::Failed { message: format!("The search did not work: {error}."), retriable }
}

#[async_trait]
impl Tool for SearchContent {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"query": "garden fence", "limit": 5}))
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        match self.search(&permit, world).await {
            Ok(done) => ToolOutcome::Done(done),
            Err(outcome) => outcome,
        }
    }
}
