//! Canonical JSON: keys sorted by their UTF-8 bytes, no blanks, numbers as `serde_json` prints them. Used for hashes only.

use serde_json::Value;

use crate::content::Hash;

/// The canonical text of a value.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// The hash of the canonical text of a value.
#[must_use]
pub fn hash(value: &Value) -> Hash {
    Hash::of(text(value).as_bytes())
}

fn write(value: &Value, out: &mut String) {
    match value {
        // Sorted here, because another crate in the build may turn on serde_json's insertion order.
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            out.push('{');
            for (index, (key, field)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(field, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_does_not_matter_and_the_order_of_items_does() {
        let a = serde_json::json!({"b": [1, 2], "a": {"y": null, "x": "é\n"}});
        assert_eq!(text(&a), "{\"a\":{\"x\":\"é\\n\",\"y\":null},\"b\":[1,2]}");
        assert_ne!(hash(&a), hash(&serde_json::json!({"b": [2, 1], "a": {"y": null, "x": "é\n"}})));
    }
}
