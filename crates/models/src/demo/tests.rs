//! The tour of the first minute, and the ways it can go wrong: the demo model against small tools that behave.

use std::collections::BTreeMap;

use adjutant_core::message::{Delta, Message, Role};
use serde_json::Value;

use super::*;
use crate::view::tests::{continue_with, request, with_tools};

const TOOLS: &[(&str, &[&str])] = &[
    ("list_files", &["path", "pattern", "recursive", "limit"]),
    ("read_file", &["path"]),
    ("write_file", &["path", "content"]),
    ("create_file", &["path", "content", "template"]),
    ("search_content", &["query"]),
    ("kv_get", &["key"]),
    ("kv_set", &["key", "value"]),
];

/// A notebook in memory, and what to say to those who want to write.
struct World {
    files: BTreeMap<String, String>,
    kept: BTreeMap<String, String>,
    refusal: Option<&'static str>,
    tools: &'static [(&'static str, &'static [&'static str])],
    called: Vec<String>,
}

impl World {
    fn new() -> Self {
        let files = sample_files().iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        let (kept, refusal, called) = (BTreeMap::new(), None, Vec::new());
        Self { files: files.collect(), kept, refusal, tools: TOOLS, called }
    }

    fn run(&mut self, call: &RawCall) -> (String, bool) {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        self.called.push(format!("{} {}", call.name, text("path")).trim_end().to_owned());
        let path = text("path");
        match (call.name.as_str(), self.refusal) {
            ("list_files", _) => (self.list(&path, arguments["recursive"] == true), false),
            ("read_file", _) => match self.files.get(&path) {
                Some(text) if text.is_empty() => ("(the file is empty)".to_owned(), false),
                Some(text) => (text.clone(), false),
                None => ("no such file".to_owned(), true),
            },
            ("write_file" | "create_file", Some(why)) => (why.to_owned(), !why.starts_with("Not run")),
            ("create_file", None) if self.files.contains_key(&path) => ("it is there already".to_owned(), true),
            ("write_file" | "create_file", None) => {
                self.files.insert(path, text("content"));
                ("written".to_owned(), false)
            }
            ("search_content", _) => {
                let query = text("query").to_lowercase();
                let hits = self.files.iter().filter(|(_, text)| text.to_lowercase().contains(&query));
                let found: String = hits.map(|(path, _)| format!("{path}: …\n")).collect();
                (if found.is_empty() { "Nothing found.".to_owned() } else { found }, false)
            }
            ("kv_get", _) => match self.kept.get(&text("key")) {
                Some(value) => (value.clone(), false),
                None => ("there is no such key".to_owned(), true),
            },
            ("kv_set", _) => {
                self.kept.insert(text("key"), text("value"));
                ("kept".to_owned(), false)
            }
            (other, _) => panic!("{other} was not shown"),
        }
    }

    fn list(&self, folder: &str, recursive: bool) -> String {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let below = self.files.keys().filter_map(|path| path.strip_prefix(&prefix));
        let mut names: Vec<_> = below
            .flat_map(|rest| match rest.split_once('/') {
                Some((folder, _)) if recursive => vec![format!("{prefix}{folder}/"), format!("{prefix}{rest}")],
                Some((folder, _)) => vec![format!("{prefix}{folder}/")],
                None => vec![format!("{prefix}{rest}")],
            })
            .collect();
        names.sort();
        names.dedup();
        names.join("\n")
    }

    /// Lets the model work until it has nothing more to call; the last thing it says.
    async fn ask(&mut self, request: &mut ModelRequest, said: &str) -> String {
        request.messages.push(Message::text(Role::User, said));
        for _ in 0..8 {
            let answer = Demo::default().answer(request, &DeltaSink::none()).await.unwrap();
            assert!(answer.usage.is_some_and(|usage| usage.input > 0 && usage.output > 0));
            let results: Vec<_> = answer.calls.iter().map(|call| self.run(call)).collect();
            let results: Vec<_> = results.iter().map(|(output, is_error)| (output.as_str(), *is_error)).collect();
            continue_with(request, &answer, &results);
            if answer.calls.is_empty() {
                return answer.text;
            }
        }
        panic!("the model never came to an end: {:?}", self.called);
    }

    async fn say(&mut self, said: &str) -> String {
        let mut request = with_tools(request(&[]), self.tools);
        self.ask(&mut request, said).await
    }
}

const TIDY_TODO: &str = "\
# To do

- [ ] ! renew the bicycle insurance before it ends
- [ ] buy milk
- [ ] answer the letter from the library
- [ ] book a table for eight friends

## Some day

- [ ] learn to bake bread
- [ ] repair the wobbly chair, tomorrow or the day after
";

#[tokio::test]
async fn tidying_reads_the_notes_and_rewrites_only_the_list_that_needs_it() {
    let mut world = World::new();
    let before = world.files.clone();
    let said = world.say("tidy the welcome notes").await;
    assert_eq!(world.called.first().map(String::as_str), Some("list_files /"));
    assert_eq!(world.called.get(1).map(String::as_str), Some("read_file /todo.md"));
    assert_eq!(world.called.last().map(String::as_str), Some("write_file /todo.md"));
    assert_eq!(world.called.len(), 1 + before.len() + 1);
    assert_eq!(world.files["/todo.md"], TIDY_TODO);
    assert!(before.iter().all(|(path, text)| path == "/todo.md" || world.files[path] == *text));
    assert!(said.contains("mlik → milk") && said.contains("4 done items removed"), "{said}");
    assert!(world.say("tidy the welcome notes").await.contains("nothing to tidy"));
}

#[tokio::test]
async fn a_rejected_change_is_taken_as_a_no_and_something_smaller_is_offered() {
    let mut world = World::new();
    world.refusal = Some("A person rejected this call. It was not run. They said: keep the done ones");
    let mut request = with_tools(request(&[]), TOOLS);
    let said = world.ask(&mut request, "tidy the welcome notes").await;
    assert!(said.contains("You said no") && said.contains("keep the done ones"), "{said}");
    assert_eq!(world.files["/todo.md"], sample_files()[4].1);
    world.refusal = None;
    let said = world.ask(&mut request, "then tidy it, but keep the done items").await;
    assert!(world.files["/todo.md"].contains("- [x] water the tomatoes"), "{said}");
    assert!(!said.contains("done item"), "{said}");
}

#[tokio::test]
async fn what_it_offers_after_a_no_is_done_when_it_comes_as_the_answer() {
    let mut world = World::new();
    world.refusal = Some("Not run. The person answered instead: only fix the spelling");
    let said = world.say("tidy the welcome notes").await;
    let proposed = world.called.iter().filter(|call| call.starts_with("write_file")).count();
    assert_eq!(proposed, 2, "once all of it, once the spelling alone: {:?}", world.called);
    assert_eq!(said.matches("You said no").count(), 1, "{said}");
}

#[tokio::test]
async fn a_denied_or_failed_change_is_explained() {
    let mut world = World::new();
    world.refusal = Some("Refused: /todo.md is not yours. Nothing was done.");
    let said = world.say("tidy the welcome notes").await;
    assert!(said.contains("The rules do not let me write `/todo.md`"), "{said}");
    world.refusal = Some("Not run. The person answered instead: leave it");
    let said = world.say("tidy the welcome notes").await;
    assert!(said.contains("it is as it was") && said.contains("leave it"), "{said}");
    world.refusal = Some("the disk is full");
    let said = world.say("tidy the welcome notes").await;
    assert!(said.contains("Writing `/todo.md` did not work. It said: the disk is full"), "{said}");
}

#[tokio::test]
async fn it_works_on_whatever_is_in_the_file() {
    let mut world = World::new();
    world.files = BTreeMap::from([("/lists/todo.md".to_owned(), "* [x] gone\n* [ ] teh rest".to_owned())]);
    world.tools = &[("list_files", &["path"]), ("read_file", &["path"]), ("write_file", &["path", "content"])];
    let said = world.say("tidy up please").await;
    assert_eq!(world.files["/lists/todo.md"], "- [ ] the rest\n", "{said}");
    assert_eq!(
        world.called,
        ["list_files /", "list_files /lists", "read_file /lists/todo.md", "write_file /lists/todo.md"]
    );
}

#[tokio::test]
async fn an_empty_or_cut_file_is_never_written_back() {
    let mut world = World::new();
    let cut = "- [x] teh first\n… 90 of 91 lines are not shown; continue with offset_line 2";
    world.files = BTreeMap::from([("/todo.md".to_owned(), cut.to_owned()), ("/empty.md".to_owned(), String::new())]);
    assert!(world.say("tidy the notes").await.contains("nothing to tidy"));
    assert!(!world.called.iter().any(|call| call.starts_with("write_file")), "{:?}", world.called);
}

#[tokio::test]
async fn what_was_written_is_told_even_if_what_was_read_has_left_the_conversation() {
    let mut request = with_tools(request(&["tidy the notes"]), TOOLS);
    let mut said = crate::view::tests::answer("");
    let call = |name: &str, arguments: &str| RawCall { id: None, name: name.into(), arguments: arguments.into() };
    said.calls = vec![call("list_files", r#"{"path":"/"}"#)];
    continue_with(&mut request, &said, &[("/todo.md", false)]);
    said.calls = vec![call("read_file", r#"{"path":"/todo.md"}"#)];
    continue_with(&mut request, &said, &[("[output of 9000 bytes dropped]", false)]);
    let answer = Demo::default().answer(&request, &DeltaSink::none()).await.unwrap();
    assert!(answer.calls.is_empty(), "a note about a text is not the text: {answer:?}");
    said.calls = vec![call("write_file", r#"{"path":"/todo.md","content":"x"}"#)];
    continue_with(&mut request, &said, &[("Wrote /todo.md (1 lines, 1 bytes).", false)]);
    let answer = Demo::default().answer(&request, &DeltaSink::none()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.calls.len()), ("`/todo.md` is written.", 0));
}

#[tokio::test]
async fn only_tools_that_are_shown_are_called() {
    let mut world = World::new();
    world.tools = &[("list_files", &["path", "recursive"]), ("read_file", &["path"])];
    let said = world.say("tidy the welcome notes").await;
    assert!(said.contains("mlik → milk") && said.contains("`write_file`"), "{said}");
    world.tools = &[];
    for said in [
        "tidy the notes",
        "summarise the notes",
        "search lemon",
        "what files are here",
        "create a note about x",
        "remember that x",
        "what do you remember",
        "read todo.md",
    ] {
        let answer = world.say(said).await;
        assert!(answer.contains("which this agent does not have"), "{said}: {answer}");
    }
}

#[tokio::test]
async fn a_summary_is_offered_and_then_saved_on_request() {
    let mut world = World::new();
    let mut request = with_tools(request(&[]), TOOLS);
    let said = world.ask(&mut request, "summarise the notes").await;
    assert!(said.contains("(`/recipe.md`)") && said.contains("7 open items"), "{said}");
    assert!(!world.files.contains_key("/summary.md"));
    let said = world.ask(&mut request, "yes").await;
    assert!(said.contains("`/summary.md`"), "{said}");
    assert!(world.files["/summary.md"].starts_with("# Summary of the notes\n\n- **To do** (`/todo.md`): "));
    world.ask(&mut request, "tidy everything").await;
    world.ask(&mut request, "save the summary").await;
    assert_eq!(world.called.last().map(String::as_str), Some("write_file /summary.md"));
    world.refusal = Some("rejected");
    assert!(world.ask(&mut request, "save the summary").await.contains("nothing was saved"));
}

#[tokio::test]
async fn the_small_tricks_use_their_tools() {
    let mut world = World::new();
    let said = world.say("search for the long table").await;
    assert!(said.contains("/meeting.md"), "{said}");
    assert!(world.say("search for zeppelins").await.contains("nothing about \"zeppelins\""));
    assert!(world.say("what files are here?").await.contains("- `/projects/garden.md`"));
    assert!(world.say("read the recipe").await.contains("lentil soup without lemon"));
    assert!(world.say("create a note about Winter tyres").await.contains("`/winter-tyres.md`"));
    assert!(world.files["/winter-tyres.md"].starts_with("# Winter tyres\n"));
    assert!(world.say("create a note about winter tyres").await.contains("it is there already"));
    assert!(world.say("what do you remember?").await.contains("Nothing yet"));
    world.say("remember that the key is blue").await;
    world.say("remember to call").await;
    assert_eq!(world.say("what do you remember?").await, "I remember:\n\n- the key is blue\n- call");
}

#[tokio::test]
async fn it_says_what_it_is_and_what_it_can_do() {
    let mut world = World::new();
    for said in ["hello", "what can you do", "prove that there are infinitely many primes", ""] {
        let answer = world.say(said).await;
        assert!(answer.contains("demo model") && answer.contains("tidy the welcome notes"), "{said}: {answer}");
    }
    assert!(world.called.is_empty());
}

#[tokio::test(start_paused = true)]
async fn text_is_streamed_word_by_word_at_the_pace_that_is_set() {
    let (sink, mut pieces) = DeltaSink::channel();
    let began = tokio::time::Instant::now();
    let demo = Demo { pace: Some(Duration::from_millis(10)) };
    let answer = demo.answer(&request(&["thanks"]), &sink).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_millis(30));
    let mut text = String::new();
    while let Ok(Delta::Text(piece)) = pieces.try_recv() {
        text.push_str(&piece);
    }
    assert_eq!((text.as_str(), answer.text.as_str()), ("You are welcome.", "You are welcome."));
}
