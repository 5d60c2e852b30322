//! Where every setting comes from: flag, then environment, then file, then default. The only place that reads the
//! environment; it opens no database and starts nothing.

mod file;
mod log_format;
mod most;
mod providers;
mod public_url;
mod reader;
mod tools;
mod traces;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use adjutant_core::guard::address::Network;
use adjutant_core::guard::policy::parse_seconds;
use secrecy::SecretString;

use self::file::ConfigFile;
pub(crate) use self::log_format::LogFormat;
pub(crate) use self::most::Most;
pub(crate) use self::providers::{Kind, Proof, Provider, Remote};
pub(crate) use self::public_url::PublicUrl;
use self::reader::Reader;
pub(crate) use self::tools::Tools;
pub(crate) use self::traces::Traces;
use crate::failure::Failure;

const DEFAULT_LISTEN: &str = "127.0.0.1:7878";
const DEFAULT_MODEL: &str = "demo/guide";
/// The variables of the process, read once. They hold secrets, so there is no way to print them.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    pub(crate) fn of_process() -> Self {
        let plain = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self(std::env::vars_os().filter_map(plain).collect())
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The editor a person has chosen.
    pub(crate) fn editor(&self) -> Option<&str> {
        self.get("VISUAL").or_else(|| self.get("EDITOR"))
    }

    /// Whether the terminal should be left without colours and movement.
    pub(crate) fn wants_plain(&self) -> bool {
        self.get("NO_COLOR").is_some() || self.get("TERM") == Some("dumb")
    }

    /// Where files go that nobody keeps.
    pub(crate) fn temporary_folder(&self) -> PathBuf {
        self.get("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    }

    /// Where a person's settings are.
    pub(crate) fn settings_folder(&self) -> Option<PathBuf> {
        self.folder("XDG_CONFIG_HOME", ".config")
    }

    fn folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        // The XDG rules: a relative path in these variables counts as not set.
        let set = self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        set.or_else(|| self.get("HOME").map(|home| Path::new(home).join(below_home))).map(|base| base.join("adjutant"))
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The command line.
    Flag,
    /// A variable.
    Env(String),
    /// A line of the configuration file.
    File(PathBuf, usize),
    /// Nobody said otherwise.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("command line"),
            Self::Env(name) => write!(f, "environment {name}"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// What the command line says about settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) database_url: Option<String>,
    pub(crate) listen: Option<String>,
    pub(crate) durability: Option<String>,
    pub(crate) log: Option<String>,
}

/// Where everything is kept.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// A file in the data directory.
    Sqlite,
    /// A PostgreSQL server; the address may hold a password.
    Postgres(SecretString),
}

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Power loss.
    Full,
    /// A crash of the process.
    Normal,
}

/// Where the master key is.
#[derive(Debug, Clone)]
pub(crate) enum KeySource {
    /// In a variable.
    Value(SecretString),
    /// In a file that the operator named.
    File(PathBuf),
    /// In the data directory, made at the first start.
    Data,
}

/// Every setting, with its origin.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) file: Option<PathBuf>,
    pub(crate) listen: Setting<SocketAddr>,
    /// The address that others know the server by.
    pub(crate) public_url: Option<Setting<PublicUrl>>,
    /// The proxies whose word about where a request comes from counts.
    pub(crate) trusted_proxies: Option<Setting<Vec<Network>>>,
    pub(crate) data: Setting<PathBuf>,
    pub(crate) database: Setting<Database>,
    pub(crate) default_model: Setting<String>,
    pub(crate) encrypt: Setting<bool>,
    pub(crate) durability: Setting<Durability>,
    pub(crate) log: Option<Setting<String>>,
    /// How log lines are written.
    pub(crate) log_format: Option<Setting<LogFormat>>,
    /// How much there may be at once.
    pub(crate) most: Most,
    /// Networks that are not public and open to agents whose hosts lie there.
    pub(crate) allow_private: Option<Setting<Vec<Network>>>,
    /// Whether models without a known price are asked where a budget would not hold for them.
    pub(crate) allow_unpriced: Setting<bool>,
    /// Where traces go; none means nowhere.
    pub(crate) traces: Option<Setting<Traces>>,
    /// Which tools there are.
    pub(crate) tools: Tools,
    pub(crate) key: Setting<KeySource>,
    pub(crate) providers: Vec<Provider>,
}

impl Config {
    /// Puts the settings together.
    ///
    /// # Errors
    /// Everything that is wrong with them, at once.
    pub(crate) fn load(flags: &Flags, env: &Environment) -> Result<Self, Failure> {
        let file = read_file(flags, env)?;
        let mut reader = Reader { env, file: &file, problems: Vec::new() };
        let data = data_directory(&mut reader, flags, env)?;
        let (flag, wanted) = (flags.listen.clone(), "an address such as 127.0.0.1:7878");
        let listen = reader.parsed("listen", flag, DEFAULT_LISTEN, wanted, |text| text.parse::<SocketAddr>().ok());
        let (flag, wanted) = (flags.database_url.clone(), "`sqlite` or postgres://…");
        let database = reader.parsed("database_url", flag, "sqlite", wanted, parse_database);
        let default_model = reader.parsed("default_model", None, DEFAULT_MODEL, "provider/model", |text| {
            text.contains('/').then(|| text.to_owned())
        });
        let encrypt = reader.parsed("encrypt", None, "true", "true or false", |text| text.parse().ok());
        let unpriced = reader.parsed("allow_unpriced", None, "false", "true or false", |text| text.parse().ok());
        let durability =
            reader.parsed("durability", flags.durability.clone(), "full", "full or normal", parse_durability);
        let public_url =
            reader.optional("public_url", "http://NAME or https://NAME, with a port if need be", PublicUrl::parse);
        let trusted_proxies = reader.optional("trusted_proxies", "networks such as 127.0.0.1, 10.1.0.0/16", networks);
        let allow_private = reader.optional("allow_private", "networks such as 10.1.0.0/16, 127.0.0.1/32", networks);
        let loopback = listen.as_ref().is_none_or(|listen| listen.value.ip().is_loopback());
        let most = Most::read(&mut reader, loopback);
        let (log, traces) = (reader.pick("log", flags.log.clone()), reader.traces());
        let log_format = reader.optional("log_format", "text or json", LogFormat::parse);
        let key = Tools::read(&mut reader).zip(reader.key());
        let (providers, problems) = (reader.providers(), reader.problems);
        match (listen, database, default_model, encrypt.zip(unpriced), durability, most, key) {
            (
                Some(listen),
                Some(database),
                Some(default_model),
                Some((encrypt, allow_unpriced)),
                Some(durability),
                Some(most),
                Some((tools, key)),
            ) if problems.is_empty() => {
                let file = (!file.path.as_os_str().is_empty()).then_some(file.path);
                Ok(Self {
                    file,
                    listen,
                    public_url,
                    trusted_proxies,
                    data,
                    database,
                    default_model,
                    encrypt,
                    durability,
                    log,
                    log_format,
                    most,
                    allow_private,
                    allow_unpriced,
                    traces,
                    tools,
                    key,
                    providers,
                })
            }
            _ => Err(wrong(problems)),
        }
    }

    /// The settings as lines of key, value and origin; secrets are named, never shown.
    pub(crate) fn shown(&self) -> Vec<(String, String, Origin)> {
        let mut lines = vec![
            ("listen".to_owned(), self.listen.value.to_string(), self.listen.origin.clone()),
            ("data".to_owned(), self.data.value.display().to_string(), self.data.origin.clone()),
            ("database_url".to_owned(), self.database.value.to_string(), self.database.origin.clone()),
            ("default_model".to_owned(), self.default_model.value.clone(), self.default_model.origin.clone()),
            ("encrypt".to_owned(), self.encrypt.value.to_string(), self.encrypt.origin.clone()),
            ("durability".to_owned(), self.durability.value.to_string(), self.durability.origin.clone()),
        ];
        let url = self.public_url.as_ref();
        lines.extend(url.map(|url| ("public_url".to_owned(), url.value.to_string(), url.origin.clone())));
        let log = self.log.as_ref();
        let level = log.map_or_else(|| "info for serve, warn elsewhere".to_owned(), |log| log.value.clone());
        lines.push(("log".to_owned(), level, log.map_or(Origin::Default, |log| log.origin.clone())));
        let format = self.log_format.as_ref();
        lines.extend(
            format.map(|format| ("log_format".to_owned(), format.value.word().to_owned(), format.origin.clone())),
        );
        lines.extend(self.most.shown());
        for (key, setting) in [("trusted_proxies", &self.trusted_proxies), ("allow_private", &self.allow_private)] {
            if let Some(setting) = setting {
                let networks: Vec<_> = setting.value.iter().map(Network::to_string).collect();
                lines.push((key.to_owned(), networks.join(", "), setting.origin.clone()));
            }
        }
        let unpriced = &self.allow_unpriced;
        lines.push(("allow_unpriced".to_owned(), unpriced.value.to_string(), unpriced.origin.clone()));
        if let Some(traces) = &self.traces {
            lines.push(("otlp_endpoint".to_owned(), traces.value.host(), traces.origin.clone()));
        }
        lines.extend(self.tools.shown());
        lines.push(("master key".to_owned(), self.key.value.to_string(), self.key.origin.clone()));
        lines.extend(
            self.providers.iter().map(|provider| {
                (format!("providers.{}", provider.name), provider.to_string(), provider.origin.clone())
            }),
        );
        lines
    }
}

/// Networks, with commas between them.
fn networks(text: &str) -> Option<Vec<Network>> {
    text.split(',').map(|network| network.trim().parse().ok()).collect()
}

/// Where the instance keeps its files.
fn data_directory(reader: &mut Reader<'_>, flags: &Flags, env: &Environment) -> Result<Setting<PathBuf>, Failure> {
    let flag = flags.data.as_ref().map(|path| path.to_string_lossy().into_owned());
    let named = reader.pick("data", flag);
    let named = named.map(|setting| Setting { value: absolute(&setting.value), origin: setting.origin });
    let usual = || env.folder("XDG_DATA_HOME", ".local/share").map(|value| Setting { value, origin: Origin::Default });
    named
        .or_else(usual)
        .ok_or_else(|| Failure::usage("There is no data directory: HOME is not set.").hint("name one: --data DIR"))
}

fn wrong(problems: Vec<String>) -> Failure {
    Failure::usage("The configuration cannot be used. Nothing was started.").problems(problems)
}

fn read_file(flags: &Flags, env: &Environment) -> Result<ConfigFile, Failure> {
    let named = flags.config.clone().or_else(|| env.get("ADJUTANT_CONFIG").map(PathBuf::from));
    let (path, required) = match (named, env.settings_folder()) {
        (Some(path), _) => (path, true),
        (None, Some(folder)) => (folder.join("config.toml"), false),
        (None, None) => return Ok(ConfigFile::default()),
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => file::parse(&path, &text).map_err(wrong),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => Ok(ConfigFile::default()),
        Err(error) => Err(wrong(vec![format!("{}: {error}", path.display())])),
    }
}

/// A path that keeps its meaning when the working directory changes.
fn absolute(path: &str) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path))
}

/// Where everything is kept, by the word of a person.
pub(crate) fn parse_database(text: &str) -> Option<Database> {
    match text {
        "sqlite" => Some(Database::Sqlite),
        address if address.starts_with("postgres://") || address.starts_with("postgresql://") => {
            Some(Database::Postgres(SecretString::from(address)))
        }
        _ => None,
    }
}

fn parse_durability(text: &str) -> Option<Durability> {
    match text {
        "full" => Some(Durability::Full),
        "normal" => Some(Durability::Normal),
        _ => None,
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite => f.write_str("sqlite"),
            Self::Postgres(_) => f.write_str("postgres://… (not shown)"),
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Normal => "normal",
        })
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("given (not shown)"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Data => f.write_str("master.key in the data directory"),
        }
    }
}

#[cfg(test)]
mod tests;
