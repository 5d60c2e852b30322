//! Money over HTTP: what was spent, by whom, and what may be.

use serde_json::{Value, json};

use super::client::{Client, Server};
use crate::house::{House, text};

fn priced() -> Server {
    let house = House::new();
    house.priced();
    Server::start(house)
}

fn run(client: &Client) -> Value {
    client.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200)
}

fn micros(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no amount"))
}

#[test]
fn usage_adds_up_to_what_runs_cost_however_it_is_grouped() {
    let server = priced();
    let owner = server.owner();
    let runs = [run(&owner), run(&owner)];
    let cost: u64 = runs.iter().map(|run| micros(&run["cost_microusd"])).sum();
    assert!(cost > 0, "{runs:#?}");
    for (by, groups) in [("day", 1), ("agent", 1), ("model", 1), ("user", 1), ("key", 1), ("run", 2)] {
        let usage = owner.get(&format!("/api/v1/usage?group_by={by}")).expect(200);
        let data = usage["data"].as_array().unwrap();
        assert_eq!((data.len(), micros(&usage["total_microusd"])), (groups, cost), "{by}: {usage:#}");
        assert_eq!(data.iter().map(|row| micros(&row["calls"])).sum::<u64>(), 2, "{by}: {usage:#}");
    }
    let agents = owner.get("/api/v1/usage?group_by=agent&interval=day").expect(200);
    let row = &agents["data"][0];
    assert_eq!((&row["name"], &row["group"]), (&json!("guide"), &runs[0]["agent_id"]));
    assert!(text(&row["day"]).starts_with("20"), "{row:#}");
    assert_eq!(owner.get("/api/v1/usage?group_by=key").expect(200)["data"][0]["group"], "instance");
    let csv = owner.get("/api/v1/usage?group_by=model&format=csv");
    assert!(csv.headers["content-type"].starts_with("text/csv"), "{csv:?}");
    assert!(csv.text.starts_with("model,name,calls,") && csv.text.contains("\ntest/script,,2,0,"), "{csv:?}");
    let before = owner.get("/api/v1/usage?from=2020-01-01&to=2020-02-01").expect(200);
    assert_eq!((&before["data"], &before["from"]), (&json!([]), &json!("2020-01-01T00:00:00.000Z")));
    owner.get("/api/v1/usage?group_by=colour").refuses(422, "validation_failed");
    owner.get("/api/v1/usage?from=yesterday").refuses(422, "validation_failed");
    let repriced = owner.get("/api/v1/usage/reprice").expect(200);
    assert_eq!((micros(&repriced["recorded_microusd"]), micros(&repriced["repriced_microusd"])), (cost, cost));
    let estimate = owner.get("/api/v1/agents/guide/estimate").expect(200);
    assert_eq!((&estimate["runs"], &estimate["most_microusd"]), (&json!(2), &json!(500_000)));
    assert!(micros(&estimate["p90_microusd"]) >= micros(&estimate["p50_microusd"]));
}

#[test]
fn who_is_no_admin_sees_only_what_was_spent_for_them() {
    let server = priced();
    let (owner, writer) = (server.owner(), server.person("lee", "home", "write"));
    run(&owner);
    assert_eq!(writer.get("/api/v1/usage").expect(200)["data"], json!([]));
    let theirs = run(&writer);
    let seen = writer.get("/api/v1/usage?group_by=user").expect(200);
    assert_eq!((seen["data"].as_array().unwrap().len(), &seen["data"][0]["name"]), (1, &json!("lee")));
    assert_eq!(seen["total_microusd"], theirs["cost_microusd"]);
    let all = owner.get("/api/v1/usage?group_by=user").expect(200);
    assert_eq!(all["data"].as_array().unwrap().len(), 2, "{all:#}");
    let me = text(&owner.get("/api/v1/me").expect(200)["user_id"]);
    writer.get(&format!("/api/v1/usage?user={me}")).refuses(403, "forbidden");
    let budgets = writer.get("/api/v1/budgets").expect(200);
    let people = budgets["data"].as_array().unwrap().iter().filter(|line| line["kind"] == "person");
    assert_eq!(people.map(|line| text(&line["name"])).collect::<Vec<_>>(), ["lee"]);
    writer.get(&format!("/api/v1/workspaces/home/members/{me}/budget")).refuses(403, "forbidden");
}

#[test]
fn a_budget_of_a_person_stops_their_runs_and_nobody_elses() {
    let server = priced();
    let (owner, writer) = (server.owner(), server.person("lee", "home", "write"));
    run(&writer);
    let path = "/api/v1/workspaces/home/members/lee/budget";
    let saved = owner.put(path, json!({"day_usd": 0.000_001})).expect(200);
    assert_eq!(
        (&saved["kind"], &saved["name"], &saved["day"]["limit_microusd"]),
        (&json!("person"), &json!("lee"), &json!(1))
    );
    assert_eq!(writer.get(path).expect(200)["budget"]["day_usd"], json!(0.000_001));
    let body = json!({"agent_id": "guide", "input": "hello"});
    let refused = writer.post("/api/v1/runs?wait=60", body).refuses(402, "budget_exhausted");
    assert!(refused["detail"].as_str().unwrap().contains("person"), "{refused:#}");
    assert_eq!(run(&owner)["status"], "COMPLETED");
    owner.delete(path).expect(204);
    owner.delete(path).refuses(404, "not_found");
    assert_eq!(run(&writer)["status"], "COMPLETED");
    owner.put(path, json!({"run_usd": 1})).refuses(422, "validation_failed");
    owner.put(path, json!({"day_usd": -1})).refuses(422, "validation_failed");
    owner.put("/api/v1/workspaces/home/members/nobody/budget", json!({"day_usd": 1})).refuses(404, "not_found");
}

#[test]
fn a_budget_of_the_workspace_holds_and_is_on_the_record() {
    let server = priced();
    let owner = server.owner();
    let first = run(&owner);
    owner.put("/api/v1/workspaces/home/budget", json!({"month_usd": 0.000_001, "alert_at_usd": [1]})).expect(200);
    let shown = owner.get("/api/v1/workspaces/home/budget").expect(200);
    assert_eq!(
        (&shown["month"]["spent_microusd"], &shown["month"]["limit_microusd"]),
        (&first["cost_microusd"], &json!(1))
    );
    let body = json!({"agent_id": "guide", "input": "hello"});
    owner.post("/api/v1/runs?wait=60", body).refuses(402, "budget_exhausted");
    let record = owner.get("/api/v1/audit?q=kind:setting_changed").expect(200);
    assert!(text(&record["data"][0]["summary"]).contains("budget of workspace"), "{record:#}");
    owner.delete("/api/v1/workspaces/home/budget").expect(204);
    assert_eq!(run(&owner)["status"], "COMPLETED");
}

#[test]
fn a_question_of_money_says_what_a_yes_adds_and_who_may_add_it() {
    let server = priced();
    let (owner, lee) = (server.owner(), server.person("lee", "home", "write"));
    let body = json!({"agent_id": "guide", "input": "hello", "max_cost_usd": 0.000_001});
    let held = lee.post("/api/v1/runs?wait=60", body).expect(200);
    assert_eq!(held["status"], "PAUSED", "{held:#}");
    let own = text(&held["pending_approvals"][0]);
    let item = |who: &Client, id: &str| {
        let shown = who.get(&format!("/api/v1/approvals/{id}")).expect(200);
        let listed = who.get("/api/v1/approvals?status=pending").expect(200);
        let listed = listed["data"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap().clone();
        for field in ["kind", "may_decide", "raise_usd", "unpriced_model"] {
            assert_eq!(shown[field], listed[field], "{field}");
        }
        shown
    };
    let asked = item(&lee, &own);
    assert_eq!((&asked["kind"], &asked["raise_usd"]), (&json!("budget"), &json!(0.25)), "{asked:#}");
    assert_eq!((&asked["may_decide"], &asked["unpriced_model"]), (&json!(true), &Value::Null), "{asked:#}");
    // The day of the workspace is for all who are in it: more of it takes an admin.
    owner.put("/api/v1/workspaces/home/budget", json!({"day_usd": 0.001})).expect(200);
    let held = lee.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200);
    assert_eq!(held["status"], "PAUSED", "{held:#}");
    let shared = text(&held["pending_approvals"][0]);
    assert_eq!(
        (&item(&lee, &shared)["may_decide"], &item(&owner, &shared)["may_decide"]),
        (&json!(false), &json!(true))
    );
    lee.post(&format!("/api/v1/approvals/{shared}/decision"), json!({"decision": "approve"})).refuses(403, "forbidden");
}

#[test]
fn a_question_about_a_price_names_the_model_and_no_amount() {
    let house = House::new();
    house.configure(
        "default_model = \"own/x\"\n[providers.own]\nkind = \"compatible\"\nbase_url = \"http://127.0.0.1:9/v1\"\n",
    );
    let server = Server::start(house);
    let owner = server.owner();
    let held = run(&owner);
    assert_eq!(held["status"], "PAUSED", "{held:#}");
    let item = owner.get(&format!("/api/v1/approvals/{}", text(&held["pending_approvals"][0]))).expect(200);
    assert_eq!((&item["unpriced_model"], &item["raise_usd"]), (&json!("own/x"), &Value::Null), "{item:#}");
}

#[test]
fn a_persons_key_is_theirs_alone_and_comes_back_without_its_value() {
    let server = priced();
    let (owner, writer) = (server.owner(), server.person("lee", "home", "write"));
    let value = "sk-theirs-0123456789";
    let new = json!({"provider": "openai", "name": "mine", "value": value});
    let made = writer.post("/api/v1/provider-keys", new.clone());
    assert!(!made.text.contains(value), "{made:?}");
    let made = made.expect(201);
    assert_eq!(
        (&made["owner"], &made["hint"], &made["hosts"]),
        (&json!("person"), &json!("6789"), &json!(["api.openai.com"]))
    );
    let path = format!("/api/v1/provider-keys/{}", text(&made["id"]));
    owner.get(&path).refuses(404, "not_found");
    assert_eq!(owner.get("/api/v1/provider-keys").expect(200)["data"], json!([]));
    assert!(!writer.get(&path).text.contains(value));
    writer.post("/api/v1/provider-keys", new).refuses(409, "conflict");
    let shared = json!({"owner": "workspace", "provider": "openai", "name": "ours", "value": value});
    writer.post("/api/v1/provider-keys", shared).refuses(403, "forbidden");
    let nowhere = json!({"provider": "nobody", "name": "x", "value": value});
    writer.post("/api/v1/provider-keys", nowhere).refuses(422, "validation_failed");
    let rotated = writer.post(&format!("{path}/rotate"), json!({"value": "sk-another-abcdefghijk"})).expect(200);
    assert_eq!(rotated["hint"], "hijk");
    writer.delete(&path).expect(204);
    writer.get(&path).refuses(404, "not_found");
}

#[test]
fn an_agent_says_that_it_is_held_why_and_until_when() {
    let server = priced();
    let owner = server.owner();
    let path = "/api/v1/agents/guide";
    let first = owner.get(path);
    let state = &first.expect(200)["state"];
    assert_eq!(state, &json!({"active": true, "paused_at": null, "paused_reason": null, "resumes_at": null}));
    assert!(text(&first.json()["created_by"]).starts_with("usr_"), "{:?}", first.json()["created_by"]);
    run(&owner);
    let limited = json!({"budget": {"month_usd": 0.000_001}});
    let changed = owner.with("if-match", "*").patch(path, limited);
    let state = &changed.expect(200)["state"];
    assert_eq!((&state["active"], &state["paused_reason"]), (&json!(false), &json!("budget")), "{state:#}");
    let refused = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"}));
    assert_eq!(refused.refuses(402, "budget_exhausted")["resumes_at"], state["resumes_at"]);
    let held = owner.get(path);
    assert_eq!(owner.get("/api/v1/agents").expect(200)["data"][0]["state"], held.json()["state"]);
    let raised = json!({"budget": {"month_usd": 5}});
    let raised = owner.with("if-match", &held.headers["etag"]).patch(path, raised);
    assert_eq!(raised.expect(200)["state"]["active"], json!(true));
    owner.put("/api/v1/workspaces/home/budget", json!({"month_usd": 0.000_001})).expect(200);
    let shared = owner.with("if-none-match", &raised.headers["etag"]).get(path);
    assert_eq!(shared.expect(200)["state"]["paused_reason"], "workspace_budget", "it changed without a new version");
    owner.post(&format!("{path}/activate?active=false"), json!({})).expect(200);
    let state = &owner.get(path).expect(200)["state"];
    assert!(state["paused_reason"] == "switched_off" && state["paused_at"].is_string(), "{state:#}");
}

#[test]
fn what_a_run_would_cost_is_said_beforehand_also_with_another_model() {
    let server = priced();
    let owner = server.owner();
    let cost = micros(&run(&owner)["cost_microusd"]);
    let estimate = |body: Value| owner.post("/api/v1/estimate", body).expect(200);
    let usual = estimate(json!({"agent_id": "guide"}));
    assert_eq!((micros(&usual["p50_microusd"]), micros(&usual["most_microusd"])), (cost, 500_000), "{usual:#}");
    let less = estimate(json!({"agent_id": "guide", "max_cost_usd": 0.1}));
    assert_eq!(micros(&less["most_microusd"]), 100_000);
    let free = estimate(json!({"agent_id": "guide", "model": "demo/guide"}));
    assert_eq!(free["p90_microusd"], json!(0), "the same tokens cost nothing there");
    let unknown = estimate(json!({"agent_id": "guide", "model": "nobody/nothing"}));
    assert_eq!((&unknown["runs"], &unknown["p50_microusd"]), (&json!(0), &Value::Null), "an unknown price is none");
    owner.post("/api/v1/estimate", json!({"agent_id": "guide", "max_cost_usd": -1})).refuses(422, "validation_failed");
    owner.post("/api/v1/estimate", json!({"agent_id": "nobody"})).refuses(404, "not_found");
}
