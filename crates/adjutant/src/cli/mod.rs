//! The command line: one file for each command, and here the tree of them.

mod agents;
mod attach;
mod audit;
mod backtest;
mod backup;
mod budgets;
mod chat;
mod check;
mod clean_log;
mod completions;
mod config;
mod doctor;
mod editor;
mod find;
mod halt;
mod inbox;
mod interrupt;
mod keys;
mod migrate;
mod models;
mod notebooks;
mod openapi;
mod output;
mod people;
mod place;
mod progress;
mod prompt;
mod remote;
mod retention;
mod rules;
mod run;
mod runs;
mod screen;
mod serve;
mod session;
mod steps;
mod terminal;
mod usage;
mod version;
pub(crate) mod words;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use serde_json::Value;

use self::clean_log::CleanLog;
use self::screen::Format;
use self::terminal::Terminal;
use crate::config::{Config, Environment, Flags, LogFormat};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::log_queue;

/// AI agents that act only on your authority: within your orders, with your consent, on the record.
#[derive(Debug, Parser)]
#[command(name = "adjutant", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done · 1 other failure · 2 usage or configuration · 3 the run failed · 4 not signed in or not allowed · 5 it waits for \
    a person · 6 denied, rejected or stopped · 7 budget or rate · 8 unreachable · 9 replay diverged or chain broken · 130 interrupted"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    /// Without a word on a terminal: a chat
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
struct Global {
    /// Where everything is kept [default: $XDG_DATA_HOME/adjutant]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The configuration file [default: $XDG_CONFIG_HOME/adjutant/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// `sqlite` (in the data directory) or postgres://…
    #[arg(long, global = true, value_name = "URL")]
    database_url: Option<String>,
    /// The server to talk to [default: the one that runs on the data directory, if one does]
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,
    /// The workspace that is meant, by id or short name [default: the only one]
    #[arg(short, long = "workspace", id = "in_workspace", global = true, value_name = "NAME")]
    workspace: Option<String>,
    /// What is logged to standard error: off, error, warn, info, debug, trace
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<String>,
    /// JSON on standard output: one document, or one line per event
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    Serve(serve::Args),
    /// Give an agent a task and watch it
    Run(run::Args),
    /// Talk with an agent on the whole screen
    Chat(chat::Args),
    /// Look at runs, follow them, steer them
    Runs(runs::Args),
    /// See what waits for you, and decide
    Inbox(inbox::Args),
    /// See, add and remove standing rules
    Rules(rules::Args),
    /// See, check and import agents
    Agents(agents::Args),
    /// See what was spent
    Usage(usage::Args),
    /// See and set what may be spent
    Budgets(budgets::Args),
    /// See which models can be used, what they cost, and which a strategy would choose
    Models(models::Args),
    /// Keep keys of providers: sealed, and never shown again
    Keys(keys::Args),
    /// Search the record, export it, check that it is whole
    Audit(audit::Args),
    /// Stop everything, or with --workspace one workspace, and let it go on
    Halt(halt::Args),
    /// Judge test cases of policy offline, one JSON line a case
    Check(check::Args),
    /// Judge an agent's past calls again under a draft of it
    Backtest(backtest::Args),
    /// See, make and take away tokens
    Tokens(Noun<people::Tokens>),
    /// See, invite and switch off people
    Users(Noun<people::Users>),
    /// See and make workspaces, and link your own folders
    Ws(Noun<people::Ws>),
    /// Keep a token for a server
    Login(remote::Login),
    /// Write the whole instance into one file, while it runs; the master key is not in it
    Backup(backup::BackupArgs),
    /// Put a backup into an empty data directory, verified, or not at all
    Restore(backup::RestoreArgs),
    /// Move everything to another database: from SQLite to PostgreSQL, or back
    Migrate(migrate::Args),
    /// Say how this instance is
    Doctor(doctor::Args),
    /// See the settings and where they come from
    Config(config::Args),
    /// Print the description of the HTTP API (OpenAPI 3.1)
    Openapi,
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Print the version
    Version,
}

/// What can be done with a kind of thing; without a word for it they are listed.
#[derive(Debug, Args)]
struct Noun<C: Subcommand> {
    #[command(subcommand)]
    command: Option<C>,
}

impl Cli {
    pub(crate) fn wants_json(&self) -> bool {
        self.global.json
    }
}

/// What every command is given.
pub(crate) struct Context {
    pub(crate) env: Environment,
    pub(crate) flags: Flags,
    pub(crate) terminal: Terminal,
    url: Option<String>,
    /// The workspace that every request and every look is about.
    workspace: Option<String>,
    json: bool,
}

impl Context {
    fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }

    fn config(&self) -> Result<Config, Failure> {
        Config::load(&self.flags, &self.env)
    }

    /// Opens the instance for a command that only looks or records a command. Broken agent files are said and no more.
    async fn open(&self, what: &str) -> Result<Instance, Failure> {
        let instance = self.open_in_workspace(what).await?;
        for problem in &instance.agent_problems {
            output::tell(&format!("warning: {problem}"));
        }
        Ok(instance)
    }

    /// Opens the instance for a command that makes runs go on.
    async fn open_to_drive(&self, what: &str) -> Result<Instance, Failure> {
        let instance = self.open_in_workspace(what).await?;
        match instance.require_agents() {
            Ok(()) => Ok(instance),
            Err(failure) => {
                instance.close().await;
                Err(failure)
            }
        }
    }

    /// Opens the instance; what the command does there is done in the workspace that is named.
    async fn open_in_workspace(&self, what: &str) -> Result<Instance, Failure> {
        let mut instance = Instance::open(&self.config()?, what).await?;
        let Some(name) = self.workspace.as_deref() else { return Ok(instance) };
        match instance.enter(name).await {
            Ok(()) => Ok(instance),
            Err(failure) => {
                instance.close().await;
                Err(failure)
            }
        }
    }

    /// Prints the one document of a finite command, or its lines.
    fn print(&self, document: &Value, lines: impl FnOnce() -> Vec<String>) {
        if self.json {
            return output::document(document);
        }
        for line in lines() {
            output::say(&line);
        }
    }
}

/// Runs one command.
///
/// # Errors
/// Why it did not do what it was asked.
pub(crate) async fn execute(cli: Cli, env: Environment) -> Result<Exit, Failure> {
    let Global { data, config, database_url, url, workspace, log, json } = cli.global;
    let terminal = Terminal::of_process(&env);
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let (to, within) = (("--url", url.clone()), ("--workspace", workspace.clone()));
    words::mean(&[("--data", path(&data)), ("--config", path(&config)), to, within]);
    let flags = Flags { config, data, database_url, listen: None, durability: None, log };
    let context = Context { env, flags, terminal, url, workspace, json };
    let command = match cli.command {
        Some(command) => command,
        None if chat::can_be_drawn(&context) => Command::Chat(chat::Args::anew()),
        None => {
            output::tell(&Cli::command().render_help().to_string());
            return Ok(Exit::Usage);
        }
    };
    start_log(&context, Voice::of(&command))?;
    match command {
        Command::Serve(args) => serve::execute(context, args).await,
        Command::Run(args) => run::execute(&context, args).await,
        Command::Chat(args) => chat::execute(&context, args).await,
        Command::Runs(args) => runs::execute(&context, args).await,
        Command::Inbox(args) => inbox::execute(&context, args).await,
        Command::Rules(args) => rules::execute(&context, args).await,
        Command::Agents(args) => agents::execute(&context, args).await,
        Command::Usage(args) => usage::execute(&context, args).await,
        Command::Budgets(args) => budgets::execute(&context, args).await,
        Command::Models(args) => models::execute(&context, args).await,
        Command::Keys(args) => keys::execute(&context, args).await,
        Command::Audit(args) => audit::execute(&context, args).await,
        Command::Halt(args) => halt::execute(&context, args).await,
        Command::Check(args) => check::execute(&context, &args),
        Command::Backtest(args) => backtest::execute(&context, args).await,
        Command::Tokens(noun) => people::tokens(&context, noun.command.unwrap_or(people::Tokens::Ls)).await,
        Command::Users(noun) => people::users(&context, noun.command.unwrap_or(people::Users::Ls)).await,
        Command::Ws(noun) => people::ws(&context, noun.command.unwrap_or(people::Ws::Ls)).await,
        Command::Login(args) => remote::login(&context, args).await,
        Command::Backup(args) => backup::backup(&context, args).await,
        Command::Restore(args) => backup::restore(&context, args).await,
        Command::Migrate(args) => migrate::execute(&context, args).await,
        Command::Doctor(args) => doctor::execute(&context, args).await,
        Command::Config(args) => config::execute(&context, &args),
        Command::Openapi => openapi::execute(),
        Command::Completions(args) => completions::execute(&args),
        Command::Version => Ok(version::execute(&context)),
    }
}

/// How much a command says in its log where nobody says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    /// What it does.
    Serves,
    /// What goes wrong.
    Works,
    /// Nothing on the screen that it draws on.
    Draws,
}

impl Voice {
    fn of(command: &Command) -> Self {
        match command {
            Command::Serve(_) => Self::Serves,
            Command::Chat(_) => Self::Draws,
            _ => Self::Works,
        }
    }
}

/// Sends the log to standard error, as far as it is wanted.
fn start_log(context: &Context, voice: Voice) -> Result<(), Failure> {
    let default = match voice {
        // On a screen, requests would push away what a person has to read there.
        Voice::Serves if context.terminal.live => "info,adjutant::http::frame=warn",
        Voice::Serves => "info",
        // What becomes of a call of a model is a step of the run, and shown as that.
        Voice::Works | Voice::Draws => "warn,adjutant_engine::asking=error",
    };
    // Settings that cannot be read are the command's to report.
    let config = context.config().ok();
    let format = config.as_ref().and_then(|config| config.log_format.as_ref()).map_or(LogFormat::Text, |set| set.value);
    let wanted = config.and_then(|config| config.log).map_or_else(|| default.to_owned(), |log| log.value);
    let wanted = if voice == Voice::Draws && context.terminal.interactive { "off".to_owned() } else { wanted };
    let filter = tracing_subscriber::EnvFilter::try_new(&wanted)
        .map_err(|error| Failure::usage(format!("The log level `{wanted}` is not one: {error}.")))?;
    let coloured = context.terminal.err == terminal::Style::Coloured;
    if voice == Voice::Serves {
        log_queue::start(format);
        // The usual words about it would be written by the thread that stopped, which must not wait for a reader.
        std::panic::set_hook(Box::new(|stopped| tracing::error!("{stopped}")));
    }
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| CleanLog(log_queue::Writer));
    // A second start in one process would only happen in a test, and there the first one serves.
    let _ = match format {
        LogFormat::Text => subscriber.with_ansi(coloured).try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).with_current_span(false).try_init(),
    };
    Ok(())
}

/// Says why a command did not do what it was asked.
pub(crate) fn report(failure: &Failure, json: bool) {
    if json {
        return output::tell(&failure.problem().to_string());
    }
    for line in failure.lines() {
        output::tell(&terminal::clean(&line));
    }
}
