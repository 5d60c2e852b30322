//! `agents validate`: read agent files and say everything that is wrong with them. Opens no data directory, loads nothing.

use std::path::PathBuf;

use adjutant_engine::tools::Registry;
use serde_json::json;

use super::summary;
use crate::agent_file;
use crate::cli::Context;
use crate::cli::output::tell;
use crate::cli::terminal::clean;
use crate::cli::words::count;
use crate::failure::{Exit, Failure};
use crate::instance;
use crate::warnings;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn execute(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let known = instance::known(&Registry::builtin());
    let read: Vec<_> = args.files.iter().map(|path| (path, agent_file::read(path, &known))).collect();
    let data: Vec<_> = read
        .iter()
        .map(|(path, result)| match result {
            Ok(file) => json!({"file": path, "valid": true, "slug": file.config.slug, "reach": file.config.reach(), "warnings": warnings::of_agent(&file.config), "problems": []}),
            Err(problems) => {
                let problems: Vec<_> = problems.iter().map(|found| json!({"line": found.line, "detail": found.detail})).collect();
                json!({"file": path, "valid": false, "problems": problems})
            }
        })
        .collect();
    let wrong: Vec<_> = read.iter().filter_map(|(_, result)| result.as_ref().err()).flatten().collect();
    context.print(&json!({"data": data, "valid": wrong.is_empty()}), || {
        let fine = read.iter().filter_map(|(path, result)| Some((path, result.as_ref().ok()?)));
        let style = context.terminal.out;
        let lines = |(path, file): (&&PathBuf, &agent_file::AgentFile)| {
            let mut lines = vec![format!("✔ {}: {} may {}", path.display(), file.config.slug, file.config.reach())];
            lines.extend(summary(&file.config, style).into_iter().map(|line| format!("  {line}")));
            lines
                .extend(warnings::of_agent(&file.config).iter().map(|text| style.warn(&clean(&format!("  ! {text}")))));
            lines
        };
        fine.flat_map(lines).collect()
    });
    if wrong.is_empty() {
        return Ok(Exit::Done);
    }
    if !context.json {
        for problem in &wrong {
            tell(&context.terminal.err.bad(&clean(&problem.to_string())));
        }
        tell(&format!("{}; nothing was loaded", count(wrong.len(), "problem", "problems")));
    }
    Ok(Exit::Usage)
}
