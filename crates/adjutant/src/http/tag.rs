//! Conditional requests: which version somebody means, and whether they have it already.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};

use super::problem::Problem;

/// Which version a change is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expected {
    /// `If-Match: "…"`.
    Tag(String),
    /// `If-Match: *`: whatever is there.
    Any,
    /// `If-None-Match: *`: nothing may be there.
    Absent,
    /// Nothing was said.
    Unsaid,
}

/// Reads which version a change is about.
///
/// # Errors
/// 422 when it cannot be understood.
pub(super) fn expected(headers: &HeaderMap) -> Result<Expected, Problem> {
    let unclear = || Problem::invalid("If-Match and If-None-Match take one tag, or *. Nothing was done.");
    let text = |name| match headers.get(name) {
        None => Ok(None),
        Some(value) => value.to_str().map(|text| Some(text.trim().to_owned())).map_err(|_| unclear()),
    };
    match (text(header::IF_MATCH)?.as_deref(), text(header::IF_NONE_MATCH)?.as_deref()) {
        (None, None) => Ok(Expected::Unsaid),
        (Some("*"), None) => Ok(Expected::Any),
        (None, Some("*")) => Ok(Expected::Absent),
        (Some(tag), None) if tag.starts_with('"') && tag.ends_with('"') && tag.len() > 1 => {
            Ok(Expected::Tag(tag.to_owned()))
        }
        (_, _) => Err(unclear()),
    }
}

/// Older clients know no versions: they mean what is there.
pub(super) async fn whatever_is_there(mut request: Request) -> Request {
    if !request.headers().contains_key(header::IF_NONE_MATCH) {
        request.headers_mut().entry(header::IF_MATCH).or_insert(HeaderValue::from_static("*"));
    }
    request
}

/// Whether a reader has this version already.
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|line| line.split(',')).any(|known| matches!(known.trim(), "*") || known.trim() == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_which_version_it_is_about() {
        let with = |pairs: &[(header::HeaderName, &str)]| {
            let headers = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            expected(&headers)
        };
        assert_eq!(with(&[]).unwrap(), Expected::Unsaid);
        assert_eq!(with(&[(header::IF_MATCH, "\"v1\"")]).unwrap(), Expected::Tag("\"v1\"".to_owned()));
        assert_eq!(with(&[(header::IF_MATCH, "*")]).unwrap(), Expected::Any);
        assert_eq!(with(&[(header::IF_NONE_MATCH, "*")]).unwrap(), Expected::Absent);
        for (name, bad) in [(header::IF_MATCH, "v1"), (header::IF_MATCH, "\""), (header::IF_NONE_MATCH, "\"v1\"")] {
            assert!(with(&[(name, bad)]).is_err(), "{bad}");
        }
        assert!(with(&[(header::IF_MATCH, "*"), (header::IF_NONE_MATCH, "*")]).is_err());
    }
}
