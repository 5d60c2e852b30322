//! `runs show --seen N`: what the model saw in one of its calls, and how large each part is.

use adjutant_engine::Frames;
use serde_json::Value;

use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::terminal::{Style, clean};
use crate::failure::Failure;

/// The request as a document.
pub(super) async fn document(place: &Place, run: &str, n: usize, frames: Frames) -> Result<Value, Failure> {
    match place {
        Place::Here(instance) => {
            let run = find::run(instance, run).await?;
            let seen = instance.engine.seen(instance.home.workspace, run, n, frames).await?;
            Ok(serde_json::to_value(&seen).unwrap_or_default())
        }
        Place::There(remote) => {
            let run = remote.run_id(run).await?;
            let wanted: &[_] = match frames {
                Frames::Shown => &[("frames", "true")],
                Frames::LeftOut => &[],
            };
            remote.get(&["runs", &run, "model-calls", &n.to_string()], wanted).await
        }
    }
}

/// The same for a person.
pub(super) fn lines(seen: &Value, style: Style) -> Vec<String> {
    let text = |value: &Value| clean(value.as_str().unwrap_or_default());
    let proof =
        if seen["same"] == true { "as it was sent" } else { "NOT what was sent: the program has changed since" };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let tools: Vec<_> = list(&seen["tools"]).iter().map(text).collect();
    let sizes = &seen["sizes"];
    let mut lines = vec![
        format!("call {} · turn {} · {} · {proof}", seen["n"], seen["turn"], text(&seen["model"])),
        style.dim(&format!(
            "system {} bytes, {} tokens · tools {} bytes, {} tokens ({}) · messages {} bytes, {} tokens · about {} tokens in all{} · {} bytes left out",
            sizes["system_bytes"],
            sizes["system_tokens"],
            sizes["tools_bytes"],
            sizes["tools_tokens"],
            tools.join(", "),
            sizes["messages_bytes"],
            sizes["messages_tokens"],
            sizes["estimated_tokens"],
            if sizes["exact"] == true { ", by its tokenizer" } else { "" },
            seen["dropped_bytes"],
        )),
        style.bold("system"),
        text(&seen["system"]),
    ];
    for message in list(&seen["messages"]) {
        for part in list(&message["parts"]) {
            let tool = part["tool"].as_str().map(|tool| format!(" {}", clean(tool))).unwrap_or_default();
            let head = format!(
                "{} · {}{tool} · {} bytes, {} tokens",
                text(&message["role"]),
                text(&part["kind"]),
                part["bytes"],
                part["tokens"]
            );
            lines.extend([style.bold(&head), text(&part["text"])]);
        }
    }
    if let Some(frames) = seen["frames"].as_str() {
        lines.push(style.bold("over the wire"));
        lines.extend(frames.lines().map(clean));
    }
    lines
}
