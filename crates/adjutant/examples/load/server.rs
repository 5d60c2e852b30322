//! The server that is measured, whose model is the mock.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Outcome, Process, Setup, ended, told};
use crate::{machine, mock};

/// The agent of the runs.
const BENCH: &str = "bench";

/// Where it keeps everything.
pub(crate) enum Database {
    Sqlite,
    /// Beside other nodes, with their data directory.
    Postgres(String),
}

pub(crate) struct Server(Process);

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
        let provider = format!("kind = \"compatible\"\nbase_url = \"{mock}/v1\"\ncalls_at_once = 10000\n");
        let config = format!("default_model = \"mock/mock\"\nmax_runs = 4096\n[providers.mock]\n{provider}");
        let mut env = vec![("ADJUTANT_MAX_REQUESTS", "8192")];
        if let Database::Postgres(url) = database {
            env.push(("ADJUTANT_DATABASE_URL", url));
        }
        let server = Process::start(&Setup { binary, config: &config, env: &env }, data, home)?;
        server.make_agent(BENCH, &json!({})).await?;
        Ok(Self(server))
    }

    /// Makes another agent.
    pub(crate) async fn make(&self, slug: &str, more: &Value) -> Outcome {
        self.0.make_agent(slug, more).await
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.home.path().join("data")
    }

    /// How long it took until it said that it was ready.
    pub(crate) fn ready(&self) -> Duration {
        self.0.ready
    }

    /// Ends the server; what it has stays until it is opened again.
    pub(crate) fn stop(self) -> Outcome<TempDir> {
        self.0.stop()
    }

    /// A server on what another one left.
    pub(crate) async fn reopen(binary: &Path, mock: &str, home: TempDir) -> Outcome<Self> {
        let data = home.path().join("data");
        Self::at(binary, mock, &Database::Sqlite, &data, home).await
    }

    /// What it answers to a question.
    pub(crate) async fn get(&self, path: &str) -> Outcome<Value> {
        self.0.get(path).await
    }

    /// What it answers to an order.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        self.0.post(path, body).await
    }

    /// One run, to its end.
    pub(crate) async fn run(&self, message: String) -> Outcome {
        ended(&self.post("/runs?wait=60", &order(&message)).await?, mock::steps_of(&message))
    }

    /// One run whose answer is followed piece by piece.
    pub(crate) async fn follow(&self, message: String) -> Outcome {
        let request = self.0.request(Method::POST, "/runs").header("accept", "text/event-stream");
        let mut answer = request.json(&order(&message)).send().await?.error_for_status()?;
        let mut end = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            end.extend_from_slice(&piece);
            // Only the end says how it ended.
            let first = end.len().saturating_sub(4096);
            end.drain(..first);
        }
        told(&String::from_utf8_lossy(&end))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    pub(crate) fn cpu(&self) -> f64 {
        machine::cpu(self.pid())
    }

    pub(crate) fn rss_kib(&self) -> u64 {
        machine::rss_kib(self.pid())
    }
}

fn order(message: &str) -> Value {
    json!({"agent_id": BENCH, "input": message})
}
