//! `get_file_metadata`: what is known of a file or folder without its text.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::scope::{Action, Kind};
use adjutant_core::tool::{Checks, Done, Prepared, Target, ToolOutcome, ToolSpec, folder_hash};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Exists, allowed, failed, front_matter, notebook, path, reachable, reading};
use crate::arguments::{definition, parse, permitted};
use crate::notebook::{Entry, FileContent, FileError};
use crate::output::capped;
use crate::tool::Tool;
use crate::world::World;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Path of the file or folder, from the root of the notebook.
    #[schemars(length(min = 1, max = 4096))]
    path: String,
}

/// Describes a file.
pub(crate) struct GetFileMetadata(ToolSpec);

impl GetFileMetadata {
    pub(crate) fn new() -> Self {
        let about = "Describe a file or folder of the notebook: kind, size, time of the last change, and for a text file \
                     its lines, words, content hash and front matter properties.";
        let definition = definition::<Arguments>("get_file_metadata", about);
        let checks = Checks { file_or_folder: vec![Arc::from("path")], ..Checks::default() };
        Self(ToolSpec { checks: Arc::new(checks), ..reading(definition, [("path", Action::Read)]) })
    }

    async fn describe(&self, permit: &Permit, world: &World) -> Result<Done, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, permitted(&self.0, permit)?)?;
        let path = path(&arguments.path)?;
        reachable(world, Action::Read, &path)?;
        let looked = path.clone();
        let (entry, content) = notebook(world)?
            .run(move |notebook| {
                let entry = notebook.metadata(&looked)?;
                let content = match entry.kind {
                    Kind::File => Some(notebook.read(&looked)),
                    Kind::Dir | Kind::Other => None,
                };
                Ok((entry, content))
            })
            .await
            // What may not be read as a file is refused in the same words whether it is there or not.
            .map_err(|error| match allowed(world, Action::Read, &path, Kind::File, Exists::Yes) {
                Ok(()) => failed(&path, &error),
                Err(denied) => denied,
            })?;
        allowed(world, Action::Read, &path, entry.kind, Exists::Yes)?;
        let read = content.iter().flatten().map(|content| (path.as_str().to_owned(), Some(content.hash))).collect();
        let described = Value::Object(facts(&path, &entry, content));
        Ok(Done { output: capped(format!("{described:#}"), self.0.output_cap), read, ..Done::default() })
    }
}

fn facts(path: &NotePath, entry: &Entry, content: Option<Result<FileContent, FileError>>) -> Map<String, Value> {
    let kind = match entry.kind {
        Kind::File => "file",
        Kind::Dir => "folder",
        Kind::Other => "other",
    };
    let mut facts = Map::new();
    let mut put = |name: &str, value: Value| drop(facts.insert(name.to_owned(), value));
    put("path", json!(path.as_str()));
    put("kind", json!(kind));
    put("modified", json!(entry.modified.to_string()));
    let content = match content {
        None => return facts,
        Some(Ok(content)) => content,
        Some(Err(error)) => {
            // A file that is too large to read still has a size and a time.
            put("size", json!(entry.size));
            put("note", json!(error.to_string()));
            return facts;
        }
    };
    put("size", json!(content.bytes.len()));
    put("hash", json!(content.hash.to_string()));
    let Ok(text) = content.text() else {
        put("note", json!("not a text file"));
        return facts;
    };
    put("lines", json!(text.lines().count()));
    put("words", json!(text.split_whitespace().count()));
    match front_matter::properties(text) {
        Ok(properties) => put("properties", Value::Object(properties)),
        Err(malformed) => put("note", json!(malformed.to_string())),
    }
    facts
}

#[async_trait]
impl Tool for GetFileMetadata {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn example(&self) -> Option<Value> {
        Some(json!({"path": "/notes/today.md"}))
    }

    /// Says whether a folder is there: it is judged as one, and not by the file types (P15).
    async fn prepare(&self, arguments: &Value, world: &World) -> Result<Prepared, ToolOutcome> {
        let arguments: Arguments = parse(&self.0, arguments)?;
        let path = path(&arguments.path)?;
        reachable(world, Action::Read, &path)?;
        let looked = path.clone();
        let entry = notebook(world)?.run(move |notebook| notebook.metadata(&looked)).await;
        let is_folder = entry.is_ok_and(|entry| entry.kind == Kind::Dir);
        let summary = format!("{} {path}", self.0.name());
        let seen = is_folder.then(|| (path.as_str().to_owned(), Some(folder_hash())));
        Ok(Prepared { target: Target(BTreeMap::from_iter(seen)), summary, ..Prepared::default() })
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        match self.describe(&permit, world).await {
            Ok(done) => ToolOutcome::Done(done),
            Err(outcome) => outcome,
        }
    }
}
