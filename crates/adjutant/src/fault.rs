//! For the tests of crashes: a tool whose end only a person can tell, because of the built-in ones none is of that class, and a
//! clock that can be set wrong. Only with the feature `faults`, never in the shipped binary.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use adjutant_core::guard::permit::Permit;
use adjutant_core::label::Labels;
use adjutant_core::time::Time;
use adjutant_core::tool::{Category, Effect, Level, Recovery, ToolDefinition, ToolOutcome, ToolSpec};
use adjutant_engine::tools::{Tool, World};
use adjutant_engine::{Env, Source};
use async_trait::async_trait;
use serde_json::json;

/// The machine's time and chance; the time is off by as many milliseconds as the file says that `ADJUTANT_CLOCK` names.
pub(crate) fn env() -> Env {
    // It belongs to the test and not to the instance, so it is not among the settings.
    match std::env::var_os("ADJUTANT_CLOCK") {
        Some(file) => Env::new(Arc::new(WrongClock(file.into()))),
        None => Env::system(),
    }
}

struct WrongClock(PathBuf);

impl Source for WrongClock {
    fn now(&self) -> Time {
        let off = std::fs::read_to_string(&self.0).ok().and_then(|text| text.trim().parse().ok());
        Time::from_millis(Env::system().now().millis() + off.unwrap_or(0))
    }

    fn fill(&self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(16) {
            piece.copy_from_slice(&Env::system().random::<16>()[..piece.len()]);
        }
    }
}

/// Rings a bell that everybody hears: one line, with the key of the call, at the end of the file that `ADJUTANT_BELL` names.
/// With `ADJUTANT_BELL_HOLD` set it never comes back from that.
pub(crate) struct RingBell(ToolSpec);

impl RingBell {
    pub(crate) fn new() -> Self {
        let definition = ToolDefinition {
            name: "ring_bell".to_owned(),
            description: "Ring the bell, once.".to_owned(),
            schema: json!({
                "type": "object",
                "additionalProperties": false,
                "properties": {"text": {"type": "string", "description": "What it is rung for."}},
                "required": ["text"],
            }),
        };
        Self(ToolSpec {
            category: Category::Memory,
            level: Level::Write,
            effect: Effect::Send,
            undoable: false,
            recovery: Recovery::AskHuman,
            egress: false,
            labels: Labels::NONE,
            ..ToolSpec::undeclared(definition)
        })
    }
}

#[async_trait]
impl Tool for RingBell {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn run(&self, permit: Permit, world: &World) -> ToolOutcome {
        // The bell belongs to the test and not to the instance, so it is not among the settings.
        let Some(bell) = std::env::var_os("ADJUTANT_BELL") else { return ToolOutcome::failed("There is no bell.") };
        let line = format!("{} {}\n", permit.key(), permit.arguments()["text"].as_str().unwrap_or_default());
        // A bell may be a pipe that nobody listens at yet: the wait must not stand in the way of others.
        let fence = world.fence.clone();
        let rung = tokio::task::spawn_blocking(move || {
            let mut bell = std::fs::OpenOptions::new().create(true).append(true).open(bell)?;
            if !fence.is_open() {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            bell.write_all(line.as_bytes())
        });
        match rung.await {
            Ok(Ok(())) if std::env::var_os("ADJUTANT_BELL_HOLD").is_some() => std::future::pending().await,
            Ok(Ok(())) => ToolOutcome::output("The bell has been rung."),
            Ok(Err(late)) if late.kind() == std::io::ErrorKind::TimedOut => {
                ToolOutcome::Failed { message: "It is too late to ring.".to_owned(), retriable: true }
            }
            Ok(Err(error)) => ToolOutcome::failed(format!("The bell cannot be reached: {error}.")),
            Err(_) => ToolOutcome::InDoubt { message: "The bell may have been rung.".to_owned() },
        }
    }
}
