//! `serve`: the server. It takes up runs that are due, serves the page, and drains when it is told to stop.

use std::net::SocketAddr;
use std::time::Duration;

use adjutant_core::audit::{Act, Deed};
use adjutant_engine::{AuditLog, Worker};
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::Context;
use super::output::{say, tell};
use super::version::VERSION;
use crate::config::{Config, Environment};
use crate::failure::{Exit, Failure};
use crate::http;
use crate::instance::Instance;

/// How long open requests may take to end after the server was told to stop.
const DRAIN: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The address to listen on [default: 127.0.0.1:7878]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Open the page in a browser
    #[arg(long, overrides_with = "no_open")]
    open: bool,
    /// Do not open the page in a browser
    #[arg(long)]
    no_open: bool,
}

pub(super) async fn execute(mut context: Context, args: Args) -> Result<Exit, Failure> {
    context.flags.listen = args.listen;
    let config = context.config()?;
    let address = config.listen.value;
    if !address.ip().is_loopback() {
        let message = format!(
            "This version has no sign-in, so it listens on loopback only, not on {address}. It was not started."
        );
        return Err(Failure::usage(message).hint("use 127.0.0.1, and a tunnel (ssh -L) from elsewhere"));
    }
    let instance = context.open_to_drive("serve").await?;
    let served = serve(&context, &config, &instance, args.open && !args.no_open).await;
    instance.close().await;
    served.map(|()| Exit::Done)
}

async fn serve(context: &Context, config: &Config, instance: &Instance, open: bool) -> Result<(), Failure> {
    let listener =
        TcpListener::bind(config.listen.value).await.map_err(|error| unbound(config.listen.value, &error))?;
    let address = listener.local_addr().map_err(|error| unbound(config.listen.value, &error))?;
    let url = format!("http://{address}");
    instance.note(&format!("serve on {url}"));
    // Nobody should be able to connect before a signal can end it in order.
    let stop = stop_signal()?;
    record_start(config, instance, &url).await?;
    let worker = instance.engine.start_worker().await?;
    greet(context, config, instance, &url);
    if open {
        open_page(&context.env, &url);
    }
    let result = listen(listener, instance, stop).await;
    stop_worker(worker).await;
    result.map_err(|error| Failure::other(format!("The server ended: {error}.")))
}

/// Records the start with its settings, none of which shows a secret.
async fn record_start(config: &Config, instance: &Instance, url: &str) -> Result<(), Failure> {
    let settings: Map<String, Value> =
        config.shown().into_iter().map(|(key, value, _)| (key.replace(' ', "_"), Value::from(value))).collect();
    let act = Act::new(Deed::InstanceStarted, None, format!("Adjutant {VERSION} on {url}")).with("settings", settings);
    instance.engine.audit(AuditLog::Instance, act).await?;
    Ok(())
}

/// Serves until the signal comes, then lets open requests end, but not for ever.
async fn listen(
    listener: TcpListener,
    instance: &Instance,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stopped, told) = tokio::sync::oneshot::channel();
    let server = axum::serve(listener, http::router(instance.engine.clone())).with_graceful_shutdown(async move {
        stop.await;
        let _ = stopped.send(());
    });
    let patience = async {
        // An end without a signal is an error of the server itself, which the other branch reports.
        if told.await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        ended = async { server.await } => ended,
        () = patience => Ok(()),
    }
}

async fn stop_worker(worker: Worker) {
    tell("Stopping: runs stay where they are and go on at the next start.");
    worker.stop().await;
}

fn unbound(address: SocketAddr, error: &std::io::Error) -> Failure {
    let failure = Failure::other(format!("The server cannot listen on {address}: {error}. It was not started."));
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            failure.hint("stop what uses it, or choose another with --listen 127.0.0.1:PORT")
        }
        _ => failure,
    }
}

/// Comes back at the first signal to stop; the second one ends the process at once.
fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let failed = |error: std::io::Error| Failure::other(format!("Signals cannot be handled: {error}."));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            interrupt.recv().await;
            std::process::exit(Exit::Interrupted as i32);
        });
    })
}

fn greet(context: &Context, config: &Config, instance: &Instance, url: &str) {
    let style = context.terminal.err;
    tell(&format!("  {} {VERSION}   data {}   {url}", style.bold("Adjutant"), config.data.value.display()));
    let keys: Vec<_> = config
        .providers
        .iter()
        .filter(|provider| provider.missing.is_none())
        .map(|provider| provider.name.as_str())
        .collect();
    let models = if keys.is_empty() {
        "no API key found · the built-in demo model answers (scripted, free)".to_owned()
    } else {
        format!("{} · default {}", keys.join(", "), config.default_model.value)
    };
    tell(&format!("  Models   {models}"));
    if instance.first_start {
        tell("  First start: made the notebook `welcome` with a few sample notes, and the agent `guide`.");
        tell("  Try it   stop the server (Ctrl-C), then: adjutant run guide \"tidy the welcome notes\"");
    }
    say(&format!("adjutant ready on {url}"));
}

/// Opens the page where there is a screen to open it on; a text browser would take the terminal.
fn open_page(env: &Environment, url: &str) {
    if env.get("DISPLAY").or_else(|| env.get("WAYLAND_DISPLAY")).is_none() && cfg!(target_os = "linux") {
        return tell(&format!("  No screen found; open {url} yourself."));
    }
    let url = url.to_owned();
    tokio::task::spawn_blocking(move || {
        let mut options = webbrowser::BrowserOptions::new();
        options.with_suppress_output(true);
        if let Err(error) = webbrowser::open_browser_with_options(webbrowser::Browser::Default, &url, &options) {
            tell(&format!("  The browser could not be opened ({error}); open {url} yourself."));
        }
    });
}
