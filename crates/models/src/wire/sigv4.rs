//! Amazon's signature (version 4) over a request: method, path, query, headers and body, so that nobody on the way can
//! change one of them. Pure: the moment is an argument.

use std::fmt::Write as _;

use reqwest::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue};
use ring::{digest, hmac};
use secrecy::ExposeSecret;
use url::Url;

use super::auth::AwsKey;
use crate::ModelError;

const SERVICE: &str = "bedrock";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Signs a POST with these headers.
pub(super) fn sign(
    headers: &mut HeaderMap,
    url: &Url,
    body: &[u8],
    key: &AwsKey,
    region: &str,
    now: jiff::Timestamp,
) -> Result<(), ModelError> {
    let broken = || ModelError::broken("the request cannot be signed: a header is not plain text");
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| broken());
    let moment = moment(now);
    headers.insert(HOST, value(&host(url))?);
    headers.insert(HeaderName::from_static("x-amz-date"), value(&moment)?);
    if let Some(session) = &key.session {
        let mut session = value(session.expose_secret())?;
        session.set_sensitive(true);
        headers.insert(HeaderName::from_static("x-amz-security-token"), session);
    }
    let mut signed = Vec::new();
    for (name, value) in headers.iter() {
        signed.push((name.as_str(), value.to_str().map_err(|_| broken())?));
    }
    let request = Request { method: "POST", path: url.path(), query: url.query().unwrap_or_default(), headers: signed };
    let authorization = request.authorization(body, key, &moment, region, SERVICE);
    let mut authorization = value(&authorization)?;
    authorization.set_sensitive(true);
    headers.insert(AUTHORIZATION, authorization);
    Ok(())
}

fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

fn moment(now: jiff::Timestamp) -> String {
    let at = now.to_zoned(jiff::tz::TimeZone::UTC).datetime();
    let (date, time) = (at.date(), at.time());
    let (year, month, day) = (date.year(), date.month(), date.day());
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", time.hour(), time.minute(), time.second())
}

struct Request<'a> {
    method: &'a str,
    path: &'a str,
    query: &'a str,
    headers: Vec<(&'a str, &'a str)>,
}

impl Request<'_> {
    fn authorization(mut self, body: &[u8], key: &AwsKey, moment: &str, region: &str, service: &str) -> String {
        self.headers.sort_unstable();
        let names = self.headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let day = &moment[..8];
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let to_sign = format!("{ALGORITHM}\n{moment}\n{scope}\n{}", hash(self.canonical(&names, body).as_bytes()));
        let secret = format!("AWS4{}", key.secret.expose_secret());
        let steps = [day, region, service, "aws4_request"];
        let signing = steps.iter().fold(secret.into_bytes(), |key, step| mac(&key, step));
        let signature = hex(&mac(&signing, &to_sign));
        let access = &key.access;
        format!("{ALGORITHM} Credential={access}/{scope}, SignedHeaders={names}, Signature={signature}")
    }

    fn canonical(&self, names: &str, body: &[u8]) -> String {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}:{}\n", squeezed(value))).collect();
        let Self { method, path, query, .. } = self;
        // The path is escaped once more, though it is escaped already: that is what the service does.
        let path: Vec<_> = path.split('/').map(super::provider::encoded).collect();
        format!("{method}\n{}\n{query}\n{headers}\n{names}\n{}", path.join("/"), hash(body))
    }
}

/// A value without blanks around it and with single ones inside.
fn squeezed(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    fn key(session: Option<&str>) -> AwsKey {
        AwsKey {
            access: "AKIDEXAMPLE".to_owned(),
            secret: SecretString::from("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session: session.map(SecretString::from),
        }
    }

    fn signature(method: &str, path: &str, query: &str, extra: &[(&str, &str)], body: &[u8]) -> String {
        let mut headers = vec![("host", "example.amazonaws.com"), ("x-amz-date", "20150830T123600Z")];
        headers.extend(extra);
        let request = Request { method, path, query, headers };
        let written = request.authorization(body, &key(None), "20150830T123600Z", "us-east-1", "service");
        written.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    #[test]
    fn requests_of_the_published_test_suite_get_their_published_signatures() {
        assert_eq!(
            signature("GET", "/", "", &[], b""),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        assert_eq!(
            signature("POST", "/", "", &[], b""),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        );
        assert_eq!(
            signature("GET", "/", "", &[("my-header1", " value1  value2 ")], b""),
            signature("GET", "/", "", &[("my-header1", "value1 value2")], b""),
        );
        assert_eq!(
            signature("POST", "/", "", &[("content-type", "application/x-www-form-urlencoded")], b"Param1=value1"),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
        );
    }

    #[test]
    fn a_request_is_signed_with_its_moment_and_the_lent_keys_token() {
        let url = Url::parse("http://127.0.0.1:8080/model/a%3A0/converse-stream").unwrap();
        let mut headers = HeaderMap::new();
        let now = jiff::Timestamp::from_second(1_440_938_160).unwrap();
        sign(&mut headers, &url, b"{}", &key(Some("lent")), "eu-west-1", now).unwrap();
        assert_eq!(headers["x-amz-date"], "20150830T123600Z");
        assert_eq!(headers["x-amz-security-token"], "lent");
        let shown = headers[AUTHORIZATION].to_str().unwrap();
        let begin = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request, \
                     SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=";
        assert!(shown.starts_with(begin), "{shown}");
        assert!(headers[AUTHORIZATION].is_sensitive());
    }

    #[test]
    fn an_escaped_path_is_escaped_once_more() {
        let request = Request { method: "POST", path: "/model/a%3A0/x", query: "", headers: Vec::new() };
        assert!(request.canonical("", b"").starts_with("POST\n/model/a%253A0/x\n"));
    }
}
