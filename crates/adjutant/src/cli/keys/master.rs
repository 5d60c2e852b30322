//! `keys rotate --master`: another key for what seals the database. The keys of the data are wrapped anew, all in one
//! transaction; what they seal stays as it is. Cut off anywhere, the next command finds the key that fits.

use std::path::Path;

use adjutant_engine::EngineError;
use adjutant_engine::store::StoreError;
use serde_json::json;

use crate::cli::Context;
use crate::cli::backup::refuse_url;
use crate::failure::{Exit, Failure};
use crate::instance::{Instance, NextKey, named_key};

pub(super) async fn rotate(context: &Context, to: Option<&Path>) -> Result<Exit, Failure> {
    refuse_url(context, "keys rotate --master")?;
    let config = context.config()?;
    let next = NextKey::of(&config.key.value, &config.data.value);
    match (&next, to) {
        (None, None) => {
            let message = "The master key comes from ADJUTANT_SECRET_KEY, where nobody but you can change it. Nothing was changed.";
            return Err(Failure::usage(message)
                .hint("openssl rand -hex 32 > new.key; adjutant keys rotate --master --to new.key"));
        }
        (Some(_), Some(_)) => {
            let message = "--to is for a master key that comes from ADJUTANT_SECRET_KEY; this one is in a file. Nothing was changed.";
            return Err(Failure::usage(message).hint("adjutant keys rotate --master"));
        }
        (None, Some(_)) | (Some(_), None) => {}
    }
    if !config.encrypt.value {
        return Err(Failure::usage("encrypt = false: nothing is sealed here, so there is no master key to replace."));
    }
    let instance = Instance::open(&config, "keys rotate --master").await?;
    let replaced = replace(&instance, next.as_ref(), to).await;
    // Before the data directory is let go: whoever opens it next finds one key, and the right one.
    let placed = match (&replaced, &next) {
        (Ok(_), Some(next)) => next.take_place(instance.engine.env()).map_err(|failure| {
            failure.hint("everything is sealed with the new key, which is in the file beside it that ends in .next: keep it; the next command puts it in its place")
        }),
        _ => Ok(None),
    };
    instance.close().await;
    let (count, aside) = (replaced?, placed?);
    let style = context.terminal.out;
    context.print(&json!({ "data_keys": count, "old_key": aside }), || {
        let done =
            style.good(&format!("✔ the master key is replaced; {count} keys of data are wrapped with the new one"));
        let old = match (&aside, to) {
            (Some(path), _) => format!(
                "= the old one is {}: backups made before need it; delete it when you have none",
                path.display()
            ),
            (None, Some(_)) => {
                "= from now on: the new key in ADJUTANT_SECRET_KEY; keep the old one for backups made before".to_owned()
            }
            (None, None) => "= the old one was gone already".to_owned(),
        };
        vec![done, style.dim(&old)]
    });
    Ok(Exit::Done)
}

async fn replace(instance: &Instance, next: Option<&NextKey>, to: Option<&Path>) -> Result<usize, Failure> {
    let engine = &instance.engine;
    let new = match (next, to) {
        (Some(next), _) => next.make(engine.env())?,
        (None, Some(path)) => named_key(path)?,
        (None, None) => return Err(Failure::usage("There is no new master key. Nothing was changed.")),
    };
    engine.replace_master_key(instance.home.user, &new).await.map_err(|error| match error {
        EngineError::Store(StoreError::Conflict(_)) => {
            Failure::from(error).hint("stop every server of this database, wait ten seconds, then try again")
        }
        other => other.into(),
    })
}
