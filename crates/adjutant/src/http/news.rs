//! What changed, for pages that show many things at once: one listener on the store for all of them. A change is looked up and
//! serialised once; who may hear of it is decided by each reader. Nothing is looked up while nobody listens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adjutant_core::causes::causes;
use adjutant_core::id::{ApprovalId, RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::status::Status;
use adjutant_engine::store::StoreError;
use adjutant_engine::store::row::{ApprovalFilter, Change, ChangedChat};
use adjutant_engine::{Engine, RunSummary};
use axum::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Notices that a reader may be behind before it is told to read again.
const BACKLOG: usize = 1024;
/// Changes this close together are one: a run that works hard is told of a few times a second at the most.
const TOGETHER: Duration = Duration::from_millis(50);
/// Open questions of one run that are named.
const NAMED: u32 = 100;
/// Entries of an audit log that are told of one by one.
const ENTRIES: u32 = 100;
/// Runs whose last state is remembered at the most.
const REMEMBERED: usize = 10_000;

/// Something that changed.
#[derive(Debug, Clone)]
pub(super) struct Notice {
    pub(super) about: About,
    pub(super) bytes: Bytes,
}

/// What changed, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// A run, and perhaps what it asks.
    Run(Whose, Inbox),
    /// A chat.
    Chat(Whose),
    /// A chat that everybody could see, and only those now whose it is: for all others it is gone.
    Hidden(Whose),
    /// Something that was recorded for a workspace: its agents, rules, members, files.
    Setting(WorkspaceId),
    /// Something that was recorded for the instance.
    Instance,
    /// Changes were missed.
    Missed,
}

/// Whether what a run asks changed with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inbox {
    Same,
    Changed,
}

/// Whom a thing belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) workspace: WorkspaceId,
    pub(super) owner: UserId,
    pub(super) shared: bool,
}

/// The one place where changes are told.
#[derive(Clone, Default)]
pub(super) struct News(Arc<Mutex<Option<broadcast::Sender<Notice>>>>);

impl News {
    /// Begins to listen.
    pub(super) fn listen(&self, engine: &Engine) -> broadcast::Receiver<Notice> {
        let mut told = self.told();
        if let Some(sender) = &*told {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(BACKLOG);
        *told = Some(sender.clone());
        // It listens before it is looked at for the first time, so that nothing falls in between.
        let changes = engine.store().changes();
        let teller = Teller { news: self.clone(), engine: engine.clone(), sender, known: Known::default() };
        tokio::spawn(teller.tell(changes));
        receiver
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Option<broadcast::Sender<Notice>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One event of a stream, without a number.
pub(super) fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// What was told last, so that only news are.
#[derive(Default)]
struct Known {
    places: HashMap<RunId, WorkspaceId>,
    runs: HashMap<RunId, Value>,
    heads: HashMap<StreamId, u64>,
}

struct Teller {
    news: News,
    engine: Engine,
    sender: broadcast::Sender<Notice>,
    known: Known,
}

impl Teller {
    async fn tell(mut self, mut changes: broadcast::Receiver<Change>) {
        loop {
            let (mut streams, mut chats) = (BTreeSet::new(), BTreeMap::new());
            let mut missed = false;
            let first = changes.recv().await;
            let until = tokio::time::Instant::now() + TOGETHER;
            let mut next = Ok(first);
            while let Ok(change) = next {
                match change {
                    Ok(Change::Stream(stream) | Change::Command(stream)) => drop(streams.insert(stream)),
                    Ok(Change::Chat(changed)) => {
                        // Whoever could see it before any of these changes hears of it.
                        let known: &mut ChangedChat = chats.entry(changed.chat).or_insert(changed);
                        known.shared |= changed.shared;
                    }
                    Ok(Change::Due) => {}
                    Ok(Change::Reread) | Err(RecvError::Lagged(_)) => missed = true,
                    Err(RecvError::Closed) => return self.leave(),
                }
                next = tokio::time::timeout_at(until, changes.recv()).await;
            }
            if self.leave_if_empty() {
                return;
            }
            if missed {
                self.send(About::Missed, Bytes::new());
            }
            for chat in chats.into_values() {
                if let Err(error) = self.chat(chat).await {
                    tracing::warn!(chat = %chat.chat, error = %causes(&error), "a change could not be looked up; readers read again");
                    self.send(About::Missed, Bytes::new());
                }
            }
            for stream in streams {
                if let Err(error) = self.look(stream).await {
                    tracing::warn!(%stream, error = %causes(&error), "a change could not be looked up; readers read again");
                    self.send(About::Missed, Bytes::new());
                }
            }
        }
    }

    async fn look(&mut self, stream: StreamId) -> Result<(), StoreError> {
        match stream {
            StreamId::Run(run) => self.run(run).await,
            StreamId::Workspace(workspace) => {
                for kind in self.kinds(workspace, stream).await? {
                    let body = json!({"workspace_id": workspace, "kind": kind});
                    self.send(About::Setting(workspace), event("changed", &body));
                }
                Ok(())
            }
            StreamId::System => {
                let nobody = WorkspaceId::new(adjutant_core::time::Time::from_millis(0), [0; 10]);
                for kind in self.kinds(nobody, stream).await? {
                    self.send(About::Instance, event("changed", &json!({"workspace_id": null, "kind": kind})));
                }
                Ok(())
            }
        }
    }

    /// Tells of a chat as it is now, or that it is gone; also those who may not see any more what it is now.
    async fn chat(&self, changed: ChangedChat) -> Result<(), StoreError> {
        let ChangedChat { workspace, chat, owner, shared } = changed;
        let whose = |shared| Whose { workspace, owner, shared };
        let gone = json!({
            "id": chat, "workspace_id": workspace, "owner_id": owner, "is_shared": shared, "deleted": true,
        });
        match self.engine.store().chat(workspace, chat).await? {
            Some(row) => {
                if shared && !row.shared {
                    self.send(About::Hidden(whose(row.shared)), event("chat", &gone));
                }
                self.send(About::Chat(whose(row.shared)), event("chat", &json!(super::chats::shown(&row))));
            }
            None => self.send(About::Chat(whose(shared)), event("chat", &gone)),
        }
        Ok(())
    }

    async fn run(&mut self, run: RunId) -> Result<(), StoreError> {
        let store = self.engine.store();
        let workspace = match self.known.places.get(&run) {
            Some(known) => *known,
            None => match store.find_run(run).await? {
                Some(found) => found,
                None => return self.waiting(run).await,
            },
        };
        let Some(row) = store.run(workspace, run).await? else { return Ok(()) };
        let Some(chat) = store.chat(workspace, row.chat).await? else { return Ok(()) };
        let pending = ApprovalFilter { status: Some("pending".to_owned()), run: Some(run), ..Default::default() };
        let asked = store.approvals(workspace, &pending, NAMED).await?;
        let asked: Vec<ApprovalId> = asked.into_iter().map(|item| item.id).collect();
        let summary: RunSummary = serde_json::from_str(&row.state.summary).unwrap_or_default();
        let body = json!({
            "id": run, "workspace_id": workspace, "chat_id": row.chat, "agent_id": row.agent,
            "status": row.state.status, "title": summary.title, "chat_title": chat.title, "trigger": row.trigger,
            "pending_approvals": asked, "superseded_by": row.superseded_by,
            "created_at": row.created_at, "finished_at": row.state.ended_at,
        });
        let before = self.known.runs.get(&run);
        if before != Some(&body) {
            let whose = Whose { workspace, owner: row.initiator, shared: chat.shared };
            let asks = |body: &Value| body["pending_approvals"].as_array().is_some_and(|items| !items.is_empty());
            // Of a run that is new here it is not known what it asked before.
            let same = before.map_or(row.head.seq == 1 && !asks(&body), |before| {
                before["pending_approvals"] == body["pending_approvals"]
            });
            self.send(About::Run(whose, if same { Inbox::Same } else { Inbox::Changed }), event("run", &body));
        }
        if self.known.runs.len() >= REMEMBERED {
            self.known.runs.clear();
            self.known.places.clear();
        }
        if Status::parse(&row.state.status).is_some_and(Status::is_end) {
            self.known.runs.remove(&run);
            self.known.places.remove(&run);
        } else {
            self.known.runs.insert(run, body);
            self.known.places.insert(run, workspace);
        }
        Ok(())
    }

    /// Tells of a message that waits to be a run, or could not be started.
    async fn waiting(&self, run: RunId) -> Result<(), StoreError> {
        let store = self.engine.store();
        let Some(workspace) = store.find_waiting(run).await? else { return Ok(()) };
        let Some(row) = store.waiting_message(workspace, run).await? else { return Ok(()) };
        let Some(chat) = store.chat(workspace, row.chat).await? else { return Ok(()) };
        let whose = Whose { workspace, owner: row.person, shared: chat.shared };
        let mut body = json!(super::waiting::shown(&row));
        body["chat_title"] = json!(chat.title);
        self.send(About::Run(whose, Inbox::Same), event("run", &body));
        Ok(())
    }

    /// What kinds of entries an audit log has gained; of one that is new here, its last.
    async fn kinds(&mut self, workspace: WorkspaceId, stream: StreamId) -> Result<Vec<String>, StoreError> {
        let head = self.engine.store().head(workspace, stream).await?.seq;
        let after = self.known.heads.insert(stream, head).unwrap_or(head.saturating_sub(1));
        let entries = self.engine.store().events(workspace, stream, after, ENTRIES).await?;
        Ok(entries.into_iter().filter(|entry| entry.seq <= head).map(|entry| entry.kind).collect())
    }

    fn send(&self, about: About, bytes: Bytes) {
        let _ = self.sender.send(Notice { about, bytes });
    }

    fn leave(&self) {
        *self.news.told() = None;
    }

    /// Listening takes the same lock, so nobody can begin to listen to somebody who is leaving.
    fn leave_if_empty(&self) -> bool {
        let mut told = self.news.told();
        if self.sender.receiver_count() > 0 {
            return false;
        }
        *told = None;
        true
    }
}
