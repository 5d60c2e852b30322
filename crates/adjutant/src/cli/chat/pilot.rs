//! Doing what the state asks for, at the server, and telling it what came of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;

use super::requests::Undo;
use super::state::{Back, Effect, Msg};
use crate::cli::remote::{Heard, Item, Remote};
use crate::failure::{Exit, Failure};

/// Messages that wait to be taken in; whoever tells more waits.
const WAITING: usize = 1024;
/// Runs of a chat that are shown when it is opened.
const RUNS: usize = 20;
/// How often a stream that broke off is taken up again without anything new on it.
const RETURNS: u32 = 10;
/// How long to wait before that.
const PAUSE: Duration = Duration::from_secs(1);

/// Does what is asked for.
pub(super) struct Pilot {
    remote: Arc<Remote>,
    tell: Sender<Msg>,
    tasks: JoinSet<()>,
}

impl Pilot {
    pub(super) fn new(remote: Remote) -> (Self, Receiver<Msg>) {
        let (tell, told) = mpsc::channel(WAITING);
        (Self { remote: Arc::new(remote), tell, tasks: JoinSet::new() }, told)
    }

    /// Begins to do something; what comes of it is told.
    pub(super) fn begin(&mut self, effect: Effect) {
        let hand = Hand { remote: Arc::clone(&self.remote), tell: self.tell.clone() };
        // What is done is let go of; what still goes on ends with us.
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move { hand.act(effect).await });
    }

    /// Leaves off what goes on, because another chat is shown from now on. What it still had to tell is not heard.
    pub(super) fn turn_away(&mut self) -> Receiver<Msg> {
        self.tasks.abort_all();
        let (tell, told) = mpsc::channel(WAITING);
        self.tell = tell;
        told
    }
}

/// One thing that is done.
pub(super) struct Hand {
    pub(super) remote: Arc<Remote>,
    tell: Sender<Msg>,
}

/// The text of a value; empty where it is none.
pub(super) fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Hand {
    pub(super) async fn say(&self, msg: Msg) {
        // Nobody listens once the screen is gone.
        let _ = self.tell.send(msg).await;
    }

    async fn refused(&self, failure: &Failure, back: Back) {
        self.say(Msg::Refused { lines: failure.lines(), back }).await;
    }

    async fn act(&self, effect: Effect) {
        match effect {
            Effect::Send { chat, agent, text, model, autonomy } => {
                let mut body = json!({"model": model, "autonomy": autonomy});
                let started = self.start(chat.as_deref(), &agent, &text, &mut body).await;
                self.begun(started, text).await;
            }
            Effect::Revise { run, text } => {
                let started = self.revise(&run, &text).await;
                self.begun(started, text).await;
            }
            Effect::Fork { run, model } => self.done(self.fork(&run, model.as_deref()).await).await,
            Effect::Scope { agent } => self.done(self.scope(&agent).await).await,
            Effect::Inbox => self.done(self.inbox().await).await,
            Effect::Cancel { run } => self.posted(&["runs", &run, "cancel"], &json!({}), Back::Nothing).await,
            Effect::Steer { run, word } => self.posted(&["runs", &run, word], &json!({}), Back::Nothing).await,
            Effect::Decide { approval, body } => {
                let back = Back::Question(approval.clone());
                self.posted(&["approvals", &approval, "decision"], &body, back).await;
            }
            Effect::Open { chat } => self.done(self.open(&chat).await).await,
            Effect::New { agent } => self.done(self.new_chat(&agent).await).await,
            Effect::List(want) => self.done(self.list(want).await).await,
            Effect::PlanUndo { run } => self.done(self.undo(&run, Undo::Plan).await).await,
            Effect::Undo { run } => self.done(self.undo(&run, Undo::Real).await).await,
            Effect::Cost { chat } => self.done(self.cost(&chat).await).await,
            Effect::Title { chat, title } => self.done(self.title(&chat, &title).await).await,
            Effect::Export { chat, file } => self.done(self.export(&chat, &file).await).await,
            // The editor needs the screen, so whoever has the screen starts it.
            Effect::Edit { .. } => {}
        }
    }

    async fn posted(&self, path: &[&str], body: &Value, back: Back) {
        if let Err(failure) = self.remote.post(path, body).await {
            self.refused(&failure, back).await;
        }
    }

    async fn done(&self, done: Result<(), Failure>) {
        if let Err(failure) = done {
            self.refused(&failure, Back::Nothing).await;
        }
    }

    /// Follows a run that begins, or gives the message back that it was to be about.
    async fn begun(&self, started: Result<(String, String), Failure>, text: String) {
        match started {
            Ok((chat, run)) => {
                self.say(Msg::Started { chat, run: run.clone() }).await;
                self.follow(&run).await;
            }
            Err(failure) => self.refused(&failure, Back::Message(text)).await,
        }
    }

    async fn revise(&self, run: &str, text: &str) -> Result<(String, String), Failure> {
        let started = self.remote.post(&["runs", run, "edit"], &json!({"new_user_message": text})).await?;
        Ok((word(&started["chat_id"]), word(&started["id"])))
    }

    /// Tries the message of a run again, and goes to the chat where that happens.
    async fn fork(&self, run: &str, model: Option<&str>) -> Result<(), Failure> {
        let forked = self.remote.post(&["runs", run, "fork"], &json!({"model": model})).await?;
        self.open(&word(&forked["chat_id"])).await
    }

    async fn start(
        &self,
        chat: Option<&str>,
        agent: &str,
        text: &str,
        body: &mut Value,
    ) -> Result<(String, String), Failure> {
        let started = match chat {
            Some(chat) => {
                body["user_message"] = json!(text);
                self.remote.post(&["chats", chat, "runs"], body).await?
            }
            None => {
                (body["agent_id"], body["input"]) = (json!(agent), json!(text));
                self.remote.post(&["runs"], body).await?
            }
        };
        Ok((word(&started["chat_id"]), word(&started["id"])))
    }

    /// Tells what happened in a chat, and what happens in it from now on.
    async fn open(&self, id: &str) -> Result<(), Failure> {
        let chat = self.remote.get(&["chats", id], &[("include", "runs")]).await?;
        let agent = chat["agent_id"].as_str().unwrap_or_default();
        let agent = self.remote.get(&["agents", agent], &[]).await?;
        let id = Some(word(&chat["id"]));
        self.say(Msg::Opened { id, title: word(&chat["title"]), agent: word(&agent["slug"]) }).await;
        let runs = chat["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
        for run in runs.iter().take(RUNS).rev() {
            self.follow(&word(&run["id"])).await;
        }
        Ok(())
    }

    /// Tells all that happens in a run, to its end.
    async fn follow(&self, run: &str) {
        let (mut after, mut returns, mut heard) = (0, 0, Heard::default());
        loop {
            match self.remote.follow(run, after).await {
                Ok(None) => return,
                Ok(Some(mut events)) => {
                    while let Some(item) = events.next().await {
                        match item {
                            Item::Event(event) if event.id > after => {
                                (after, returns, heard) = (event.id, 0, Heard::default());
                                let is_last = event.event == "interaction_complete";
                                self.say(Msg::Event(Box::new(event))).await;
                                if is_last {
                                    return;
                                }
                            }
                            Item::Event(_) => {}
                            Item::Piece(piece) => {
                                if let Some(new) = heard.fresh(piece) {
                                    self.say(Msg::Piece(new)).await;
                                }
                            }
                        }
                    }
                }
                Err(failure) if failure.exit == Exit::Unreachable && returns < RETURNS => {}
                Err(failure) => return self.refused(&failure, Back::Run).await,
            }
            returns += 1;
            if returns > RETURNS {
                let lost = Failure::new(Exit::Unreachable, "unreachable", "The server does not answer any more.");
                return self.refused(&lost, Back::Run).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
