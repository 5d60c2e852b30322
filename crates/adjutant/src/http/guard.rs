//! What every request and every answer passes: the check of the host name, and the headers that keep a browser strict.

use axum::extract::Request;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Names under which a server on loopback may be called. Any other name means that somebody's page points a name of theirs
/// at this machine (DNS rebinding).
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Refuses requests for other hosts than this machine.
pub(super) async fn check_host(request: Request, next: Next) -> Response {
    if is_loopback(request.headers()) {
        return next.run(request).await;
    }
    let text = "This server is called by another name than its own. Use http://127.0.0.1 or http://localhost.\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

fn is_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) => {
            let name = match host.rsplit_once(':') {
                Some((name, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => name,
                Some(_) | None => host,
            };
            LOOPBACK.iter().any(|known| known.eq_ignore_ascii_case(name))
        }
        (_, _) => false,
    }
}

/// Adds the headers that keep a browser strict.
pub(super) async fn add_headers(mut response: Response) -> Response {
    let fixed: [(HeaderName, &'static str); 6] = [
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let headers = response.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        is_loopback(&headers)
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for fine in ["localhost", "localhost:7878", "127.0.0.1:7878", "[::1]:7878", "[::1]", "LOCALHOST:1"] {
            assert!(asked(&[fine]), "{fine}");
        }
        for wrong in
            ["evil.example", "evil.example:7878", "127.0.0.1.evil.example", "localhost:", "localhost:x", "::1", ""]
        {
            assert!(!asked(&[wrong]), "{wrong}");
        }
        assert!(!asked(&[]));
        assert!(!asked(&["localhost", "evil.example"]));
    }
}
