//! `/events`: one stream for a page that shows many things. It tells what changed; what is true is read where it always is.
//! Nothing is kept for those who are away: the first event says to read again, and so does one after a gap.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_engine::store::row::ApprovalFilter;
use adjutant_engine::{EngineError, Right};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use futures::stream::SelectAll;
use futures::{Stream, StreamExt};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Interval;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::Asked;
use super::door::{Access, Signed};
use super::news::{About, Inbox, Notice, Whose, event};
use super::problem::Problem;
use super::runs::find_run;
use super::server::Server;
use super::sight::RECHECK;
use super::stream::{FIRST, Manner, Reader, closing_words, every, respond, seat};

/// Runs that one stream follows event by event.
const RUNS: usize = 16;
/// Inbox items counted at the most.
const COUNTED: u32 = 1000;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(events))
}

/// What to be told of.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// With commas between: `runs`, `approvals`, `chats`, `settings` (all four without it), `run:{id}` and `run:{id}@{seq}`
    /// for every event of a run, from the beginning or after a number.
    topics: Option<String>,
    /// Only of this workspace (id or short name).
    workspace_id: Option<String>,
}

/// The topic under which a run is taken up again.
pub(super) fn topic(run: RunId, after: u64) -> String {
    format!("run:{run}@{after}")
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Topics {
    runs: bool,
    approvals: bool,
    chats: bool,
    settings: bool,
}

/// A run to follow, and the last event that the reader has of it.
type Followed = (String, u64);

fn read(topics: Option<&str>) -> Result<(Topics, Vec<Followed>), Problem> {
    let all = "runs,approvals,chats,settings";
    let (mut plain, mut runs) = (Topics::default(), Vec::new());
    for word in topics.unwrap_or(all).split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "runs" => plain.runs = true,
            "approvals" => plain.approvals = true,
            "chats" => plain.chats = true,
            "settings" => plain.settings = true,
            other => {
                let unknown = || {
                    Problem::invalid("Nothing is told.")
                        .error("topics", format!("`{other}` is none of {all},run:ID,run:ID@SEQ"))
                };
                let named = other.strip_prefix("run:").ok_or_else(unknown)?;
                let (run, after) = named.split_once('@').unwrap_or((named, "0"));
                runs.push((run.to_owned(), after.parse().map_err(|_| unknown())?));
            }
        }
    }
    if runs.len() > RUNS {
        let text = format!("one stream follows up to {RUNS} runs");
        return Err(Problem::invalid("Nothing is told.").error("topics", text));
    }
    Ok((plain, runs))
}

/// What changes in your workspaces, as it happens: `run` (a run's state), `inbox` (how much waits for you), `chat`, `changed`
/// (agents, rules, members, files), and every event of the runs you name. `reread` says that what you have may be old: it comes
/// first, and after a gap.
#[utoipa::path(get, operation_id = "follow_events", path = "/events", tag = "events", params(Wanted), responses((status = 200, description = "The stream", body = String, content_type = "text/event-stream")))]
async fn events(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
) -> Result<Response, Problem> {
    let (topics, followed) = read(wanted.topics.as_deref())?;
    signed.need(Right::Read)?;
    let only = match &wanted.workspace_id {
        Some(name) => signed.workspaces(Some(name))?.first().map(|access| access.workspace),
        None => None,
    };
    let seat = seat(&server)?;
    // Listening starts before anything is read, so that nothing falls between the two.
    let news = server.news.listen(&server.engine);
    let mut runs = SelectAll::new();
    for (name, after) in followed {
        let (access, row) = find_run(&server, &signed, &name).await?;
        if let Some(reader) = Reader::open(&server, &signed, access, row.id, after, Manner::Among).await? {
            runs.push(Box::pin(reader.frames()) as Frames);
        }
    }
    let mut watcher = Watcher {
        closing: server.closing.clone(),
        server: server.clone(),
        signed,
        only,
        topics,
        news,
        runs,
        counted: BTreeMap::new(),
        ready: VecDeque::from([Bytes::from_static(FIRST.as_bytes())]),
        over: false,
        recheck: every(RECHECK),
    };
    watcher.reread("opened");
    watcher.count(None).await?;
    let frames =
        futures::stream::unfold(
            watcher,
            |mut watcher| async move { watcher.next().await.map(|bytes| (bytes, watcher)) },
        );
    Ok(respond(&server, seat, frames))
}

type Frames = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Whoever is told.
struct Watcher {
    server: Server,
    signed: Signed,
    only: Option<WorkspaceId>,
    topics: Topics,
    news: broadcast::Receiver<Notice>,
    runs: SelectAll<Frames>,
    /// How much was last said to wait: whoever may not see a run learns nothing from it but another number.
    counted: BTreeMap<WorkspaceId, u64>,
    ready: VecDeque<Bytes>,
    over: bool,
    recheck: Interval,
    closing: watch::Receiver<bool>,
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.over {
                return None;
            }
            if *self.closing.borrow_and_update() {
                self.ready.push_back(closing_words(&self.server));
                self.over = true;
                continue;
            }
            tokio::select! {
                notice = self.news.recv() => match notice {
                    Ok(notice) => self.take(notice).await,
                    Err(RecvError::Lagged(_)) => self.missed().await,
                    Err(RecvError::Closed) => self.over = true,
                },
                Some(bytes) = self.runs.next() => self.ready.push_back(bytes),
                _ = self.recheck.tick() => self.look_at_rights().await,
                _ = self.closing.changed() => {}
            }
        }
    }

    async fn take(&mut self, notice: Notice) {
        match notice.about {
            About::Run(whose, inbox) => {
                if self.topics.runs && self.may_see(whose) {
                    self.ready.push_back(notice.bytes);
                }
                // What a run asks may be for whose the agent is, who need not see the run.
                if inbox == Inbox::Changed && self.access(whose.workspace).is_some() {
                    if self.may_see(whose) {
                        self.counted.remove(&whose.workspace);
                    }
                    // Who comes back finds the number again, so one that could not be read is no loss.
                    let _ = self.count(Some(whose.workspace)).await;
                }
            }
            About::Chat(whose) if self.topics.chats && self.may_see(whose) => self.ready.push_back(notice.bytes),
            About::Hidden(whose)
                if self.topics.chats && self.access(whose.workspace).is_some() && !self.may_see(whose) =>
            {
                self.ready.push_back(notice.bytes);
            }
            About::Setting(workspace) if self.topics.settings && self.access(workspace).is_some() => {
                self.ready.push_back(notice.bytes);
            }
            About::Instance if self.topics.settings && self.signed.need_owner().is_ok() => {
                self.ready.push_back(notice.bytes);
            }
            About::Chat(_) | About::Hidden(_) | About::Setting(_) | About::Instance => {}
            About::Missed => self.missed().await,
        }
    }

    fn access(&self, workspace: WorkspaceId) -> Option<Access> {
        if self.only.is_some_and(|only| only != workspace) {
            return None;
        }
        self.signed.workspaces(None).ok()?.into_iter().find(|access| access.workspace == workspace)
    }

    fn may_see(&self, whose: Whose) -> bool {
        self.access(whose.workspace).is_some_and(|access| access.may_see(whose.owner, whose.shared))
    }

    async fn missed(&mut self) {
        self.reread("missed");
        let _ = self.count(None).await;
    }

    fn reread(&mut self, reason: &str) {
        self.counted.clear();
        self.ready.push_back(event("reread", &json!({"reason": reason})));
    }

    /// Says how much waits in a workspace, or in all of them.
    async fn count(&mut self, workspace: Option<WorkspaceId>) -> Result<(), Problem> {
        if !self.topics.approvals {
            return Ok(());
        }
        for access in self.signed.workspaces(None)? {
            let named = workspace.or(self.only);
            if named.is_some_and(|named| named != access.workspace) {
                continue;
            }
            let status = Some("pending".to_owned());
            let filter = ApprovalFilter { status, visible_to: access.visible_to(), ..Default::default() };
            let pending = self.server.engine.store().count_approvals(access.workspace, &filter, COUNTED).await?;
            if self.counted.insert(access.workspace, pending) != Some(pending) {
                let body = json!({"workspace_id": access.workspace, "pending": pending});
                self.ready.push_back(event("inbox", &body));
            }
        }
        Ok(())
    }

    /// Whether they are still somebody, and whether they may see more or less than before.
    async fn look_at_rights(&mut self) {
        match self.server.caller(&self.signed.credential).await {
            Ok(caller) => {
                let changed = self.signed.renew(caller);
                self.over |= self.signed.need(Right::Read).is_err();
                if changed {
                    self.reread("rights");
                }
            }
            // A database that is away for a moment says nothing about anybody.
            Err(EngineError::Store(_)) => {}
            Err(_) => self.over = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_known_words_or_runs() {
        assert_eq!(read(None).unwrap().0, Topics { runs: true, approvals: true, chats: true, settings: true });
        let (plain, runs) = read(Some("approvals, run:run_a,run:run_b@12")).unwrap();
        assert_eq!(plain, Topics { approvals: true, ..Topics::default() });
        assert_eq!(runs, [("run_a".to_owned(), 0), ("run_b".to_owned(), 12)]);
        for wrong in ["weather", "run:run_a@x", &"run:a,".repeat(RUNS + 1)] {
            assert!(read(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
