//! Money at the command line: budgets that hold and what was spent, on the data directory and at a server alike.

use crate::api::client::Server;
use crate::house::{House, text};

#[test]
fn a_run_holds_at_its_limit_and_goes_on_with_more() {
    let house = House::new();
    house.priced();
    let held = house.adjutant(&["run", "hello", "--json", "--max-cost", "0.000001"]);
    assert_eq!(held.code, Some(7), "{held}");
    let paused = held.events().into_iter().find(|event| event["event"] == "paused").unwrap();
    assert_eq!((&paused["data"]["reason"], &paused["data"]["raise_microusd"]), (&"budget".into(), &250_000.into()));
    let item = text(&paused["data"]["approval_id"]);
    let inbox = house.document(&["inbox"]);
    assert_eq!((&inbox["data"][0]["id"], &inbox["data"][0]["kind"]), (&item.as_str().into(), &"budget".into()));
    let edited = house.adjutant(&["inbox", "edit", &item, "--arguments", r#"{"raise_usd": 1}"#]);
    assert_eq!(edited.code, Some(0), "{edited}");
    let run = text(&paused["data"]["run_id"]);
    let watched = house.adjutant(&["runs", "watch", &run]);
    assert_eq!(watched.code, Some(0), "{watched}");
    let report = house.document(&["runs", "show", &run]);
    assert_eq!((&report["status"], &report["budget_microusd"]), (&"COMPLETED".into(), &1_000_001.into()));
    assert!(report["cost_microusd"].as_u64().unwrap() > 0, "{report:#}");
    assert!(text(&report["model_calls"][0]["price_version"]).starts_with("configuration-"), "{report:#}");
}

/// What was spent is shown, and a budget of the day stops the next run.
fn story(house: &House) {
    assert_eq!(house.adjutant(&["run", "hello"]).code, Some(0));
    let usage = house.document(&["usage", "--by", "model"]);
    let line = &usage["data"][0];
    assert_eq!((&line["group"], &line["calls"]), (&"test/script".into(), &1.into()));
    let cost = usage["total_microusd"].as_u64().unwrap();
    assert!(cost > 0 && usage["total_microusd"] == line["cost_microusd"], "{usage:#}");
    let shown = house.adjutant(&["usage"]);
    assert!(shown.out.contains('█') && shown.out.contains("total $"), "{shown}");
    let csv = house.adjutant(&["usage", "--by", "agent", "--csv", "-"]);
    assert!(csv.out.starts_with("agent,name,calls,") && csv.out.contains(",guide,1,"), "{csv}");
    let repriced = house.document(&["usage", "--reprice"]);
    assert_eq!((&repriced["recorded_microusd"], &repriced["repriced_microusd"]), (&cost.into(), &cost.into()));
    let estimate = house.document(&["budgets", "estimate", "guide"]);
    assert_eq!((&estimate["runs"], &estimate["p90_microusd"]), (&1.into(), &cost.into()));

    house.document(&["budgets", "set", "--day", "0.000001"]);
    let refused = house.adjutant(&["run", "hello"]);
    assert_eq!(refused.code, Some(7), "{refused}");
    assert!(refused.err.contains("The budget of the workspace for this day is used up"), "{refused}");
    let listed = house.document(&["budgets"]);
    let own = listed["data"].as_array().unwrap().iter().find(|line| line["kind"] == "workspace").unwrap();
    assert_eq!((&own["day"]["spent_microusd"], &own["day"]["limit_microusd"]), (&cost.into(), &1.into()));
    assert!(house.adjutant(&["budgets"]).out.contains(" of $"));
    house.document(&["budgets", "rm"]);
    assert_eq!(house.adjutant(&["run", "hello"]).code, Some(0));
    let nobody = house.adjutant(&["budgets", "set", "--person", "nobody", "--day", "1"]);
    assert!(nobody.code != Some(0) && nobody.err.contains("nobody"), "{nobody}");
}

#[test]
fn what_was_spent_is_shown_and_a_budget_of_the_day_stops_the_next_run() {
    let house = House::new();
    house.priced();
    story(&house);
}

#[test]
fn money_is_the_same_at_the_server() {
    let house = House::new();
    house.priced();
    let server = Server::start(house);
    story(&server.house);
}

#[test]
fn at_other_prices_past_calls_would_cost_something_else_and_what_was_recorded_stays() {
    let house = House::new();
    house.priced();
    assert_eq!(house.adjutant(&["run", "hello"]).code, Some(0));
    let line = house.document(&["usage", "--by", "model"])["data"][0].clone();
    let tokens = |class: &str| line["tokens"][class].as_u64().unwrap();
    let (input, output) = (tokens("input"), tokens("output"));
    assert_eq!(line["cost_microusd"], input + output);
    let config = house.path().join(".config/adjutant/config.toml");
    let dearer = std::fs::read_to_string(&config).unwrap();
    let dearer =
        dearer.replace("input_usd = \"1\"", "input_usd = \"3\"").replace("output_usd = \"1\"", "output_usd = \"5\"");
    house.configure(&dearer);
    let repriced = house.document(&["usage", "--reprice"]);
    assert_eq!((&repriced["calls"], &repriced["recorded_microusd"]), (&1.into(), &(input + output).into()));
    assert_eq!(repriced["repriced_microusd"], input * 3 + output * 5);
    assert_eq!(house.document(&["usage", "--by", "model"])["data"][0], line, "what was recorded stays");
    let before = house.document(&["usage", "--reprice", "--from", "2019-01-01", "--to", "2020-01-01"]);
    assert_eq!((&before["calls"], &before["repriced_microusd"]), (&0.into(), &0.into()));
}
