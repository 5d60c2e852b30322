//! The redactor on structured values: every text and number, and the names of fields. What a thing is may be said by the
//! name it stands under, by a field beside it, or by the flag before it.

use serde_json::{Map, Number, Value};

use super::{Form, Found, Mode, argument, assigned, redact_as, replaced, sibling};

/// Bytes of a name that go before each value under it; its end says what it is.
const NAME_BYTES: usize = 100;

/// Redacts every text and number of a value, and its names; the name something stands under may be what gives it away.
pub fn redact_value(value: &mut Value, mode: Mode, form: Form) {
    redact_under(value, None, mode, form);
}

fn redact_under(value: &mut Value, name: Option<&str>, mode: Mode, form: Form) {
    match value {
        Value::String(text) => {
            if let Some(clean) = redacted(text, name, mode, form) {
                *text = clean;
            }
        }
        Value::Number(number) => {
            if let Some(clean) = redacted_number(number, name, mode, form) {
                *value = Value::String(clean);
            }
        }
        Value::Array(list) => {
            let mut flag: Option<String> = None;
            for item in list {
                let is_flag = item.as_str().is_some_and(|item| item.starts_with('-'));
                let next = item.as_str().and_then(argument::promising_flag).map(str::to_owned);
                if let Some(flag) = flag.as_deref().filter(|_| !is_flag) {
                    redact_under(item, Some(flag), mode, form);
                }
                redact_under(item, name, mode, form);
                flag = next;
            }
        }
        Value::Object(fields) => redact_fields(fields, mode, form),
        Value::Null | Value::Bool(_) => {}
    }
}

fn redact_fields(fields: &mut Map<String, Value>, mode: Mode, form: Form) {
    // The names first: what they promise must be the same when they are read again.
    if fields.keys().any(|name| redact_as(name, mode, form) != name.as_str()) {
        for (name, value) in std::mem::take(fields) {
            let name = free_name(fields, redact_as(&name, mode, form).into_owned());
            fields.insert(name, value);
        }
    }
    let names = fields.iter().filter(|(name, _)| sibling::is_name(name)).filter_map(|(_, value)| value.as_str());
    let said = names.map(|said| redact_as(said, mode, form)).find(|said| assigned::promises(tail(said)));
    let said = said.map(std::borrow::Cow::into_owned);
    for (name, value) in fields.iter_mut() {
        let own = if name.eq_ignore_ascii_case("value") { said.as_deref() } else { None };
        redact_under(value, Some(tail(own.unwrap_or(name))), mode, form);
    }
}

/// The name, or with a number behind it if there is one like it: no field is lost because two names became the same.
fn free_name(fields: &Map<String, Value>, name: String) -> String {
    if !fields.contains_key(&name) {
        return name;
    }
    let mut numbered = (2_usize..).map(|number| format!("{name} {number}"));
    numbered.find(|numbered| !fields.contains_key(numbered)).unwrap_or(name)
}

/// The end of a name, at most so many bytes of it.
fn tail(name: &str) -> &str {
    let from = name.len().saturating_sub(NAME_BYTES);
    (from..=name.len()).find_map(|from| name.get(from..)).unwrap_or_default()
}

/// The text without secrets; none if it holds none.
fn redacted(text: &str, name: Option<&str>, mode: Mode, form: Form) -> Option<String> {
    let alone = redact_as(text, mode, form);
    // In the text of the whole it will be longer where it holds signs that are escaped there.
    let written = Value::from(&*alone).to_string();
    let kind =
        |name| assigned::kind_under(name, &alone).or_else(|| assigned::kind_under(name, written.trim_matches('"')));
    let clean = match name.and_then(kind) {
        Some(kind) => replaced(&alone, &[Found { range: 0..alone.len(), kind }], form),
        // What is no secret as a whole may begin with one.
        None => {
            let prefix = name.map(|name| format!("{name}=")).unwrap_or_default();
            let named = redact_as(&format!("{prefix}{alone}"), mode, form).into_owned();
            named.strip_prefix(&prefix).map_or(alone.into_owned(), str::to_owned)
        }
    };
    (clean != text).then_some(clean)
}

/// What stands in place of a number that is a secret.
fn redacted_number(number: &Number, name: Option<&str>, mode: Mode, form: Form) -> Option<String> {
    redacted(&number.to_string(), name, mode, form)
}
