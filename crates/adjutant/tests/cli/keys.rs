//! Keys that people bring: used in one order, sent to one host, and found nowhere.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::api::client::Server;
use crate::api::traces::{Taken, watched};
use crate::house::{Done, House, text};

pub(crate) const CANARY: &str = "sk-canary-93b1f0c7a25e4d68";

/// A provider that refuses every key and says it back, as some do. Tells the heads of the requests it got.
fn provider() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut asked, mut piece) = (Vec::new(), [0; 4096]);
            while !asked.windows(4).any(|part| part == b"\r\n\r\n") {
                let read = stream.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..read]);
            }
            let asked = String::from_utf8_lossy(&asked).into_owned();
            let key = asked.split_once("Bearer ").map_or("none", |(_, rest)| rest.split("\r\n").next().unwrap());
            let body = json!({"error": {"message": format!("wrong key {key}")}}).to_string();
            let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close";
            let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            if tell.send(key.to_owned()).is_err() {
                return;
            }
        }
    });
    (address, heard)
}

/// A house whose provider `lab` is ours, and what the provider hears.
pub(crate) fn house() -> (House, Receiver<String>) {
    let (address, heard) = provider();
    let house = House::new();
    house.configure(&format!(
        "[providers.lab]\nkind = \"compatible\"\nbase_url = \"{address}\"\napi_key_env = \"LAB_KEY\"\n\
         input_usd = \"0\"\noutput_usd = \"0\"\n"
    ));
    (house, heard)
}

fn with_input(house: &House, arguments: &[&str], input: &str) -> Done {
    Done::with_input(&mut house.command(arguments), input)
}

pub(crate) fn kept(house: &House, arguments: &[&str], value: &str) -> Value {
    let done = with_input(house, &[&["keys", "add", "lab", "--json"], arguments].concat(), value);
    assert_eq!(done.code, Some(0), "{done}");
    serde_json::from_str(&done.out).unwrap()
}

/// A text as PostgreSQL prints it where it is kept as bytes.
fn in_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Every file below a folder that holds the bytes.
pub(crate) fn holding(folder: &Path, needle: &[u8], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding(&path, needle, found);
        } else if std::fs::read(&path).is_ok_and(|bytes| bytes.windows(needle.len()).any(|part| part == needle)) {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn the_agents_key_goes_before_the_persons_the_workspaces_and_the_operators() {
    let (house, heard) = house();
    let run = || {
        let mut command = house.command(&["run", "hello", "--model", "lab/some"]);
        let done = Done::of(command.env("LAB_KEY", "sk-of-the-operator"));
        assert_eq!(done.code, Some(3), "{done}");
        heard.recv().unwrap()
    };
    assert_eq!(run(), "sk-of-the-operator");
    kept(&house, &["--name", "ours"], "sk-of-the-workspace");
    assert_eq!(run(), "sk-of-the-workspace");
    let mine = kept(&house, &["--name", "mine", "--mine"], "sk-of-the-person");
    assert_eq!(run(), "sk-of-the-person");
    kept(&house, &["--name", "its", "--agent", "guide"], "sk-of-the-agent");
    assert_eq!(run(), "sk-of-the-agent");
    let used = house.document(&["usage", "--by", "key"]);
    let named = ["run", "hello", "--model", "lab/some", "--key", &text(&mine["id"])];
    assert_eq!(house.adjutant(&named).code, Some(3));
    assert_eq!(heard.recv().unwrap(), "sk-of-the-person", "the one that is named for the run goes before all");
    let gone = house.adjutant(&["run", "hello", "--model", "lab/some", "--key", "key_01m9xk2bzt4e0000000000000"]);
    assert!(gone.code != Some(0) && heard.try_recv().is_err(), "{gone}");
    assert_eq!(used["data"].as_array().unwrap().len(), 4, "{used:#}");
    assert_eq!(mine["owner"], "person");
}

#[test]
fn a_key_goes_to_no_host_it_is_not_for() {
    let (house, heard) = house();
    kept(&house, &["--host", "api.example.com"], CANARY);
    let failed = house.adjutant(&["run", "hello", "--model", "lab/some"]);
    assert_eq!(failed.code, Some(3), "{failed}");
    assert!(failed.err.contains("is not sent to 127.0.0.1") && !failed.err.contains(CANARY), "{failed}");
    assert!(heard.try_recv().is_err(), "nothing was sent");
}

#[test]
fn a_key_that_was_kept_is_used_and_found_nowhere() {
    let (house, heard) = house();
    let key = kept(&house, &["--name", "mine"], &format!("{CANARY}\n"));
    assert_eq!((&key["hint"], &key["hosts"][0]), (&json!(CANARY[CANARY.len() - 4..]), &json!("127.0.0.1")));
    let again = with_input(&house, &["keys", "add", "lab", "--name", "mine"], CANARY);
    assert_ne!(again.code, Some(0), "its name is taken");
    let failed = house.adjutant(&["--log", "trace", "run", "hello", "--model", "lab/some", "--json"]);
    assert_eq!((failed.code, heard.recv().unwrap()), (Some(3), CANARY.to_owned()), "{failed}");
    let run = text(&failed.events()[0]["data"]["run_id"]);
    assert_eq!(house.document(&["usage", "--by", "key"])["data"][0]["group"], key["id"]);
    let id = text(&key["id"]);
    let tested = house.adjutant(&["keys", "test", &id[..14], "--model", "lab/some", "--json"]);
    assert_eq!((tested.code, heard.recv().unwrap()), (Some(1), CANARY.to_owned()), "{tested}");
    assert_eq!(serde_json::from_str::<Value>(&tested.out).unwrap()["code"], "unauthorized");
    let mut said = vec![again, failed, tested];
    for arguments in [
        &["keys", "ls"][..],
        &["keys", "ls", "--json"],
        &["runs", "show", run.as_str(), "--events"],
        &["runs", "show", run.as_str(), "--json"],
        &["runs", "export", &run],
        &["audit", "search"],
        &["audit", "export"],
        &["doctor"],
        &["config", "show"],
    ] {
        said.push(house.adjutant(arguments));
    }
    for done in &said {
        assert!(!done.out.contains(CANARY) && !done.err.contains(CANARY), "{done}");
    }
    let mut found = Vec::new();
    holding(house.path(), CANARY.as_bytes(), &mut found);
    assert_eq!(found, Vec::<String>::new(), "nothing on the disk holds it");
    assert_eq!(with_input(&house, &["keys", "rotate", &id], "sk-another-0123456789").code, Some(0));
    assert_eq!(house.adjutant(&["run", "hello", "--model", "lab/some"]).code, Some(3));
    assert_eq!(heard.recv().unwrap(), "sk-another-0123456789");
    assert_eq!(house.adjutant(&["keys", "rm", &id]).code, Some(0));
    assert_eq!(house.document(&["keys"])["data"], json!([]));
}

#[test]
fn the_operators_key_too_is_taken_out_of_what_is_recorded() {
    let (house, _heard) = house();
    let config = house.path().join(".config/adjutant/config.toml");
    let lab = std::fs::read_to_string(&config).unwrap();
    std::fs::write(house.path().join("script.yaml"), "- text: Noted.\n").unwrap();
    house.configure(&format!("{lab}\n[providers.test]\nkind = \"scripted\"\nscript = \"../../script.yaml\"\n"));
    let mut command = house.command(&["run", &format!("never say {CANARY}"), "--model", "test/script", "--json"]);
    let done = Done::of(command.env("LAB_KEY", CANARY));
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.out.contains("never say [REDACTED:credential]") && !done.out.contains(CANARY), "{done}");
    let mut found = Vec::new();
    holding(house.path(), CANARY.as_bytes(), &mut found);
    assert_eq!(found, Vec::<String>::new(), "nothing on the disk holds it");
}

#[test]
fn a_key_kept_at_the_server_is_in_no_answer_metric_trace_export_or_log_of_it() {
    let (house, heard) = house();
    let (traced, collector) = Taken::listen();
    let server = watched(house, &collector);
    let (owner, writer) = (server.owner(), server.person("lee", "home", "write"));
    let key = kept(&server.house, &["--name", "ours"], CANARY);
    let run = server.house.adjutant(&["run", "hello", "--model", "lab/some", "--json"]);
    assert_eq!((run.code, heard.recv().unwrap()), (Some(3), CANARY.to_owned()), "{run}");
    let id = text(&run.events()[0]["data"]["run_id"]);
    let one = format!("/api/v1/provider-keys/{}", text(&key["id"]));
    let tested = owner.post(&format!("{one}/test"), json!({"model": "lab/some"}));
    assert_eq!((&tested.expect(200)["code"], heard.recv().unwrap()), (&json!("unauthorized"), CANARY.to_owned()));
    let mut said = vec![run.out, run.err, tested.text];
    let run = format!("/api/v1/runs/{id}");
    for path in [
        &run,
        &format!("{run}/events"),
        &format!("{run}/logs"),
        &format!("{run}/export"),
        &one,
        "/api/v1/provider-keys",
        "/api/v1/audit",
        "/api/v1/settings",
        "/api/v1/usage?group_by=key",
    ] {
        let reply = owner.get(path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        said.push(reply.text);
    }
    said.push(owner.get("/api/v1/audit/export?format=jsonl").text);
    said.push(owner.get("/metrics").text);
    assert_eq!(writer.get(&one).expect(200)["hint"], json!(CANARY[CANARY.len() - 4..]));
    writer.delete(&one).refuses(403, "forbidden");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).collect::<Vec<_>>(), ["1", "1", "bytes"], "no core is written or piped");
    let (house, log) = server.stop();
    said.push(log);
    assert!(said.iter().all(|text| !text.contains(CANARY)));
    let traces = traced.bodies();
    assert!(!traces.is_empty(), "something was traced");
    assert!(traces.iter().all(|sent| !sent.windows(CANARY.len()).any(|part| part == CANARY.as_bytes())));
    for table in house.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").lines() {
        let rows = house.sql(&format!("SELECT * FROM {table}"));
        assert!(!rows.contains(CANARY) && !rows.contains(&in_hex(CANARY)), "{table} holds it");
    }
    let mut found = Vec::new();
    holding(house.path(), CANARY.as_bytes(), &mut found);
    assert_eq!(found, Vec::<String>::new(), "nothing on the disk holds it");
}

/// Whether a program that dies in a folder leaves its memory there; why not, else.
fn cores_are_left_in(folder: &Path) -> Result<(), String> {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").map_err(|error| error.to_string())?;
    if pattern.starts_with(['|', '/']) {
        return Err(format!("core dumps go elsewhere here: {}", pattern.trim()));
    }
    std::fs::create_dir(folder).unwrap();
    let mut dying = Command::new("sh");
    dying.args(["-c", "ulimit -c unlimited && kill -ABRT $$"]).env("SECRET", CANARY).current_dir(folder);
    let died = dying.status().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    holding(folder, CANARY.as_bytes(), &mut found);
    std::fs::remove_dir_all(folder).unwrap();
    if found.is_empty() { Err(format!("a program that died left no core file: {died}")) } else { Ok(()) }
}

#[test]
fn a_server_that_crashes_leaves_no_key_behind() {
    let (mut house, heard) = house();
    if let Err(why) = cores_are_left_in(&house.path().join("dying")) {
        eprintln!("skipped: {why}");
        return;
    }
    kept(&house, &[], CANARY);
    // A violation of memory that somebody only sends is passed over once by the runtime, which looks for a stack that ran over.
    for fault in ["ABRT", "ILL"] {
        let server = Server::start_to_crash(house);
        let run = server.house.adjutant(&["run", "hello", "--model", "lab/some"]);
        assert_eq!((run.code, heard.recv().unwrap()), (Some(3), CANARY.to_owned()), "the server has held it: {run}");
        house = server.crash(fault);
        let mut found = Vec::new();
        holding(house.path(), CANARY.as_bytes(), &mut found);
        assert_eq!(found, Vec::<String>::new(), "nothing that is left after {fault} holds it");
    }
}

/// What may be spent with a key is said, holds, and is taken away again.
fn limited(house: &House, heard: &Receiver<String>) {
    let id = text(&kept(house, &["--mine"], "sk-with-a-budget-0123")["id"]);
    let set = house.document(&["budgets", "set", "--key", &id[..20], "--day", "0.000001"]);
    assert_eq!((&set["kind"], &set["day"]["limit_microusd"]), (&json!("key"), &json!(1)), "{set:#}");
    let listed = house.document(&["budgets"]);
    let lines = listed["data"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["kind"] == "key" && line["budget"]["day_usd"] == 0.000_001), "{listed:#}");
    let held = house.adjutant(&["run", "hello", "--model", "lab/some", "--approve", "fail"]);
    assert_eq!(held.code, Some(7), "{held}");
    assert!(heard.try_recv().is_err(), "the provider was called");
    assert_eq!(house.document(&["budgets", "rm", "--key", &id])["removed"], true);
    assert_eq!(house.adjutant(&["run", "hello", "--model", "lab/some"]).code, Some(3));
    assert_eq!(heard.recv().unwrap(), "sk-with-a-budget-0123");
    assert_eq!(house.adjutant(&["budgets", "set", "--key", "key_nobody", "--day", "1"]).code, Some(1));
    assert_eq!(house.adjutant(&["budgets", "rm", "--key", &id, "--person", "lee"]).code, Some(2));
}

fn priced() -> (House, Receiver<String>) {
    let (address, heard) = provider();
    let house = House::new();
    let prices = "input_usd = \"1\"\noutput_usd = \"1\"\n";
    house.configure(&format!("[providers.lab]\nkind = \"compatible\"\nbase_url = \"{address}\"\n{prices}"));
    (house, heard)
}

#[test]
fn a_test_of_a_key_is_recorded_and_stays_within_the_budget_of_the_key() {
    let (house, heard) = priced();
    let id = text(&kept(&house, &[], "sk-with-a-budget-0123")["id"]);
    let test = || house.adjutant(&["keys", "test", &id, "--model", "lab/some"]);
    assert_eq!(test().code, Some(1), "the provider says no");
    assert_eq!(heard.recv().unwrap(), "sk-with-a-budget-0123");
    let used = house.document(&["usage", "--by", "key"]);
    let line = &used["data"][0];
    assert_eq!((&line["group"], &line["calls"], &line["failed"]), (&json!(id), &json!(1), &json!(1)), "{used:#}");
    let record = house.document(&["audit", "search", "kind:key_test_ended"]);
    assert_eq!(record["data"].as_array().unwrap().len(), 1, "{record:#}");
    house.document(&["budgets", "set", "--key", &id, "--day", "0.000001"]);
    let refused = test();
    assert_eq!(refused.code, Some(7), "{refused}");
    assert!(refused.err.contains("The budget of the key for this day is used up"), "{refused}");
    assert!(heard.try_recv().is_err(), "the provider was called");
}

#[test]
fn a_budget_of_a_key_holds_its_runs() {
    let (house, heard) = priced();
    limited(&house, &heard);
}

#[test]
fn a_budget_of_a_key_holds_its_runs_at_the_server() {
    let (house, heard) = priced();
    let server = Server::start(house);
    limited(&server.house, &heard);
}

#[test]
fn a_provider_that_cannot_be_reached_costs_nothing() {
    let house = House::new();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let prices = "input_usd = \"1\"\noutput_usd = \"1\"\n";
    house.configure(&format!("[providers.lab]\nkind = \"compatible\"\nbase_url = \"http://{nobody}/v1\"\n{prices}"));
    assert_eq!(house.adjutant(&["run", "hello", "--model", "lab/some"]).code, Some(8));
    let used = house.document(&["usage", "--by", "model"]);
    assert!(used["data"][0]["calls"].as_u64().unwrap() >= 1, "{used:#}");
    assert_eq!(used["total_microusd"], 0, "{used:#}");
}

/// The master key of a house.
fn master(house: &House) -> String {
    std::fs::read_to_string(house.data().join("master.key")).unwrap()
}

/// Everything opens, the record is whole, and it says how often the master key was replaced.
fn assert_open(house: &House, replaced: usize) {
    assert_eq!(house.document(&["runs", "ls"])["data"].as_array().unwrap().len(), 1);
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
    let found = house.document(&["audit", "search", "kind:setting_changed"]);
    let told =
        found["data"].as_array().unwrap().iter().filter(|row| row.to_string().contains("master key was replaced"));
    assert_eq!(told.count(), replaced, "{found}");
}

#[test]
fn the_master_key_is_replaced_and_everything_opens_with_the_new_one_alone() {
    let house = House::new();
    house.asked();
    let old = master(&house);
    let done = house.document(&["keys", "rotate", "--master"]);
    assert_eq!(done["data_keys"], 2, "the instance's own, and the workspace's");
    assert_eq!(std::fs::read_to_string(text(&done["old_key"])).unwrap(), old, "backups of before need it");
    let new = master(&house);
    assert_ne!(new, old);
    assert_open(&house, 1);
    let with_old = Done::of(house.command(&["runs", "ls"]).env("ADJUTANT_SECRET_KEY", old.trim()));
    assert_eq!(with_old.code, Some(2), "{with_old}");
    assert!(with_old.err.contains("another master key"), "{with_old}");

    let own = |arguments: &[&str], key: &str| Done::of(house.command(arguments).env("ADJUTANT_SECRET_KEY", key.trim()));
    let refused = own(&["keys", "rotate", "--master"], &new);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("--to new.key"), "{refused}");
    let third = house.path().join("third.key");
    std::fs::write(&third, "5c".repeat(32)).unwrap();
    let done = own(&["keys", "rotate", "--master", "--to", third.to_str().unwrap()], &new);
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(own(&["runs", "ls"], &"5c".repeat(32)).code, Some(0));
    assert_eq!(own(&["runs", "ls"], &new).code, Some(2));
}

#[test]
fn a_change_of_the_master_key_that_was_cut_off_is_finished_by_the_next_command() {
    let house = House::new();
    house.asked();
    let (key, next) = (house.data().join("master.key"), house.data().join("master.key.next"));
    let old = master(&house);
    assert_eq!(house.adjutant(&["keys", "rotate", "--master"]).code, Some(0));
    let new = master(&house);
    // Everything is sealed with the new key, which is not in its place yet; or the old one is gone from it already.
    for in_place in [Some(old), None] {
        std::fs::rename(&key, &next).unwrap();
        if let Some(old) = in_place {
            std::fs::write(&key, old).unwrap();
        }
        assert_open(&house, 1);
        assert_eq!(master(&house), new);
        assert!(!next.exists());
    }
    // Nothing is sealed with the new key yet: the old one stays, and the next change takes the new one.
    std::fs::write(&next, "5c".repeat(32)).unwrap();
    assert_open(&house, 1);
    assert_eq!(master(&house), new);
    assert_eq!(house.adjutant(&["keys", "rotate", "--master"]).code, Some(0));
    assert_eq!(master(&house), "5c".repeat(32));
    assert_open(&house, 2);
}

#[cfg(feature = "faults")]
#[test]
fn a_change_of_the_master_key_that_was_killed_has_happened_or_not() {
    for (point, replaced) in [("commit.before:1", 0), ("commit.after:1", 1)] {
        let house = House::new();
        house.asked();
        let killed = Done::of(house.command(&["keys", "rotate", "--master"]).env("ADJUTANT_FAULT", point));
        assert_eq!(killed.code, None, "{point}: {killed}");
        assert_open(&house, replaced);
        let again = house.adjutant(&["keys", "rotate", "--master"]);
        assert_eq!(again.code, Some(0), "{point}: {again}");
        assert_open(&house, replaced + 1);
    }
}

#[test]
fn the_master_key_is_not_replaced_under_a_server() {
    let server = Server::start(House::new());
    let old = master(&server.house);
    let refused = server.house.adjutant(&["keys", "rotate", "--master"]);
    assert_ne!(refused.code, Some(0), "{refused}");
    assert!(refused.err.contains("hint: "), "{refused}");
    assert_eq!(master(&server.house), old);
    // On PostgreSQL a new key may have been made by then; it stays for the next try.
    assert!(server.house.database().is_some() || !server.house.data().join("master.key.next").exists());
}
