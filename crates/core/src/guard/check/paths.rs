//! Cases of `check paths`. Everything but the tree: the command builds that one and really opens it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Answer, BadCase, finished, read};
use crate::guard::path::{InvalidPath, NotePath};
use crate::guard::scope::{Action, Caps, Denied, Kind, Operation, Scope, ScopeSpec, Transfer};

/// One action on one path.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    /// What is granted, as it was written: `folders`, `file_types`, `operations`, and the flags as `caps`.
    pub scope: Value,
    /// What is done; a name that is not exactly that of an action is denied.
    pub action: String,
    /// What it is done to.
    pub path: String,
    /// What lies there.
    pub kind: Option<String>,
    /// Whether something lies there.
    pub exists: Option<bool>,
    /// Where it is moved or copied to.
    pub dest: Option<String>,
    /// Whether something lies there.
    #[serde(default)]
    pub dest_exists: bool,
    /// Links of the tree, with their targets.
    #[serde(default)]
    pub symlinks: BTreeMap<String, String>,
    /// What lies below a folder.
    pub contains: Option<Vec<String>>,
    /// What is expected.
    pub expect: Option<String>,
}

/// Judges a case and compares it with what it expects.
///
/// # Errors
/// Fails when the case cannot be read.
pub fn check(case: &Value) -> Result<Value, BadCase> {
    check_with(case, Case::judge)
}

/// The same with another judge, one that really opens the tree of the case.
///
/// # Errors
/// Fails when the case cannot be read.
pub fn check_with(case: &Value, judge: impl FnOnce(&Case) -> Result<(), Denied>) -> Result<Value, BadCase> {
    let parsed: Case = read(case)?;
    let answer = Answer::from(judge(&parsed));
    let pass = parsed.expect.as_ref().map(|expect| expect == answer.verdict());
    Ok(finished(answer.line(case), pass))
}

impl Case {
    /// Judges the case as far as its text goes.
    ///
    /// # Errors
    /// Fails with the deciding rule.
    pub fn judge(&self) -> Result<(), Denied> {
        let scope = self.compile()?;
        let action = self
            .action()
            .ok_or_else(|| Denied::firm("P16", "unknown_action", format!("there is no action {:?}", self.action)))?;
        let path = parse(&self.path)?;
        self.check_links(&path)?;
        let kind = self.kind(action);
        let below = self.below(&path)?;
        let contents = below.iter().map(|path| (path, self.kind_below(path, &below)));
        match action {
            Action::Move | Action::Copy => {
                let dest = parse(self.dest.as_deref().unwrap_or_default())?;
                self.check_links(&dest)?;
                let transfer = if action == Action::Move { Transfer::Move } else { Transfer::Copy };
                scope.check_transfer(transfer, (&path, kind), (&dest, self.dest_exists), contents)
            }
            Action::Delete if kind == Kind::Dir => scope.check_delete_tree(&path, contents),
            Action::Delete | Action::Read | Action::List | Action::Write | Action::Create | Action::Execute => {
                scope.check(action, &path, kind, self.exists(action))
            }
        }
    }

    /// The action, if there is one of this exact name.
    #[must_use]
    pub fn action(&self) -> Option<Action> {
        serde_json::from_value(Value::String(self.action.clone())).ok()
    }

    /// What lies at the path.
    #[must_use]
    pub fn kind(&self, action: Action) -> Kind {
        match self.kind.as_deref() {
            Some("file") => Kind::File,
            Some("dir") => Kind::Dir,
            Some(_) => Kind::Other,
            None if action == Action::List || self.contains.is_some() => Kind::Dir,
            None => Kind::File,
        }
    }

    /// Whether something lies at the path.
    #[must_use]
    pub fn exists(&self, action: Action) -> bool {
        self.exists.unwrap_or(action != Action::Create)
    }

    /// The paths of what lies below the folder; written from the root, or from the folder itself.
    ///
    /// # Errors
    /// Fails when one of them is not a path.
    pub fn below(&self, folder: &NotePath) -> Result<Vec<NotePath>, Denied> {
        let one = |text: &String| {
            let path = parse(text)?;
            if path.is_within(folder) { Ok(path) } else { parse(&format!("{folder}/{text}")) }
        };
        self.contains.iter().flatten().map(one).collect()
    }

    fn kind_below(&self, path: &NotePath, all: &[NotePath]) -> Kind {
        if self.is_link(path) {
            Kind::Other
        } else if all.iter().any(|other| other != path && other.is_within(path)) {
            Kind::Dir
        } else {
            Kind::File
        }
    }

    fn compile(&self) -> Result<Scope, Denied> {
        let grants = ["notebooks", "folders", "file_types", "operations"];
        let granted = grants.iter().filter_map(|key| Some(((*key).to_owned(), self.scope.get(key)?.clone())));
        let spec: ScopeSpec = serde_json::from_value(Value::Object(granted.collect()))
            .map_err(|error| Denied::firm("P9", "broken_scope", format!("the scope cannot be read: {error}")))?;
        let caps = self.scope.get("caps").and_then(Value::as_array).into_iter().flatten();
        let caps: Caps = caps.filter_map(|cap| serde_json::from_value::<Operation>(cap.clone()).ok()).collect();
        Ok(Scope::compile(&spec, caps))
    }

    fn is_link(&self, path: &NotePath) -> bool {
        self.symlinks.keys().any(|link| NotePath::parse(link).as_ref() == Ok(path))
    }

    /// No link is followed, in any component (P8).
    fn check_links(&self, path: &NotePath) -> Result<(), Denied> {
        let mut folders = std::iter::successors(Some(path.clone()), NotePath::parent);
        match folders.find(|folder| self.is_link(folder)) {
            Some(link) => Err(Denied::firm("P8", "symlink", format!("{link} is a link, and links are never followed"))),
            None => Ok(()),
        }
    }
}

fn parse(text: &str) -> Result<NotePath, Denied> {
    NotePath::parse(text).map_err(|error: InvalidPath| Denied::firm(error.rule(), "invalid_path", error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(fields: Value) -> String {
        let mut case = json!({"id": 1, "scope": {"folders": ["/drafts"], "caps": ["read", "write", "create", "delete"]}, "path": "/drafts/a"});
        case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let line = check(&case).unwrap();
        format!("{} {}", line["verdict"].as_str().unwrap(), line["code"].as_str().unwrap())
    }

    #[test]
    fn p8_a_link_on_the_way_is_denied_for_every_action() {
        for action in ["read", "list", "write", "create", "delete", "move", "copy"] {
            let answer =
                verdict(json!({"action": action, "dest": "/drafts/z", "symlinks": {"/drafts/a": "/drafts/b"}}));
            assert_eq!(answer, "deny symlink", "{action}");
        }
        let answer = verdict(json!({"action": "read", "path": "/drafts/l/x/y", "symlinks": {"drafts/l/": "/drafts"}}));
        assert_eq!(answer, "deny symlink");
        let answer = verdict(json!({"action": "copy", "dest": "/drafts/l/b", "symlinks": {"/drafts/l": "/published"}}));
        assert_eq!(answer, "deny symlink");
        let answer =
            verdict(json!({"action": "delete", "kind": "dir", "contains": ["l"], "symlinks": {"/drafts/a/l": "/x"}}));
        assert_eq!(answer, "deny special_file");
        assert_eq!(verdict(json!({"action": "read", "symlinks": {"/drafts/b": "/x"}})), "allow ok");
    }

    #[test]
    fn p16_action_names_are_exact() {
        for action in ["Read", "READ", "read ", "", "chmod", "append", "rename", "*"] {
            assert_eq!(verdict(json!({"action": action})), "deny unknown_action", "{action}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_action() {
        assert_eq!(verdict(json!({"action": "create"})), "allow ok");
        assert_eq!(verdict(json!({"action": "create", "exists": true})), "deny exists");
        assert_eq!(verdict(json!({"action": "list", "path": "/drafts"})), "allow ok");
        assert_eq!(verdict(json!({"action": "read", "kind": "fifo"})), "deny special_file");
        assert_eq!(verdict(json!({"action": "create", "kind": "device"})), "deny special_file");
        assert_eq!(verdict(json!({"action": "move"})), "deny invalid_path");
        assert_eq!(verdict(json!({"action": "read", "scope": {"folders": ["/drafts"]}})), "deny capability");
        assert_eq!(
            verdict(
                json!({"action": "read", "scope": {"folders": ["/drafts"], "caps": ["read"], "operations": ["fly"]}})
            ),
            "deny broken_scope"
        );
    }

    #[test]
    fn p15_what_lies_below_is_named_from_the_root_or_from_the_folder() {
        for (below, answer) in [
            ("/drafts/a/.env", "deny out_of_scope"),
            (".env", "deny out_of_scope"),
            (".git/config", "deny sealed"),
            ("x/../y", "deny invalid_path"),
            ("b.md", "allow ok"),
        ] {
            assert_eq!(
                verdict(json!({"action": "delete", "kind": "dir", "contains": ["ok.md", below]})),
                answer,
                "{below}"
            );
        }
    }
}
