//! Measures in release and prints the tables, one after the other. Asserts nothing: a figure is for a person to compare with
//! the others of the same run.

use std::path::Path;
use std::process::{Command, ExitCode};

/// What is measured, as package and example.
const PARTS: [(&str, &str); 4] = [
    ("adjutant-store", "append_rate"),
    ("adjutant-engine", "guard"),
    ("adjutant-engine", "bench"),
    ("adjutant", "http"),
];

/// Runs every part; arguments after the chore's name go to those that take some. `http` alone measures only that.
pub(crate) fn run(repository: &Path, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let only_http = arguments.iter().any(|word| word == "http");
    for (package, example) in PARTS.into_iter().filter(|(_, example)| !only_http || *example == "http") {
        eprintln!("\n== {example} of {package}");
        let mut cargo = cargo(repository, "run");
        cargo.args(["-p", package, "--example", example, "--"]);
        match example {
            "bench" => cargo.args(arguments),
            "http" => {
                // What is measured is the server that is shipped.
                if !self::cargo(repository, "build").args(["-p", package]).status()?.success() {
                    return Ok(ExitCode::FAILURE);
                }
                let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
                cargo.arg(repository.join(target).join("release/adjutant")).args(arguments)
            }
            _ => &mut cargo,
        };
        if !cargo.status()?.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn cargo(repository: &Path, what: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(repository).args([what, "--quiet", "--release"]);
    cargo
}
