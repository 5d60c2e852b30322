//! A survey of a notebook: how much of it an agent reaches by each verb, with samples, and what lies just outside. Fed one
//! entry at a time, so that a huge tree costs no memory.

use std::sync::Arc;

use serde::Serialize;

use super::path::NotePath;
use super::rule::{Held, Rule};
use super::scope::{Action, Caps, Denied, Kind, Scope};

/// Samples kept of each verb.
pub const SAMPLES: usize = 5;
/// Things that an edit adds or takes away, of each verb.
pub const CHANGED: usize = 100;
/// Things just outside that are named.
pub const OUTSIDE: usize = 10;

/// A name that something new might have, where rules are asked about it.
const NEW_NAME: &str = "new.md";

/// What an agent reaches: what its scope grants, less what standing rules forbid.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Its scope.
    pub scope: Arc<Scope>,
    /// What rules forbid.
    pub forbidden: Forbidden,
}

/// What rules forbid, by verb.
#[derive(Debug, Clone, Default)]
pub struct Forbidden {
    /// Reading a file.
    pub read: Held,
    /// Listing a folder.
    pub list: Held,
    /// Changing a file.
    pub write: Held,
    /// Creating one.
    pub create: Held,
    /// Deleting one.
    pub delete: Held,
}

impl Forbidden {
    fn to_look_at(&self, path: &NotePath, kind: Kind) -> Option<&Rule> {
        if kind == Kind::Dir { self.list.holding(path) } else { self.read.holding(path) }
    }
}

impl Reached {
    /// What may be done with something that is there: as [`Scope::reach`] says, where no rule forbids it.
    fn caps(&self, path: &NotePath, kind: Kind) -> Caps {
        let granted = self.scope.reach(path, kind);
        let free = |granted: bool, held: &Held| granted && (held.is_empty() || held.holding(path).is_none());
        let makes = |held: &Held| held.is_empty() || path.child(NEW_NAME).is_ok_and(|new| held.holding(&new).is_none());
        Caps {
            read: free(granted.read, if kind == Kind::Dir { &self.forbidden.list } else { &self.forbidden.read }),
            write: free(granted.write, &self.forbidden.write),
            create: granted.create && makes(&self.forbidden.create),
            delete: free(granted.delete, &self.forbidden.delete),
            execute: granted.execute,
        }
    }

    /// Why something cannot be looked at.
    fn why(&self, path: &NotePath, kind: Kind) -> Option<Outside> {
        let action = if kind == Kind::Dir { Action::List } else { Action::Read };
        let shown = path.as_str().to_owned();
        if let Err(Denied { rule, reason, smallest_grant, .. }) = self.scope.check(action, path, kind, true) {
            return Some(Outside { path: shown, rule: rule.to_owned(), reason, smallest_grant });
        }
        let rule = self.forbidden.to_look_at(path, kind)?;
        let reason = format!("a standing rule forbids it: {}", rule.in_words());
        let grant = Some(format!("remove rule {}", rule.id));
        Some(Outside { path: shown, rule: format!("rule {}", rule.id), reason, smallest_grant: grant })
    }
}

/// How much is reached by one verb.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verb {
    /// How many things.
    pub count: usize,
    /// The first of them.
    pub samples: Vec<String>,
}

/// Something the agent cannot reach that lies beside what it can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outside {
    /// Its path.
    pub path: String,
    /// The deciding rule.
    pub rule: String,
    /// Why.
    pub reason: String,
    /// The smallest change that would reach it; none if nothing would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_grant: Option<String>,
}

/// What an agent reaches of a notebook.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Survey {
    /// Files and folders that were looked at.
    pub entries: usize,
    /// Files it may read.
    pub read: Verb,
    /// Folders it may list.
    pub list: Verb,
    /// Files it may change.
    pub write: Verb,
    /// Folders it may create something in.
    pub create: Verb,
    /// Files it may delete.
    pub delete: Verb,
    /// Things just outside.
    pub outside: usize,
    /// The first of them.
    pub just_outside: Vec<Outside>,
    /// The folder looked at last, and whether anything beside what is in it is reached.
    #[serde(skip)]
    last: Option<(NotePath, bool)>,
}

impl Verb {
    fn add(&mut self, reached: bool, path: &NotePath) {
        self.add_up_to(SAMPLES, reached, path);
    }

    fn add_up_to(&mut self, most: usize, reached: bool, path: &NotePath) {
        if !reached {
            return;
        }
        self.count += 1;
        if self.samples.len() < most {
            self.samples.push(path.as_str().to_owned());
        }
    }
}

/// What an edit changes about what is reached by one verb.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerbChange {
    /// What is reached now and was not.
    pub added: Verb,
    /// What was reached and is not any more.
    pub removed: Verb,
}

impl VerbChange {
    fn add(&mut self, before: bool, after: bool, path: &NotePath) {
        self.added.add_up_to(CHANGED, after && !before, path);
        self.removed.add_up_to(CHANGED, before && !after, path);
    }
}

/// What an edit changes about what an agent reaches of a notebook. Fed like a survey.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SurveyChange {
    /// Files it may read.
    pub read: VerbChange,
    /// Folders it may list.
    pub list: VerbChange,
    /// Files it may change.
    pub write: VerbChange,
    /// Folders it may create something in.
    pub create: VerbChange,
    /// Files it may delete.
    pub delete: VerbChange,
}

impl SurveyChange {
    /// Takes in one entry of the notebook. Where nothing is said of before, nothing of it was reached.
    pub fn add(&mut self, before: Option<&Reached>, after: &Reached, path: &NotePath, kind: Kind) {
        let was = before.map(|before| before.caps(path, kind)).unwrap_or_default();
        let is = after.caps(path, kind);
        match kind {
            Kind::Dir => {
                self.list.add(was.read, is.read, path);
                self.create.add(was.create, is.create, path);
            }
            Kind::File => {
                self.read.add(was.read, is.read, path);
                self.write.add(was.write, is.write, path);
                self.delete.add(was.delete, is.delete, path);
            }
            Kind::Other => {}
        }
    }
}

impl Survey {
    /// Takes in one entry of the notebook.
    pub fn add(&mut self, reached: &Reached, path: &NotePath, kind: Kind) {
        let reach = reached.caps(path, kind);
        self.entries += usize::from(!path.is_root());
        match kind {
            Kind::Dir => {
                self.list.add(reach.read, path);
                self.create.add(reach.create, path);
            }
            Kind::File => {
                self.read.add(reach.read, path);
                self.write.add(reach.write, path);
                self.delete.add(reach.delete, path);
            }
            Kind::Other => {}
        }
        let any = reach.read || reach.write || reach.create || reach.delete;
        if !any && !path.is_root() && self.is_beside(reached, path) {
            self.outside += 1;
            if self.just_outside.len() < OUTSIDE {
                self.just_outside.extend(reached.why(path, kind));
            }
        }
    }

    /// Whether the folder of a path is the root or itself within reach: deeper things lie further outside.
    fn is_beside(&mut self, reached: &Reached, path: &NotePath) -> bool {
        let Some(folder) = path.parent() else { return false };
        match &self.last {
            Some((last, beside)) if *last == folder => *beside,
            Some(_) | None => {
                let beside = folder.is_root() || reached.caps(&folder, Kind::Dir).read;
                self.last = Some((folder, beside));
                beside
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::guard::judge::Decision;
    use crate::guard::rule::Rules;
    use crate::guard::rule::tests::{caller, rule};
    use crate::guard::scope::ScopeSpec;

    /// What a rule forbids to one tool in a folder.
    fn forbidden(folder: &str) -> Held {
        Rules::new([rule(Decision::Deny, "*", &[folder])]).forbidden(&caller(), "a_tool", "path")
    }

    fn whole_notebook(forbidden: Forbidden) -> Reached {
        let spec = serde_json::from_value::<ScopeSpec>(json!({"folders": ["/"]})).unwrap();
        Reached { scope: Arc::new(Scope::compile(&spec, Caps::ALL)), forbidden }
    }

    fn survey(spec: serde_json::Value, caps: Caps, tree: &[(&str, Kind)]) -> Survey {
        let scope = Scope::compile(&serde_json::from_value::<ScopeSpec>(spec).unwrap(), caps);
        let reached = Reached { scope: Arc::new(scope), forbidden: Forbidden::default() };
        let mut survey = Survey::default();
        survey.add(&reached, &NotePath::root(), Kind::Dir);
        for (path, kind) in tree {
            survey.add(&reached, &NotePath::parse(path).unwrap(), *kind);
        }
        survey
    }

    const TREE: [(&str, Kind); 8] = [
        ("/notes", Kind::Dir),
        ("/secret", Kind::Dir),
        ("/top.md", Kind::File),
        ("/notes/a.md", Kind::File),
        ("/notes/b.txt", Kind::File),
        ("/notes/.env", Kind::File),
        ("/notes/sub", Kind::Dir),
        ("/secret/deep.md", Kind::File),
    ];

    #[test]
    fn it_counts_by_verb_and_names_what_lies_just_outside() {
        let caps = Caps { read: true, write: true, create: true, ..Caps::NONE };
        let found = survey(json!({"folders": ["/notes"]}), caps, &TREE);
        assert_eq!((found.entries, found.read.count, found.write.count, found.delete.count), (8, 2, 2, 0));
        assert_eq!(found.list.samples, ["/notes", "/notes/sub"]);
        assert_eq!(found.create.samples, ["/notes", "/notes/sub"]);
        let outside: Vec<_> =
            found.just_outside.iter().map(|thing| (thing.path.as_str(), thing.rule.as_str())).collect();
        assert_eq!(outside, [("/secret", "P11"), ("/top.md", "P11"), ("/notes/.env", "P12")]);
        assert_eq!(found.just_outside[0].smallest_grant.as_deref(), Some("scope.folders: \"/secret\""));
    }

    #[test]
    fn each_verb_is_less_what_rules_forbid_by_it() {
        let of = |forbidden: Forbidden| {
            let (reached, mut survey) = (whole_notebook(forbidden), Survey::default());
            for (path, kind) in TREE {
                survey.add(&reached, &NotePath::parse(path).unwrap(), kind);
            }
            [&survey.read, &survey.list, &survey.write, &survey.create, &survey.delete].map(|verb| verb.count)
        };
        let (all, none) = ([4, 3, 4, 3, 4], Forbidden::default());
        assert_eq!(of(none.clone()), all);
        let notes = || forbidden("/notes");
        assert_eq!(of(Forbidden { read: notes(), ..none.clone() }), [2, 3, 4, 3, 4]);
        assert_eq!(of(Forbidden { list: notes(), ..none.clone() }), [4, 1, 4, 3, 4]);
        assert_eq!(of(Forbidden { write: notes(), ..none.clone() }), [4, 3, 2, 3, 4]);
        assert_eq!(of(Forbidden { create: notes(), ..none.clone() }), [4, 3, 4, 1, 4]);
        assert_eq!(of(Forbidden { delete: notes(), ..none }), [4, 3, 4, 3, 2]);
    }

    #[test]
    fn what_a_rule_forbids_altogether_lies_just_outside_and_names_the_rule() {
        let held = || forbidden("/notes");
        let all = Forbidden { read: held(), list: held(), write: held(), create: held(), delete: held() };
        let (reached, mut survey) = (whole_notebook(all), Survey::default());
        for (path, kind) in TREE {
            survey.add(&reached, &NotePath::parse(path).unwrap(), kind);
        }
        let id = rule(Decision::Deny, "*", &["/notes"]).id;
        let [notes] = survey.just_outside.as_slice() else { panic!("{:?}", survey.just_outside) };
        assert_eq!((notes.path.as_str(), &notes.rule), ("/notes", &format!("rule {id}")));
        assert!(notes.reason.starts_with("a standing rule forbids it: "), "{}", notes.reason);
        assert_eq!(notes.smallest_grant, Some(format!("remove rule {id}")));
        assert_eq!(survey.outside, 1, "what is in it lies further outside");
        // Of a folder that may be listed, a file is outside by itself.
        let file = || forbidden("/notes/a.md");
        let files = Forbidden { read: file(), write: file(), delete: file(), ..Forbidden::default() };
        let (reached, mut survey) = (whole_notebook(files), Survey::default());
        survey.add(&reached, &NotePath::parse("/notes/a.md").unwrap(), Kind::File);
        survey.add(&reached, &NotePath::parse("/notes/b.txt").unwrap(), Kind::File);
        assert_eq!((survey.outside, survey.just_outside[0].path.as_str()), (1, "/notes/a.md"));
    }

    #[test]
    fn an_entry_narrowed_to_reading_writes_nothing() {
        let found = survey(json!({"folders": [{"path": "/notes", "operations": ["read"]}]}), Caps::ALL, &TREE);
        assert_eq!((found.read.count, found.write.count, found.create.count), (2, 0, 0));
    }

    #[test]
    fn only_the_first_samples_are_kept() {
        let many: Vec<String> = (0..20).map(|n| format!("/notes/{n}.md")).collect();
        let tree: Vec<_> = many.iter().map(|path| (path.as_str(), Kind::File)).collect();
        let found = survey(json!({"folders": ["/notes"]}), Caps::ALL, &tree);
        assert_eq!((found.read.count, found.read.samples.len()), (20, SAMPLES));
        let nothing = survey(json!({}), Caps::ALL, &tree);
        assert_eq!((nothing.read.count, nothing.outside), (0, 0), "far outside");
    }

    #[test]
    fn an_edit_names_what_it_adds_and_what_it_takes_away() {
        let scope = |folder: &str| {
            let spec = serde_json::from_value::<ScopeSpec>(json!({"folders": [folder]})).unwrap();
            let scope = Arc::new(Scope::compile(&spec, Caps { read: true, write: true, ..Caps::default() }));
            Reached { scope, forbidden: Forbidden::default() }
        };
        let (before, after) = (scope("/notes"), scope("/secret"));
        let mut change = SurveyChange::default();
        for (path, kind) in [("/notes/a.md", Kind::File), ("/secret/key.md", Kind::File), ("/top.md", Kind::File)] {
            change.add(Some(&before), &after, &NotePath::parse(path).unwrap(), kind);
        }
        assert_eq!(
            (change.write.added.samples, change.write.removed.samples),
            (vec!["/secret/key.md".to_owned()], vec!["/notes/a.md".to_owned()])
        );
        let mut first = SurveyChange::default();
        first.add(None, &after, &NotePath::parse("/secret/key.md").unwrap(), Kind::File);
        assert_eq!((first.read.added.count, first.read.removed.count), (1, 0));
    }
}
