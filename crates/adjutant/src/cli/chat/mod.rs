//! `chat`: a conversation on the whole screen. The state is a value that events change ([`state`], [`update`]); what it asks
//! for is done at a server ([`pilot`]), which is our own where none runs ([`host`]).

mod composer;
mod host;
mod markdown;
mod pilot;
mod question;
mod record;
mod requests;
mod slash;
mod state;
mod theme;
mod tty;
mod update;
mod view;
mod wrap;

#[cfg(test)]
mod tests;

use std::io::IsTerminal;

use crossterm::event::{Event, EventStream};
use futures::StreamExt;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::Receiver;

use self::host::Host;
use self::pilot::Pilot;
use self::state::{Chat, Effect, Msg, Size};
use self::theme::Theme;
use self::tty::Tty;
use self::update::update;
use super::output::tell;
use super::remote::Remote;
use super::run::DEFAULT_AGENT;
use super::session::TICK;
use super::words::{ours, short};
use super::{Context, editor};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The chat to go on with, or as much of its id as no other has; or the agent of a new one [default: a new one]
    #[arg(value_name = "CHAT|AGENT")]
    with: Option<String>,
    /// The chat to go on with, or as much of its id as no other has
    #[arg(long, value_name = "ID", conflicts_with = "with")]
    chat: Option<String>,
    /// Go on with the newest chat
    #[arg(short, long = "continue", conflicts_with_all = ["chat", "with"])]
    newest: bool,
    /// The agent of a new chat
    #[arg(long, default_value = DEFAULT_AGENT, conflicts_with_all = ["chat", "with", "newest"])]
    agent: String,
}

impl Args {
    /// A new chat, as nothing else was said.
    pub(super) fn anew() -> Self {
        Self { with: None, chat: None, newest: false, agent: DEFAULT_AGENT.to_owned() }
    }
}

/// Whether there is a terminal that a chat can be drawn on.
pub(super) fn can_be_drawn(context: &Context) -> bool {
    let is_screen = std::io::stdin().is_terminal() && context.terminal.screen_out;
    is_screen && !context.json && context.env.get("TERM") != Some("dumb")
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    if !can_be_drawn(context) {
        return Err(Failure::usage("A chat needs a terminal to draw on. Nothing was started.")
            .hint("adjutant run AGENT \"task\" works without one; --chat ID goes on in a chat"));
    }
    let (host, remote) = match Remote::found(context).await? {
        Some(remote) => (None, remote),
        None => Host::start(context).await.map(|(host, remote)| (Some(host), remote))?,
    };
    let done = converse(context, remote, args).await;
    if let Some(host) = host {
        host.stop().await;
    }
    let (exit, chat) = done?;
    if let Some(id) = &chat.id {
        tell(&ours(&format!("adjutant chat {} goes on here", short(id))));
    }
    Ok(exit)
}

/// Which chat, then the conversation. What it was comes back.
async fn converse(context: &Context, remote: Remote, args: Args) -> Result<(Exit, Chat), Failure> {
    let (agent, id) = begun(&remote, args).await?;
    let mut screen = Screen::open(context)?;
    let (mut pilot, told) = Pilot::new(remote);
    let mut chat = Chat::new(&agent, screen.size()?);
    if let Some(chat) = id {
        pilot.begin(Effect::Open { chat });
    }
    let exit = screen.show(context, &mut chat, &mut pilot, told).await?;
    Ok((exit, chat))
}

/// The agent of a new chat, and the chat that is there.
async fn begun(remote: &Remote, args: Args) -> Result<(String, Option<String>), Failure> {
    let Args { with, chat, newest, agent } = args;
    if let Some(text) = chat {
        return Ok((agent, Some(remote.chat_id(&text).await?)));
    }
    if let Some(text) = with {
        return match remote.chat_id(&text).await {
            Ok(chat) => Ok((agent, Some(chat))),
            // What is no chat may be an agent; where it is neither, the first answer says more.
            Err(failure) => match remote.get(&["agents", &text], &[]).await {
                Ok(_) => Ok((text, None)),
                Err(_) => Err(failure),
            },
        };
    }
    if newest {
        let page = remote.get(&["chats"], &[("limit", "1")]).await?;
        let newest = page["data"][0]["id"].as_str().map(str::to_owned);
        let none = || Failure::not_found("There is no chat yet.").hint("adjutant chat begins one");
        return Ok((agent, Some(newest.ok_or_else(none)?)));
    }
    // A name that nobody has is better said before there is a screen.
    remote.get(&["agents", &agent], &[]).await?;
    Ok((agent, None))
}

/// The screen and all that can happen at it.
struct Screen {
    tty: Tty,
    theme: Theme,
    keys: EventStream,
    signals: Signals,
}

impl Screen {
    fn open(context: &Context) -> Result<Self, Failure> {
        let signals = Signals::listen().map_err(|error| lost(&error))?;
        let tty = Tty::take().map_err(|error| lost(&error))?;
        Ok(Self { tty, theme: Theme::of(context.terminal.out), keys: EventStream::new(), signals })
    }

    fn size(&self) -> Result<Size, Failure> {
        let size = self.tty.terminal.size().map_err(|error| lost(&error))?;
        Ok(Size { columns: size.width, rows: size.height })
    }

    /// Shows the chat until somebody leaves it.
    async fn show(
        &mut self,
        context: &Context,
        chat: &mut Chat,
        pilot: &mut Pilot,
        mut told: Receiver<Msg>,
    ) -> Result<Exit, Failure> {
        let mut tick = tokio::time::interval(TICK);
        loop {
            self.tty.terminal.draw(|frame| view::draw(chat, self.theme, frame)).map_err(|error| lost(&error))?;
            let msg = tokio::select! {
                key = self.keys.next() => match key {
                    Some(Ok(event)) => message(event),
                    Some(Err(error)) => return Err(lost(&error)),
                    None => Some(Msg::Signal),
                },
                msg = told.recv() => msg,
                () = self.signals.come() => Some(Msg::Signal),
                _ = tick.tick(), if chat.doing.is_some() => Some(Msg::Tick),
            };
            let mut effects = Vec::new();
            effects.extend(msg.map(|msg| update(chat, self.theme, msg)).into_iter().flatten());
            // What else is there already needs no picture of its own.
            while let Ok(msg) = told.try_recv() {
                effects.extend(update(chat, self.theme, msg));
            }
            for effect in effects {
                match effect {
                    Effect::Edit { arguments } => {
                        let edited = self.edit(context, &arguments)?;
                        let more = update(chat, self.theme, Msg::Edited(edited));
                        more.into_iter().for_each(|effect| pilot.begin(effect));
                    }
                    Effect::Open { .. } | Effect::New { .. } | Effect::Fork { .. } => {
                        told = pilot.turn_away();
                        pilot.begin(effect);
                    }
                    other => pilot.begin(other),
                }
            }
            if let Some(exit) = chat.left {
                return Ok(exit);
            }
        }
    }

    /// Gives the screen to the person's editor.
    fn edit(&mut self, context: &Context, arguments: &str) -> Result<Result<Option<String>, String>, Failure> {
        // Two who read the same keys would each get half of them.
        self.keys = EventStream::new();
        tokio::task::block_in_place(|| {
            self.tty.lend(|| editor::edit_arguments(arguments, &context.env)).map_err(|error| lost(&error))
        })
    }
}

fn message(event: Event) -> Option<Msg> {
    match event {
        Event::Key(key) => Some(Msg::Key(key)),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Resize(columns, rows) => Some(Msg::Resize(Size { columns, rows })),
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

fn lost(error: &std::io::Error) -> Failure {
    Failure::other(format!("The terminal cannot be used: {error}. What runs goes on at the next start."))
        .hint("adjutant run works without a screen")
}

/// The signals that end a process.
struct Signals([Signal; 3]);

impl Signals {
    fn listen() -> std::io::Result<Self> {
        let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [one, two, three] = kinds.map(signal);
        Ok(Self([one?, two?, three?]))
    }

    async fn come(&mut self) {
        let [one, two, three] = &mut self.0;
        tokio::select! {
            _ = one.recv() => {}
            _ = two.recv() => {}
            _ = three.recv() => {}
        }
    }
}
