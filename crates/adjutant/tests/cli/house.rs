//! A data directory of its own, and the binary to use it with. Nothing of the machine's own settings gets in.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_adjutant");

/// One instance and its home.
pub(crate) struct House {
    folder: tempfile::TempDir,
    database: Option<Database>,
}

/// Where the houses of a test binary keep what they know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Sqlite,
    Postgres,
}

/// A database on the test server, gone at the end.
struct Database {
    server: String,
    name: String,
}

impl Database {
    fn new(server: String) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let database = Self { server, name: format!("adjutant_cli_{}_{number}", std::process::id()) };
        assert!(database.psql(&format!("CREATE DATABASE {}", database.name)), "psql cannot make a database there");
        database
    }

    fn psql(&self, sql: &str) -> bool {
        Command::new("psql").arg(&self.server).arg("-qc").arg(sql).status().is_ok_and(|status| status.success())
    }

    fn url(&self) -> String {
        let (base, options) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let mark = if options.is_empty() { "" } else { "?" };
        format!("{}/{}{mark}{options}", base.rsplit_once('/').unwrap().0, self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.psql(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// What a command did.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl House {
    pub(crate) fn new() -> Self {
        Self::on(crate::BASE)
    }

    pub(crate) fn on(base: Base) -> Self {
        let database = match base {
            Base::Sqlite => None,
            Base::Postgres => match std::env::var("ADJUTANT_TEST_POSTGRES") {
                Ok(server) => Some(Database::new(server)),
                Err(_) => {
                    skip("PostgreSQL", "ADJUTANT_TEST_POSTGRES is not set; SQLite is used once more");
                    None
                }
            },
        };
        Self { folder: tempfile::tempdir().unwrap(), database }
    }

    /// What it stands on, in the server's words.
    pub(crate) fn backend(&self) -> &'static str {
        if self.database.is_some() { "postgres" } else { "sqlite" }
    }

    /// What a statement gives, asked past the binary; empty where the house stands on SQLite.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let Some(database) = &self.database else { return String::new() };
        let done = Done::of(Command::new("psql").arg(database.url()).args(["-Atqc", sql]));
        assert_eq!(done.code, Some(0), "{done}");
        done.out.trim_end().to_owned()
    }

    /// Changes its database behind the binary's back.
    pub(crate) fn tamper(&self, sql: &str) {
        if self.database.is_some() {
            self.sql(sql);
            return;
        }
        rusqlite::Connection::open(self.data().join("adjutant.db")).unwrap().execute_batch(sql).unwrap();
    }

    /// The address of its database, if that is PostgreSQL.
    pub(crate) fn database(&self) -> Option<String> {
        self.database.as_ref().map(Database::url)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The binary with its data directory and a clean environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        self.prepare(&mut command);
        command.arg("--data").arg(self.data()).args(arguments);
        command
    }

    /// A clean environment for any program.
    pub(crate) fn prepare(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.path()).stdin(Stdio::null());
        // Whatever runs on the machine of the tests is not found.
        command.env("OLLAMA_HOST", "127.0.0.1:1");
        if let Some(database) = &self.database {
            command.env("ADJUTANT_DATABASE_URL", database.url());
        }
    }

    /// A command as hints name it: with the data directory that it was given.
    pub(crate) fn hint(&self, command: &str) -> String {
        format!("adjutant --data {} {command}", self.data().display())
    }

    /// Runs a command to its end.
    pub(crate) fn adjutant(&self, arguments: &[&str]) -> Done {
        Done::of(&mut self.command(arguments))
    }

    /// Runs a command that has to succeed, and reads the one document it prints.
    pub(crate) fn document(&self, arguments: &[&str]) -> Value {
        let done = self.adjutant(&[arguments, &["--json"]].concat());
        assert_eq!(done.code, Some(0), "{done}");
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done}"))
    }

    /// The files of the sample notebook.
    pub(crate) fn note(&self, name: &str) -> PathBuf {
        // Beside them there may be the file that says whose they are.
        let mut entries = std::fs::read_dir(self.data().join("notebooks")).unwrap().flatten();
        let notebook = entries.find(|entry| entry.path().is_dir()).unwrap();
        notebook.path().join(name)
    }

    /// Starts the run of the tour and leaves it where it asks. Says its id and that of the question.
    pub(crate) fn asked(&self) -> (String, String) {
        let done = self.adjutant(&["run", "tidy the welcome notes", "--json", "--approve", "fail"]);
        assert_eq!(done.code, Some(5), "{done}");
        let question = done.events().pop().unwrap();
        assert_eq!(question["event"], "approval_required");
        (text(&question["data"]["run_id"]), text(&question["data"]["approval_id"]))
    }

    /// The configuration file of this home.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.path().join(".config/adjutant");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// A configuration with one scripted provider named `test` that always says the same and costs a dollar for a million
    /// tokens.
    pub(crate) fn priced(&self) {
        std::fs::write(self.path().join("script.yaml"), "- text: Done.\n").unwrap();
        let provider = "[providers.test]\nkind = \"scripted\"\nscript = \"../../script.yaml\"\ninput_usd = \"1\"\noutput_usd = \"1\"\n";
        self.configure(&format!("default_model = \"test/script\"\n{provider}"));
    }

    /// A configuration with one scripted provider named `test`.
    pub(crate) fn script(&self, script: &str) {
        std::fs::write(self.path().join("script.yaml"), script).unwrap();
        let provider = "[providers.test]\nkind = \"scripted\"\nscript = \"../../script.yaml\"\n";
        self.configure(&format!("default_model = \"test/script\"\n{provider}"));
    }
}

/// The text of a value that has to be one.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

impl From<std::process::Output> for Done {
    fn from(output: std::process::Output) -> Self {
        let read = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: read(output.stdout), err: read(output.stderr) }
    }
}

impl Done {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Runs a command that reads this.
    pub(crate) fn with_input(command: &mut Command, input: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        Self::from(child.wait_with_output().unwrap())
    }

    /// Every line of standard output as an event.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        let _ = write!(text, "code {:?}\n--- out\n{}--- err\n{}", self.code, self.out, self.err);
        f.write_str(&text)
    }
}

/// Says that a test could not be made here, past the harness, which would swallow it.
pub(crate) fn skip(what: &str, why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {what}, because {why}");
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(name: &str, pid: u32) {
    let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status().unwrap();
    assert!(sent.success());
}

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.starts_with(b"0\n")
}
