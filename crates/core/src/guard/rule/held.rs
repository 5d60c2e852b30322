//! What standing rules keep back, asked path by path: of what a call returns or copies nobody knows the paths before it runs,
//! so its results are judged one by one (F7). The same for web addresses that servers redirect a call to (N4).

use std::sync::Arc;

use serde_json::Value;

use super::{Asked, Paths, Rule, Rules, Seen};
use crate::guard::host::Url;
use crate::guard::judge::{Caller, Decision};
use crate::guard::path::NotePath;
use crate::guard::pattern::Pattern;
use crate::tool::Touch;

/// The tool that reads one file: whatever gives away what a file holds is judged as a call of it, too.
const READ: &str = "read_file";
/// Its argument.
const PATH: &str = "path";
/// The argument that stands for a web address where a tool takes none: rules about hosts look at every argument.
const URL: &str = "url";

/// Rules that stand in the way of touching some paths.
#[derive(Debug, Clone, Default)]
pub struct Held {
    rules: Vec<(Rule, Vec<Pattern>)>,
    /// What the paths are asked about with.
    arguments: Value,
    /// The argument that is each of them.
    argument: String,
}

impl Held {
    /// Whether no rule stands in the way of anything.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The first rule that stands in the way of this path.
    #[must_use]
    pub fn holding(&self, path: &NotePath) -> Option<&Rule> {
        if self.rules.is_empty() {
            return None;
        }
        let mut arguments = Value::Null;
        if self.rules.iter().any(|(rule, _)| rule.when.looks_at_arguments()) {
            arguments.clone_from(&self.arguments);
            arguments[self.argument.as_str()] = Value::from(path.as_str());
        }
        let call = Seen::one(&arguments, path);
        let holds = |(rule, patterns): &&(Rule, Vec<Pattern>)| rule.when.holds(patterns, &call, rule.reach());
        self.rules.iter().find(holds).map(|(rule, _)| rule)
    }
}

/// Rules that stand in the way of a server that redirects a call to some web addresses.
#[derive(Debug, Clone, Default)]
pub struct HeldUrls {
    rules: Vec<(Rule, Vec<Pattern>)>,
    /// The call, in which each address takes the place of the one that was asked for.
    arguments: Value,
    schema: Value,
    touches: Vec<Touch>,
    sources: Vec<NotePath>,
    /// The arguments that are web addresses.
    names: Vec<Arc<str>>,
}

impl HeldUrls {
    /// Whether a rule stands in the way of this address.
    #[must_use]
    pub fn holds(&self, url: &Url) -> bool {
        let paths = Paths::of(&self.touches, &self.sources);
        let is_held = |name: &Arc<str>| {
            let mut arguments = self.arguments.clone();
            arguments[&**name] = Value::from(url.as_str());
            let call = Seen::new(&arguments, &self.schema, &paths);
            self.rules.iter().any(|(rule, patterns)| rule.when.holds(patterns, &call, rule.reach()))
        };
        !self.rules.is_empty() && self.names.iter().any(is_held)
    }
}

impl Rules {
    /// The web addresses that a call may not be redirected to: those about which a rule on its tool denies or asks. As with
    /// places, a rule that asks about the very call is left out.
    #[must_use]
    pub fn urls_held(&self, asked: &Asked<'_>, urls: &[Arc<str>]) -> HeldUrls {
        let paths = Paths::of(asked.touches, asked.sources);
        let call = Seen::new(asked.arguments, asked.schema, &paths);
        let speaks = |(rule, patterns): &&(Rule, Vec<Pattern>)| {
            let answered = || rule.decision == Decision::Ask && rule.covers(patterns, asked, &call);
            rule.decision != Decision::Allow && rule.is_about(&asked.caller, asked.tool) && !answered()
        };
        HeldUrls {
            rules: self.0.iter().filter(speaks).cloned().collect(),
            arguments: given(asked),
            schema: asked.schema.clone(),
            touches: asked.touches.to_vec(),
            sources: asked.sources.to_vec(),
            names: if urls.is_empty() { vec![Arc::from(URL)] } else { urls.to_vec() },
        }
    }

    /// The places of which a call may give nothing away: those about which a rule on its tool, or on reading files, denies or
    /// asks. A rule that asks about the very call is left out: the call runs because somebody has answered it. So is one that
    /// says nothing of where: it is about the tool, and that was judged.
    #[must_use]
    pub fn places_held(&self, asked: &Asked<'_>) -> Held {
        let paths = Paths::of(asked.touches, asked.sources);
        let call = Seen::new(asked.arguments, asked.schema, &paths);
        self.held(given(asked), PATH, |rule, patterns| {
            let about = rule.is_about(&asked.caller, asked.tool) || rule.is_about(&asked.caller, READ);
            let answered = || rule.decision == Decision::Ask && rule.covers(patterns, asked, &call);
            rule.decision != Decision::Allow && about && !rule.when.is_anything() && !answered()
        })
    }

    /// The paths that rules forbid to a tool, which takes each as this argument.
    #[must_use]
    pub fn forbidden(&self, caller: &Caller, tool: &str, argument: &str) -> Held {
        self.held(Value::Null, argument, |rule, _| rule.decision == Decision::Deny && rule.is_about(caller, tool))
    }

    fn held(&self, arguments: Value, argument: &str, wanted: impl Fn(&Rule, &[Pattern]) -> bool) -> Held {
        let rules = self.0.iter().filter(|(rule, patterns)| wanted(rule, patterns)).cloned().collect();
        Held { rules, arguments, argument: argument.to_owned() }
    }
}

/// The arguments of a call, into which others can be put.
fn given(asked: &Asked<'_>) -> Value {
    if asked.arguments.is_object() { asked.arguments.clone() } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{asked, caller, rule, touch};
    use super::*;
    use crate::guard::host::{Body, Elsewhere, HostPolicy, Method, NetCaps, Redirect};
    use crate::guard::rule::Match;

    fn path(text: &str) -> NotePath {
        NotePath::parse(text).unwrap()
    }

    fn search(rules: &[Rule]) -> Held {
        Rules::new(rules.to_vec()).places_held(&asked("search_content", &[], &json!({"query": "x"})))
    }

    #[test]
    fn a_call_gives_nothing_away_of_where_a_rule_denies_or_asks() {
        for decision in [Decision::Deny, Decision::Ask] {
            for tool in ["*", "search_content", "read_file"] {
                let held = search(&[rule(decision, tool, &["/secret"])]);
                assert!(held.holding(&path("/secret/a.md")).is_some(), "{decision:?} {tool}");
                assert!(held.holding(&path("/open/a.md")).is_none(), "{decision:?} {tool}");
            }
            let by_argument = Match { arguments: [("path".into(), "/secret/*".into())].into(), ..Match::default() };
            let held = search(&[Rule { when: by_argument, ..rule(decision, "read_file", &[]) }]);
            assert!(held.holding(&path("/secret/a.md")).is_some() && held.holding(&path("/a.md")).is_none());
        }
        let others =
            [rule(Decision::Allow, "read_file", &["/secret"]), rule(Decision::Deny, "write_file", &["/secret"])];
        assert!(search(&others).is_empty(), "neither says anything about reading there");
        assert!(search(&[rule(Decision::Deny, "read_file", &[])]).is_empty(), "a rule about the tool alone");
    }

    #[test]
    fn what_a_person_said_yes_to_is_given() {
        let rules = |decision| Rules::new([rule(decision, "*", &["/secret"])]);
        let (inside, above) = ([touch("/secret")], [touch("/")]);
        let arguments = json!({});
        let listed = asked("list_files", &inside, &arguments);
        assert!(rules(Decision::Ask).places_held(&listed).is_empty(), "the call itself asked");
        assert!(!rules(Decision::Deny).places_held(&listed).is_empty());
        let wider = asked("list_files", &above, &arguments);
        assert!(!rules(Decision::Ask).places_held(&wider).is_empty(), "nobody was asked");
    }

    #[test]
    fn a_redirect_leads_to_no_address_about_which_a_rule_on_the_call_denies_or_asks() {
        let at = |decision, tool: &str, when: Match| Rule { when, ..rule(decision, tool, &[]) };
        let host = |host: &str| Match { hosts: vec![host.to_owned()], ..Match::default() };
        let url = |name: &str, pattern: &str| Match {
            arguments: [(name.to_owned(), pattern.to_owned())].into(),
            ..Match::default()
        };
        let now = caller().now;
        let rules = Rules::new([
            at(Decision::Deny, "*", host("denied.example")),
            at(Decision::Ask, "fetch", host("asked.example")),
            at(Decision::Deny, "fetch", url("url", "https://a.example/private/*")),
            at(Decision::Ask, "fetch", url("from", "https://b.example/*")),
            at(Decision::Allow, "fetch", host("allowed.example")),
            at(Decision::Deny, "send", host("sent.example")),
            Rule {
                agent: Some(crate::id::AgentId::new(now, [9; 10])),
                ..at(Decision::Deny, "*", host("others.example"))
            },
            Rule { expires_at: Some(now), ..at(Decision::Deny, "*", host("over.example")) },
            rule(Decision::Deny, "fetch", &["/notes"]),
        ]);
        let arguments = json!({"url": "https://a.example/moved", "method": "GET"});
        let (asked, names) = (asked("fetch", &[], &arguments), [Arc::from("url")]);
        let holds = |names: &[Arc<str>], url: &str| rules.urls_held(&asked, names).holds(&Url::parse(url).unwrap());
        for held in ["https://denied.example/", "https://asked.example/x", "https://a.example/private/x"] {
            assert!(holds(&names, held), "{held}");
        }
        for free in
            ["a.example/public", "b.example/", "allowed.example", "sent.example", "others.example", "over.example"]
        {
            assert!(!holds(&names, &format!("https://{free}")), "{free}");
        }
        assert!(holds(&["url".into(), "from".into()], "https://b.example/"), "each argument that is an address counts");
        assert!(holds(&[], "https://denied.example/"), "also for a tool that takes none");
        assert!(!HeldUrls::default().holds(&Url::parse("https://denied.example/").unwrap()));
        // The host policy of the call refuses such a redirect, also to another page of the same host.
        let spec = serde_json::from_value(json!({"hosts": ["*.example", "a.example", "denied.example"]})).unwrap();
        let hosts = HostPolicy::compile(&spec).redirecting(Elsewhere::Anywhere, rules.urls_held(&asked, &names));
        let from = Url::parse("https://a.example/moved").unwrap();
        let follow = |location: &str| {
            let redirect = Redirect { from: &from, location, followed: 0, method: Method::Get, body: Body::None };
            let caps = NetCaps { read: true, write: false };
            hosts.check_redirect(redirect, caps).map(drop).map_err(|denied| denied.reason)
        };
        assert_eq!(follow("/public"), Ok(()));
        let held = |place: &str| Err(format!("the server redirects to {place}, which has to be called by itself"));
        assert_eq!(follow("/private/x"), held("another page of a.example"));
        assert_eq!(follow("https://denied.example/"), held("denied.example"));
    }

    #[test]
    fn a_redirect_may_lead_to_what_a_person_was_asked_about_already() {
        let when = Match { hosts: vec!["a.example".to_owned()], ..Match::default() };
        let (arguments, names) = (json!({"url": "https://a.example/moved"}), [Arc::from("url")]);
        let there = Url::parse("https://a.example/landed").unwrap();
        let holds = |rule: Rule| Rules::new([rule]).urls_held(&asked("fetch", &[], &arguments), &names).holds(&there);
        assert!(!holds(Rule { when: when.clone(), ..rule(Decision::Ask, "*", &[]) }));
        assert!(holds(Rule { when, ..rule(Decision::Deny, "*", &[]) }));
        let schema = json!({"properties": {"method": {"default": "GET"}}});
        let reads = Match {
            arguments: [("method", "GET"), ("url", "*/landed")].map(|(name, text)| (name.into(), text.into())).into(),
            ..Match::default()
        };
        let rules = Rules::new([Rule { when: reads, ..rule(Decision::Ask, "*", &[]) }]);
        let asked = Asked { schema: &schema, ..asked("fetch", &[], &arguments) };
        assert!(rules.urls_held(&asked, &names).holds(&there), "what counts where an argument is left out");
    }

    #[test]
    fn what_is_forbidden_to_a_tool_is_what_rules_deny_it() {
        let rules = Rules::new([
            rule(Decision::Deny, "*", &["/secret"]),
            rule(Decision::Ask, "write_file", &["/asked"]),
            rule(Decision::Deny, "delete_file", &[]),
        ]);
        let write = rules.forbidden(&caller(), "write_file", "path");
        assert!(write.holding(&path("/secret/a.md")).is_some());
        assert!(write.holding(&path("/asked/a.md")).is_none() && write.holding(&path("/a.md")).is_none());
        assert!(rules.forbidden(&caller(), "delete_file", "path").holding(&path("/a.md")).is_some());
    }
}
