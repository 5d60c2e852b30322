//! The least that could do the same: a loop that calls the model and commits one row a step. It guards, records, recovers and
//! streams nothing; it is what all of that is measured against. Without the commits, and without looking at what is answered, it is
//! what the mock itself and a client can do at the most.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Outcome, TOOLS};

pub(crate) struct Bare {
    client: reqwest::Client,
    url: String,
    database: Arc<Mutex<Connection>>,
    _home: TempDir,
}

impl Bare {
    pub(crate) fn open(mock: &str) -> Outcome<Self> {
        let home = TempDir::new()?;
        let database = Connection::open(home.path().join("bare.db"))?;
        database.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE steps (id INTEGER PRIMARY KEY, body TEXT);",
        )?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("{mock}/v1/chat/completions");
        Ok(Self { client, url, database: Arc::new(Mutex::new(database)), _home: home })
    }

    pub(crate) async fn run(&self) -> Outcome {
        let mut messages = vec![json!({"role": "user", "content": "do the work"})];
        loop {
            let body = json!({"model": "mock", "stream": true, "messages": messages});
            let text = self.client.post(&self.url).json(&body).send().await?.error_for_status()?.text().await?;
            let call = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
            let call =
                call.map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0].clone()).find(|call| !call.is_null());
            self.commit(text).await?;
            let Some(call) = call else { return Ok(()) };
            let id = call["id"].clone();
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": "done"}));
        }
    }

    /// The model calls of a run, and nothing else.
    pub(crate) async fn ask_only(&self) -> Outcome {
        let said = json!({"role": "user", "content": "do the work"});
        let answer = json!({"role": "tool", "tool_call_id": "call", "content": "done"});
        for asked in 0..=TOOLS {
            let messages: Vec<_> = std::iter::once(&said).chain(std::iter::repeat_n(&answer, asked)).collect();
            let body = json!({"model": "mock", "stream": true, "messages": messages});
            self.client.post(&self.url).json(&body).send().await?.error_for_status()?.bytes().await?;
        }
        Ok(())
    }

    async fn commit(&self, body: String) -> Outcome {
        let database = Arc::clone(&self.database);
        let written = tokio::task::spawn_blocking(move || {
            let database = database.lock().unwrap_or_else(PoisonError::into_inner);
            database.prepare_cached("INSERT INTO steps (body) VALUES (?1)")?.execute([body])
        });
        written.await??;
        Ok(())
    }
}
