//! What a provider says when it does not answer, and which of our errors that is. Pure: no clock is read, so a moment
//! in a header is measured against the moment the same response names as its own.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER};
use serde_json::Value;

use crate::{Detail, ModelError};

/// The longest wait a provider can ask for; more is taken for this.
const RETRY_AFTER_MOST: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of a code that is shown; a longer one is not a code.
const CODE_BYTES: usize = 64;

/// The words of all providers for what a status would say, for failures that come in the middle of an answer.
const RATE_LIMITED: &[&str] =
    &["rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED", "throttlingException", "ThrottlingException"];
const OVERLOADED: &[&str] = &[
    "server_error",
    "overloaded_error",
    "api_error",
    "internal_server_error",
    "timeout_error",
    "UNAVAILABLE",
    "INTERNAL",
    "DEADLINE_EXCEEDED",
    "internalServerException",
    "serviceUnavailableException",
    "modelStreamErrorException",
    "modelTimeoutException",
    "vector_store_timeout",
];
const UNAUTHORIZED: &[&str] =
    &["authentication_error", "permission_error", "UNAUTHENTICATED", "PERMISSION_DENIED", "accessDeniedException"];
const UNKNOWN_MODEL: &[&str] = &["model_not_found", "not_found_error", "NOT_FOUND", "resourceNotFoundException"];
const BAD_REQUEST: &[&str] =
    &["invalid_request_error", "BadRequestError", "INVALID_ARGUMENT", "validationException", "invalid_prompt"];

/// A failure as the provider described it.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    status: Option<u16>,
    retry_after: Option<Duration>,
    /// Its short words for what happened (`code` and `type`).
    codes: Vec<String>,
    message: String,
}

impl Fault {
    /// Reads a response that is an error.
    pub(crate) fn from_response(status: u16, headers: &HeaderMap, body: &[u8], now: jiff::Timestamp) -> Self {
        let mut fault = match serde_json::from_slice::<Value>(body) {
            Ok(value) => {
                // Gemini puts the error into a list when it was asked for a stream.
                let value = value.get(0).unwrap_or(&value);
                Self::from_value(value.get("error").unwrap_or(value))
            }
            Err(_) => Self { message: String::from_utf8_lossy(body).into_owned(), ..Self::default() },
        };
        fault.status = Some(status);
        fault.retry_after = retry_after(headers, now).or(fault.retry_after);
        let kind = headers.get("x-amzn-errortype").and_then(|kind| kind.to_str().ok());
        // What follows the colon is an address.
        fault.codes.extend(kind.and_then(|kind| kind.split(':').next()).map(str::to_owned));
        fault
    }

    /// A failure that is known by its short word alone.
    pub(crate) fn from_code(code: &str, message: &str) -> Self {
        Self { codes: vec![code.to_owned()], message: message.to_owned(), ..Self::default() }
    }

    /// The provider's filter stopped the request or its answer.
    pub(crate) fn policy(code: &str) -> Self {
        Self { codes: vec!["content_filter".to_owned(), code.to_owned()], ..Self::default() }
    }

    /// Reads an error that came in place of a piece of an answer. Some put the status into its code.
    pub(crate) fn from_value(error: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = error.get("message").or_else(|| error.get("detail")).and_then(text);
        let number = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        Self {
            status: number.filter(|code| (400..600).contains(code)),
            retry_after: retry_delay(error),
            codes: ["code", "type", "status"].iter().filter_map(|key| error.get(key).and_then(text)).collect(),
            message: message.or_else(|| text(error)).unwrap_or_default(),
        }
    }

    /// The error this is. `model` names what was asked for; `redact` takes secrets out of the provider's words.
    pub(crate) fn into_error(self, model: &str, redact: impl Fn(&str) -> String) -> ModelError {
        let Self { status, retry_after, .. } = self;
        let detail = Detail::new(&redact(&self.message));
        if self.is_overflow() {
            return ModelError::ContextOverflow { status, detail };
        }
        if self.is_policy() {
            return ModelError::Policy { status, detail };
        }
        if self.is_broke() {
            return ModelError::NoCredit { status };
        }
        match status.unwrap_or(0) {
            // Gemini and xAI say so with the status of a bad request.
            400 if self.says(&["api key not valid", "incorrect api key"]) => {
                ModelError::Unauthorized { status, detail }
            }
            // Groq says so of a model that it served once.
            400 if self.has_code(&["model_decommissioned"]) => {
                ModelError::UnknownModel { model: model.to_owned(), hint: " to the provider (HTTP 400)".to_owned() }
            }
            401 | 403 => ModelError::Unauthorized { status, detail },
            402 => ModelError::NoCredit { status },
            404 if self.names_model() => {
                ModelError::UnknownModel { model: model.to_owned(), hint: " to the provider (HTTP 404)".to_owned() }
            }
            404 | 405 => ModelError::broken("the provider has nothing at this address: look at its base_url"),
            300..=399 => ModelError::broken("the provider's address leads to another one: correct its base_url"),
            408 => ModelError::Overloaded { retry_after, status },
            413 => ModelError::ContextOverflow { status, detail },
            429 => ModelError::RateLimited { retry_after, status },
            500..=599 => ModelError::Overloaded { retry_after, status },
            400..=499 => ModelError::BadRequest { status, code: self.shown_code(), detail },
            _ if self.has_code(RATE_LIMITED) => ModelError::RateLimited { retry_after, status },
            _ if self.has_code(OVERLOADED) => ModelError::Overloaded { retry_after, status },
            _ if self.has_code(UNAUTHORIZED) => ModelError::Unauthorized { status, detail },
            _ if self.has_code(UNKNOWN_MODEL) => {
                ModelError::UnknownModel { model: model.to_owned(), hint: " to the provider".to_owned() }
            }
            _ if self.has_code(BAD_REQUEST) => ModelError::BadRequest { status, code: self.shown_code(), detail },
            _ => ModelError::Unknown { reason: "it sent an error", status, detail },
        }
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn says(&self, words: &[&str]) -> bool {
        let lower = self.message.to_lowercase();
        words.iter().any(|word| lower.contains(word))
    }

    fn is_overflow(&self) -> bool {
        let request_fault = matches!(self.status, None | Some(400 | 413 | 422 | 500));
        self.has_code(&["context_length_exceeded", "exceed_context_size_error"])
            || request_fault
                && self.says(&[
                    "maximum context length",
                    "context length exceeded",
                    "exceeds the available context size",
                    "context window",
                    "prompt is too long",
                    "input is too long",
                    "exceeds the maximum number of tokens",
                    "too many tokens: ",
                    "longer than the maximum model length",
                ])
    }

    fn is_broke(&self) -> bool {
        self.has_code(&[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "insufficient_balance",
            "billing_error",
            "billing_not_active",
        ]) || self.status == Some(400) && self.says(&["credit balance is too low"])
    }

    fn is_policy(&self) -> bool {
        self.status == Some(451)
            || self.has_code(&["content_policy_violation", "content_filter", "moderation_blocked"])
            || self.status == Some(403) && self.says(&["moderation", "flagged"])
    }

    fn names_model(&self) -> bool {
        self.has_code(UNKNOWN_MODEL) || self.has_code(&["DeploymentNotFound"]) || self.says(&["model"])
    }

    /// The first code that is a plain word: free text could quote the request.
    fn shown_code(&self) -> Option<String> {
        let plain = |code: &&String| {
            (1..=CODE_BYTES).contains(&code.len())
                && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        };
        self.codes.iter().find(plain).cloned()
    }
}

/// The wait that Google names beside an error, a number of seconds with an `s` behind it.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?.as_str()?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().map(|wait| wait.min(RETRY_AFTER_MOST))
}

/// How long the provider wants us to wait: milliseconds, seconds, or a moment, by its clock where it says what that shows.
fn retry_after(headers: &HeaderMap, now: jiff::Timestamp) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().and_then(|number| Duration::try_from_secs_f64(number).ok());
    let millis = text(HeaderName::from_static("retry-after-ms")).and_then(number).map(|millis| millis / 1000);
    let seconds = || text(RETRY_AFTER).and_then(number);
    let moment = || {
        let parser = DateTimeParser::new();
        let then = parser.parse_timestamp(text(RETRY_AFTER)?).ok()?;
        let now = text(reqwest::header::DATE).and_then(|date| parser.parse_timestamp(date).ok()).unwrap_or(now);
        Some(Duration::from_secs(u64::try_from(then.as_second() - now.as_second()).unwrap_or(0)))
    };
    millis.or_else(seconds).or_else(moment).map(|wait| wait.min(RETRY_AFTER_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirty seconds before Wed, 21 Oct 2015 07:28:00 GMT.
    fn now() -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_445_412_450).unwrap()
    }

    fn classify(status: u16, body: &str) -> ModelError {
        let fault = Fault::from_response(status, &HeaderMap::new(), body.as_bytes(), now());
        fault.into_error("local/model", str::to_owned)
    }

    fn wait(headers: &[(&'static str, &'static str)]) -> Option<f64> {
        let pairs = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), reqwest::header::HeaderValue::from_static(value)));
        retry_after(&pairs.collect(), now()).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn each_failure_is_known_by_what_providers_really_send() {
        for (status, body, class) in [
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                "context_overflow",
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}"#,
                "context_overflow",
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 32 tokens.","type":"BadRequestError","code":400}"#,
                "context_overflow",
            ),
            (413, "Payload Too Large", "context_overflow"),
            (
                400,
                r#"{"error":{"message":"Invalid type for 'messages'.","type":"invalid_request_error","code":"invalid_type"}}"#,
                "bad_request",
            ),
            (422, r#"{"detail":[{"loc":["body"]}]}"#, "bad_request"),
            (
                400,
                r#"{"error":{"message":"flagged","type":"invalid_request_error","code":"content_policy_violation"}}"#,
                "policy",
            ),
            (401, r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#, "unauthorized"),
            (403, r#"{"error":{"message":"Country not supported","code":"unsupported_country"}}"#, "unauthorized"),
            (403, r#"{"error":{"message":"input was flagged by moderation","code":403}}"#, "policy"),
            (402, r#"{"error":{"message":"Insufficient credits","code":402}}"#, "no_credit"),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                "no_credit",
            ),
            (429, r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#, "rate_limited"),
            (
                404,
                r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#,
                "unknown_model",
            ),
            (404, "404 page not found", "broken"),
            (405, r#"{"detail":"Method Not Allowed"}"#, "broken"),
            (307, "", "broken"),
            (408, "", "overloaded"),
            (500, r#"{"error":{"message":"The server had an error","type":"server_error"}}"#, "overloaded"),
            (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#, "overloaded"),
            (529, "", "overloaded"),
        ] {
            let error = classify(status, body);
            assert_eq!(error.class(), class, "{status} {body}");
            assert!(error.status().is_none() || error.status() == Some(status));
        }
    }

    #[test]
    fn an_error_inside_a_stream_is_known_by_its_code() {
        let classify =
            |text: &str| Fault::from_value(&serde_json::from_str(text).unwrap()).into_error("m", str::to_owned);
        assert_eq!(classify(r#"{"message":"x","type":"server_error"}"#).class(), "overloaded");
        assert_eq!(classify(r#"{"message":"x","code":429}"#).class(), "rate_limited");
        assert_eq!(classify(r#"{"message":"x","code":"rate_limit_exceeded"}"#).class(), "rate_limited");
        assert_eq!(classify(r#""it broke""#).class(), "unknown");
    }

    #[test]
    fn only_plain_codes_are_shown_and_only_words_without_secrets_are_kept() {
        let body = r#"{"error":{"message":"the prompt `sk-1` is bad","code":"you said: hello","type":"invalid_type"}}"#;
        let fault = Fault::from_response(400, &HeaderMap::new(), body.as_bytes(), now());
        let error = fault.into_error("m", |text| text.replace("sk-1", "***"));
        assert_eq!(error.to_string(), "the provider refused the request (HTTP 400) [invalid_type]");
        assert_eq!(error.detail(), Some("the prompt `***` is bad"));
    }

    #[test]
    fn the_wait_is_read_in_all_its_forms() {
        assert_eq!(wait(&[("retry-after", "7")]), Some(7.0));
        assert_eq!(wait(&[("retry-after", "0.5")]), Some(0.5));
        assert_eq!(wait(&[("retry-after", "20"), ("retry-after-ms", "1500")]), Some(1.5));
        assert_eq!(wait(&[("retry-after", "999999999")]), Some(86400.0));
        let (date, later) = ("Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:30 GMT");
        assert_eq!(wait(&[("retry-after", later), ("date", date)]), Some(30.0));
        assert_eq!(wait(&[("retry-after", date), ("date", later)]), Some(0.0));
        assert_eq!(
            wait(&[("retry-after", later)]),
            Some(60.0),
            "by our clock where it does not say what its own shows"
        );
        for bad in ["-1", "soon", "NaN", "inf"] {
            assert_eq!(wait(&[("retry-after", bad)]), None, "{bad}");
        }
    }
}
