//! The stories, by what they are about, and the stage they play on.

mod again;
mod approvals;
mod audit;
mod backtest;
mod branches;
mod cancel;
mod earlier;
mod filter;
mod followed;
mod gone;
mod halt;
mod home;
mod labels;
mod late;
mod limits;
mod meta;
mod money;
mod newer;
mod paid;
mod provider;
mod races;
mod rates;
mod rebuild;
mod rules;
mod schema;
mod search;
mod undo;
mod web;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use adjutant_core::time::Time;
use adjutant_engine::models::Scripted;
use adjutant_engine::{Agent, AgentBuilder, Env, Source, StartRun};
use tempfile::TempDir;

/// A folder of files and a folder of data, both gone at the end.
pub(crate) struct Stage {
    folder: TempDir,
    data: TempDir,
}

impl Stage {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap(), data: tempfile::tempdir().unwrap() };
        for (path, text) in files {
            let file = stage.path(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        stage
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Changes the database behind the engine's back.
    pub(crate) fn tamper(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.data.path().join("adjutant.db")).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// An agent that may read and write everything here and answers from a script.
    pub(crate) fn agent(&self, script: &str) -> AgentBuilder {
        self.bare().model(Scripted::parse(script).unwrap())
    }

    /// An agent on the same data whose notebook is not named again.
    pub(crate) fn elsewhere(&self, script: &str) -> AgentBuilder {
        Agent::builder("Tester")
            .toolsets(["files", "kv"])
            .can_write()
            .configure(|spec| {
                spec.scope = Some(serde_json::from_str(r#"{"notebooks":["*"],"folders":["/"]}"#).unwrap());
            })
            .data(self.data.path())
            .model(Scripted::parse(script).unwrap())
    }

    /// The same with the demo model.
    pub(crate) fn bare(&self) -> AgentBuilder {
        let (folder, data) = (self.folder.path(), self.data.path());
        Agent::builder("Tester").notebook(folder, ["/"]).toolsets(["files", "kv"]).can_write().data(data)
    }
}

/// A run that somebody else may drive.
pub(crate) fn ask(agent: &Agent) -> StartRun {
    StartRun::new(agent.user(), agent.id(), "go")
}

/// A clock that goes on only when it is told to.
#[derive(Clone)]
pub(crate) struct Clock(Arc<AtomicI64>);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(Env::system().now().millis())))
    }

    pub(crate) fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    pub(crate) fn env(&self) -> Env {
        Env::new(Arc::new(self.clone()))
    }
}

impl Source for Clock {
    fn now(&self) -> Time {
        Time::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn fill(&self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = Env::system().random::<1>()[0];
        }
    }
}
