//! The server that is measured: the real binary, in a process of its own, whose model is the mock.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Outcome, machine};

const TOKEN: &str = "adj_only-for-the-measuring-of-a-server";
/// More than anybody does here.
const MANY: u32 = 100_000_000;

/// Where it keeps everything.
pub(crate) enum Database {
    Sqlite,
    /// Beside other nodes, with their data directory.
    Postgres(String),
}

pub(crate) struct Server {
    child: Child,
    client: Client,
    url: String,
    /// How long it took until it said that it was ready.
    pub(crate) ready: Duration,
    home: TempDir,
}

impl Server {
    pub(crate) async fn open(binary: &Path, mock: &str, database: &Database) -> Outcome<Self> {
        let home = TempDir::new()?;
        let data = home.path().join("data");
        Self::at(binary, mock, database, &data, home).await
    }

    /// A further node on the data directory of the first.
    pub(crate) async fn beside(&self, binary: &Path, mock: &str, database: &Database) -> Outcome<Self> {
        Self::at(binary, mock, database, &self.data(), TempDir::new()?).await
    }

    async fn at(binary: &Path, mock: &str, database: &Database, data: &Path, home: TempDir) -> Outcome<Self> {
        let config = home.path().join("config.toml");
        let provider = format!("kind = \"compatible\"\nbase_url = \"{mock}/v1\"\ncalls_at_once = 10000\n");
        std::fs::write(
            &config,
            format!("default_model = \"mock/mock\"\nmax_runs = 4096\n[providers.mock]\n{provider}"),
        )?;
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-open", "--log", "error"]);
        command.arg("--data").arg(data).arg("--config").arg(&config);
        command.env_clear().env("HOME", home.path()).env("ADJUTANT_BOOTSTRAP_TOKEN", TOKEN);
        command.env("ADJUTANT_USER_CALLS_PER_MINUTE", MANY.to_string()).env("ADJUTANT_MAX_REQUESTS", "8192");
        if let Database::Postgres(url) = database {
            command.env("ADJUTANT_DATABASE_URL", url);
        }
        let from = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the server says nothing")?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("adjutant ready on ").ok_or("the server did not start")?.to_owned();
        let (ready, client) = (from.elapsed(), Client::builder().no_proxy().build()?);
        let server = Self { child, client, url, ready, home };
        let agent = json!({
            "workspace_id": "home", "name": "Bench", "slug": "bench", "scope": {"notebooks": ["*"], "folders": ["/"]},
            "toolsets": ["files", "kv"], "autonomy": "full", "max_requests_per_hour": MANY,
            "budget": {"run_usd": null, "month_usd": null},
        });
        server.make(&agent).await?;
        Ok(server)
    }

    /// Makes an agent. A second node, and a second start, find it there.
    pub(crate) async fn make(&self, agent: &Value) -> Outcome {
        let made =
            self.client.post(format!("{}/api/v1/agents", self.url)).bearer_auth(TOKEN).json(agent).send().await?;
        match made.status().as_u16() {
            201 | 409 | 422 => Ok(()),
            _ => Err(made.text().await?.into()),
        }
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Ends the server; what it has stays until it is opened again.
    pub(crate) fn stop(mut self) -> Outcome<TempDir> {
        signal_end(&mut self.child)?;
        Ok(std::mem::replace(&mut self.home, TempDir::new()?))
    }

    /// A server on what another one left.
    pub(crate) async fn reopen(binary: &Path, mock: &str, home: TempDir) -> Outcome<Self> {
        let data = home.path().join("data");
        Self::at(binary, mock, &Database::Sqlite, &data, home).await
    }

    /// What it answers to a question.
    pub(crate) async fn get(&self, path: &str) -> Outcome<Value> {
        let answer = self.client.get(format!("{}/api/v1{path}", self.url)).bearer_auth(TOKEN).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    /// What it answers to an order.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        let answer =
            self.client.post(format!("{}/api/v1{path}", self.url)).bearer_auth(TOKEN).json(body).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    fn order(&self, message: &str) -> reqwest::RequestBuilder {
        let body = json!({"agent_id": "bench", "input": message});
        self.client.post(format!("{}/api/v1/runs?wait=60", self.url)).bearer_auth(TOKEN).json(&body)
    }

    /// One run, to its end.
    pub(crate) async fn run(&self, message: String) -> Outcome {
        let run: Value = self.order(&message).send().await?.error_for_status()?.json().await?;
        if run["status"] == "COMPLETED" { Ok(()) } else { Err(format!("a run did not end well: {run}").into()) }
    }

    /// One run whose answer is followed piece by piece.
    pub(crate) async fn follow(&self, message: String) -> Outcome {
        let request = self.order(&message).header("accept", "text/event-stream");
        let mut answer = request.send().await?.error_for_status()?;
        let mut end = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            end.extend_from_slice(&piece);
            // Only the end says how it ended.
            let first = end.len().saturating_sub(4096);
            end.drain(..first);
        }
        let said = String::from_utf8_lossy(&end);
        if said.contains("interaction_complete") { Ok(()) } else { Err(format!("a stream ended early: {said}").into()) }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn cpu(&self) -> f64 {
        machine::cpu(self.pid())
    }

    pub(crate) fn rss_kib(&self) -> u64 {
        machine::rss_kib(self.pid())
    }
}

/// Asks a process to end, and waits until it has.
fn signal_end(child: &mut Child) -> Outcome {
    let asked = Command::new("kill").arg(child.id().to_string()).status()?;
    if asked.success() && child.wait()?.success() { Ok(()) } else { Err("the server did not end in order".into()) }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
