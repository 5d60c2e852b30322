//! What a schema costs: how often it is applied to one place of an answer. References that fan out make a small schema cost more
//! than any machine has, so they are counted before it is used.

use std::collections::HashMap;

use serde_json::Value;

use crate::limits::OUTPUT_SCHEMA_WEIGHT;

/// Refuses a schema that is applied too often to one place, or that refers to itself more than once there.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let mut scale = Scale { root: schema, known: HashMap::new(), open: vec!["#".to_owned()], target: None };
    let weight = scale.weigh(schema)?;
    if weight > OUTPUT_SCHEMA_WEIGHT {
        return Err(format!(
            "the schema is too heavy: its references are followed more than {OUTPUT_SCHEMA_WEIGHT} times"
        ));
    }
    let mut definitions: Vec<String> = scale.known.into_keys().collect();
    definitions.push("#".to_owned());
    for target in definitions {
        let mut scale = Scale { root: schema, known: HashMap::new(), open: Vec::new(), target: Some(target.clone()) };
        let from = scale.find(&target)?;
        scale.open.push(target.clone());
        if scale.weigh(from)? > 1 {
            return Err(format!("`{target}` refers to itself more than once for the same place"));
        }
    }
    Ok(())
}

/// Follows references and counts: every schema, or those that come back to one definition.
struct Scale<'a> {
    root: &'a Value,
    known: HashMap<String, u64>,
    /// Definitions that are being followed.
    open: Vec<String>,
    target: Option<String>,
}

impl<'a> Scale<'a> {
    fn weigh(&mut self, schema: &'a Value) -> Result<u64, String> {
        let mut here = u64::from(self.target.is_none());
        for (word, value) in schema.as_object().into_iter().flatten() {
            let more = match word.as_str() {
                "$ref" => self.follow(value)?,
                "$dynamicRef" | "$recursiveRef" => return Err(format!("{word} cannot be used; write $ref")),
                "$id" | "id" if !std::ptr::eq(schema, self.root) && value.is_string() => {
                    return Err("a schema within the schema has no $id".to_owned());
                }
                // These are for the same place, or may be.
                "allOf" | "anyOf" | "oneOf" => self.sum(value.as_array().into_iter().flatten())?,
                "patternProperties" | "dependentSchemas" | "dependencies" => {
                    self.sum(value.as_object().into_iter().flat_map(|map| map.values()))?
                }
                // Each of these is for a place of its own.
                "properties" => self.most(value.as_object().into_iter().flat_map(|map| map.values()))?,
                "prefixItems" => self.most(value.as_array().into_iter().flatten())?,
                "items" => match value.as_array() {
                    Some(each) => self.most(each)?,
                    None => self.weigh(value)?,
                },
                "not"
                | "if"
                | "then"
                | "else"
                | "additionalProperties"
                | "additionalItems"
                | "contains"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "propertyNames" => self.weigh(value)?,
                _ => 0,
            };
            here = here.saturating_add(more);
        }
        Ok(here)
    }

    fn sum(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Result<u64, String> {
        schemas.into_iter().try_fold(0_u64, |sum, schema| Ok(sum.saturating_add(self.weigh(schema)?)))
    }

    fn most(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Result<u64, String> {
        schemas.into_iter().try_fold(0, |most, schema| Ok(self.weigh(schema)?.max(most)))
    }

    fn follow(&mut self, reference: &Value) -> Result<u64, String> {
        let Some(name) = reference.as_str() else { return Err("$ref is no text".to_owned()) };
        if self.open.iter().any(|open| open == name) {
            return Ok(u64::from(self.target.as_deref().is_none_or(|target| target == name)));
        }
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        let definition = self.find(name)?;
        self.open.push(name.to_owned());
        let weight = self.weigh(definition)?;
        self.open.pop();
        self.known.insert(name.to_owned(), weight);
        Ok(weight)
    }

    fn find(&self, name: &str) -> Result<&'a Value, String> {
        let unknown = || format!("`{name}` is nothing in this schema: a $ref is # or begins with #/, without % in it");
        let pointer = name.strip_prefix('#').filter(|rest| !rest.contains('%')).ok_or_else(unknown)?;
        let mut at = self.root;
        for (end, _) in pointer.match_indices('/').skip(1).chain([(pointer.len(), "")]).filter(|(end, _)| *end > 0) {
            at = self.root.pointer(&pointer[..end]).ok_or_else(unknown)?;
            if at.get("$id").is_some_and(Value::is_string) {
                return Err("a schema within the schema has no $id".to_owned());
            }
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn trees_lists_and_choices_are_light() {
        let node = json!({"$ref": "#/$defs/node"});
        let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {
            "type": "object",
            "properties": {"left": {"anyOf": [node, {"type": "null"}]}, "right": node, "list": {"items": node}},
        }}});
        let wide = json!({"anyOf": vec![json!({"properties": {"a": {"type": "string"}}}); 50]});
        for schema in [json!({}), json!({"properties": {"a": {"$ref": "#"}}}), tree, wide] {
            assert_eq!(check(&schema), Ok(()), "{schema}");
        }
    }

    #[test]
    fn what_fans_out_is_refused_before_it_is_used() {
        let next = |n: usize| json!({"$ref": format!("#/$defs/a{n}")});
        let fan: serde_json::Map<_, _> =
            (0..60).map(|n| (format!("a{n}"), json!({"allOf": [next(n + 1), next(n + 1)]}))).collect();
        let mut fan = json!({"$ref": "#/$defs/a0", "$defs": fan});
        fan["$defs"]["a60"] = json!({"type": "object"});
        let twice = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let around = json!({"$ref": "#/$defs/d", "$defs": {
            "d": {"anyOf": [{"$ref": "#/$defs/e"}, {"$ref": "#/$defs/f"}]},
            "e": {"properties": {"a": {"$ref": "#/$defs/d"}}},
            "f": {"additionalProperties": {"$ref": "#/$defs/d"}},
        }});
        let hidden = json!({"$ref": "#/$defs/x/$defs/y", "$defs": {"x": {"$id": "http://x/", "$defs": {"y": {}}}}});
        let dynamic = json!({"$dynamicRef": "#node"});
        for schema in [fan, twice, around, hidden, dynamic, json!({"$ref": "#/$defs/none"}), json!({"$ref": "#a%41"})] {
            assert!(check(&schema).is_err(), "{schema}");
        }
    }
}
