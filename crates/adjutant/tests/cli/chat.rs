//! The chat on a real pseudo-terminal: keys go in, and what a terminal would show comes out.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::api::client::{OWNER, Server};
use crate::house::{House, signal};

/// How long something may take until it is on the screen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The chat and the terminal it is on.
struct Sitting {
    child: Child,
    /// Our side of the terminal.
    keys: File,
    /// The other side, kept open so that its settings can be read when the chat is gone.
    line: File,
    shown: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// Every byte that came.
    raw: Vec<u8>,
}

impl Sitting {
    fn at(house: &House, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let line = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&line, size(30, 100)).unwrap();
        let side = || Stdio::from(line.try_clone().unwrap());
        let mut command = house.command(arguments);
        command.env("TERM", "xterm-256color").envs(env.iter().copied());
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let keys = File::from(ours);
        let mut read = keys.try_clone().unwrap();
        let (tell, shown) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = read.read(&mut bytes) {
                if tell.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keys, line, shown, screen: vt100::Parser::new(30, 100, 0), raw: Vec::new() }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn take(&mut self, bytes: Vec<u8>) {
        self.screen.process(&bytes);
        self.raw.extend(bytes);
    }

    /// Comes back once this is on the screen.
    fn see(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.screen.screen().contents().contains(text) {
            match self.shown.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(bytes),
                Err(_) => panic!("`{text}` never came:\n{}", self.screen.screen().contents()),
            }
        }
    }

    /// Waits until it is gone; its number comes back.
    fn gone(&mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        while let Ok(bytes) = self.shown.recv_timeout(Duration::from_millis(200)) {
            self.take(bytes);
        }
        code
    }

    /// Whether the terminal is as a shell needs it.
    fn is_given_back(&self) -> bool {
        let modes = tcgetattr(&self.line).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
            && !self.screen.screen().alternate_screen()
            && !self.screen.screen().hide_cursor()
            && !self.screen.screen().bracketed_paste()
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

#[test]
fn a_token_that_is_typed_is_not_on_the_screen() {
    let server = Server::start(House::new());
    let elsewhere = House::new();
    let mut login = Sitting::at(&elsewhere, &["login", &format!("http://{}", server.address)], &[]);
    login.see("it is not shown");
    login.press(&format!("{OWNER}\r"));
    login.see("Signed in at");
    assert_eq!(login.gone(), Some(0));
    assert!(!String::from_utf8_lossy(&login.raw).contains(OWNER) && login.is_given_back());
}

#[test]
fn a_message_is_answered_after_its_change_was_shown_and_approved() {
    let house = House::new();
    let mut chat = Sitting::at(&house, &["chat"], &[]);
    chat.see("A new chat with guide.");
    chat.press("tidy the welcome notes\r");
    chat.see("[y] once [r] this run [c] this chat [a] always");
    chat.see("-- [ ] buy mlik");
    // Other commands find the server that the chat is.
    let waiting = house.document(&["inbox", "ls"]);
    assert_eq!(waiting["data"].as_array().unwrap().len(), 1, "{waiting}");
    for _ in 0..5 {
        chat.press(" ");
    }
    chat.see("+- [ ] buy milk");
    chat.press("y");
    chat.see("1 file changed");
    chat.see("is tidy now");
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy milk"));
    chat.press("/undo\r");
    chat.see("Put these files back?");
    chat.press("y");
    chat.see("  put back  /todo.md");
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy mlik"));
    chat.press("/cost\r");
    chat.see("$0.00 for 1 run,");
    let file = house.path().join("chat.json");
    chat.press(&format!("/export {}\r", file.display()));
    chat.see("Written to");
    assert!(std::fs::read_to_string(&file).unwrap().contains("tidy the welcome notes"));
    chat.press("/quit\r");
    assert_eq!(chat.gone(), Some(0));
    assert!(chat.is_given_back());
    chat.see("goes on here");
    let mut again = Sitting::at(&house, &["chat", "--continue"], &[]);
    again.see("is tidy now");
    again.press("\u{4}");
    assert_eq!(again.gone(), Some(0));
}

#[test]
fn ctrl_c_cancels_what_runs_and_then_leaves() {
    let house = House::new();
    let mut chat = Sitting::at(&house, &["chat"], &[]);
    chat.see("A new chat with guide.");
    chat.press("tidy the welcome notes\r");
    chat.see("[y] once");
    chat.press("\u{3}");
    chat.see("■ Cancelled");
    chat.press("\u{3}");
    chat.see("Ctrl-C again leaves.");
    chat.press("\u{3}");
    assert_eq!(chat.gone(), Some(130));
    assert!(chat.is_given_back());
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy mlik"));
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let house = House::new();
    let mut chat = Sitting::at(&house, &["chat"], &[]);
    chat.see("A new chat with guide.");
    assert!(!chat.is_given_back());
    signal("TERM", chat.child.id());
    assert_eq!(chat.gone(), Some(130));
    assert!(chat.is_given_back());
}

#[test]
fn a_screen_that_changes_its_size_is_drawn_anew() {
    let house = House::new();
    let mut chat = Sitting::at(&house, &["chat"], &[]);
    chat.see("A new chat with guide.");
    tcsetwinsize(&chat.line, size(10, 60)).unwrap();
    chat.screen.screen_mut().set_size(10, 60);
    // The line is nobody's controlling terminal here, so nobody tells the chat but we.
    signal("WINCH", chat.child.id());
    chat.see("guide · auto");
    chat.press("hello there");
    chat.see("hello there");
    let contents = chat.screen.screen().contents();
    assert!(
        contents.lines().last().is_some_and(|bar| bar.contains("guide · auto") && bar.contains("/help")),
        "{contents}"
    );
    chat.press("\u{3}\u{3}");
    chat.gone();
}

#[test]
fn whoever_wants_no_colour_gets_none() {
    let house = House::new();
    let mut chat = Sitting::at(&house, &["chat"], &[("NO_COLOR", "1")]);
    chat.see("A new chat with guide.");
    chat.press("tidy the welcome notes\r");
    chat.see("[y] once");
    chat.press("\u{3}");
    chat.see("■ Cancelled");
    chat.press("\u{4}");
    chat.gone();
    let text = String::from_utf8_lossy(&chat.raw).into_owned();
    for colour in ["\u{1b}[38;", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"] {
        assert!(!text.contains(colour), "{text:?}");
    }
}

#[test]
fn what_a_model_writes_cannot_steer_the_terminal() {
    let house = House::new();
    house.script("- text: \"before \\e]0;owned\\a\\e[41m after &#27;[45m end\"\n");
    let mut chat = Sitting::at(&house, &["chat"], &[]);
    chat.see("A new chat with guide.");
    chat.press("hello\r");
    chat.see("✔ Done");
    chat.press("\u{4}");
    chat.gone();
    let text = String::from_utf8_lossy(&chat.raw).into_owned();
    for evil in ["\u{1b}]0;owned", "\u{1b}[41m", "\u{1b}[45m", "\u{7}"] {
        assert!(!text.contains(evil), "{text:?}");
    }
}

#[test]
fn told_nothing_it_chats_on_a_terminal_and_explains_itself_elsewhere() {
    let house = House::new();
    let mut chat = Sitting::at(&house, &[], &[]);
    chat.see("A new chat with guide.");
    chat.press("\u{4}");
    assert_eq!(chat.gone(), Some(0));
    let told = house.adjutant(&[]);
    assert_eq!((told.code, told.out.as_str()), (Some(2), ""), "{told}");
    assert!(told.err.contains("Usage: adjutant") && told.err.contains("Talk with an agent"), "{told}");
}

#[test]
fn a_chat_is_begun_with_an_agent_and_gone_on_with_by_its_id() {
    let house = House::new();
    let made = house.adjutant(&["agents", "new", "writer", "--from", "writer", "--yes"]);
    assert_eq!(made.code, Some(0), "{made}");
    let mut chat = Sitting::at(&house, &["chat", "writer"], &[]);
    chat.see("A new chat with writer.");
    chat.press("hello\r");
    chat.see("✔ Done");
    chat.press("\u{4}");
    assert_eq!(chat.gone(), Some(0));
    chat.see("goes on here");
    let shown = chat.screen.screen().contents();
    let id = shown.split("chat ").find_map(|rest| rest.split_once(" goes on here")).unwrap().0.to_owned();
    for arguments in [&["chat", &id][..], &["chat", "--chat", &id]] {
        let mut again = Sitting::at(&house, arguments, &[]);
        again.see("› hello");
        again.press("\u{4}");
        assert_eq!(again.gone(), Some(0));
    }
    let mut nobody = Sitting::at(&house, &["chat", "nobody"], &[]);
    assert_ne!(nobody.gone(), Some(0));
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let house = House::new();
    for arguments in [&["chat"][..], &["chat", "--json"]] {
        let done = house.adjutant(arguments);
        assert_eq!(done.code, Some(2), "{done}");
        assert!(done.err.contains("A chat needs a terminal") && done.err.contains(&house.hint("run")), "{done}");
    }
}
