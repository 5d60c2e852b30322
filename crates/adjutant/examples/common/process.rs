//! The server that is measured: the real binary, in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MANY, Outcome};

const TOKEN: &str = "adj_only-for-the-measuring-of-a-server";

/// How a server is started.
pub(crate) struct Setup<'a> {
    pub(crate) binary: &'a Path,
    /// What its configuration file says.
    pub(crate) config: &'a str,
    pub(crate) env: &'a [(&'a str, &'a str)],
}

/// A server that runs.
pub(crate) struct Process {
    child: Child,
    client: Client,
    url: String,
    /// How long it took until it said that it was ready.
    pub(crate) ready: Duration,
    pub(crate) home: TempDir,
}

impl Process {
    /// Starts one on a data directory; what else it reads is in a folder that goes with it.
    pub(crate) fn start(setup: &Setup<'_>, data: &Path, home: TempDir) -> Outcome<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = home.path().join("config.toml");
        std::fs::write(&config, setup.config)?;
        let mut command = Command::new(setup.binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-open", "--log", "error"]);
        command.arg("--data").arg(data).arg("--config").arg(&config);
        command.env_clear().env("HOME", home.path()).env("ADJUTANT_BOOTSTRAP_TOKEN", TOKEN);
        command.env("ADJUTANT_USER_CALLS_PER_MINUTE", MANY.to_string()).envs(setup.env.iter().copied());
        let from = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the server says nothing")?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("adjutant ready on ").ok_or("the server did not start")?.to_owned();
        Ok(Self { child, client: Client::builder().no_proxy().build()?, url, ready: from.elapsed(), home })
    }

    /// Ends it in order; what it has stays until it is opened again.
    pub(crate) fn stop(mut self) -> Outcome<TempDir> {
        let asked = Command::new("kill").arg(self.pid().to_string()).status()?;
        if !asked.success() || !self.child.wait()?.success() {
            return Err("the server did not end in order".into());
        }
        Ok(std::mem::replace(&mut self.home, TempDir::new()?))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/api/v1{path}", self.url)).bearer_auth(TOKEN)
    }

    /// What it answers to a question.
    pub(crate) async fn get(&self, path: &str) -> Outcome<Value> {
        Ok(self.request(Method::GET, path).send().await?.error_for_status()?.json().await?)
    }

    /// What it answers to an order.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        Ok(self.request(Method::POST, path).json(body).send().await?.error_for_status()?.json().await?)
    }

    /// Makes an agent that reads everything, keeps what it likes under keys and has no limits, with these fields beside. A second
    /// node, and a second start, find it there.
    pub(crate) async fn make_agent(&self, slug: &str, more: &Value) -> Outcome {
        let mut agent = json!({
            "workspace_id": "home", "name": slug, "slug": slug, "scope": {"notebooks": ["*"], "folders": ["/"]},
            "toolsets": ["files", "kv"], "permission_level": "write", "autonomy": "full", "max_requests_per_hour": MANY,
            "max_concurrent_runs": 10_000,
            "budget": {"run_usd": null, "month_usd": null},
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            agent[name] = value.clone();
        }
        let made = self.request(Method::POST, "/agents").json(&agent).send().await?;
        match made.status().as_u16() {
            201 | 409 | 422 => Ok(()),
            _ => Err(made.text().await?.into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
