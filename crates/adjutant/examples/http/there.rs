//! The same runs through a server of its own, over loopback.

use std::path::Path;
use std::time::Instant;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::SCRIPT;
use crate::common::{Outcome, Process, Setup, ended, told};

const CONFIG: &str =
    "default_model = \"test/script\"\n[providers.test]\nkind = \"scripted\"\nscript = \"script.yaml\"\n";
/// The agent that does everything by itself, and one that asks before it remembers something.
const FREE: &str = "bench";
const ASKING: &str = "asking";

pub(crate) struct There(Process);

impl There {
    pub(crate) async fn open(binary: &Path) -> Outcome<Self> {
        let home = TempDir::new()?;
        std::fs::write(home.path().join("script.yaml"), SCRIPT)?;
        let data = home.path().join("data");
        let server = Process::start(&Setup { binary, config: CONFIG, env: &[] }, &data, home)?;
        server.make_agent(FREE, &json!({})).await?;
        server.make_agent(ASKING, &json!({"requires_approval": ["kv_set"]})).await?;
        Ok(Self(server))
    }

    pub(crate) async fn start(&self, message: &str) -> Outcome<String> {
        Ok(text(&self.0.post("/runs", &order(FREE, message)).await?["id"]))
    }

    pub(crate) async fn end(&self, run: &str, calls: usize) -> Outcome {
        ended(&self.0.get(&format!("/runs/{run}?wait=60")).await?, calls)
    }

    pub(crate) async fn run(&self, message: &str, calls: usize) -> Outcome {
        ended(&self.0.post("/runs?wait=60", &order(FREE, message)).await?, calls)
    }

    /// When the first piece of the answer was there, or all of it; the run is over when this comes back.
    pub(crate) async fn first_piece(&self, message: &str) -> Outcome<Instant> {
        let request = self.0.request(Method::POST, "/runs").header("accept", "text/event-stream");
        let mut answer = request.json(&order(FREE, message)).send().await?.error_for_status()?;
        let (mut first, mut seen) = (None, Vec::new());
        while let Some(piece) = answer.chunk().await? {
            seen.extend_from_slice(&piece);
            if first.is_none() && String::from_utf8_lossy(&seen).contains("event: answer") {
                first = Some(Instant::now());
            }
        }
        told(&String::from_utf8_lossy(&seen))?;
        first.ok_or_else(|| "a run did not answer".into())
    }

    /// A run that waits for a yes: it, and what it asks.
    pub(crate) async fn ask(&self, message: &str) -> Outcome<(String, String)> {
        let run = self.0.post("/runs?wait=60", &order(ASKING, message)).await?;
        match (run["id"].as_str(), run["pending_approvals"][0].as_str()) {
            (Some(id), Some(question)) => Ok((id.to_owned(), question.to_owned())),
            _ => Err(format!("a run did not ask: {run}").into()),
        }
    }

    pub(crate) async fn approve(&self, question: &str) -> Outcome {
        let yes = json!({"decision": "approve"});
        self.0.post(&format!("/approvals/{question}/decision"), &yes).await.map(drop)
    }

    /// Somebody who reads a run that waits, and has all there is of it so far.
    pub(crate) async fn join(&self, run: &str) -> Outcome<Reader> {
        let request = self.0.request(Method::GET, &format!("/runs/{run}/events")).header("accept", "text/event-stream");
        let mut reader = Reader { answer: request.send().await?.error_for_status()?, seen: String::new() };
        while !reader.seen.contains("event: approval_required") {
            if !reader.more().await? {
                return Err("a stream ended before its run did".into());
            }
        }
        Ok(reader)
    }
}

/// Somebody who reads a run.
pub(crate) struct Reader {
    answer: Response,
    seen: String,
}

impl Reader {
    async fn more(&mut self) -> Outcome<bool> {
        let piece = self.answer.chunk().await?;
        self.seen.extend(piece.iter().map(|piece| String::from_utf8_lossy(piece)));
        Ok(piece.is_some())
    }

    /// Reads on to the end, and counts what came.
    pub(crate) async fn rest(mut self) -> Outcome<usize> {
        self.seen.clear();
        while self.more().await? {}
        told(&self.seen)?;
        Ok(self.seen.matches("event: ").count())
    }
}

fn order(agent: &str, message: &str) -> Value {
    json!({"agent_id": agent, "input": message})
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
