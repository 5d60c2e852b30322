//! Names with a fixed answer: what every agent may always call, what no model may ever call, and the memory keys that no
//! agent may write. A configuration cannot change these lists.

/// Tools without any outside effect, allowed to every agent: they look at the agent's own tools and state.
pub const ALWAYS: &[&str] =
    &["search_tools", "get_tool_help", "update_scratchpad", "send_heartbeat", "dismiss", "dismiss_all", "whoami"];

/// Names of the control plane that a rule of verbs and things does not see.
const NEVER: &[&str] = &["approve_action", "reject_action", "confirm_action", "decide_action", "halt", "sudo"];

/// What changes something.
const CHANGING: &[&str] = &[
    "activate",
    "add",
    "approve",
    "change",
    "configure",
    "connect",
    "create",
    "deactivate",
    "decide",
    "delete",
    "disable",
    "disconnect",
    "edit",
    "enable",
    "export",
    "grant",
    "impersonate",
    "import",
    "install",
    "invite",
    "issue",
    "make",
    "modify",
    "patch",
    "pause",
    "put",
    "raise",
    "register",
    "reject",
    "remove",
    "rename",
    "reset",
    "restore",
    "resume",
    "revoke",
    "rotate",
    "save",
    "set",
    "toggle",
    "transfer",
    "uninstall",
    "unregister",
    "update",
    "write",
];

/// What makes up the control plane: who may do what, with whose keys, for how much, and the record of it.
const THINGS: &[&str] = &[
    "agent",
    "api_key",
    "api_token",
    "approval",
    "audit",
    "audit_log",
    "autonomy",
    "backup",
    "budget",
    "capability",
    "custom_tool",
    "integration",
    "mcp_server",
    "member",
    "permission",
    "policy",
    "provider_key",
    "retention",
    "role",
    "rule",
    "scope",
    "setting",
    "team",
    "token",
    "tool",
    "toolset",
    "trigger",
    "user",
    "workspace",
];

/// What a tool does that changes nothing, whatever else its name holds.
const READING: &[&str] = &["get", "list", "read", "search", "find", "show", "view", "count", "describe", "propose"];

/// Decisions, and what is decided: both words have other meanings alone.
const DECIDING: &[&str] = &["approve", "decide", "reject"];
const DECIDED: &[&str] = &["action", "call"];

/// What names of tools of other servers begin with.
const SERVER: &str = "mcp__";

/// Things that a model may not even read by a tool.
const SECRET: &[&str] = &["credential", "secret", "password", "master_key"];

/// Memory keys that say who the agent is and what it may do: written there they would only look like policy (T9).
pub const RESERVED_MEMORY: &[&str] = &[
    "agent",
    "approvals",
    "autonomy",
    "custom_instructions",
    "instructions",
    "permissions",
    "policy",
    "system",
    "tools",
    "user.autonomy",
    "user.role",
];

/// Whether every agent may call this tool, whatever it was granted.
#[must_use]
pub fn is_always_allowed(tool: &str) -> bool {
    ALWAYS.contains(&tool)
}

/// Whether this is a tool of the control plane, which no model may call even if a configuration lists it (G7, T2). What a
/// name is about is said by the last words behind what is done to it, or before it where that stands at the end.
#[must_use]
pub fn is_never_callable(tool: &str) -> bool {
    let words: Vec<&str> = tool.split('_').filter(|word| !word.is_empty()).collect();
    if NEVER.contains(&tool) || ends_with(&words, SECRET) {
        return true;
    }
    // Tools of a server are about what that server keeps.
    if tool.starts_with(SERVER) || READING.iter().any(|verb| words.first() == Some(verb)) {
        return false;
    }
    words.iter().enumerate().filter(|(_, word)| CHANGING.contains(word)).any(|(at, verb)| {
        let (before, after) = (words.get(..at).unwrap_or_default(), words.get(at + 1..).unwrap_or_default());
        let thing = if after.is_empty() { before } else { after };
        ends_with(thing, THINGS) || (DECIDING.contains(verb) && ends_with(thing, DECIDED))
    })
}

/// Whether words end with one of these things, of which there may be several.
fn ends_with(words: &[&str], things: &[&str]) -> bool {
    let Some((last, before)) = words.split_last() else { return false };
    let one = singular(last);
    let two = before.last().map(|word| format!("{word}_{one}"));
    things.iter().any(|thing| *thing == one || two.as_deref() == Some(*thing))
}

/// Whether a memory key is one of these words, or lies below one of them.
#[must_use]
pub fn is_reserved_key<'a>(key: &str, words: impl IntoIterator<Item = &'a str>) -> bool {
    let key = key.to_ascii_lowercase();
    words.into_iter().any(|word| key.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The thing in the singular, as far as our own list goes.
fn singular(thing: &str) -> String {
    match thing.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => thing.strip_suffix('s').unwrap_or(thing).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t2_whatever_changes_authority_is_never_callable() {
        for name in [
            "update_agent",
            "create_agent",
            "delete_agents",
            "set_capability",
            "set_capabilities",
            "set_autonomy",
            "create_tool",
            "toggle_custom_tool",
            "register_mcp_server",
            "approve_action",
            "reject_action",
            "set_credential",
            "read_credential",
            "list_credentials",
            "create_api_token",
            "edit_policy",
            "update_policies",
            "export_audit",
            "delete_audit",
            "create_trigger",
            "set_budget",
            "impersonate_user",
            "create_rule",
            "delete_workspace",
            "invite_members",
            "revoke_token",
            "update_settings",
            "connect_integration",
            "create_team",
            "set_retention",
            "restore_backup",
            "halt",
            "update_agent_policy",
            "set_user_role",
            "create_access_token",
            "add_workspace_member",
            "bulk_update_agents",
            "update_agent_scope",
            "approve_pending_action",
            "decide_calls",
            "mcp_server_add",
            "team_member_remove",
            "audit_log_delete",
            "rotate_master_key",
            "get_user_password",
            "mcp__tracker__read_credential",
        ] {
            assert!(is_never_callable(name), "{name}");
        }
    }

    #[test]
    fn t2_reading_and_proposing_and_ordinary_work_stay_callable() {
        for name in [
            "read_file",
            "write_file",
            "create_file",
            "propose_trigger",
            "propose_tool",
            "propose_rule",
            "search_tools",
            "get_tool_help",
            "use_tool",
            "create_task",
            "update_goal",
            "send_email",
            "kv_set",
            "mcp__tracker__create_issue",
            "list_agents",
            "remember",
            "git_commit",
            "schedule_task",
            "update_file_properties",
            "http_request",
            "fetch_web_page",
            "create_user_story",
            "update_team_calendar",
            "approve_leave_request",
            "list_created_users",
            "get_update_settings",
            "mcp__tracker__add_member",
            "team_set_up",
            "set",
            "agent",
            "_",
            "",
        ] {
            assert!(!is_never_callable(name), "{name}");
        }
    }

    #[test]
    fn t9_a_reserved_word_covers_itself_and_what_lies_below_it() {
        let reserved = |key| is_reserved_key(key, RESERVED_MEMORY.iter().copied());
        for key in ["system", "System", "policy.scope", "user.role", "user.role.admin", "tools.x"] {
            assert!(reserved(key), "{key}");
        }
        for key in ["systems", "user", "user.roles", "my.system", "user.name", "policyholder"] {
            assert!(!reserved(key), "{key}");
        }
    }
}
