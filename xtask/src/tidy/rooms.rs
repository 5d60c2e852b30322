//! Which crate may depend on which: read from the manifests, compared with the one table below.

use anyhow::Context as _;

use super::files::TextFile;
use super::{Finding, Rule};

/// Arrows point one way: from the front door to the meaning, never back.
const ROOMS: [(&str, &[&str]); 6] = [
    ("core", &[]),
    ("store", &["core"]),
    ("models", &["core"]),
    ("tools", &["core"]),
    ("engine", &["store", "models", "tools", "core"]),
    ("adjutant", &["engine", "core"]),
];

pub(super) fn check(files: &[TextFile]) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files {
        let Some(room) = file.path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml")) else {
            continue;
        };
        let manifest: toml::Table = file.text.parse().with_context(|| format!("reading {}", file.path))?;
        findings.extend(check_room(room, &file.path, &manifest));
    }
    Ok(findings)
}

fn check_room(room: &str, path: &str, manifest: &toml::Table) -> Vec<Finding> {
    let finding = |rule, message| Finding { rule, path: path.to_owned(), line: None, message };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        let message = format!("`{room}` is not one of the rooms in xtask/src/tidy/rooms.rs");
        return vec![finding(Rule::Dependency, message)];
    };
    own_dependencies(manifest)
        .into_iter()
        // A crate names itself to switch on a feature for its own tests.
        .filter(|(_, wanted)| wanted != room && !allowed.contains(&wanted.as_str()))
        .map(|(rule, wanted)| finding(rule, format!("`{room}` may not depend on `{wanted}`")))
        .collect()
}

/// The rooms a manifest names, in every section that cargo reads them from.
fn own_dependencies(manifest: &toml::Table) -> Vec<(Rule, String)> {
    let for_targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let tables = std::iter::once(manifest).chain(for_targets.filter_map(|(_, table)| table.as_table()));
    let sections = [
        ("dependencies", Rule::Dependency),
        ("build-dependencies", Rule::Dependency),
        ("dev-dependencies", Rule::DevDependency),
    ];
    let mut found = Vec::new();
    for table in tables {
        for (section, rule) in sections {
            let names = table.get(section).and_then(toml::Value::as_table).into_iter().flatten();
            found.extend(names.filter_map(|(name, value)| Some((rule, room_of(name, value)?))));
        }
    }
    found
}

/// A renamed dependency keeps its real name under `package`.
fn room_of(name: &str, value: &toml::Value) -> Option<String> {
    let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
    match package.strip_prefix("adjutant-") {
        Some(room) => Some(room.to_owned()),
        None => (package == "adjutant").then(|| package.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(room: &str, manifest: &str) -> Vec<(Rule, String)> {
        let manifest = manifest.parse().unwrap();
        let path = format!("crates/{room}/Cargo.toml");
        check_room(room, &path, &manifest).into_iter().map(|f| (f.rule, f.message)).collect()
    }

    #[test]
    fn an_arrow_of_the_plan_is_fine() {
        assert_eq!(found("store", "[dependencies]\nadjutant-core.workspace = true\nsqlx = \"0.9\"\n"), []);
        assert_eq!(found("adjutant", "[dependencies]\nadjutant-engine = { path = \"../engine\" }\n"), []);
    }

    #[test]
    fn an_arrow_that_points_back_is_found_in_every_section() {
        let back = |rule| vec![(rule, "`core` may not depend on `store`".to_owned())];
        for section in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let manifest = format!("[{section}]\nadjutant-store.workspace = true\n");
            assert_eq!(found("core", &manifest), back(Rule::Dependency), "{section}");
        }
        let manifest = "[dev-dependencies]\nadjutant-store.workspace = true\n";
        assert_eq!(found("core", manifest), back(Rule::DevDependency));
    }

    #[test]
    fn a_crate_may_name_itself_for_its_tests() {
        let manifest = "[dev-dependencies]\nadjutant-store = { path = \".\", features = [\"testing\"] }\n";
        assert_eq!(found("store", manifest), []);
    }

    #[test]
    fn a_new_name_does_not_hide_a_dependency() {
        let manifest = "[dependencies]\nlog = { package = \"adjutant-store\", path = \"../store\" }\n";
        assert_eq!(found("adjutant", manifest).len(), 1);
    }

    #[test]
    fn a_seventh_room_needs_a_place_in_the_plan() {
        assert_eq!(found("cellar", "[dependencies]\n").len(), 1);
    }
}
