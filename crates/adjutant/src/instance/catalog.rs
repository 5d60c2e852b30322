//! What others say about models, laid over the built-in catalog: a document, or the list of a provider. It is kept in the data
//! directory, and a server that runs knows it at once.

use std::path::Path;

use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_engine::models::catalog::{Catalog, version};
use adjutant_engine::models::{BroughtKey, Listed, ModelError, ModelSource, Models};
use adjutant_engine::{Engine, EngineError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::unusable;
use crate::failure::Failure;

/// The version of prices that came with a document of the operator's: two documents have two.
pub(super) fn synced(document: &[u8]) -> String {
    version("synced", document)
}

/// What came of asking one provider which models it has.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct Refreshed {
    pub(crate) provider: String,
    /// How many it lists.
    pub(crate) models: usize,
    /// Those that nobody knew.
    pub(crate) new: Vec<String>,
    /// Why it did not answer.
    pub(crate) error: Option<String>,
}

/// Keeps a document if it can be used, and knows it from now on; how many models it has.
///
/// # Errors
/// When it is not of the form of models.dev, or cannot be written.
pub(crate) fn keep(models: &Models, path: &Path, bytes: &[u8], source: &str) -> Result<usize, Failure> {
    let mut known = Catalog::built_in().clone();
    let count = known
        .import(bytes, &synced(bytes))
        .map_err(|error| Failure::usage(format!("{source} cannot be used: {error}. Nothing was taken.")))?;
    let fresh = path.with_extension("new");
    // Whoever starts meanwhile reads the old one or the new one, never half of it.
    let written = std::fs::write(&fresh, bytes).and_then(|()| std::fs::rename(&fresh, path));
    written.map_err(|error| unusable(path, &error))?;
    models.set_catalog(known);
    Ok(count)
}

/// The key that somebody brought for a provider that nothing else opens, to ask it which models it has.
///
/// # Errors
/// Those of the engine.
pub(crate) async fn brought(
    engine: &Engine,
    models: &Models,
    workspaces: Vec<WorkspaceId>,
    person: UserId,
    provider: Option<&str>,
) -> Result<Option<BroughtKey>, EngineError> {
    match provider.filter(|name| models.kind(name).is_none()) {
        Some(name) => engine.key_to_list(workspaces, person, name).await,
        None => Ok(None),
    }
}

/// Asks providers which models they have, and keeps those that are not known yet, without a price. One that only a key opens which
/// somebody brought is asked by its name, with that key.
///
/// # Errors
/// When there is no such provider, or what is known cannot be read or written.
pub(crate) async fn refresh(
    models: &Models,
    path: &Path,
    provider: Option<&str>,
    key: Option<BroughtKey>,
) -> Result<Vec<Refreshed>, Failure> {
    let names = match provider {
        Some(name) if models.kind(name).is_some() || key.is_some() => vec![name.to_owned()],
        Some(name) => {
            return Err(Failure::usage(format!("There is no provider `{name}` to ask. Nothing was taken."))
                .hint(format!("there are: {}", models.remotes().join(", "))));
        }
        None => models.remotes(),
    };
    let (mut document, mut rows) = (kept(path)?, Vec::new());
    for name in names {
        let found = match &key {
            Some(brought) => models.listed_with(&name, brought.key.clone()).await,
            None => models.listed(&name).await,
        };
        rows.push(noted(models, name, found, &mut document));
    }
    if rows.iter().any(|row| !row.new.is_empty()) {
        keep(models, path, document.to_string().as_bytes(), "what the providers list")?;
    }
    Ok(rows)
}

/// The document that is kept so far.
fn kept(path: &Path) -> Result<Value, Failure> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| Failure::usage(format!("{} cannot be read: {error}. Nothing was taken.", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Object(Map::new())),
        Err(error) => Err(unusable(path, &error)),
    }
}

/// Adds to the document what nobody knew.
fn noted(models: &Models, provider: String, found: Result<Vec<Listed>, ModelError>, document: &mut Value) -> Refreshed {
    let kind = Catalog::kind_of(models.kind_of(&provider).unwrap_or_default());
    let found = match found {
        Ok(found) => found,
        Err(error) => return Refreshed { provider, models: 0, new: Vec::new(), error: Some(error.to_string()) },
    };
    let (catalog, listed) = (models.catalog(), found.len());
    let mut new = Vec::new();
    for Listed { model, window, longest_output } in found {
        if catalog.get(kind, &model).is_none() {
            // What is not said stays unknown: a price above all.
            document[kind]["models"][&model] = json!({"limit": {"context": window, "output": longest_output}});
            new.push(model);
        }
    }
    Refreshed { provider, models: listed, new, error: None }
}
