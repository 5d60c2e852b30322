//! Agents are switched on and off, changed in an editor and taken away, here and at a server.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::api::client::Server;
use crate::house::{Done, House};

/// An editor that does this to every file.
fn editor(house: &House, change: &str) -> PathBuf {
    let editor = house.path().join("editor");
    std::fs::write(&editor, format!("#!/bin/sh\nsed -i '{change}' \"$1\"\n")).unwrap();
    assert!(Command::new("chmod").arg("+x").arg(&editor).status().unwrap().success());
    editor
}

fn edit(house: &House, editor: &Path) -> Done {
    Done::of(house.command(&["agents", "edit", "helper", "--yes"]).env("EDITOR", editor))
}

/// All of it, in one place.
fn tend(house: &House) {
    let well = |arguments: &[&str]| {
        let done = house.adjutant(arguments);
        assert_eq!(done.code, Some(0), "{done}");
        done
    };
    well(&["agents", "new", "helper", "--yes"]);
    assert_eq!(well(&["agents", "disable", "helper"]).out.trim(), "✔ helper is switched off");
    let off = house.adjutant(&["run", "helper", "hello"]);
    assert_eq!(off.code, Some(1), "{off}");
    assert!(off.err.contains("agents enable"), "{off}");
    well(&["agents", "disable", "helper"]);
    well(&["agents", "enable", "helper"]);
    assert_eq!(house.document(&["agents", "show", "helper"])["version"], 3, "twice is once");
    let wider = editor(house, "s/^slug: .*/&\\nmax_turns: 7/");
    let edited = edit(house, &wider);
    assert_eq!(edited.code, Some(0), "{edited}");
    assert!(edited.out.contains("✔ helper is saved"), "{edited}");
    assert_eq!(house.document(&["agents", "show", "helper"])["max_turns"], 7);
    assert!(edit(house, &editor(house, "s/^x//")).out.contains("stays as it was"));
    let broken = edit(house, &editor(house, "s/^max_turns/max_turnz/"));
    assert_eq!(broken.code, Some(2), "{broken}");
    let other = edit(house, &editor(house, "s/^slug: .*/slug: other/"));
    assert_eq!(other.code, Some(2), "{other}");
    let shown = house.document(&["agents", "show", "helper"]);
    assert_eq!((&shown["max_turns"], &shown["version"]), (&7.into(), &4.into()));
    let asked = house.adjutant(&["agents", "rm", "helper"]);
    assert_eq!(asked.code, Some(2), "nobody can be asked: {asked}");
    well(&["agents", "rm", "helper", "--yes"]);
    assert_eq!(house.adjutant(&["agents", "show", "helper"]).code, Some(1));
}

#[test]
fn an_agent_is_tended_without_a_server() {
    tend(&House::new());
}

#[test]
fn an_agent_is_tended_at_a_server() {
    let server = Server::start(House::new());
    tend(&server.house);
}

#[test]
fn an_agent_that_has_a_file_is_tended_with_it() {
    let house = House::new();
    let file = house.path().join("helper.md");
    let text = "---\nname: Helper\n# Why it reads only: ask Ada.\nmodel: default\n---\nYou help.\n";
    std::fs::write(&file, text).unwrap();
    assert_eq!(house.adjutant(&["agents", "import", file.to_str().unwrap(), "--yes"]).code, Some(0));
    let kept = house.data().join("agents/helper.md");
    let refused = house.adjutant(&["agents", "disable", "helper"]);
    assert_eq!(refused.code, Some(2), "the file would switch it on again: {refused}");
    assert!(refused.err.contains("is_active: false") && refused.err.contains("agents edit helper"), "{refused}");
    let off = edit(&house, &editor(&house, "s/^model: .*/&\\nis_active: false/"));
    assert_eq!(off.code, Some(0), "{off}");
    assert!(std::fs::read_to_string(&kept).unwrap().contains("ask Ada"), "what its author wrote is kept");
    let shown = house.document(&["agents", "show", "helper"]);
    assert_eq!((&shown["is_active"], &shown["version"]), (&false.into(), &2.into()));
    assert_eq!(house.adjutant(&["agents", "rm", "helper", "--yes"]).code, Some(0));
    assert!(!kept.exists());
    assert_eq!(house.adjutant(&["agents", "show", "helper"]).code, Some(1), "the next start does not bring it back");
}

#[test]
fn the_file_of_an_agent_stays_where_its_namesake_of_another_workspace_is_tended() {
    let house = House::new();
    let file = house.path().join("helper.md");
    std::fs::write(&file, "---\nname: Helper\n---\nYou help.\n").unwrap();
    assert_eq!(house.adjutant(&["agents", "import", file.to_str().unwrap(), "--yes"]).code, Some(0));
    let server = Server::start(house);
    let owner = server.owner();
    owner.post("/api/v1/workspaces", json!({"name": "Lab"})).expect(201);
    owner.post("/api/v1/agents", json!({"workspace_id": "lab", "name": "Helper"})).expect(201);
    let at_lab = |arguments: &[&str]| {
        let done = server.house.adjutant(&[&["-w", "lab"], arguments].concat());
        assert_eq!(done.code, Some(0), "{done}");
    };
    at_lab(&["agents", "disable", "helper"]);
    at_lab(&["agents", "rm", "helper", "--yes"]);
    assert!(server.house.data().join("agents/helper.md").exists());
    assert_eq!(server.house.document(&["-w", "home", "agents", "show", "helper"])["is_active"], true);
}
