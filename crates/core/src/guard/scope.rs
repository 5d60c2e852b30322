//! The scope of an agent (P9-P16): what of a notebook it reaches and what it may do there. Answers for paths only; that
//! the thing opened is the thing judged (P8) is the file layer's promise.

mod reach;

use serde::{Deserialize, Serialize};

use super::operation::Operations;
pub use super::operation::{Caps, Operation};
use super::path::NotePath;
use super::pattern::{Cut, NamePattern, Pattern};
pub use super::spec::{BadPattern, FolderEntry, NarrowedFolder, ScopeSpec};

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Reads a file.
    Read,
    /// Lists a folder.
    List,
    /// Writes a file; one that does not exist is created.
    Write,
    /// Creates a file; never overwrites.
    Create,
    /// Deletes a file or a folder.
    Delete,
    /// Runs a file.
    Execute,
    /// Moves a file away (the source of a move).
    Move,
    /// Copies a file (the source of a copy).
    Copy,
}

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symlink, a device, a pipe, a socket: never opened (P8).
    Other,
}

/// The two ways to bring a thing to another path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// The source is gone afterwards.
    Move,
    /// The source stays.
    Copy,
}

/// Why the scope does not allow something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Denied {
    /// The deciding rule, as in `P11`.
    pub rule: &'static str,
    /// The kind of refusal as a word for machines.
    pub code: &'static str,
    /// The same for a person.
    pub reason: String,
    /// The smallest change of the policy that would allow it; none if nothing would.
    pub smallest_grant: Option<String>,
}

/// A scope made ready for many questions.
#[derive(Debug, Clone)]
pub struct Scope {
    notebooks: Vec<String>,
    folders: Vec<Folder>,
    file_types: Option<Vec<NamePattern>>,
    /// What the flags allow.
    caps: Operations,
    /// What the scope's own list of operations leaves.
    operations: Operations,
}

#[derive(Debug, Clone)]
struct Folder {
    pattern: Pattern,
    operations: Operations,
}

impl Scope {
    /// Makes a scope ready. Broken entries are left out: they grant nothing (P9).
    #[must_use]
    pub fn compile(spec: &ScopeSpec, caps: Caps) -> Self {
        let folder = |entry: &FolderEntry| {
            let operations = match entry {
                FolderEntry::Pattern(_) => Operations::ALL,
                FolderEntry::Narrowed(entry) => entry.operations.iter().copied().collect(),
                FolderEntry::Broken(_) => Operations::NONE,
            };
            entry.pattern().ok().map(|pattern| Folder { pattern, operations })
        };
        Self {
            notebooks: spec.notebooks.clone().unwrap_or_default(),
            folders: spec.folders.iter().flatten().filter_map(folder).collect(),
            file_types: spec
                .file_types
                .as_ref()
                .map(|types| types.iter().filter_map(|text| NamePattern::parse(text).ok()).collect()),
            caps: caps.into(),
            operations: spec.operations.as_ref().map_or(Operations::ALL, |list| list.iter().copied().collect()),
        }
    }

    /// Whether the agent may be started on this notebook. No list is no notebook.
    #[must_use]
    pub fn admits_notebook(&self, id: &str, slug: &str) -> bool {
        self.notebooks.iter().any(|name| name == "*" || (!name.is_empty() && (name == id || name == slug)))
    }

    /// Judges one action on one path. For `delete`, `move` and `copy` this is the thing itself:
    /// [`Scope::check_delete_tree`] and [`Scope::check_transfer`] add what lies below and where it goes.
    ///
    /// # Errors
    /// Fails with the deciding rule when the scope does not allow it.
    pub fn check(&self, action: Action, path: &NotePath, kind: Kind, exists: bool) -> Result<(), Denied> {
        let kind = if path.is_root() { Kind::Dir } else { kind };
        let needed = needs(action, exists);
        if path.is_sealed() {
            return Err(Denied::sealed(path));
        }
        if kind == Kind::Other {
            let reason = format!("{path} is neither a file nor a folder; links, devices and pipes are never opened");
            return Err(Denied::firm("P8", "special_file", reason));
        }
        let changes = !Operations::READING.contains_all(needed);
        if path.is_root() && changes {
            let reason = "the root of the notebook is never written, created, deleted or run".to_owned();
            return Err(Denied::firm("P16", "root", reason));
        }
        self.check_grant(action, path, needed)?;
        if changes && path.is_read_only() {
            let reason = format!("{path} is a file that other programs trust or run; agents may only read it");
            return Err(Denied::firm("P14", "read_only", reason));
        }
        self.check_type(action, path, kind)?;
        check_state(action, path, kind, exists)
    }

    /// Judges a move or a copy: the source, the target, and for a folder everything below it, at both ends.
    ///
    /// # Errors
    /// Fails with the deciding rule when the scope does not allow it.
    pub fn check_transfer<'a>(
        &self,
        transfer: Transfer,
        (source, kind): (&NotePath, Kind),
        (dest, dest_exists): (&NotePath, bool),
        contents: impl IntoIterator<Item = (&'a NotePath, Kind)>,
    ) -> Result<(), Denied> {
        let kind = if source.is_root() { Kind::Dir } else { kind };
        let action = match transfer {
            Transfer::Move => Action::Move,
            Transfer::Copy => Action::Copy,
        };
        self.check(action, source, kind, true)?;
        self.check(Action::Create, dest, kind, dest_exists)?;
        if kind == Kind::Dir && dest.is_within(source) {
            let reason = format!("{dest} lies in {source} itself");
            return Err(Denied::firm("P16", "into_itself", reason));
        }
        for (path, kind) in contents {
            let new_path =
                below(source, path).and_then(|names| names.iter().try_fold(dest.clone(), |at, n| at.child(n).ok()));
            let Some(new_path) = new_path else {
                let reason = format!("{path} could not keep its place below {dest}");
                return Err(Denied::firm("P7", "invalid_path", reason));
            };
            self.check(action, path, kind, true)?;
            self.check(Action::Create, &new_path, kind, false)?;
        }
        Ok(())
    }

    /// Judges deleting a folder with all that lies below it: every thing must itself be granted (P15).
    ///
    /// # Errors
    /// Fails with the deciding rule, naming the first thing that may not be deleted.
    pub fn check_delete_tree<'a>(
        &self,
        folder: &NotePath,
        contents: impl IntoIterator<Item = (&'a NotePath, Kind)>,
    ) -> Result<(), Denied> {
        self.check(Action::Delete, folder, Kind::Dir, true)?;
        contents.into_iter().try_for_each(|(path, kind)| {
            self.check(Action::Delete, path, kind, true).map_err(|denied| Denied {
                rule: "P15",
                reason: format!("{folder} holds something that may not be deleted: {}", denied.reason),
                ..denied
            })
        })
    }

    fn check_grant(&self, action: Action, path: &NotePath, needed: Operations) -> Result<(), Denied> {
        let cut = Cut::new(path);
        let reaches = |folder: &&Folder| {
            folder.pattern.grants_cut(&cut) || (action == Action::List && folder.pattern.ranges_over_cut(&cut))
        };
        let mut reached = false;
        let mut granted = Operations::NONE;
        for folder in self.folders.iter().filter(reaches) {
            reached = true;
            granted = granted.with(folder.operations);
        }
        if !reached {
            return Err(self.out_of_scope(path, cut.has_hidden()));
        }
        let missing = needed.first_outside(self.caps);
        if let Some(operation) = missing {
            let reason = format!("the agent may not {operation} anything: its flag {} is off", operation.flag());
            return Err(Denied::grantable("P16", "capability", reason, operation.flag().to_owned()));
        }
        if let Some(operation) = needed.first_outside(self.operations) {
            let reason = format!("the scope's operations leave out \"{operation}\"");
            return Err(Denied::grantable("P16", "operation", reason, format!("scope.operations: \"{operation}\"")));
        }
        if let Some(operation) = needed.first_outside(granted) {
            let reason = format!("the folder entries that reach {path} leave out \"{operation}\"");
            let entry = FolderEntry::Narrowed(NarrowedFolder {
                path: Pattern::naming(path),
                operations: needed.iter().collect(),
            });
            let entry = serde_json::to_string(&entry).unwrap_or_default();
            return Err(Denied::grantable("P16", "operation", reason, format!("scope.folders: {entry}")));
        }
        Ok(())
    }

    fn out_of_scope(&self, path: &NotePath, hidden: bool) -> Denied {
        let (rule, reason) = if self.folders.is_empty() {
            ("P9", format!("{path} is out of scope: the agent is granted no folder"))
        } else if hidden {
            (
                "P12",
                format!(
                    "{path} is out of scope: a name that begins with a dot is granted only where a pattern names it"
                ),
            )
        } else {
            ("P11", format!("{path} is out of scope: no folder the agent is granted reaches it"))
        };
        let grant = format!("scope.folders: \"{}\"", Pattern::naming(path));
        Denied::grantable(rule, "out_of_scope", reason, grant)
    }

    fn check_type(&self, action: Action, path: &NotePath, kind: Kind) -> Result<(), Denied> {
        let Some(types) = &self.file_types else { return Ok(()) };
        let name = path.name().unwrap_or_default();
        match (kind, action) {
            (Kind::Dir, Action::Delete | Action::Move) => {
                let reason = format!(
                    "{path} is a folder; folders are deleted or moved only where file types are not restricted"
                );
                Err(Denied::grantable("P15", "file_type", reason, "scope.file_types left out".to_owned()))
            }
            (_, Action::List)
            | (Kind::Dir, Action::Read | Action::Write | Action::Create | Action::Execute | Action::Copy) => Ok(()),
            (Kind::File | Kind::Other, _) if types.iter().any(|pattern| pattern.matches(name)) => Ok(()),
            (Kind::File | Kind::Other, _) => {
                let grant = match name.rsplit_once('.') {
                    Some((_, ending)) => format!("*.{ending}"),
                    None => name.to_owned(),
                };
                let reason = format!("{path} is not of a file type the agent is granted");
                Err(Denied::grantable("P15", "file_type", reason, format!("scope.file_types: \"{grant}\"")))
            }
        }
    }
}

/// What the action needs at the path itself (P16).
fn needs(action: Action, exists: bool) -> Operations {
    match action {
        Action::Read | Action::List | Action::Copy => Operations::READING,
        Action::Write if exists => Operations::of(Operation::Write),
        Action::Write | Action::Create => Operations::of(Operation::Create),
        Action::Delete => Operations::of(Operation::Delete),
        Action::Execute => Operations::of(Operation::Execute),
        Action::Move => Operations::READING.with(Operations::of(Operation::Delete)),
    }
}

/// What the action wants to find there.
fn check_state(action: Action, path: &NotePath, kind: Kind, exists: bool) -> Result<(), Denied> {
    let firm = |rule, code, reason| Err(Denied::firm(rule, code, reason));
    match (action, kind) {
        (Action::Create, _) if exists => {
            firm("P16", "exists", format!("{path} is already there and is not overwritten"))
        }
        (Action::List, Kind::File) => firm("P13", "not_a_folder", format!("{path} is not a folder")),
        (Action::Write | Action::Execute, Kind::Dir) => firm("P16", "is_a_folder", format!("{path} is a folder")),
        (Action::List, Kind::Dir | Kind::Other)
        | (Action::Write | Action::Execute, Kind::File | Kind::Other)
        | (Action::Read | Action::Create | Action::Delete | Action::Move | Action::Copy, _) => Ok(()),
    }
}

/// The names that lead from the folder down to the path; none if it does not lie below.
fn below<'a>(folder: &NotePath, path: &'a NotePath) -> Option<Vec<&'a str>> {
    let depth = folder.segments().count();
    (path.is_within(folder) && path != folder).then(|| path.segments().skip(depth).collect())
}

impl Denied {
    fn sealed(path: &NotePath) -> Self {
        let reason =
            format!("{path} is sealed: it holds keys, history or Adjutant's own state, and no grant reaches it");
        Self::firm("P14", "sealed", reason)
    }

    /// A refusal that no grant changes.
    pub(super) const fn firm(rule: &'static str, code: &'static str, reason: String) -> Self {
        Self { rule, code, reason, smallest_grant: None }
    }

    pub(super) const fn grantable(rule: &'static str, code: &'static str, reason: String, grant: String) -> Self {
        Self { rule, code, reason, smallest_grant: Some(grant) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn path(text: &str) -> NotePath {
        NotePath::parse(text).unwrap()
    }

    fn scope(spec: Value) -> Scope {
        Scope::compile(&serde_json::from_value(spec).unwrap(), Caps::ALL)
    }

    fn with_caps(folder: &str, caps: &[Operation]) -> Scope {
        let spec = ScopeSpec { folders: Some(vec![folder.into()]), ..ScopeSpec::default() };
        Scope::compile(&spec, caps.iter().copied().collect())
    }

    /// The code of the refusal of an action on an existing file, `ok` if there is none.
    fn file(scope: &Scope, action: Action, text: &str) -> &'static str {
        code(scope.check(action, &path(text), Kind::File, action != Action::Create))
    }

    fn dir(scope: &Scope, action: Action, text: &str) -> &'static str {
        code(scope.check(action, &path(text), Kind::Dir, action != Action::Create))
    }

    fn code(answer: Result<(), Denied>) -> &'static str {
        answer.map_or_else(|denied| denied.code, |()| "ok")
    }

    #[test]
    fn p8_what_is_neither_file_nor_folder_is_never_opened() {
        let all = scope(json!({"folders": ["/"]}));
        for action in [Action::Read, Action::List, Action::Write, Action::Delete, Action::Execute, Action::Move] {
            assert_eq!(code(all.check(action, &path("/a"), Kind::Other, true)), "special_file");
        }
    }

    #[test]
    fn p9_no_folders_is_nothing_and_a_broken_one_spoils_no_other() {
        for spec in [
            json!({}),
            json!({"folders": null}),
            json!({"folders": []}),
            json!({"folders": "/"}),
            json!({"folders": ["..", "!/a", "/a\\", "/[", "/[]", "/[^a]", "/[z-a]", "/a**", " /a", 1, [], {}, ""]}),
        ] {
            let scope = scope(spec.clone());
            for text in ["/", "/a", "/a/b"] {
                assert_eq!(file(&scope, Action::Read, text), "out_of_scope", "{spec}");
            }
        }
        assert_eq!(file(&scope(json!({"folders": ["/[", "/a", 1]})), Action::Read, "/a/b"), "ok");
    }

    #[test]
    fn p11_a_refusal_names_the_smallest_grant() {
        let denied = scope(json!({"folders": ["/drafts"]}))
            .check(Action::Read, &path("/secrets/k[1].md"), Kind::File, true)
            .unwrap_err();
        assert_eq!((denied.rule, denied.code), ("P11", "out_of_scope"));
        assert_eq!(denied.smallest_grant.as_deref(), Some("scope.folders: \"/secrets/k[[]1].md\""));
    }

    #[test]
    fn p12_hidden_names_have_to_be_named() {
        let denied =
            scope(json!({"folders": ["/"]})).check(Action::Read, &path("/.env"), Kind::File, true).unwrap_err();
        assert_eq!((denied.rule, denied.code), ("P12", "out_of_scope"));
        assert_eq!(file(&scope(json!({"folders": ["/.env"]})), Action::Read, "/.env"), "ok");
    }

    #[test]
    fn p13_a_folder_is_listed_if_granted_or_ranged_over() {
        let ranged = scope(json!({"folders": ["/experiments/*"]}));
        assert_eq!(dir(&ranged, Action::List, "/experiments"), "ok");
        assert_eq!(dir(&ranged, Action::Read, "/experiments"), "out_of_scope");
        assert_eq!(dir(&ranged, Action::List, "/"), "out_of_scope");
        let literal = scope(json!({"folders": ["/drafts/a"]}));
        assert_eq!(dir(&literal, Action::List, "/drafts/a"), "ok");
        assert_eq!(dir(&literal, Action::List, "/drafts"), "out_of_scope");
        assert_eq!(dir(&scope(json!({"folders": ["*"]})), Action::List, "/"), "ok");
        assert_eq!(file(&scope(json!({"folders": ["*"]})), Action::List, "/a"), "not_a_folder");
    }

    #[test]
    fn p14_sealed_names_are_sealed_for_every_action_whatever_the_scope() {
        let named = scope(json!({"folders": ["/", "/.git", "/.GIT", "/.ssh/**", "/a/git~1", "/.adjutant/*"]}));
        for action in [
            Action::Read,
            Action::List,
            Action::Write,
            Action::Create,
            Action::Delete,
            Action::Execute,
            Action::Move,
            Action::Copy,
        ] {
            for text in ["/.git", "/.git/config", "/.GIT/x", "/.ssh/id", "/a/git~1/x", "/.adjutant/agents/a.md"] {
                assert_eq!(file(&named, action, text), "sealed", "{action:?} {text}");
            }
        }
    }

    #[test]
    fn p14_trusted_names_are_read_only_even_if_granted() {
        let named = scope(json!({"folders": ["/.vscode", "/.ENVRC", "/.mcp.json"]}));
        for text in ["/.vscode/settings.json", "/.ENVRC", "/.mcp.json"] {
            for action in [Action::Read, Action::Copy] {
                assert_eq!(file(&named, action, text), "ok", "{action:?} {text}");
            }
            for action in [Action::Write, Action::Create, Action::Delete, Action::Execute, Action::Move] {
                assert_eq!(file(&named, action, text), "read_only", "{action:?} {text}");
            }
        }
        assert_eq!(dir(&named, Action::List, "/.vscode"), "ok");
        let target =
            named.check_transfer(Transfer::Copy, (&path("/.vscode/a"), Kind::File), (&path("/.vscode/b"), false), []);
        assert_eq!(code(target), "read_only");
    }

    #[test]
    fn p15_one_type_must_match_the_name_of_a_file() {
        let notes = scope(json!({"folders": ["/"], "file_types": ["*.md", "a/b"]}));
        assert_eq!(file(&notes, Action::Read, "/a.md"), "ok");
        assert_eq!(file(&notes, Action::Read, "/a.MD"), "file_type");
        assert_eq!(file(&notes, Action::Create, "/a.md.exe"), "file_type");
        assert_eq!(file(&scope(json!({"folders": ["/"], "file_types": []})), Action::Read, "/a.md"), "file_type");
        assert_eq!(file(&scope(json!({"folders": ["/"], "file_types": "*"})), Action::Read, "/a.md"), "file_type");
        assert_eq!(file(&scope(json!({"folders": ["/"], "file_types": [3]})), Action::Read, "/3"), "file_type");
        assert_eq!(file(&scope(json!({"folders": ["/"], "file_types": null})), Action::Read, "/a.md"), "ok");
        assert_eq!(file(&scope(json!({"folders": ["/.env"], "file_types": ["*env"]})), Action::Read, "/.env"), "ok");
        let denied = notes.check(Action::Read, &path("/x.pdf"), Kind::File, true).unwrap_err();
        assert_eq!(denied.smallest_grant.as_deref(), Some("scope.file_types: \"*.pdf\""));
    }

    #[test]
    fn p15_types_do_not_touch_folders_or_listing() {
        for types in [json!(["*.md"]), json!([])] {
            let notes = scope(json!({"folders": ["/"], "file_types": types}));
            assert_eq!(dir(&notes, Action::List, "/a"), "ok");
            assert_eq!(dir(&notes, Action::List, "/"), "ok");
            assert_eq!(dir(&notes, Action::Create, "/a"), "ok");
            assert_eq!(dir(&notes, Action::Delete, "/a"), "file_type");
            assert_eq!(dir(&notes, Action::Move, "/a"), "file_type");
        }
    }

    #[test]
    fn p15_a_folder_is_deleted_only_if_everything_below_is_granted() {
        let drafts = scope(json!({"folders": ["/drafts", "/drafts/.kept"]}));
        let delete = |below: &[(&str, Kind)]| {
            let below: Vec<_> = below.iter().map(|(text, kind)| (path(text), *kind)).collect();
            code(drafts.check_delete_tree(&path("/drafts/sub"), below.iter().map(|(path, kind)| (path, *kind))))
        };
        assert_eq!(delete(&[]), "ok");
        assert_eq!(delete(&[("/drafts/sub/x", Kind::Dir), ("/drafts/sub/x/a.md", Kind::File)]), "ok");
        assert_eq!(delete(&[("/drafts/sub/a.md", Kind::File), ("/drafts/sub/.env", Kind::File)]), "out_of_scope");
        assert_eq!(delete(&[("/drafts/sub/.git", Kind::Dir)]), "sealed");
        assert_eq!(delete(&[("/drafts/sub/link", Kind::Other)]), "special_file");
        let denied =
            drafts.check_delete_tree(&path("/drafts/sub"), [(&path("/drafts/sub/.git"), Kind::Dir)]).unwrap_err();
        assert_eq!(denied.rule, "P15", "the folder may not go because of what it holds");
        assert!(
            denied.reason.starts_with("/drafts/sub holds something that may not be deleted: "),
            "{}",
            denied.reason
        );
        let experiments = scope(json!({"folders": ["/experiments/*"]}));
        assert_eq!(code(experiments.check_delete_tree(&path("/experiments"), [])), "out_of_scope");
        let typed = scope(json!({"folders": ["/drafts"], "file_types": ["*"]}));
        assert_eq!(code(typed.check_delete_tree(&path("/drafts/sub"), [])), "file_type");
    }

    #[test]
    fn p16_each_action_needs_its_operations_and_no_others() {
        use Operation as O;
        let cases: &[(Action, bool, &[Operation])] = &[
            (Action::Read, true, &[O::Read]),
            (Action::Write, true, &[O::Write]),
            (Action::Write, false, &[O::Create]),
            (Action::Create, false, &[O::Create]),
            (Action::Delete, true, &[O::Delete]),
            (Action::Execute, true, &[O::Execute]),
            (Action::Move, true, &[O::Read, O::Delete]),
            (Action::Copy, true, &[O::Read]),
        ];
        for (action, exists, needed) in cases {
            let check =
                |caps: &[Operation]| code(with_caps("/a", caps).check(*action, &path("/a/b"), Kind::File, *exists));
            assert_eq!(check(needed), "ok", "{action:?} exists={exists}");
            for left_out in *needed {
                let caps: Vec<_> = O::ALL.into_iter().filter(|operation| operation != left_out).collect();
                assert_eq!(check(&caps), "capability", "{action:?} exists={exists} without {left_out}");
            }
        }
        assert_eq!(dir(&with_caps("/a", &[O::Read]), Action::List, "/a"), "ok");
        assert_eq!(
            dir(&with_caps("/a", &[O::Write, O::Create, O::Delete, O::Execute]), Action::List, "/a"),
            "capability"
        );
    }

    #[test]
    fn p16_create_never_overwrites_and_a_folder_is_not_written() {
        let all = scope(json!({"folders": ["/"]}));
        assert_eq!(code(all.check(Action::Create, &path("/a"), Kind::File, true)), "exists");
        assert_eq!(code(all.check(Action::Create, &path("/a"), Kind::File, false)), "ok");
        assert_eq!(dir(&all, Action::Write, "/a"), "is_a_folder");
        assert_eq!(dir(&all, Action::Execute, "/a"), "is_a_folder");
    }

    #[test]
    fn p16_the_root_is_never_changed() {
        let all = scope(json!({"folders": ["/"]}));
        for action in [Action::Write, Action::Create, Action::Delete, Action::Execute, Action::Move] {
            for exists in [true, false] {
                assert_eq!(code(all.check(action, &path("/"), Kind::File, exists)), "root", "{action:?}");
            }
        }
        let onto = all.check_transfer(Transfer::Copy, (&path("/a"), Kind::Dir), (&path("/"), false), []);
        assert_eq!(code(onto), "root");
        assert_eq!(dir(&all, Action::List, "/"), "ok");
    }

    #[test]
    fn p16_a_move_needs_both_ends_and_never_overwrites() {
        let drafts = scope(json!({"folders": ["/drafts", "/archive"]}));
        let transfer = |how, from: &str, to: &str, there| {
            code(drafts.check_transfer(how, (&path(from), Kind::File), (&path(to), there), []))
        };
        for how in [Transfer::Move, Transfer::Copy] {
            assert_eq!(transfer(how, "/drafts/a", "/archive/a", false), "ok");
            assert_eq!(transfer(how, "/drafts/a", "/archive/a", true), "exists");
            assert_eq!(transfer(how, "/drafts/a", "/published/a", false), "out_of_scope");
            assert_eq!(transfer(how, "/published/a", "/drafts/a", false), "out_of_scope");
            assert_eq!(transfer(how, "/drafts/a", "/drafts/.git/hooks/x", false), "sealed");
            // What lies below a file is refused by the file system; only a folder can be brought into itself.
            assert_eq!(transfer(how, "/drafts/a", "/drafts/a/b", false), "ok");
        }
        let typed = scope(json!({"folders": ["/drafts"], "file_types": ["*.md"]}));
        let renamed = typed.check_transfer(
            Transfer::Move,
            (&path("/drafts/a.md"), Kind::File),
            (&path("/drafts/a.sh"), false),
            [],
        );
        assert_eq!(code(renamed), "file_type");
    }

    #[test]
    fn p16_a_folder_takes_only_granted_things_along() {
        let drafts = scope(json!({"folders": ["/drafts", "/out"]}));
        let transfer = |how, below: &str, to: &str| {
            let below = path(below);
            code(drafts.check_transfer(
                how,
                (&path("/drafts/sub"), Kind::Dir),
                (&path(to), false),
                [(&below, Kind::File)],
            ))
        };
        for how in [Transfer::Move, Transfer::Copy] {
            assert_eq!(transfer(how, "/drafts/sub/a.md", "/out/sub"), "ok");
            assert_eq!(transfer(how, "/drafts/sub/.env", "/out/sub"), "out_of_scope");
            assert_eq!(transfer(how, "/drafts/sub/.git", "/out/sub"), "sealed");
            assert_eq!(transfer(how, "/drafts/sub/a.md", "/drafts/sub/x"), "into_itself");
            assert_eq!(transfer(how, "/drafts/other", "/out/sub"), "invalid_path");
            // The folder itself is none of the things below it.
            assert_eq!(transfer(how, "/drafts/sub", "/out/sub"), "invalid_path");
        }
        // Named where it lies, but not where it would go.
        let named = scope(json!({"folders": ["/drafts", "/drafts/sub/.env", "/out"]}));
        let hidden = path("/drafts/sub/.env");
        let moved = named.check_transfer(
            Transfer::Move,
            (&path("/drafts/sub"), Kind::Dir),
            (&path("/out/sub"), false),
            [(&hidden, Kind::File)],
        );
        assert_eq!(code(moved), "out_of_scope");
        let all = scope(json!({"folders": ["/"]}));
        let root = all.check_transfer(Transfer::Copy, (&path("/"), Kind::File), (&path("/copy"), false), []);
        assert_eq!(code(root), "into_itself");
    }

    #[test]
    fn operations_of_the_flags_the_scope_and_the_entries_only_narrow() {
        let narrowed = scope(
            json!({"folders": [{"path": "/a", "operations": ["read"]}, {"path": "/a/b", "operations": ["write"]}]}),
        );
        assert_eq!(file(&narrowed, Action::Read, "/a/x"), "ok");
        assert_eq!(file(&narrowed, Action::Write, "/a/x"), "operation");
        assert_eq!(file(&narrowed, Action::Write, "/a/b/x"), "ok");
        assert_eq!(file(&narrowed, Action::Read, "/a/b/x"), "ok");
        let whole = scope(json!({"folders": ["/a"], "operations": ["read"]}));
        assert_eq!(file(&whole, Action::Read, "/a/x"), "ok");
        assert_eq!(file(&whole, Action::Write, "/a/x"), "operation");
        assert_eq!(file(&scope(json!({"folders": ["/a"], "operations": []})), Action::Read, "/a/x"), "operation");
        let listing = scope(json!({"folders": [{"path": "/a/*", "operations": ["write"]}]}));
        assert_eq!(dir(&listing, Action::List, "/a"), "operation");
        let denied = narrowed.check(Action::Delete, &path("/a/x"), Kind::File, true).unwrap_err();
        assert_eq!(
            denied.smallest_grant.as_deref(),
            Some("scope.folders: {\"path\":\"/a/x\",\"operations\":[\"delete\"]}")
        );
    }

    #[test]
    fn a_notebook_is_admitted_by_id_slug_or_star_and_by_nothing_else() {
        let admits = |list: Value| scope(json!({"notebooks": list})).admits_notebook("nb_1", "welcome");
        assert!(admits(json!(["nb_1"])) && admits(json!(["welcome"])) && admits(json!(["*"])));
        assert!(!admits(json!(["nb_"])) && !admits(json!([])) && !admits(json!(null)) && !admits(json!([""])));
        assert!(!scope(json!({"folders": ["/"]})).admits_notebook("nb_1", "welcome"));
        assert!(!scope(json!({"notebooks": [""]})).admits_notebook("", ""));
    }
}
