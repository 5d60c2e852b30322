//! Tools about tools: a call through `use_tool` is recorded, judged and run as the tool it names.

use adjutant_core::run::status::Status;

use super::Stage;

#[tokio::test]
async fn a_call_through_use_tool_is_a_call_of_the_tool_it_names() {
    let stage = Stage::new(&[("/a.md", "inside")]);
    let script = r#"
- when: { turn: 1 }
  calls:
    - { name: search_tools, arguments: { query: "read" } }
    - { name: get_tool_help, arguments: { tool_name: read_file } }
    - { name: use_tool, arguments: { tool_name: read_file, arguments: { path: /a.md } } }
    - { name: use_tool, arguments: { tool_name: read_file, arguments: { path: /../etc/passwd } } }
    - { name: use_tool, arguments: { tool_name: use_tool, arguments: { tool_name: read_file, arguments: { path: /a.md } } } }
    - { name: use_tool, arguments: { tool_name: set_autonomy, arguments: { level: full } } }
- text: done
"#;
    let agent = stage.agent(script).toolsets(["files", "meta"]).build().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    let actions: Vec<_> = report
        .actions
        .iter()
        .map(|action| (action.tool_name.as_str(), action.attempts, action.rule.as_deref()))
        .collect();
    assert_eq!(
        actions,
        [
            ("search_tools", 1, Some("always_allowed")),
            ("get_tool_help", 1, Some("always_allowed")),
            ("read_file", 1, Some("autonomy")),
            ("read_file", 0, Some("invalid_path")),
            ("use_tool", 0, Some("use_tool")),
            ("set_autonomy", 0, Some("tool")),
        ]
    );
}
