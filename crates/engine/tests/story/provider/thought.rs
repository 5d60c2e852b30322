//! Reasoning between calls: whole runs with servers that think, speak and call by turns. What goes back to each is compared
//! byte by byte, because providers refuse a proof that is not where it was.

use adjutant_core::run::status::Status;
use serde_json::{Value, json};

use super::{Reply, leaping, play_as};

fn events(events: &[Value]) -> Reply {
    Reply::stream(&events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())
}

/// The second request of a run with a provider of this kind that answers the first one like this.
async fn sent_back(kind: &str, replies: Vec<Reply>) -> String {
    let played = play_as(kind, leaping(), replies).await;
    assert_eq!((played.report.status, played.report.result.as_str()), (Status::Completed, "done"), "{kind}");
    played.asked[1].clone()
}

/// An answer of Anthropic's with these blocks, each as it begins and what is added to it.
fn messages(blocks: &[(Value, Vec<Value>)]) -> Reply {
    let usage = json!({"input_tokens": 7, "output_tokens": 3});
    let mut all = vec![json!({"type": "message_start", "message": {"model": "m", "usage": usage}})];
    for (index, (block, pieces)) in blocks.iter().enumerate() {
        all.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        all.extend(pieces.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
        all.push(json!({"type": "content_block_stop", "index": index}));
    }
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}));
    all.push(json!({"type": "message_stop"}));
    events(&all)
}

fn thinks(text: &str, signature: &str) -> (Value, Vec<Value>) {
    let text = json!({"type": "thinking_delta", "thinking": text});
    let signature = json!({"type": "signature_delta", "signature": signature});
    (json!({"type": "thinking", "thinking": "", "signature": ""}), vec![text, signature])
}

fn says(text: &str) -> (Value, Vec<Value>) {
    (json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": text})])
}

fn looks(id: &str, input: &str) -> (Value, Vec<Value>) {
    let input = json!({"type": "input_json_delta", "partial_json": input});
    (json!({"type": "tool_use", "id": id, "name": "look", "input": {}}), vec![input])
}

#[tokio::test]
async fn blocks_of_reasoning_go_back_between_the_calls_they_came_between() {
    let first = messages(&[
        thinks("One.", "S1="),
        says("I look."),
        thinks("Two.", "S2="),
        looks("toolu_1", r#"{"n": 1}"#),
        thinks("Three.", "S3="),
        looks("toolu_2", r#"{"n": 2}"#),
    ]);
    let sent = sent_back("anthropic", vec![first, messages(&[says("done")])]).await;
    let expected = concat!(
        r#"{"role":"assistant","content":["#,
        r#"{"type":"thinking","thinking":"One.","signature":"S1="},"#,
        r#"{"type":"text","text":"I look."},"#,
        r#"{"type":"thinking","thinking":"Two.","signature":"S2="},"#,
        r#"{"type":"tool_use","id":"toolu_1","name":"look","input":{"n": 1}},"#,
        r#"{"type":"thinking","thinking":"Three.","signature":"S3="},"#,
        r#"{"type":"tool_use","id":"toolu_2","name":"look","input":{"n": 2}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","#,
    );
    assert!(sent.contains(expected), "{sent}");
}

#[tokio::test]
async fn reasoning_in_the_middle_of_an_answer_does_not_go_back_to_another_place() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let answer = messages(&[thinks("One.", "S1="), says("do"), thinks("Two.", "S2="), says("ne")]);
    let first = messages(&[thinks("Zero.", "S0="), looks("toolu_1", "{}")]);
    let (agent, asked, _stage) = super::agent("anthropic", leaping(), vec![first, answer]).await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(report.result, "done", "the answer is one text");
    agent.run_in(Some(report.chat_id), "and now?").await.unwrap();
    let sent = asked.lock().unwrap()[2].clone();
    assert!(sent.contains(r#""thinking":"Zero.","signature":"S0=""#), "{sent}");
    assert!(sent.contains(r#"{"role":"assistant","content":[{"type":"text","text":"done"}]}"#), "{sent}");
}

/// An answer of the responses protocol with these items, each with its text or its arguments.
fn items(items: &[(Value, &str)]) -> Reply {
    let mut all = Vec::new();
    for (index, (item, text)) in items.iter().enumerate() {
        let piece = match item["type"].as_str() {
            Some("reasoning") => "response.reasoning_summary_text.delta",
            Some("message") => "response.output_text.delta",
            _ => "response.function_call_arguments.delta",
        };
        all.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        all.push(json!({"type": piece, "output_index": index, "delta": text}));
        all.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let usage = json!({"input_tokens": 7, "output_tokens": 3});
    all.push(json!({"type": "response.completed", "response": {"model": "m", "usage": usage}}));
    events(&all)
}

#[tokio::test]
async fn items_of_reasoning_go_back_before_the_items_they_led_to() {
    let reasoning = |id: &str| json!({"type": "reasoning", "id": id, "encrypted_content": format!("sealed-{id}")});
    let call = |id: &str| json!({"type": "function_call", "id": "fc", "call_id": id, "name": "look"});
    let message = json!({"type": "message"});
    let first = items(&[
        (reasoning("rs_1"), "One."),
        (message.clone(), "I look."),
        (reasoning("rs_2"), "Two."),
        (call("call_1"), r#"{"n": 1}"#),
        (reasoning("rs_3"), ""),
        (call("call_2"), r#"{"n": 2}"#),
    ]);
    let sent = sent_back("openai-responses", vec![first, items(&[(message, "done")])]).await;
    let expected = concat!(
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"One."}],"encrypted_content":"sealed-rs_1"},"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},"#,
        r#"{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"Two."}],"encrypted_content":"sealed-rs_2"},"#,
        r#"{"type":"function_call","call_id":"call_1","name":"look","arguments":"{\"n\": 1}"},"#,
        r#"{"type":"reasoning","id":"rs_3","summary":[],"encrypted_content":"sealed-rs_3"},"#,
        r#"{"type":"function_call","call_id":"call_2","name":"look","arguments":"{\"n\": 2}"},"#,
        r#"{"type":"function_call_output","call_id":"call_1","#,
    );
    assert!(sent.contains(expected), "{sent}");
}

/// An answer of Gemini's with these parts, one in each piece.
fn parts(parts: &[Value]) -> Reply {
    let piece = |part: &Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
    let mut all: Vec<_> = parts.iter().map(piece).collect();
    let usage = json!({"promptTokenCount": 7, "candidatesTokenCount": 3});
    all.push(json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}));
    events(&all)
}

#[tokio::test]
async fn each_signature_of_a_thought_goes_back_on_the_part_it_was_on() {
    let thought = |text: &str| json!({"text": text, "thought": true});
    let call = |n: u32, signature: &str| json!({"functionCall": {"name": "look", "args": {"n": n}}, "thoughtSignature": signature});
    let first = parts(&[
        thought("One."),
        json!({"text": "I look."}),
        json!({"text": "", "thoughtSignature": "T0="}),
        call(1, "S1="),
        thought("Two."),
        call(2, "S2="),
    ]);
    let sent = sent_back("gemini", vec![first, parts(&[json!({"text": "done"})])]).await;
    let expected = concat!(
        r#"{"role":"model","parts":["#,
        r#"{"text":"I look.","thoughtSignature":"T0="},"#,
        r#"{"functionCall":{"name":"look","args":{"n":1}},"thoughtSignature":"S1="},"#,
        r#"{"functionCall":{"name":"look","args":{"n":2}},"thoughtSignature":"S2="}]},"#,
    );
    assert!(sent.contains(expected), "{sent}");
}
