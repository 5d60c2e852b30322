//! Standing rules: what a person said once and for longer. A rule names a tool and what it is called with, says allow, ask or
//! deny, belongs to somebody, and ends. An allow can only answer what autonomy asks; it never lifts anything else.

mod held;
mod lasting;
mod matching;
mod spelling;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use held::{Held, HeldUrls};
pub use lasting::Yes;
pub use matching::Match;
use matching::{Paths, Reach, Seen};

use crate::guard::host::Url;
use crate::guard::judge::{Caller, Decision};
use crate::guard::path::NotePath;
use crate::guard::pattern::Pattern;
use crate::id::{AgentId, ApprovalId, ChatId, NotebookId, RuleId, RunId, UserId};
use crate::limits::{RULE_EXAMPLES, RULE_NOTE_BYTES};
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
    /// Where it comes from.
    #[serde(default)]
    pub origin: Origin,
    /// The agent it is about; every agent of the workspace when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The chat it is about; every chat when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatId>,
    /// The run it is about; every run when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The notebook it is about; every notebook when none. What a lasting yes was given in, it is given for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notebook: Option<NotebookId>,
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
    /// Calls that the rule lets through (one that allows covers them, another does not): checked when it is saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_allow: Vec<Example>,
    /// Calls that it does not let through (one that allows does not cover them, another does): checked when it is saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_deny: Vec<Example>,
}

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum Origin {
    /// A person wrote it.
    #[default]
    Person,
    /// A person approved a call for longer than once.
    Approval(ApprovalId),
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

/// What a rule is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Who calls, where and when.
    pub caller: Caller,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// The schema of its arguments, for what counts where one is left out.
    pub schema: &'a Value,
    /// The paths it touches.
    pub touches: &'a [Touch],
    /// The files it takes text from, beside those it touches.
    pub sources: &'a [NotePath],
}

impl Rule {
    /// Whether it has not ended yet.
    #[must_use]
    pub fn is_live(&self, now: Time) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether the rule speaks about a call.
    fn covers(&self, patterns: &[Pattern], asked: &Asked<'_>, call: &Seen<'_>) -> bool {
        self.is_about(&asked.caller, asked.tool) && self.when.holds(patterns, call, self.reach())
    }

    /// Whether it counts for calls of this tool, by this caller.
    fn is_about(&self, caller: &Caller, tool: &str) -> bool {
        self.is_live(caller.now)
            && self.agent.is_none_or(|own| own == caller.agent)
            && self.chat.is_none_or(|own| own == caller.chat)
            && self.run.is_none_or(|own| own == caller.run)
            && self.notebook.is_none_or(|own| Some(own) == caller.notebook)
            && (self.tool == "*" || self.tool == tool)
    }

    const fn reach(&self) -> Reach {
        match self.decision {
            Decision::Allow => Reach::Whole,
            Decision::Ask | Decision::Deny => Reach::Part,
        }
    }

    /// Everything that is wrong with a rule. One that is not empty must not be saved.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |fine: bool, problem: &str| {
            if !fine {
                problems.push(problem.to_owned());
            }
        };
        let allows = self.decision == Decision::Allow;
        check(!self.tool.trim().is_empty(), "tool: name a tool, or * for every tool");
        check(!(allows && self.tool == "*"), "tool: a rule that allows names its tool");
        check(!(allows && self.when.is_anything()), "when: a rule that allows says where, or with which arguments");
        check(!allows || self.expires_at.is_some(), "expires_at: a rule that allows ends");
        check(self.expires_at.is_none_or(|end| end > self.created_at), "expires_at: it is over before it begins");
        check(self.note.len() <= RULE_NOTE_BYTES, "note: it is too long");
        let examples = self.must_allow.len() + self.must_deny.len();
        check(examples <= RULE_EXAMPLES, "must_allow, must_deny: there are too many examples");
        for folder in &self.when.folders {
            if let Err(bad) = Pattern::parse(folder) {
                problems.push(format!("when.folders: `{folder}` is no pattern: {bad}"));
            }
        }
        for folder in &self.when.directly_in {
            // As it is compared: written in any other way it would match nothing.
            if !NotePath::parse(folder).is_ok_and(|path| path.as_str() == folder) {
                problems.push(format!("when.directly_in: `{folder}` is no plain path from the root"));
            }
        }
        for host in &self.when.hosts {
            // As it is compared, too.
            if !Url::parse(&format!("https://{host}/")).is_ok_and(|url| url.host() == host) {
                problems.push(format!("when.hosts: `{host}` is no plain name of a host"));
            }
        }
        let misspelt = self.when.arguments.iter().filter_map(|(name, pattern)| {
            Some(format!("when.arguments.{name}: `{pattern}` {}", spelling::problem(pattern)?))
        });
        problems.extend(misspelt);
        let wrong = |(index, example): (usize, &Example), field: &str, verb: &str| {
            let paths = example.paths.join(", ");
            let call = [example.tool.as_str(), &paths].join(" ");
            format!("{field}[{index}]: the rule {verb} `{}`", call.trim_end())
        };
        let denied = self.must_allow.iter().enumerate().filter(|(_, example)| !self.lets_through(example));
        problems.extend(denied.map(|example| wrong(example, "must_allow", "does not let through")));
        let allowed = self.must_deny.iter().enumerate().filter(|(_, example)| self.lets_through(example));
        problems.extend(allowed.map(|example| wrong(example, "must_deny", "lets through")));
        problems
    }

    /// Whether a call gets past this rule, if there were no other.
    fn lets_through(&self, example: &Example) -> bool {
        let touches: Vec<_> = example.paths.iter().map(|path| Touch { path: path.clone(), changes: true }).collect();
        let covers = (self.tool == "*" || self.tool == example.tool)
            && self.when.holds(
                &self.when.patterns(),
                &Seen::new(&example.arguments, &Value::Null, &Paths::of(&touches, &[])),
                self.reach(),
            );
        match self.decision {
            Decision::Allow => covers,
            Decision::Ask | Decision::Deny => !covers,
        }
    }

    /// The rule in one line, as a person reads it before it is written.
    #[must_use]
    pub fn in_words(&self) -> String {
        let tool = if self.tool == "*" { "every tool" } else { &self.tool };
        let end = self.expires_at.map(|end| format!(" until {}", &end.to_string()[..10])).unwrap_or_default();
        let thread = match (self.run, self.chat) {
            (Some(_), _) => " in this run",
            (None, Some(_)) => " in this chat",
            (None, None) => "",
        };
        let notebook = if self.notebook.is_some() { " in this notebook" } else { "" };
        format!("{} {tool}{}{notebook}{thread}{end}", self.decision.word(), self.when.in_words())
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

    /// The rules about a tool: those that a verdict on a call of it depends on.
    #[must_use]
    pub fn about(&self, tool: &str) -> Vec<RuleId> {
        let about = self.0.iter().filter(|(rule, _)| rule.tool == "*" || rule.tool == tool);
        about.map(|(rule, _)| rule.id).collect()
    }

    /// The strongest thing that rules say about a call, with the rule that says it: deny, then ask, then allow.
    #[must_use]
    pub fn strongest(&self, asked: &Asked<'_>) -> Option<&Rule> {
        let paths = Paths::of(asked.touches, asked.sources);
        let call = Seen::new(asked.arguments, asked.schema, &paths);
        let covering = self.0.iter().filter(|(rule, patterns)| rule.covers(patterns, asked, &call));
        covering.map(|(rule, _)| rule).max_by_key(|rule| rule.decision)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::guard) fn rule(decision: Decision, tool: &str, folders: &[&str]) -> Rule {
        let at = Time::from_millis(1_000_000);
        Rule {
            id: RuleId::new(at, [1; 10]),
            owner: UserId::new(at, [2; 10]),
            origin: Origin::Person,
            agent: None,
            chat: None,
            run: None,
            notebook: None,
            tool: tool.to_owned(),
            when: Match { folders: folders.iter().map(|text| (*text).to_owned()).collect(), ..Match::default() },
            decision,
            expires_at: Some(Time::from_millis(2_000_000)),
            created_at: at,
            note: String::new(),
            must_allow: Vec::new(),
            must_deny: Vec::new(),
        }
    }

    pub(in crate::guard) fn caller() -> Caller {
        let now = Time::from_millis(1_500_000);
        let (agent, chat, run) = (AgentId::new(now, [3; 10]), ChatId::new(now, [4; 10]), RunId::new(now, [5; 10]));
        Caller { agent, chat, run, notebook: Some(NotebookId::new(now, [6; 10])), now }
    }

    pub(super) fn asked<'a>(tool: &'a str, touches: &'a [Touch], arguments: &'a Value) -> Asked<'a> {
        Asked { caller: caller(), tool, arguments, schema: &Value::Null, touches, sources: &[] }
    }

    fn covers(rule: &Rule, asked: &Asked<'_>) -> bool {
        Rules::new([rule.clone()]).strongest(asked).is_some()
    }

    pub(super) fn touch(path: &str) -> Touch {
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
        let stern = Rule { decision: Decision::Deny, ..rule.clone() };
        assert!(covers(&stern, &asked("write_file", &outside, &nothing)), "one forbidden path forbids the whole");
        let late = Caller { now: Time::from_millis(2_000_000), ..caller() };
        let late = Asked { caller: late, ..asked("write_file", &inside, &nothing) };
        assert!(!covers(&rule, &late));
    }

    #[test]
    fn a_rule_of_one_agent_chat_run_or_notebook_says_nothing_about_others() {
        let nothing = Value::Null;
        let inside = [touch("/notes/a.md")];
        let other = AgentId::new(Time::from_millis(9), [9; 10]);
        let mine = Rule { agent: Some(other), ..rule(Decision::Deny, "*", &[]) };
        assert!(!covers(&mine, &asked("write_file", &inside, &nothing)));
        let chat = Rule { chat: Some(ChatId::new(Time::from_millis(9), [9; 10])), ..rule(Decision::Deny, "*", &[]) };
        assert!(!covers(&chat, &asked("write_file", &inside, &nothing)));
        let run = RunId::new(Time::from_millis(9), [9; 10]);
        let once = Rule { run: Some(run), ..rule(Decision::Deny, "*", &[]) };
        assert!(!covers(&once, &asked("write_file", &inside, &nothing)));
        let caller = Caller { run, ..caller() };
        assert!(covers(&once, &Asked { caller, ..asked("write_file", &inside, &nothing) }));
        let elsewhere = Some(NotebookId::new(Time::from_millis(9), [9; 10]));
        let there = Rule { notebook: elsewhere, ..rule(Decision::Allow, "write_file", &["/notes"]) };
        assert!(!covers(&there, &asked("write_file", &inside, &nothing)), "the same folder of another notebook");
        let caller = Caller { notebook: elsewhere, ..caller };
        assert!(covers(&there, &Asked { caller, ..asked("write_file", &inside, &nothing) }));
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
            Rule { expires_at: Some(Time::from_millis(5)), ..rule(Decision::Deny, "*", &[]) },
            rule(Decision::Deny, " ", &[]),
            Rule {
                when: Match { directly_in: vec!["notes/".into()], ..Match::default() },
                ..rule(Decision::Ask, "*", &[])
            },
            Rule {
                when: Match { hosts: vec!["*.example".into()], ..Match::default() },
                ..rule(Decision::Ask, "*", &[])
            },
            Rule {
                when: Match { hosts: vec!["A.example/x".into()], ..Match::default() },
                ..rule(Decision::Ask, "*", &[])
            },
            Rule {
                when: Match { arguments: [("path".into(), "//secret/*".into())].into(), ..Match::default() },
                ..rule(Decision::Deny, "*", &[])
            },
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
        rule.must_allow = vec![example("/notes/a.md")];
        rule.must_deny = vec![example("/secret/a.md")];
        assert!(rule.problems().is_empty());
        rule.when.folders = vec!["/".to_owned()];
        assert_eq!(rule.problems(), ["must_deny[0]: the rule lets through `write_file /secret/a.md`"]);
        rule.when.folders = vec!["/other".to_owned()];
        assert_eq!(rule.problems(), ["must_allow[0]: the rule does not let through `write_file /notes/a.md`"]);
        for decision in [Decision::Ask, Decision::Deny] {
            let stern =
                Rule { decision, when: Match { folders: vec!["/secret".into()], ..Match::default() }, ..rule.clone() };
            assert!(stern.problems().is_empty(), "{decision:?}: it stops what it covers and nothing else");
        }
    }

    #[test]
    fn a_rule_about_arguments_covers_these_and_no_others() {
        let these = serde_json::json!({"a": 1, "b": [2]});
        let mut exact = rule(Decision::Allow, "kv_set", &[]);
        exact.when.exactly = Some(crate::canonical::hash(&these));
        assert!(covers(&exact, &asked("kv_set", &[], &serde_json::json!({"b": [2], "a": 1}))));
        assert!(!covers(&exact, &asked("kv_set", &[], &serde_json::json!({"a": 1, "b": [3]}))));
    }
}
