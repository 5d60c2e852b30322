//! An agent as a file: only what differs from an agent that says nothing, so that a person can read it.

use std::collections::BTreeMap;
use std::path::Path;

use adjutant_core::guard::policy::{AgentConfig, AgentSpec, span_of};
use serde_json::{Map, Value, json};

use super::{FIELDS, Known, parse};

/// The file of an agent. Reading it gives the same agent.
pub(crate) fn write(config: &AgentConfig, known: &Known) -> String {
    let plain = AgentSpec { name: config.name.clone(), ..AgentSpec::default() };
    let plain = plain.complete().map(|plain| fields(&plain)).unwrap_or_default();
    let all = fields(config);
    let said = |name: &str, value: &Value| name == "name" || name == "slug" || plain.get(name) != Some(value);
    let short: Map<_, _> = all.iter().filter(|(name, value)| said(name, value)).map(pair).collect();
    // What is left out must come back as it was; where a default depends on another field, everything is written.
    let text = text(&short, &config.system_prompt);
    let same = parse(Path::new("agent.md"), &text, known).is_ok_and(|file| file.config == *config);
    if same { text } else { self::text(&all, &config.system_prompt) }
}

fn pair((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// The fields as a person writes them.
fn fields(config: &AgentConfig) -> Map<String, Value> {
    let mut body = serde_json::to_value(config).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.insert("approval_expires_in".to_owned(), json!(span_of(config.approval_expires_secs)));
        fields.remove("system_prompt");
        fields.retain(|name, value| FIELDS.contains(&name.as_str()) && !value.is_null());
    }
    strip(&mut body);
    match body {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// Takes out what says nothing.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn text(fields: &Map<String, Value>, instructions: &str) -> String {
    let mut matter = String::new();
    // One field at a time, in the order in which the guide explains them.
    for name in FIELDS {
        let Some(value) = fields.get(name) else { continue };
        let one = BTreeMap::from([(name, value)]);
        matter.push_str(serde_saphyr::to_string(&one).unwrap_or_default().trim_end());
        matter.push('\n');
    }
    format!("---\n{matter}---\n\n{}\n", instructions.trim())
}
