//! A server on the loopback that replays bytes as providers send them, and the readers without a server, for the tests of
//! every protocol.

use std::sync::{Arc, Mutex};

use adjutant_core::message::{Delta, ModelAnswer};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::auth::{ApiKey, Credential};
use super::draft::Draft;
use super::frame::Framing;
use super::provider::{RemoteConfig, Timeouts};
use super::{Provider, Reading, Remote};
use crate::protocol::Flow;
use crate::vendor::Vendor;
use crate::view::tests::request;
use crate::{DeltaSink, Model, ModelError};

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) after: After,
}

/// What happens when all pieces are sent.
pub(crate) enum After {
    /// The body ends as it should.
    End,
    /// The body stays open until the client has gone, which is told.
    Stay(Guard),
    /// The connection breaks when this is told.
    Break(oneshot::Receiver<()>),
}

impl After {
    async fn happen(self) -> Result<Bytes, std::io::Error> {
        match self {
            Self::End => Ok(Bytes::new()),
            Self::Stay(_guard) => std::future::pending().await,
            Self::Break(told) => {
                let _ = told.await;
                Err(std::io::Error::other("the cable was cut"))
            }
        }
    }
}

impl Reply {
    /// An answer in the framing of a kind of provider.
    pub(crate) fn stream(kind: &str, pieces: &[&[u8]]) -> Self {
        let content_type = match Vendor::of(kind).unwrap().protocol.framing() {
            Framing::Events => "text/event-stream",
            Framing::Lines => "application/x-ndjson",
            Framing::Binary => "application/vnd.amazon.eventstream",
        };
        let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
        Self { status: 200, headers: vec![("content-type", content_type)], pieces, after: After::End }
    }

    pub(crate) fn error(status: u16, headers: &[(&'static str, &'static str)], body: &'static str) -> Self {
        let pieces = vec![Bytes::from_static(body.as_bytes())];
        Self { status, headers: headers.to_vec(), pieces, after: After::End }
    }
}

/// Tells when it is dropped.
pub(crate) struct Guard(pub(crate) Option<oneshot::Sender<()>>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(gone) = self.0.take() {
            let _ = gone.send(());
        }
    }
}

/// A request as a server got it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) body: Value,
    /// The body as it was sent, byte for byte.
    pub(crate) raw: Bytes,
}

/// Starts a server that gives these replies, one after the other; says where it is and what it gets.
pub(crate) async fn serve(replies: Vec<Reply>) -> (String, mpsc::UnboundedReceiver<Seen>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (tell, seen) = mpsc::unbounded_channel();
    let replies = Arc::new(Mutex::new(std::collections::VecDeque::from(replies)));
    let handler = move |asked: Request| {
        let (tell, replies) = (tell.clone(), Arc::clone(&replies));
        async move {
            let path = asked.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let headers = asked.headers().clone();
            let raw = axum::body::to_bytes(asked.into_body(), 1 << 20).await.unwrap();
            let text = String::from_utf8_lossy(&raw).into_owned();
            let body = serde_json::from_slice(&raw).unwrap_or(Value::String(text));
            let _ = tell.send(Seen { path, headers, body, raw });
            let Reply { status, headers, pieces, after } = replies.lock().unwrap().pop_front().expect("a reply");
            let pieces = futures::stream::iter(pieces.into_iter().map(Ok));
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(Body::from_stream(pieces.chain(futures::stream::once(after.happen())))).unwrap()
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, Router::new().fallback(handler)).into_future());
    (base, seen)
}

pub(crate) fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The vendor's own address, where habits are those of the vendor, and a client that finds the server on the loopback there.
pub(crate) fn at_home(address: &str, server: &str) -> (url::Url, reqwest::Client) {
    let server: std::net::SocketAddr = server.trim_start_matches("http://").parse().unwrap();
    let mut address = url::Url::parse(address).unwrap();
    address.set_scheme("http").unwrap();
    address.set_port(Some(server.port())).unwrap();
    let host = address.host_str().unwrap().to_owned();
    (address, reqwest::Client::builder().no_proxy().resolve(&host, server).build().unwrap())
}

/// A model of this kind of provider at an address, with the key `sk-very-secret`.
pub(crate) fn model(kind: &str, base: &str, timeouts: Timeouts) -> Remote {
    let credential = Credential::Key(ApiKey::for_its_address(SecretString::from("sk-very-secret")));
    configured(RemoteConfig {
        base_url: Some(base.to_owned()),
        credential,
        timeouts,
        region: Some("us-east-1".to_owned()),
        ..RemoteConfig::new(Vendor::of(kind).unwrap())
    })
}

/// A model of a provider that is configured like this.
pub(crate) fn configured(config: RemoteConfig) -> Remote {
    let provider = Arc::new(Provider::new("local", config).unwrap());
    let clock: super::Clock = Arc::new(|| jiff::Timestamp::from_second(1_440_938_160).unwrap());
    let takes = super::Takes { temperature: true, schema: true, reasoning: true, flow: Flow::Pieces };
    Remote::new(provider, client(), clock, "org/some-model-high".to_owned(), takes)
}

/// The same by another name.
pub(crate) fn named(remote: Remote, model: &str) -> Remote {
    Remote { model: model.to_owned(), ..remote }
}

/// The answer to these bytes of a server on the loopback, and the pieces that were handed on.
pub(crate) async fn read(kind: &str, pieces: &[&[u8]]) -> (Result<ModelAnswer, ModelError>, Vec<Delta>) {
    let (base, _seen) = serve(vec![Reply::stream(kind, pieces)]).await;
    let (sink, mut deltas) = DeltaSink::channel();
    let answer = model(kind, &base, Timeouts::default()).answer(&request(&["hello"]), &sink).await;
    let mut handed_on = Vec::new();
    while let Ok(delta) = deltas.try_recv() {
        handed_on.push(delta);
    }
    (answer, handed_on)
}

/// The failure this reply is.
pub(crate) async fn failure(kind: &str, reply: Reply) -> ModelError {
    let (base, _seen) = serve(vec![reply]).await;
    let model = model(kind, &base, Timeouts::default());
    model.answer(&request(&["the secret plan"]), &DeltaSink::none()).await.unwrap_err()
}

/// The request that this conversation becomes.
pub(crate) async fn sent(kind: &str, request: &adjutant_core::message::ModelRequest, reply: &[u8]) -> Seen {
    let (base, mut seen) = serve(vec![Reply::stream(kind, &[reply])]).await;
    model(kind, &base, Timeouts::default()).answer(request, &DeltaSink::none()).await.unwrap();
    seen.recv().await.unwrap()
}

/// Reads a stream of bytes that needs no server.
pub(crate) async fn read_quietly(
    kind: &str,
    bytes: impl Stream<Item = Result<Bytes, std::io::Error>> + Unpin,
    timeouts: Timeouts,
) -> Result<ModelAnswer, ModelError> {
    let vendor = Vendor::of(kind).unwrap();
    let base_url = Some("http://127.0.0.1/v1".to_owned());
    let credential = Credential::Key(ApiKey::for_its_address(SecretString::from("sk-very-secret")));
    let region = Some("us-east-1".to_owned());
    let config = RemoteConfig { base_url, timeouts, credential, region, ..RemoteConfig::new(vendor) };
    let provider = Provider::new("local", config).unwrap();
    let mut draft = Draft::new(DeltaSink::none(), "local");
    let mut reader = vendor.protocol.reader(provider.habits, "m");
    let first_due = Instant::now() + timeouts.first_byte;
    let reading = Reading { provider: &provider, model: String::new(), first_due, tape: None };
    reading.stream(bytes, &mut *reader, &mut draft).await?;
    draft.into_answer("m")
}

async fn read_pieces(kind: &str, pieces: Vec<Bytes>) -> Result<ModelAnswer, ModelError> {
    read_quietly(kind, futures::stream::iter(pieces.into_iter().map(Ok)), Timeouts::default()).await
}

/// Proves that the answer is the same wherever the bytes are cut, and that it is an error where they end too early. The
/// answer may be whole before the last of `spare` bytes.
pub(crate) async fn prove_cuts(kind: &str, bytes: &[u8], spare: usize) {
    let whole = Bytes::copy_from_slice(bytes);
    let expected = read_pieces(kind, vec![whole.clone()]).await.unwrap();
    for at in 0..=whole.len() {
        let cut = read_pieces(kind, vec![whole.slice(..at), whole.slice(at..)]).await;
        assert_eq!(cut.unwrap(), expected, "cut at byte {at}");
        match read_pieces(kind, vec![whole.slice(..at)]).await {
            Ok(answer) => {
                assert!(at + spare >= whole.len(), "an end at byte {at} of {} was taken for an answer", whole.len());
                assert_eq!((answer.text, answer.calls), (expected.text.clone(), expected.calls.clone()));
            }
            Err(error) => assert_eq!(error.class(), "truncated", "end at byte {at}: {error}"),
        }
    }
    let single = whole.chunks(1).map(Bytes::copy_from_slice).collect();
    assert_eq!(read_pieces(kind, single).await.unwrap(), expected, "byte by byte");
}

/// Proves that damaged bytes are an answer or an error, and nothing else: bytes are changed one after the other.
pub(crate) async fn prove_damage(kind: &str, bytes: &[u8]) {
    for at in 0..bytes.len() {
        for byte in [0, b'"', b'}', 0xff] {
            let mut bad = bytes.to_vec();
            bad[at] = byte;
            let _ = read_pieces(kind, vec![Bytes::from(bad)]).await;
        }
    }
}
