//! What every request and every answer passes: the check of the host name, the check that a page of somebody else did not
//! send it, and the headers that keep a browser strict.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::{Kind, Problem};
use super::server::{Place, Server};

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses requests for other hosts, and changes that a page of another origin asks for.
pub(super) async fn check(State(server): State<Server>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let Some(host) = host_of(headers, &server.place) else {
        let text = "This server is called by another name than its own. Nothing was done.";
        let hint = "use http://127.0.0.1 or http://localhost, or set public_url to the name it is known by";
        return Problem::new(Kind::Misdirected, text).hint(hint).into_response();
    };
    if is_unsafe(request.method()) && is_foreign(headers, &host) {
        let text = "A page of another origin asked for a change. Nothing was done.";
        return Problem::forbidden(text).hint("use the page of this server, or a token").into_response();
    }
    next.run(request).await
}

/// Whether a method may change something.
pub(super) fn is_unsafe(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The one host that the request is for, with its port; none when it is not ours. A name that is not ours means that somebody
/// points a name of theirs at this machine (DNS rebinding); an address cannot be pointed anywhere.
fn host_of(headers: &HeaderMap, place: &Place) -> Option<String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) => host,
        (_, _) => return None,
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let is_address = match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().ok().map(IpAddr::from),
        None => name.parse::<std::net::Ipv4Addr>().ok().map(IpAddr::from),
    };
    let ours = match is_address {
        Some(address) => address.is_loopback() || !place.loopback,
        None => {
            name.eq_ignore_ascii_case("localhost")
                || place.public_host.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(name))
        }
    };
    ours.then(|| host.to_ascii_lowercase())
}

/// Whether a browser says that a page of another origin sent this. Programs say nothing; they carry a token.
fn is_foreign(headers: &HeaderMap, host: &str) -> bool {
    let site = headers.get(FETCH_SITE).map(|value| matches!(value.as_bytes(), b"same-origin" | b"none"));
    let origin = headers.get(header::ORIGIN).map(|value| is_origin(value, host));
    site == Some(false) || origin == Some(false)
}

fn is_origin(value: &HeaderValue, host: &str) -> bool {
    let Ok(origin) = value.to_str() else { return false };
    let bare = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    bare.is_some_and(|bare| bare.eq_ignore_ascii_case(host))
}

/// Whether a browser vouches that its own page sent this: what a change by cookie needs.
pub(super) fn is_own_page(headers: &HeaderMap) -> bool {
    // A foreign one was refused before, so what is there is ours.
    headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE)
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

    fn asked(hosts: &[&str], place: &Place) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        host_of(&headers, place).is_some()
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let place = Place { loopback: true, ..Place::default() };
        for fine in ["localhost", "localhost:7878", "127.0.0.1:7878", "[::1]:7878", "[::1]", "LOCALHOST:1"] {
            assert!(asked(&[fine], &place), "{fine}");
        }
        for wrong in [
            "evil.example",
            "evil.example:7878",
            "127.0.0.1.evil.example",
            "localhost:",
            "localhost:x",
            "::1",
            "",
            "10.0.0.1",
        ] {
            assert!(!asked(&[wrong], &place), "{wrong}");
        }
        assert!(!asked(&[], &place));
        assert!(!asked(&["localhost", "evil.example"], &place));
    }

    #[test]
    fn a_public_server_answers_to_its_name_and_to_addresses() {
        let place = Place { public_host: Some("adjutant.example".to_owned()), ..Place::default() };
        for fine in ["adjutant.example", "Adjutant.Example:443", "10.0.0.1:80", "localhost"] {
            assert!(asked(&[fine], &place), "{fine}");
        }
        assert!(!asked(&["evil.example"], &place));
    }

    #[test]
    fn a_page_of_another_origin_is_foreign_and_a_program_is_not() {
        let with = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            is_foreign(&headers, "localhost:7878")
        };
        assert!(!with(&[]));
        assert!(!with(&[("origin", "http://localhost:7878"), ("sec-fetch-site", "same-origin")]));
        for wrong in ["http://evil.example", "http://localhost:1", "null", "localhost:7878"] {
            assert!(with(&[("origin", wrong)]), "{wrong}");
        }
        assert!(with(&[("sec-fetch-site", "cross-site")]) && with(&[("sec-fetch-site", "same-site")]));
        assert!(with(&[("origin", "http://localhost:7878"), ("sec-fetch-site", "cross-site")]));
    }
}
