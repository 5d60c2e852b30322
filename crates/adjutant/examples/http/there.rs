//! The same runs through a server of its own, over loopback.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::here::CALLS;
use crate::{Outcome, SCRIPT};

const TOKEN: &str = "adj_only-for-the-measuring-of-a-server";
const CONFIG: &str =
    "default_model = \"test/script\"\n[providers.test]\nkind = \"scripted\"\nscript = \"script.yaml\"\n";

pub(crate) struct There {
    child: Child,
    client: Client,
    url: String,
    agent: String,
    _home: TempDir,
}

impl There {
    pub(crate) async fn open(binary: &Path) -> Outcome<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let home = TempDir::new()?;
        let config = home.path().join("config.toml");
        std::fs::write(&config, CONFIG)?;
        std::fs::write(home.path().join("script.yaml"), SCRIPT)?;
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--no-open", "--log", "error"])
            .arg("--data")
            .arg(home.path().join("data"))
            .arg("--config")
            .arg(&config)
            .env_clear()
            .env("HOME", home.path())
            .env("ADJUTANT_BOOTSTRAP_TOKEN", TOKEN)
            .env("ADJUTANT_USER_CALLS_PER_MINUTE", CALLS.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the server says nothing")?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("adjutant ready on ").ok_or("the server did not start")?.to_owned();
        let client = Client::builder().no_proxy().build()?;
        let mut there = Self { child, client, url, agent: String::new(), _home: home };
        let agent = json!({
            "workspace_id": "home", "name": "Bench", "scope": {"notebooks": ["*"], "folders": ["/"]},
            "toolsets": ["files", "kv"], "autonomy": "full", "max_requests_per_hour": CALLS,
            "budget": {"run_usd": null, "month_usd": null},
        });
        there.agent = text(&there.post("/agents", &agent).await?["id"]);
        Ok(there)
    }

    async fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        let request = self.client.post(format!("{}/api/v1{path}", self.url)).bearer_auth(TOKEN).json(body);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    fn body(&self, message: &str) -> Value {
        json!({"agent_id": self.agent, "input": message})
    }

    pub(crate) async fn start(&self, message: &str) -> Outcome<String> {
        Ok(text(&self.post("/runs", &self.body(message)).await?["id"]))
    }

    pub(crate) async fn end(&self, run: &str) -> Outcome {
        let request = self.client.get(format!("{}/api/v1/runs/{run}?wait=60", self.url)).bearer_auth(TOKEN);
        ended(&request.send().await?.error_for_status()?.json().await?)
    }

    pub(crate) async fn run(&self, message: &str) -> Outcome {
        ended(&self.post("/runs?wait=60", &self.body(message)).await?)
    }

    /// When the first piece of the answer was there; the run is over when this comes back.
    pub(crate) async fn first_piece(&self, message: &str) -> Outcome<Instant> {
        let url = format!("{}/api/v1/runs", self.url);
        let request = self.client.post(url).bearer_auth(TOKEN).header("accept", "text/event-stream");
        let mut answer = request.json(&self.body(message)).send().await?.error_for_status()?;
        let (mut first, mut seen) = (None, Vec::new());
        while let Some(piece) = answer.chunk().await? {
            seen.extend_from_slice(&piece);
            if first.is_none() && String::from_utf8_lossy(&seen).contains("event: answer_delta") {
                first = Some(Instant::now());
            }
        }
        Ok(first.unwrap_or_else(Instant::now))
    }

    /// Reads a run from its first event to its last, and counts them.
    pub(crate) async fn read(&self, run: &str) -> Outcome<usize> {
        let url = format!("{}/api/v1/runs/{run}/events", self.url);
        let request = self.client.get(url).bearer_auth(TOKEN).header("accept", "text/event-stream");
        let text = request.send().await?.error_for_status()?.text().await?;
        Ok(text.matches("\nevent: ").count())
    }
}

impl Drop for There {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn ended(run: &Value) -> Outcome {
    if run["status"] == "COMPLETED" { Ok(()) } else { Err(format!("a run did not end well: {run}").into()) }
}
