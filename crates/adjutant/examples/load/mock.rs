//! A provider that speaks chat completions and thinks about nothing: a tool call until there were four, then an answer of 64
//! pieces, or of ten times as many where each takes its time; for a message that begins with `say` only that, and for one that begins with `ask` one call of which a person is asked.
//! It knows when it answered whom, and so how long the next step took. What it says is put together once: it shares a machine
//! with whom it answers, and should be in nobody's way.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::{Outcome, TOOLS};

/// Pieces of an answer.
const PIECES: usize = 64;
/// Pieces of one that takes its time: so long that the first has not ended when the last begins.
const LONG: usize = 640;

/// An answer, in the pieces it comes in and in one.
struct Said {
    pieces: Vec<Bytes>,
    whole: Bytes,
}

impl Said {
    fn new(mut pieces: Vec<String>) -> Self {
        pieces.push("data: [DONE]\n\n".to_owned());
        let whole = Bytes::from(pieces.concat());
        Self { pieces: pieces.into_iter().map(Bytes::from).collect(), whole }
    }
}

/// The calls of a run that works, one after the other.
static CALLS: LazyLock<[Said; TOOLS]> = LazyLock::new(|| {
    [
        call("read_file", &json!({"path": "/todo.md"}), 0),
        call("kv_set", &json!({"key": "note", "value": "a value of some length"}), 1),
        call("kv_get", &json!({"key": "note"}), 2),
        call("list_files", &json!({"path": "/"}), 3),
    ]
});
static WORDS: LazyLock<Said> = LazyLock::new(|| words(PIECES));
static MANY_WORDS: LazyLock<Said> = LazyLock::new(|| words(LONG));

#[derive(Default)]
struct Seen {
    /// When each run was last answered.
    answered: HashMap<String, Instant>,
    gaps: Vec<f64>,
}

/// Answers that are under way, and how many there were at the most.
#[derive(Default)]
struct Opened {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// One answer that is under way while this lives.
struct Open(Arc<Opened>);

impl Open {
    fn new(opened: &Arc<Opened>) -> Self {
        let now = opened.now.fetch_add(1, Ordering::SeqCst) + 1;
        opened.most.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(opened))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Clone)]
struct Provider {
    seen: Arc<Mutex<Seen>>,
    opened: Arc<Opened>,
    pace: u32,
}

/// Serves until it is killed.
pub(crate) async fn serve(pace: u32) -> Outcome {
    let provider = Provider { seen: Arc::default(), opened: Arc::default(), pace };
    let router = Router::new().route("/v1/chat/completions", post(answer)).route("/gaps", get(gaps));
    let router = router.route("/peak", get(peak)).with_state(provider);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    crate::println(&format!("http://{}", listener.local_addr()?));
    Ok(axum::serve(listener, router).await?)
}

async fn gaps(State(provider): State<Provider>) -> Response {
    let gaps = std::mem::take(&mut provider.seen.lock().unwrap_or_else(PoisonError::into_inner).gaps);
    axum::Json(gaps).into_response()
}

async fn peak(State(provider): State<Provider>) -> Response {
    let now = provider.opened.now.load(Ordering::SeqCst);
    axum::Json(provider.opened.most.swap(now, Ordering::SeqCst)).into_response()
}

async fn answer(State(provider): State<Provider>, body: Bytes) -> Response {
    let text = String::from_utf8_lossy(&body);
    let tools = text.matches("\"role\":\"tool\"").count();
    let run = run_of(&text);
    let steps = steps_of(&run);
    {
        let mut seen = provider.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = seen.answered.remove(&run) {
            seen.gaps.push(before.elapsed().as_secs_f64() * 1e3);
        }
        if tools < steps {
            seen.answered.insert(run.clone(), Instant::now());
        }
    }
    let asks;
    let said = if tools >= steps {
        if provider.pace == 0 { &*WORDS } else { &*MANY_WORDS }
    } else if run.starts_with("ask") {
        asks = call("create_file", &json!({"path": format!("/{run}.md"), "content": "something"}), tools);
        &asks
    } else {
        &CALLS[tools]
    };
    let body = match provider.pace {
        0 => Body::from(said.whole.clone()),
        pace => {
            let (beat, open) = (Duration::from_secs(1) / pace, Open::new(&provider.opened));
            Body::from_stream(futures::stream::iter(said.pieces.clone()).then(move |piece| {
                // It ends with the answer, or with whoever reads it.
                let _ = &open;
                async move {
                    tokio::time::sleep(beat).await;
                    Ok::<_, Infallible>(piece)
                }
            }))
        }
    };
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// The tool calls of a run, by its name.
pub(crate) fn steps_of(run: &str) -> usize {
    match run.split('-').next() {
        Some("say") => 0,
        Some("ask") => 1,
        _ => TOOLS,
    }
}

/// The word that names a run: the first of what the person said.
fn run_of(body: &str) -> String {
    let Some(at) = body.find("\"role\":\"user\"").or_else(|| body.find("\"role\": \"user\"")) else {
        return String::new();
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let near = &body[at.saturating_sub(200)..(at + 200).min(body.len())];
    let names = near.split(|c: char| !word(c)).find(|name| {
        name.split('-').count() > 1 && name.rsplit('-').next().is_some_and(|end| end.parse::<u32>().is_ok())
    });
    names.unwrap_or_default().to_owned()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let whole = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "mock", "choices": [choice]});
    format!("data: {whole}\n\n")
}

fn usage(pieces: usize) -> String {
    let usage = json!({"prompt_tokens": 300, "completion_tokens": pieces, "total_tokens": 300 + pieces});
    format!(
        "data: {}\n\n",
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "mock", "choices": [], "usage": usage})
    )
}

fn call(name: &str, arguments: &Value, number: usize) -> Said {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let calls = json!([{"index": 0, "id": format!("call_{number}"), "type": "function", "function": function}]);
    Said::new(vec![
        chunk(&json!({"role": "assistant", "tool_calls": calls}), None),
        chunk(&json!({}), Some("tool_calls")),
        usage(PIECES),
    ])
}

fn words(pieces: usize) -> Said {
    let mut chunks: Vec<String> = (0..pieces).map(|_| chunk(&json!({"content": "word "}), None)).collect();
    chunks.extend([chunk(&json!({}), Some("stop")), usage(pieces)]);
    Said::new(chunks)
}

/// The provider, in a process of its own.
pub(crate) struct Mock {
    child: Child,
    pub(crate) url: String,
}

impl Mock {
    pub(crate) fn start(pace: u32) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(["mock", &pace.to_string()]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the mock says nothing")?).read_line(&mut line)?;
        Ok(Self { child, url: line.trim().to_owned() })
    }

    /// Processor time it has used, in milliseconds.
    pub(crate) fn cpu(&self) -> f64 {
        crate::machine::cpu(self.child.id())
    }

    /// The gaps between steps since this was last asked, in milliseconds.
    pub(crate) async fn gaps(&self) -> Outcome<Vec<f64>> {
        self.told("gaps").await
    }

    /// How many answers were under way at once, at the most, since this was last asked.
    pub(crate) async fn peak(&self) -> Outcome<usize> {
        self.told("peak").await
    }

    async fn told<T: serde::de::DeserializeOwned>(&self, what: &str) -> Outcome<T> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(client.get(format!("{}/{what}", self.url)).send().await?.json().await?)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
