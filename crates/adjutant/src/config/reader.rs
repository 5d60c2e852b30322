//! Settings out of their sources, the strongest first: a flag, a variable, the file. What is wrong is gathered, not thrown.

use std::path::PathBuf;

use secrecy::SecretString;

use super::file::{ConfigFile, Written};
use super::{Environment, KeySource, Origin, Setting};

/// Reads one setting after the other and keeps what is wrong with them.
pub(super) struct Reader<'a> {
    pub(super) env: &'a Environment,
    pub(super) file: &'a ConfigFile,
    pub(super) problems: Vec<String>,
}

impl Reader<'_> {
    /// The strongest source that has the value.
    pub(super) fn pick(&mut self, key: &'static str, flag: Option<String>) -> Option<Setting<String>> {
        if let Some(value) = flag {
            return Some(Setting { value, origin: Origin::Flag });
        }
        let variable = format!("ADJUTANT_{}", key.to_ascii_uppercase());
        if let Some(value) = self.env.get(&variable) {
            return Some(Setting { value: value.to_owned(), origin: Origin::Env(variable) });
        }
        if key == "database_url"
            && let Some(setting) = self.secret_file(&variable)
        {
            return Some(setting);
        }
        let Written { text, line } = self.file.values.get(key)?.clone();
        Some(Setting { value: text, origin: Origin::File(self.file.path.clone(), line) })
    }

    /// The content of the file that `VARIABLE_FILE` names.
    fn secret_file(&mut self, variable: &str) -> Option<Setting<String>> {
        let variable = format!("{variable}_FILE");
        let path = self.env.get(&variable)?;
        match std::fs::read_to_string(path) {
            Ok(text) => Some(Setting { value: text.trim().to_owned(), origin: Origin::Env(variable) }),
            Err(error) => {
                self.problems.push(format!("{variable}: {path}: {error}"));
                None
            }
        }
    }

    pub(super) fn parsed<T>(
        &mut self,
        key: &'static str,
        flag: Option<String>,
        default: &str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Setting<T>> {
        let picked = self.pick(key, flag).unwrap_or(Setting { value: default.to_owned(), origin: Origin::Default });
        let parsed = parse(&picked.value);
        if parsed.is_none() {
            // The value is not repeated where it may hold a password.
            let shown = if key == "database_url" { String::new() } else { format!(" `{}`", picked.value) };
            self.problems.push(format!("{}: {key}{shown} has to be {wanted}", picked.origin));
        }
        Some(Setting { value: parsed?, origin: picked.origin })
    }

    /// A setting that may be left out.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Setting<T>> {
        let picked = self.pick(key, None)?;
        let parsed = parse(&picked.value);
        if parsed.is_none() {
            self.problems.push(format!("{}: {key} `{}` has to be {wanted}", picked.origin, picked.value));
        }
        Some(Setting { value: parsed?, origin: picked.origin })
    }

    pub(super) fn key(&mut self) -> Option<Setting<KeySource>> {
        let setting = |value, name: &str| Setting { value, origin: Origin::Env(name.to_owned()) };
        let (value, file) = ("ADJUTANT_SECRET_KEY", "ADJUTANT_SECRET_KEY_FILE");
        Some(match (self.env.get(value), self.env.get(file)) {
            (Some(_), Some(_)) => {
                self.problems.push(format!("{value} and {file} are both set; keep one"));
                return None;
            }
            (Some(text), None) => setting(KeySource::Value(SecretString::from(text)), value),
            (None, Some(path)) => setting(KeySource::File(PathBuf::from(path)), file),
            (None, None) => Setting { value: KeySource::Data, origin: Origin::Default },
        })
    }
}
