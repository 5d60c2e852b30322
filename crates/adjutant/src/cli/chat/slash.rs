//! What a line that begins with a slash asks for. The one list of the commands.

use super::state::{Chat, Effect, Mode, Want};
use super::theme::Tone;
use super::update::cancel;
use crate::failure::Exit;

/// One command.
struct Command {
    word: &'static str,
    /// What may follow it.
    more: &'static str,
    does: &'static str,
    act: fn(&mut Chat, &str) -> Vec<Effect>,
}

const COMMANDS: [Command; 19] = [
    Command { word: "help", more: "", does: "what can be typed here", act: |chat, _| help(chat) },
    Command { word: "new", more: "[AGENT]", does: "begin a new chat", act: new },
    Command { word: "chats", more: "", does: "go to another chat", act: |_, _| vec![Effect::List(Want::Chats)] },
    Command { word: "agent", more: "[NAME]", does: "begin a new chat with another agent", act: agent },
    Command { word: "model", more: "[NAME]", does: "let another model answer from now on", act: model },
    Command { word: "plan", more: "", does: "from now on it only reads", act: |chat, _| mode(chat, Mode::Plan) },
    Command {
        word: "ask",
        more: "",
        does: "from now on whatever changes something asks",
        act: |chat, _| mode(chat, Mode::Ask),
    },
    Command {
        word: "auto",
        more: "",
        does: "from now on it acts as freely as the agent may",
        act: |chat, _| mode(chat, Mode::Agent),
    },
    Command { word: "stop", more: "", does: "cancel what runs", act: |chat, _| stop(chat) },
    Command { word: "pause", more: "", does: "hold what runs", act: |chat, _| steer(chat, "pause") },
    Command { word: "resume", more: "", does: "let it go on", act: |chat, _| steer(chat, "resume") },
    Command { word: "fork", more: "[MODEL]", does: "try the last message again in a chat of its own", act: fork },
    Command {
        word: "scope",
        more: "",
        does: "what the agent may do",
        act: |chat, _| vec![Effect::Scope { agent: chat.agent.clone() }],
    },
    Command {
        word: "inbox",
        more: "",
        does: "what waits for you, here and elsewhere",
        act: |_, _| vec![Effect::Inbox],
    },
    Command {
        word: "undo",
        more: "",
        does: "put files back as they were before the last run",
        act: |chat, _| undo(chat),
    },
    Command {
        word: "cost",
        more: "",
        does: "what this chat cost",
        act: |chat, _| of_chat(chat, |chat| Effect::Cost { chat }),
    },
    Command { word: "title", more: "TEXT", does: "give the chat a title", act: title },
    Command { word: "export", more: "[FILE]", does: "write the chat to a file", act: export },
    Command { word: "quit", more: "", does: "leave", act: |chat, _| quit(chat) },
];

/// Does what a line asks for; none if it is no command but something to be said.
pub(super) fn run(chat: &mut Chat, line: &str) -> Option<Vec<Effect>> {
    let rest = line.trim().strip_prefix('/')?;
    let (word, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    // A path is something to be said.
    if word.contains('/') {
        return None;
    }
    let rest = rest.trim();
    match COMMANDS.iter().find(|command| command.word == word) {
        Some(command) if !command.more.is_empty() || rest.is_empty() => Some((command.act)(chat, rest)),
        Some(command) => Some(told(chat, &format!("/{} takes nothing behind it. Nothing was done.", command.word))),
        None => Some(told(chat, &format!("There is no /{word}. /help says what there is."))),
    }
}

/// The commands that begin like what is typed, for whoever is typing.
pub(super) fn like(typed: &str) -> Vec<String> {
    let Some(word) = typed.strip_prefix('/').filter(|word| !word.contains(char::is_whitespace)) else {
        return Vec::new();
    };
    let alike = COMMANDS.iter().filter(|command| command.word.starts_with(word));
    alike.map(|command| format!("/{} {}  {}", command.word, command.more, command.does)).collect()
}

/// What a beginning of a command is completed to; none where it could be several.
pub(super) fn completed(typed: &str) -> Option<String> {
    let word = typed.strip_prefix('/')?;
    let mut alike = COMMANDS.iter().filter(|command| command.word.starts_with(word));
    match (alike.next(), alike.next()) {
        (Some(command), None) => Some(format!("/{}{}", command.word, if command.more.is_empty() { "" } else { " " })),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

fn told(chat: &mut Chat, words: &str) -> Vec<Effect> {
    chat.notice = Some(words.to_owned());
    Vec::new()
}

fn help(chat: &mut Chat) -> Vec<Effect> {
    let widest = COMMANDS.iter().map(|command| command.word.len() + command.more.len()).max().unwrap_or_default() + 2;
    for command in &COMMANDS {
        let name = format!("/{} {}", command.word, command.more);
        chat.note(format!("{name:widest$}  {}", command.does), Tone::Plain);
    }
    for line in [
        "Enter sends, Alt-Enter or Ctrl-J begins a new line. Esc stops what runs. Ctrl-C does, too; again, it leaves.",
        "With nothing typed and nothing running, Esc Esc edits the last message: its answer is then made anew.",
        "With nothing typed: ↑ and ↓ choose a step, Enter opens it, Ctrl-O opens all. PgUp and PgDn turn the page.",
    ] {
        chat.note(line, Tone::Quiet);
    }
    Vec::new()
}

/// Whether something runs, which has to end before one can go elsewhere.
fn is_busy(chat: &mut Chat) -> bool {
    let busy = chat.run.is_some();
    if busy {
        chat.notice = Some("Something still runs here. Esc stops it.".to_owned());
    }
    busy
}

/// Goes to another chat.
pub(super) fn open(chat: &mut Chat, id: String) -> Vec<Effect> {
    if is_busy(chat) { Vec::new() } else { vec![Effect::Open { chat: id }] }
}

pub(super) fn new(chat: &mut Chat, agent: &str) -> Vec<Effect> {
    let agent = if agent.is_empty() { chat.agent.clone() } else { agent.to_owned() };
    if is_busy(chat) { Vec::new() } else { vec![Effect::New { agent }] }
}

fn agent(chat: &mut Chat, name: &str) -> Vec<Effect> {
    if name.is_empty() { vec![Effect::List(Want::Agents)] } else { new(chat, name) }
}

pub(super) fn model(chat: &mut Chat, name: &str) -> Vec<Effect> {
    if name.is_empty() {
        return vec![Effect::List(Want::Models)];
    }
    chat.model = Some(name.to_owned());
    told(chat, &format!("From now on {name} answers."))
}

fn mode(chat: &mut Chat, mode: Mode) -> Vec<Effect> {
    chat.mode = mode;
    told(
        chat,
        match mode {
            Mode::Plan => "From the next message on it only reads.",
            Mode::Ask => "From the next message on whatever changes something asks.",
            Mode::Agent => "From the next message on it acts as freely as the agent may.",
        },
    )
}

fn stop(chat: &mut Chat) -> Vec<Effect> {
    if chat.run.is_none() {
        return told(chat, "Nothing runs.");
    }
    cancel(chat)
}

fn steer(chat: &mut Chat, word: &'static str) -> Vec<Effect> {
    match &chat.run {
        Some(run) => vec![Effect::Steer { run: run.id.clone(), word }],
        None => told(chat, "Nothing runs."),
    }
}

fn undo(chat: &mut Chat) -> Vec<Effect> {
    if is_busy(chat) {
        return Vec::new();
    }
    match &chat.last_run {
        Some(run) => vec![Effect::PlanUndo { run: run.clone() }],
        None => told(chat, "Nothing was done here yet."),
    }
}

fn fork(chat: &mut Chat, model: &str) -> Vec<Effect> {
    if is_busy(chat) {
        return Vec::new();
    }
    let model = (!model.is_empty()).then(|| model.to_owned());
    match &chat.last_run {
        Some(run) => vec![Effect::Fork { run: run.clone(), model }],
        None => told(chat, "Nothing was said here yet."),
    }
}

fn of_chat(chat: &mut Chat, effect: fn(String) -> Effect) -> Vec<Effect> {
    match &chat.id {
        Some(id) => vec![effect(id.clone())],
        None => told(chat, "Nothing was said here yet."),
    }
}

fn title(chat: &mut Chat, title: &str) -> Vec<Effect> {
    match (&chat.id, title.is_empty()) {
        (Some(_), true) => told(chat, "/title needs a text."),
        (Some(id), false) => vec![Effect::Title { chat: id.clone(), title: title.to_owned() }],
        (None, _) => told(chat, "Nothing was said here yet."),
    }
}

fn export(chat: &mut Chat, file: &str) -> Vec<Effect> {
    match &chat.id {
        Some(id) => {
            let file = if file.is_empty() { format!("{id}.json") } else { file.to_owned() };
            vec![Effect::Export { chat: id.clone(), file }]
        }
        None => told(chat, "Nothing was said here yet."),
    }
}

fn quit(chat: &mut Chat) -> Vec<Effect> {
    chat.left = Some(Exit::Done);
    Vec::new()
}
