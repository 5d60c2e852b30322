//! `--attach`: files that a person shows to an agent. They are read here and kept in the notebook of the chat, from where they
//! go with the message.

use std::path::PathBuf;

use adjutant_core::content::Hash;
use adjutant_core::id::{ChatId, NotebookId};
use adjutant_core::limits::ATTACHMENTS;
use adjutant_engine::attachment_name;
use adjutant_engine::store::row::ChatRow;
use serde_json::{Value, json};

use super::remote::Remote;
use crate::failure::Failure;
use crate::instance::Instance;

/// Letters of a chat's title that come from its first message.
const TITLE: usize = 80;

/// A file to be shown.
pub(super) struct Attachment {
    name: String,
    bytes: Vec<u8>,
}

/// Reads the files, before anything is made for them.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Attachment>, Failure> {
    if paths.len() > ATTACHMENTS {
        return Err(Failure::usage(format!("A message comes with at most {ATTACHMENTS} files. Nothing was started.")));
    }
    let one = |path: &PathBuf| {
        let bytes = std::fs::read(path).map_err(|error| {
            Failure::usage(format!("{} cannot be read: {error}. Nothing was started.", path.display()))
        })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Attachment { name, bytes })
    };
    paths.iter().map(one).collect()
}

/// The title of a chat that begins with this.
pub(super) fn title(task: &str) -> String {
    let first = task.trim().lines().next().unwrap_or_default();
    first.chars().take(TITLE).collect()
}

/// Keeps the files in the notebook of a chat, and says where.
pub(super) async fn keep(instance: &Instance, chat: ChatId, files: Vec<Attachment>) -> Result<Vec<String>, Failure> {
    let (engine, home) = (&instance.engine, &instance.home);
    let row: Option<ChatRow> = engine.store().chat(home.workspace, chat).await?;
    let notebook: NotebookId = row.and_then(|row| row.notebook).ok_or_else(no_notebook)?;
    let mut kept = Vec::new();
    for file in files {
        kept.push(engine.keep_attachment(home.workspace, notebook, home.user, &file.name, file.bytes).await?);
    }
    Ok(kept)
}

/// The same at a server.
pub(super) async fn keep_there(remote: &Remote, chat: &Value, files: Vec<Attachment>) -> Result<Value, Failure> {
    let notebook = chat["notebook_id"].as_str().ok_or_else(no_notebook)?;
    let mut kept = Vec::new();
    for file in files {
        kept.push(json!({"path": keep_one(remote, notebook, file).await?}));
    }
    Ok(Value::Array(kept))
}

async fn keep_one(remote: &Remote, notebook: &str, file: Attachment) -> Result<String, Failure> {
    let plain = attachment_name(&file.name, None);
    let marked = attachment_name(&file.name, Some(&file.bytes));
    let tag = format!("\"{}\"", Hash::of(&file.bytes));
    // Where nothing is, or this very file; what else has its name stays.
    for (name, when) in [
        (&plain, ("if-none-match", "*")),
        (&plain, ("if-match", tag.as_str())),
        (&marked, ("if-none-match", "*")),
        (&marked, ("if-match", tag.as_str())),
    ] {
        match remote.put_file(&["notebooks", notebook, "files", "attachments", name], when, file.bytes.clone()).await {
            Ok(()) => return Ok(format!("/attachments/{name}")),
            Err(failure) if failure.code == "stale_version" => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::other(format!("`{plain}` cannot be kept: another file has its name. Nothing was started.")))
}

fn no_notebook() -> Failure {
    Failure::usage("The agent has no notebook that could hold the files. Nothing was started.")
        .hint("name one with --notebook, or widen the agent's scope")
}
