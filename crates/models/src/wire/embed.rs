//! Asking a provider for the vectors of texts: with the same key, to the same host, through the same client and with the same
//! errors as for an answer.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::time::timeout;

use super::{Remote, document};
use crate::protocol::embed::{EmbedForm, Embedded, Purpose};
use crate::{Detail, ModelError};

/// Where Bedrock counts tokens, whatever a model's own answer says.
const COUNTED: &str = "x-amzn-bedrock-input-token-count";

impl Remote {
    /// Texts that one request may hold.
    pub(super) fn texts(&self) -> usize {
        EmbedForm::of(self.provider.vendor, &self.model).map_or(1, |form| form.at_once(&self.model))
    }

    /// The vectors of texts, in one request.
    pub(super) async fn vectors(&self, texts: &[String], purpose: Purpose) -> Result<Embedded, ModelError> {
        let limit = self.provider.timeouts.total;
        let late = |_| ModelError::Timeout { what: "finish its answer", limit };
        timeout(limit, self.ask_vectors(texts, purpose)).await.map_err(late)?
    }

    async fn ask_vectors(&self, texts: &[String], purpose: Purpose) -> Result<Embedded, ModelError> {
        let provider = &self.provider;
        let form = EmbedForm::of(provider.vendor, &self.model).ok_or_else(|| {
            let (name, title) = (self.name(), provider.vendor.title);
            ModelError::broken(format!("{title} makes no embeddings with `{name}`; use a model that does"))
        })?;
        let url = provider.at(&form.path(&self.model))?;
        let body = form.body(&self.model, texts, purpose).to_string().into_bytes();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(provider.vendor.protocol.headers());
        provider.auth.attach(&mut headers, &url, &body, &self.client, (self.clock)()).await?;
        let request = self.client.post(url).headers(headers).body(body);
        let (headers, body) = document(provider, &self.name(), request, (self.clock)()).await?;
        let cut = |_| ModelError::Truncated { reason: "it is no whole document" };
        let answer: Value = serde_json::from_slice(&body).map_err(cut)?;
        let none = ModelError::Unknown { reason: "it sent no vectors", status: None, detail: Detail::default() };
        let vectors = form.vectors(&answer, texts.len()).ok_or(none)?;
        let counted = || headers.get(COUNTED)?.to_str().ok()?.parse().ok();
        let served = answer["model"].as_str().unwrap_or(&self.model);
        Ok(Embedded {
            vectors,
            tokens: form.tokens(&answer).or_else(counted),
            served_model: format!("{}/{served}", provider.name),
        })
    }
}

#[cfg(test)]
mod tests;
