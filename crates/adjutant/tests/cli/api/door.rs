//! Coming in: set-up, passwords, tokens, invitations, and the end of all of them.

use std::os::unix::fs::PermissionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use adjutant_core::time::Time;
use serde_json::{Value, json};

use super::client::{Client, OWNER, Server};
use crate::house::House;

/// The set-up link that a server prints while nobody owns it.
fn link(said: &str) -> &str {
    let (_, rest) = said.split_once("/setup#t=").unwrap_or_else(|| panic!("{said}"));
    rest.split_whitespace().next().unwrap()
}

#[test]
fn the_first_start_prints_a_link_that_makes_its_owner_once() {
    let server = Server::start_with(House::new(), &[]);
    assert_eq!(server.nobody().get("/api/v1/setup").expect(200)["is_set_up"], false);
    let (house, said) = server.stop();
    let old = link(&said).to_owned();
    let mut server = Server::start_with(house, &[]);
    let said = server.hear("/setup#t=");
    let (nobody, fresh) = (server.nobody(), link(&said).to_owned());
    let body = |token: &str| json!({"token": token, "name": "dana", "password": "a long password"});
    // Each start makes a new link, and only the newest is good.
    nobody.post("/api/v1/setup", body(&old)).refuses(410, "expired");
    nobody
        .post("/api/v1/setup", json!({"token": fresh, "name": "dana", "password": "short"}))
        .refuses(422, "validation_failed");
    let welcome = nobody.post("/api/v1/setup", body(&fresh));
    welcome.expect(200);
    let cookie = &welcome.headers["set-cookie"];
    assert!(cookie.starts_with("adj=") && cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
    let me = nobody.signed_in(&welcome).get("/api/v1/me").expect(200);
    assert_eq!((&me["name"], &me["is_owner"]), (&json!("dana"), &json!(true)));
    nobody.post("/api/v1/setup", body(&fresh)).refuses(410, "expired");
    assert_eq!(nobody.get("/api/v1/setup").expect(200)["is_set_up"], true);
    let (_, said) = server.stop();
    assert!(!said.contains("a long password"), "{said}");
}

#[test]
fn a_password_signs_in_and_a_wrong_one_is_counted() {
    let server = Server::start(House::new());
    let lee = server.person("lee", "home", "write");
    let login = |password: &str| server.nobody().post("/api/v1/session", json!({"name": "lee", "password": password}));
    let welcome = login("a long password");
    welcome.expect(200);
    let again = server.nobody().signed_in(&welcome);
    assert_eq!(again.get("/api/v1/me").expect(200)["name"], "lee");
    // A change by cookie needs a browser that says which page asks for it.
    let bare = server.nobody().with("cookie", welcome.headers["set-cookie"].split(';').next().unwrap());
    bare.get("/api/v1/me").expect(200);
    bare.delete("/api/v1/session").refuses(403, "forbidden");
    assert_eq!(again.delete("/api/v1/session").status, 204);
    again.get("/api/v1/me").refuses(401, "unauthenticated");
    lee.get("/api/v1/me").expect(200);
    for _ in 0..9 {
        login("a wrong password").refuses(401, "unauthenticated");
    }
    // The right one does not help any more, from here and for now.
    let wait = login("a long password");
    wait.refuses(429, "rate_limited");
    assert!(wait.headers["retry-after"].parse::<u64>().unwrap() <= 901);
}

#[test]
fn an_invitation_is_seen_without_its_secret_and_taken_back() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let path = "/api/v1/workspaces/home/invites";
    let invite = |role: &str| owner.post(path, json!({ "role": role })).expect(201);
    let (first, second) = (invite("admin"), invite("read"));
    let listed = owner.get(path).expect(200);
    let rows = listed["data"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{listed}");
    for secret in [&first["token"], &second["token"]] {
        assert!(!listed.to_string().contains(secret.as_str().unwrap()), "{listed}");
    }
    let admin = rows.iter().find(|row| row["role"] == "admin").unwrap();
    let id = admin["id"].as_str().unwrap();
    assert_eq!(owner.delete(&format!("{path}/{id}")).status, 204);
    owner.delete(&format!("{path}/{id}")).refuses(404, "not_found");
    let accept = |link: &Value, name: &str| {
        let body = json!({"token": link["token"], "name": name, "password": "a long password"});
        server.nobody().post("/api/v1/invites/accept", body)
    };
    accept(&first, "eve").refuses(410, "expired");
    accept(&second, "kim").expect(200);
    assert_eq!(owner.get(path).expect(200)["data"], json!([]), "one that was used is gone, too");
    let record = owner.get("/api/v1/audit").text;
    assert_eq!(record.matches("link_withdrawn").count(), 1, "{record}");

    invite("write");
    let listed = server.house.document(&["users", "invites", "home"]);
    let id = listed["data"][0]["id"].as_str().unwrap();
    assert_eq!(server.house.adjutant(&["users", "withdraw", "home", id]).code, Some(0));
    assert_eq!(server.house.document(&["users", "invites", "home"])["data"], json!([]));
}

#[test]
fn behind_a_trusted_proxy_one_stranger_locks_nobody_else_out() {
    let env = [("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), ("ADJUTANT_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/8")];
    let server = Server::start_with(House::new(), &env);
    server.person("lee", "home", "write");
    let login = |from: &str, password: &str| {
        let client = server.nobody().with("x-forwarded-for", from);
        client.post("/api/v1/session", json!({"name": "lee", "password": password}))
    };
    for n in 0..10 {
        // What a client writes itself stands before what the proxy adds.
        login(&format!("198.51.100.{n}, 203.0.113.1"), "a wrong password").refuses(401, "unauthenticated");
    }
    login("198.51.100.99, 203.0.113.1", "a long password").refuses(429, "rate_limited");
    login("203.0.113.2, 10.1.2.3", "a long password").expect(200);
}

#[test]
fn whoever_guesses_tokens_has_to_wait_and_whoever_has_one_does_not() {
    let server = Server::start(House::new());
    server.owner().get("/api/v1/me").expect(200);
    let guess = |n: u32| server.nobody().with("authorization", &format!("Bearer adj_guess{n}")).get("/api/v1/me");
    for n in 0..300 {
        assert_eq!(guess(n).status, 401);
    }
    let wait = guess(300);
    wait.refuses(429, "rate_limited");
    assert!((1..=901).contains(&wait.headers["retry-after"].parse::<u64>().unwrap()), "{wait:?}");
    server.owner().get("/api/v1/me").expect(200);
    // The commands of whoever holds the data directory go on, too.
    assert_eq!(server.house.adjutant(&["runs", "ls"]).code, Some(0));
}

#[test]
fn a_token_does_what_its_scopes_say_until_it_is_revoked() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let body = json!({"name": "ci", "scopes": ["read", "run"]});
    let made = owner.post("/api/v1/tokens", body).expect(201);
    let secret = made["token"].as_str().unwrap();
    assert!(secret.starts_with("adj_") && secret.len() > 50);
    let ci = server.nobody().with("authorization", &format!("Bearer {secret}"));
    assert_eq!(ci.get("/api/v1/me").expect(200)["scopes"], json!(["read", "run"]));
    ci.post("/api/v1/tokens", json!({"name": "more"})).refuses(403, "forbidden");
    ci.post("/api/v1/agents", json!({"name": "Mine"})).refuses(403, "forbidden");
    let listed = owner.get("/api/v1/tokens").expect(200);
    assert!(!listed.to_string().contains(secret) && !listed.to_string().contains(OWNER), "{listed}");
    let past = json!({"name": "old", "expires_at": "2020-01-01T00:00:00Z"});
    owner.post("/api/v1/tokens", past).refuses(422, "validation_failed");
    owner.post("/api/v1/tokens", json!({"name": "x", "scopes": ["fly"]})).refuses(422, "validation_failed");
    let path = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(owner.delete(&path).status, 204);
    ci.get("/api/v1/me").refuses(401, "unauthenticated");
    // The database knows nobody's secret.
    let (house, _) = server.stop();
    let record = house.adjutant(&["audit", "search", "--json"]);
    for deed in ["token_made", "token_revoked"] {
        assert!(record.out.contains(deed), "{record}");
    }
    for file in std::fs::read_dir(house.data()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(secret) && !text.contains(OWNER));
    }
}

#[test]
fn the_command_line_of_the_owner_of_the_data_finds_the_server() {
    let server = Server::start(House::new());
    let path = server.house.data().join("server.json");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let beacon: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(beacon["url"], json!(format!("http://{}", server.address)));
    let local = server.nobody().with("authorization", &format!("Bearer {}", beacon["token"].as_str().unwrap()));
    assert_eq!(local.get("/api/v1/me").expect(200)["kind"], "local");
    server.stop();
    assert!(!path.exists());
}

#[test]
fn somebody_who_is_switched_off_or_put_out_is_out_at_once() {
    let server = Server::start(House::new());
    let (owner, kim) = (server.owner(), server.person("kim", "home", "read"));
    kim.get("/api/v1/agents/guide").expect(200);
    assert_eq!(owner.delete("/api/v1/workspaces/home/members/kim").status, 204);
    kim.get("/api/v1/agents/guide").refuses(404, "not_found");
    owner.put("/api/v1/workspaces/home/members/kim", json!({"role": "write"})).expect(200);
    kim.get("/api/v1/agents/guide").expect(200);
    owner.patch("/api/v1/users/kim", json!({"is_active": false})).expect(200);
    kim.get("/api/v1/me").refuses(401, "unauthenticated");
    owner.patch("/api/v1/users/kim", json!({"is_active": true})).expect(200);
    let reset = owner.post("/api/v1/users/kim/reset", json!({})).expect(201);
    let body = json!({"token": reset["token"], "password": "another long one"});
    assert_eq!(server.nobody().post("/api/v1/password/renew", body.clone()).status, 204);
    server.nobody().post("/api/v1/password/renew", body).refuses(410, "expired");
    let login = json!({"name": "kim", "password": "another long one"});
    server.nobody().post("/api/v1/session", login).expect(200);
    // The last admin stays.
    owner.delete("/api/v1/workspaces/home/members/admin").refuses(422, "validation_failed");
}

#[test]
fn every_link_and_every_new_password_is_in_the_record() {
    let server = Server::start(House::new());
    let (owner, kim) = (server.owner(), server.person("kim", "home", "read"));
    let change =
        |old: &str| kim.put("/api/v1/me/password", json!({"old_password": old, "password": "a longer password"}));
    change("a wrong password").refuses(401, "unauthenticated");
    change("a long password").expect(204);
    let link = owner.post("/api/v1/users/kim/reset", json!({})).expect(201);
    let renewal = json!({"token": link["token"], "password": "the longest password"});
    server.nobody().post("/api/v1/password/renew", renewal.clone()).expect(204);
    server.nobody().post("/api/v1/password/renew", renewal).refuses(410, "expired");

    let (house, _) = server.stop();
    let record = house.adjutant(&["audit", "search", "--json"]).out;
    assert_eq!(record.matches("password_changed").count(), 2, "{record}");
    // The invitation of kim, and the link for the new password.
    assert_eq!(record.matches("link_made").count(), 2, "{record}");
    assert!(!record.contains(link["token"].as_str().unwrap()) && !record.contains("longest"), "{record}");
}

/// A token of the owner with these scopes.
fn token(server: &Server, body: Value) -> Client {
    let made = server.owner().post("/api/v1/tokens", body).expect(201);
    server.nobody().with("authorization", &format!("Bearer {}", made["token"].as_str().unwrap()))
}

#[test]
fn a_token_makes_none_that_reaches_further_or_lasts_longer() {
    let server = Server::start(House::new());
    server.owner().post("/api/v1/workspaces", json!({"slug": "lab", "name": "Lab"})).expect(201);
    let until = "2096-01-01T00:00:00Z";
    let scopes = json!(["read", "run", "write", "approvals:decide", "admin"]);
    let narrow = token(&server, json!({"name": "lab", "scopes": scopes, "workspace_id": "lab", "expires_at": until}));
    let made = narrow.post("/api/v1/tokens", json!({"name": "more"})).expect(201);
    let lab = narrow.get("/api/v1/workspaces/lab").expect(200);
    assert_eq!((&made["workspace_id"], &made["expires_at"]), (&lab["id"], &json!("2096-01-01T00:00:00.000Z")));
    narrow.post("/api/v1/tokens", json!({"name": "home", "workspace_id": "home"})).refuses(404, "not_found");
    // It opens one workspace, so it does not act as the owner of the instance.
    assert_eq!(narrow.get("/api/v1/me").expect(200)["is_owner"], false);
    narrow.get("/api/v1/users").refuses(403, "forbidden");
    narrow.put("/api/v1/workspaces/home/members/admin", json!({"role": "read"})).refuses(404, "not_found");
}

#[test]
fn a_token_that_may_not_decide_lets_nobody_in_who_may() {
    let server = Server::start(House::new());
    server.person("kim", "home", "read");
    let token = token(&server, json!({"name": "people", "scopes": ["read", "admin"]}));
    let invite = |role: &str| token.post("/api/v1/workspaces/home/invites", json!({"role": role}));
    invite("read").expect(201);
    for role in ["write", "admin"] {
        invite(role).refuses(403, "forbidden");
        token.put("/api/v1/workspaces/home/members/kim", json!({"role": role})).refuses(403, "forbidden");
    }
    token.post("/api/v1/users/admin/reset", json!({})).refuses(403, "forbidden");
}

#[test]
fn a_short_name_in_two_workspaces_means_neither() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.get("/api/v1/agents/guide").expect(200);
    owner.post("/api/v1/workspaces", json!({"slug": "lab", "name": "Lab"})).expect(201);
    let twin = owner.get("/api/v1/agents?workspace_id=lab").expect(200)["data"][0].clone();
    assert_eq!(twin["slug"], "guide", "every workspace begins with one");
    let told = owner.get("/api/v1/agents/guide").refuses(422, "validation_failed");
    assert!(told["detail"].as_str().unwrap().contains("several workspaces"), "{told}");
    let body = json!({"agent_id": "guide", "input": "hello"});
    owner.post("/api/v1/runs", body).refuses(422, "validation_failed");
    owner.get(&format!("/api/v1/agents/{}", twin["id"].as_str().unwrap())).expect(200);
    let there = owner.with("adjutant-workspace", "lab");
    assert_eq!(there.get("/api/v1/agents/guide").expect(200)["id"], twin["id"], "a request may name one for itself");
    assert_eq!(there.get("/api/v1/workspaces").expect(200)["data"].as_array().unwrap().len(), 1);
    there.get("/api/v1/workspaces/home").refuses(404, "not_found");
    owner.with("adjutant-workspace", "nowhere").get("/api/v1/agents").refuses(404, "not_found");
}

#[test]
fn a_server_leaves_no_core_dump() {
    let server = Server::start(House::new());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(line.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["1", "1"], "{line}");
}

#[test]
fn a_token_that_was_good_is_refused_from_its_end_on() {
    let server = Server::start(House::new());
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let end = Time::from_millis(i64::try_from(millis).unwrap() + 2000);
    let made = server.owner().post("/api/v1/tokens", json!({"name": "short", "expires_at": end})).expect(201);
    let short = server.nobody().with("authorization", &format!("Bearer {}", made["token"].as_str().unwrap()));
    let mut good = 0;
    let refused = loop {
        let reply = short.get("/api/v1/me");
        if reply.status != 200 {
            break reply;
        }
        good += 1;
    };
    refused.refuses(401, "unauthenticated");
    assert!(good > 0, "it was never good");
}

#[test]
fn what_strangers_type_is_not_kept_and_its_count_ends_with_the_address() {
    let env = [("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), ("ADJUTANT_TRUSTED_PROXIES", "127.0.0.1")];
    let server = Server::start_with(House::new(), &env);
    let invite = server.owner().post("/api/v1/workspaces/home/invites", json!({"role": "read"})).expect(201);
    let login = |from: &str, name: &str| {
        let body = json!({"name": name, "password": "a long password"});
        server.nobody().with("x-forwarded-for", from).post("/api/v1/session", body)
    };
    login("2001:db8::1", "my-password-in-the-wrong-field").refuses(401, "unauthenticated");
    for n in 2..=100 {
        // Of IPv6 a house has as many addresses as it likes, and a name that nobody can have is as good as any.
        login(&format!("2001:db8::{n:x}"), &format!("{n}{}", "a".repeat(200))).refuses(401, "unauthenticated");
    }
    let kept = || -> Vec<String> {
        if server.house.database().is_some() {
            return server.house.sql("SELECT key FROM attempts").lines().map(str::to_owned).collect();
        }
        let database = rusqlite::Connection::open(server.house.data().join("adjutant.db")).unwrap();
        let mut rows = database.prepare("SELECT key FROM attempts").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let before = kept();
    assert_eq!(before.len(), 3, "the address, the name from there, the name: {before:?}");
    assert!(before.iter().all(|key| !key.contains("password") && key.len() == 64), "{before:?}");
    login("2001:db8::ffff", "another").refuses(429, "rate_limited");
    assert_eq!(kept().len(), before.len());
    login("2001:db8:0:1::1", "another").refuses(401, "unauthenticated");
    // Whoever has a link in the same house comes in.
    let newcomer = json!({"token": invite["token"], "name": "kim", "password": "a long password"});
    let house = server.nobody().with("x-forwarded-for", "2001:db8::7");
    house.post("/api/v1/invites/accept", newcomer).expect(200);
}

#[test]
fn a_token_that_may_not_decide_lets_no_agent_ask_less() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let token = |scopes: Value| {
        let made = owner.post("/api/v1/tokens", json!({"name": "t", "scopes": scopes})).expect(201);
        server.nobody().with("authorization", &format!("Bearer {}", made["token"].as_str().unwrap()))
    };
    let (plain, decider) = (token(json!(["admin"])), token(json!(["admin", "approvals:decide"])));
    let body = json!({"name": "Mine", "requires_approval": ["write_file"], "flow": "deny"});
    plain.post("/api/v1/agents", body).expect(201);
    let change = |who: &Client, patch: &Value| who.with("if-match", "*").patch("/api/v1/agents/mine", patch.clone());
    let less = [json!({"autonomy": "full"}), json!({"requires_approval": []}), json!({"flow": "ask"})];
    for patch in &less {
        change(&plain, patch).refuses(403, "forbidden");
    }
    plain.post("/api/v1/agents", json!({"name": "Free", "autonomy": "medium"})).refuses(403, "forbidden");
    // To ask more takes nothing, and the way back takes the right, by whatever door.
    change(&plain, &json!({"autonomy": "none", "requires_approval": ["write_file", "create_file"]})).expect(200);
    let guide = json!({"autonomy": "none"});
    plain.with("if-match", "*").patch("/api/v1/agents/guide", guide).expect(200);
    plain.post("/api/v1/agents/guide/reset", json!({})).refuses(403, "forbidden");
    plain.post("/api/v1/agents/resync", json!({})).refuses(403, "forbidden");
    for patch in &less {
        change(&decider, patch).expect(200);
    }
    decider.post("/api/v1/agents/guide/reset", json!({})).expect(200);
    plain.post("/api/v1/agents/resync", json!({})).expect(200);

    let (old, end) = (json!({"folders": ["/old"]}), "2126-01-01T00:00:00Z");
    let rule = |what: &str| json!({"tool": "delete_file", "decision": what, "when": old, "expires_at": end});
    plain.post("/api/v1/rules", rule("allow")).refuses(403, "forbidden");
    let path = |made: Value| format!("/api/v1/rules/{}", made["id"].as_str().unwrap());
    let (no, yes) = (plain.post("/api/v1/rules", rule("deny")), decider.post("/api/v1/rules", rule("allow")));
    let (no, yes) = (path(no.expect(201)), path(yes.expect(201)));
    plain.delete(&no).refuses(403, "forbidden");
    assert_eq!((plain.delete(&yes).status, decider.delete(&no).status), (204, 204));
}
