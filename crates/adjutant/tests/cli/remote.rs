//! The command line as a client: while a server has the data directory, commands go there and come out the same.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use crate::api::client::{Client, OWNER, Server};
use crate::house::{Done, House, signal, text};

/// A house without data of its own that knows where a server is.
fn away(server: &Server, arguments: &[&str], token: Option<&str>) -> Done {
    let elsewhere = House::new();
    let mut command = elsewhere.command(arguments);
    command.env("ADJUTANT_URL", format!("http://{}", server.address));
    command.envs(token.map(|token| ("ADJUTANT_TOKEN", token)));
    Done::of(&mut command)
}

#[test]
fn a_run_is_started_asked_about_approved_and_watched_at_the_server() {
    let server = Server::start(House::new());
    let house = &server.house;
    let asked = house.adjutant(&["run", "tidy the welcome notes", "--json", "--approve", "fail"]);
    assert_eq!(asked.code, Some(5), "{asked}");
    let events = asked.events();
    let question = events.iter().find(|event| event["event"] == "approval_required").unwrap();
    let (run, approval) = (text(&question["data"]["run_id"]), text(&question["data"]["approval_id"]));

    let inbox = house.document(&["inbox"]);
    assert_eq!(inbox["data"][0]["id"].as_str(), Some(approval.as_str()));
    let shown = house.adjutant(&["inbox", "show", &approval[..16]]);
    assert!(
        shown.code == Some(0) && shown.out.contains("--- /") && shown.out.contains(&house.hint("inbox approve")),
        "{shown}"
    );
    let before = std::fs::read_to_string(house.note("todo.md")).unwrap();
    let decided = house.document(&["inbox", "approve", &approval, "--for", "chat"]);
    assert_eq!(decided["data"][0]["decision"], "approve");
    let rule = house.document(&["rules"])["data"][0].clone();
    for field in ["id", "says", "expires_at"] {
        assert_eq!(decided["data"][0]["rule"][field], rule[field], "{decided}");
    }

    let watched = house.adjutant(&["runs", "watch", &run]);
    assert_eq!(watched.code, Some(0), "{watched}");
    assert!(watched.err.contains("✔ approved") && watched.err.contains("✔ Done in"), "{watched}");
    assert_ne!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before);
    assert_eq!(house.document(&["runs", "ls"])["data"][0]["status"], "COMPLETED");
    assert_eq!(house.document(&["runs", "show", &run[..16]])["status"], "COMPLETED");
    assert_eq!(house.document(&["inbox"])["data"], json!([]));
    let agents = house.adjutant(&["agents", "show", "guide"]);
    assert!(agents.code == Some(0) && agents.out.contains("may"), "{agents}");
}

#[test]
fn a_run_prints_the_same_events_at_the_server_as_without_one() {
    let names = |done: &Done| done.events().iter().map(|event| text(&event["event"])).collect::<Vec<_>>();
    let alone = House::new().adjutant(&["run", "what files are here", "--json"]);
    let server = Server::start(House::new());
    let there = server.house.adjutant(&["run", "what files are here", "--json"]);
    assert_eq!((alone.code, there.code), (Some(0), Some(0)), "{there}");
    assert_eq!(names(&there), names(&alone));
    let answer = server.house.adjutant(&["run", "what files are here"]);
    assert!(answer.out.starts_with("There are 6 files here:"), "{answer}");
}

#[test]
fn whoever_leaves_a_run_at_the_server_lets_it_go_on_there() {
    let house = House::new();
    house.script("- text: too late\n  delay_ms: 600000\n");
    let server = Server::start(house);
    let mut command = server.house.command(&["run", "hello"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    signal("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let run = first.split(' ').next().unwrap().to_owned();
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains(&server.house.hint(&format!("runs cancel {run}")))), "{rest:?}");
    assert_eq!(server.house.document(&["runs", "show", &run])["status"], "RUNNING");
    assert_eq!(server.house.document(&["runs", "cancel", &run])["status"], "CANCELLED");
}

#[test]
fn whoever_watches_a_run_outlasts_a_server_that_starts_again() {
    let house = House::new();
    house.script("- text: too late\n  delay_ms: 600000\n");
    let server = Server::start(house);
    let (elsewhere, address) = (House::new(), server.address.clone());
    let mut command = elsewhere.command(&["run", "hello"]);
    command.env("ADJUTANT_URL", format!("http://{address}")).env("ADJUTANT_TOKEN", OWNER);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let (house, _) = server.stop();
    house.script("- text: In time.\n");
    let server = Server::start_at(house, &address, &[("ADJUTANT_BOOTSTRAP_TOKEN", OWNER)]);
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!((child.wait().unwrap().code(), said.trim()), (Some(0), "In time."), "{first} {rest:?}");
    drop(server);
}

#[test]
fn another_machine_needs_a_token_and_keeps_it_for_nobody_else_to_read() {
    let server = Server::start(House::new());
    let nobody = away(&server, &["runs", "ls"], None);
    assert!(nobody.code == Some(4) && nobody.err.contains(" login http"), "{nobody}");
    assert_eq!(away(&server, &["runs", "ls"], Some("adj_wrong")).code, Some(4));
    assert_eq!(away(&server, &["run", "what files are here"], Some(OWNER)).code, Some(0));

    let elsewhere = House::new();
    let url = format!("http://{}", server.address);
    let mut command = elsewhere.command(&["login", &url]);
    let login = Done::with_input(&mut command, &format!("{OWNER}\n"));
    assert_eq!(login.code, Some(0), "{login}");
    assert!(!login.out.contains(OWNER) && !login.err.contains(OWNER));
    let listed = elsewhere.adjutant(&["runs", "ls", "--url", &url]);
    assert!(listed.code == Some(0) && listed.out.contains("COMPLETED"), "{listed}");
    let kept: Vec<_> = std::fs::read_dir(elsewhere.path().join(".config/adjutant"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    assert_eq!(kept, [0o600]);
    drop(server);
    let gone = elsewhere.adjutant(&["runs", "ls", "--url", &url]);
    assert!(gone.code == Some(8) && gone.err.contains("cannot be reached"), "{gone}");
}

#[test]
fn what_a_run_did_is_checked_exported_and_taken_back_at_the_server() {
    let server = Server::start(House::new());
    let house = &server.house;
    let before = std::fs::read_to_string(house.note("todo.md")).unwrap();
    let (run, approval) = house.asked();
    assert_eq!(house.adjutant(&["inbox", "approve", &approval]).code, Some(0));
    assert_eq!(house.adjutant(&["runs", "watch", &run]).code, Some(0));
    assert_eq!(house.document(&["runs", "replay", &run])["divergences"], json!([]));
    let file = house.path().join("run.jsonl");
    let exported = house.adjutant(&["runs", "export", &run, "-o", file.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{exported}");
    assert_eq!(house.adjutant(&["audit", "verify", file.to_str().unwrap()]).code, Some(0));
    assert_ne!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before);
    let undone = house.adjutant(&["runs", "undo", &run]);
    assert!(undone.code == Some(0) && undone.out.contains("± /todo.md"), "{undone}");
    assert_eq!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before);
}

#[test]
fn rules_are_written_and_taken_away_at_the_server() {
    let server = Server::start(House::new());
    let house = &server.house;
    let rule = house.document(&["rules", "add", "deny", "write_file", "--agent", "guide", "--in", "/"]);
    let refused = house.adjutant(&["run", "tidy the welcome notes", "--json", "--approve", "fail"]);
    assert!(refused.events().iter().any(|event| event["event"] == "denied"), "{refused}");
    assert!(house.adjutant(&["rules"]).out.contains("guide"));
    assert_eq!(house.adjutant(&["rules", "rm", rule["id"].as_str().unwrap()]).code, Some(0));
    assert_eq!(house.document(&["rules"])["data"], json!([]));
}

#[test]
fn a_workspace_is_renamed_and_its_words_filtered_from_the_command_line() {
    let server = Server::start(House::new());
    let house = &server.house;
    let filter = house.path().join("filter.json");
    std::fs::write(&filter, r#"[{"pattern": "(?i)merger", "points": ["prompt"], "action": "block"}]"#).unwrap();
    let set =
        house.adjutant(&["ws", "set", "home", "--name", "Our home", "--content-filter", filter.to_str().unwrap()]);
    assert!(set.out.contains("Our home") && set.out.contains("block /(?i)merger/ in prompt"), "{}", set.out);
    assert_eq!(house.document(&["ws", "show", "home"])["name"], "Our home");
    let blocked = house.adjutant(&["run", "tell me of the merger"]);
    assert_ne!(blocked.code, Some(0), "{}", blocked.out);
    assert_eq!(house.adjutant(&["ws", "set", "home", "--content-filter", "nowhere.json"]).code, Some(2));
}

#[test]
fn a_token_that_was_made_here_opens_the_server_until_it_is_taken_away() {
    let server = Server::start(House::new());
    let house = &server.house;
    let made = house.document(&["tokens", "new", "for scripts", "--scope", "read", "--expires-in", "7d"]);
    let secret = text(&made["token"]);
    assert_eq!(away(&server, &["runs", "ls"], Some(&secret)).code, Some(0));
    assert_eq!(away(&server, &["run", "hello"], Some(&secret)).code, Some(4), "it may only read");
    let listed = house.adjutant(&["tokens", "ls"]);
    assert!(listed.out.contains("for scripts") && !listed.out.contains(&secret), "{listed}");
    assert_eq!(house.adjutant(&["tokens", "rm", made["id"].as_str().unwrap()]).code, Some(0));
    assert_eq!(away(&server, &["runs", "ls"], Some(&secret)).code, Some(4));

    let invited = house.adjutant(&["users", "invite", "home", "read"]);
    assert!(invited.out.starts_with(&format!("http://{}/login#invite=", server.address)), "{invited}");
    assert!(house.adjutant(&["ws", "ls"]).out.contains("home"));
    let alone = House::new().adjutant(&["users", "ls"]);
    assert!(alone.code == Some(8) && alone.err.contains(" serve starts one"), "{alone}");
}

#[test]
fn whoever_watches_the_inbox_sees_what_comes() {
    let server = Server::start(House::new());
    let mut command = server.house.command(&["inbox", "watch"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (_, approval) = server.house.asked();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("write_file /todo.md") && line.contains(&approval[..16]), "{line}");
    signal("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn what_an_agent_may_do_and_what_happened_comes_out_the_same_at_the_server() {
    let house = House::new();
    house.asked();
    std::fs::write(house.path().join("draft.md"), "---\nname: Guide\ntools: read_file\n---\nBe careful.\n").unwrap();
    let draft = house.path().join("draft.md");
    let draft = draft.to_str().unwrap();
    let commands: [&[&str]; 6] = [
        &["agents", "can", "guide", "write", "/todo.md"],
        &["agents", "reach", "guide"],
        &["agents", "templates"],
        &["agents", "resync", "--dry-run"],
        &["backtest", "--agent", "guide", "--draft", draft],
        &["audit", "search", "tool:write_file"],
    ];
    let alone: Vec<_> = commands.iter().map(|command| house.adjutant(command)).collect();
    let server = Server::start(house);
    for (command, alone) in commands.iter().zip(alone) {
        let there = server.house.adjutant(command);
        assert_eq!((there.code, &there.out), (alone.code, &alone.out), "{command:?} {there}");
        assert_eq!(alone.code, Some(0), "{command:?} {alone}");
    }
    let verified = server.house.document(&["audit", "verify"]);
    assert_eq!(verified["valid"], true);
    let exported = server.house.adjutant(&["audit", "export", "kind:run_started"]);
    assert!(exported.code == Some(0) && exported.out.contains("\"run_started\""), "{exported}");
    assert_eq!(server.house.adjutant(&["audit", "export", "--whole"]).code, Some(1));
}

#[test]
fn the_stop_switch_is_turned_with_and_without_a_server() {
    let house = House::new();
    assert_eq!(house.document(&["halt", "on", "--reason", "over night"])["is_halted"], true);
    let refused = house.adjutant(&["run", "hello"]);
    assert!(refused.code == Some(1) && refused.err.contains("over night"), "{refused}");
    let server = Server::start(house);
    let house = &server.house;
    assert_eq!(house.document(&["halt"])["reason"], "over night");
    assert_eq!(house.document(&["halt", "off"])["is_halted"], false);
    assert_eq!(house.adjutant(&["run", "hello"]).code, Some(0));
    assert_eq!(house.document(&["halt", "on", "--workspace", "home"])["is_halted"], true);
    assert_eq!(house.document(&["halt"])["is_halted"], false);
    assert_eq!(house.adjutant(&["run", "hello"]).code, Some(1));
    assert_eq!(house.adjutant(&["halt", "show", "--workspace", "nowhere"]).code, Some(1));
}

#[test]
fn a_folder_of_ones_own_becomes_a_notebook_with_and_without_a_server() {
    let house = House::new();
    let (notes, more) = (house.path().join("my notes"), house.path().join("more"));
    for folder in [&notes, &more] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("todo.md"), "- buy mlik\n").unwrap();
    }
    let linked = house.document(&["ws", "add", notes.to_str().unwrap()]);
    assert_eq!((text(&linked["slug"]), text(&linked["kind"])), ("my-notes".to_owned(), "linked".to_owned()));
    let refused = house.adjutant(&["ws", "add", house.data().to_str().unwrap()]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("what Adjutant itself keeps"), "{refused}");
    let settings = house.path().join(".config/adjutant");
    house.configure("default_model = \"demo/guide\"\n");
    assert_eq!(house.adjutant(&["ws", "add", settings.to_str().unwrap()]).code, Some(2), "its settings are its own");
    let done = house.adjutant(&["run", "what files are here", "--notebook", "my-notes"]);
    assert!(done.code == Some(0) && done.err.contains("list_files") && done.out.contains("todo.md"), "{done}");

    let server = Server::start(house);
    let house = &server.house;
    let said = house.adjutant(&["ws", "add", more.to_str().unwrap(), "--slug", "second", "--workspace", "home"]);
    assert!(said.code == Some(0) && said.out.contains("✔ linked: second"), "{said}");
    let listed = house.adjutant(&["ws", "notebooks"]);
    for words in ["welcome", "managed", "my-notes", "second", more.to_str().unwrap()] {
        assert!(listed.out.contains(words), "{words}: {listed}");
    }
    let again = house.adjutant(&["ws", "add", more.to_str().unwrap()]);
    assert!(again.code == Some(1) && again.err.contains("already"), "{again}");
    let record = house.adjutant(&["audit", "search", "--json"]);
    assert!(record.out.contains("notebook `second` linked to"), "{record}");
}

#[test]
fn a_command_is_about_the_workspace_that_it_names_with_and_without_a_server() {
    let server = Server::start(House::new());
    let house = &server.house;
    assert_eq!(house.adjutant(&["ws", "new", "Lab"]).code, Some(0));
    let rule = ["rules", "add", "deny", "delete_file"];
    for ambiguous in [&rule[..], &["audit", "search"], &["usage"], &["run", "guide", "hello"]] {
        let refused = house.adjutant(ambiguous);
        assert_eq!(refused.code, Some(2), "{ambiguous:?}: {refused}");
        assert!(refused.err.contains("hint: --workspace NAME") && !refused.err.contains("/api/"), "{refused}");
    }
    let within = |house: &House| {
        let id = |name: &str| text(&house.document(&["agents", "show", "guide", "--workspace", name])["id"]);
        assert_ne!(id("home"), id("lab"));
        let ran = house.adjutant(&["run", "guide", "hello", "-w", "lab"]);
        assert_eq!(ran.code, Some(0), "{ran}");
        let runs = |name: &str| house.document(&["-w", name, "runs", "ls"])["data"].as_array().unwrap().len();
        assert_eq!(runs("home"), 0);
        for command in [&["audit", "search"][..], &["usage"], &["inbox"], &["keys"], &["budgets"], &rule] {
            let done = house.adjutant(&[command, &["-w", "lab"]].concat());
            assert_eq!(done.code, Some(0), "{command:?}: {done}");
        }
        let rules = |name: &str| house.document(&["rules", "ls", "-w", name])["data"].as_array().unwrap().len();
        assert_eq!(rules("home"), 0);
        let nowhere = house.adjutant(&["runs", "ls", "-w", "nowhere"]);
        assert!(nowhere.code == Some(1) && nowhere.err.contains("no workspace `nowhere`"), "{nowhere}");
        (runs("lab"), rules("lab"))
    };
    assert_eq!(within(house), (1, 1));
    let (house, _) = server.stop();
    assert_eq!(within(&house), (2, 2));
}

#[test]
fn what_to_do_next_is_a_command_at_a_server_and_without_one() {
    let house = House::new();
    assert_eq!(house.adjutant(&["halt", "on", "--reason", "fire drill"]).code, Some(0));
    let hints = |house: &House| {
        let held = house.adjutant(&["run", "hello"]);
        assert!(held.err.contains(&house.hint("halt off")) && !held.err.contains("/api/v1"), "{held}");
        let nobody = house.adjutant(&["agents", "show", "nobody"]);
        assert!(nobody.err.contains(&format!("hint: {}", house.hint("agents ls"))), "{nobody}");
        let day = house.adjutant(&["usage", "--from", "tomorrow"]);
        assert_eq!(day.code, Some(2), "{day}");
        assert!(day.err.contains("--from: `tomorrow` is neither a day"), "{day}");
    };
    hints(&house);
    let server = Server::start(house);
    hints(&server.house);
    let stranger = away(&server, &["runs", "ls"], Some("adj_wrong"));
    assert_eq!(stranger.code, Some(4), "{stranger}");
    assert!(stranger.err.contains(" login URL") && !stranger.err.contains("Authorization"), "{stranger}");
}

#[test]
fn others_are_let_near_an_agent_and_kept_away_again() {
    let server = Server::start(House::new());
    let kim = server.person("kim", "home", "write");
    let named = server.house.adjutant(&["agents", "approvers", "guide", "kim"]);
    assert!(named.code == Some(0) && named.out.contains("what guide asks may be decided by kim, too"), "{named}");
    let asked = server.house.adjutant(&["run", "tidy the welcome notes", "--json", "--approve", "fail"]);
    let question = asked.events().pop().unwrap();
    let path = format!("/api/v1/approvals/{}/decision", text(&question["data"]["approval_id"]));
    kim.post(&path, json!({"decision": "reject"})).expect(200);
    let (house, _) = server.stop();
    assert_eq!(house.document(&["agents", "show", "guide"])["approvers"].as_array().unwrap().len(), 1);
    assert_eq!(house.document(&["agents", "approvers", "guide", "kim", "--remove"])["approvers"], json!([]));
    assert_eq!(house.document(&["agents", "share", "guide", "kim"])["shared_with"].as_array().unwrap().len(), 1);
    let nobody = house.adjutant(&["agents", "share", "guide", "zoe"]);
    assert!(nobody.code == Some(1) && nobody.err.contains("`zoe` is no member of the workspace"), "{nobody}");
}

/// A server that has gone: it says that it is there, and knows nobody. With the first request that it turns away, what it is
/// given happens.
fn gone(then: impl FnOnce() + Send + 'static) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut then = Some(then);
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let asked = head.next().unwrap_or_default();
            head.find(String::is_empty);
            let status = if asked.contains("/healthz") { "200 OK" } else { "401 Unauthorized" };
            if !asked.contains("/healthz") {
                then.take().into_iter().for_each(|then| then());
            }
            let body = "{}";
            let reply =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            std::io::Write::write_all(&mut stream, reply.as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn a_command_whose_server_started_again_meanwhile_goes_on_at_the_new_one() {
    let server = Server::start(House::new());
    let file = server.house.data().join("server.json");
    let (told, good) = (std::fs::read_to_string(&file).unwrap(), file.clone());
    let old = |address: &str| json!({"url": format!("http://{address}"), "pid": 1, "token": "adj_of-an-earlier-start"});
    let address = gone(move || std::fs::write(good, told).unwrap());
    std::fs::write(&file, old(&address).to_string()).unwrap();
    let started = server.house.document(&["run", "hello", "--detach"]);
    let listed = server.owner().get("/api/v1/runs").expect(200);
    assert_eq!(listed["data"][0]["id"], started["id"]);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "it was asked for once");

    let told = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, old(&gone(|| {})).to_string()).unwrap();
    let lost = server.house.adjutant(&["runs", "ls"]);
    assert!(lost.code == Some(4) && lost.err.contains("try once more"), "{lost}");
    std::fs::write(&file, told).unwrap();
}

/// The token of somebody who may do there what their role lets them.
fn token(person: &Client) -> String {
    let scopes = ["read", "run", "write", "approvals:decide"];
    text(&person.post("/api/v1/tokens", json!({"name": "theirs", "scopes": scopes})).expect(201)["token"])
}

#[test]
fn a_named_approver_decides_all_that_they_name_in_one_command() {
    let server = Server::start(House::new());
    let (lee, kim) = (server.person("lee", "home", "write"), server.person("kim", "home", "write"));
    let mut mine = server.owner().get("/api/v1/agents/guide").expect(200);
    (mine["name"], mine["slug"], mine["owner"]) = (json!("Mine"), json!("mine"), json!("user"));
    mine["approvers"] = json!(["kim"]);
    lee.post("/api/v1/agents", mine).expect(201);
    let asked = || {
        let body = json!({"agent_id": "mine", "input": "tidy the welcome notes"});
        text(&lee.post("/api/v1/runs?wait=60", body).expect(200)["pending_approvals"][0])
    };
    let (first, second, third) = (asked(), asked(), asked());
    let kims = token(&kim);
    let done = away(&server, &["inbox", "reject", &first, &second], Some(&kims));
    assert_eq!(done.code, Some(0), "{done}");
    assert!(!done.err.contains("runs watch"), "they may not follow the run: {done}");
    let told = away(&server, &["inbox", "reject", &third, "--json"], Some(&kims));
    assert_eq!(told.code, Some(0), "{told}");
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["data"][0]["run_status"], json!(null));
    for id in [first, second, third] {
        assert_eq!(lee.get(&format!("/api/v1/approvals/{id}")).expect(200)["status"], "rejected");
    }
}

#[test]
fn whoever_may_write_makes_agents_of_their_own() {
    let server = Server::start(House::new());
    let kim = server.person("kim", "home", "write");
    let kims = token(&kim);
    let make = ["agents", "new", "Notes", "--from", "research", "--yes", "--json"];
    let refused = away(&server, &make, Some(&kims));
    assert_eq!(refused.code, Some(4), "those of the workspace are for admins: {refused}");
    let made = away(&server, &[&make[..], &["--own"]].concat(), Some(&kims));
    assert_eq!(made.code, Some(0), "{made}");
    let file = server.house.path().join("mine.md");
    std::fs::write(&file, "---\nname: Mine\n---\nHelp.\n").unwrap();
    let import = ["agents", "import", file.to_str().unwrap(), "--yes"];
    assert_eq!(away(&server, &import, Some(&kims)).code, Some(4));
    let imported = away(&server, &[&import[..], &["--own"]].concat(), Some(&kims));
    assert_eq!(imported.code, Some(0), "{imported}");
    let id = kim.get("/api/v1/me").expect(200)["user_id"].clone();
    for slug in ["notes", "mine"] {
        let agent = kim.get(&format!("/api/v1/agents/{slug}")).expect(200);
        assert_eq!((&agent["owner"], &agent["owner_id"]), (&json!("user"), &id), "{agent}");
    }
    let (house, _) = server.stop();
    let here = house.adjutant(&[&import[..], &["--own"]].concat());
    assert!(here.code == Some(2) && here.err.contains("belongs to the workspace"), "{here}");
    let own = house.document(&["agents", "new", "Own", "--own", "--yes"]);
    assert_eq!(own["slug"], "own", "{own}");
}

#[test]
fn a_resync_tells_no_changes_of_agents_that_it_leaves_alone() {
    let server = Server::start(House::new());
    let lee = server.person("lee", "home", "write");
    lee.post("/api/v1/agents", json!({"name": "Writer", "can_read": true})).expect(201);
    let owner = server.owner().with("if-match", "*");
    owner.patch("/api/v1/agents/guide", json!({"can_write": false, "permission_level": "read"})).expect(200);
    let told = server.house.adjutant(&["agents", "resync", "--dry-run"]);
    assert!(told.code == Some(0) && told.out.contains("guide: "), "{told}");
    assert!(told.out.contains("writer") && !told.out.contains("writer: "), "{told}");
}

#[test]
fn what_a_scope_denies_ends_a_command_as_denied_here_and_at_a_server() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.post("/api/v1/workspaces/home/notebooks", json!({"slug": "diary"})).expect(201);
    let body = json!({"name": "Narrow", "owner": "workspace", "scope": {"notebooks": ["welcome"], "folders": ["/"]}});
    owner.post("/api/v1/agents", body).expect(201);
    let asked = ["run", "narrow", "hello", "--notebook", "diary"];
    let there = server.house.adjutant(&asked);
    let (house, _) = server.stop();
    let here = house.adjutant(&asked);
    assert_eq!((there.code, here.code), (Some(6), Some(6)), "{there} {here}");
    assert!(there.err.contains("does not name the notebook `diary`"), "{there}");
}
