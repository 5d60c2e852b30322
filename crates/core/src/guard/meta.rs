//! Tools about tools. `use_tool` is not a tool of its own: it is judged, recorded and run as the tool it names, one level
//! deep (T1).

use serde_json::Value;

/// Calls a tool by its name.
pub const USE_TOOL: &str = "use_tool";
/// Finds tools by keywords.
pub const SEARCH_TOOLS: &str = "search_tools";
/// Describes one tool.
pub const GET_TOOL_HELP: &str = "get_tool_help";

/// Whether a tool is about other tools.
#[must_use]
pub fn is_meta(tool: &str) -> bool {
    [USE_TOOL, SEARCH_TOOLS, GET_TOOL_HELP].contains(&tool)
}

/// The tool that the arguments of `use_tool` name, with its own arguments. None where they are anything but exactly that, or
/// where the tool is itself about tools: then there is nothing that could be judged.
#[must_use]
pub fn inner(arguments: &Value) -> Option<(&str, &Value)> {
    let fields = arguments.as_object().filter(|fields| fields.len() == 2)?;
    let tool = fields.get("tool_name")?.as_str().filter(|tool| !is_meta(tool))?;
    let arguments = fields.get("arguments").filter(|arguments| arguments.is_object())?;
    Some((tool, arguments))
}

/// The arguments of `use_tool` for a tool: what the model sees of a call that it made that way.
#[must_use]
pub fn outer(tool: &str, arguments: &Value) -> Value {
    serde_json::json!({"tool_name": tool, "arguments": arguments})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t1_use_tool_names_one_tool_one_level_deep() {
        let wanted = json!({"path": "/a"});
        let call = outer("read_file", &wanted);
        assert_eq!(inner(&call), Some(("read_file", &wanted)));
        for wrong in [
            json!({}),
            json!({"tool_name": "read_file"}),
            json!({"tool_name": "read_file", "arguments": "{}"}),
            json!({"tool_name": 7, "arguments": {}}),
            json!({"tool_name": "read_file", "arguments": {}, "confirmed": true}),
            outer("use_tool", &call),
            outer("search_tools", &json!({"query": "x"})),
            outer("get_tool_help", &json!({"tool_name": "read_file"})),
            json!([]),
        ] {
            assert_eq!(inner(&wrong), None, "{wrong}");
        }
    }
}
