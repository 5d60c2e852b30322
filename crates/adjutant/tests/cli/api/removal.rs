//! Notebooks and workspaces that are taken away: with what, and what stays.

use serde_json::json;

use super::client::Server;
use crate::house::{Done, House, text};

#[test]
fn a_notebook_is_taken_away_by_name_once_nobody_works_on_it() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let path = "/api/v1/workspaces/home/notebooks/welcome";
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "tidy the welcome notes"}));
    let run = run.expect(200);
    let folder = server.house.note("todo.md").parent().unwrap().to_owned();
    owner.delete(path).refuses(422, "validation_failed");
    owner.delete(&format!("{path}?confirm=home")).refuses(422, "validation_failed");
    let busy = owner.delete(&format!("{path}?confirm=welcome")).refuses(409, "busy");
    assert_eq!(busy["run_id"], run["id"]);
    assert!(folder.join("todo.md").exists());
    owner.post(&format!("/api/v1/runs/{}/cancel", text(&run["id"])), json!({})).expect(200);
    owner.get(&format!("/api/v1/runs/{}?wait=60", text(&run["id"]))).expect(200);

    owner.delete(&format!("{path}?confirm=welcome")).expect(204);
    assert!(!folder.exists(), "it was ours");
    owner.delete(&format!("{path}?confirm=welcome")).refuses(404, "not_found");
    owner.get("/api/v1/notebooks/welcome/files/todo.md").refuses(404, "not_found");
    let chat = format!("/api/v1/chats/{}", text(&run["chat_id"]));
    assert_eq!(owner.get(&format!("{chat}?include=runs")).expect(200)["runs"][0]["id"], run["id"]);
    owner.post(&format!("{chat}/runs"), json!({"user_message": "go on"})).refuses(404, "not_found");
    let acts = owner.get("/api/v1/audit?q=kind:setting_changed").expect(200);
    assert!(acts.to_string().contains("notebook `welcome` taken away, with its files"), "{acts}");
}

#[test]
fn a_linked_notebook_is_unlinked_and_its_folder_stays() {
    let server = Server::start(House::new());
    let folder = server.house.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("note.md"), "kept").unwrap();
    server.house.document(&["ws", "add", folder.to_str().unwrap()]);
    let wrong = server.house.adjutant(&["ws", "notebooks", "rm", "mine", "--confirm", "yours"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert_eq!(server.house.document(&["ws", "notebooks", "rm", "mine", "--confirm", "mine"])["removed"], "mine");
    assert_eq!(std::fs::read_to_string(folder.join("note.md")).unwrap(), "kept");
    let (house, _) = server.stop();
    assert_eq!(house.document(&["ws", "notebooks"])["data"].as_array().unwrap().len(), 1);
    house.document(&["ws", "add", folder.to_str().unwrap()]);
    house.document(&["ws", "notebooks", "rm", "mine", "--confirm", "mine"]);
    assert!(folder.join("note.md").exists());
}

#[test]
fn a_workspace_is_taken_away_with_all_that_was_said_in_it_and_the_chains_stay() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.post("/api/v1/workspaces", json!({"name": "Lab", "slug": "lab"})).expect(201);
    let lee = server.person("lee", "lab", "admin");
    let path = "/api/v1/workspaces/lab";
    lee.delete(&format!("{path}?confirm=lab")).refuses(403, "forbidden");
    let body = json!({"agent_id": "guide", "input": "hello, this is the secret of the lab", "metadata": {"a": "b"}});
    let run = lee.post("/api/v1/runs?wait=60", body).expect(200);
    let open =
        lee.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "create a note about cats"})).expect(200);
    let notebook = text(&owner.get(&format!("{path}/notebooks")).expect(200)["data"][0]["id"]);
    let folder = server.house.data().join("notebooks").join(&notebook);
    assert!(folder.exists());
    let fresh = lee.with("if-none-match", "*");
    fresh.call("PUT", &format!("/api/v1/notebooks/{notebook}/files/a.md"), Some(b"secret of the file")).expect(201);
    owner.delete(path).refuses(422, "validation_failed");
    assert_eq!(open["status"], "WAITING_APPROVAL", "{open}");
    assert_eq!(owner.delete(&format!("{path}?confirm=lab")).refuses(409, "busy")["run_id"], open["id"]);
    assert!(folder.join("a.md").exists());
    lee.post(&format!("/api/v1/runs/{}/cancel", text(&open["id"])), json!({})).expect(200);
    lee.get(&format!("/api/v1/runs/{}?wait=60", text(&open["id"]))).expect(200);
    let made = lee.post("/api/v1/tokens", json!({"name": "bound", "workspace_id": "lab", "scopes": ["read"]}));
    let bound = server.nobody().with("authorization", &format!("Bearer {}", text(&made.expect(201)["token"])));
    bound.get("/api/v1/me").expect(200);
    owner.delete("/api/v1/workspaces/home?confirm=home").refuses(422, "validation_failed");

    owner.delete(&format!("{path}?confirm=lab")).expect(204);
    assert!(!folder.exists());
    bound.get("/api/v1/me").refuses(401, "unauthenticated");
    owner.get(path).refuses(404, "not_found");
    owner.delete(&format!("{path}?confirm=lab")).refuses(404, "not_found");
    lee.get(&format!("/api/v1/runs/{}", text(&run["id"]))).refuses(404, "not_found");
    assert_eq!(lee.get("/api/v1/me").expect(200)["workspaces"], json!([]));
    let acts = owner.get("/api/v1/audit?q=kind:workspace_removed").expect(200);
    assert_eq!(acts["data"][0]["by"], "admin", "{acts}");
    assert_eq!(owner.get("/api/v1/audit/verify").expect(200)["problems"], json!([]));
    let again = owner.post("/api/v1/workspaces", json!({"name": "Lab", "slug": "lab"})).expect(201);
    assert_eq!(owner.get(path).expect(200)["id"], again["id"], "its name is free");
    let (house, _) = server.stop();
    // The day after, all ends of that day are signed, also those of what is gone.
    let clock = house.path().join("clock");
    std::fs::write(&clock, (24 * 60 * 60 * 1000).to_string()).unwrap();
    let verified = || Done::of(house.command(&["audit", "verify", "--json"]).env("ADJUTANT_CLOCK", &clock));
    assert_eq!(verified().code, Some(0));
    let after = verified();
    let found: serde_json::Value = serde_json::from_str(&after.out).unwrap();
    assert_eq!((after.code, &found["days"]), (Some(0), &json!(1)), "{after}");
}

/// Takes the notebook `welcome` of a house away and dies at a point, the nth time it is reached; then a server starts there. Says
/// whether it died, and whether the notebook is there.
fn killed_at(house: House, point: &str, nth: u32) -> (House, bool, bool) {
    let folder = house.note("todo.md").parent().unwrap().to_owned();
    let rm = ["ws", "notebooks", "rm", "welcome", "--confirm", "welcome"];
    let done = Done::of(house.command(&rm).env("ADJUTANT_FAULT", format!("{point}:{nth}")));
    assert!(matches!(done.code, None | Some(0)), "{done}");
    let server = Server::start(house);
    let found = server.owner().get("/api/v1/notebooks/welcome/files/todo.md").status;
    assert_eq!(found, if folder.join("todo.md").exists() { 200 } else { 404 }, "{point}:{nth}");
    let folders = std::fs::read_dir(folder.parent().unwrap()).unwrap().flatten();
    assert_eq!(folders.filter(|entry| entry.path().is_dir()).count(), usize::from(found == 200), "{point}:{nth}");
    (server.stop().0, done.code.is_none(), found == 200)
}

#[test]
fn a_removal_that_is_killed_leaves_a_notebook_with_its_files_or_neither() {
    for point in ["commit.before", "commit.after"] {
        let mut house = House::new();
        house.document(&["ws", "notebooks"]);
        let (folder, mut deaths) = (house.note("todo.md").parent().unwrap().to_owned(), 0);
        for nth in 1.. {
            let (after, died, there) = killed_at(house, point, nth);
            house = after;
            deaths += u32::from(died);
            if !there {
                break;
            }
        }
        assert!(deaths > 0, "{point}");
        assert!(!house.adjutant(&["doctor"]).out.contains("belong to no notebook"));
        std::fs::create_dir(&folder).unwrap();
        let (doctor, name) = (house.adjutant(&["doctor"]), folder.file_name().unwrap().to_str().unwrap());
        assert!(
            doctor.out.contains(&format!("{name} in ")) && doctor.out.contains("belong to no notebook"),
            "{doctor}"
        );
    }
}
