//! Chores of this repository, run as `cargo run -p xtask -- <chore>`. Picks the chore; each has its own file.

mod bench;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo run -p xtask -- <chore>

chores:
  tidy            check the house rules that no compiler knows
  bench [quick]   measure in release; with PostgreSQL where ADJUTANT_TEST_POSTGRES names one
";

fn main() -> anyhow::Result<ExitCode> {
    let chore = std::env::args().nth(1);
    match chore.as_deref() {
        Some("tidy") => tidy::run(repository()),
        Some("bench") => bench::run(repository(), &std::env::args().skip(2).collect::<Vec<_>>()),
        Some(_) | None => {
            eprint!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

/// The repository is the folder above this crate, wherever the command was typed.
fn repository() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}
