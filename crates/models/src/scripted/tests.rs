//! A script is read strictly and answers as a function of the request.

use adjutant_core::message::{Delta, Message, Role};
use adjutant_core::money::TokenUsage;

use super::*;
use crate::view::tests::{continue_with, request};

const STORY: &str = r#"
- when: { matches: "^read (\\S+)", turn: 1 }
  thinking: The person wants a file.
  text: Let me look.
  calls:
    - { name: read_file, arguments: { path: "${1}", more: ["${user}", 7] } }
- when: { result: { name: read_file, is_error: true } }
  text: "That did not work: ${last_result}"
- when: { result: { name: read_file } }
  text: "It says: ${result:read_file}"
  usage: { input: 10, output: 3 }
- when: { user: HELLO }
  times: 2
  error: { class: rate_limited, retry_after: 0.5, status: 429 }
- when: { user: hello }
  text: Good day.
  usage: null
"#;

async fn ask(model: &Scripted, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
    model.answer(request, &DeltaSink::none()).await
}

#[tokio::test]
async fn a_conversation_follows_the_script_and_can_be_asked_again_at_any_turn() {
    let model = Scripted::parse(STORY).unwrap();
    let start = request(&["read /todo.md"]);
    let called = ask(&model, &start).await.unwrap();
    assert_eq!(called.thinking[0].text, "The person wants a file.");
    assert_eq!(called.calls[0].arguments, r#"{"more":["read /todo.md",7],"path":"/todo.md"}"#);
    assert_eq!(called.finish, FinishReason::ToolCalls);

    let mut good = start.clone();
    continue_with(&mut good, &called, &[("buy ${1}", false)]);
    let said = ask(&model, &good).await.unwrap();
    assert_eq!(said.text, "It says: buy ${1}");
    assert_eq!(said.usage, Some(TokenUsage { input: 10, output: 3, cached: 0, reasoning: 0, cache_write: 0 }));

    let mut bad = start.clone();
    continue_with(&mut bad, &called, &[("no such file", true)]);
    assert_eq!(ask(&model, &bad).await.unwrap().text, "That did not work: no such file");
    assert_eq!(ask(&model, &start).await.unwrap(), called);
    assert_eq!(ask(&model, &good).await.unwrap(), said);
}

#[tokio::test]
async fn an_error_with_times_goes_away() {
    let model = Scripted::parse(STORY).unwrap();
    let asked = request(&["oh, hello"]);
    for _ in 0..2 {
        let error = ask(&model, &asked).await.unwrap_err();
        assert_eq!((error.class(), error.status()), ("rate_limited", Some(429)));
        assert_eq!(error.retry_after(), Some(Duration::from_millis(500)));
    }
    let answer = ask(&model, &asked).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.usage), ("Good day.", None));
}

#[tokio::test]
async fn without_a_rule_the_answer_says_what_the_script_understands() {
    let model = Scripted::parse(STORY).unwrap();
    let text = ask(&model, &request(&["what?"])).await.unwrap().text;
    assert!(text.contains("- a message that matches `^read (\\S+)`, in turn 1"), "{text}");
    assert!(text.contains("- after read_file, failed"), "{text}");
}

#[tokio::test]
async fn only_results_of_the_answer_before_count() {
    let script = r#"[
        {"when": {"result": {"contains": "yes"}}, "text": "seen"},
        {"when": {"turn": 1}, "calls": [{"name": "a"}, {"name": "b", "arguments_raw": "{\"k\":1,\"k\":2}"}]},
        {"calls": [{"name": "c", "id": "call_mine", "arguments": [null]}]}
    ]"#;
    let model = Scripted::parse(script).unwrap();
    let mut asked = request(&["go"]);
    let first = ask(&model, &asked).await.unwrap();
    assert_eq!(first.calls[0].arguments, "{}");
    assert_eq!(first.calls[1].arguments, r#"{"k":1,"k":2}"#, "a duplicate key stays visible");
    continue_with(&mut asked, &first, &[("no", false), ("oh yes", false)]);
    assert_eq!(ask(&model, &asked).await.unwrap().text, "seen");
    continue_with(&mut asked, &crate::view::tests::answer("hm"), &[]);
    let later = ask(&model, &asked).await.unwrap();
    assert_eq!((later.calls[0].id.as_deref(), later.calls[0].arguments.as_str()), (Some("call_mine"), "[null]"));
    asked.messages.push(Message::text(Role::User, "next"));
    assert_eq!(ask(&model, &asked).await.unwrap().calls.len(), 2, "turns begin anew with each thing a person says");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_streamed_in_pieces_at_its_pace_and_can_break_off() {
    let script = "- { delay_ms: 1000, chunk: 2, pace_ms: 100, thinking: äöü, text: hello, truncate: true }";
    let model = Scripted::parse(script).unwrap();
    let (sink, mut pieces) = DeltaSink::channel();
    let began = tokio::time::Instant::now();
    let error = model.answer(&request(&["go"]), &sink).await.unwrap_err();
    assert_eq!(error.class(), "truncated");
    assert_eq!(began.elapsed(), Duration::from_millis(1500));
    let mut seen = Vec::new();
    while let Ok(piece) = pieces.try_recv() {
        seen.push(piece);
    }
    let thinking = |text: &str| Delta::Thinking(text.to_owned());
    let text = |text: &str| Delta::Text(text.to_owned());
    assert_eq!(seen, [thinking("äö"), thinking("ü"), text("he"), text("ll"), text("o")]);
}

#[tokio::test]
async fn a_doubled_dollar_is_the_text_itself() {
    let model = Scripted::parse("- text: 'a $${user} costs $5 ${turn}'").unwrap();
    assert_eq!(ask(&model, &request(&["go"])).await.unwrap().text, "a ${user} costs $5 1");
}

#[test]
fn a_script_that_says_something_unknown_is_refused_with_its_place() {
    let refused = |text: &str| Scripted::parse(text).unwrap_err().to_string();
    let unknown = refused("- text: hi\n- txet: ho\n");
    assert!(unknown.contains("txet") && unknown.contains("line 2"), "{unknown}");
    let unknown = refused("[{\"text\": \"hi\"},\n{\"when\": {\"usr\": \"x\"}}]");
    assert!(unknown.contains("usr") && unknown.contains("line 2"), "{unknown}");
    for (script, why) in [
        ("- text: '${nobody}'", "nobody"),
        ("- text: '${1}'", "${1}"),
        ("- text: '${user'", "without `}`"),
        ("- { when: { matches: '(' } }", "regular expression"),
        ("- { when: { matches: '(a)' }, calls: [{ name: x, arguments: { p: ['${2}'] } }] }", "${2}"),
        ("- error: { class: sad }", "`sad`"),
        ("- error: { class: timeout, retry_after: 1 }", "retry_after"),
        ("- error: { class: overloaded, retry_after: -1 }", "retry_after"),
        ("- { error: { class: timeout }, truncate: true }", "exclude"),
        ("- { when: { turn: 0 }, text: x }", "begin at 1"),
        ("- { calls: [{ name: x, arguments: 1, arguments_raw: '1' }] }", "not both"),
        ("- finish: sometimes", "sometimes"),
        ("text: hi", "script"),
        ("- text: a\n  text: b", "text"),
    ] {
        let message = refused(script);
        assert!(message.contains(why), "{script}: {message}");
    }
}
