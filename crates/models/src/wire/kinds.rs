//! What holds for every kind of provider alike, whatever protocol it speaks.

use std::time::Duration;

use adjutant_core::message::ModelRequest;
use serde_json::Value;

use crate::vendor::VENDORS;
use crate::view::tests::{request, with_tools};
use crate::wire::provider::Timeouts;
use crate::wire::testing::{After, Guard, Reply, failure, model, serve};
use crate::{DeltaSink, Model, Vendor};

/// One kind of provider for each protocol.
fn kinds() -> Vec<&'static str> {
    let mut seen = Vec::new();
    let first = |vendor: &&Vendor| {
        let new = !seen.contains(&vendor.protocol);
        seen.push(vendor.protocol);
        // Where a token is asked for first, its own tests answer for that.
        new && vendor.kind != "vertex"
    };
    VENDORS.iter().filter(first).map(|vendor| vendor.kind).collect()
}

#[tokio::test]
async fn every_protocol_knows_every_failure_by_its_status() {
    assert!(kinds().len() >= 7, "{:?}", kinds());
    for kind in kinds() {
        for (status, class, again) in [
            (400, "bad_request", false),
            (401, "unauthorized", false),
            (402, "no_credit", false),
            (403, "unauthorized", false),
            (404, "broken", false),
            (413, "context_overflow", false),
            (429, "rate_limited", true),
            (500, "overloaded", true),
            (502, "overloaded", true),
            (503, "overloaded", true),
            (504, "overloaded", true),
            (529, "overloaded", true),
        ] {
            let error = failure(kind, Reply::error(status, &[("retry-after", "3")], "sk-very-secret said no")).await;
            assert_eq!((error.class(), error.retryable()), (class, again), "{kind} {status}: {error}");
            if status == 429 {
                assert_eq!(error.retry_after(), Some(Duration::from_secs(3)), "{kind}");
            }
            assert!(!format!("{error} {error:?}").contains("sk-very"), "{kind} {status}: {error:?}");
        }
    }
}

#[tokio::test]
async fn every_protocol_gives_up_on_a_server_that_goes_silent_and_lets_go_of_it() {
    let timeouts = Timeouts { idle: Duration::from_millis(300), ..Timeouts::default() };
    for kind in kinds() {
        let (gone, told) = tokio::sync::oneshot::channel();
        let mut reply = Reply::stream(kind, &[b"\n"]);
        reply.after = After::Stay(Guard(Some(gone)));
        let (base, _seen) = serve(vec![reply]).await;
        let error = model(kind, &base, timeouts).answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap_err();
        assert_eq!(error.class(), "timeout", "{kind}: {error}");
        tokio::time::timeout(Duration::from_secs(30), told).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn every_protocol_takes_an_empty_answer_for_none() {
    for kind in kinds() {
        let error = failure(kind, Reply::stream(kind, &[])).await;
        assert_eq!(error.class(), "truncated", "{kind}: {error}");
    }
}

#[tokio::test]
async fn a_schema_of_the_answer_is_handed_on_where_the_provider_can_see_to_it() {
    let schema = r#"{"type":"object","required":["n"],"additionalProperties":false}"#;
    let asked = ModelRequest { output_schema: Some(schema.into()), ..request(&["hello"]) };
    let value: Value = serde_json::from_str(schema).unwrap();
    for (kind, place, beside_tools) in [
        ("compatible", "/response_format/json_schema/schema", false),
        ("openai-responses", "/text/format/schema", true),
        ("gemini", "/generationConfig/responseJsonSchema", false),
        ("ollama", "/format", false),
        ("cohere", "/response_format/json_schema", false),
        ("anthropic", "/output_config/format/schema", true),
        ("bedrock", "/outputConfig/textFormat/structure/jsonSchema/schema", true),
    ] {
        for tools in [false, true] {
            let asked = if tools { with_tools(asked.clone(), &[("look", &["path"])]) } else { asked.clone() };
            let (base, mut seen) = serve(vec![Reply::stream(kind, &[])]).await;
            let _ = model(kind, &base, Timeouts::default()).answer(&asked, &DeltaSink::none()).await;
            let body = seen.recv().await.unwrap().body;
            // One kind takes it as a text.
            let handed_on = body.pointer(place).cloned().map(|schema| match schema {
                Value::String(text) => serde_json::from_str(&text).unwrap(),
                other => other,
            });
            let wanted = (!tools || beside_tools).then(|| value.clone());
            assert_eq!(handed_on, wanted, "{kind}, tools {tools}: {body}");
        }
    }
}
