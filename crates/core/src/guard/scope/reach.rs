//! What a scope reaches of a real tree, entry by entry: the preview a person reads before an agent is trusted with it. One
//! pass over the patterns per entry, and the same answers as [`Scope::check`].

use super::{Action, Caps, Kind, Operation, Operations, Scope};
use crate::guard::path::NotePath;
use crate::guard::pattern::Cut;

/// Names that something new might have; one that the scope allows is enough to say that something can be created. They are
/// asked about as folders, to which file types do not apply: which ending a new file has is still open.
const NEW_NAMES: [&str; 3] = ["new", "new.md", "new.txt"];

impl Scope {
    /// What may be done with something that is there. Of a file: read, write, delete, execute. Of a folder: `read` is
    /// listing it, `create` is making something in it.
    #[must_use]
    pub fn reach(&self, path: &NotePath, kind: Kind) -> Caps {
        let kind = if path.is_root() { Kind::Dir } else { kind };
        if path.is_sealed() || kind == Kind::Other {
            return Caps::NONE;
        }
        let cut = Cut::new(path);
        let mut granted = Operations::NONE;
        for folder in &self.folders {
            let lists = kind == Kind::Dir && folder.pattern.ranges_over_cut(&cut);
            if lists || folder.pattern.grants_cut(&cut) {
                granted = granted.with(folder.operations);
            }
        }
        let may = |operation: Operation| {
            let needed = Operations::of(operation);
            [granted, self.caps, self.operations].iter().all(|held| held.contains_all(needed))
        };
        if kind == Kind::Dir {
            return Caps { read: may(Operation::Read), create: self.creates_in(path), ..Caps::NONE };
        }
        // The type is only looked at where something is granted at all: most of a large tree usually is not.
        if granted == Operations::NONE || self.check_type(Action::Read, path, kind).is_err() {
            return Caps::NONE;
        }
        let changes = !path.is_read_only();
        Caps {
            read: may(Operation::Read),
            write: changes && may(Operation::Write),
            create: false,
            delete: changes && may(Operation::Delete),
            execute: changes && may(Operation::Execute),
        }
    }

    /// Whether something in a folder, at any depth, could be granted: a folder of which this is not true need not be opened.
    #[must_use]
    pub fn may_hold(&self, folder: &NotePath) -> bool {
        let cut = Cut::new(folder);
        !folder.is_sealed() && self.folders.iter().any(|granted| granted.pattern.may_hold_cut(&cut))
    }

    fn creates_in(&self, folder: &NotePath) -> bool {
        let some_type = self.file_types.as_ref().is_none_or(|types| !types.is_empty());
        some_type
            && NEW_NAMES
                .iter()
                .filter_map(|name| folder.child(name).ok())
                .any(|path| self.check(Action::Create, &path, Kind::Dir, false).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::guard::scope::ScopeSpec;

    fn scope(value: serde_json::Value, caps: Caps) -> Scope {
        Scope::compile(&serde_json::from_value::<ScopeSpec>(value).unwrap(), caps)
    }

    #[test]
    fn p15_folders_are_listed_whatever_the_file_types_and_files_are_not_read() {
        let scope = scope(json!({"folders": ["/notes"], "file_types": ["*.md"]}), Caps::ALL);
        let path = |text| NotePath::parse(text).unwrap();
        assert_eq!(scope.reach(&path("/notes/sub"), Kind::Dir), Caps { read: true, create: true, ..Caps::NONE });
        assert_eq!(scope.reach(&path("/notes/a.txt"), Kind::File), Caps::NONE);
        assert!(scope.reach(&path("/notes/a.md"), Kind::File).write);
        assert_eq!(scope.reach(&path("/other"), Kind::Dir), Caps::NONE);
    }

    #[test]
    fn p15_where_no_file_type_is_granted_a_folder_is_listed_and_nothing_is_made_in_it() {
        let scope = scope(json!({"folders": ["/notes"], "file_types": []}), Caps::ALL);
        let listed = scope.reach(&NotePath::parse("/notes").unwrap(), Kind::Dir);
        assert_eq!(listed, Caps { read: true, ..Caps::NONE });
    }

    #[test]
    fn p8_p14_links_and_sealed_names_are_not_reached_and_what_other_programs_trust_is_only_read() {
        let scope = scope(json!({"folders": ["/notes", "/notes/.envrc", "/notes/.git"]}), Caps::ALL);
        let reach = |text, kind| scope.reach(&NotePath::parse(text).unwrap(), kind);
        assert_eq!(reach("/notes/link", Kind::Other), Caps::NONE);
        assert_eq!(reach("/notes/.git", Kind::Dir), Caps::NONE);
        assert_eq!(reach("/notes/.envrc", Kind::File), Caps { read: true, ..Caps::NONE });
        assert_eq!(reach("/notes/a", Kind::File), Caps { create: false, ..Caps::ALL });
    }

    #[test]
    fn what_a_last_wildcard_ranges_over_is_listed_if_it_is_a_folder_and_else_not_reached() {
        let scope = scope(json!({"folders": ["/notes/*"]}), Caps::ALL);
        let reach = |kind| scope.reach(&NotePath::parse("/notes").unwrap(), kind);
        assert!(reach(Kind::Dir).read);
        assert_eq!(reach(Kind::File), Caps::NONE);
    }

    #[test]
    fn an_entry_that_narrows_its_operations_narrows_the_reach() {
        let entries = json!({"folders": [{"path": "/notes", "operations": ["read"]}, {"path": "/notes/own", "operations": ["write"]}]});
        let scope = scope(entries, Caps::ALL);
        let reach = |text| scope.reach(&NotePath::parse(text).unwrap(), Kind::File);
        assert_eq!(reach("/notes/a.md"), Caps { read: true, ..Caps::NONE });
        assert_eq!(reach("/notes/own/a.md"), Caps { read: true, write: true, ..Caps::NONE });
    }

    #[test]
    fn a_folder_may_hold_something_if_it_is_granted_or_on_the_way_to_what_is() {
        let scope = scope(json!({"folders": ["/open", "/a/*/notes", "/b/**/x.md", "/.github/flows"]}), Caps::ALL);
        let holds = |text| scope.may_hold(&NotePath::parse(text).unwrap());
        for yes in ["/", "/open", "/open/sub", "/a", "/a/b", "/a/b/notes", "/b", "/b/c/d", "/.github", "/.github/flows"]
        {
            assert!(holds(yes), "{yes}");
        }
        for no in
            ["/openly", "/secret", "/open/.hidden", "/open/.git", "/a/b/c", "/a/.b", "/b/.c", "/.github/x", "/.ssh"]
        {
            assert!(!holds(no), "{no}");
        }
    }

    fn patterns() -> impl Strategy<Value = serde_json::Value> {
        let texts = ["/", "/a", "/a/*", "/a/**/c.md", "/a/*.md", "/a/.env", "b", "/.git", "/a/.envrc", "/[ab]/?"];
        let one = (proptest::sample::select(texts.to_vec()), any::<Option<u8>>()).prop_map(|(text, bits)| match bits {
            None => json!(text),
            Some(bits) => {
                let names = ["read", "write", "create", "delete", "execute"];
                let listed: Vec<_> =
                    names.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, n)| n).collect();
                json!({"path": text, "operations": listed})
            }
        });
        (proptest::collection::vec(one, 0..4), any::<bool>()).prop_map(|(folders, typed)| match typed {
            true => json!({"folders": folders, "file_types": ["*.md"]}),
            false => json!({"folders": folders}),
        })
    }

    proptest! {
        #[test]
        fn the_preview_says_what_the_check_says(
            spec in patterns(),
            parts in proptest::collection::vec(proptest::sample::select(vec!["a", "b", "c.md", ".env", ".envrc", ".git", "x.txt"]), 0..4),
            folder in any::<bool>(), bits in any::<u8>(),
        ) {
            let caps: Caps = Operation::ALL.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, o)| o).collect();
            let scope = scope(spec, caps);
            let path = NotePath::parse(&format!("/{}", parts.join("/"))).unwrap();
            let kind = if folder || path.is_root() { Kind::Dir } else { Kind::File };
            let may = |action| scope.check(action, &path, kind, true).is_ok();
            let reach = scope.reach(&path, kind);
            if may(Action::Read) || may(Action::List) {
                let mut above = path.clone();
                while let Some(folder) = above.parent() {
                    prop_assert!(scope.may_hold(&folder), "{} is on the way to {}", folder, path);
                    above = folder;
                }
            }
            if kind == Kind::Dir {
                prop_assert_eq!(reach.read, may(Action::List));
                prop_assert!(!reach.write && !reach.delete && !reach.execute);
                let new = |name: &&str| path.child(name).is_ok_and(|new| scope.check(Action::Create, &new, Kind::Dir, false).is_ok());
                prop_assert_eq!(reach.create, NEW_NAMES.iter().any(new));
            } else {
                let expected = Caps {
                    read: may(Action::Read), write: may(Action::Write), create: false,
                    delete: may(Action::Delete), execute: may(Action::Execute),
                };
                prop_assert_eq!(reach, expected);
            }
        }
    }
}
