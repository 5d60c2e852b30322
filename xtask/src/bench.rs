//! Measures in release and prints the tables, one after the other. Asserts nothing: a figure is for a person to compare with
//! the others of the same run.

use std::path::Path;
use std::process::{Command, ExitCode};

/// What is measured, as package and example.
const PARTS: [(&str, &str); 3] =
    [("adjutant-store", "append_rate"), ("adjutant-engine", "guard"), ("adjutant-engine", "bench")];

/// Runs every part; arguments after the chore's name go to each of them.
pub(crate) fn run(repository: &Path, arguments: &[String]) -> anyhow::Result<ExitCode> {
    for (package, example) in PARTS {
        eprintln!("\n== {example} of {package}");
        let mut cargo = Command::new("cargo");
        cargo.current_dir(repository).args(["run", "--quiet", "--release", "-p", package, "--example", example]);
        if example == "bench" {
            cargo.arg("--").args(arguments);
        }
        if !cargo.status()?.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
