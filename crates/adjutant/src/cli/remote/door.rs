//! Where a server is and who we are there. One that was found by the file in its data directory may start again meanwhile, with
//! another token and perhaps at another address: then the file says so, and a request that was turned away is made once more.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, Request, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// Bytes of a small file of ours.
const SMALL: u64 = 64 * 1024;

/// An address and who we are there.
pub(super) struct Key {
    pub(super) url: Url,
    token: SecretString,
}

/// The way in.
pub(super) struct Door {
    http: reqwest::Client,
    key: Mutex<Arc<Key>>,
    /// The data directory whose server it is, if that is how it was found.
    data: Option<PathBuf>,
}

impl Door {
    /// The way in to a server that was named.
    pub(super) fn named(http: reqwest::Client, url: Url, token: SecretString) -> Self {
        Self { http, key: Mutex::new(Arc::new(Key { url, token })), data: None }
    }

    /// The way in to the server that has a data directory, if one says that it does.
    pub(super) fn of_data(http: reqwest::Client, data: &Path) -> Option<Self> {
        Some(Self { http, key: Mutex::new(Arc::new(left_in(data)?)), data: Some(data.to_owned()) })
    }

    /// Whether it was found by its data directory.
    pub(super) fn is_of_data(&self) -> bool {
        self.data.is_some()
    }

    pub(super) fn url(&self) -> Url {
        self.key().url.clone()
    }

    /// A request that says who asks.
    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url).bearer_auth(self.key().token.expose_secret())
    }

    /// A request that says nothing of who asks.
    pub(super) fn glance(&self, url: Url) -> RequestBuilder {
        self.http.get(url)
    }

    /// Sends a request; once more, if nobody took it and the server is another by now.
    pub(super) async fn send(&self, request: RequestBuilder) -> reqwest::Result<Response> {
        let again = request.try_clone();
        let answer = request.send().await;
        let turned_away = match &answer {
            Ok(answer) => answer.status() == StatusCode::UNAUTHORIZED,
            Err(error) => error.is_connect(),
        };
        let again = again.filter(|_| turned_away).and_then(|again| again.build().ok());
        match again.and_then(|again| self.turned(again)) {
            Some(again) => self.http.execute(again).await,
            None => answer,
        }
    }

    /// The same request for whoever has the data directory now; none if that is nobody else.
    fn turned(&self, mut request: Request) -> Option<Request> {
        let (known, found) = (self.key(), left_in(self.data.as_ref()?)?);
        if found.url == known.url && found.token.expose_secret() == known.token.expose_secret() {
            return None;
        }
        let mut url = found.url.clone();
        url.set_path(request.url().path());
        url.set_query(request.url().query());
        *request.url_mut() = url;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", found.token.expose_secret())).ok()?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(found);
        Some(request)
    }

    fn key(&self) -> Arc<Key> {
        Arc::clone(&self.key.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a server on this data directory left for whoever holds it.
fn left_in(data: &Path) -> Option<Key> {
    let told: Value = serde_json::from_str(&small(&data.join("server.json"))?).ok()?;
    Some(Key {
        url: told["url"].as_str()?.parse().ok()?,
        token: SecretString::from(told["token"].as_str()?.to_owned()),
    })
}

/// The text of a small file, if there is one.
pub(super) fn small(path: &Path) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(SMALL).read_to_string(&mut text).ok()?;
    Some(text)
}
