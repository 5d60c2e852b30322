//! What other programs rely on: documents, completions, settings, the version.

use crate::api::client::Server;
use crate::house::{BINARY, Done, House, text};

#[test]
fn the_version_is_one_line_or_one_document() {
    let house = House::new();
    assert_eq!(house.adjutant(&["version"]).out, format!("adjutant {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(house.document(&["version"])["version"], env!("CARGO_PKG_VERSION"));
    assert!(!house.data().exists());
}

#[test]
fn completions_whose_reader_goes_away_are_no_failure() {
    let house = House::new();
    let mut command = house.command(&["completions", "bash"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let done = command.stdout(writer).stderr(std::process::Stdio::piped()).output().unwrap();
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn completions_are_there_for_every_shell() {
    let house = House::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let done = house.adjutant(&["completions", shell]);
        assert_eq!(done.code, Some(0), "{done}");
        assert!(done.out.contains("adjutant") && done.out.contains("inbox"), "{shell}");
    }
}

#[test]
fn doctor_says_how_everything_is() {
    let house = House::new();
    house.asked();
    let report = house.document(&["doctor"]);
    assert_eq!(report["status"], "ok", "{report:#}");
    let state = |name: &str| {
        let rows = report["checks"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} is missing"))["state"].clone()
    };
    for (name, expected) in [
        ("data directory", "ok"),
        ("master key", "ok"),
        ("database", "ok"),
        ("sealing at rest", "enforced"),
        ("sandbox", "off"),
        ("notebook welcome", "ok"),
        ("file confinement", "enforced"),
        ("agents", "ok"),
        ("default model", "ok"),
        ("chains", "enforced"),
    ] {
        assert_eq!(state(name), expected, "{name}");
    }
    let rebuilt = house.adjutant(&["doctor", "--rebuild"]);
    assert_eq!(rebuilt.code, Some(0), "{rebuilt}");
    assert!(rebuilt.out.contains("the tables of 1 run were made again"), "{rebuilt}");
    let recorded = house.document(&["audit", "search", "kind:tables_rebuilt"]);
    assert_eq!(recorded["data"].as_array().map(Vec::len), Some(1), "{recorded:#}");
    assert_eq!(house.document(&["runs", "ls"])["data"][0]["status"], "WAITING_APPROVAL");
}

#[test]
fn a_process_takes_all_the_files_it_may_have_and_doctor_says_when_they_are_too_few() {
    let house = House::new();
    let mut shell = std::process::Command::new("sh");
    house.prepare(&mut shell);
    shell.args(["-c", "ulimit -S -n 256 && ulimit -H -n 4096 && exec \"$0\" --data \"$1\" doctor --json", BINARY]);
    let done = Done::of(shell.arg(house.data()).env("ADJUTANT_MAX_STREAMS", "3000"));
    let report: serde_json::Value = serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done}"));
    let rows = report["checks"].as_array().unwrap();
    let files = rows.iter().find(|row| row["name"] == "open files").unwrap();
    assert_eq!(files["state"], "degraded", "{files}");
    assert!(text(&files["detail"]).starts_with("4096 at the most; "), "it asked for what it may have: {files}");
}

#[test]
fn doctor_looks_at_every_workspace_and_makes_the_tables_of_all_again() {
    let server = Server::start(House::new());
    assert_eq!(server.house.adjutant(&["ws", "new", "Lab"]).code, Some(0));
    for name in ["home", "lab"] {
        assert_eq!(server.house.adjutant(&["run", "guide", "hello", "-w", name]).code, Some(0));
    }
    let (house, _) = server.stop();
    let rebuilt = house.adjutant(&["doctor", "--rebuild"]);
    assert_eq!(rebuilt.code, Some(0), "{rebuilt}");
    for said in ["the tables of 2 runs were made again", "agents (lab)", "2 newest runs verified"] {
        assert!(rebuilt.out.contains(said), "{said}: {rebuilt}");
    }
}

#[test]
fn a_server_that_is_told_to_be_faster_says_what_that_costs() {
    let durability = |server: &Server| {
        let checks = server.house.document(&["doctor"])["checks"].clone();
        let found = checks.as_array().unwrap().iter().find(|check| check["name"] == "durability").cloned();
        found.unwrap_or_else(|| panic!("{checks}"))["state"].clone()
    };
    assert_eq!(durability(&Server::start(House::new())), "enforced");
    let faster = Server::start_with(House::new(), &[("ADJUTANT_DURABILITY", "normal")]);
    assert_eq!(durability(&faster), "degraded");
    let refused = House::new().adjutant(&["serve", "--durability", "some", "--no-open"]);
    assert!(refused.code == Some(2) && refused.err.contains("full or normal"), "{refused}");
}

#[test]
fn doctor_asks_the_server_that_has_the_data() {
    let server = Server::start(House::new());
    let report = server.house.document(&["doctor"]);
    assert_eq!(report["status"], "ok", "{report:#}");
    let names: Vec<_> = report["checks"].as_array().unwrap().iter().map(|row| text(&row["name"])).collect();
    for name in ["server", "database", "sealing at rest", "notebook welcome"] {
        assert!(names.iter().any(|row| row == name), "{name}: {names:?}");
    }
    let rebuild = server.house.adjutant(&["doctor", "--rebuild"]);
    assert!(rebuild.code == Some(1) && rebuild.err.contains("the server http://"), "{rebuild}");
}

#[test]
fn settings_say_where_they_come_from_and_wrong_ones_what_is_wrong() {
    let house = House::new();
    house.script("- text: hi\n");
    let shown = house.adjutant(&["config", "show", "--origin"]);
    assert_eq!(shown.code, Some(0), "{shown}");
    assert!(shown.out.contains("config.toml:1") && shown.out.contains("command line"), "{shown}");
    let key = Done::of(house.command(&["doctor"]).env("OPENAI_API_KEY", "sk-very-secret"));
    assert!(key.out.contains("OPENAI_API_KEY") && key.out.contains("not stored · 64 calls at once"), "{key}");
    assert!(!key.out.contains("very-secret"), "{key}");
    std::fs::write(house.path().join(".config/adjutant/config.toml"), "encript = true\n").unwrap();
    let wrong = house.adjutant(&["runs", "ls"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.err.contains("config.toml:1: unknown key `encript`, did you mean `encrypt`?"), "{wrong}");
}

#[test]
fn a_noun_alone_lists_what_there_is() {
    let server = Server::start(House::new());
    for (noun, word) in [
        ("agents", "guide"),
        ("runs", "No runs yet."),
        ("config", "listen"),
        ("models", "default: "),
        ("tokens", "bootstrap"),
        ("users", "NAME"),
        ("ws", "home"),
    ] {
        let listed = server.house.adjutant(&[noun]);
        assert!(listed.code == Some(0) && listed.out.contains(word), "{noun}: {listed}");
    }
}

#[test]
fn a_wrong_command_line_is_two() {
    let house = House::new();
    for wrong in [
        &["bogus"][..],
        &["runs", "bogus"],
        &["run", "--approve", "maybe"],
        &["inbox", "approve"],
        &["run", "--timeout", "soon", "x"],
    ] {
        assert_eq!(house.adjutant(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn doctor_names_the_copies_that_an_upgrade_kept() {
    let house = House::new();
    house.document(&["runs", "ls"]);
    std::fs::write(house.data().join("adjutant.db.schema-1"), vec![0; 8192]).unwrap();
    let report = house.document(&["doctor"]);
    let mut checks = report["checks"].as_array().unwrap().iter();
    let kept = checks.find(|row| row["name"] == "copy adjutant.db.schema-1").unwrap_or_else(|| panic!("{report}"));
    assert_eq!(kept["state"], "degraded", "{kept}");
    assert!(text(&kept["detail"]).starts_with("8 KiB, as it was before an upgrade"), "{kept}");
}
