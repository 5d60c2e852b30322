//! A data directory, a database and a bell of its own, and the binary to use them with. Everything it starts is bounded, and
//! nothing of the machine's own settings gets in.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection};
use tokio::process::Command;

/// How long one process may take: far more than it needs, so that only one that hangs is stopped.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// What the agent does in turn 1, 2, … once it is told to make the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Story {
    /// One tool after the other, a turn for each.
    InARow,
    /// All of them in one turn.
    SideBySide,
}

/// Where the log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Sqlite,
    Postgres,
}

impl Base {
    /// Those that are here; says which is not.
    pub(crate) fn all() -> Vec<Self> {
        if server().is_some() {
            return vec![Self::Sqlite, Self::Postgres];
        }
        aloud("skipped: crashes on PostgreSQL, because ADJUTANT_TEST_POSTGRES is not set");
        vec![Self::Sqlite]
    }
}

/// Writes past the test harness, which would swallow it.
pub(crate) fn aloud(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn server() -> Option<String> {
    std::env::var("ADJUTANT_TEST_POSTGRES").ok().filter(|url| !url.is_empty())
}

/// The binary under a name of its own, because another build may replace it while the tests run. Names that earlier tests
/// have left are taken away: each of them would keep an old binary on the disk.
static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let made_by = name.strip_prefix("adjutant-crash-").map(|pid| Path::new("/proc").join(pid));
        if made_by.is_some_and(|process| !process.exists()) {
            let _ = std::fs::remove_file(folder.join(name));
        }
    }
    let own = folder.join(format!("adjutant-crash-{}", std::process::id()));
    let _ = std::fs::remove_file(&own);
    std::fs::hard_link(env!("CARGO_BIN_EXE_adjutant"), &own).unwrap();
    own
});

/// Runs a test's story. One test at a time: the machine is small, and each of them keeps it busy.
pub(crate) fn live(story: impl Future<Output = ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(story);
}

/// One instance.
pub(crate) struct House {
    folder: tempfile::TempDir,
    database: Option<url::Url>,
}

/// What a process did.
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

const TASK: &str = "make the rounds";
const QUESTION: &str = "what do you keep";
/// What is kept under the key `rounds`.
pub(crate) const KEPT: &str = "made by night";
/// What is written into the file.
pub(crate) const WRITTEN: &str = "# Rounds\n\nEvery door was locked.\n";
/// The file that is written; it is there before, with something else in it.
pub(crate) const FILE: &str = "todo.md";
/// What the bell is rung for.
pub(crate) const RUNG: &str = "all is well";

const AGENT: &str = "---
name: Keeper
autonomy: full
can_write: true
can_create: true
tools: read_file, kv_set, kv_get, write_file, ring_bell
scope:
  notebooks: [\"*\"]
  folders: [/]
---
Make the rounds.
";

impl House {
    pub(crate) async fn new(story: Story, base: Base) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = match base {
            Base::Sqlite => None,
            Base::Postgres => Some(new_database().await),
        };
        let house = Self { folder, database };
        let config = house.path().join(".config/adjutant");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::create_dir_all(house.path().join("data/agents")).unwrap();
        std::fs::write(
            config.join("config.toml"),
            "default_model = \"test/script\"\n[providers.test]\nkind = \"scripted\"\nscript = \"../../script.json\"\n",
        )
        .unwrap();
        std::fs::write(house.path().join("data/agents/keeper.md"), AGENT).unwrap();
        house.script(story, None);
        house
    }

    /// What the model says. The turn that dawdles takes longer than any test has patience.
    pub(crate) fn script(&self, story: Story, dawdles: Option<usize>) {
        let calls = serde_json::json!([
            {"name": "read_file", "arguments": {"path": "/welcome.md"}},
            {"name": "kv_set", "arguments": {"key": "rounds", "value": KEPT}},
            {"name": "write_file", "arguments": {"path": format!("/{FILE}"), "content": WRITTEN}},
            {"name": "ring_bell", "arguments": {"text": RUNG}},
        ]);
        let calls = calls.as_array().unwrap();
        let turns: Vec<Vec<Value>> = match story {
            Story::InARow => calls.iter().map(|call| vec![call.clone()]).collect(),
            Story::SideBySide => vec![calls.clone()],
        };
        let last = serde_json::json!({"when": {"user": TASK}, "text": "The rounds are made."});
        let mut rules: Vec<Value> = turns
            .into_iter()
            .enumerate()
            .map(|(at, calls)| serde_json::json!({"when": {"user": TASK, "turn": at + 1}, "calls": calls}))
            .chain([
                last,
                serde_json::json!({
                    "when": {"user": QUESTION, "turn": 1},
                    "calls": [{"name": "kv_get", "arguments": {"key": "rounds"}}],
                }),
                serde_json::json!({"when": {"user": QUESTION}, "text": "${result:kv_get}"}),
            ])
            .collect();
        if let Some(turn) = dawdles {
            rules[turn - 1]["delay_ms"] = serde_json::json!(2 * PATIENCE.as_millis());
        }
        std::fs::write(self.path().join("script.json"), serde_json::to_string(&rules).unwrap()).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The address of its database, if that is PostgreSQL.
    pub(crate) fn database(&self) -> Option<&str> {
        self.database.as_ref().map(url::Url::as_str)
    }

    pub(crate) fn bell(&self) -> PathBuf {
        self.path().join("bell")
    }

    /// The folder of the notebook that every instance begins with; none before that.
    pub(crate) fn notebook(&self) -> Option<PathBuf> {
        // Beside them there may be the file that says whose they are.
        let entries = std::fs::read_dir(self.path().join("data/notebooks")).ok()?.flatten();
        entries.map(|entry| entry.path()).find(|path| path.is_dir())
    }

    /// The binary with its data directory and a clean environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&*BINARY);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.path()).env("ADJUTANT_BELL", self.bell());
        if let Some(url) = &self.database {
            command.env("ADJUTANT_DATABASE_URL", url.as_str());
        }
        command.arg("--data").arg(self.path().join("data")).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// The command that gives the agent its task.
    pub(crate) fn start(&self) -> Command {
        self.command(&["run", "keeper", TASK, "--json", "--approve", "fail"])
    }

    /// Runs a command to its end.
    pub(crate) async fn adjutant(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments)).await
    }

    /// Runs a command that has to succeed, and reads the one document it prints.
    pub(crate) async fn document(&self, arguments: &[&str]) -> Value {
        let done = self.adjutant(&[arguments, &["--json"]].concat()).await;
        assert_eq!(done.status.code(), Some(0), "{arguments:?}: {done}");
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {done}"))
    }

    /// What the agent finds under its key, asked through a run of its own.
    pub(crate) async fn kept(&self) -> String {
        let done = self.adjutant(&["run", "keeper", QUESTION, "--approve", "fail"]).await;
        assert_eq!(done.status.code(), Some(0), "{done}");
        done.out.trim_end().to_owned()
    }

    /// Lets the lease of whoever died run out at once. The data directory of SQLite is locked, which says the same.
    pub(crate) async fn lease_runs_out(&self) {
        if let Some(url) = &self.database {
            execute(url.as_str(), "UPDATE nodes SET expires = 0").await;
        }
    }

    /// Takes the house down. What is left behind by a test that failed is the evidence.
    pub(crate) async fn end(self) {
        if let (Some(url), Some(server)) = (&self.database, server()) {
            execute(&server, &format!("DROP DATABASE {} WITH (FORCE)", url.path().trim_start_matches('/'))).await;
        }
    }
}

impl Done {
    pub(crate) async fn of(mut command: Command) -> Self {
        let output = tokio::time::timeout(PATIENCE, command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("it hangs: {command:?}")).unwrap();
        let read = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { status: output.status, out: read(output.stdout), err: read(output.stderr) }
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n--- out\n{}--- err\n{}", self.status, self.out, self.err)
    }
}

async fn new_database() -> url::Url {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = server().unwrap();
    let name = format!("adjutant_crash_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    execute(&server, &format!("CREATE DATABASE {name}")).await;
    let mut url: url::Url = server.parse().unwrap();
    url.set_path(&name);
    url
}

async fn execute(url: &str, sql: &str) {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
