//! Toolset `kv`: small durable values by key, an agent's own. No other agent reads or writes them.

mod kv_delete;
mod kv_get;
mod kv_list;
mod kv_set;

use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::content::Hash;
use adjutant_core::guard::permit::Permit;
use adjutant_core::label::Labels;
use adjutant_core::tool::{
    Category, Checks, Effect, Level, Prepared, Recovery, Target, ToolDefinition, ToolOutcome, ToolSpec,
};

pub(crate) use kv_delete::KvDelete;
pub(crate) use kv_get::KvGet;
pub(crate) use kv_list::KvList;
pub(crate) use kv_set::KvSet;

use crate::arguments::refuse;
use crate::world::{HandleError, World};
use crate::{diff, limits};

/// The name of the toolset.
const TOOLSET: &str = "kv";

/// What every reading tool of this set declares.
fn reading(definition: ToolDefinition) -> ToolSpec {
    ToolSpec {
        toolset: Arc::from(TOOLSET),
        category: Category::Memory,
        level: Level::Read,
        effect: Effect::Read,
        undoable: true,
        recovery: Recovery::Pure,
        egress: false,
        labels: Labels::PRIVATE,
        per_minute: None,
        timeout: limits::KV_TIMEOUT,
        output_cap: adjutant_core::limits::OUTPUT_BYTES,
        ..ToolSpec::undeclared(definition)
    }
}

/// Says that the argument `key` names what is read or changed.
fn keyed(spec: ToolSpec) -> ToolSpec {
    ToolSpec { checks: Arc::new(Checks { memory_keys: vec![Arc::from("key")], ..Checks::default() }), ..spec }
}

/// What every changing tool of this set declares: doing it twice is doing it once.
fn changing(definition: ToolDefinition, effect: Effect) -> ToolSpec {
    ToolSpec {
        level: Level::Write,
        effect,
        undoable: false,
        recovery: Recovery::Idempotent,
        labels: Labels::NONE,
        ..keyed(reading(definition))
    }
}

/// What a change of a value is bound to and shows: the value that is there now, and the one that will be (none: nothing).
async fn change(world: &World, summary: String, key: String, after: Option<String>) -> Result<Prepared, ToolOutcome> {
    let before = world.kv.get(&key).await.map_err(|error| failed(&error))?.map(|kept| kept.text);
    let name = format!("{TOOLSET}:{key}");
    let compared = tokio::task::spawn_blocking(move || {
        let (old, new) = (before.as_deref().map(str::as_bytes), after.as_deref().map(str::as_bytes));
        let target = Target(BTreeMap::from([(name.clone(), old.map(Hash::of))]));
        let intended = Target(BTreeMap::from([(name.clone(), new.map(Hash::of))]));
        let diff = diff::compare(&name, old, new).unified.filter(|diff| !diff.is_empty());
        Prepared { target, intended: Some(intended), summary, diff }
    });
    compared.await.map_err(|_| ToolOutcome::failed("The value could not be compared with what is there."))
}

/// Whether a change has still to be made. One that is tried again may have been made before, and another run may have put
/// something else there since: that is not overwritten.
async fn is_due(permit: &Permit, world: &World, key: &str) -> Result<bool, ToolOutcome> {
    if permit.attempt() == 1 {
        return Ok(true);
    }
    let kept = world.kv.get(key).await.map_err(|error| failed(&error))?;
    let (name, now) = (format!("{TOOLSET}:{key}"), kept.map(|kept| Hash::of(kept.text.as_bytes())));
    let is_there = |state: &Target| state.0.get(&name) == Some(&now);
    if permit.intended().is_some_and(is_there) {
        return Ok(false);
    }
    if is_there(permit.target()) {
        return Ok(true);
    }
    Err(ToolOutcome::failed(format!(
        "Something else is under `{key}` since this was begun. It was not done again; whether it was done before is not known."
    )))
}

/// Refuses what is not a key. The guard has checked the schema; a key goes into the store, so it is checked here too.
fn check_key(spec: &ToolSpec, key: &str) -> Result<(), ToolOutcome> {
    if is_key(key) {
        return Ok(());
    }
    Err(refuse(spec, "a key is 1 to 128 of A-Z a-z 0-9 _ . : - and begins with a letter or digit"))
}

fn is_key(key: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-');
    key.len() <= limits::KV_KEY_CHARS && key.starts_with(|c: char| c.is_ascii_alphanumeric()) && key.bytes().all(inside)
}

/// A failure of the store as an answer to the model.
fn failed(error: &HandleError) -> ToolOutcome {
    match error {
        HandleError::Busy(message) => ToolOutcome::Failed { message: message.clone(), retriable: true },
        HandleError::Full(message) | HandleError::Failed(message) => ToolOutcome::failed(message.clone()),
    }
}

#[cfg(test)]
mod tests;
