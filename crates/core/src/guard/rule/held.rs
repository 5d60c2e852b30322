//! What standing rules keep back, asked path by path: of what a call returns or copies nobody knows the paths before it runs,
//! so its results are judged one by one (F7).

use serde_json::Value;

use super::{Asked, Paths, Rule, Rules, Seen};
use crate::guard::judge::{Caller, Decision};
use crate::guard::path::NotePath;
use crate::guard::pattern::Pattern;

/// The tool that reads one file: whatever gives away what a file holds is judged as a call of it, too.
const READ: &str = "read_file";
/// Its argument.
const PATH: &str = "path";

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

impl Rules {
    /// The places of which a call may give nothing away: those about which a rule on its tool, or on reading files, denies or
    /// asks. A rule that asks about the very call is left out: the call runs because somebody has answered it. So is one that
    /// says nothing of where: it is about the tool, and that was judged.
    #[must_use]
    pub fn places_held(&self, asked: &Asked<'_>) -> Held {
        let paths = Paths::of(asked.touches, asked.sources);
        let call = Seen::new(asked.arguments, asked.schema, &paths);
        let arguments = if asked.arguments.is_object() { asked.arguments.clone() } else { Value::Null };
        self.held(arguments, PATH, |rule, patterns| {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{asked, caller, rule, touch};
    use super::*;
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
