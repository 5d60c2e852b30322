//! Taking what others say about models: a document, from a file or an address, or the list of a provider. It is kept in the
//! data directory, laid over what is built in.

use std::path::Path;
use std::sync::Arc;

use adjutant_core::guard::host::{HostPolicy, HostSpec, Method, Port, Url};
use adjutant_engine::models::catalog::Catalog;
use adjutant_engine::models::{Listed, ModelError, Models};
use adjutant_engine::tools::net::Request;
use serde_json::{Map, Value, json};

use crate::cli::Context;
use crate::cli::place::Place;
use crate::cli::terminal::{clean, cut};
use crate::cli::words::count;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::instance::{self, CATALOG, unusable};

/// Characters of the names of new models in a line.
const NAMES: usize = 100;

/// Lays a document over the built-in catalog.
pub(super) async fn sync(context: &Context, place: &Place, source: &str) -> Result<Exit, Failure> {
    let config = here(context, place)?;
    let bytes = if source.starts_with("https://") || source.starts_with("http://") {
        fetch(&config, source).await?
    } else {
        std::fs::read(source)
            .map_err(|error| Failure::usage(format!("{source} cannot be read: {error}. Nothing was taken.")))?
    };
    let models = keep(&config, &bytes, source)?;
    context.print(&json!({"models": models, "file": config.data.value.join(CATALOG)}), || {
        vec![context.terminal.out.good(&format!("✔ {models} models laid over the built-in catalog"))]
    });
    Ok(Exit::Done)
}

/// The settings, if the data directory is ours to write to.
fn here(context: &Context, place: &Place) -> Result<Config, Failure> {
    match place {
        Place::Here(_) => context.config(),
        Place::There(remote) => Err(remote.only_here()),
    }
}

/// Fetches a document through the door that agents use: no address of this network unless the operator opened it.
async fn fetch(config: &Config, source: &str) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| {
        Failure::new(Exit::Unreachable, "unreachable", format!("{source} was not fetched: {why} Nothing was taken."))
    };
    let url =
        Url::parse(source).map_err(|_| Failure::usage(format!("`{source}` is not an address. Nothing was taken.")))?;
    let open = config.allow_private.iter().flat_map(|open| &open.value).map(ToString::to_string);
    let spec = HostSpec {
        hosts: Some(vec![url.host().to_owned()]),
        schemes: Some(vec![url.scheme().to_owned()]),
        ports: Some(vec![Port::Number(url.port())]),
        allow_private: Some(open.collect()),
        path_prefix: None,
    };
    let request = Request { method: Method::Get, url, headers: Vec::new(), body: None };
    let answer = instance::connector(config).send(&HostPolicy::compile(&spec), request).await;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    match answer.status {
        200 if answer.cut => Err(failed("it is longer than is read.".to_owned())),
        200 => Ok(answer.body),
        status => Err(failed(format!("the server answered {status}."))),
    }
}

/// Keeps a document if it can be used; how many models it has.
fn keep(config: &Config, bytes: &[u8], source: &str) -> Result<usize, Failure> {
    let models = Catalog::built_in()
        .clone()
        .import(bytes, "checked")
        .map_err(|error| Failure::usage(format!("{source} cannot be used: {error}. Nothing was taken.")))?;
    let path = config.data.value.join(CATALOG);
    let fresh = path.with_extension("new");
    // Whoever starts meanwhile reads the old one or the new one, never half of it.
    let written = std::fs::write(&fresh, bytes).and_then(|()| std::fs::rename(&fresh, &path));
    written.map_err(|error| unusable(&path, &error))?;
    Ok(models)
}

/// Asks providers which models they have, and keeps those that are not known yet, without a price.
pub(super) async fn refresh(context: &Context, place: &Place, provider: Option<&str>) -> Result<Exit, Failure> {
    let config = here(context, place)?;
    let path = config.data.value.join(CATALOG);
    let models = instance::models(&config.providers, &path)?;
    let names = match provider {
        Some(name) if models.kind(name).is_some() => vec![name.to_owned()],
        Some(name) => {
            let known = models.remotes();
            return Err(Failure::usage(format!("There is no provider `{name}` to ask. Nothing was taken."))
                .hint(format!("there are: {}", known.join(", "))));
        }
        None => models.remotes(),
    };
    let (mut document, mut rows) = (kept(&path)?, Vec::new());
    for name in names {
        let found = models.listed(&name).await;
        rows.push(Row::of(&models, name, found, &mut document));
    }
    if rows.iter().any(|row| !row.new.is_empty()) {
        keep(&config, document.to_string().as_bytes(), "what the providers list")?;
    }
    told(context, &rows);
    Ok(if rows.iter().any(|row| row.why.is_some()) { Exit::Unreachable } else { Exit::Done })
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

/// What came of asking one provider.
struct Row {
    provider: String,
    listed: usize,
    new: Vec<String>,
    why: Option<String>,
}

impl Row {
    /// Adds to the document what nobody knew.
    fn of(
        models: &Arc<Models>,
        provider: String,
        found: Result<Vec<Listed>, ModelError>,
        document: &mut Value,
    ) -> Self {
        let kind = Catalog::kind_of(models.kind(&provider).unwrap_or_default());
        let found = match found {
            Ok(found) => found,
            Err(error) => return Self { provider, listed: 0, new: Vec::new(), why: Some(error.to_string()) },
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
        Self { provider, listed, new, why: None }
    }
}

fn told(context: &Context, rows: &[Row]) {
    let document =
        |row: &Row| json!({"provider": row.provider, "models": row.listed, "new": row.new, "error": row.why});
    context.print(&json!({"data": rows.iter().map(document).collect::<Vec<_>>()}), || {
        let style = context.terminal.out;
        let line = |row: &Row| match (&row.why, row.new.len()) {
            (Some(why), _) => style.bad(&format!("✖ {}: {}", row.provider, clean(why))),
            (None, 0) => style.good(&format!("✔ {}: {}, none new", row.provider, count(row.listed, "model", "models"))),
            (None, new) => {
                let names = cut(&clean(&row.new.join(", ")), NAMES);
                let listed = count(row.listed, "model", "models");
                style.good(&format!("✔ {}: {listed}, {new} new: {names}", row.provider))
            }
        };
        match rows.is_empty() {
            true => vec!["No provider is configured that could be asked.".to_owned()],
            false => rows.iter().map(line).collect(),
        }
    });
}
