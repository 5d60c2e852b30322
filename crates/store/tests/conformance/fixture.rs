//! The people and things of the stories: a workspace with an agent and a chat, and runs that say what they are told to.

use std::sync::atomic::{AtomicI64, Ordering};

use adjutant_core::content::Hash;
use adjutant_core::id::{AgentId, ApprovalId, CallId, ChatId, NodeId, NotebookId, RuleId, RunId, UserId, WorkspaceId};
use adjutant_core::label::{Labelled, Labels};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::time::Time;
use adjutant_store::row::{
    AgentPeople, AgentRow, Append, ApprovalRow, Block, CallEnd, CallRow, ChatRow, Doing, NotebookRow, Owner, RuleRow,
    RunChange, RunRow, RunState, Tip, WorkspaceRow, Writer,
};
use adjutant_store::{Store, StoreError};

/// A moment in the stories.
pub(crate) fn at(millis: i64) -> Time {
    Time::from_millis(1_700_000_000_000 + millis)
}

/// A value that a run wrote that had seen nothing.
pub(crate) fn plain(text: &str) -> Labelled {
    Labelled { text: text.into(), labels: Labels::NONE }
}

/// Ids that differ and sort in the order they were made.
fn fresh() -> (Time, [u8; 10]) {
    static NEXT: AtomicI64 = AtomicI64::new(0);
    (at(NEXT.fetch_add(1, Ordering::Relaxed)), [7; 10])
}

macro_rules! fresh_ids {
    ($($name:ident $id:ident,)*) => {$(
        pub(crate) fn $name() -> $id {
            let (at, random) = fresh();
            $id::new(at, random)
        }
    )*};
}

fresh_ids! {
    workspace_id WorkspaceId,
    user_id UserId,
    notebook_id NotebookId,
    agent_id AgentId,
    chat_id ChatId,
    run_id RunId,
    approval_id ApprovalId,
    rule_id RuleId,
    node_id NodeId,
    call_id CallId,
}

/// A workspace with one chat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home {
    pub(crate) workspace: WorkspaceId,
    pub(crate) agent: AgentId,
    pub(crate) chat: ChatId,
    pub(crate) notebook: NotebookId,
}

/// The agent of a home, not saved yet.
pub(crate) fn agent_row(home: &Home, slug: &str) -> AgentRow {
    AgentRow {
        id: home.agent,
        workspace: home.workspace,
        slug: slug.into(),
        version: 0,
        active: true,
        spec: "{}".into(),
        saved_at: at(1),
        owner: None,
        created_by: None,
        people: AgentPeople::default(),
    }
}

impl Home {
    pub(crate) async fn new(store: &Store) -> Self {
        let (workspace, agent, notebook) = (workspace_id(), agent_id(), notebook_id());
        store.create_workspace(&workspace_row(workspace)).await.unwrap();
        let (slug, created_at) = ("own".to_owned(), at(0));
        store.create_notebook(&NotebookRow { id: notebook, workspace, slug, linked: None, created_at }).await.unwrap();
        let mut home = Self { workspace, agent, chat: chat_id(), notebook };
        home.chat = home.new_chat(store).await;
        home
    }

    pub(crate) async fn new_chat(&self, store: &Store) -> ChatId {
        let id = chat_id();
        store
            .create_chat(&ChatRow {
                id,
                workspace: self.workspace,
                agent: self.agent,
                notebook: None,
                owner: user_id(),
                title: "A chat".into(),
                tip: None,
                forked_from: None,
                created_at: at(0),
                shared: false,
                alias: None,
                model: None,
                metadata: None,
            })
            .await
            .unwrap();
        id
    }

    /// The first append of a new run in the chat, whose branch ends in `tip`.
    pub(crate) fn start(&self, tip: Option<RunId>) -> Append {
        let run = run_id();
        let row = RunRow {
            id: run,
            workspace: self.workspace,
            chat: self.chat,
            agent: self.agent,
            agent_version: 3,
            notebook: Some(self.notebook),
            base: tip.map(|tip| (tip, 7)),
            parent: None,
            initiator: user_id(),
            trigger: "message".into(),
            created_at: at(1),
            superseded_by: None,
            head: Head::START,
            owner: None,
            epoch: 0,
            state: state("QUEUED", Some(at(0))),
        };
        let mut append = add(self.workspace, StreamId::Run(run), Head::START, &["run started"]);
        let tip = Tip { expected: tip, supersedes: None, advance: true };
        append.run = Some(RunChange::Start { row: Box::new(row), tip, places: u32::MAX });
        append
    }

    /// A run of its own chat, driven by a node of its own.
    pub(crate) async fn driven(&self, store: &Store) -> Owner {
        let (run, node) = (self.started(store).await.id, node_id());
        store.join(node).await.unwrap();
        let claim = store.claim_run(node, at(10), run).await.unwrap().unwrap();
        Owner { run, node, epoch: claim.epoch }
    }

    /// Puts a value of its agent there, and leaves no run behind here.
    pub(crate) async fn keep(&self, store: &Store, key: &str, value: &Labelled) {
        let owner = Self::new(store).await.driven(store).await;
        store.kv_set(self.workspace, self.agent, key, value, owner).await.unwrap();
        store.leave(owner.node).await.unwrap();
    }

    /// A run of its own chat, started.
    pub(crate) async fn started(&self, store: &Store) -> Run {
        let home = Self { chat: self.new_chat(store).await, ..*self };
        home.started_here(store, None).await
    }

    /// A run of its own chat, of an agent that has this many places.
    pub(crate) async fn started_with(&self, store: &Store, room: u32) -> Run {
        let home = Self { chat: self.new_chat(store).await, ..*self };
        let mut append = home.start(None);
        if let Some(RunChange::Start { places, .. }) = &mut append.run {
            *places = room;
        }
        let id = run_of(&append);
        let head = store.append(append).await.unwrap();
        Run { workspace: self.workspace, id, head, writer: Writer::Command }
    }

    /// A run in the home's own chat, started.
    pub(crate) async fn started_here(&self, store: &Store, tip: Option<RunId>) -> Run {
        let append = self.start(tip);
        let id = run_of(&append);
        let head = store.append(append).await.unwrap();
        Run { workspace: self.workspace, id, head, writer: Writer::Command }
    }
}

/// A run as its driver (or whoever commands it) knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) workspace: WorkspaceId,
    pub(crate) id: RunId,
    pub(crate) head: Head,
    pub(crate) writer: Writer,
}

impl Run {
    pub(crate) fn stream(&self) -> StreamId {
        StreamId::Run(self.id)
    }

    /// An append of these texts after the head that is known here.
    pub(crate) fn say(&self, texts: &[&str]) -> Append {
        let mut append = add(self.workspace, self.stream(), self.head, texts);
        append.writer = self.writer;
        append.run = Some(RunChange::Update { state: state("RUNNING", Some(at(0))), release: false });
        append
    }

    pub(crate) async fn said(&mut self, store: &Store, texts: &[&str]) -> Result<(), StoreError> {
        self.head = store.append(self.say(texts)).await?;
        Ok(())
    }

    /// A call of this run, not ended.
    pub(crate) fn call(&self) -> CallRow {
        CallRow {
            run: self.id,
            workspace: self.workspace,
            call: call_id(),
            tool: "write_file".into(),
            target: Some("/notes/a.md".into()),
            verdict: None,
            attempts: 0,
            proposed_at: at(5),
            started_at: None,
            ended: None,
        }
    }

    /// The append that ends a call.
    pub(crate) fn end(&self, call: &CallRow) -> Append {
        let mut append = self.say(&["call ended"]);
        let ended = Some(CallEnd { seq: self.head.seq + 1, at: at(9), is_error: false });
        append.calls.push(CallRow { attempts: 1, started_at: Some(at(6)), ended, ..call.clone() });
        append
    }

    pub(crate) async fn texts(&self, store: &Store) -> Vec<String> {
        let entries = store.events(self.workspace, self.stream(), 0, 1000).await.unwrap();
        let head = entries.iter().try_fold(Head::START, |head, entry| entry.follows(head)).unwrap();
        assert_eq!(head, self.row(store).await.head, "the run's row knows where its log ends");
        entries.into_iter().map(|entry| text(&entry)).collect()
    }

    pub(crate) async fn row(&self, store: &Store) -> RunRow {
        store.run(self.workspace, self.id).await.unwrap().unwrap()
    }
}

pub(crate) fn text(entry: &Entry) -> String {
    entry.body.clone().map_or_else(|| "(erased)".into(), |body| String::from_utf8(body).unwrap())
}

pub(crate) fn run_of(append: &Append) -> RunId {
    match append.stream {
        StreamId::Run(run) => run,
        StreamId::Workspace(_) | StreamId::System => panic!("not the log of a run"),
    }
}

/// An append without any rows.
pub(crate) fn add(workspace: WorkspaceId, stream: StreamId, expected: Head, texts: &[&str]) -> Append {
    let mut head = expected;
    let entries = texts.iter().map(|text| {
        let entry = Entry::next(stream, head, "said", at(2), text.as_bytes().to_vec());
        head = entry.head();
        entry
    });
    Append {
        workspace,
        stream,
        expected,
        writer: Writer::Command,
        entries: entries.collect(),
        blocks: vec![],
        run: None,
        approvals: vec![],
        calls: vec![],
        rules: vec![],
        audit: vec![],
        marks: vec![],
        takings: vec![],
        under: None,
        model_calls: vec![],
        doing: None,
        spends: vec![],
    }
}

pub(crate) fn state(status: &str, due: Option<Time>) -> RunState {
    RunState {
        status: status.into(),
        due,
        updated_at: at(3),
        ended_at: None,
        turns: 1,
        calls: 2,
        usage: TokenUsage { input: 10, output: 20, cached: 5, reasoning: 6, cache_write: 0 },
        cost: MicroUsd(1234),
        summary: r#"{"title":"Tidy"}"#.into(),
    }
}

pub(crate) fn workspace_row(id: WorkspaceId) -> WorkspaceRow {
    WorkspaceRow::new(id, format!("of-{id}"), "Home", at(0))
}

/// Adds to the log of a workspace what goes with something that is done.
pub(crate) async fn act(
    store: &Store,
    workspace: WorkspaceId,
    change: impl FnOnce(&mut Append),
) -> Result<Head, StoreError> {
    let log = StreamId::Workspace(workspace);
    let mut append = add(workspace, log, store.head(workspace, log).await?, &["done"]);
    change(&mut append);
    store.append(append).await
}

pub(crate) async fn save_agent(store: &Store, row: &AgentRow, expected: u64) -> Result<u64, StoreError> {
    let next = AgentRow { version: expected + 1, ..row.clone() };
    let save = |append: &mut Append| append.doing = Some(Doing::SaveAgent(Box::new(next)));
    act(store, row.workspace, save).await.map(|_| expected + 1)
}

pub(crate) async fn add_rule(store: &Store, row: &RuleRow) -> Result<(), StoreError> {
    act(store, row.workspace, |append| append.rules.push(row.clone())).await.map(drop)
}

pub(crate) async fn remove_rule(store: &Store, workspace: WorkspaceId, id: RuleId) -> Result<(), StoreError> {
    act(store, workspace, |append| append.doing = Some(Doing::RemoveRule(id))).await.map(drop)
}

pub(crate) fn block(text: &str) -> Block {
    Block { hash: Hash::of(text.as_bytes()), bytes: text.as_bytes().to_vec() }
}

pub(crate) fn approval(home: &Home, run: RunId, status: &str) -> ApprovalRow {
    ApprovalRow {
        id: approval_id(),
        workspace: home.workspace,
        run,
        chat: home.chat,
        agent: home.agent,
        call: Some(call_id()),
        kind: "call".into(),
        status: status.into(),
        tool: Some("write_file".into()),
        created_at: at(4),
        expires_at: Some(at(100)),
        decided_at: None,
        card: r#"{"diff":"+ a line"}"#.into(),
    }
}

pub(crate) fn rule(home: &Home) -> RuleRow {
    let body = r#"{"tool":"write_file","note":"canary"}"#.to_owned();
    RuleRow { id: rule_id(), workspace: home.workspace, agent: None, run: None, expires_at: None, body }
}

pub(crate) fn is_stale(result: &Result<Head, StoreError>) -> bool {
    matches!(result, Err(StoreError::Stale { fenced: false }))
}

pub(crate) fn is_fenced(result: &Result<Head, StoreError>) -> bool {
    matches!(result, Err(StoreError::Stale { fenced: true }))
}
