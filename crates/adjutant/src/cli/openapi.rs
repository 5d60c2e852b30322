//! `openapi`: the description of the HTTP API, as the server serves it.

use super::output::say;
use crate::failure::{Exit, Failure};
use crate::http;

pub(super) fn execute() -> Result<Exit, Failure> {
    let text = serde_json::to_string_pretty(&http::document());
    say(&text.map_err(|error| Failure::other(format!("The description cannot be written: {error}.")))?);
    Ok(Exit::Done)
}
