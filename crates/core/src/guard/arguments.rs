//! The arguments of a tool call (T3): read once and strictly, then held against the tool's schema without any coercion.
//! What comes out is the value that is judged, shown, recorded and executed.

use std::cell::Cell;
use std::fmt;

use jsonschema::PatternOptions;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limits::{ARGUMENT_BYTES, ARGUMENT_DEPTH};

/// Problems told to the model in one answer; more would not help it to correct itself.
const PROBLEMS: usize = 16;
/// Bytes a compiled `pattern` of a schema may take, so that a hostile server's schema cannot eat the memory.
const PATTERN_BYTES: usize = 1024 * 1024;
/// Nesting of a schema: the compiler recurses, and a hostile server must not exhaust the stack.
const SCHEMA_DEPTH: usize = 64;
/// Keywords under which a schema keeps further properties; then only `unevaluatedProperties` sees all of them.
const COMPOSING: &[&str] =
    &["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "patternProperties"];

/// Why a text is not a set of arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// More than [`ARGUMENT_BYTES`].
    #[error("the arguments are longer than {ARGUMENT_BYTES} bytes")]
    TooLong,
    /// More than [`ARGUMENT_DEPTH`].
    #[error("the arguments are nested more than {ARGUMENT_DEPTH} levels deep")]
    TooDeep,
    /// A byte order mark before the object.
    #[error("the arguments begin with a byte order mark")]
    ByteOrderMark,
    /// A key stands twice in one object.
    #[error("the key {0:?} stands twice in one object")]
    DuplicateKey(String),
    /// A list, a text, a number …
    #[error("the arguments are not a JSON object")]
    NotAnObject,
    /// Not JSON at all: NaN, lone surrogates, trailing text and so on.
    #[error("the arguments are not valid JSON: {0}")]
    NotJson(String),
}

/// One thing that is wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, thiserror::Error)]
#[error("{}: {detail}", if pointer.is_empty() { "arguments" } else { pointer.as_str() })]
pub struct ArgumentProblem {
    /// Where, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What, without the value itself: it may be long or secret.
    pub detail: String,
}

/// The schema of a tool is not one we can hold arguments against; the tool is not callable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema cannot be used: {0}")]
pub struct BadSchema(pub String);

/// A tool's schema, compiled once.
#[derive(Debug, Clone)]
pub struct Schema(jsonschema::Validator);

/// Reads the arguments of a call.
///
/// # Errors
/// Fails on everything that another reader might understand differently (T3).
pub fn parse(text: &str) -> Result<Value, ArgumentError> {
    if text.len() > ARGUMENT_BYTES {
        return Err(ArgumentError::TooLong);
    }
    if text.starts_with('\u{FEFF}') {
        return Err(ArgumentError::ByteOrderMark);
    }
    let found = Cell::new(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict { levels: ARGUMENT_DEPTH, found: &found }.deserialize(&mut reader);
    match value.and_then(|value| reader.end().map(|()| value)) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(ArgumentError::NotAnObject),
        Err(error) => Err(found.take().unwrap_or_else(|| ArgumentError::NotJson(error.to_string()))),
    }
}

/// Takes arguments that arrive as a value instead of a text. Duplicate keys cannot be seen any more; size and depth can.
///
/// # Errors
/// Fails when the value is not an object, too large or too deep.
pub fn accept(value: Value) -> Result<Value, ArgumentError> {
    if !value.is_object() {
        return Err(ArgumentError::NotAnObject);
    }
    // Depth first: writing out a value of any depth could exhaust the stack.
    if !fits(&value, ARGUMENT_DEPTH) {
        return Err(ArgumentError::TooDeep);
    }
    if value.to_string().len() > ARGUMENT_BYTES {
        return Err(ArgumentError::TooLong);
    }
    Ok(value)
}

/// Whether a value is nested no deeper than this.
pub(super) fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|field| fits(field, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Holds arguments against a schema that is used once; [`Schema`] is for those used again.
///
/// # Errors
/// Fails with every problem found, up to a limit.
pub fn validate(schema: &Value, arguments: &Value) -> Result<(), Vec<ArgumentProblem>> {
    let problem = |error: BadSchema| vec![ArgumentProblem { pointer: String::new(), detail: error.to_string() }];
    Schema::compile(schema).map_err(problem)?.validate(arguments)
}

impl Schema {
    /// Compiles a tool's schema. Properties the schema does not speak of are refused, at every level that names some, unless
    /// it says otherwise itself; nothing is fetched; patterns run in linear time.
    ///
    /// # Errors
    /// Fails when the text is not a valid JSON Schema, refers to something outside itself, or holds a pattern with
    /// look-around or back-references.
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        fits_schema(schema)?;
        let mut closed = schema.clone();
        close(&mut closed, schema, Level::Top);
        Self::as_written(&closed)
    }

    /// Compiles a schema as it is: what it does not speak of is allowed.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn as_written(schema: &Value) -> Result<Self, BadSchema> {
        fits_schema(schema)?;
        let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(schema)
            .map(Self)
            .map_err(|error| BadSchema(error.masked().to_string()))
    }

    /// Holds arguments against the schema.
    ///
    /// # Errors
    /// Fails with every problem found, up to a limit.
    pub fn validate(&self, arguments: &Value) -> Result<(), Vec<ArgumentProblem>> {
        if self.0.is_valid(arguments) {
            return Ok(());
        }
        let problem = |error: jsonschema::ValidationError<'_>| ArgumentProblem {
            pointer: error.instance_path().to_string(),
            detail: error.masked().to_string(),
        };
        Err(self.0.iter_errors(arguments).take(PROBLEMS).map(problem).collect())
    }
}

fn fits_schema(schema: &Value) -> Result<(), BadSchema> {
    let too_deep = || BadSchema(format!("it is nested more than {SCHEMA_DEPTH} levels deep"));
    if fits(schema, SCHEMA_DEPTH) { Ok(()) } else { Err(too_deep()) }
}

/// Where in a schema a part of it stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The arguments themselves: closed whatever they name.
    Top,
    /// What an argument holds: closed where it names fields. An object that names none is free to hold any.
    Below,
    /// A part that others build on: closing it would close them too soon.
    Shared,
}

/// Closes a schema: what it does not name is refused (T3, T4).
fn close(schema: &mut Value, root: &Value, level: Level) {
    let names_fields = match level {
        Level::Top => true,
        Level::Below => names_fields(schema, root, SCHEMA_DEPTH),
        Level::Shared => false,
    };
    let Value::Object(fields) = schema else { return };
    if names_fields && !fields.contains_key("additionalProperties") && !fields.contains_key("unevaluatedProperties") {
        let composed = COMPOSING.iter().any(|keyword| fields.contains_key(*keyword));
        let keyword = if composed { "unevaluatedProperties" } else { "additionalProperties" };
        fields.insert(keyword.to_owned(), Value::Bool(false));
    }
    for (keyword, part) in fields {
        match (keyword.as_str(), part) {
            ("properties", Value::Object(parts)) => {
                parts.values_mut().for_each(|part| close(part, root, Level::Below));
            }
            ("$defs" | "definitions", Value::Object(parts)) => {
                parts.values_mut().for_each(|part| close(part, root, Level::Shared));
            }
            ("prefixItems", Value::Array(parts)) => {
                parts.iter_mut().for_each(|part| close(part, root, Level::Below));
            }
            ("items", part @ Value::Object(_)) => close(part, root, Level::Below),
            _ => {}
        }
    }
}

/// Whether a schema names fields of an object, itself or by what it is made of. References in a circle end by the steps.
fn names_fields(schema: &Value, root: &Value, steps: usize) -> bool {
    let (Value::Object(fields), Some(steps)) = (schema, steps.checked_sub(1)) else { return false };
    let named = |part: &Value| names_fields(part, root, steps);
    fields.contains_key("properties")
        || ["allOf", "anyOf", "oneOf"]
            .iter()
            .filter_map(|keyword| fields.get(*keyword)?.as_array())
            .any(|parts| parts.iter().any(named))
        || fields
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| root.pointer(reference.strip_prefix('#')?))
            .is_some_and(named)
}

/// Builds a value while counting levels and looking for keys that stand twice.
struct Strict<'a> {
    levels: usize,
    /// What was found, kept beside serde's own error, which carries text only.
    found: &'a Cell<Option<ArgumentError>>,
}

impl Strict<'_> {
    fn inner<E: serde::de::Error>(&self) -> Result<Strict<'_>, E> {
        match self.levels.checked_sub(1) {
            Some(levels) => Ok(Strict { levels, found: self.found }),
            None => Err(self.stop(ArgumentError::TooDeep)),
        }
    }

    fn stop<E: serde::de::Error>(&self, error: ArgumentError) -> E {
        let text = error.to_string();
        self.found.set(Some(error));
        E::custom(text)
    }

    const fn again(&self) -> Strict<'_> {
        Strict { levels: self.levels, found: self.found }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner.again())? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(self.stop(ArgumentError::DuplicateKey(key)));
            }
            let value = fields.next_value_seed(inner.again())?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn t3_an_object_is_read_as_it_stands() {
        let text = " {\"path\":\"/a\\u00e9\\ud83d\\ude00\",\"n\":[1,-2,2.5,1e3,18446744073709551615],\"o\":{\"x\":null,\"y\":true}} \n";
        assert_eq!(
            parse(text).unwrap(),
            json!({"path": "/aé😀", "n": [1, -2, 2.5, 1e3, 18_446_744_073_709_551_615_u64], "o": {"x": null, "y": true}})
        );
        assert_eq!(parse("{}").unwrap(), json!({}));
    }

    #[test]
    fn t3_a_key_that_stands_twice_is_refused_at_any_depth_and_in_any_spelling() {
        for (text, key) in [
            ("{\"a\":1,\"a\":1}", "a"),
            ("{\"a\":1,\"\\u0061\":2}", "a"),
            ("{\"a\":[{\"b\":{\"c\":1,\"d\":2,\"c\":3}}]}", "c"),
            ("{\"\":1,\"\":2}", ""),
        ] {
            assert_eq!(parse(text), Err(ArgumentError::DuplicateKey(key.to_owned())), "{text}");
        }
        assert!(parse("{\"a\":{\"a\":{\"a\":1}},\"A\":1,\"a \":1}").is_ok());
    }

    #[test]
    fn t3_only_an_object_is_taken() {
        for text in ["[]", "\"{}\"", "null", "1", "true", "[{\"a\":1}]"] {
            assert_eq!(parse(text), Err(ArgumentError::NotAnObject), "{text}");
        }
        assert_eq!(accept(json!([])), Err(ArgumentError::NotAnObject));
    }

    #[test]
    fn t3_what_is_not_strict_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "{\"a\":1",
            "{\"a\":NaN}",
            "{\"a\":Infinity}",
            "{\"a\":-Infinity}",
            "{\"a\":1e999}",
            "{\"a\":01}",
            "{\"a\":.5}",
            "{\"a\":+1}",
            "{\"a\":0x1}",
            "{\"a\":1,}",
            "{\"a\":[1,]}",
            "{'a':1}",
            "{a:1}",
            "{\"a\":1}x",
            "{\"a\":1}{}",
            "{\"a\":1} //",
            "/**/{}",
            "{\"a\":\"\n\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":undefined}",
            "{}\0",
            "{}\u{FEFF}",
            "\u{A0}{}",
            "```json\n{}\n```",
        ] {
            assert!(matches!(parse(text), Err(ArgumentError::NotJson(_))), "{text:?}: {:?}", parse(text));
        }
        assert_eq!(parse("\u{FEFF}{}"), Err(ArgumentError::ByteOrderMark));
    }

    #[test]
    fn t3_a_lone_surrogate_is_refused_in_values_and_keys() {
        for text in [
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\udc00"}"#,
            r#"{"a":"\ud800x"}"#,
            r#"{"a":"\ud800\u0041"}"#,
            r#"{"a":"\udc00\ud800"}"#,
            r#"{"\ud800":1}"#,
            r#"{"a":"\ud83d\ud83d"}"#,
            r#"{"a":"\uDBFF"}"#,
        ] {
            assert!(matches!(parse(text), Err(ArgumentError::NotJson(_))), "{text}");
        }
    }

    #[test]
    fn t3_thirty_two_levels_are_read_and_thirty_three_are_not() {
        let nested = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        for make in [&nested as &dyn Fn(usize) -> String, &objects] {
            assert!(parse(&make(32)).is_ok());
            assert_eq!(parse(&make(33)), Err(ArgumentError::TooDeep));
            assert_eq!(parse(&make(20_000)), Err(ArgumentError::TooDeep));
            assert!(accept(serde_json::from_str(&make(32)).unwrap()).is_ok());
            assert_eq!(accept(serde_json::from_str(&make(33)).unwrap()), Err(ArgumentError::TooDeep));
        }
    }

    #[test]
    fn t3_the_bytes_are_counted() {
        let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(parse(&sized(ARGUMENT_BYTES)).is_ok());
        assert_eq!(parse(&sized(ARGUMENT_BYTES + 1)), Err(ArgumentError::TooLong));
        assert_eq!(accept(json!({"a": "x".repeat(ARGUMENT_BYTES)})), Err(ArgumentError::TooLong));
    }

    fn schema() -> Value {
        json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
            "path": {"type": "string", "maxLength": 10}, "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            "mode": {"enum": ["a", "b"]}, "flag": {"type": "boolean"}}})
    }

    #[test]
    fn t3_nothing_is_coerced_or_clamped() {
        let schema = Schema::compile(&schema()).unwrap();
        assert_eq!(schema.validate(&json!({"path": "/a", "limit": 50, "mode": "a", "flag": true})), Ok(()));
        for wrong in [
            json!({"path": "/a", "limit": "5"}),
            json!({"path": "/a", "limit": 51}),
            json!({"path": "/a", "limit": 0}),
            json!({"path": "/a", "limit": 1.5}),
            json!({"path": "/a", "limit": true}),
            json!({"path": "/a", "limit": null}),
            json!({"path": 5}),
            json!({"path": ["/a"]}),
            json!({"path": null}),
            json!({}),
            json!({"path": "12345678901"}),
            json!({"path": "/a", "mode": "A"}),
            json!({"path": "/a", "flag": "true"}),
            json!({"path": "/a", "flag": 1}),
        ] {
            assert!(schema.validate(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn t3_extra_properties_are_refused_even_if_the_schema_forgot_to_say_so() {
        let extra = json!({"path": "/a", "confirmed": true});
        let forgetful = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        for schema in [schema(), forgetful, json!({"type": "object"}), json!({})] {
            assert!(validate(&schema, &extra).is_err(), "{schema}");
        }
        let composed = json!({"allOf": [{"properties": {"path": {"type": "string"}}}]});
        assert_eq!(validate(&composed, &json!({"path": "/a"})), Ok(()));
        assert!(validate(&composed, &extra).is_err());
        let open = json!({"type": "object", "additionalProperties": true});
        assert_eq!(validate(&open, &extra), Ok(()));
        let inner = json!({"properties": {"arguments": {"type": "object"}}});
        assert_eq!(validate(&inner, &json!({"arguments": {"x": 1}})), Ok(()));
    }

    #[test]
    fn t3_extra_properties_are_refused_at_every_level_that_names_some() {
        let fields = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let defs = json!({"Row": fields, "Free": {"type": "object"}});
        let schema = json!({"type": "object", "$defs": defs, "properties": {
            "row": fields,
            "rows": {"type": "array", "items": fields},
            "pair": {"type": "array", "prefixItems": [fields]},
            "known": {"$ref": "#/$defs/Row"},
            "perhaps": {"anyOf": [{"$ref": "#/$defs/Row"}, {"type": "null"}]},
            "deep": {"type": "object", "properties": {"row": fields}},
            "free": {"type": "object"},
            "named_free": {"$ref": "#/$defs/Free"},
            "open": {"type": "object", "additionalProperties": true, "properties": {"name": {"type": "string"}}},
        }});
        let schema = Schema::compile(&schema).unwrap();
        let (fits, more) = (json!({"name": "x"}), json!({"name": "x", "confirmed": true}));
        let places = |row: &Value| {
            vec![
                json!({"row": row}),
                json!({"rows": [fits, row]}),
                json!({"pair": [row]}),
                json!({"known": row}),
                json!({"perhaps": row}),
                json!({"deep": {"row": row}}),
            ]
        };
        for arguments in places(&fits) {
            assert_eq!(schema.validate(&arguments), Ok(()), "{arguments}");
        }
        for arguments in places(&more) {
            assert!(schema.validate(&arguments).is_err(), "{arguments}");
        }
        for free in ["free", "named_free", "open"] {
            assert_eq!(schema.validate(&json!({free: more})), Ok(()), "{free}");
        }
        assert_eq!(schema.validate(&json!({"perhaps": null})), Ok(()));
        let round = json!({"$defs": {"A": {"$ref": "#/$defs/A"}}, "properties": {"a": {"$ref": "#/$defs/A"}}});
        assert!(!names_fields(&round["properties"]["a"], &round, SCHEMA_DEPTH), "a circle names nothing");
    }

    #[test]
    fn t4_nothing_a_model_sends_confirms_widens_or_impersonates() {
        let schema = Schema::compile(&schema()).unwrap();
        for field in ["confirmed", "approved", "force", "scope", "folders", "agent_id", "user_id", "workspace_id", "as"]
        {
            let arguments = json!({"path": "/a", field: true});
            let problems = schema.validate(&arguments).unwrap_err();
            assert!(problems.iter().any(|problem| problem.detail.contains(field)), "{field}: {problems:?}");
        }
    }

    #[test]
    fn a_problem_says_where_and_what_without_the_value() {
        let problems =
            validate(&schema(), &json!({"path": "top-secret-value", "limit": "also-secret", "x": 1})).unwrap_err();
        let text = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(text.contains("/limit: ") && text.contains("/path: ") && text.contains("'x'"), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }

    #[test]
    fn a_schema_that_would_fetch_or_backtrack_is_refused() {
        for schema in [
            json!({"$ref": "https://example.org/s.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"type": "nonsense"}),
            json!({"properties": {"a": {"pattern": "(?=x)"}}}),
            json!({"properties": {"a": {"pattern": "("}}}),
            json!({"properties": {"a": {"pattern": "((((a{100}){100}){100}){100})"}}}),
        ] {
            assert!(Schema::compile(&schema).is_err(), "{schema}");
        }
        let mut deep = json!({});
        for _ in 0..SCHEMA_DEPTH {
            deep = json!({"not": deep});
        }
        assert!(Schema::compile(&deep).is_err());
        let hostile = Schema::compile(&json!({"properties": {"a": {"pattern": "^(a+)+$"}}})).unwrap();
        assert!(hostile.validate(&json!({"a": format!("{}!", "a".repeat(50_000))})).is_err());
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_a_plain_reader_reads(text in "[\\[\\]{}:,\"\\\\ua0-9eE.+\\-tfn ]{0,24}|\\PC{0,24}") {
            if let Ok(value) = parse(&text) {
                prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value.clone());
                prop_assert_eq!(parse(&value.to_string()), Ok(value.clone()));
                prop_assert_eq!(accept(value.clone()), Ok(value));
            }
        }

        #[test]
        fn every_plain_object_is_read(keys in prop::collection::btree_map("\\PC{0,6}", "\\PC{0,6}", 0..6)) {
            let value = json!(keys);
            prop_assert_eq!(parse(&value.to_string()), Ok(value));
        }
    }
}
