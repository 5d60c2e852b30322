//! Tokens for Google's platform: asked for with the text of a service-account or application-default file, kept until
//! shortly before they expire, one request at a time.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use reqwest::header::CONTENT_TYPE;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;
use url::Url;
use url::form_urlencoded::Serializer;

use crate::{Detail, ModelError};

const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// How long a signed statement is good for, and how long before its end a token is no longer used.
const STATEMENT_SECONDS: i64 = 3600;
const MARGIN_SECONDS: i64 = 60;
/// How long the token server may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of its answer at the most.
const ANSWER_BYTES: usize = 64 * 1024;

/// An account as its file describes it.
pub(super) struct Account {
    token_uri: Url,
    proof: Proof,
    project: Option<String>,
}

enum Proof {
    Service { email: String, key: Box<RsaKeyPair>, key_id: Option<String> },
    Person { client_id: String, client_secret: SecretString, refresh_token: SecretString },
}

#[derive(Deserialize)]
struct File {
    r#type: String,
    project_id: Option<String>,
    quota_project_id: Option<String>,
    client_email: Option<String>,
    private_key: Option<String>,
    private_key_id: Option<String>,
    token_uri: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
}

/// Shows the secrets in the text of an account's file.
pub(super) fn secrets(text: &str, show: &mut dyn FnMut(&str)) {
    let Ok(file) = serde_json::from_str::<File>(text) else { return };
    let secrets = [file.private_key, file.client_secret, file.refresh_token];
    secrets.iter().flatten().for_each(|secret| show(secret));
}

impl Account {
    /// Reads the text of an account's file.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        // The error of the parser could quote the file, which holds a secret.
        let file: File = serde_json::from_str(text).map_err(|_| "its account file is not readable".to_owned())?;
        let need = |value: Option<String>, name: &str| value.ok_or_else(|| format!("its account file has no {name}"));
        let proof = match file.r#type.as_str() {
            "service_account" => Proof::Service {
                email: need(file.client_email, "client_email")?,
                key: Box::new(private_key(&need(file.private_key, "private_key")?)?),
                key_id: file.private_key_id,
            },
            "authorized_user" => Proof::Person {
                client_id: need(file.client_id, "client_id")?,
                client_secret: need(file.client_secret, "client_secret")?.into(),
                refresh_token: need(file.refresh_token, "refresh_token")?.into(),
            },
            _ => return Err("its account file is of a kind that is not known; use a service account".to_owned()),
        };
        let token_uri = Url::parse(file.token_uri.as_deref().unwrap_or(TOKEN_URI))
            .ok()
            .filter(|url| url.scheme() == "https" || matches!(url.host_str(), Some("127.0.0.1" | "localhost")))
            .ok_or_else(|| "the token_uri of its account file is not an https address".to_owned())?;
        Ok(Self { token_uri, proof, project: file.project_id.or(file.quota_project_id) })
    }

    fn form(&self, now: Timestamp) -> Result<String, ModelError> {
        let mut form = Serializer::new(String::new());
        match &self.proof {
            Proof::Service { email, key, key_id } => {
                let statement = statement(email, key, key_id.as_deref(), self.token_uri.as_str(), now)?;
                form.append_pair("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
                form.append_pair("assertion", &statement);
            }
            Proof::Person { client_id, client_secret, refresh_token } => {
                form.append_pair("grant_type", "refresh_token");
                form.append_pair("client_id", client_id);
                form.append_pair("client_secret", client_secret.expose_secret());
                form.append_pair("refresh_token", refresh_token.expose_secret());
            }
        }
        Ok(form.finish())
    }
}

/// The project an account's file names.
pub(crate) fn project_of(file: &str) -> Option<String> {
    Account::read(file).ok()?.project
}

fn private_key(pem: &str) -> Result<RsaKeyPair, String> {
    let unreadable = || "the private_key of its account file is not readable".to_owned();
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    let der = STANDARD.decode(body).map_err(|_| unreadable())?;
    RsaKeyPair::from_pkcs8(&der).map_err(|_| unreadable())
}

/// A statement of who asks, signed with the account's key.
fn statement(
    email: &str,
    key: &RsaKeyPair,
    key_id: Option<&str>,
    audience: &str,
    now: Timestamp,
) -> Result<String, ModelError> {
    let at = now.as_second();
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": key_id});
    let claims = json!({
        "iss": email, "scope": SCOPE, "aud": audience, "iat": at, "exp": at.saturating_add(STATEMENT_SECONDS),
    });
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| ModelError::broken("the account's key cannot sign"))?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A token and when it is no longer used.
struct Token {
    text: SecretString,
    until: Timestamp,
}

/// Hands out tokens of one account.
pub(super) struct TokenSource {
    account: Account,
    kept: Mutex<Option<Token>>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    expires_in: Option<i64>,
}

impl TokenSource {
    pub(super) fn new(account: Account) -> Self {
        Self { account, kept: Mutex::new(None) }
    }

    /// A token that is good now.
    pub(super) async fn token(&self, client: &reqwest::Client, now: Timestamp) -> Result<SecretString, ModelError> {
        let mut kept = self.kept.lock().await;
        if let Some(token) = kept.as_ref().filter(|token| now < token.until) {
            return Ok(token.text.clone());
        }
        let answer = tokio::time::timeout(PATIENCE, self.ask(client, now))
            .await
            .map_err(|_| ModelError::Timeout { what: "give a token", limit: PATIENCE })??;
        let seconds = answer.expires_in.unwrap_or(0).clamp(0, STATEMENT_SECONDS * 24) - MARGIN_SECONDS;
        let until = Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(now);
        let text = SecretString::from(answer.access_token);
        *kept = Some(Token { text: text.clone(), until });
        Ok(text)
    }

    async fn ask(&self, client: &reqwest::Client, now: Timestamp) -> Result<Answer, ModelError> {
        let form = self.account.form(now)?;
        let network = |error: reqwest::Error| ModelError::Network {
            reason: "no connection to the token server",
            source: Some(Arc::new(error.without_url())),
        };
        let post = client.post(self.account.token_uri.clone());
        let post = post.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
        let response = post.send().await.map_err(network)?;
        let status = response.status();
        let body = super::beginning(response.bytes_stream(), ANSWER_BYTES).await;
        let code = Some(status.as_u16());
        match status.as_u16() {
            200 => serde_json::from_slice(&body).map_err(|_| ModelError::Unknown {
                reason: "the token server sent no token",
                status: code,
                detail: Detail::default(),
            }),
            429 => Err(ModelError::RateLimited { retry_after: None, status: code }),
            500.. => Err(ModelError::Overloaded { retry_after: None, status: code }),
            _ => Err(ModelError::Unauthorized { status: code, detail: Detail::default() }),
        }
    }
}

#[cfg(test)]
mod tests;
