//! A running server, as the command line sees it: where it is, who we are there, and its answers as documents or failures.

mod door;
mod login;
mod stream;
mod visit;

use std::time::Duration;

use adjutant_core::id::{ApprovalId, ChatId, RunId};
use adjutant_engine::Env;
use reqwest::{Method, StatusCode, Url};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::door::{Door, small};
pub(super) use self::login::{Login, login};
pub(super) use self::stream::{Heard, Item};
pub(super) use self::visit::Visit;
use super::Context;
use super::find::{self, Edge, Meant};
use crate::config::Config;
use crate::failure::{Exit, Failure, LET_GO_ON, where_to_look};

/// How long an ordinary answer may take; waiting for a run takes as long as the server waits.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long to look whether a server that left its address behind is still there. Where none is, the connection is refused at
/// once; one that is busy has to be waited for.
const GLANCE: Duration = Duration::from_secs(20);
/// What to do where a person is in several workspaces.
const WHICH_WORKSPACE: &str = "--workspace NAME says which one; adjutant ws ls lists yours";

/// A server that can be asked.
pub(crate) struct Remote {
    door: Door,
    /// The workspace that every request is about.
    workspace: Option<String>,
}

impl Remote {
    /// The server that a command talks to: the one that is named, else the one that runs on the data directory.
    ///
    /// # Errors
    /// When a server is named and nothing says who we are there.
    pub(super) async fn found(context: &Context) -> Result<Option<Self>, Failure> {
        if let Some(named) = context.url.as_deref().or_else(|| context.env.get("ADJUTANT_URL")) {
            let url = address(named)?;
            let token = context.env.get("ADJUTANT_TOKEN").map(|token| SecretString::from(token.to_owned()));
            let token = match token {
                Some(token) => token,
                None => login::saved(context, &url)?.ok_or_else(|| not_signed_in(&url))?,
            };
            return Ok(Some(Self::new(url, token)?.within(context)));
        }
        Ok(Self::of_data(&context.config()?).await?.map(|found| found.within(context)))
    }

    /// The server that has the data directory of a configuration, if there is one.
    pub(super) async fn of_data(config: &Config) -> Result<Option<Self>, Failure> {
        let Some(door) = Door::of_data(client()?, &config.data.value) else { return Ok(None) };
        let found = Self { door, workspace: None };
        Ok(found.is_there().await.then_some(found))
    }

    /// The server at an address.
    pub(super) fn at(url: &str, token: SecretString) -> Result<Self, Failure> {
        Self::new(address(url)?, token)
    }

    fn new(url: Url, token: SecretString) -> Result<Self, Failure> {
        Ok(Self { door: Door::named(client()?, url, token), workspace: None })
    }

    /// The same, about nothing but the workspace that the command line names.
    pub(super) fn within(self, context: &Context) -> Self {
        Self { workspace: context.workspace.clone(), ..self }
    }

    /// Whether the address that was left behind is still answered.
    async fn is_there(&self) -> bool {
        let Ok(url) = self.door.url().join("healthz") else { return false };
        self.door.glance(url).timeout(GLANCE).send().await.is_ok_and(|answer| answer.status().is_success())
    }

    /// Asks for a document.
    pub(super) async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.ask(Method::GET, path, query, None).await
    }

    /// Asks for something to be done.
    pub(super) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        self.ask(Method::POST, path, &[], Some(body)).await
    }

    /// Asks for something to be done, with more behind the `?`.
    pub(super) async fn post_with(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value, Failure> {
        self.ask(Method::POST, path, query, Some(body)).await
    }

    /// The workspace that is named, or else the only one.
    pub(super) async fn only_workspace(&self) -> Result<String, Failure> {
        let page = self.get(&["workspaces"], &[]).await?;
        let mine = page["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        match mine {
            [] => Err(Failure::not_found("You are in no workspace of this server.")),
            [only] => self.read(only["id"].clone()),
            [_, ..] => {
                let slugs: Vec<_> = mine.iter().filter_map(|row| row["slug"].as_str()).collect();
                let text = format!("You are in several workspaces: {}. Nothing was done.", slugs.join(", "));
                Err(Failure::usage(text).hint(WHICH_WORKSPACE))
            }
        }
    }

    /// Asks for something to be put in place of what was there.
    pub(super) async fn put(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        self.ask(Method::PUT, path, &[], Some(body)).await
    }

    /// The same, if what is there has this tag.
    pub(super) async fn put_if(&self, path: &[&str], tag: &str, body: &Value) -> Result<Value, Failure> {
        let request = self.request(Method::PUT, path, &[])?.timeout(PATIENCE).header("if-match", tag).json(body);
        self.send(request).await?.json().await.map_err(|error| self.unreachable(&error))
    }

    /// Makes a file, or replaces one, if a header says so of what is there.
    pub(super) async fn put_file(&self, path: &[&str], when: (&str, &str), bytes: Vec<u8>) -> Result<(), Failure> {
        let request = self.request(Method::PUT, path, &[])?.timeout(PATIENCE).header(when.0, when.1).body(bytes);
        self.send(request).await.map(drop)
    }

    /// Whether it is the one that runs on the data directory, so that files of both are the same.
    pub(super) fn is_ours(context: &Context) -> bool {
        context.url.is_none() && context.env.get("ADJUTANT_URL").is_none()
    }

    /// Asks for something to be changed.
    pub(super) async fn patch(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        self.ask(Method::PATCH, path, &[], Some(body)).await
    }

    /// The same, whatever its version is.
    pub(super) async fn patch_any(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        let request = self.request(Method::PATCH, path, &[])?.timeout(PATIENCE).header("if-match", "*").json(body);
        self.send(request).await?.json().await.map_err(|error| self.unreachable(&error))
    }

    /// A link of the server, as it can be opened from here.
    pub(super) fn link(&self, path: &str) -> String {
        self.door.url().join(path).map_or_else(|_| path.to_owned(), |url| url.to_string())
    }

    /// Asks for something to be taken away.
    pub(super) async fn delete(&self, path: &[&str]) -> Result<Value, Failure> {
        self.ask(Method::DELETE, path, &[], None).await
    }

    /// The same, with more behind the `?`.
    pub(super) async fn delete_with(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.ask(Method::DELETE, path, query, None).await
    }

    /// Asks for an agent or a file to be taken away, whatever its version is.
    pub(super) async fn delete_any(&self, path: &[&str]) -> Result<(), Failure> {
        let request = self.request(Method::DELETE, path, &[])?.timeout(PATIENCE).header("if-match", "*");
        self.send(request).await.map(drop)
    }

    /// Asks for a text.
    pub(super) async fn text(&self, path: &[&str], query: &[(&str, &str)]) -> Result<String, Failure> {
        let answer = self.send(self.request(Method::GET, path, query)?.timeout(PATIENCE)).await?;
        answer.text().await.map_err(|error| self.unreachable(&error))
    }

    /// Takes in something long, piece by piece.
    pub(super) async fn save(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        take: &mut (dyn FnMut(&[u8]) -> Result<(), Failure> + Send),
    ) -> Result<(), Failure> {
        let mut answer = self.send(self.request(Method::GET, path, query)?).await?;
        while let Some(piece) = answer.chunk().await.map_err(|error| self.unreachable(&error))? {
            take(&piece)?;
        }
        Ok(())
    }

    /// A document as what it stands for here.
    pub(super) fn read<T: DeserializeOwned>(&self, document: Value) -> Result<T, Failure> {
        serde_json::from_value(document).map_err(|bad| {
            Failure::other(format!("The server {} answers in another form: {bad}.", self.door.url()))
                .hint("it may be of another version; adjutant version says which this is")
        })
    }

    async fn ask(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let posts = method == Method::POST;
        let mut request = self.request(method, path, query)?.timeout(PATIENCE);
        if posts {
            request = request.header("idempotency-key", key());
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let again = request.try_clone().filter(|_| posts);
        let mut answer = self.door.send(request).await;
        // An answer that got lost on the way is asked for again: under the same key nothing is done twice.
        if let (Err(error), Some(again)) = (&answer, again)
            && !error.is_connect()
            && !error.is_timeout()
        {
            answer = self.door.send(again).await;
        }
        let answer = self.good(answer.map_err(|error| self.unreachable(&error))?).await?;
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        answer.json().await.map_err(|error| self.unreachable(&error))
    }

    fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<reqwest::RequestBuilder, Failure> {
        let mut url = self.door.url();
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(["api", "v1"]).extend(path),
            Err(()) => return Err(Failure::usage(format!("`{}` is not the address of a server.", self.door.url()))),
        };
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.door.request(method, url);
        Ok(match &self.workspace {
            Some(name) => request.header("adjutant-workspace", name),
            None => request,
        })
    }

    /// Sends a request that is not made twice if its answer gets lost.
    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Failure> {
        self.good(self.door.send(request).await.map_err(|error| self.unreachable(&error))?).await
    }

    /// The answer, unless it is a problem.
    async fn good(&self, answer: reqwest::Response) -> Result<reqwest::Response, Failure> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        if status == StatusCode::UNAUTHORIZED && self.door.is_of_data() {
            let what = "The server that has the data directory does not know this command. Nothing was done.";
            return Err(Failure::new(Exit::Forbidden, "unauthenticated", what)
                .hint("it may just be starting again; try once more"));
        }
        let problem: Value = answer.json().await.unwrap_or_default();
        Err(failure(status, &problem))
    }

    /// Why a command that works on the data directory itself does nothing while a server has it.
    pub(super) fn only_here(&self) -> Failure {
        let url = self.door.url();
        let what = format!("This command works on the data directory, and the server {url} has it. Nothing was done.");
        Failure::new(Exit::Other, "in_use", what).hint("stop it first")
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let why = if error.is_timeout() { "it does not answer in time" } else { "it does not answer" };
        Failure::new(
            Exit::Unreachable,
            "unreachable",
            format!("The server {} cannot be reached: {why}. What it has taken goes on there.", self.door.url()),
        )
        .hint("adjutant serve starts one; --url names another")
    }

    /// What a run is doing, for whoever may see it: a named approver is shown what they decide, and not the run.
    pub(super) async fn status(&self, run: &str) -> Result<Option<String>, Failure> {
        match self.get(&["runs", run], &[]).await {
            Ok(run) => Ok(run["status"].as_str().map(str::to_owned)),
            Err(failure) if failure.code == "not_found" => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The id of a run that a person means.
    pub(super) async fn run_id(&self, text: &str) -> Result<String, Failure> {
        match find::meant::<RunId>(text, Edge::Last)? {
            Meant::Whole(id) => Ok(id.to_string()),
            Meant::Beginning(wanted, last) => {
                let query = [("superseded", "true"), ("limit", "2"), ("cursor", &*last.to_string())];
                find::only_id(&self.get(&["runs"], &query).await?, &wanted, text, find::no_run)
            }
        }
    }

    /// The id of a chat that a person means.
    pub(super) async fn chat_id(&self, text: &str) -> Result<String, Failure> {
        match find::meant::<ChatId>(text, Edge::Last)? {
            Meant::Whole(id) => Ok(id.to_string()),
            Meant::Beginning(wanted, last) => {
                let query = [("limit", "2"), ("cursor", &*last.to_string())];
                find::only_id(&self.get(&["chats"], &query).await?, &wanted, text, find::no_chat)
            }
        }
    }

    /// The id of an inbox item that a person means.
    pub(super) async fn approval_id(&self, text: &str) -> Result<String, Failure> {
        match find::meant::<ApprovalId>(text, Edge::First)? {
            Meant::Whole(id) => Ok(id.to_string()),
            Meant::Beginning(wanted, first) => {
                let query = [("limit", "2"), ("cursor", &*first.to_string())];
                find::only_id(&self.get(&["approvals"], &query).await?, &wanted, text, find::no_approval)
            }
        }
    }
}

fn client() -> Result<reqwest::Client, Failure> {
    adjutant_engine::provider_client()
        .map_err(|error| Failure::other(format!("The network cannot be used: {error}. Nothing was done.")))
}

/// A key that no other request has.
fn key() -> String {
    format!("{:032x}", u128::from_ne_bytes(Env::system().random()))
}

fn address(text: &str) -> Result<Url, Failure> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| Failure::usage(format!("`{text}` is not the address of a server.")).hint("http://127.0.0.1:7878"))
}

fn not_signed_in(url: &Url) -> Failure {
    Failure::new(Exit::Forbidden, "unauthenticated", format!("You are not signed in at {url}. Nothing was done."))
        .hint(format!("adjutant login {url}, or set ADJUTANT_TOKEN"))
}

/// A problem of the server as the command's own failure, with the number that the same thing has here.
fn failure(status: StatusCode, problem: &Value) -> Failure {
    let word = |field: &str| problem[field].as_str().map(str::to_owned);
    let code = word("code").unwrap_or_else(|| "internal".to_owned());
    let exit = match (code.as_str(), status.as_u16()) {
        ("content_blocked" | "scope_violation", _) => Exit::Rejected,
        (_, 401 | 403) => Exit::Forbidden,
        (_, 402 | 429) => Exit::Spent,
        (_, 400 | 413 | 415 | 422 | 428) => Exit::Usage,
        (_, 502..=504) => Exit::Unreachable,
        _ => Exit::Other,
    };
    let message = word("detail").unwrap_or_else(|| format!("The server answered {status}. Nothing more is known."));
    let error = |error: &Value| {
        let (at, why) = (error["pointer"].as_str().unwrap_or_default(), error["detail"].as_str().unwrap_or_default());
        format!("{at} {why}").trim().to_owned()
    };
    let problems = problem["errors"].as_array().map(|errors| errors.iter().map(error).collect()).unwrap_or_default();
    let failure = Failure::new(exit, code, message).problems(problems);
    match in_our_words(&failure).or_else(|| word("hint")) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// What to do next, as a command; none where what the server says is good for everybody.
fn in_our_words(failure: &Failure) -> Option<String> {
    let text = match &*failure.code {
        "unauthenticated" => {
            "adjutant login URL keeps another token for this server, or set ADJUTANT_TOKEN to one that is good"
        }
        "halted" => LET_GO_ON,
        "agent_inactive" => "adjutant agents enable NAME switches it on, or choose another agent (adjutant agents ls)",
        "validation_failed" if failure.message.contains("several workspaces") => WHICH_WORKSPACE,
        "not_found" => {
            let what = failure.message.strip_prefix("There is no ")?.split(' ').next()?;
            where_to_look(what)?
        }
        _ => return None,
    };
    Some(text.to_owned())
}
