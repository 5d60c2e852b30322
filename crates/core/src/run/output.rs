//! The form of an answer: which schemas can be asked for, and whether a text fits one. Pure.

mod weight;

use serde_json::Value;

use crate::guard::arguments::Schema;
use crate::limits::{OUTPUT_SCHEMA_BYTES, OUTPUT_SCHEMA_PATTERNS};

/// Problems of an answer that are told to the model.
const PROBLEMS: usize = 5;
/// Characters of what is told of them.
const TOLD: usize = 600;

/// The text of a schema as it is recorded and shown.
///
/// # Errors
/// What is wrong with it.
pub fn check(schema: &Value) -> Result<String, String> {
    if !schema.is_object() {
        return Err("a schema of an answer is a JSON object".to_owned());
    }
    let text = schema.to_string();
    if text.len() > OUTPUT_SCHEMA_BYTES {
        return Err(format!("a schema of an answer is at most {OUTPUT_SCHEMA_BYTES} bytes long"));
    }
    if patterns(schema) > OUTPUT_SCHEMA_PATTERNS {
        return Err(format!("a schema of an answer has at most {OUTPUT_SCHEMA_PATTERNS} patterns"));
    }
    weight::check(schema)?;
    Schema::as_written(schema).map_err(|bad| bad.to_string())?;
    Ok(text)
}

/// What an answer holds, if it fits the schema. A fence around it does no harm: many models cannot leave it out.
///
/// # Errors
/// Why it does not fit, in words for the model.
pub fn read(schema: &str, text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(bare(text)).map_err(|bad| format!("it is not JSON alone ({bad})"))?;
    let schema: Value = serde_json::from_str(schema).map_err(|bad| format!("the schema cannot be read ({bad})"))?;
    let schema = Schema::as_written(&schema).map_err(|bad| format!("the schema cannot be used ({bad})"))?;
    schema.validate(&value).map_err(|problems| {
        let told: Vec<_> = problems
            .iter()
            .take(PROBLEMS)
            .map(|problem| format!("at `{}`: {}", problem.pointer, problem.detail))
            .collect();
        told.join("; ").chars().take(TOLD).collect::<String>()
    })?;
    Ok(value)
}

/// What an answer holds that was found to fit when it was recorded: it is not judged a second time.
#[must_use]
pub fn held(text: &str) -> Option<Value> {
    serde_json::from_str(bare(text)).ok()
}

/// How many regular expressions it may hold, wherever they stand.
fn patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(fields) => fields.iter().fold(0, |count, (word, value)| {
            let own = match (word.as_str(), value) {
                ("pattern", _) => 1,
                ("patternProperties", Value::Object(each)) => each.len(),
                _ => 0,
            };
            count + own + patterns(value)
        }),
        Value::Array(items) => items.iter().map(patterns).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn bare(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    inside.split_once('\n').map_or(inside, |(_, rest)| rest).trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_fits_or_is_told_why_not() {
        let schema =
            check(&json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})).unwrap();
        for text in ["{\"n\": 1}", " {\"n\": 1, \"more\": true}\n", "```json\n{\"n\": 1}\n```", "```\n{\"n\": 1}\n```"]
        {
            assert_eq!(read(&schema, text).unwrap()["n"], 1, "{text}");
            assert_eq!(held(text).unwrap()["n"], 1, "{text}");
        }
        for (text, why) in
            [("Here: {\"n\": 1}", "not JSON alone"), ("{}", "\"n\""), ("{\"n\": \"x\"}", "at `/n`"), ("", "not JSON")]
        {
            let told = read(&schema, text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused_before_a_run_begins() {
        let long = json!({"description": "x".repeat(OUTPUT_SCHEMA_BYTES)});
        for bad in [json!([]), json!(true), json!({"type": 7}), json!({"$ref": "https://example.com/a.json"}), long] {
            assert!(check(&bad).is_err(), "{bad}");
        }
    }
}
