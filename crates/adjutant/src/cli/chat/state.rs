//! What the screen shows: what was said and done, what is asked, what is typed. Data only; [`super::update`] changes it and
//! [`super::view`] draws it.

use std::collections::VecDeque;

use adjutant_core::message::Delta;
use adjutant_core::money::MicroUsd;
use crossterm::event::KeyEvent;
use serde_json::Value;

use super::composer::Composer;
use super::question::Ask;
use super::theme::Tone;
use crate::cli::steps::Steps;
use crate::failure::Exit;
use crate::wire::WireEvent;

/// Something that was said or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// A person's message.
    You(String),
    /// What the agent answered, in markdown.
    Answer(String),
    /// One line of a step, with more behind it.
    Fold(Fold),
    /// One line.
    Note { line: String, tone: Tone },
}

/// One line, with more behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fold {
    /// The call it is about.
    pub(super) call: Option<String>,
    pub(super) line: String,
    pub(super) tone: Tone,
    pub(super) detail: String,
    pub(super) shown: Shown,
}

/// How much of a step is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Line,
    All,
}

/// A run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) id: String,
    /// Whether it was told to end.
    pub(super) is_stopping: bool,
}

/// How freely the next runs act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// As the agent may.
    Agent,
    /// Reading is free, everything else asks.
    Ask,
    /// It only reads.
    Plan,
}

impl Mode {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Agent => "auto",
            Self::Ask => "ask",
            Self::Plan => "plan",
        }
    }

    /// What the server calls it; none where nothing is lowered.
    pub(super) const fn autonomy(self) -> Option<&'static str> {
        match self {
            Self::Agent => None,
            Self::Ask => Some("low"),
            Self::Plan => Some("plan"),
        }
    }
}

/// The size of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

/// What a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Chats,
    Agents,
    Models,
}

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) id: String,
    pub(super) label: String,
}

/// A list to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picker {
    pub(super) want: Want,
    pub(super) choices: Vec<Choice>,
    pub(super) at: usize,
}

/// A question of ours, and what is done after a yes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Confirm {
    pub(super) question: String,
    pub(super) effect: Effect,
}

/// Everything the screen shows.
pub(super) struct Chat {
    pub(super) size: Size,
    /// None until something was said.
    pub(super) id: Option<String>,
    pub(super) agent: String,
    /// The model that was chosen here, in place of the agent's.
    pub(super) model: Option<String>,
    /// The model of the last run.
    pub(super) served: String,
    pub(super) mode: Mode,
    pub(super) entries: Vec<Entry>,
    /// What the model writes at the moment.
    pub(super) live: String,
    pub(super) steps: Steps,
    /// What goes on at the moment.
    pub(super) doing: Option<String>,
    pub(super) run: Option<Run>,
    pub(super) last_run: Option<String>,
    pub(super) asks: VecDeque<Ask>,
    pub(super) composer: Composer,
    /// The step that Enter opens.
    pub(super) selected: Option<usize>,
    /// Lines below the screen.
    pub(super) scrolled: usize,
    pub(super) spent: MicroUsd,
    /// What can be chosen from, while somebody chooses.
    pub(super) picker: Option<Picker>,
    /// What is done if somebody says yes.
    pub(super) confirm: Option<Confirm>,
    /// A word about what was just typed.
    pub(super) notice: Option<String>,
    /// Whether Ctrl-C was just pressed with nothing to cancel.
    pub(super) may_leave: bool,
    /// Whether Esc was just pressed with nothing to stop.
    pub(super) may_edit: bool,
    /// The run whose message is being edited.
    pub(super) editing: Option<String>,
    /// Where the thing that moves is.
    pub(super) frame: usize,
    /// How it ended, once somebody left.
    pub(super) left: Option<Exit>,
}

impl Chat {
    pub(super) fn new(agent: &str, size: Size) -> Self {
        Self {
            size,
            id: None,
            agent: agent.to_owned(),
            model: None,
            served: String::new(),
            mode: Mode::Agent,
            entries: Vec::new(),
            live: String::new(),
            steps: Steps::default(),
            doing: None,
            run: None,
            last_run: None,
            asks: VecDeque::new(),
            composer: Composer::default(),
            selected: None,
            scrolled: 0,
            spent: MicroUsd::ZERO,
            picker: None,
            confirm: None,
            notice: None,
            may_leave: false,
            may_edit: false,
            editing: None,
            frame: 0,
            left: None,
        }
    }

    pub(super) fn note(&mut self, line: impl Into<String>, tone: Tone) {
        self.entries.push(Entry::Note { line: line.into(), tone });
    }
}

/// Something that happened.
#[derive(Debug)]
pub(super) enum Msg {
    Key(KeyEvent),
    Paste(String),
    Resize(Size),
    /// A moment went by.
    Tick,
    /// The system tells the process to end.
    Signal,
    /// Another chat; a new one has no id yet.
    Opened {
        id: Option<String>,
        title: String,
        agent: String,
    },
    /// A message was taken.
    Started {
        chat: String,
        run: String,
    },
    Event(Box<WireEvent>),
    Piece(Delta),
    /// Something was not done.
    Refused {
        lines: Vec<String>,
        back: Back,
    },
    /// What was asked for.
    Told(Vec<String>),
    /// What can be chosen from.
    Choices(Picker),
    /// What an undo of a run would do.
    UndoPlanned {
        run: String,
        lines: Vec<String>,
    },
    /// What the editor left of the arguments.
    Edited(Result<Option<String>, String>),
}

/// What goes back to where it was when something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Back {
    Nothing,
    /// The message, so that it can be said again.
    Message(String),
    /// The question, so that it can be answered again.
    Question(String),
    /// The run is not followed any more.
    Run,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// Say this in the chat, or in a new one with the agent.
    Send {
        chat: Option<String>,
        agent: String,
        text: String,
        model: Option<String>,
        autonomy: Option<&'static str>,
    },
    /// Say this in place of the message that a run answered.
    Revise {
        run: String,
        text: String,
    },
    /// Begin a chat that tries the message of a run again.
    Fork {
        run: String,
        model: Option<String>,
    },
    /// Say what an agent may do.
    Scope {
        agent: String,
    },
    /// Say what waits for the person.
    Inbox,
    Cancel {
        run: String,
    },
    Decide {
        approval: String,
        body: Value,
    },
    /// Let the person change the arguments in their editor.
    Edit {
        arguments: String,
    },
    /// Go to another chat.
    Open {
        chat: String,
    },
    /// Begin a new chat.
    New {
        agent: String,
    },
    List(Want),
    Steer {
        run: String,
        word: &'static str,
    },
    /// Say what an undo would do.
    PlanUndo {
        run: String,
    },
    Undo {
        run: String,
    },
    Cost {
        chat: String,
    },
    Title {
        chat: String,
        title: String,
    },
    Export {
        chat: String,
        file: String,
    },
}
