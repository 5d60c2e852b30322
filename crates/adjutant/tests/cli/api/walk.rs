//! Every route of the API, as nobody, as a stranger from another workspace, and as somebody who may only read.

use serde_json::{Value, json};

use super::client::{Client, Reply, Server};
use crate::house::{House, text};

/// What stands in the paths of the walk: things of the owner in the workspace `home`.
struct Things {
    run: String,
    chat: String,
    approval: String,
    agent: String,
    notebook: String,
    token: String,
    user: String,
    rule: String,
    key: String,
    invite: String,
}

impl Things {
    fn of(server: &Server) -> Self {
        let owner = server.owner();
        let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
        let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
        let notebooks = owner.get("/api/v1/workspaces/home/notebooks").expect(200);
        let rule = owner.post("/api/v1/rules", json!({"tool": "delete_file", "decision": "deny"})).expect(201);
        let key = json!({"owner": "workspace", "provider": "openai", "name": "walked", "value": "sk-0123456789abcdef"});
        let key = owner.post("/api/v1/provider-keys", key).expect(201);
        let me = owner.get("/api/v1/me").expect(200);
        owner.post("/api/v1/workspaces/home/invites", json!({"role": "read"})).expect(201);
        let invites = owner.get("/api/v1/workspaces/home/invites").expect(200);
        Self {
            run: text(&run["id"]),
            chat: text(&run["chat_id"]),
            approval: text(&run["pending_approvals"][0]),
            agent: text(&run["agent_id"]),
            notebook: text(&notebooks["data"][0]["id"]),
            token: text(&me["token_id"]),
            user: text(&me["user_id"]),
            rule: text(&rule["id"]),
            key: text(&key["id"]),
            invite: text(&invites["data"][0]["id"]),
        }
    }

    fn path(&self, pattern: &str) -> String {
        let pairs = [
            ("{run}", self.run.as_str()),
            ("{chat}", &self.chat),
            ("{approval}", &self.approval),
            ("{agent}", &self.agent),
            ("{notebook}", &self.notebook),
            ("{token}", &self.token),
            ("{user}", &self.user),
            ("{rule}", &self.rule),
            ("{key}", &self.key),
            ("{invite}", &self.invite),
            ("{credential}", "openai_api_key"),
            ("{n}", "1"),
            ("{workspace}", "home"),
            ("{tool}", "read_file"),
            ("{path}", "todo.md"),
        ];
        let path = pairs.into_iter().fold(pattern.to_owned(), |path, (name, value)| path.replace(name, value));
        assert!(!path.contains('{'), "{path} has a part that the walk does not know");
        match path.rsplit('/').next() {
            Some("search") => format!("{path}?q=file"),
            Some("archive") => format!("{path}?before=1d"),
            Some("attachments") => format!("{path}?notebook_id={}", self.notebook),
            Some("import") => format!("{path}?agent_id={}", self.agent),
            Some(_) | None => path,
        }
    }

    /// A body that would be taken.
    fn body(&self, method: &str, pattern: &str) -> Option<Value> {
        let name = name_of(pattern);
        Some(match (method, name) {
            ("post", "/runs") => json!({"agent_id": self.agent, "input": "hello"}),
            ("post", "/chats") => json!({"agent_id": self.agent}),
            ("post", "/chats/import") => json!({"title": "t", "runs": [{"user_message": "m", "result": "r"}]}),
            ("post", "/chats/{chat}/runs") => json!({"user_message": "hello"}),
            ("post", "/runs/{run}/edit") => json!({"new_user_message": "hello"}),
            ("post", "/runs/{run}/in-doubt") => json!({"call_id": "c", "outcome": "abandon"}),
            ("post", "/approvals/{approval}/decision") => json!({"decision": "approve"}),
            ("post", "/approvals/batch") => {
                json!({"decisions": [{"approval_id": self.approval, "decision": "approve"}]})
            }
            ("post", "/agents") => json!({"workspace_id": "home", "name": "Walker"}),
            ("post", "/agents/file") => json!({"text": "---\nname: Walker\n---\n"}),
            ("put" | "patch", "/agents/{agent}") => json!({"name": "Walker"}),
            ("patch", "/chats/{chat}") => json!({"title": "Walked"}),
            ("post", "/workspaces") | ("patch", "/workspaces/{workspace}") => json!({"name": "Walked"}),
            ("put", "/workspaces/{workspace}/members/{user}") => json!({"role": "read"}),
            ("post", "/workspaces/{workspace}/invites") => json!({"role": "admin"}),
            ("post" | "patch", _) if name.starts_with("/workspaces/{workspace}/notebooks") => json!({"slug": "walked"}),
            ("post", "/workspaces/{workspace}/erase") => json!({"before": "1d"}),
            ("patch", "/users/{user}") => json!({"is_active": false}),
            ("post", "/audit/backups") => json!({"file": "copy"}),
            ("post", "/embeddings") => json!({"workspace_id": "home", "model": "demo/guide", "input": "walked"}),
            ("post", "/rules") => json!({"tool": "read_file", "decision": "deny"}),
            ("patch", "/rules/{rule}") => json!({"decision": "allow"}),
            (
                "put",
                "/workspaces/{workspace}/budget"
                | "/workspaces/{workspace}/members/{user}/budget"
                | "/provider-keys/{key}/budget",
            ) => json!({"day_usd": 5}),
            ("post", "/provider-keys") => {
                json!({"owner": "workspace", "provider": "openai", "name": "more", "value": "sk-fedcba9876543210"})
            }
            ("post", "/provider-keys/{key}/rotate") => json!({"value": "sk-fedcba9876543210"}),
            ("post", "/agents/{agent}/credentials") => {
                json!({"key_name": "openai_api_key", "value": "sk-fedcba9876543210"})
            }
            ("post", "/tokens") => json!({"name": "walked", "workspace_id": "home"}),
            ("patch", "/me") => json!({"default_model": "default"}),
            ("put", "/me/password") => json!({"old_password": "not the password", "password": "a new long one"}),
            ("put", "/notebooks/{notebook}/files/{path}") => json!("walked"),
            ("post", "/chats/{chat}/interactions") => json!({"user_message": "hello"}),
            ("post", "/chats/{chat}/interactions/{run}/approve") => {
                json!({"approval_id": self.approval, "approved": true})
            }
            ("post", "/chats/{chat}/interactions/{run}/edit") => json!({"new_user_message": "hello"}),
            ("post", "/sessions/{chat}/message") => json!({"content": "hello"}),
            ("post", "/sessions/{chat}/confirm") => json!({"action_id": self.approval, "confirmed": true}),
            ("post", "/agents/{agent}/can") => json!({"action": "read", "path": "/todo.md"}),
            ("post", "/agents/{agent}/backtest") => json!({"agent": {"name": "Guide"}}),
            ("post", "/scope/preview") => json!({"name": "Draft"}),
            ("post", "/estimate") => json!({"agent_id": self.agent}),
            ("put", "/models/catalog") => json!({}),
            ("post", "/notebooks/{notebook}/folders") => json!({"path": "/walked"}),
            ("post", "/notebooks/{notebook}/move") => json!({"from": "/todo.md", "to": "/walked.md"}),
            ("post", _) => json!({}),
            (_, _) => return None,
        })
    }
}

/// The same operations under the addresses of older clients, which the description of the API leaves out.
const OLDER: [(&str, &str); 23] = [
    ("get", "/chats/{chat}"),
    ("post", "/chats/{chat}/interactions"),
    ("get", "/chats/{chat}/interactions/{run}"),
    ("post", "/chats/{chat}/interactions/{run}/approve"),
    ("post", "/chats/{chat}/interactions/{run}/cancel"),
    ("post", "/chats/{chat}/interactions/{run}/edit"),
    ("get", "/api/v1/agents/"),
    ("post", "/api/v1/agents/"),
    ("get", "/api/v1/agents/{agent}/"),
    ("put", "/api/v1/agents/{agent}/"),
    ("patch", "/api/v1/agents/{agent}/"),
    ("delete", "/api/v1/agents/{agent}/"),
    ("post", "/api/v1/agents/{agent}/activate/"),
    ("get", "/api/v1/agents/{agent}/credentials/"),
    ("post", "/api/v1/agents/{agent}/credentials/"),
    ("delete", "/api/v1/agents/{agent}/credentials/{credential}/"),
    ("get", "/api/v1/agents/{agent}/sessions/"),
    ("post", "/api/v1/agents/{agent}/sessions/"),
    ("get", "/api/v1/sessions/{chat}/"),
    ("post", "/api/v1/sessions/{chat}/message/"),
    ("post", "/api/v1/sessions/{chat}/confirm/"),
    ("post", "/api/v1/sessions/{chat}/cancel/"),
    ("get", "/api/v1/sessions/{chat}/logs/"),
];

/// What an operation is about, whatever its address.
fn name_of(pattern: &str) -> &str {
    pattern.strip_prefix("/api/v1").unwrap_or(pattern).trim_end_matches('/')
}

/// Every operation behind the door: method and path.
fn operations(server: &Server) -> Vec<(String, String)> {
    let document = server.nobody().get("/api/v1/openapi.json").expect(200);
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["security"] != json!([{}]) {
                found.push((method.clone(), path.clone()));
            }
        }
    }
    assert!(found.len() > 40, "{found:?}");
    found.extend(OLDER.map(|(method, path)| (method.to_owned(), path.to_owned())));
    found
}

fn call(client: &Client, things: &Things, method: &str, pattern: &str) -> Reply {
    let body = things.body(method, pattern).map(|body| body.to_string());
    let client = client.with("if-match", "\"v1\"");
    client.call(&method.to_uppercase(), &things.path(pattern), body.as_deref().map(str::as_bytes))
}

#[test]
fn nobody_gets_nowhere() {
    let server = Server::start(House::new());
    let things = Things::of(&server);
    let wrong = server.nobody().with("authorization", "Bearer adj_not-a-token-of-anybody-here");
    for (method, pattern) in operations(&server) {
        call(&server.nobody(), &things, &method, &pattern).refuses(401, "unauthenticated");
        call(&wrong, &things, &method, &pattern).refuses(401, "unauthenticated");
    }
}

/// Lists and searches over all that is theirs: they answer, with nothing of others.
const THEIR_OWN: [(&str, &str); 33] = [
    ("get", "/usage"),
    ("get", "/usage/reprice"),
    ("get", "/budgets"),
    ("get", "/models"),
    ("get", "/providers"),
    ("get", "/models/explain"),
    ("get", "/provider-keys"),
    ("post", "/provider-keys"),
    ("get", "/agents/templates"),
    ("post", "/agents/file"),
    ("post", "/agents/resync"),
    ("post", "/scope/preview"),
    ("get", "/audit"),
    ("get", "/audit/export"),
    ("get", "/halt"),
    ("get", "/about"),
    ("get", "/events"),
    ("get", "/rules"),
    ("post", "/rules"),
    ("get", "/me"),
    ("patch", "/me"),
    ("put", "/me/password"),
    ("get", "/tokens"),
    ("get", "/workspaces"),
    ("get", "/agents"),
    ("get", "/chats"),
    ("get", "/runs"),
    ("get", "/approvals"),
    ("get", "/tools"),
    ("get", "/tools/search"),
    ("get", "/tools/{tool}"),
    ("post", "/approvals/batch"),
    ("delete", "/session"),
];

/// What only the owner of the instance may do.
const OWNERS: [(&str, &str); 12] = [
    ("get", "/users"),
    ("patch", "/users/{user}"),
    ("post", "/users/{user}/reset"),
    ("post", "/workspaces"),
    ("delete", "/workspaces/{workspace}"),
    ("get", "/audit/verify"),
    ("post", "/audit/backups"),
    ("post", "/models/refresh"),
    ("put", "/models/catalog"),
    ("get", "/settings"),
    ("post", "/halt"),
    ("delete", "/halt"),
];

/// What only an admin of the workspace may do.
const ADMINS: [(&str, &str); 41] = [
    ("patch", "/workspaces/{workspace}"),
    ("get", "/workspaces/{workspace}/size"),
    ("get", "/workspaces/{workspace}/archive"),
    ("post", "/workspaces/{workspace}/erase"),
    ("get", "/workspaces/{workspace}/members/{user}/budget"),
    ("post", "/provider-keys"),
    ("delete", "/provider-keys/{key}"),
    ("post", "/provider-keys/{key}/test"),
    ("post", "/provider-keys/{key}/rotate"),
    ("put", "/provider-keys/{key}/budget"),
    ("delete", "/provider-keys/{key}/budget"),
    ("put", "/workspaces/{workspace}/budget"),
    ("delete", "/workspaces/{workspace}/budget"),
    ("put", "/workspaces/{workspace}/members/{user}/budget"),
    ("delete", "/workspaces/{workspace}/members/{user}/budget"),
    ("put", "/agents/{agent}"),
    ("patch", "/agents/{agent}"),
    ("delete", "/agents/{agent}"),
    ("post", "/agents/{agent}/activate"),
    ("post", "/agents/{agent}/reset"),
    ("post", "/agents/{agent}/backtest"),
    ("post", "/agents/{agent}/credentials"),
    ("delete", "/agents/{agent}/credentials/{credential}"),
    ("post", "/agents/resync"),
    ("get", "/audit"),
    ("get", "/audit/export"),
    ("post", "/rules"),
    ("patch", "/rules/{rule}"),
    ("delete", "/rules/{rule}"),
    ("put", "/workspaces/{workspace}/members/{user}"),
    ("delete", "/workspaces/{workspace}/members/{user}"),
    ("get", "/workspaces/{workspace}/invites"),
    ("post", "/workspaces/{workspace}/invites"),
    ("delete", "/workspaces/{workspace}/invites/{invite}"),
    ("post", "/workspaces/{workspace}/notebooks"),
    ("patch", "/workspaces/{workspace}/notebooks/{notebook}"),
    ("delete", "/workspaces/{workspace}/notebooks/{notebook}"),
    ("post", "/workspaces/{workspace}/halt"),
    ("delete", "/workspaces/{workspace}/halt"),
    ("post", "/runs/{run}/cancel"),
    ("post", "/approvals/{approval}/decision"),
];

#[test]
fn writers_do_not_administer_and_admins_do_not_own() {
    let server = Server::start(House::new());
    let things = Things::of(&server);
    let owner = server.owner();
    owner.patch(&format!("/api/v1/chats/{}", things.chat), json!({"is_shared": true})).expect(200);
    let (writer, admin) = (server.person("lee", "home", "write"), server.person("ada", "home", "admin"));
    let known = operations(&server);
    for (method, name) in ADMINS.into_iter().chain(OWNERS) {
        let pattern = format!("/api/v1{name}");
        assert!(known.contains(&(method.to_owned(), pattern.clone())), "{method} {name} is gone");
        call(&writer, &things, method, &pattern).refuses(403, "forbidden");
        if OWNERS.contains(&(method, name)) {
            call(&admin, &things, method, &pattern).refuses(403, "forbidden");
        }
    }
    for (method, pattern) in known.iter().filter(|(method, _)| method == "get") {
        let name = name_of(pattern);
        let expected = |mine: bool| if mine { 200 } else { 403 };
        let mine = !OWNERS.contains(&("get", name));
        assert_eq!(call(&admin, &things, method, pattern).status, expected(mine), "admin: {pattern}");
        let mine = mine && !ADMINS.contains(&("get", name));
        assert_eq!(call(&writer, &things, method, pattern).status, expected(mine), "writer: {pattern}");
    }
    assert_eq!(owner.get(&format!("/api/v1/runs/{}", things.run)).expect(200)["status"], "WAITING_APPROVAL");
}

/// What is asked by POST and changes nothing.
const QUESTIONS: [&str; 6] =
    ["/agents/file", "/agents/{agent}/can", "/estimate", "/models/explain", "/runs/{run}/replay", "/scope/preview"];

#[test]
fn a_token_that_may_only_read_changes_nothing_and_one_that_may_not_reads_nothing() {
    let server = Server::start(House::new());
    let things = Things::of(&server);
    let token = |scope: &str| {
        let made = server.owner().post("/api/v1/tokens", json!({"name": scope, "scopes": [scope]})).expect(201);
        server.nobody().with("authorization", &format!("Bearer {}", text(&made["token"])))
    };
    let (reader, runner) = (token("read"), token("run"));
    let mut wrong = Vec::new();
    for (method, pattern) in operations(&server) {
        let name = name_of(&pattern);
        let (client, forbidden) = match method.as_str() {
            "get" => (&runner, name != "/me"),
            _ => (&reader, !QUESTIONS.contains(&name) && name != "/session"),
        };
        let status = call(client, &things, &method, &pattern).status;
        if (status == 403) != forbidden {
            wrong.push(format!("{method} {pattern}: {status}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(server.owner().get(&format!("/api/v1/runs/{}", things.run)).expect(200)["status"], "WAITING_APPROVAL");
}

#[test]
fn a_stranger_finds_nothing_of_another_workspace() {
    let server = Server::start(House::new());
    let things = Things::of(&server);
    server.owner().post("/api/v1/workspaces", json!({"name": "Elsewhere", "slug": "elsewhere"})).expect(201);
    let stranger = server.person("mallory", "elsewhere", "admin");
    let secrets =
        [&things.run, &things.chat, &things.approval, &things.notebook, &things.agent, &things.rule, &things.key];
    for (method, pattern) in operations(&server) {
        let name = name_of(&pattern);
        if (method.as_str(), name) == ("delete", "/session") {
            continue;
        }
        let reply = call(&stranger, &things, &method, &pattern);
        let what = format!("{method} {pattern}: {reply:?}");
        if THEIR_OWN.contains(&(method.as_str(), name)) {
            let in_path = things.path(&pattern);
            let leaked = secrets.iter().any(|secret| !in_path.contains(*secret) && reply.text.contains(*secret));
            // A batch says back which item was not found.
            assert!(!leaked || name == "/approvals/batch" && reply.text.contains("not_found"), "{what}");
        } else if OWNERS.contains(&(method.as_str(), name)) {
            reply.refuses(403, "forbidden");
        } else {
            assert_eq!(reply.status, 404, "{what}");
        }
    }
    let run = server.owner().get(&format!("/api/v1/runs/{}", things.run)).expect(200);
    assert_eq!(run["status"], "WAITING_APPROVAL");
}

#[test]
fn an_admin_neither_finds_nor_pulls_in_people_of_another_workspace() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.post("/api/v1/workspaces", json!({"name": "Elsewhere", "slug": "elsewhere"})).expect(201);
    let (lee, stranger) = (server.person("lee", "home", "read"), server.person("mallory", "elsewhere", "admin"));
    let lees = text(&lee.get("/api/v1/me").expect(200)["user_id"]);
    let put = |who: &Client, name: &str| {
        who.put(&format!("/api/v1/workspaces/elsewhere/members/{name}"), json!({"role": "write"}))
    };
    let nobody = put(&stranger, "nobody").expect(404);
    for name in ["lee", lees.as_str()] {
        let answer = put(&stranger, name).expect(404);
        for field in ["detail", "title", "code", "hint"] {
            assert_eq!(text(&answer[field]).replace(name, "nobody"), text(&nobody[field]), "{field}");
        }
    }
    assert_eq!(lee.get("/api/v1/me").expect(200)["workspaces"].as_array().unwrap().len(), 1);
    put(&owner, "lee").expect(200);
    assert_eq!(put(&stranger, "lee").expect(200)["role"], "write", "whom they share a workspace with, they know");
}

#[test]
fn somebody_who_may_read_changes_nothing() {
    let server = Server::start(House::new());
    let things = Things::of(&server);
    let owner = server.owner();
    owner.patch(&format!("/api/v1/chats/{}", things.chat), json!({"is_shared": true})).expect(200);
    let reader = server.person("kim", "home", "read");
    for (method, pattern) in operations(&server) {
        let name = name_of(&pattern);
        let own = matches!(name, "/session" | "/me/password" | "/tokens" | "/tokens/{token}")
            || (method.as_str(), name) == ("patch", "/me");
        let asked = method == "post" && matches!(name, "/runs/{run}/replay" | "/estimate");
        if own || asked {
            continue;
        }
        let reply = call(&reader, &things, &method, &pattern);
        let what = format!("{method} {pattern}: {reply:?}");
        if method == "get" {
            let closed = OWNERS.contains(&("get", name)) || ADMINS.contains(&("get", name));
            let expected = if closed { 403 } else { 200 };
            assert_eq!(reply.status, expected, "{what}");
        } else if name == "/approvals/batch" {
            assert_eq!(reply.expect(200)["data"][0]["problem"]["code"], "forbidden", "{what}");
        } else {
            assert_eq!(reply.status, 403, "{what}");
        }
    }
}
