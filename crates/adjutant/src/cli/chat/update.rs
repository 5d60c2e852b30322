//! What becomes of the state when something happens, and what is to be done then. Pure: no clock, no network, no terminal.

use adjutant_core::message::Delta;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::composer::Composer;
use super::question::{Answer, Ask};
use super::slash;
use super::state::{Back, Chat, Confirm, Effect, Entry, Msg, Shown, Want};
use super::theme::{Theme, Tone};
use crate::failure::Exit;

/// Lines a key moves the page by, less than a screen so that one sees where one was.
const OVERLAP: usize = 4;

/// Takes in what happened. What is to be done comes back.
pub(super) fn update(chat: &mut Chat, theme: Theme, msg: Msg) -> Vec<Effect> {
    let effects = match msg {
        Msg::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Msg::Key(key) => {
            chat.notice = None;
            pressed(chat, key)
        }
        Msg::Edited(edited) => after_editor(chat, edited),
        other => {
            learn(chat, other);
            Vec::new()
        }
    };
    let size = chat.size;
    if let Some(ask) = chat.asks.front_mut() {
        ask.look(size, theme);
    }
    effects
}

/// Takes in what only changes the picture.
fn learn(chat: &mut Chat, msg: Msg) {
    match msg {
        Msg::Paste(text) => pasted(chat, &text.replace("\r\n", "\n").replace('\r', "\n")),
        Msg::Resize(size) => chat.size = size,
        Msg::Tick => chat.frame = chat.frame.wrapping_add(1),
        Msg::Signal => chat.left = Some(Exit::Interrupted),
        Msg::Opened { id, title, agent } => {
            let (model, mode) = (chat.model.take(), chat.mode);
            *chat = Chat { id, model, mode, ..Chat::new(&agent, chat.size) };
            if !title.is_empty() {
                chat.note(title, Tone::Quiet);
            }
        }
        Msg::Started { chat: id, run } => (chat.id, chat.last_run) = (Some(id), Some(run)),
        Msg::Event(event) => chat.record(&event),
        Msg::Piece(Delta::Text(text)) => chat.live.push_str(&text),
        Msg::Piece(Delta::Thinking(_)) => chat.doing = Some("thinking".to_owned()),
        Msg::Refused { lines, back } => refused(chat, lines, back),
        Msg::Told(lines) => lines.into_iter().for_each(|line| chat.note(line, Tone::Plain)),
        Msg::Choices(picker) => chat.picker = Some(picker),
        Msg::UndoPlanned { run, lines } => {
            lines.into_iter().for_each(|line| chat.note(line, Tone::Plain));
            let question = "Put these files back? [y] yes [n] no".to_owned();
            chat.confirm = Some(Confirm { question, effect: Effect::Undo { run } });
        }
        // These two lead to something to be done.
        Msg::Key(_) | Msg::Edited(_) => {}
    }
}

fn pasted(chat: &mut Chat, text: &str) {
    match chat.asks.front_mut() {
        Some(Ask { because: Some(because), .. }) => because.insert(text),
        // A question is answered by keys that somebody presses, never by what is pasted.
        Some(_) => {}
        None => chat.composer.insert(text),
    }
}

fn refused(chat: &mut Chat, lines: Vec<String>, back: Back) {
    match back {
        Back::Nothing => {}
        Back::Message(text) => {
            chat.run = None;
            chat.doing = None;
            if chat.composer.is_empty() {
                chat.composer = Composer::of(&text);
            }
        }
        Back::Question(id) => {
            if let Some(ask) = chat.asks.iter_mut().find(|ask| ask.id == id) {
                ask.is_answered = false;
            }
        }
        Back::Run => {
            chat.run = None;
            chat.doing = None;
        }
    }
    for line in lines {
        chat.note(line, Tone::Bad);
    }
}

fn pressed(chat: &mut Chat, key: KeyEvent) -> Vec<Effect> {
    let (may_leave, may_edit) = (std::mem::take(&mut chat.may_leave), std::mem::take(&mut chat.may_edit));
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return interrupt(chat, may_leave);
    }
    if chat.picker.is_some() {
        return picked(chat, key);
    }
    if let Some(Confirm { effect, .. }) = chat.confirm.take() {
        return if key.code == KeyCode::Char('y') { vec![effect] } else { Vec::new() };
    }
    let page = Ask::room(chat.size);
    let answer = match chat.asks.front_mut() {
        Some(ask) if !control => ask.key(key, page),
        Some(_) | None => Answer::NotMine,
    };
    match answer {
        Answer::NotMine => {}
        Answer::Nothing | Answer::Decide(_) | Answer::Edit => return answered(chat, answer),
    }
    if chat.asks.is_empty() {
        return if key.code == KeyCode::Esc { escape(chat, may_edit) } else { typed(chat, key) };
    }
    match key.code {
        KeyCode::Esc => cancel(chat),
        _ => Vec::new(),
    }
}

/// A key while somebody chooses.
fn picked(chat: &mut Chat, key: KeyEvent) -> Vec<Effect> {
    let Some(mut picker) = chat.picker.take() else { return Vec::new() };
    match key.code {
        KeyCode::Up => picker.at = picker.at.saturating_sub(1),
        KeyCode::Down => picker.at = (picker.at + 1).min(picker.choices.len().saturating_sub(1)),
        KeyCode::Enter => {
            let Some(choice) = picker.choices.into_iter().nth(picker.at) else { return Vec::new() };
            return match picker.want {
                Want::Chats => slash::open(chat, choice.id),
                Want::Agents => slash::new(chat, &choice.id),
                Want::Models => slash::model(chat, &choice.id),
            };
        }
        KeyCode::Esc => return Vec::new(),
        _ => {}
    }
    chat.picker = Some(picker);
    Vec::new()
}

fn answered(chat: &mut Chat, answer: Answer) -> Vec<Effect> {
    let Some(ask) = chat.asks.front() else { return Vec::new() };
    match answer {
        Answer::Nothing | Answer::NotMine => Vec::new(),
        Answer::Decide(body) => vec![Effect::Decide { approval: ask.id.clone(), body }],
        Answer::Edit => vec![Effect::Edit { arguments: ask.arguments.clone() }],
    }
}

fn after_editor(chat: &mut Chat, edited: Result<Option<String>, String>) -> Vec<Effect> {
    let Some(ask) = chat.asks.front_mut() else { return Vec::new() };
    let answer = match edited {
        Ok(Some(arguments)) => ask.edited(&arguments),
        Ok(None) => {
            ask.hint = Some("Nothing was changed.");
            Answer::Nothing
        }
        Err(why) => {
            chat.note(why, Tone::Bad);
            Answer::Nothing
        }
    };
    answered(chat, answer)
}

/// Ctrl-C: the first one cancels the run, the second one leaves.
fn interrupt(chat: &mut Chat, may_leave: bool) -> Vec<Effect> {
    match &chat.run {
        Some(run) if !run.is_stopping => {
            let effects = cancel(chat);
            chat.notice = Some("It is told to stop. Ctrl-C again leaves.".to_owned());
            effects
        }
        Some(_) => {
            chat.left = Some(Exit::Interrupted);
            Vec::new()
        }
        None if may_leave => {
            chat.left = Some(Exit::Interrupted);
            Vec::new()
        }
        None => {
            chat.composer.take();
            chat.may_leave = true;
            chat.notice = Some("Ctrl-C again leaves.".to_owned());
            Vec::new()
        }
    }
}

/// Tells the run to end.
pub(super) fn cancel(chat: &mut Chat) -> Vec<Effect> {
    match &mut chat.run {
        Some(run) if !run.is_stopping => {
            run.is_stopping = true;
            chat.doing = Some("stopping".to_owned());
            vec![Effect::Cancel { run: run.id.clone() }]
        }
        Some(_) | None => Vec::new(),
    }
}

/// Esc: stops what runs; with nothing to stop, the second one takes up the last message to be edited, and the next leaves it.
fn escape(chat: &mut Chat, may_edit: bool) -> Vec<Effect> {
    if chat.run.is_some() {
        return cancel(chat);
    }
    chat.selected = None;
    if chat.editing.take().is_some() {
        chat.composer.take();
        chat.notice = Some("The last message stays as it is.".to_owned());
        return Vec::new();
    }
    let said = chat.entries.iter().rev().find_map(|entry| match entry {
        Entry::You(text) => Some(text.clone()),
        Entry::Answer(_) | Entry::Fold(_) | Entry::Note { .. } => None,
    });
    let (Some(run), Some(said), None, true) = (&chat.last_run, said, &chat.doing, chat.composer.is_empty()) else {
        return Vec::new();
    };
    if may_edit {
        chat.editing = Some(run.clone());
        chat.composer = Composer::of(&said);
        chat.notice = Some("Enter says this in place of the last message. Esc leaves it as it is.".to_owned());
    } else {
        chat.may_edit = true;
        chat.notice = Some("Esc again edits the last message.".to_owned());
    }
    Vec::new()
}

fn typed(chat: &mut Chat, key: KeyEvent) -> Vec<Effect> {
    let page = usize::from(chat.size.rows).saturating_sub(OVERLAP).max(1);
    let is_empty = chat.composer.is_empty();
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::PageUp => chat.scrolled += page,
        KeyCode::PageDown => chat.scrolled = chat.scrolled.saturating_sub(page),
        KeyCode::Char('d') if control && is_empty => chat.left = Some(Exit::Done),
        KeyCode::Char('o') if control => fold_all(chat),
        KeyCode::Up if is_empty => select(chat, Way::Up),
        KeyCode::Down if is_empty => select(chat, Way::Down),
        KeyCode::Enter if is_empty => toggle(chat),
        KeyCode::Tab => {
            if let Some(whole) = slash::completed(chat.composer.text()) {
                chat.composer = Composer::of(&whole);
            }
        }
        KeyCode::Enter if !key.modifiers.contains(KeyModifiers::ALT) => return send(chat),
        KeyCode::Enter => chat.composer.insert("\n"),
        _ => {
            type_key(&mut chat.composer, key);
        }
    }
    Vec::new()
}

/// A key that changes a text.
pub(super) fn type_key(line: &mut Composer, key: KeyEvent) -> Answer {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('a') if control => line.home(),
        KeyCode::Char('e') if control => line.end(),
        KeyCode::Char('u') if control => line.delete_to_start(),
        KeyCode::Char('w') if control => line.delete_word(),
        KeyCode::Char('j') if control => line.insert("\n"),
        KeyCode::Char(letter) if !control => line.insert(letter.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace => line.backspace(),
        KeyCode::Delete => line.delete(),
        KeyCode::Left => line.left(),
        KeyCode::Right => line.right(),
        KeyCode::Home => line.home(),
        KeyCode::End => line.end(),
        _ => {}
    }
    Answer::Nothing
}

fn send(chat: &mut Chat) -> Vec<Effect> {
    if chat.composer.text().trim().is_empty() {
        return Vec::new();
    }
    let line = chat.composer.text().to_owned();
    if let Some(effects) = slash::run(chat, &line) {
        chat.composer.take();
        chat.editing = None;
        return effects;
    }
    if chat.run.is_some() || chat.doing.is_some() {
        chat.notice = Some("It still works on the last message. Esc stops it.".to_owned());
        return Vec::new();
    }
    let text = chat.composer.take();
    chat.scrolled = 0;
    chat.selected = None;
    chat.doing = Some("sending".to_owned());
    if let Some(run) = chat.editing.take() {
        return vec![Effect::Revise { run, text }];
    }
    let autonomy = chat.mode.autonomy();
    vec![Effect::Send { chat: chat.id.clone(), agent: chat.agent.clone(), text, model: chat.model.clone(), autonomy }]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// Goes to the next step that has more behind it.
fn select(chat: &mut Chat, way: Way) {
    let mut folds = chat.entries.iter().enumerate().filter(|(_, entry)| matches!(entry, Entry::Fold(_)));
    let here = chat.selected;
    chat.selected = match way {
        Way::Up => folds.rfind(|(index, _)| here.is_none_or(|here| *index < here)).map(|(index, _)| index).or(here),
        Way::Down => here.and_then(|here| folds.find(|(index, _)| *index > here).map(|(index, _)| index)),
    };
}

fn toggle(chat: &mut Chat) {
    if let Some(Entry::Fold(fold)) = chat.selected.and_then(|index| chat.entries.get_mut(index)) {
        fold.shown = match fold.shown {
            Shown::Line => Shown::All,
            Shown::All => Shown::Line,
        };
    }
}

fn fold_all(chat: &mut Chat) {
    let folds = chat.entries.iter_mut().filter_map(|entry| match entry {
        Entry::Fold(fold) => Some(fold),
        Entry::You(_) | Entry::Answer(_) | Entry::Note { .. } => None,
    });
    let folds: Vec<_> = folds.collect();
    let shown = if folds.iter().any(|fold| fold.shown == Shown::Line) { Shown::All } else { Shown::Line };
    folds.into_iter().for_each(|fold| fold.shown = shown);
}
