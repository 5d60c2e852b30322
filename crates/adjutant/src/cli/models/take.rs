//! Taking what others say about models: a document, from a file or an address, or the list of a provider. Here it is laid over
//! what is built in; a server that runs does it itself.

use adjutant_core::guard::host::{HostPolicy, HostSpec, Method, Port, Url};
use adjutant_engine::tools::net::Request;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::place::Place;
use crate::cli::terminal::{clean, cut};
use crate::cli::words::count;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::instance::catalog::{self, Refreshed};
use crate::instance::{self, CATALOG};

/// Characters of the names of new models in a line.
const NAMES: usize = 100;

/// Lays a document over the built-in catalog.
pub(super) async fn sync(context: &Context, place: &Place, source: &str) -> Result<Exit, Failure> {
    let config = context.config()?;
    let bytes = if source.starts_with("https://") || source.starts_with("http://") {
        fetch(&config, source).await?
    } else {
        std::fs::read(source)
            .map_err(|error| Failure::usage(format!("{source} cannot be read: {error}. Nothing was taken.")))?
    };
    let document = match place {
        Place::Here(instance) => {
            let path = config.data.value.join(CATALOG);
            json!({"models": catalog::keep(&instance.models, &path, &bytes, source)?, "file": path})
        }
        Place::There(remote) => {
            let unreadable = |bad| Failure::usage(format!("{source} cannot be used: {bad}. Nothing was taken."));
            let document: Value = serde_json::from_slice(&bytes).map_err(unreadable)?;
            remote.put(&["models", "catalog"], &document).await?
        }
    };
    context.print(&document, || {
        vec![context.terminal.out.good(&format!("✔ {} models laid over the built-in catalog", document["models"]))]
    });
    Ok(Exit::Done)
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

/// Asks providers which models they have, and keeps those that are not known yet, without a price.
pub(super) async fn refresh(context: &Context, place: &Place, provider: Option<&str>) -> Result<Exit, Failure> {
    let rows: Vec<Refreshed> = match place {
        Place::Here(instance) => {
            let path = context.config()?.data.value.join(CATALOG);
            let (engine, models, home) = (&instance.engine, &instance.models, instance.home);
            let key = catalog::brought(engine, models, vec![home.workspace], home.user, provider).await?;
            catalog::refresh(models, &path, provider, key).await?
        }
        Place::There(remote) => {
            let answer = remote.post(&["models", "refresh"], &json!({"provider": provider})).await?;
            remote.read(answer["data"].clone())?
        }
    };
    told(context, &rows);
    Ok(if rows.iter().any(|row| row.error.is_some()) { Exit::Unreachable } else { Exit::Done })
}

fn told(context: &Context, rows: &[Refreshed]) {
    context.print(&json!({"data": rows}), || {
        let style = context.terminal.out;
        let line = |row: &Refreshed| match (&row.error, row.new.len()) {
            (Some(why), _) => style.bad(&format!("✖ {}: {}", row.provider, clean(why))),
            (None, 0) => style.good(&format!("✔ {}: {}, none new", row.provider, count(row.models, "model", "models"))),
            (None, new) => {
                let names = cut(&clean(&row.new.join(", ")), NAMES);
                let listed = count(row.models, "model", "models");
                style.good(&format!("✔ {}: {listed}, {new} new: {names}", row.provider))
            }
        };
        match rows.is_empty() {
            true => vec!["No provider is configured that could be asked.".to_owned()],
            false => rows.iter().map(line).collect(),
        }
    });
}
