//! The client that providers are called with. Made in one place, so that what it may do is said once.

use std::time::Duration;

/// How long a connection may take to come about; answers have their own limits.
const CONNECT: Duration = Duration::from_secs(10);

/// The client for the providers that the operator configured. It follows no redirect, because a key must not travel to where
/// nobody sent it, and asks no proxy that only the environment names.
///
/// # Errors
/// When the system's certificates or the TLS library cannot be used.
pub fn provider_client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT)
        .build()
}
