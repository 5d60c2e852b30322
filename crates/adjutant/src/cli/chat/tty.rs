//! The terminal while the screen is ours: taken in whole, and given back as it was however the process ends.

use std::io::{self, Stdout};
use std::sync::{Mutex, PoisonError};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::cli::output::tell;

/// What was said by threads that fell while the screen was ours: said when it no longer is.
static LATER: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The screen, while it is ours.
pub(super) struct Tty {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Tty {
    /// Takes the screen.
    pub(super) fn take() -> io::Result<Self> {
        give_back_on_panic();
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout())).inspect_err(|_| leave())?;
        Ok(Self { terminal })
    }

    /// Gives the screen to somebody else, such as an editor, for as long as this takes.
    pub(super) fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        leave();
        let done = to();
        enter()?;
        self.terminal.clear()?;
        Ok(done)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        leave();
        for text in LATER.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            tell(&text);
        }
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste).inspect_err(|_| leave())
}

fn leave() {
    // Each for itself: what cannot be undone must not keep the rest.
    let _ = execute!(io::stdout(), DisableBracketedPaste);
    let _ = execute!(io::stdout(), LeaveAlternateScreen, crossterm::cursor::Show);
    let _ = disable_raw_mode();
}

/// What the thread that draws says when it falls is said on the person's own screen. Other threads end only themselves: what
/// they say waits until the screen is given back.
fn give_back_on_panic() {
    let before = std::panic::take_hook();
    let drawing = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == drawing {
            leave();
            before(info);
        } else {
            LATER.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
        }
    }));
}
