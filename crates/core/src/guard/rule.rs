//! Standing rules: what a person said once and for longer. A rule names a tool and what it is called with, says allow, ask or
//! deny, belongs to somebody, and ends. An allow can only answer what autonomy asks; it never lifts anything else.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::content::Hash;
use crate::guard::judge::Decision;
use crate::guard::path::NotePath;
use crate::guard::pattern::Pattern;
use crate::id::{AgentId, ChatId, RuleId, UserId};
use crate::time::Time;
use crate::tool::Touch;

/// A standing rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The rule.
    pub id: RuleId,
    /// Who made it.
    pub owner: UserId,
    /// The agent it is about; every agent of the workspace when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The chat it is about; every chat when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatId>,
    /// The tool, or `*` for every tool.
    pub tool: String,
    /// What it is called with; anything when empty.
    #[serde(default, skip_serializing_if = "Match::is_anything")]
    pub when: Match,
    /// Allow, ask or deny.
    pub decision: Decision,
    /// When it ends; never when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// When it was made.
    pub created_at: Time,
    /// Why, in the owner's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Calls that must be covered by the rule: checked when it is saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_match: Vec<Example>,
    /// Calls that must not be covered by it: checked when it is saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_not_match: Vec<Example>,
}

/// What a call is called with. Every field that is given must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// Every path it touches lies in one of these folder patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// Its arguments are exactly these, by their canonical hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Hash>,
}

/// A call that a rule is checked against when it is saved: policy with its tests inside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The tool.
    pub tool: String,
    /// The paths it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Value,
}

impl Match {
    /// Whether nothing is asked of the call.
    #[must_use]
    pub fn is_anything(&self) -> bool {
        self.folders.is_empty() && self.arguments.is_none()
    }

    /// The folder patterns; a broken one matches nothing.
    fn patterns(&self) -> Vec<Pattern> {
        self.folders.iter().filter_map(|text| Pattern::parse(text).ok()).collect()
    }

    fn holds(&self, patterns: &[Pattern], arguments: &Value, touches: &[Touch]) -> bool {
        let exact = self.arguments.is_none_or(|exact| exact == canonical::hash(arguments));
        let inside =
            |path: &str| NotePath::parse(path).is_ok_and(|path| patterns.iter().any(|pattern| pattern.grants(&path)));
        // A rule about folders says nothing about a call that touches none.
        let placed =
            self.folders.is_empty() || (!touches.is_empty() && touches.iter().all(|touch| inside(&touch.path)));
        exact && placed
    }
}

/// What a rule is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The agent.
    pub agent: AgentId,
    /// The chat.
    pub chat: Option<ChatId>,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// The paths it touches.
    pub touches: &'a [Touch],
    /// The moment.
    pub now: Time,
}

impl Rule {
    /// Whether the rule speaks about a call.
    fn covers(&self, patterns: &[Pattern], asked: &Asked<'_>) -> bool {
        self.expires_at.is_none_or(|end| asked.now < end)
            && self.agent.is_none_or(|agent| agent == asked.agent)
            && self.chat.is_none_or(|chat| Some(chat) == asked.chat)
            && (self.tool == "*" || self.tool == asked.tool)
            && self.when.holds(patterns, asked.arguments, asked.touches)
    }

    /// Everything that is wrong with a rule. One that is not empty must not be saved.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for folder in &self.when.folders {
            if let Err(bad) = Pattern::parse(folder) {
                problems.push(format!("when.folders: `{folder}` is no pattern: {bad}"));
            }
        }
        if self.decision == Decision::Allow && self.tool == "*" {
            problems.push("tool: a rule that allows names its tool".to_owned());
        }
        if self.decision == Decision::Allow && self.when.is_anything() {
            problems.push("when: a rule that allows says where, or with which arguments".to_owned());
        }
        if self.decision == Decision::Allow && self.expires_at.is_none() {
            problems.push("expires_at: a rule that allows ends".to_owned());
        }
        let check = |examples: &[Example], wanted: bool, field: &str, problems: &mut Vec<String>| {
            for (index, example) in examples.iter().enumerate() {
                if self.matches_example(example) != wanted {
                    let verb = if wanted { "does not cover" } else { "covers" };
                    problems.push(format!("{field}[{index}]: the rule {verb} this call of `{}`", example.tool));
                }
            }
        };
        check(&self.must_match, true, "must_match", &mut problems);
        check(&self.must_not_match, false, "must_not_match", &mut problems);
        problems
    }

    fn matches_example(&self, example: &Example) -> bool {
        let touches: Vec<_> = example.paths.iter().map(|path| Touch { path: path.clone(), changes: true }).collect();
        (self.tool == "*" || self.tool == example.tool)
            && self.when.holds(&self.when.patterns(), &example.arguments, &touches)
    }

    /// The rule in one line, as a person reads it before it is written.
    #[must_use]
    pub fn in_words(&self) -> String {
        let tool = if self.tool == "*" { "every tool" } else { &self.tool };
        let place = match (self.when.folders.as_slice(), self.when.arguments) {
            ([], None) => String::new(),
            ([], Some(_)) => " with exactly these arguments".to_owned(),
            (folders, _) => format!(" in {}", folders.join(", ")),
        };
        let end = self.expires_at.map(|end| format!(" until {}", &end.to_string()[..10])).unwrap_or_default();
        let chat = if self.chat.is_some() { " in this chat" } else { "" };
        format!("{} {tool}{place}{chat}{end}", self.decision.word())
    }
}

/// The standing rules of a workspace, ready to be asked.
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<(Rule, Vec<Pattern>)>);

impl Rules {
    /// Compiles rules.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self(
            rules
                .into_iter()
                .map(|rule| {
                    let patterns = rule.when.patterns();
                    (rule, patterns)
                })
                .collect(),
        )
    }

    /// The strongest thing that rules say about a call, with the rule that says it: deny, then ask, then allow.
    #[must_use]
    pub fn strongest(&self, asked: &Asked<'_>) -> Option<&Rule> {
        let covering = self.0.iter().filter(|(rule, patterns)| rule.covers(patterns, asked));
        covering.map(|(rule, _)| rule).max_by_key(|rule| rule.decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(decision: Decision, tool: &str, folders: &[&str]) -> Rule {
        let at = Time::from_millis(1_000_000);
        Rule {
            id: RuleId::new(at, [1; 10]),
            owner: UserId::new(at, [2; 10]),
            agent: None,
            chat: None,
            tool: tool.to_owned(),
            when: Match { folders: folders.iter().map(|text| (*text).to_owned()).collect(), arguments: None },
            decision,
            expires_at: Some(Time::from_millis(2_000_000)),
            created_at: at,
            note: String::new(),
            must_match: Vec::new(),
            must_not_match: Vec::new(),
        }
    }

    fn asked<'a>(tool: &'a str, touches: &'a [Touch], arguments: &'a Value) -> Asked<'a> {
        let agent = AgentId::new(Time::from_millis(0), [3; 10]);
        Asked { agent, chat: None, tool, arguments, touches, now: Time::from_millis(1_500_000) }
    }

    fn covers(rule: &Rule, asked: &Asked<'_>) -> bool {
        Rules::new([rule.clone()]).strongest(asked).is_some()
    }

    fn touch(path: &str) -> Touch {
        Touch { path: path.to_owned(), changes: true }
    }

    #[test]
    fn a_rule_covers_its_tool_in_its_folders_until_it_ends() {
        let rule = rule(Decision::Allow, "write_file", &["/notes"]);
        let nothing = Value::Null;
        let (inside, outside) = ([touch("/notes/a.md")], [touch("/notes/a.md"), touch("/other/b.md")]);
        assert!(covers(&rule, &asked("write_file", &inside, &nothing)));
        assert!(!covers(&rule, &asked("write_file", &outside, &nothing)), "every path must lie inside");
        assert!(!covers(&rule, &asked("write_file", &[], &nothing)), "a call without a path is not in a folder");
        assert!(!covers(&rule, &asked("delete_file", &inside, &nothing)));
        let late = Asked { now: Time::from_millis(2_000_000), ..asked("write_file", &inside, &nothing) };
        assert!(!covers(&rule, &late));
    }

    #[test]
    fn a_rule_of_one_agent_or_chat_says_nothing_about_others() {
        let nothing = Value::Null;
        let inside = [touch("/notes/a.md")];
        let other = AgentId::new(Time::from_millis(9), [9; 10]);
        let mine = Rule { agent: Some(other), ..rule(Decision::Deny, "*", &[]) };
        assert!(!covers(&mine, &asked("write_file", &inside, &nothing)));
        let chat = Rule { chat: Some(ChatId::new(Time::from_millis(9), [9; 10])), ..rule(Decision::Deny, "*", &[]) };
        assert!(!covers(&chat, &asked("write_file", &inside, &nothing)));
    }

    #[test]
    fn deny_outranks_ask_and_ask_outranks_allow_whatever_their_order() {
        let nothing = Value::Null;
        let inside = [touch("/notes/a.md")];
        let say = |decision| rule(decision, "write_file", &["/notes"]);
        let rules = [say(Decision::Allow), say(Decision::Deny), say(Decision::Ask)];
        let first = rules[0].clone();
        let (all, one) = (Rules::new(rules), Rules::new([first]));
        let found = all.strongest(&asked("write_file", &inside, &nothing));
        assert_eq!(found.map(|rule| rule.decision), Some(Decision::Deny));
        let found = one.strongest(&asked("write_file", &inside, &nothing));
        assert_eq!(found.map(|rule| rule.decision), Some(Decision::Allow));
    }

    #[test]
    fn an_allow_is_narrow_and_ends_or_is_not_saved() {
        assert!(rule(Decision::Allow, "write_file", &["/notes"]).problems().is_empty());
        assert!(rule(Decision::Deny, "*", &[]).problems().is_empty());
        for bad in [
            rule(Decision::Allow, "*", &["/notes"]),
            rule(Decision::Allow, "write_file", &[]),
            rule(Decision::Ask, "write_file", &["/a/../b"]),
            Rule { expires_at: None, ..rule(Decision::Allow, "write_file", &["/notes"]) },
        ] {
            assert!(!bad.problems().is_empty(), "{bad:?}");
        }
    }

    #[test]
    fn the_examples_of_a_rule_are_its_tests() {
        let example = |path: &str| Example {
            tool: "write_file".to_owned(),
            paths: vec![path.to_owned()],
            arguments: Value::Null,
        };
        let mut rule = rule(Decision::Allow, "write_file", &["/notes"]);
        rule.must_match = vec![example("/notes/a.md")];
        rule.must_not_match = vec![example("/secret/a.md")];
        assert!(rule.problems().is_empty());
        rule.when.folders = vec!["/".to_owned()];
        assert_eq!(rule.problems(), ["must_not_match[0]: the rule covers this call of `write_file`"]);
    }

    #[test]
    fn a_rule_about_arguments_covers_these_and_no_others() {
        let these = serde_json::json!({"a": 1, "b": [2]});
        let mut exact = rule(Decision::Allow, "kv_set", &[]);
        exact.when.arguments = Some(canonical::hash(&these));
        assert!(covers(&exact, &asked("kv_set", &[], &serde_json::json!({"b": [2], "a": 1}))));
        assert!(!covers(&exact, &asked("kv_set", &[], &serde_json::json!({"a": 1, "b": [3]}))));
    }
}
