//! The nodes of a test: processes of their own on one database and one data directory, each with the model it is given.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, OWNER, Sent, Stream};
use crate::house::{House, signal, skip, text};

/// How long something may take that others wait for: far more than it needs, so that only what hangs is stopped.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A database, a data directory, and the nodes that share them.
pub(crate) struct Cluster {
    pub(crate) house: House,
    agent: &'static str,
}

/// One node.
pub(crate) struct Node {
    child: Child,
    address: String,
    clock: PathBuf,
}

/// An agent that may do everything at once, and has a bell.
const KEEPER: &str = "---
name: Keeper
autonomy: full
can_write: true
can_create: true
tools: read_file, kv_set, write_file, ring_bell
scope:
  notebooks: [\"*\"]
  folders: [/]
---
Make the rounds.
";

impl Cluster {
    /// A place for nodes; none, with a word about it, where there is no PostgreSQL.
    pub(crate) fn new() -> Option<Self> {
        if std::env::var("ADJUTANT_TEST_POSTGRES").is_err() {
            skip("several nodes", "ADJUTANT_TEST_POSTGRES is not set");
            return None;
        }
        let house = House::new();
        let agents = house.data().join("agents");
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(agents.join("keeper.md"), KEEPER).unwrap();
        Some(Self { house, agent: "keeper" })
    }

    /// Starts a node whose model follows this script.
    pub(crate) fn node(&self, script: &str) -> Node {
        self.node_at(script, None)
    }

    /// As [`Cluster::node`], with another way to the database.
    pub(crate) fn node_at(&self, script: &str, database: Option<&str>) -> Node {
        self.try_node_at(script, database).unwrap_or_else(|said| panic!("{said}"))
    }

    /// The same; a node that does not start is told by what it said.
    pub(crate) fn try_node_at(&self, script: &str, database: Option<&str>) -> Result<Node, String> {
        let number = made();
        let file = format!("node-{number}.yaml");
        std::fs::write(self.house.path().join(&file), script).unwrap();
        self.started(number, &format!("kind = \"scripted\"\nscript = \"{file}\"\n"), database)
    }

    /// Starts a node whose models are behind this address.
    pub(crate) fn node_asking(&self, base_url: &str) -> Node {
        let provider = format!("kind = \"compatible\"\nbase_url = \"{base_url}\"\n");
        self.started(made(), &provider, None).unwrap_or_else(|said| panic!("{said}"))
    }

    fn started(&self, number: u32, provider: &str, database: Option<&str>) -> Result<Node, String> {
        let path = |end: &str| self.house.path().join(format!("node-{number}.{end}"));
        let prices = "input_usd = \"1\"\noutput_usd = \"1\"\n";
        let config = format!("default_model = \"test/script\"\n[providers.test]\n{prices}{provider}");
        std::fs::write(path("toml"), config).unwrap();
        let mut command = self.house.command(&["serve", "--listen", "127.0.0.1:0", "--no-open"]);
        command.env("ADJUTANT_CONFIG", path("toml")).env("ADJUTANT_BOOTSTRAP_TOKEN", OWNER);
        command.env("ADJUTANT_CLOCK", path("clock"));
        command.env("ADJUTANT_BELL", self.bell()).env("ADJUTANT_USER_CALLS_PER_MINUTE", "1000000");
        command.envs(database.map(|url| ("ADJUTANT_DATABASE_URL", url)));
        let log = std::fs::File::create(path("log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        match line.trim().strip_prefix("adjutant ready on http://") {
            Some(address) => Ok(Node { address: address.to_owned(), child, clock: path("clock") }),
            None => {
                child.wait().unwrap();
                Err(std::fs::read_to_string(path("log")).unwrap_or_default())
            }
        }
    }

    /// The bell that every ring of `ring_bell` is written to.
    pub(crate) fn bell(&self) -> PathBuf {
        self.house.path().join("bell")
    }

    /// Makes the bell a pipe: whoever rings it waits until somebody listens.
    pub(crate) fn quiet_bell(&self) {
        let made = std::process::Command::new("mkfifo").arg(self.bell()).status().unwrap();
        assert!(made.success());
    }

    /// Lets the leases of whoever died run out at once.
    pub(crate) fn leases_run_out(&self) {
        self.house.sql("UPDATE nodes SET expires = 0");
    }

    /// Waits until a statement gives this.
    pub(crate) fn until(&self, sql: &str, wanted: &str) {
        let begun = Instant::now();
        loop {
            let found = self.house.sql(sql);
            if found == wanted {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{sql} gives {found:?}, not {wanted:?}");
        }
    }

    /// Starts a run at a node without waiting for it; says its id.
    pub(crate) fn start(&self, node: &Node, input: &str) -> String {
        let begun = node.owner().post("/api/v1/runs", json!({"agent_id": self.agent, "input": input}));
        text(&begun.expect(202)["id"])
    }
}

impl Node {
    pub(crate) fn owner(&self) -> Client {
        Client::at(&self.address).with("authorization", &format!("Bearer {OWNER}"))
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Follows a run from its beginning.
    pub(crate) fn follow(&self, run: &str) -> Stream {
        self.owner().follow("GET", &format!("/api/v1/runs/{run}/events"), None)
    }

    /// A run as this node sees it.
    pub(crate) fn run(&self, run: &str) -> Value {
        self.owner().get(&format!("/api/v1/runs/{run}")).expect(200)
    }

    /// Ends the process as a power cut would.
    pub(crate) fn kill(mut self) {
        signal("KILL", self.child.id());
        self.child.wait().unwrap();
    }

    /// Sets its clock off by so many seconds.
    pub(crate) fn set_clock(&self, seconds: i64) {
        // In one piece: the node reads it all the time.
        let fresh = self.clock.with_extension("fresh");
        std::fs::write(&fresh, (seconds * 1000).to_string()).unwrap();
        std::fs::rename(fresh, &self.clock).unwrap();
    }

    /// Stops the process where it is, as a machine does that sleeps; or lets it go on.
    pub(crate) fn freeze(&self, on: bool) {
        signal(if on { "STOP" } else { "CONT" }, self.child.id());
    }

    /// Asks the process to stop.
    pub(crate) fn terminate(&self) {
        signal("TERM", self.child.id());
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) {
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A test that failed must not leave its nodes behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number that no other node has.
fn made() -> u32 {
    static MADE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// The events of a stream up to one of this name, itself included.
pub(crate) fn up_to(stream: &mut Stream, name: &str) -> Vec<Sent> {
    let mut seen = Vec::new();
    for sent in stream.by_ref() {
        let found = sent.name == name;
        seen.push(sent);
        if found {
            return seen;
        }
    }
    panic!("`{name}` never came: {seen:#?}");
}
