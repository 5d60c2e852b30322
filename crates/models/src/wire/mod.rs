//! One call to a provider over the network, whichever protocol it speaks: send, wait, read, and never longer than allowed.
//!
//! Written on the HTTP client itself, not on a library of many providers: such a library reads the arguments of a call
//! into a JSON value, where of two equal keys one silently disappears, and writes them anew when the call goes back to
//! the model. A call has to be judged by the text the model wrote. Reading the stream ourselves also keeps the
//! provider's status and wait on errors, tells a broken-off answer from a finished one, and bounds every line.
//!
//! The rules: an answer counts only when the provider gave a reason for its end; anything else is `Truncated`. Nothing
//! of a provider's free text is shown. The client comes from the caller. Cancelling drops the connection.

pub(crate) mod auth;
pub(crate) mod binary;
pub(crate) mod draft;
mod embed;
pub(crate) mod fault;
pub(crate) mod frame;
#[cfg(test)]
mod golden;
pub(crate) mod google;
#[cfg(test)]
mod kinds;
pub(crate) mod list;
pub(crate) mod provider;
mod sigv4;
mod sse;
pub(crate) mod talk;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::message::{ModelAnswer, ModelRequest};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, timeout, timeout_at};

use self::draft::Draft;
use self::fault::Fault;
use self::frame::{BadFrame, Decoder, Frame};
pub(crate) use self::provider::Provider;
use self::provider::Timeouts;
use crate::protocol::embed::{Embedded, Purpose};
use crate::protocol::{Asked, Flow, Reader};
use crate::{DeltaSink, Detail, Model, ModelError, Tape};

/// Bytes of one frame: a whole call with the longest arguments there may be, escaped twice.
const FRAME_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of an answer that comes in one piece.
const WHOLE_BYTES: usize = 8 * 1024 * 1024;
/// Bytes read of an error's body.
const FAULT_BYTES: usize = 64 * 1024;
/// How long to wait for the count of tokens and the end once the answer itself is complete.
const GRACE: Duration = Duration::from_secs(5);

/// Tells the time to what signs requests.
pub(crate) type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// One model of a provider.
pub(crate) struct Remote {
    provider: Arc<Provider>,
    client: reqwest::Client,
    clock: Clock,
    model: String,
    takes: Takes,
    /// The day from which the provider does not serve it any more.
    retired: Option<Date>,
}

/// What a model takes; some refuse the whole request for what they do not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Takes {
    /// A temperature.
    pub(crate) temperature: bool,
    /// A schema for its answer.
    pub(crate) schema: bool,
    /// A word about how much to think.
    pub(crate) reasoning: bool,
    /// A wish for pieces, or for one document.
    pub(crate) flow: Flow,
}

impl Remote {
    /// The model that the provider calls `model`.
    pub(crate) const fn new(
        provider: Arc<Provider>,
        client: reqwest::Client,
        clock: Clock,
        model: String,
        takes: Takes,
    ) -> Self {
        Self { provider, client, clock, model, takes, retired: None }
    }

    /// The same, served until this day.
    pub(crate) fn until(self, retired: Option<Date>) -> Self {
        Self { retired, ..self }
    }

    /// The error with what we know of it: a model that its provider does not know may be one that it knew.
    fn explained(&self, error: ModelError) -> ModelError {
        let today = (self.clock)().to_zoned(TimeZone::UTC).date();
        match (error, self.retired.filter(|day| *day <= today)) {
            (ModelError::UnknownModel { model, .. }, Some(day)) => {
                let hint = format!(" to the provider any more: it was retired on {day}, choose another");
                ModelError::UnknownModel { model, hint }
            }
            (other, _) => other,
        }
    }

    /// How the answer is asked for: in pieces where its reader knows nothing else.
    fn flow(&self) -> Flow {
        let known = self.provider.protocol(&self.model).may_come_whole();
        if known { self.takes.flow } else { Flow::Pieces }
    }

    async fn call(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let Timeouts { first_byte, total, .. } = self.provider.timeouts;
        // What comes in one piece begins when all of it is there.
        let first_byte = if self.flow() == Flow::Whole { total } else { first_byte };
        let first_due = Instant::now() + first_byte;
        let silent = |_| ModelError::Timeout { what: "begin to answer", limit: first_byte };
        let tape = deltas.tape();
        let response = timeout_at(first_due, self.send(request, tape)).await.map_err(silent)??;
        let status = response.status();
        if let Some(tape) = tape {
            tape.came(&format!("HTTP {}", status.as_u16()));
        }
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = timeout_at(first_due, beginning(response.bytes_stream(), FAULT_BYTES)).await.map_err(silent)?;
            if let Some(tape) = tape {
                tape.came(&self.provider.redact(&String::from_utf8_lossy(&body)));
            }
            let fault = Fault::from_response(status.as_u16(), &headers, &body, (self.clock)());
            return Err(fault.into_error(&self.name(), |text| self.provider.redact(text)));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/html") {
            return Err(ModelError::broken(format!(
                "provider `{}` answers with a web page: its base_url is not the address of a model server",
                self.provider.name
            )));
        }
        let protocol = self.provider.protocol(&self.model);
        let whole = kind.starts_with("application/json") && protocol.may_come_whole();
        let mut reader = protocol.reader(self.provider.habits, &self.model);
        let mut draft = Draft::new(deltas.clone(), &self.provider.name);
        let read = Reading { provider: &self.provider, model: self.name(), first_due, tape };
        if whole {
            read.whole(response.bytes_stream(), &mut *reader, &mut draft).await?;
        } else {
            read.stream(response.bytes_stream(), &mut *reader, &mut draft).await?;
        }
        draft.into_answer(&self.model)
    }

    async fn send(&self, request: &ModelRequest, tape: Option<&Tape>) -> Result<reqwest::Response, ModelError> {
        let protocol = self.provider.protocol(&self.model);
        let unwritable = |_| ModelError::broken("the request cannot be written as JSON");
        let beside = request.tools.is_empty() || protocol.shapes_beside_tools();
        let schema = request.output_schema.as_deref().filter(|_| self.takes.schema && beside);
        let asked = Asked {
            request,
            vendor: self.provider.vendor.kind,
            model: &self.model,
            habits: self.provider.habits,
            temperature: request.temperature.filter(|_| self.takes.temperature),
            samples: self.takes.temperature,
            reasons: self.takes.reasoning,
            schema: schema.map(serde_json::from_str).transpose().map_err(unwritable)?,
            flow: self.flow(),
        };
        let body = protocol.body(&asked).map_err(unwritable)?;
        let url = self.provider.endpoint(&self.model, self.flow())?;
        // What is set below counts, whatever was asked for.
        let mut headers = extra_headers(request);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(protocol.accepts(self.flow())));
        headers.extend(protocol.headers());
        if let Some(tape) = tape {
            // Without headers: what proves who calls is there.
            tape.sent(&format!("POST {}{}", url.host_str().unwrap_or_default(), url.path()));
            tape.sent(&self.provider.redact(&String::from_utf8_lossy(&body)));
        }
        let now = (self.clock)();
        self.provider.auth.attach(&mut headers, &url, &body, &self.client, now).await?;
        self.client.post(url).headers(headers).body(body).send().await.map_err(network)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.provider.name, self.model)
    }
}

#[async_trait]
impl Model for Remote {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let limit = self.provider.timeouts.total;
        let late = |_| ModelError::Timeout { what: "finish its answer", limit };
        let called = timeout(limit, self.call(request, deltas)).await.map_err(late)?;
        called.map_err(|error| self.explained(error))
    }

    fn patience(&self) -> Duration {
        self.provider.timeouts.total
    }

    fn texts_at_once(&self) -> usize {
        self.texts()
    }

    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Embedded, ModelError> {
        self.vectors(texts, purpose).await
    }
}

/// One answer being read.
struct Reading<'a> {
    provider: &'a Provider,
    model: String,
    /// When the first byte has to be here.
    first_due: Instant,
    /// Where frames are kept.
    tape: Option<&'a Tape>,
}

impl Reading<'_> {
    /// Reads a stream of frames until its end, whichever way it ends: the draft knows whether the answer is complete.
    async fn stream<E>(
        &self,
        mut bytes: impl Stream<Item = Result<Bytes, E>> + Unpin,
        reader: &mut dyn Reader,
        draft: &mut Draft,
    ) -> Result<(), ModelError> {
        let Timeouts { first_byte, idle, .. } = self.provider.timeouts;
        let mut decoder = Decoder::new(self.provider.vendor.protocol.framing(), FRAME_BYTES);
        let (mut due, mut limit, mut what) = (self.first_due, first_byte, "begin to answer");
        loop {
            match timeout_at(due, bytes.next()).await {
                Err(_) if draft.is_complete() => return Ok(()),
                Err(_) => return Err(ModelError::Timeout { what, limit }),
                Ok(Some(Ok(bytes))) => {
                    for frame in decoder.push(&bytes).map_err(bad_frame)? {
                        self.take(&frame, reader, draft)?;
                        if draft.is_ended() {
                            return Ok(());
                        }
                    }
                }
                Ok(None | Some(Err(_))) => break,
            }
            (limit, what) = if draft.is_complete() { (GRACE.min(idle), "end") } else { (idle, "go on") };
            due = Instant::now() + limit;
        }
        match decoder.finish().map_err(bad_frame)? {
            Some(frame) => {
                let taken = self.take(&frame, reader, draft);
                if draft.is_complete() { Ok(()) } else { taken }
            }
            None => Ok(()),
        }
    }

    /// Reads an answer of a server that does not stream.
    async fn whole<E>(
        &self,
        bytes: impl Stream<Item = Result<Bytes, E>> + Unpin,
        reader: &mut dyn Reader,
        draft: &mut Draft,
    ) -> Result<(), ModelError> {
        let body = beginning(bytes, WHOLE_BYTES).await;
        self.take(&Frame::from(body), reader, draft)
    }

    fn take(&self, frame: &Frame, reader: &mut dyn Reader, draft: &mut Draft) -> Result<(), ModelError> {
        if let Some(tape) = self.tape {
            let data = self.provider.redact(&String::from_utf8_lossy(&frame.data));
            tape.came(&if frame.kind.is_empty() { data } else { format!("{} {data}", frame.kind) });
        }
        let rejected = reader.take(frame, draft);
        rejected.map_err(|rejected| rejected.into_error(&self.model, |text| self.provider.redact(text)))
    }
}

/// Headers that the agent asks for; what is none is left out.
fn extra_headers(request: &ModelRequest) -> HeaderMap {
    let headers = request.options.extra_headers.iter();
    headers.filter_map(|(name, value)| Some((name.parse::<HeaderName>().ok()?, value.parse().ok()?))).collect()
}

/// What a provider answers in one piece, with its headers. `name` is what was asked, for errors.
async fn document(
    provider: &Provider,
    name: &str,
    request: reqwest::RequestBuilder,
    now: jiff::Timestamp,
) -> Result<(HeaderMap, Vec<u8>), ModelError> {
    let limit = provider.timeouts.first_byte;
    let silent = |_| ModelError::Timeout { what: "begin to answer", limit };
    let response = timeout(limit, request.send()).await.map_err(silent)?.map_err(network)?;
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        let body = timeout(limit, beginning(response.bytes_stream(), FAULT_BYTES)).await.map_err(silent)?;
        let fault = Fault::from_response(status.as_u16(), &headers, &body, now);
        return Err(fault.into_error(name, |text| provider.redact(text)));
    }
    Ok((headers, beginning(response.bytes_stream(), WHOLE_BYTES).await))
}

/// The first bytes of a body, at the most `limit`; what breaks off is taken as far as it came.
async fn beginning<E>(mut bytes: impl Stream<Item = Result<Bytes, E>> + Unpin, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = bytes.next().await {
        body.extend_from_slice(&piece[..piece.len().min(limit - body.len())]);
        if body.len() >= limit {
            break;
        }
    }
    body
}

fn bad_frame(bad: BadFrame) -> ModelError {
    match bad {
        BadFrame::TooLong => {
            ModelError::Unknown { reason: "it sent a line without end", status: None, detail: Detail::default() }
        }
        BadFrame::Damaged => ModelError::Truncated { reason: "a piece of it arrived damaged" },
    }
}

/// Why the request did not get there. The address is taken out of the error, because it may be nobody's business.
fn network(error: reqwest::Error) -> ModelError {
    if error.is_builder() {
        return ModelError::broken("the request to the provider cannot be made");
    }
    if error.is_redirect() {
        return ModelError::broken("the provider's address leads in a circle");
    }
    let reason = if error.is_connect() { "no connection" } else { "the connection broke" };
    ModelError::Network { reason, source: Some(Arc::new(error.without_url())) }
}
