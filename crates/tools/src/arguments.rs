//! Typed arguments: one struct is the schema the model sees, the form the guard checks, and what the tool parses.

use adjutant_core::guard::permit::Permit;
use adjutant_core::tool::{ToolDefinition, ToolOutcome, ToolSpec};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The definition of a tool whose arguments are `T`.
pub(crate) fn definition<T: JsonSchema>(name: &str, description: &str) -> ToolDefinition {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    trim(&mut schema);
    ToolDefinition { name: name.to_owned(), description: description.to_owned(), schema }
}

/// Removes what says nothing to a model: Rust's names for types and numbers, and that something left out is nothing.
fn trim(schema: &mut Value) {
    if let Value::Object(object) = schema {
        if object.get("title").is_some_and(Value::is_string) {
            object.remove("title");
        }
        if object.get("format").is_some_and(Value::is_string) {
            object.remove("format");
        }
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default");
        }
        object.values_mut().for_each(trim);
    }
}

/// Reads the arguments of a call; a mismatch becomes an answer from which the model can correct itself.
pub(crate) fn parse<T: DeserializeOwned>(spec: &ToolSpec, arguments: &Value) -> Result<T, ToolOutcome> {
    T::deserialize(arguments).map_err(|error| refuse(spec, &error.to_string()))
}

/// The arguments a permit was given for, if it was given for this tool.
pub(crate) fn permitted<'a>(spec: &ToolSpec, permit: &'a Permit) -> Result<&'a Value, ToolOutcome> {
    if permit.tool() == spec.name() {
        return Ok(permit.arguments());
    }
    Err(ToolOutcome::failed(format!("The permit is for {}, not for {}. Nothing was done.", permit.tool(), spec.name())))
}

/// An answer that names what is wrong with the arguments and lists the parameters.
pub(crate) fn refuse(spec: &ToolSpec, reason: &str) -> ToolOutcome {
    ToolOutcome::failed(format!(
        "The arguments of {} do not fit: {reason}. Nothing was done.\n{}",
        spec.name(),
        help(spec)
    ))
}

/// The parameters of a tool: name, type, whether it is required, what it means.
#[must_use]
pub fn help(spec: &ToolSpec) -> String {
    let schema = &spec.definition.schema;
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|list| list.iter().any(|item| item.as_str() == Some(name)))
    };
    let mut text = format!("Parameters of {}:", spec.name());
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) else {
        text.push_str(" none");
        return text;
    };
    for (name, property) in properties {
        let need = if required(name) { "required" } else { "optional" };
        text.push_str(&format!("\n- {name} ({}, {need})", kind_of(property)));
        if let Some(description) = property["description"].as_str() {
            text.push_str(": ");
            text.push_str(description);
        }
    }
    text
}

fn kind_of(property: &Value) -> String {
    match &property["type"] {
        Value::String(kind) => match property["items"]["type"].as_str() {
            Some(item) => format!("{kind} of {item}"),
            None => kind.clone(),
        },
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::tool::Target;
    use serde_json::json;

    use super::*;
    use crate::Registry;
    use crate::testing::{Stage, message};

    #[tokio::test]
    async fn a_permit_for_another_tool_opens_nothing() {
        let stage = Stage::with(&[("/a.md", "x")]);
        for tool in Registry::builtin().iter().filter(|tool| tool.spec().name() != "use_tool") {
            let permit = Permit::for_test("another_tool", json!({"path": "/a.md", "key": "k"}), Target::default());
            let answer = message(tool.run(permit, &stage.world).await);
            assert!(answer.starts_with("The permit is for another_tool, not for "), "{answer}");
        }
        assert_eq!(stage.get("/a.md").unwrap(), "x");
    }
}
