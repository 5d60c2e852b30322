//! Agents as files: YAML front matter with the fields of an agent, and the instructions below it. Reads text and says
//! everything that is wrong with it, each with its line; saves nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use adjutant_core::guard::policy::{AgentConfig, AgentSpec, is_slug};
use serde_json::{Map, Value, json};

pub(crate) use self::write::write;
use crate::suggest;

mod write;

/// Bytes of an agent file; instructions are pages, not books.
const FILE_BYTES: u64 = 256 * 1024;

/// The fields a file may have: those of an agent, and what they are called elsewhere.
const FIELDS: [&str; 47] = [
    "name",
    "slug",
    "description",
    "emoji",
    "category",
    "keywords",
    "model",
    "fallback_models",
    "routing",
    "budget",
    "temperature",
    "model_options",
    "requires",
    "provider_key_id",
    "output_schema",
    "system_prompt",
    "preset",
    "scope",
    "can_read",
    "can_write",
    "can_create",
    "can_delete",
    "can_execute_code",
    "can_access_integrations",
    "permission_level",
    "categories",
    "tools",
    "toolsets",
    "denied_tools",
    "allowed_hosts",
    "autonomy",
    "flow",
    "requires_approval",
    "max_turns",
    "max_tool_calls",
    "max_requests_per_hour",
    "max_concurrent_runs",
    "tool_limits",
    "content_filter",
    "max_tokens_per_request",
    "approval_expires_in",
    "memory",
    "data_access",
    "is_active",
    "metadata",
    "shared_with",
    "approvers",
];
/// Other tools' spelling of the same fields.
const ALIASES: [(&str, &str); 2] = [("disallowedTools", "denied_tools"), ("maxTurns", "max_turns")];
/// Lists that may be written as one text with commas.
const LISTS: [&str; 9] = [
    "tools",
    "toolsets",
    "denied_tools",
    "requires_approval",
    "keywords",
    "requires",
    "data_access",
    "shared_with",
    "approvers",
];

/// The tools there are, to check names against.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) tools: Vec<String>,
    pub(crate) toolsets: Vec<String>,
}

/// Something wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) detail: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.detail)
    }
}

/// An agent that can be saved.
#[derive(Debug, Clone)]
pub(crate) struct AgentFile {
    pub(crate) path: PathBuf,
    pub(crate) spec: AgentSpec,
    /// The same with the defaults written out.
    pub(crate) config: AgentConfig,
}

/// Reads one file.
pub(crate) fn read(path: &Path, known: &Known) -> Result<AgentFile, Vec<Problem>> {
    let problem = |detail: String| vec![Problem { file: path.to_owned(), line: 1, detail }];
    let size = std::fs::metadata(path).map_err(|error| problem(error.to_string()))?.len();
    if size > FILE_BYTES {
        return Err(problem(format!("the file has {size} bytes, more than the {FILE_BYTES} an agent may have")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    parse(path, &text, known)
}

/// Reads the text of a file.
pub(crate) fn parse(path: &Path, text: &str, known: &Known) -> Result<AgentFile, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = Reader { path, matter: "", problems: Vec::new() };
    let Some((matter, body)) = split(&text) else {
        reader.problem(1, "an agent file begins with a line `---`, its fields, and a second line `---`");
        return Err(reader.problems);
    };
    reader.matter = matter;
    let fields = match fields(matter) {
        Ok(fields) => fields,
        Err((line, why)) => {
            reader.problem(line, &why);
            return Err(reader.problems);
        }
    };
    let object = reader.object(fields, body, known);
    match reader.finish(object) {
        Some((spec, config)) if reader.problems.is_empty() => Ok(AgentFile { path: path.to_owned(), spec, config }),
        _ => {
            reader.problems.sort_by_key(|problem| problem.line);
            Err(reader.problems)
        }
    }
}

/// The front matter and what follows it.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?.trim_start_matches([' ', '\t']).strip_prefix('\n')?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The fields of a front matter, or the line (of the file) where it cannot be read and why.
fn fields(matter: &str) -> Result<BTreeMap<String, Value>, (usize, String)> {
    if matter.trim().is_empty() {
        return Ok(BTreeMap::new());
    }
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(matter, options).map_err(|error| {
        let line = error.location().map_or(0, |at| usize::try_from(at.line()).unwrap_or(0));
        (line + 1, format!("the fields cannot be read: {error}"))
    })
}

struct Reader<'a> {
    path: &'a Path,
    matter: &'a str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, line: usize, detail: &str) {
        self.problems.push(Problem { file: self.path.to_owned(), line, detail: detail.to_owned() });
    }

    /// The line of a field in the file; the first line of the front matter is line 2.
    fn line(&self, field: &str) -> usize {
        let is_field = |line: &str| {
            let rest = line.strip_prefix(['"', '\'']).unwrap_or(line).strip_prefix(field);
            rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
        };
        self.matter.lines().position(is_field).map_or(1, |index| index + 2)
    }

    /// The fields under their own names, as an agent's body has them.
    fn object(&mut self, fields: BTreeMap<String, Value>, body: &str, known: &Known) -> Map<String, Value> {
        let mut object = Map::new();
        for (written, value) in fields {
            let line = self.line(&written);
            let name = ALIASES.iter().find(|(alias, _)| *alias == written).map_or(written.as_str(), |(_, name)| *name);
            if !FIELDS.contains(&name) {
                let all: Vec<_> = FIELDS.iter().copied().chain(ALIASES.map(|(alias, _)| alias)).collect();
                self.problem(line, &format!("unknown field `{written}`, {}", suggest::advice(&written, &all)));
                continue;
            }
            let value = if LISTS.contains(&name) { listed(value) } else { value };
            if let Err(why) = check(name, &value) {
                self.problem(line, &format!("{name}: {why}"));
                continue;
            }
            self.check_names(line, name, &value, known);
            if object.insert(name.to_owned(), value).is_some() {
                self.problem(line, &format!("`{name}` is there twice"));
            }
        }
        let instructions = body.trim();
        if !instructions.is_empty() {
            if object.contains_key("system_prompt") {
                let line = self.line("system_prompt");
                self.problem(line, "the text below the fields is the instructions; remove system_prompt");
            }
            object.insert("system_prompt".to_owned(), json!(instructions));
        }
        object
    }

    fn check_names(&mut self, line: usize, field: &str, value: &Value, known: &Known) {
        let names = match field {
            "tools" | "denied_tools" | "requires_approval" => &known.tools,
            "toolsets" => &known.toolsets,
            _ => return,
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for name in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !names.contains(&name) {
                let advice = suggest::advice(name, &names);
                self.problem(
                    line,
                    &format!(
                        "{field}: there is no tool{} `{name}`, {advice}",
                        if field == "toolsets" { "set" } else { "" }
                    ),
                );
            }
        }
    }

    /// The agent, where nothing is wrong with it.
    fn finish(&mut self, mut object: Map<String, Value>) -> Option<(AgentSpec, AgentConfig)> {
        if !object.contains_key("name") {
            self.problem(1, "the field `name` is missing");
            return None;
        }
        let stem = self.path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_slug(stem));
        if let Some(stem) = stem {
            object.entry("slug").or_insert_with(|| json!(stem));
        }
        let spec: AgentSpec = match serde_json::from_value(Value::Object(object)) {
            Ok(spec) => spec,
            Err(error) => {
                self.problem(1, &suggest::better(&error.to_string()));
                return None;
            }
        };
        match spec.clone().complete() {
            Ok(config) => Some((spec, config)),
            Err(found) => {
                for bad in found {
                    let field = bad.field.split(['.', '[']).next().unwrap_or_default().to_owned();
                    let line = self.line(&field);
                    self.problem(line, &bad.to_string());
                }
                None
            }
        }
    }
}

/// A list that may be written as one text with commas.
fn listed(value: Value) -> Value {
    match value {
        Value::String(text) => text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value,
    }
}

/// Whether one field, by itself, can be read; so that each wrong field is found, not only the first.
fn check(name: &str, value: &Value) -> Result<(), String> {
    let mut object = Map::from_iter([("name".to_owned(), json!("x"))]);
    object.insert(name.to_owned(), value.clone());
    let read = serde_json::from_value::<AgentSpec>(Value::Object(object));
    read.map(drop).map_err(|error| suggest::better(&error.to_string()))
}

#[cfg(test)]
mod tests;
