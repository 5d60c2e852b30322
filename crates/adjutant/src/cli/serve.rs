//! `serve`: the server. It takes up runs that are due, serves the page, and drains when it is told to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::audit::{Act, Deed};
use adjutant_engine::models::{Models, Vendor};
use adjutant_engine::{AuditLog, Invited, Rights, Secret, TokenAsk, Worker};
use serde_json::{Map, Value};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::Context;
use super::output::{say, tell};
use super::version::VERSION;
use super::words;
use crate::config::{Config, Environment};
use crate::diagnosis;
use crate::failure::{Exit, Failure};
use crate::http::{self, About, Patient, Place, Server};
use crate::instance::{Beacon, Instance};
use crate::log_queue;

/// How long open requests may take to end after the server was told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// How long Ollama may take to say that it is there: it runs on this machine or not.
const OLLAMA_PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The address to listen on [default: 127.0.0.1:7878]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// What a commit outlasts on SQLite: `full` a power cut, `normal` a crash of the program, which is faster [default: full]
    #[arg(long, value_name = "WORD")]
    durability: Option<String>,
    /// Open the page in a browser
    #[arg(long, overrides_with = "no_open")]
    open: bool,
    /// Do not open the page in a browser
    #[arg(long)]
    no_open: bool,
}

pub(super) async fn execute(mut context: Context, args: Args) -> Result<Exit, Failure> {
    context.flags.listen = args.listen;
    context.flags.durability = args.durability;
    let config = context.config()?;
    // One broken file is no reason to leave everybody else without a server: it is said here and by `doctor`, and its agent
    // stays as it was.
    let instance = context.open("serve").await?;
    let wish = match (args.open, args.no_open) {
        (_, true) => Opening::Never,
        (true, false) => Opening::Always,
        (false, false) => Opening::ToSetUp,
    };
    let served = serve(&context, &config, &instance, wish).await;
    instance.close().await;
    served.map(|()| Exit::Done)
}

/// When the page is opened in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// At each start.
    Always,
    /// At the first start, to set up the instance, where somebody sits in front of a screen.
    ToSetUp,
    Never,
}

impl Opening {
    /// Whether it is opened now.
    const fn is_due(self, is_first_start: bool, is_somebody_there: bool) -> bool {
        match self {
            Self::Always => true,
            Self::ToSetUp => is_first_start && is_somebody_there,
            Self::Never => false,
        }
    }
}

async fn serve(context: &Context, config: &Config, instance: &Instance, opening: Opening) -> Result<(), Failure> {
    let link = first_owner(context, config, instance).await?;
    let listener = Patient::bind(config.listen.value).map_err(|error| unbound(config.listen.value, &error))?;
    let listener = listener.waiting(config.most.stream_patience.value);
    let address = listener.address().map_err(|error| unbound(config.listen.value, &error))?;
    let url = format!("http://{address}");
    instance.note(&format!("serve on {url}"));
    // Nobody should be able to connect before a signal can end it in order.
    let stop = stop_signal()?;
    record_start(config, instance, &url).await?;
    let files = diagnosis::open_files(config);
    if files.state != diagnosis::State::Ok {
        tracing::warn!("{}: {}", files.name, files.detail);
    }
    let worker = instance.engine.start_worker().await?;
    let token = Secret::new(instance.engine.env(), "adj_");
    let beacon = Beacon::light(&config.data.value, &url, &token)?;
    let (close, closing) = watch::channel(false);
    let about = About {
        config: config.clone(),
        agent_problems: instance.agent_problems.clone(),
        models: Arc::clone(&instance.models),
    };
    let server = Server::new(instance.engine.clone(), instance.home, place(config), about, &token, closing);
    greet(context, config, instance, &url, link.as_ref());
    tokio::spawn(look_for_ollama(Arc::clone(&instance.models), ollama_address(context.env.get("OLLAMA_HOST"))));
    let is_somebody_there = context.terminal.screen_out && has_screen(&context.env);
    if opening.is_due(instance.first_start && link.is_some(), is_somebody_there) {
        let way = link.as_ref().map_or_else(String::new, |link| format!("/setup#t={}", link.secret.expose()));
        open_page(&context.env, &format!("{url}{way}"));
    }
    // From the signal on others take up what is due, while what was asked of this node is still answered.
    let leave = worker.closing();
    let stop = async move {
        stop.await;
        leave();
    };
    listen(listener, server, stop, close, config.most.drain.value).await;
    drop(beacon);
    stop_worker(worker).await;
    Ok(())
}

/// Records the start with its settings, none of which shows a secret.
async fn record_start(config: &Config, instance: &Instance, url: &str) -> Result<(), Failure> {
    let settings: Map<String, Value> =
        config.shown().into_iter().map(|(key, value, _)| (key.replace(' ', "_"), Value::from(value))).collect();
    let act = Act::new(Deed::InstanceStarted, None, format!("Adjutant {VERSION} on {url}")).with("settings", settings);
    instance.engine.audit(AuditLog::Instance, act).await?;
    Ok(())
}

fn place(config: &Config) -> Place {
    let public = config.public_url.as_ref().map(|setting| &setting.value);
    Place {
        public_host: public.map(|url| url.host.clone()),
        secure: public.is_some_and(|url| url.secure),
        loopback: config.listen.value.ip().is_loopback(),
        proxies: config.trusted_proxies.iter().flat_map(|setting| &setting.value).copied().collect(),
    }
}

/// Makes sure that somebody owns the instance, or can: by the token of the operator, or by a link that is good once.
async fn first_owner(context: &Context, config: &Config, instance: &Instance) -> Result<Option<Invited>, Failure> {
    let engine = &instance.engine;
    if let Some(token) = bootstrap_token(&context.env)? {
        let ask = TokenAsk { name: "bootstrap".to_owned(), rights: Rights::all(), workspace: None, expires_at: None };
        if !engine.bootstrap(&token, ask).await? {
            tracing::info!("ADJUTANT_BOOTSTRAP_TOKEN is not used: this instance has an owner");
        }
    }
    if engine.is_set_up().await? {
        return Ok(None);
    }
    let address = config.listen.value;
    if !address.ip().is_loopback() {
        let message = format!(
            "Nobody owns this instance yet, so it listens on loopback only, not on {address}. It was not started."
        );
        let hint = "start it on 127.0.0.1 and use the link it prints, or set ADJUTANT_BOOTSTRAP_TOKEN";
        return Err(Failure::usage(message).hint(hint));
    }
    Ok(Some(engine.invite_owner().await?))
}

/// The first token, as the operator chose it.
fn bootstrap_token(env: &Environment) -> Result<Option<Secret>, Failure> {
    let (value, file) = ("ADJUTANT_BOOTSTRAP_TOKEN", "ADJUTANT_BOOTSTRAP_TOKEN_FILE");
    let text = match (env.get(value), env.get(file)) {
        (Some(text), _) => text.to_owned(),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("{file}: {path}: {error}. The server was not started.")))?,
        (None, None) => return Ok(None),
    };
    let token = text.trim();
    if !token.starts_with("adj_") || token.chars().any(|letter| !letter.is_ascii_graphic()) {
        return Err(Failure::usage(format!("{value} has to begin with adj_. The server was not started.")));
    }
    Ok(Some(Secret::shown(token)))
}

/// Serves until the signal comes, and a little longer, so that whoever sends requests here hears from `/readyz` that it should
/// not any more; then lets open requests end, but not for ever.
pub(super) async fn listen(
    listener: Patient,
    server: Server,
    stop: impl Future<Output = ()> + Send + 'static,
    close: watch::Sender<bool>,
    drain: Duration,
) {
    let (stopped, told) = tokio::sync::oneshot::channel();
    let serving = http::serve(listener, server, async move {
        stop.await;
        // Streams end with a hint when to come back.
        let _ = close.send(true);
        tokio::time::sleep(drain).await;
        let _ = stopped.send(());
    });
    let patience = async {
        let _ = told.await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        () = serving => {}
        () = patience => {}
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

fn greet(context: &Context, config: &Config, instance: &Instance, url: &str, link: Option<&Invited>) {
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
        tell(&words::ours("  Try it   in another terminal: adjutant run guide \"tidy the welcome notes\""));
    }
    if let Some(link) = link {
        tell(&format!("  Set up   {url}/setup#t={}   (once, 30 min)", link.secret.expose()));
    }
    // Whoever waits for this line has been told the others.
    log_queue::drain();
    say(&format!("adjutant ready on {url}"));
}

/// Looks once whether Ollama runs on this machine. Nobody waits for it, and it is not stored.
async fn look_for_ollama(models: Arc<Models>, address: String) {
    let Some(ollama) = Vendor::of("ollama") else { return };
    match models.detect(ollama, &address, OLLAMA_PATIENCE).await {
        Ok(count) => tell(&format!(
            "  Found    Ollama at {address} with {}: ollama/NAME",
            words::count(count, "model", "models")
        )),
        Err(error) => tracing::debug!(%error, address, "no Ollama was found on this machine"),
    }
}

/// Where Ollama listens, by the variable it reads itself; what listens everywhere is asked here.
fn ollama_address(host: Option<&str>) -> String {
    let host = host.map(str::trim).filter(|host| !host.is_empty()).unwrap_or("127.0.0.1");
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/').replace("0.0.0.0", "127.0.0.1");
    let bare = rest.parse::<std::net::Ipv6Addr>().map_or(rest.clone(), |address| format!("[{address}]"));
    let named = bare.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if named { format!("{scheme}://{bare}") } else { format!("{scheme}://{bare}:11434") }
}

fn has_screen(env: &Environment) -> bool {
    env.get("DISPLAY").or_else(|| env.get("WAYLAND_DISPLAY")).is_some() || !cfg!(target_os = "linux")
}

/// Opens the page where there is a screen to open it on; a text browser would take the terminal.
fn open_page(env: &Environment, url: &str) {
    if !has_screen(env) {
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

#[cfg(test)]
mod tests {
    use super::{Opening, ollama_address};

    #[test]
    fn the_page_opens_by_itself_only_to_set_up_and_only_for_somebody_who_is_there() {
        assert!(Opening::ToSetUp.is_due(true, true));
        for (is_first_start, is_somebody_there) in [(true, false), (false, true), (false, false)] {
            assert!(!Opening::ToSetUp.is_due(is_first_start, is_somebody_there));
            assert!(Opening::Always.is_due(is_first_start, is_somebody_there));
        }
        assert!(!Opening::Never.is_due(true, true));
    }

    #[test]
    fn ollama_is_looked_for_where_its_own_variable_says() {
        for (host, address) in [
            (None, "http://127.0.0.1:11434"),
            (Some(""), "http://127.0.0.1:11434"),
            (Some("0.0.0.0"), "http://127.0.0.1:11434"),
            (Some("127.0.0.1:9000"), "http://127.0.0.1:9000"),
            (Some("::1"), "http://[::1]:11434"),
            (Some("http://localhost:7000/"), "http://localhost:7000"),
            (Some("https://models.example.com"), "https://models.example.com:11434"),
        ] {
            assert_eq!(ollama_address(host), address);
        }
    }
}
