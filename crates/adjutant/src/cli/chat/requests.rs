//! What a slash command asks of the server, and its answer in lines.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use adjutant_core::money::MicroUsd;
use serde_json::{Value, json};

use super::pilot::{Hand, word};
use super::state::{Choice, Msg, Picker, Want};
use crate::cli::words::{ago, count};
use crate::failure::Failure;

/// Whether files are put back, or it is only said which would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undo {
    Plan,
    Real,
}

impl Hand {
    pub(super) async fn new_chat(&self, agent: &str) -> Result<(), Failure> {
        let agent = self.remote.get(&["agents", agent], &[]).await?;
        self.say(Msg::Opened { id: None, title: String::new(), agent: word(&agent["slug"]) }).await;
        Ok(())
    }

    pub(super) async fn list(&self, want: Want) -> Result<(), Failure> {
        let query = [("limit", "100")];
        let page = match want {
            Want::Chats => self.remote.get(&["chats"], &query).await?,
            Want::Agents => self.remote.get(&["agents"], &query).await?,
            Want::Models => self.remote.get(&["models"], &[]).await?,
        };
        let choice = |row: &Value| match want {
            Want::Chats => {
                let label = format!("{:12}  {}", ago(&word(&row["created_at"])), word(&row["title"]));
                Choice { id: word(&row["id"]), label }
            }
            Want::Agents => {
                let label = format!("{:12}  {}", word(&row["slug"]), word(&row["description"]));
                Choice { id: word(&row["slug"]), label }
            }
            Want::Models => Choice { id: word(&row["id"]), label: word(&row["id"]) },
        };
        let choices: Vec<Choice> = page["data"].as_array().into_iter().flatten().map(choice).collect();
        self.say(match choices.is_empty() {
            true => Msg::Told(vec!["There is nothing to choose from.".to_owned()]),
            false => Msg::Choices(Picker { want, choices, at: 0 }),
        })
        .await;
        Ok(())
    }

    pub(super) async fn undo(&self, run: &str, undo: Undo) -> Result<(), Failure> {
        let body = json!({"dry_run": undo == Undo::Plan});
        let report = self.remote.post(&["runs", run, "undo"], &body).await?;
        let files = report["files"].as_array().map(Vec::as_slice).unwrap_or_default();
        let line = |file: &Value| {
            let why = file["why"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
            let outcome = match file["outcome"].as_str() {
                Some("planned") => "would be put back".to_owned(),
                Some("restored") => "put back".to_owned(),
                Some("already_back") => "is as it was".to_owned(),
                Some(_) | None => word(&file["outcome"]),
            };
            format!("  {outcome}  {}{why}", word(&file["path"]))
        };
        let mut lines: Vec<String> = files.iter().map(line).collect();
        let beyond = report["beyond"].as_array().into_iter().flatten();
        lines.extend(beyond.map(|what| format!("  cannot be taken back: {}", word(what))));
        let can_undo = files.iter().any(|file| file["outcome"] == "planned");
        self.say(match (undo, can_undo) {
            (Undo::Plan, true) => Msg::UndoPlanned { run: run.to_owned(), lines },
            (Undo::Plan, false) => {
                lines.push("The last run left no file to put back.".to_owned());
                Msg::Told(lines)
            }
            (Undo::Real, _) => Msg::Told(lines),
        })
        .await;
        Ok(())
    }

    pub(super) async fn cost(&self, chat: &str) -> Result<(), Failure> {
        let stats = self.remote.get(&["chats", chat, "stats"], &[]).await?;
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let counted = |field: &str, one: &str, many: &str| {
            count(usize::try_from(number(&stats[field])).unwrap_or(usize::MAX), one, many)
        };
        let tokens = &stats["token_usage"];
        let line = format!(
            "{} for {}, {} and {}: {} tokens in, {} out.",
            MicroUsd(number(&stats["cost_microusd"])),
            counted("runs", "run", "runs"),
            counted("steps", "turn", "turns"),
            counted("calls", "call", "calls"),
            number(&tokens["input"]),
            number(&tokens["output"]),
        );
        self.say(Msg::Told(vec![line])).await;
        Ok(())
    }

    /// What an agent may do, in words.
    pub(super) async fn scope(&self, agent: &str) -> Result<(), Failure> {
        let agent = self.remote.get(&["agents", agent], &[]).await?;
        let asks = agent["requires_approval"].as_array().into_iter().flatten().map(word).collect::<Vec<_>>();
        let mut lines = vec![
            format!("{} may: {}.", word(&agent["slug"]), word(&agent["reach"])),
            format!("Its autonomy is {}.", word(&agent["autonomy"])),
        ];
        if !asks.is_empty() {
            lines.push(format!("It always asks before {}.", asks.join(", ")));
        }
        self.say(Msg::Told(lines)).await;
        Ok(())
    }

    /// What waits for the person, in any chat.
    pub(super) async fn inbox(&self) -> Result<(), Failure> {
        let page = self.remote.get(&["approvals"], &[("status", "pending"), ("limit", "100")]).await?;
        let line = |item: &Value| format!("{:12}  {}", ago(&word(&item["created_at"])), word(&item["summary"]));
        let mut lines: Vec<String> = page["data"].as_array().into_iter().flatten().map(line).collect();
        if lines.is_empty() {
            lines.push("Nothing waits for you.".to_owned());
        }
        self.say(Msg::Told(lines)).await;
        Ok(())
    }

    pub(super) async fn title(&self, chat: &str, title: &str) -> Result<(), Failure> {
        self.remote.patch(&["chats", chat], &json!({"title": title})).await?;
        self.say(Msg::Told(vec![format!("The chat is called “{title}” now.")])).await;
        Ok(())
    }

    pub(super) async fn export(&self, chat: &str, file: &str) -> Result<(), Failure> {
        let document = self.remote.get(&["chats", chat, "export"], &[]).await?;
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        // What is there already is somebody's.
        let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
        made.and_then(|mut made| writeln!(made, "{text}"))
            .map_err(|error| Failure::other(format!("{file} cannot be written: {error}. Nothing was exported.")))?;
        self.say(Msg::Told(vec![format!("Written to {file}.")])).await;
        Ok(())
    }
}
