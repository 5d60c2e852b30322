//! The front door: reads the command line, runs one command, and tells the shell how it went.

mod agent_file;
mod backup;
mod cli;
mod config;
mod diagnosis;
mod failure;
#[cfg(feature = "faults")]
mod fault;
mod http;
mod instance;
mod log_queue;
mod suggest;
mod warnings;
mod wire;

use std::process::ExitCode;

use clap::Parser;
use config::Environment;
use failure::Failure;

fn main() -> ExitCode {
    forbid_core_dumps();
    raise_file_limit();
    // One provider of cryptography for every connection; a second call would only say that it is there.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let cli = cli::Cli::parse();
    let json = cli.wants_json();
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("The process cannot start its threads: {error}.")))
        .and_then(|runtime| {
            let done = runtime.block_on(cli::execute(cli, Environment::of_process()));
            // A thread may still wait for a key that nobody will press.
            runtime.shutdown_background();
            done
        });
    let exit = done.unwrap_or_else(|failure| {
        cli::report(&failure, json);
        failure.exit
    });
    log_queue::drain();
    ExitCode::from(exit as u8)
}

/// What this process holds in memory, keys among it, is not written to the disk when it dies. Where that cannot be switched
/// off it was never on. The limit is one byte and not none: where dumps are piped to a program, Linux heeds no limit but this
/// one, at which it gives the program nothing; and no core file is as short as a byte.
fn forbid_core_dumps() {
    let none = rustix::process::Rlimit { current: Some(1), maximum: Some(1) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
}

/// Takes as many files as this process may have: every stream and every connection is one, and shells and service managers hand
/// out far fewer until they are asked. Where it may have no more, `doctor` says whether that is enough.
fn raise_file_limit() {
    let files = rustix::process::Resource::Nofile;
    let limit = rustix::process::getrlimit(files);
    let _ = rustix::process::setrlimit(files, rustix::process::Rlimit { current: limit.maximum, ..limit });
}
