//! What the code of a run that failed means: the status that a request would have had, and a sentence for its page.

/// Codes of runs, each with its status and what it means. Codes that requests have, too, mean the same here.
const CODES: [(&str, u16, &str); 23] = [
    ("max_turns", 422, "The run reached its limit of model turns; it can be gone on with."),
    ("max_tool_calls", 422, "The run reached its limit of tool calls; it can be gone on with."),
    ("stuck", 422, "The agent made the same call with the same result again and again."),
    ("timeout", 422, "The run reached its limit of time."),
    ("context_overflow", 422, "The task and its newest results do not fit the model's window."),
    ("content_filter", 422, "The provider's content filter cut the answer off."),
    ("policy", 422, "The provider refused the request by its rules."),
    ("output_invalid", 422, "The answer does not fit the schema that was asked for."),
    ("unknown_model", 422, "There is no such model."),
    ("broken", 422, "The model is set up in a way that cannot be used."),
    ("provider_not_allowed", 403, "The workspace does not allow the provider of the model."),
    ("not_runnable", 409, "The agent or the notebook of the run cannot be used any more."),
    ("diverged", 409, "A recorded model was asked for something that was not recorded."),
    ("rate_limited", 429, "Too often; wait, then try again."),
    ("no_credit", 402, "The account at the provider has no credit."),
    ("unauthorized", 502, "The provider does not take the key."),
    ("bad_request", 502, "The provider does not take the request."),
    ("network", 502, "The provider could not be reached."),
    ("truncated", 502, "The answer of the provider broke off."),
    ("unknown", 502, "The provider failed for a reason that it did not name."),
    ("provider_error", 502, "The model's provider refused, failed or broke off."),
    ("provider_timeout", 504, "The model's provider took too long."),
    ("overloaded", 503, "The provider has too much to do; try again in a moment."),
];

/// The status of a run that failed by this code, and what the code means. None for a code that only a log knows.
pub(crate) fn meaning(code: &str) -> Option<(u16, &'static str)> {
    CODES.iter().find(|(known, _, _)| *known == code).map(|(_, status, meaning)| (*status, *meaning))
}
