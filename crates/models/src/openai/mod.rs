//! The chat completions protocol with streaming and tool calls, as the original speaks it and most local servers do.
//!
//! Written on the HTTP client itself, not on a library of many providers: such a library reads the arguments of a call
//! into a JSON value, where of two equal keys one silently disappears, and writes them anew when the call goes back to
//! the model. A call has to be judged by the text the model wrote. Reading the stream ourselves also keeps the
//! provider's status and wait on errors, tells a broken-off answer from a finished one, and bounds every line.
//!
//! The rules: an answer counts only when the provider gave a reason for its end; anything else is `Truncated`. Nothing
//! of a provider's free text is shown. The client comes from the caller. Cancelling drops the connection.

mod assembly;
mod body;
mod fault;
mod provider;

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::message::{ModelAnswer, ModelRequest};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use tokio::time::{Instant, timeout, timeout_at};

use self::assembly::Assembly;
use self::fault::Fault;
pub(crate) use self::provider::Provider;
pub use self::provider::Timeouts;
use crate::sse::{Decoder, TooLong};
use crate::{DeltaSink, Detail, Model, ModelError};

/// Bytes of one event: a whole call with the longest arguments there may be, escaped twice.
const EVENT_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of an answer that comes in one piece.
const WHOLE_BYTES: usize = 8 * 1024 * 1024;
/// Bytes read of an error's body.
const FAULT_BYTES: usize = 64 * 1024;
/// How long to wait for the count of tokens and the end once the answer itself is complete.
const GRACE: Duration = Duration::from_secs(5);
/// What comes in place of data when all is said.
const DONE: &[u8] = b"[DONE]";

/// One model of a provider.
pub(crate) struct OpenAi {
    provider: Arc<Provider>,
    client: reqwest::Client,
    model: String,
}

impl OpenAi {
    /// The model that the provider calls `model`.
    pub(crate) const fn new(provider: Arc<Provider>, client: reqwest::Client, model: String) -> Self {
        Self { provider, client, model }
    }

    async fn call(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let Timeouts { first_byte, .. } = self.provider.timeouts;
        let first_due = Instant::now() + first_byte;
        let silent = |_| ModelError::Timeout { what: "begin to answer", limit: first_byte };
        let response = timeout_at(first_due, self.send(request)?).await.map_err(silent)?.map_err(network)?;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = timeout_at(first_due, beginning(response.bytes_stream(), FAULT_BYTES)).await.map_err(silent)?;
            let fault = Fault::from_response(status.as_u16(), &headers, &body);
            return Err(fault.into_error(&self.name(), |text| self.provider.redact(text)));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/html") {
            return Err(ModelError::broken(format!(
                "provider `{}` answers with a web page: its base_url is not the address of a model server",
                self.provider.name
            )));
        }
        let whole = kind.starts_with("application/json");
        let mut assembly = Assembly::default();
        let read = Reading { provider: &self.provider, model: self.name(), deltas, first_due };
        if whole {
            read.whole(response.bytes_stream(), &mut assembly).await?;
        } else {
            read.stream(response.bytes_stream(), &mut assembly).await?;
        }
        assembly.answer(&self.provider.name, &self.model)
    }

    fn send(
        &self,
        request: &ModelRequest,
    ) -> Result<impl Future<Output = Result<reqwest::Response, reqwest::Error>> + use<>, ModelError> {
        let body = body::build(request, &self.model, self.provider.dialect)
            .map_err(|_| ModelError::broken("the request cannot be written as JSON"))?;
        let mut post = self.client.post(self.provider.endpoint.clone());
        post = post.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream").body(body);
        if let Some(authorization) = self.provider.authorization() {
            post = post.header(AUTHORIZATION, authorization);
        }
        Ok(post.send())
    }

    fn name(&self) -> String {
        format!("{}/{}", self.provider.name, self.model)
    }
}

#[async_trait]
impl Model for OpenAi {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        let limit = self.provider.timeouts.total;
        let late = |_| ModelError::Timeout { what: "finish its answer", limit };
        timeout(limit, self.call(request, deltas)).await.map_err(late)?
    }
}

/// One answer being read.
struct Reading<'a> {
    provider: &'a Provider,
    model: String,
    deltas: &'a DeltaSink,
    /// When the first byte has to be here.
    first_due: Instant,
}

impl Reading<'_> {
    /// Reads a stream of events until its end, whichever way it ends: the assembly knows whether the answer is
    /// complete.
    async fn stream<E>(
        &self,
        mut bytes: impl Stream<Item = Result<Bytes, E>> + Unpin,
        assembly: &mut Assembly,
    ) -> Result<(), ModelError> {
        let Timeouts { first_byte, idle, .. } = self.provider.timeouts;
        let mut decoder = Decoder::new(EVENT_BYTES);
        let (mut due, mut limit, mut what) = (self.first_due, first_byte, "begin to answer");
        loop {
            match timeout_at(due, bytes.next()).await {
                Err(_) if assembly.is_complete() => return Ok(()),
                Err(_) => return Err(ModelError::Timeout { what, limit }),
                Ok(Some(Ok(bytes))) => {
                    for event in decoder.push(&bytes).map_err(too_long)? {
                        if event == DONE {
                            return Ok(());
                        }
                        self.take(&event, assembly)?;
                    }
                }
                Ok(None | Some(Err(_))) => break,
            }
            (limit, what) = if assembly.is_complete() { (GRACE.min(idle), "end") } else { (idle, "go on") };
            due = Instant::now() + limit;
        }
        match decoder.finish().map_err(too_long)? {
            Some(event) if event != DONE => {
                let taken = self.take(&event, assembly);
                if assembly.is_complete() { Ok(()) } else { taken }
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Reads an answer of a server that does not stream.
    async fn whole<E>(
        &self,
        bytes: impl Stream<Item = Result<Bytes, E>> + Unpin,
        assembly: &mut Assembly,
    ) -> Result<(), ModelError> {
        let body = beginning(bytes, WHOLE_BYTES).await;
        self.take(&body, assembly)
    }

    fn take(&self, event: &[u8], assembly: &mut Assembly) -> Result<(), ModelError> {
        let rejected = assembly.take(event, self.deltas);
        rejected.map_err(|rejected| rejected.into_error(&self.model, |text| self.provider.redact(text)))
    }
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

fn too_long(_: TooLong) -> ModelError {
    ModelError::Unknown { reason: "it sent a line without end", status: None, detail: Detail::default() }
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

#[cfg(test)]
mod tests;
