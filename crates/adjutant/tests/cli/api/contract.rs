//! The contract: every JSON answer that a test gets is held against the description of the API, to the last field.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::client::Reply;

/// The description, with every object closed: a field that is not described is a breach, though clients must bear it.
static CONTRACT: LazyLock<Value> = LazyLock::new(|| {
    let mut document: Value = serde_json::from_str(include_str!("../../../../../docs/openapi.json")).unwrap();
    let mut parts = Vec::new();
    put_together(&document["components"]["schemas"], &mut parts);
    for (name, schema) in document["components"]["schemas"].as_object_mut().unwrap() {
        // A part of several is closed where they are put together.
        if !parts.contains(name) {
            close(schema);
        }
    }
    document
});

/// Schemas that were made ready, by where they stand.
static READY: LazyLock<Mutex<BTreeMap<String, &'static Validator>>> = LazyLock::new(Mutex::default);

/// The names of schemas that are parts of others.
fn put_together(schema: &Value, parts: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            let names = fields.get("allOf").and_then(Value::as_array).into_iter().flatten();
            let names = names.filter_map(|part| part["$ref"].as_str()?.rsplit('/').next().map(str::to_owned));
            parts.extend(names);
            fields.values().for_each(|inner| put_together(inner, parts));
        }
        Value::Array(list) => list.iter().for_each(|inner| put_together(inner, parts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) if fields.contains_key("allOf") => {
            fields.insert("unevaluatedProperties".to_owned(), json!(false));
        }
        Value::Object(fields) => {
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The description of an address: the one with the fewest parameters that fits.
fn described(path: &str) -> Option<(&'static String, &'static Map<String, Value>)> {
    let path = path.split('?').next().unwrap_or_default();
    let fits = |pattern: &str| {
        let (mut given, mut asked) = (path.split('/'), pattern.split('/'));
        loop {
            match (given.next(), asked.next()) {
                (None, None) => return true,
                (Some(_), Some("{path}")) => return true,
                (Some(part), Some(name)) if part == name || name.starts_with('{') && !part.is_empty() => {}
                (_, _) => return false,
            }
        }
    };
    let paths = CONTRACT["paths"].as_object().unwrap().iter();
    let found = paths.filter(|(pattern, _)| fits(pattern)).min_by_key(|(pattern, _)| pattern.matches('{').count());
    found.map(|(pattern, item)| (pattern, item.as_object().unwrap()))
}

/// Asserts that an answer is one of those that are described.
pub(crate) fn hold(method: &str, path: &str, reply: &Reply) {
    let Some((pattern, item)) = described(path) else { return };
    let Some(operation) = item.get(&method.to_ascii_lowercase()) else { return };
    let key = reply.status.to_string();
    let Some(described) = operation["responses"].get(&key) else {
        panic!("{method} {pattern} is not described to answer {key}: {reply:?}");
    };
    // What many answer alike is described once.
    let named = described["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let described = named.map_or(described, |name| &CONTRACT["components"]["responses"][name]);
    for name in ["ETag", "Location", "Retry-After"] {
        let told = described["headers"].get(name).is_some();
        let sent = reply.headers.contains_key(&name.to_ascii_lowercase());
        assert!(told || !sent, "{method} {pattern} is not described to send {name} with {key}");
    }
    let kind = reply.headers.get("content-type").map_or("", |kind| kind.split(';').next().unwrap_or_default());
    let content = described.get("content");
    if reply.text.is_empty() || reply.status == 204 {
        return;
    }
    let Some(schema) = content.and_then(|content| content.get(kind)).map(|content| &content["schema"]) else {
        panic!("{method} {pattern} is not described to answer {key} as `{kind}`: {reply:?}");
    };
    if !matches!(kind, "application/json" | "application/problem+json") {
        return;
    }
    let validator = *READY.lock().unwrap().entry(format!("{method} {pattern} {key} {kind}")).or_insert_with(|| {
        let whole = json!({"allOf": [schema], "components": CONTRACT["components"]});
        Box::leak(Box::new(jsonschema::validator_for(&whole).unwrap()))
    });
    let answer = reply.json();
    let breaches: Vec<_> =
        validator.iter_errors(&answer).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(breaches.is_empty(), "{method} {pattern} answers {key} as it is not described: {breaches:#?}\n{answer:#}");
}
