//! An engine with a worker, a scripted model and a notebook, and the runs that are played on it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::guard::scope::{FolderEntry, ScopeSpec};
use adjutant_core::id::{AgentId, ChatId, RunId};
use adjutant_core::run::event::{Actor, Event};
use adjutant_core::run::status::Status;
use adjutant_engine::models::{Model, Scripted};
use adjutant_engine::store::{Durability, MasterKey, Reads, Sealing, Store};
use adjutant_engine::tools::Registry;
use adjutant_engine::{Engine, Env, FeedItem, Home, Parts, StartRun, Unpriced, Worker};
use futures::stream::{FuturesUnordered, StreamExt};
use tempfile::TempDir;

use crate::Outcome;

const SCRIPT: &str = r#"
- when: { user: work, turn: 5 }
  text: "That is all there is to say about it, and it took sixty-four tokens or so to say it, which is about what an answer of a model is long when it has nothing more to add than that the work is done and where the results are to be found, namely in the keys and files that were named in the task."
- when: { user: work, turn: 4 }
  calls: [{ name: list_files, arguments: { path: "/" } }]
- when: { user: work, turn: 3 }
  calls: [{ name: kv_get, arguments: { key: note } }]
- when: { user: work, turn: 2 }
  calls: [{ name: kv_set, arguments: { key: note, value: "a value of some length" } }]
- when: { user: work }
  calls: [{ name: read_file, arguments: { path: /todo.md } }]
- when: { user: ask }
  calls: [{ name: create_file, arguments: { path: /new.md, content: "something" } }]
- text: "Here is more, in a sentence or two of ordinary length, so that the chat grows as chats do."
"#;

/// What the person says, and so what kind of run it becomes.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    Work,
    Approval,
    Short,
    /// One of a chat that goes on.
    More,
}

impl Ask {
    const fn message(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Approval => "ask",
            Self::Short => "tell me",
            Self::More => "tell me more",
        }
    }

    /// The calls that end well in it: one that was refused costs less, and measuring it would flatter.
    const fn calls(self) -> usize {
        match self {
            Self::Work => 4,
            Self::Approval | Self::Short | Self::More => 0,
        }
    }
}

pub(crate) struct Stage {
    data: TempDir,
    engine: Engine,
    worker: Option<Worker>,
    home: Home,
    agent: AgentId,
}

/// What the content is sealed with.
const KEY: [u8; 32] = [7; 32];

async fn engine(data: &Path, postgres: Option<&str>) -> Outcome<Engine> {
    let sealing = Sealing::On(MasterKey::new(KEY));
    let store = match postgres {
        None => Store::open_sqlite(&data.join("adjutant.db"), Durability::Full, sealing).await?,
        Some(url) => Store::open_postgres(url, sealing).await?,
    };
    let model: Arc<dyn Model> = Arc::new(Scripted::parse(SCRIPT)?);
    Ok(Engine::new(Parts {
        store,
        env: Env::system(),
        models: Arc::new(move |_: &str| Ok(Arc::clone(&model))),
        tools: Registry::builtin(),
        notebooks: data.join("notebooks"),
        default_model: "demo/guide".to_owned(),
        connector: adjutant_tools::net::Connector::default(),
        user_rate: None,
        max_runs: adjutant_core::limits::RUNS_PER_NODE,
        unpriced: Unpriced::Allow,
    })?)
}

/// Does everything by itself, but asks before it creates a file.
fn agent() -> AgentSpec {
    AgentSpec {
        name: "Bench".to_owned(),
        slug: Some("bench".to_owned()),
        scope: Some(ScopeSpec {
            notebooks: Some(vec!["*".to_owned()]),
            folders: Some(vec![FolderEntry::Pattern("/".to_owned())]),
            ..ScopeSpec::default()
        }),
        can_write: Some(true),
        can_create: Some(true),
        toolsets: Some(["files", "kv"].map(str::to_owned).into()),
        autonomy: Some(Autonomy::Full),
        requires_approval: Some(["create_file".to_owned()].into()),
        // What is measured is the work, not the waiting for room in a rate.
        max_requests_per_hour: Some(u32::MAX),
        max_concurrent_runs: Some(10_000),
        ..AgentSpec::default()
    }
}

impl Stage {
    pub(crate) async fn sqlite() -> Outcome<Self> {
        Self::open(None).await
    }

    pub(crate) async fn postgres(url: &str) -> Outcome<Self> {
        Self::open(Some(url)).await
    }

    async fn open(postgres: Option<&str>) -> Outcome<Self> {
        let data = TempDir::new()?;
        let engine = engine(data.path(), postgres).await?;
        let home = engine.home().await?;
        let agent = match engine.find_agent(home.workspace, "bench").await {
            Ok(agent) => agent.id,
            Err(_) => engine.save_agent(home.workspace, Actor::User(home.user), agent(), 0).await?.id,
        };
        let worker = Some(engine.start_worker().await?);
        Ok(Self { data, engine, worker, home, agent })
    }

    /// Starts runs, so many at a time, and waits until each has ended or waits for a person. Answers with the last one.
    pub(crate) async fn play(&self, ask: Ask, at_once: usize, runs: usize) -> Outcome<RunId> {
        let mut playing = FuturesUnordered::new();
        let (mut started, mut last) = (0, None);
        while started < runs || !playing.is_empty() {
            while started < runs && playing.len() < at_once {
                playing.push(self.one(None, ask));
                started += 1;
            }
            if let Some(run) = playing.next().await {
                last = Some(run?);
            }
        }
        last.ok_or_else(|| "no run was played".into())
    }

    /// Plays one run to its end, or until it waits.
    pub(crate) async fn one(&self, chat: Option<ChatId>, ask: Ask) -> Outcome<RunId> {
        let start = StartRun { chat, ..StartRun::new(self.home.user, self.agent, ask.message()) };
        let run = self.engine.start_run(self.home.workspace, start).await?;
        let mut follower = self.engine.follow(self.home.workspace, run, 1);
        let mut done = 0;
        while let Some(item) = follower.next().await? {
            let FeedItem::Event(recorded) = item else { continue };
            if let Event::CallEnded(call) = &recorded.event {
                done += usize::from(!call.is_error);
            } else if let Event::ApprovalAsked(_) = &recorded.event {
                break;
            }
        }
        if done == ask.calls() { Ok(run) } else { Err(format!("{run}: {done} of {} calls", ask.calls()).into()) }
    }

    pub(crate) async fn chat_of(&self, run: RunId) -> Outcome<ChatId> {
        Ok(self.engine.run_row(self.home.workspace, run).await?.chat)
    }

    pub(crate) async fn events(&self, run: RunId) -> Outcome<u64> {
        let row = self.engine.run_row(self.home.workspace, run).await?;
        if !Status::parse(&row.state.status)
            .is_some_and(|status| status == Status::Completed || status == Status::WaitingApproval)
        {
            return Err(format!("{run} is {}: {}", row.state.status, row.state.summary).into());
        }
        Ok(row.head.seq)
    }

    /// Bytes of context the run's last model call was shown, as tokens say it.
    pub(crate) async fn context(&self, run: RunId) -> Outcome<u64> {
        Ok(self.engine.report(self.home.workspace, run).await?.token_usage.input * 4)
    }

    pub(crate) fn reads(&self) -> Reads {
        self.engine.store().reads()
    }

    pub(crate) async fn bytes(&self) -> Outcome<u64> {
        Ok(self.engine.store().health().await?.bytes)
    }

    /// Closes everything.
    pub(crate) async fn close(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.stop().await;
        }
        self.engine.store().clone().close().await;
    }

    /// Starts a server on what was closed, and measures how long it takes until it says that it is ready.
    pub(crate) fn serve(&self, binary: &Path) -> Outcome<Duration> {
        let from = Instant::now();
        let mut server = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--no-open", "--log", "error", "--data"])
            .arg(self.data.path())
            .env_clear()
            .env("HOME", self.data.path())
            .env("ADJUTANT_SECRET_KEY", "07".repeat(KEY.len()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(server.stdout.take().ok_or("the server says nothing")?).read_line(&mut line)?;
        let ready = from.elapsed();
        server.kill()?;
        server.wait()?;
        if line.starts_with("adjutant ready on ") { Ok(ready) } else { Err("the server did not start".into()) }
    }
}
