//! Which schemas Anthropic's models can be held to by their provider, and by Amazon, who has the same limits. Pure.

use serde_json::Value;
use serde_json::value::RawValue;

/// What a schema may hold where this provider sees to it; it refuses the whole request for anything else.
const PLAIN: [&str; 11] = [
    "type",
    "title",
    "description",
    "default",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
];

/// Whether this provider can hold an answer to a schema. What it cannot, is held against the answer here all the same.
pub(in crate::protocol) fn is_plain(schema: &RawValue) -> bool {
    serde_json::from_str(schema.get()).is_ok_and(|schema: Value| plain(&schema))
}

fn plain(schema: &Value) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    let open = fields.get("type").is_some_and(|kind| kind == "object")
        && fields.get("additionalProperties") != Some(&Value::Bool(false));
    let each = |name: &str| match fields.get(name) {
        Some(Value::Object(inner)) => inner.values().all(plain),
        Some(Value::Array(inner)) => inner.iter().all(plain),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
        None => true,
    };
    let scalar = |value: &Value| !value.is_array() && !value.is_object();
    !open
        && fields.keys().all(|name| PLAIN.contains(&name.as_str()))
        && fields.get("items").is_none_or(plain)
        && fields.get("enum").and_then(Value::as_array).is_none_or(|values| values.iter().all(scalar))
        && each("properties")
        && each("anyOf")
}
