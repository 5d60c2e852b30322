//! The chat without a terminal and without a server: what happens goes in, the picture and what is to be done come out.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use adjutant_core::message::Delta;

use super::state::{Back, Chat, Choice, Effect, Mode, Msg, Picker, Size, Want};
use super::theme::Theme;
use super::update::update;
use super::view::draw;
use crate::cli::terminal::Style;
use crate::failure::Exit;
use crate::wire::WireEvent;

const SIZE: Size = Size { columns: 72, rows: 24 };
const DIFF: &str = "--- /todo.md\n+++ /todo.md\n@@ -1,2 +1,2 @@\n # To do\n-- [ ] buy mlik\n+- [ ] buy milk\n";

fn theme() -> Theme {
    Theme::of(Style::Plain)
}

/// A chat, and what it asked for so far.
struct Desk {
    chat: Chat,
    asked: Vec<Effect>,
    seq: u64,
}

impl Desk {
    fn new() -> Self {
        Self { chat: Chat::new("guide", SIZE), asked: Vec::new(), seq: 0 }
    }

    fn happens(&mut self, msg: Msg) -> &mut Self {
        self.asked.extend(update(&mut self.chat, theme(), msg));
        self
    }

    fn event(&mut self, name: &'static str, data: Value) -> &mut Self {
        self.seq += 1;
        let mut data = data;
        data["run_id"] = json!("run_01k2m3n4p5q6r7");
        data["ts"] = json!(format!("2026-01-01T00:00:{:02}.000Z", self.seq));
        self.happens(Msg::Event(Box::new(WireEvent { event: name.into(), id: self.seq, data })))
    }

    fn press(&mut self, code: KeyCode) -> &mut Self {
        self.happens(Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn control(&mut self, letter: char) -> &mut Self {
        self.happens(Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)))
    }

    fn write(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            self.press(KeyCode::Char(letter));
        }
        self
    }

    /// A run that has begun.
    fn begun() -> Self {
        let mut desk = Self::new();
        desk.event(
            "interaction_started",
            json!({"chat_id": "chat_01k2m3n4p5q6r7", "model": "demo/guide", "user_message": "tidy my list"}),
        );
        desk
    }

    /// A run that asks about a change.
    fn asking(diff: &str, scopes: &[&str]) -> Self {
        let mut desk = Self::begun();
        desk.event(
            "approval_required",
            json!({
                "approval_id": "approval_1", "call_id": "c1", "tool_name": "write_file", "risk": "medium",
                "tool_input": "{\"path\":\"/todo.md\",\"content\":\"x\"}", "summary": "write_file /todo.md +1 −1",
                "reason": "At this agent's autonomy, writing asks.", "diff": diff, "fingerprint": "f00d",
                "allowed_scopes": scopes, "labels": ["private"],
            }),
        );
        desk
    }

    fn picture(&self) -> String {
        let mut terminal = Terminal::new(TestBackend::new(self.chat.size.columns, self.chat.size.rows)).unwrap();
        terminal.draw(|frame| draw(&self.chat, theme(), frame)).unwrap();
        terminal.backend().to_string()
    }

    fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.asked)
    }
}

const ALL: [&str; 4] = ["once", "run", "chat", "always"];

fn steps(desk: &mut Desk) {
    desk.event("thinking", json!({"kind": "reasoning", "content": "The list has\nspelling mistakes."}));
    desk.event("tool_call", json!({"id": "c0", "tool_name": "read_file", "tool_input": "{\"path\":\"/todo.md\"}"}));
    desk.event(
        "tool_result",
        json!({"id": "c0", "tool_name": "read_file", "tool_output": "# To do\n- [ ] buy mlik", "is_error": false, "allowed": true}),
    );
}

#[test]
fn a_new_chat_says_how_to_begin() {
    insta::assert_snapshot!(Desk::new().picture());
}

#[test]
fn a_message_is_sent_once_and_waits_for_its_end() {
    let mut desk = Desk::new();
    desk.write("tidy my list").press(KeyCode::Enter);
    let send = Effect::Send {
        chat: None,
        agent: "guide".to_owned(),
        text: "tidy my list".to_owned(),
        model: None,
        autonomy: None,
    };
    assert_eq!(desk.take(), [send]);
    desk.write("and more").press(KeyCode::Enter);
    assert_eq!(desk.take(), []);
    assert!(desk.picture().contains("It still works on the last message."));
    assert!(desk.picture().contains("› and more"));
}

#[test]
fn a_message_that_was_not_taken_comes_back() {
    let mut desk = Desk::new();
    desk.write("hello").press(KeyCode::Enter);
    let lines = vec!["error: The budget is used up.".to_owned()];
    desk.happens(Msg::Refused { lines, back: Back::Message("hello".to_owned()) });
    assert_eq!(desk.chat.composer.text(), "hello");
    assert!(desk.picture().contains("error: The budget is used up."));
    desk.take();
    desk.press(KeyCode::Enter);
    assert_eq!(desk.take().len(), 1);
}

#[test]
fn a_run_is_shown_step_by_step_and_its_answer_as_it_is_written() {
    let mut desk = Desk::begun();
    steps(&mut desk);
    desk.happens(Msg::Piece(Delta::Text("## Done\n- **6** spellings\n- one `du".to_owned())));
    insta::assert_snapshot!("as_it_is_written", desk.picture());
    desk.event("answer", json!({"content": "## Done\n- **6** spellings\n- one `duplicate`"}));
    desk.event("usage", json!({"cost_microusd": 12_000}));
    desk.event(
        "interaction_complete",
        json!({"status": "COMPLETED", "files_modified": ["/todo.md"], "cost_microusd": 12_000}),
    );
    insta::assert_snapshot!("when_it_is_done", desk.picture());
}

#[test]
fn what_looked_like_the_answer_and_was_said_on_the_way_becomes_a_step() {
    let mut desk = Desk::begun();
    desk.happens(Msg::Piece(Delta::Text("Now I read them.".to_owned())));
    desk.event("thinking", json!({"kind": "text", "content": "Now I read them."}));
    assert_eq!(desk.picture().matches("Now I read them.").count(), 1);
    assert!(desk.picture().contains("· Now I read them."));
}

#[test]
fn a_step_opens_and_closes() {
    let mut desk = Desk::begun();
    steps(&mut desk);
    assert!(!desk.picture().contains("buy mlik") && !desk.picture().contains("│ spelling mistakes."));
    desk.press(KeyCode::Up).press(KeyCode::Enter);
    insta::assert_snapshot!("an_open_step", desk.picture());
    desk.press(KeyCode::Enter);
    assert!(!desk.picture().contains("buy mlik"));
    desk.control('o');
    assert!(desk.picture().contains("buy mlik") && desk.picture().contains("│ spelling mistakes."));
    desk.control('o');
    assert!(!desk.picture().contains("buy mlik"));
}

#[test]
fn a_question_shows_the_change_and_the_keys() {
    insta::assert_snapshot!(Desk::asking(DIFF, &ALL).picture());
}

#[test]
fn each_key_at_a_question_decides_one_thing_about_what_was_shown() {
    let decided = |letter: char| {
        let mut desk = Desk::asking(DIFF, &ALL);
        desk.press(KeyCode::Char(letter));
        desk.take()
    };
    let decide = |body: Value| vec![Effect::Decide { approval: "approval_1".to_owned(), body }];
    assert_eq!(decided('y'), decide(json!({"decision": "approve", "fingerprint": "f00d"})));
    assert_eq!(decided('r'), decide(json!({"decision": "approve", "scope": "run", "fingerprint": "f00d"})));
    assert_eq!(decided('c'), decide(json!({"decision": "approve", "scope": "chat", "fingerprint": "f00d"})));
    assert_eq!(decided('a'), decide(json!({"decision": "approve", "scope": "always", "fingerprint": "f00d"})));
    assert_eq!(decided('n'), decide(json!({"decision": "reject", "fingerprint": "f00d"})));
    assert_eq!(decided('q'), decide(json!({"decision": "stop", "fingerprint": "f00d"})));
    assert_eq!(decided('e'), [Effect::Edit { arguments: "{\"path\":\"/todo.md\",\"content\":\"x\"}".to_owned() }]);
    for nothing in ['x', 'h', '1'] {
        assert_eq!(decided(nothing), []);
    }
}

#[test]
fn a_no_can_say_why() {
    let mut desk = Desk::asking(DIFF, &ALL);
    desk.press(KeyCode::Char('f')).write("y not now");
    assert_eq!(desk.take(), []);
    assert!(desk.picture().contains("because› y not now"));
    desk.press(KeyCode::Enter);
    let body = json!({"decision": "reject", "message": "y not now", "fingerprint": "f00d"});
    assert_eq!(desk.take(), [Effect::Decide { approval: "approval_1".to_owned(), body }]);
    desk.press(KeyCode::Char('y'));
    assert_eq!(desk.take(), [], "one answer is enough");
}

#[test]
fn a_scope_that_is_not_offered_is_not_taken() {
    let mut desk = Desk::asking(DIFF, &["once"]);
    for wide in ['r', 'c', 'a'] {
        desk.press(KeyCode::Char(wide));
        assert_eq!(desk.take(), []);
    }
    assert!(!desk.picture().contains("[a] always"));
    desk.press(KeyCode::Char('y'));
    assert_eq!(desk.take().len(), 1);
}

#[test]
fn what_does_not_fit_is_not_approved_before_its_end_was_on_the_screen() {
    let long: String = (0..60).map(|number| format!("+line {number}\n")).collect();
    let mut desk = Desk::asking(&long, &ALL);
    for unseen in ['y', 'a', 'e'] {
        desk.press(KeyCode::Char(unseen));
        assert_eq!(desk.take(), []);
    }
    assert!(desk.picture().contains("There is more of it below"));
    for _ in 0..9 {
        desk.press(KeyCode::Char(' '));
    }
    assert!(desk.picture().contains("+line 59"));
    desk.press(KeyCode::Char('y'));
    assert_eq!(desk.take().len(), 1);
}

#[test]
fn what_is_pasted_answers_no_question() {
    let mut desk = Desk::asking(DIFF, &ALL);
    desk.happens(Msg::Paste("y".to_owned()));
    assert_eq!(desk.take(), []);
    let mut desk = Desk::new();
    desk.happens(Msg::Paste("two\r\nlines".to_owned()));
    assert_eq!(desk.take(), []);
    assert_eq!(desk.chat.composer.text(), "two\nlines");
}

#[test]
fn an_answer_from_elsewhere_closes_the_question() {
    let mut desk = Desk::asking(DIFF, &ALL);
    desk.event("approved", json!({"approval_id": "approval_1", "decision": "approve", "decided_by": "usr_1"}));
    assert!(desk.chat.asks.is_empty());
    assert!(desk.picture().contains("✔ approved"));
}

#[test]
fn an_answer_that_was_not_taken_can_be_given_again() {
    let mut desk = Desk::asking(DIFF, &ALL);
    desk.press(KeyCode::Char('y'));
    desk.take();
    desk.happens(Msg::Refused { lines: vec!["error: no".to_owned()], back: Back::Question("approval_1".to_owned()) });
    desk.press(KeyCode::Char('y'));
    assert_eq!(desk.take().len(), 1);
}

#[test]
fn what_the_editor_leaves_is_what_runs() {
    let mut desk = Desk::asking(DIFF, &ALL);
    desk.happens(Msg::Edited(Ok(None)));
    desk.happens(Msg::Edited(Err("No editor is set.".to_owned())));
    desk.happens(Msg::Edited(Ok(Some("{not json".to_owned()))));
    assert_eq!(desk.take(), []);
    desk.happens(Msg::Edited(Ok(Some("{\"path\":\"/b.md\"}".to_owned()))));
    let body = json!({"decision": "edit", "arguments": {"path": "/b.md"}, "fingerprint": "f00d"});
    assert_eq!(desk.take(), [Effect::Decide { approval: "approval_1".to_owned(), body }]);
}

#[test]
fn more_money_and_a_call_in_doubt_are_asked_about_in_their_own_words() {
    let mut desk = Desk::begun();
    desk.event(
        "paused",
        json!({"reason": "budget", "approval_id": "approval_2", "summary": "The run has used up $0.50."}),
    );
    assert!(desk.picture().contains("[y] add it and go on"));
    desk.press(KeyCode::Char('y'));
    let body = json!({"decision": "approve"});
    assert_eq!(desk.take(), [Effect::Decide { approval: "approval_2".to_owned(), body }]);
    desk.event("resumed", json!({"by": "usr_1"}));
    desk.event(
        "in_doubt",
        json!({"approval_id": "approval_3", "call_id": "c7", "tool_name": "send_mail", "reason": "It was started.",
               "summary": "Write to ada@example.org", "tool_input": r#"{"to":"ada@example.org"}"#}),
    );
    let picture = desk.picture();
    for words in ["[h] it happened", "Write to ada@example.org", "\"to\": \"ada@example.org\"", "It was started."] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    desk.press(KeyCode::Char('a'));
    let body = json!({"decision": "abandon"});
    assert_eq!(desk.take(), [Effect::Decide { approval: "approval_3".to_owned(), body }]);
}

#[test]
fn the_first_ctrl_c_cancels_the_run_and_the_second_leaves() {
    let mut desk = Desk::begun();
    desk.control('c');
    assert_eq!(desk.take(), [Effect::Cancel { run: "run_01k2m3n4p5q6r7".to_owned() }]);
    assert_eq!(desk.chat.left, None);
    desk.control('c');
    assert_eq!((desk.take(), desk.chat.left), (vec![], Some(Exit::Interrupted)));
}

#[test]
fn escape_cancels_the_run_once_and_never_leaves() {
    for mut desk in [Desk::begun(), Desk::asking(DIFF, &ALL)] {
        desk.press(KeyCode::Esc).press(KeyCode::Esc).press(KeyCode::Esc);
        assert_eq!((desk.take().len(), desk.chat.left), (1, None));
    }
}

#[test]
fn escape_twice_edits_the_last_message_once_nothing_runs() {
    let mut desk = Desk::begun();
    desk.press(KeyCode::Esc).press(KeyCode::Esc);
    assert_eq!(desk.chat.composer.text(), "", "it still runs");
    desk.take();
    desk.event("interaction_complete", json!({"status": "CANCELLED"}));
    desk.press(KeyCode::Esc);
    assert_eq!(desk.chat.composer.text(), "");
    desk.press(KeyCode::Esc);
    assert_eq!(desk.chat.composer.text(), "tidy my list");
    desk.press(KeyCode::Esc);
    assert_eq!(desk.take(), []);
    assert_eq!(desk.chat.composer.text(), "", "it is left as it was");
    desk.press(KeyCode::Esc).press(KeyCode::Esc).write(" now").press(KeyCode::Enter);
    let (run, text) = ("run_01k2m3n4p5q6r7".to_owned(), "tidy my list now".to_owned());
    assert_eq!(desk.take(), [Effect::Revise { run, text }]);
    // What is typed is not overwritten.
    let mut desk = Desk::begun();
    desk.event("interaction_complete", json!({"status": "COMPLETED"}));
    desk.write("and").press(KeyCode::Esc).press(KeyCode::Esc);
    assert_eq!(desk.chat.composer.text(), "and");
}

#[test]
fn a_message_is_tried_again_elsewhere_and_the_agent_and_the_inbox_are_looked_at() {
    let mut desk = Desk::begun();
    desk.write("/fork").press(KeyCode::Enter);
    assert_eq!(desk.take(), [], "it still runs");
    desk.event("interaction_complete", json!({"status": "COMPLETED"}));
    desk.write("/fork demo/guide").press(KeyCode::Enter);
    let run = "run_01k2m3n4p5q6r7".to_owned();
    assert_eq!(desk.take(), [Effect::Fork { run, model: Some("demo/guide".to_owned()) }]);
    desk.write("/scope").press(KeyCode::Enter).write("/inbox").press(KeyCode::Enter);
    assert_eq!(desk.take(), [Effect::Scope { agent: "guide".to_owned() }, Effect::Inbox]);
}

#[test]
fn with_nothing_to_cancel_ctrl_c_asks_once_more() {
    let mut desk = Desk::new();
    desk.control('c');
    assert_eq!(desk.chat.left, None);
    desk.write("no").control('c');
    assert_eq!(desk.chat.left, None, "something else was typed in between");
    desk.control('c');
    assert_eq!(desk.chat.left, Some(Exit::Interrupted));
    let mut desk = Desk::new();
    desk.control('d');
    assert_eq!(desk.chat.left, Some(Exit::Done));
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    for (columns, rows) in [(1, 1), (3, 2), (20, 4), (300, 90)] {
        let mut desk = Desk::asking(DIFF, &ALL);
        desk.happens(Msg::Resize(Size { columns, rows }));
        desk.picture();
        desk.event("approved", json!({"approval_id": "approval_1", "decision": "approve"}));
        desk.write("a long message that goes on").picture();
    }
}

#[test]
fn no_text_of_a_model_or_a_file_steers_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m&#27;[1m\u{202e}";
    let mut desk = Desk::begun();
    desk.event("thinking", json!({"kind": "text", "content": evil}));
    desk.event(
        "tool_call",
        json!({"id": "c0", "tool_name": evil, "tool_input": format!("{{\"path\":{}}}", json!(evil))}),
    );
    desk.event(
        "tool_result",
        json!({"id": "c0", "tool_name": evil, "tool_output": evil, "is_error": true, "allowed": true}),
    );
    desk.event("answer", json!({"content": format!("{evil}\n```{evil}\n{evil}\n```\n[a]({evil})")}));
    desk.event(
        "approval_required",
        json!({"approval_id": "a", "summary": evil, "reason": evil, "diff": evil, "tool_input": evil}),
    );
    desk.happens(Msg::Piece(Delta::Text(evil.to_owned()))).control('o');
    desk.chat.agent = evil.to_owned();
    desk.chat.notice = Some(evil.to_owned());
    desk.happens(Msg::Told(vec![evil.to_owned()]));
    desk.happens(Msg::Refused { lines: vec![evil.to_owned()], back: Back::Nothing });
    desk.chat.model = Some(evil.to_owned());
    let mut pictures = vec![desk.picture()];
    desk.chat.asks.clear();
    desk.happens(Msg::Resize(Size { columns: 100, rows: 60 }));
    pictures.push(desk.picture());
    let choices = vec![Choice { id: evil.to_owned(), label: evil.to_owned() }];
    desk.happens(Msg::Choices(Picker { want: Want::Chats, choices, at: 0 }));
    pictures.push(desk.picture());
    for picture in pictures {
        let steers = |letter: &char| letter.is_control() && *letter != '\n' || *letter == '\u{202e}';
        assert_eq!(picture.chars().find(steers), None, "{picture}");
    }
}

fn said(line: &str) -> (Desk, Vec<Effect>) {
    let mut desk = Desk::begun();
    desk.event("interaction_complete", json!({"status": "COMPLETED", "cost_microusd": 0}));
    desk.write(line).press(KeyCode::Enter);
    let asked = desk.take();
    (desk, asked)
}

#[test]
fn a_slash_command_asks_for_one_thing() {
    let (chat, run) = ("chat_01k2m3n4p5q6r7".to_owned(), "run_01k2m3n4p5q6r7".to_owned());
    assert_eq!(said("/new").1, [Effect::New { agent: "guide".to_owned() }]);
    assert_eq!(said("/agent research").1, [Effect::New { agent: "research".to_owned() }]);
    assert_eq!(said("/agent").1, [Effect::List(Want::Agents)]);
    assert_eq!(said("/chats").1, [Effect::List(Want::Chats)]);
    assert_eq!(said("/model").1, [Effect::List(Want::Models)]);
    assert_eq!(said("/undo").1, [Effect::PlanUndo { run }]);
    assert_eq!(said("/cost").1, [Effect::Cost { chat: chat.clone() }]);
    assert_eq!(said("/title  A list ").1, [Effect::Title { chat: chat.clone(), title: "A list".to_owned() }]);
    assert_eq!(said("/export").1, [Effect::Export { chat: chat.clone(), file: format!("{chat}.json") }]);
    assert_eq!(said("/export a.json").1, [Effect::Export { chat, file: "a.json".to_owned() }]);
    assert_eq!(said("/quit").0.chat.left, Some(Exit::Done));
    for nothing in ["/nonsense", "/quit now", "/stop", "/resume", "/title"] {
        let (desk, asked) = said(nothing);
        assert_eq!((asked, desk.chat.left), (vec![], None), "{nothing}");
        assert!(desk.chat.notice.is_some(), "{nothing}");
    }
}

#[test]
fn a_path_is_something_to_be_said() {
    assert!(
        matches!(&said("/notes/todo.md is wrong").1[..], [Effect::Send { text, .. }] if text == "/notes/todo.md is wrong")
    );
}

#[test]
fn the_next_message_goes_out_as_it_was_set() {
    let (mut desk, _) = said("/plan");
    desk.write("/model demo/other").press(KeyCode::Enter).write("hello").press(KeyCode::Enter);
    let asked = desk.take();
    assert!(
        matches!(&asked[..], [Effect::Send { model: Some(model), autonomy: Some("plan"), .. }] if model == "demo/other"),
        "{asked:?}"
    );
    assert!(desk.picture().contains("guide · demo/other · plan"));
    assert_eq!((Mode::Ask.autonomy(), Mode::Agent.autonomy()), (Some("low"), None));
}

#[test]
fn while_something_runs_it_can_be_steered_and_not_left_for_another_chat() {
    let mut desk = Desk::begun();
    for line in ["/new", "/agent research", "/undo"] {
        desk.write(line).press(KeyCode::Enter);
        assert_eq!(desk.take(), [], "{line}");
    }
    let run = "run_01k2m3n4p5q6r7".to_owned();
    desk.write("/pause").press(KeyCode::Enter);
    assert_eq!(desk.take(), [Effect::Steer { run: run.clone(), word: "pause" }]);
    desk.write("/stop").press(KeyCode::Enter);
    assert_eq!(desk.take(), [Effect::Cancel { run }]);
}

#[test]
fn an_undo_is_shown_before_it_is_done() {
    let planned = || {
        let (mut desk, _) = said("/undo");
        desk.happens(Msg::UndoPlanned { run: "run_1".to_owned(), lines: vec!["  planned  /todo.md".to_owned()] });
        desk.take();
        desk
    };
    let mut desk = planned();
    assert!(desk.picture().contains("planned  /todo.md") && desk.picture().contains("Put these files back?"));
    desk.press(KeyCode::Char('y'));
    assert_eq!(desk.take(), [Effect::Undo { run: "run_1".to_owned() }]);
    for no in [KeyCode::Enter, KeyCode::Esc, KeyCode::Char('n')] {
        let mut desk = planned();
        desk.press(no).press(KeyCode::Char('y'));
        assert_eq!(desk.take(), []);
    }
}

#[test]
fn a_chat_is_chosen_from_a_list() {
    let mut desk = Desk::new();
    let choice = |id: &str, label: &str| Choice { id: id.to_owned(), label: label.to_owned() };
    let choices = vec![choice("chat_1", "2 h ago  the garden"), choice("chat_2", "3 days ago  the list")];
    desk.happens(Msg::Choices(Picker { want: Want::Chats, choices, at: 0 }));
    desk.press(KeyCode::Down).press(KeyCode::Down);
    insta::assert_snapshot!("a_list_to_choose_from", desk.picture());
    desk.press(KeyCode::Enter);
    assert_eq!(desk.take(), [Effect::Open { chat: "chat_2".to_owned() }]);
    desk.happens(Msg::Opened {
        id: Some("chat_2".to_owned()),
        title: "the list".to_owned(),
        agent: "writer".to_owned(),
    });
    assert_eq!((desk.chat.id.as_deref(), desk.chat.agent.as_str()), (Some("chat_2"), "writer"));
    assert!(desk.chat.picker.is_none() && desk.picture().contains("the list"));
}

#[test]
fn a_command_that_is_being_typed_is_explained_and_completed() {
    let mut desk = Desk::new();
    desk.write("/mo");
    assert!(desk.picture().contains("/model [NAME]  let another model answer from now on"));
    desk.press(KeyCode::Tab);
    assert_eq!(desk.chat.composer.text(), "/model ");
    desk.control('u').write("/").press(KeyCode::Tab);
    assert_eq!(desk.chat.composer.text(), "/");
}

#[test]
fn help_lists_every_command() {
    let (mut desk, _) = said("/help");
    desk.happens(Msg::Resize(Size { columns: 90, rows: 40 }));
    insta::assert_snapshot!("help", desk.picture());
}
