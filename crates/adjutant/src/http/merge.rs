//! Merge patches (RFC 7396): a document that says what changes in another.

use serde_json::{Map, Value};

/// Changes what the patch names and removes what it nulls.
pub(super) fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(fields), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    fields.remove(&name);
                    continue;
                }
                let slot = fields.entry(name).or_insert(Value::Null);
                if value.is_object() && !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                merge(slot, value);
            }
        }
        (target, patch) => *target = patch,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_changes_what_it_names_and_removes_what_it_nulls() {
        let mut target = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        merge(&mut target, json!({"a": null, "b": {"c": 4}, "e": [2], "f": {"g": 1}}));
        assert_eq!(target, json!({"b": {"c": 4, "d": 3}, "e": [2], "f": {"g": 1}}));
    }
}
