//! Measures in release and prints the tables, one after the other. Judges no figure: it is for a person to compare with the others
//! of the same run. A part that fails does not stop those after it; what failed is said in the end.

use std::path::Path;
use std::process::{Command, ExitCode};

/// What is measured, as package and example, and whether it measures the server that is shipped.
const PARTS: [(&str, &str, Of); 5] = [
    ("adjutant-store", "append_rate", Of::Itself),
    ("adjutant-engine", "guard", Of::Itself),
    ("adjutant-engine", "bench", Of::Server),
    ("adjutant", "http", Of::Server),
    ("adjutant", "load", Of::Server),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Itself,
    Server,
}

/// Runs every part, or those that are named; the other words go to them.
pub(crate) fn run(repository: &Path, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let is_part = |word: &String| PARTS.iter().any(|(_, example, _)| example == word);
    let (named, words): (Vec<_>, Vec<_>) = arguments.iter().partition(|word| is_part(word));
    let mut failed = Vec::new();
    for (package, example, of) in PARTS {
        if !named.is_empty() && !named.iter().any(|word| *word == example) {
            continue;
        }
        eprintln!("\n== {example} of {package}");
        let mut cargo = cargo(repository, "run");
        cargo.args(["-p", package, "--example", example, "--"]);
        if of == Of::Server {
            if !self::cargo(repository, "build").args(["-p", "adjutant"]).status()?.success() {
                failed.push(example);
                continue;
            }
            let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
            cargo.arg(repository.join(target).join("release/adjutant"));
        }
        if !cargo.args(&words).status()?.success() {
            failed.push(example);
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("\nbench: failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

fn cargo(repository: &Path, what: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(repository).args([what, "--quiet", "--release"]);
    cargo
}
