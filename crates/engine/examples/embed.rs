//! An agent inside another program: it reads and tidies the notes of a folder, and asks before it writes.
//!
//! `cargo run -p adjutant-engine --example embed -- FOLDER` uses the files of a folder of yours; without one, samples.

use adjutant_core::run::event::{Decision, Event};
use adjutant_engine::{Agent, EngineError};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]
async fn main() -> Result<(), EngineError> {
    let folder = std::env::args().nth(1).map_or_else(samples, std::path::PathBuf::from);
    let agent = Agent::builder("Tidy")
        .instructions("You keep notes tidy.")
        .notebook(&folder, ["/*.md"])
        .toolsets(["files"])
        .can_write()
        .on_event(|recorded| {
            if let Event::CallStarted(call) = &recorded.event {
                println!("  {} {}", call.tool, call.arguments.text());
            }
        })
        .on_approval(|asked| {
            println!("{}\n{}", asked.summary, asked.diff.as_ref().map(|diff| diff.text()).unwrap_or_default());
            // A real program asks somebody. This one agrees to what can be taken back.
            Decision::Approve
        })
        .build()
        .await?;
    let report = agent.run("tidy the welcome notes").await?;
    println!("{}\n{:?} in {} ms", report.result, report.status, report.metrics.duration_ms);
    Ok(())
}

fn samples() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("adjutant-example-{}", std::process::id()));
    for (path, text) in adjutant_engine::models::demo::sample_files() {
        let file = folder.join(path.trim_start_matches('/'));
        if let Some(parent) = file.parent() {
            let _ = std::fs::create_dir_all(parent);
        }
        let _ = std::fs::write(file, text);
    }
    folder
}
