//! A person at a terminal, played through the pseudo-terminal that `script` makes.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::house::{BINARY, Done, House, skip, text};

/// Types these lines at the terminal and hands back what was on the screen.
fn typed(house: &House, arguments: &str, lines: &str) -> Option<Done> {
    if Command::new("script").arg("--version").output().is_err() {
        skip("a question at the terminal", "there is no `script` command");
        return None;
    }
    let mut command = Command::new("script");
    house.prepare(&mut command);
    let line = format!("{BINARY} --data {} {arguments}", house.data().display());
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // What is typed ahead waits in the terminal until it is read; the end of the input comes only with the end of the program.
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(keys);
    let read = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    Some(Done { code: output.status.code(), out: read(output.stdout), err: read(output.stderr) })
}

#[test]
fn a_person_is_shown_the_change_and_asked() {
    let house = House::new();
    let Some(done) = typed(&house, "run 'tidy the welcome notes'", "what?\nd\ny\n") else { return };
    assert_eq!(done.code, Some(0), "{done}");
    let keys = "[y] once [r] this run [c] this chat [a] always [e] edit [n] no [f] no, because… [d] diff [q] stop";
    assert_eq!(done.out.matches(keys).count(), 3, "{done}");
    assert!(done.out.contains("Type one of the letters."), "{done}");
    assert!(done.out.contains("\u{1b}[31m-- [ ] buy mlik\u{1b}[0m"), "{done}");
    assert!(done.out.contains("\u{1b}[32m+- [ ] buy milk\u{1b}[0m"), "{done}");
    assert!(done.out.contains("✔ approved") && done.out.contains("1 file changed"), "{done}");
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy milk"));
}

#[test]
fn a_no_with_a_reason_reaches_the_agent() {
    let house = House::new();
    let Some(done) = typed(&house, "run 'tidy the welcome notes'", "f\nleave my list alone\n") else { return };
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.out.contains("because>") && done.out.contains("They said: leave my list alone"), "{done}");
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy mlik"));
}

#[test]
fn a_stop_ends_the_run_and_has_its_number() {
    let house = House::new();
    let Some(done) = typed(&house, "run 'tidy the welcome notes'", "q\n") else { return };
    assert_eq!(done.code, Some(6), "{done}");
    assert!(done.out.contains("■ Cancelled"), "{done}");
}

#[test]
fn a_change_that_is_too_long_to_show_is_not_approved_unseen() {
    let house = House::new();
    let long: String = (0..100).map(|number| format!("line {number}\\n")).collect();
    house.script(&format!(
        "- when: {{ turn: 1 }}\n  calls:\n    - {{ name: create_file, arguments: {{ path: /long.md, content: \"{long}\" }} }}\n- text: done\n"
    ));
    let Some(done) = typed(&house, "run 'make it long'", "y\ny\n") else { return };
    assert_eq!(done.code, Some(0), "{done}");
    assert!(
        done.out.contains("more lines; [d] shows all") && done.out.contains("There is more of it than was shown"),
        "{done}"
    );
    assert!(done.out.contains("+line 99"), "{done}");
    assert!(house.note("long.md").exists());
}

#[test]
fn an_editor_changes_what_runs() {
    let house = House::new();
    let editor = house.path().join("editor");
    std::fs::write(&editor, "#!/bin/sh\nsed -i 's/buy milk/buy oat milk/' \"$1\"\n").unwrap();
    let made_runnable = Command::new("chmod").arg("+x").arg(&editor).status().unwrap();
    assert!(made_runnable.success());
    let (run, approval) = house.asked();
    let edited = Done::of(house.command(&["inbox", "edit", &approval]).env("EDITOR", &editor));
    assert_eq!(edited.code, Some(0), "{edited}");
    house.adjutant(&["runs", "watch", &run]);
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy oat milk"));
}

#[test]
fn an_approval_at_a_terminal_is_taken_only_after_all_of_it_was_shown() {
    let house = House::new();
    let long: String = (0..100).map(|number| format!("line {number}\\n")).collect();
    house.script(&format!(
        "- when: {{ turn: 1 }}\n  calls:\n    - {{ name: create_file, arguments: {{ path: /long.md, content: \"{long}\" }} }}\n- text: done\n"
    ));
    let asked = house.adjutant(&["run", "make it long", "--json", "--approve", "fail"]).events().pop().unwrap();
    let (run, approval) = (text(&asked["data"]["run_id"]), text(&asked["data"]["approval_id"]));
    let approve = format!("inbox approve {approval}");
    let Some(left) = typed(&house, &approve, "\n") else { return };
    assert_eq!(left.code, Some(6), "{left}");
    for part in [
        "answering: “make it long”",
        "answers: approve, edit",
        "+line 99",
        "Approve it? [y/N]",
        "Nothing was recorded.",
    ] {
        assert!(left.out.contains(part), "{part}: {left}");
    }
    assert_eq!(house.document(&["inbox"])["data"][0]["status"], "pending");
    let Some(meant) = typed(&house, &approve, "y\n") else { return };
    assert!(meant.code == Some(0) && meant.out.contains("✔ approved"), "{meant}");
    assert_eq!(house.adjutant(&["runs", "watch", &run]).code, Some(0));
    assert!(house.note("long.md").exists());
}
