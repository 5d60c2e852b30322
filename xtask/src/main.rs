//! Chores of this repository, run as `cargo run -p xtask -- <chore>`. Picks the chore; each has its own file.

mod bench;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

const USAGE: &str = "\
usage: cargo run -p xtask -- <chore>

chores:
  tidy            check the house rules that no compiler knows
  bench [quick]   measure in release; with PostgreSQL where ADJUTANT_TEST_POSTGRES names one
";

fn main() -> anyhow::Result<ExitCode> {
    let chore = std::env::args().nth(1);
    match chore.as_deref() {
        Some("tidy") => tidy::run(&repository()?),
        Some("bench") => bench::run(&repository()?, &std::env::args().skip(2).collect::<Vec<_>>()),
        Some(_) | None => {
            eprint!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

/// The repository is the folder above this crate, wherever the command was typed. Cargo says at run time which checkout that is:
/// several share what is built, so what was so at build time may be another one, and a check of that says nothing about this.
fn repository() -> anyhow::Result<PathBuf> {
    let xtask =
        std::env::var_os("CARGO_MANIFEST_DIR").context("this is run by cargo: cargo run -p xtask -- <chore>")?;
    let above = Path::new(&xtask).parent().context("the crate lies in no folder")?;
    Ok(above.to_owned())
}
