//! What tools about tools show: what was granted, and nothing else.

use adjutant_core::guard::policy::AgentSpec;
use serde_json::json;

use crate::testing::Stage;

fn stage(spec: AgentSpec) -> Stage {
    let mut stage = Stage::with(&[]);
    stage.grant(AgentSpec { name: "a".to_owned(), ..spec });
    stage
}

#[tokio::test]
async fn a_search_finds_granted_tools_by_all_words() {
    let stage = stage(AgentSpec::default());
    let found = stage.output("search_tools", json!({"query": "file METADATA"})).await;
    assert!(found.starts_with("get_file_metadata (file_read): ") && found.lines().count() == 1, "{found}");
    let all = stage.output("search_tools", json!({"query": "all"})).await;
    assert!(all.contains("read_file") && !all.contains("kv_set") && !all.contains("write_file"), "{all}");
    let none = stage.output("search_tools", json!({"query": "kv_set"})).await;
    assert!(none.starts_with("No tool fits."), "{none}");
    let other = stage.output("search_tools", json!({"query": "all", "category": "memory"})).await;
    assert!(other.starts_with("No tool fits."), "{other}");
}

#[tokio::test]
async fn help_is_given_for_granted_tools_and_the_others_do_not_exist() {
    let stage = stage(AgentSpec { can_write: Some(true), ..AgentSpec::default() });
    let help = stage.output("get_tool_help", json!({"tool_name": "write_file"})).await;
    assert!(help.contains("- path (string, required)") && help.contains("Schema: {"), "{help}");
    let missing = stage.failure("get_tool_help", json!({"tool_name": "no_such_tool"})).await;
    let denied = stage.failure("get_tool_help", json!({"tool_name": "kv_set"})).await;
    assert_eq!(missing, denied);
}

#[tokio::test]
async fn use_tool_never_runs_as_itself() {
    let stage = stage(AgentSpec::default());
    let answer = stage.failure("use_tool", json!({"tool_name": "read_file", "arguments": {"path": "/a"}})).await;
    assert!(answer.contains("Nothing was done."), "{answer}");
}
