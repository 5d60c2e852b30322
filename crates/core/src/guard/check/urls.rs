//! Cases of `check urls`: a request with its redirects, with the answers of the resolver given as data.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::Value;

use super::{Answer, BadCase, finished, read};
use crate::guard::host::{Body, HostPolicy, HostSpec, Method, NetCaps, Redirect, Url};
use crate::guard::scope::Denied;

/// One request.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    /// What may be reached, as it was written.
    pub policy: Value,
    /// What is asked for.
    pub url: String,
    /// How; GET unless it says otherwise.
    pub method: Option<String>,
    /// What the agent may do; `network_read` unless it says otherwise.
    pub caps: Option<Vec<String>>,
    /// The answers to look-ups: addresses, or a list of such lists for look-ups one after another.
    #[serde(default)]
    pub dns: BTreeMap<String, Vec<Value>>,
    /// What the server answers, hop by hop.
    #[serde(default)]
    pub redirects: Vec<Value>,
    /// The only addresses the last request may be sent to.
    pub connect_ip_in: Option<Vec<IpAddr>>,
    /// What is expected.
    pub expect: Option<String>,
}

/// Judges a case and compares it with what it expects.
///
/// # Errors
/// Fails when the case cannot be read.
pub fn check(case: &Value) -> Result<Value, BadCase> {
    let parsed: Case = read(case)?;
    let judged = parsed.judge();
    let reached = |addresses: &Vec<IpAddr>| {
        parsed.connect_ip_in.as_ref().is_none_or(|only| addresses.iter().all(|a| only.contains(a)))
    };
    let stays = judged.as_ref().map_or(true, reached);
    let answer = Answer::from(judged.map(|_| ()));
    let pass = parsed.expect.as_ref().map(|expect| expect == answer.verdict() && stays);
    Ok(finished(answer.line(case), pass))
}

impl Case {
    /// Judges the request with all its redirects; answers the addresses that the last one may be sent to.
    ///
    /// # Errors
    /// Fails with the deciding rule.
    pub fn judge(&self) -> Result<Vec<IpAddr>, Denied> {
        let policy = self.compile()?;
        let name = self.method.as_deref().unwrap_or("GET");
        let method = Method::parse(name)
            .ok_or_else(|| Denied::firm("U9", "unknown_method", format!("there is no method {name:?}")))?;
        let caps = self.caps.as_ref().map_or(NetCaps { read: true, write: false }, |caps| NetCaps {
            read: caps.iter().any(|cap| cap == "network_read"),
            write: caps.iter().any(|cap| cap == "network_write"),
        });
        let mut resolver = Resolver { answers: &self.dns, asked: HashMap::new() };
        let mut url = Url::parse(&self.url)?;
        policy.check_url(&url, method, caps)?;
        let mut addresses = policy.check_addresses(&url, &resolver.look_up(&url)?)?;
        for (followed, location) in self.redirects.iter().enumerate() {
            let location = location.as_str().or_else(|| location.get("location")?.as_str()).unwrap_or_default();
            let body = if method.is_reading() { Body::None } else { Body::Some };
            url = policy.check_redirect(Redirect { from: &url, location, followed, method, body }, caps)?;
            addresses = policy.check_addresses(&url, &resolver.look_up(&url)?)?;
        }
        Ok(addresses.iter().map(std::net::SocketAddr::ip).collect())
    }

    fn compile(&self) -> Result<HostPolicy, Denied> {
        let known = ["hosts", "schemes", "ports", "allow_private", "path_prefix"];
        let fields = known.iter().filter_map(|key| Some(((*key).to_owned(), self.policy.get(key)?.clone())));
        let spec: HostSpec = serde_json::from_value(Value::Object(fields.collect()))
            .map_err(|error| Denied::firm("U3", "broken_policy", format!("the policy cannot be read: {error}")))?;
        Ok(HostPolicy::compile(&spec))
    }
}

struct Resolver<'a> {
    answers: &'a BTreeMap<String, Vec<Value>>,
    /// How often each name was asked for.
    asked: HashMap<String, usize>,
}

impl Resolver<'_> {
    /// One look-up; the last answer is given again when there are no more.
    fn look_up(&mut self, url: &Url) -> Result<Vec<IpAddr>, Denied> {
        if url.literal().is_some() {
            return Ok(Vec::new());
        }
        let Some(answers) = self.answers.get(url.host()) else { return Ok(Vec::new()) };
        let asked = self.asked.entry(url.host().to_owned()).or_default();
        let nested = answers.first().is_some_and(Value::is_array);
        let answer =
            if nested { answers.get(*asked).or(answers.last()).and_then(Value::as_array) } else { Some(answers) };
        *asked += 1;
        let address = |text: &Value| {
            let address = text.as_str().and_then(|text| text.parse().ok());
            address.ok_or_else(|| Denied::firm("U6", "no_address", format!("{text} is not an address")))
        };
        answer.into_iter().flatten().map(address).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(fields: Value) -> Value {
        let mut case = json!({"id": "u", "policy": {"hosts": ["*.example.org"]}, "url": "https://a.example.org/", "expect": "allow",
            "dns": {"a.example.org": ["93.184.215.14"], "b.example.org": ["151.101.1.140"], "private.example.org": ["10.0.0.1"]}});
        case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        check(&case).unwrap()
    }

    fn code(fields: Value) -> String {
        line(fields)["code"].as_str().unwrap().to_owned()
    }

    #[test]
    fn u6_a_hop_is_looked_up_once_and_the_next_anew() {
        let rebinding = json!({"a.example.org": [["93.184.215.14"], ["127.0.0.1"]]});
        assert_eq!(code(json!({"dns": rebinding})), "ok");
        assert_eq!(code(json!({"dns": rebinding, "redirects": ["/again"]})), "not_public");
        assert_eq!(code(json!({"dns": {}})), "no_address");
        assert_eq!(code(json!({"dns": {"a.example.org": ["nonsense"]}})), "no_address");
        assert_eq!(code(json!({"url": "https://private.example.org/"})), "not_public");
    }

    #[test]
    fn u6_only_the_answered_addresses_are_connected_to() {
        assert_eq!(line(json!({"connect_ip_in": ["93.184.215.14"]}))["pass"], json!(true));
        assert_eq!(line(json!({"connect_ip_in": ["1.1.1.1"]}))["pass"], json!(false));
        let redirected = json!({"redirects": ["https://b.example.org/"], "connect_ip_in": ["151.101.1.140"]});
        assert_eq!(line(redirected)["pass"], json!(true));
    }

    #[test]
    fn u8_every_hop_is_judged() {
        assert_eq!(code(json!({"redirects": ["/1", "/2", "/3", "/4", "/5"]})), "ok");
        assert_eq!(code(json!({"redirects": ["/1", "/2", "/3", "/4", "/5", "/6"]})), "too_many_redirects");
        assert_eq!(
            code(json!({"redirects": ["https://b.example.org/", "https://private.example.org/"]})),
            "not_public"
        );
        assert_eq!(code(json!({"redirects": [{"status": 302, "location": "https://evil.test/"}]})), "host");
        let write = json!({"method": "POST", "caps": ["network_write"], "redirects": ["https://b.example.org/"]});
        assert_eq!(code(write), "body_to_another_origin");
    }

    #[test]
    fn u9_methods_are_exact() {
        assert_eq!(code(json!({"method": "get"})), "unknown_method");
        assert_eq!(code(json!({"method": "POST"})), "capability");
        assert_eq!(code(json!({"caps": []})), "capability");
        assert_eq!(code(json!({"policy": {"hosts": ["*"], "path_prefix": 5}})), "broken_policy");
    }
}
