//! The shapes that several protocols share: a tool, a call, and a piece of what was said, as the original chat completions
//! protocol writes them.

use std::borrow::Cow;

use adjutant_core::content::Content;
use adjutant_core::id::CallId;
use adjutant_core::tool::ToolDefinition;
use serde::Serialize;
use serde_json::Value;

use crate::wire::talk::{IdForm, readable, wire_id};

/// What calls and tools are called.
const FUNCTION: &str = "function";

/// A tool that the model may call.
#[derive(Serialize)]
pub(super) struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> WireTool<'a> {
    /// One after the other, in their order.
    pub(super) fn all(tools: &'a [ToolDefinition]) -> Vec<Self> {
        let function = |tool: &'a ToolDefinition| WireFunction {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.schema,
        };
        tools.iter().map(|tool| Self { r#type: FUNCTION, function: function(tool) }).collect()
    }
}

/// A call that the model made.
#[derive(Serialize)]
pub(super) struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireCalled<'a>,
}

#[derive(Serialize)]
struct WireCalled<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

impl<'a> WireCall<'a> {
    /// The call with its arguments as the text the model wrote, or what can be read in its place.
    pub(super) fn new(id: &'a CallId, form: IdForm, name: &'a str, arguments: &'a Content) -> Self {
        let function = WireCalled { name, arguments: readable(arguments.text()) };
        Self { id: wire_id(id, form), r#type: FUNCTION, function }
    }
}

/// A piece of what a person said.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
pub(super) struct ImageUrl {
    url: String,
}

impl WirePart<'_> {
    /// A picture, inside its own address.
    pub(super) fn image(media_type: &str, data: &Content) -> Self {
        Self::ImageUrl { image_url: ImageUrl { url: format!("data:{media_type};base64,{}", data.text()) } }
    }
}
