//! The configuration file: TOML, every key known, every problem with its line. Says what is written there and nothing of
//! what it means.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::suggest;

/// The keys that stand at the top.
pub(crate) const KEYS: [&str; 19] = [
    "listen",
    "public_url",
    "trusted_proxies",
    "data",
    "database_url",
    "default_model",
    "encrypt",
    "durability",
    "log",
    "log_format",
    "user_calls_per_minute",
    "max_runs",
    "max_requests",
    "max_streams",
    "stream_patience",
    "drain",
    "allow_private",
    "allow_unpriced",
    "otlp_endpoint",
];
/// Those of them that may be written as numbers.
const NUMBERS: [&str; 5] = ["user_calls_per_minute", "max_runs", "max_requests", "max_streams", "calls_at_once"];
const PROVIDERS: &str = "providers";
/// The key of a provider that holds a list.
const MODELS: &str = "models";
const TOOLS: &str = "tools";
/// What stands under `[tools]`, and the setting it is.
const TOOL_KEYS: [(&str, &str); 4] =
    [("enabled", "tools_enabled"), ("shell", "tools_shell"), ("code", "tools_code"), ("network", "tools_network")];
const PROVIDER_KEYS: [&str; 15] = [
    "kind",
    "base_url",
    "api_key_env",
    "credentials_file",
    "region",
    "project",
    "api_version",
    "models",
    "calls_at_once",
    "timeout",
    "first_byte_timeout",
    "idle_timeout",
    "script",
    "input_usd",
    "output_usd",
];

/// A configuration file as it is written.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) values: BTreeMap<&'static str, Written>,
    pub(crate) providers: Vec<WrittenProvider>,
}

/// A value and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A `[providers.NAME]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenProvider {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) keys: BTreeMap<&'static str, Written>,
}

/// Reads a configuration file.
///
/// # Errors
/// Every problem, each with its line.
pub(crate) fn parse(path: &Path, text: &str) -> Result<ConfigFile, Vec<String>> {
    let mut reader = Reader { text, problems: Vec::new() };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(1, |span| reader.line(span.start));
            return Err(vec![format!("{}:{line}: {}", path.display(), error.message())]);
        }
    };
    let mut file = ConfigFile { path: path.to_owned(), ..ConfigFile::default() };
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        if name == PROVIDERS {
            file.providers = reader.providers(value);
        } else if name == TOOLS {
            file.values.extend(reader.tools(value));
        } else if let Some(known) = reader.known(key.span().start, name, &[&KEYS[..], &[PROVIDERS, TOOLS]].concat())
            && let Some(written) = reader.scalar(name, value)
        {
            file.values.insert(known, written);
        }
    }
    if reader.problems.is_empty() {
        return Ok(file);
    }
    reader.problems.sort();
    let place = |(line, what): (usize, String)| format!("{}:{line}: {what}", path.display());
    Err(reader.problems.into_iter().map(place).collect())
}

struct Reader<'a> {
    text: &'a str,
    /// What is wrong, by its line.
    problems: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
    }

    fn problem(&mut self, at: usize, what: &str) {
        self.problems.push((self.line(at), what.to_owned()));
    }

    fn known<'k>(&mut self, at: usize, name: &str, keys: &[&'k str]) -> Option<&'k str> {
        let known = keys.iter().find(|key| **key == name).copied();
        if known.is_none() {
            self.problem(at, &format!("unknown key `{name}`, {}", suggest::advice(name, keys)));
        }
        known
    }

    fn scalar(&mut self, name: &str, value: &Spanned<DeValue<'_>>) -> Option<Written> {
        let at = value.span().start;
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Boolean(word) => word.to_string(),
            DeValue::Integer(number) if NUMBERS.contains(&name) => number.to_string(),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                self.problem(at, &format!("`{name}` has to be a text or true or false"));
                return None;
            }
        };
        Some(Written { text, line: self.line(at) })
    }

    fn tools(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<(&'static str, Written)> {
        let DeValue::Table(table) = value.get_ref() else {
            self.problem(value.span().start, "`tools` has to be a table: write [tools]");
            return Vec::new();
        };
        let mut found = Vec::new();
        for (key, value) in table {
            let known = self.known(key.span().start, key.get_ref().as_ref(), &TOOL_KEYS.map(|(key, _)| key));
            let Some((key, setting)) = known.and_then(|known| TOOL_KEYS.into_iter().find(|(key, _)| *key == known))
            else {
                continue;
            };
            let written = match value.get_ref() {
                DeValue::Array(names) => self.list(key, names).map(|text| (text, value.span().start)),
                _ => self.scalar(key, value).map(|written| (written.text, value.span().start)),
            };
            found.extend(written.map(|(text, at)| (setting, Written { text, line: self.line(at) })));
        }
        found
    }

    /// Texts, as they are written in one line: with commas between them.
    fn list(&mut self, name: &str, values: &DeArray<'_>) -> Option<String> {
        let texts: Option<Vec<String>> = values.iter().map(|value| Some(self.scalar(name, value)?.text)).collect();
        texts.map(|texts| texts.join(","))
    }

    fn providers(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<WrittenProvider> {
        let DeValue::Table(table) = value.get_ref() else {
            self.problem(value.span().start, "`providers` has to be a table: write [providers.NAME]");
            return Vec::new();
        };
        let mut providers = Vec::new();
        for (name, value) in table {
            let (at, name) = (name.span().start, name.get_ref().as_ref());
            let DeValue::Table(keys) = value.get_ref() else {
                self.problem(at, &format!("`providers.{name}` has to be a table: write [providers.{name}]"));
                continue;
            };
            let mut provider = WrittenProvider { name: name.to_owned(), line: self.line(at), keys: BTreeMap::new() };
            for (key, value) in keys {
                let known = self.known(key.span().start, key.get_ref().as_ref(), &PROVIDER_KEYS);
                let written = known.and_then(|known| match value.get_ref() {
                    DeValue::Array(names) if known == MODELS => {
                        let (text, line) = (self.list(known, names)?, self.line(value.span().start));
                        Some((known, Written { text, line }))
                    }
                    _ => Some((known, self.scalar(known, value)?)),
                });
                provider.keys.extend(written);
            }
            providers.push(provider);
        }
        providers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ConfigFile, Vec<String>> {
        parse(Path::new("config.toml"), text)
    }

    #[test]
    fn values_keep_their_lines() {
        let file = read("listen = \"127.0.0.1:1\"\n\nencrypt = false\n[providers.lab]\nkind = \"openai\"\n").unwrap();
        assert_eq!(file.values["listen"], Written { text: "127.0.0.1:1".to_owned(), line: 1 });
        assert_eq!(file.values["encrypt"], Written { text: "false".to_owned(), line: 3 });
        assert_eq!((file.providers[0].name.as_str(), file.providers[0].line), ("lab", 4));
        assert_eq!(file.providers[0].keys["kind"].line, 5);
    }

    #[test]
    fn the_switches_of_tools_are_settings_like_others() {
        let file = read("[tools]\nenabled = [\"files\", \"kv_get\"]\nnetwork = false\n").unwrap();
        assert_eq!(file.values["tools_enabled"], Written { text: "files,kv_get".to_owned(), line: 2 });
        assert_eq!(file.values["tools_network"], Written { text: "false".to_owned(), line: 3 });
        assert_eq!(read("[tools]\nnetwrk = false\n").unwrap_err().len(), 1);
        assert_eq!(read("tools = true\n").unwrap_err().len(), 1);
    }

    #[test]
    fn every_problem_is_named_with_its_line_and_the_word_that_was_meant() {
        let text = "lisen = \"x\"\nencrypt = 3\n[providers.lab]\nbase-url = \"y\"\nkind = \"openai\"\n[provider.x]\n";
        assert_eq!(
            read(text).unwrap_err(),
            [
                "config.toml:1: unknown key `lisen`, did you mean `listen`?",
                "config.toml:2: `encrypt` has to be a text or true or false",
                "config.toml:4: unknown key `base-url`, did you mean `base_url`?",
                "config.toml:6: unknown key `provider`, did you mean `providers`?",
            ]
        );
        assert_eq!(read("listen = \n").unwrap_err().len(), 1);
    }
}
