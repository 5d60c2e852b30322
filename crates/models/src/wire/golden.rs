//! Every kind of provider once as it is in life: the exact bytes of a request, and an answer in the provider's dialect.

use adjutant_core::message::{ModelRequest, RawCall};
use adjutant_core::money::{MicroUsd, TokenUsage};
use secrecy::SecretString;

use crate::vendor::VENDORS;
use crate::view::tests::{answer, continue_with, request, with_tools};
use crate::wire::Remote;
use crate::wire::auth::{ApiKey, Credential};
use crate::wire::binary::tests::encode;
use crate::wire::provider::RemoteConfig;
use crate::wire::testing::{Reply, at_home, configured, named, serve};
use crate::{DeltaSink, Model, Vendor};

/// What a provider is sent, and what it says.
struct Case {
    model: &'static str,
    path: &'static str,
    body: String,
    stream: Vec<u8>,
    usage: TokenUsage,
}

/// A question, a call with its result, and no answer yet.
fn asked() -> ModelRequest {
    let mut asked = with_tools(request(&["Größe?"]), &[("read", &["path"])]);
    let mut said = answer("I look.");
    said.calls.push(RawCall { id: None, name: "read".into(), arguments: r#"{"path": "/a"}"#.into() });
    continue_with(&mut asked, &said, &[("7 m", false)]);
    asked
}

const ORIGINAL: &str = r#"{"model":"MODEL","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Größe?"},{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_1_0","type":"function","function":{"name":"read","arguments":"{\"path\": \"/a\"}"}}]},{"role":"tool","tool_call_id":"call_1_0","content":"7 m"}],"tools":[{"type":"function","function":{"name":"read","description":"","parameters":{"properties":{"path":{}},"type":"object"}}}],"max_completion_tokens":100,"stream":true,"stream_options":{"include_usage":true}}"#;
const USUAL: &str = r#"{"model":"MODEL","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Größe?"},{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_1_0","type":"function","function":{"name":"read","arguments":"{\"path\": \"/a\"}"}}]},{"role":"tool","tool_call_id":"call_1_0","content":"7 m"}],"tools":[{"type":"function","function":{"name":"read","description":"","parameters":{"properties":{"path":{}},"type":"object"}}}],"max_tokens":100,"stream":true,"stream_options":{"include_usage":true}}"#;
const TERSE: &str = r#"{"model":"MODEL","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Größe?"},{"role":"assistant","content":"I look.","tool_calls":[{"id":"call_1_0","type":"function","function":{"name":"read","arguments":"{\"path\": \"/a\"}"}}]},{"role":"tool","tool_call_id":"call_1_0","content":"7 m"}],"tools":[{"type":"function","function":{"name":"read","description":"","parameters":{"properties":{"path":{}},"type":"object"}}}],"max_tokens":100,"stream":true}"#;
const MISTRAL: &str = r#"{"model":"MODEL","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Größe?"},{"role":"assistant","content":"I look.","tool_calls":[{"id":"b97ac5943","type":"function","function":{"name":"read","arguments":"{\"path\": \"/a\"}"}}]},{"role":"tool","tool_call_id":"b97ac5943","content":"7 m"}],"tools":[{"type":"function","function":{"name":"read","description":"","parameters":{"properties":{"path":{}},"type":"object"}}}],"max_tokens":100,"stream":true}"#;
const RESPONSES: &str = r#"{"model":"gpt-6-sol","instructions":"Be kind.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Größe?"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},{"type":"function_call","call_id":"call_1_0","name":"read","arguments":"{\"path\": \"/a\"}"},{"type":"function_call_output","call_id":"call_1_0","output":"7 m"}],"tools":[{"type":"function","name":"read","description":"","parameters":{"properties":{"path":{}},"type":"object"},"strict":false}],"max_output_tokens":100,"include":["reasoning.encrypted_content"],"store":false,"stream":true}"#;
const ANTHROPIC: &str = r#"{"max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"Größe?"}]},{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"call_1_0","name":"read","input":{"path": "/a"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_0","content":"7 m","cache_control":{"type":"ephemeral"}}]}],"model":"claude-sonnet-4-6","stream":true,"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"read","description":"","input_schema":{"properties":{"path":{}},"type":"object"}}]}"#;
const GEMINI: &str = r#"{"systemInstruction":{"parts":[{"text":"Be kind."}]},"contents":[{"role":"user","parts":[{"text":"Größe?"}]},{"role":"model","parts":[{"text":"I look."},{"functionCall":{"name":"read","args":{"path": "/a"}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"7 m"}}}]}],"tools":[{"functionDeclarations":[{"name":"read","description":"","parametersJsonSchema":{"properties":{"path":{}},"type":"object"}}]}],"generationConfig":{"maxOutputTokens":100}}"#;
const BEDROCK: &str = r#"{"inferenceConfig":{"maxTokens":100},"messages":[{"role":"user","content":[{"text":"Größe?"}]},{"role":"assistant","content":[{"text":"I look."},{"toolUse":{"toolUseId":"call_1_0","name":"read","input":{"path": "/a"}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"call_1_0","content":[{"text":"7 m"}],"status":"success"}}]}],"system":[{"text":"Be kind."}],"toolConfig":{"tools":[{"toolSpec":{"name":"read","inputSchema":{"json":{"properties":{"path":{}},"type":"object"}}}}]}}"#;
const COHERE: &str = r#"{"model":"command-a-plus-05-2026","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"Größe?"}]},{"role":"assistant","content":[{"type":"text","text":"I look."}],"tool_calls":[{"id":"call_1_0","type":"function","function":{"name":"read","arguments":"{\"path\": \"/a\"}"}}]},{"role":"tool","tool_call_id":"call_1_0","content":"7 m"}],"tools":[{"type":"function","function":{"name":"read","description":"","parameters":{"properties":{"path":{}},"type":"object"}}}],"max_tokens":100,"stream":true}"#;
const OLLAMA: &str = r#"{"model":"qwen3:8b","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Größe?"},{"role":"assistant","content":"I look.","tool_calls":[{"function":{"name":"read","arguments":{"path": "/a"}}}]},{"role":"tool","content":"7 m","tool_name":"read"}],"tools":[{"type":"function","function":{"name":"read","description":"","parameters":{"properties":{"path":{}},"type":"object"}}}],"options":{"num_predict":100,"num_ctx":8192},"stream":true}"#;

/// Pieces of chat completions, each of these `choices` or whatever else stands in a chunk.
fn chat(chunks: &[&str]) -> Vec<u8> {
    let head = r#""id":"c-1","object":"chat.completion.chunk","created":1763500000,"model":"m-1""#;
    let lines = chunks.iter().map(|rest| format!("data: {{{head},{rest}}}\n\n"));
    lines.chain(["data: [DONE]\n\n".to_owned()]).collect::<String>().into_bytes()
}

const FIRST: &str = r#""choices":[{"index":0,"delta":{"role":"assistant","content":"Seven "},"finish_reason":null}]"#;
const SECOND: &str = r#""choices":[{"index":0,"delta":{"content":"metres."},"finish_reason":null}]"#;
const LAST: &str = r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#;

/// As the original counts: in a chunk of its own.
fn original() -> Vec<u8> {
    let usage = r#""choices":[],"usage":{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49,"prompt_tokens_details":{"cached_tokens":16,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":4,"audio_tokens":0}}"#;
    chat(&[FIRST, SECOND, LAST, usage])
}

/// As most count: beside the reason for the end.
fn beside(usage: &str) -> Vec<u8> {
    chat(&[FIRST, SECOND, &format!(r#"{LAST},"usage":{usage}"#)])
}

/// With reasoning in a field of this name before the text.
fn thinking(field: &str, usage: &str) -> Vec<u8> {
    let thought = format!(
        r#""choices":[{{"index":0,"delta":{{"role":"assistant","content":null,"{field}":"Hm."}},"finish_reason":null}}]"#
    );
    chat(&[&thought, FIRST, SECOND, &format!(r#"{LAST},"usage":{usage}"#)])
}

const fn counted(cached: u64, reasoning: u64, output: u64) -> TokenUsage {
    TokenUsage { input: 40, output, cached, reasoning, cache_write: 0 }
}

const PLAIN: &str = r#"{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49}"#;
const DETAILED: &str = r#"{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":4}}"#;

/// Chat completions with the vendor's own way to count and to think.
fn dialect(kind: &str) -> (&'static str, &'static str, Vec<u8>, TokenUsage) {
    let usual = |stream, usage| ("m/small", USUAL, stream, usage);
    let terse = |stream, usage| ("m/small", TERSE, stream, usage);
    match kind {
        "openai" => ("gpt-4.1", ORIGINAL, original(), counted(16, 4, 9)),
        "azure" => ("our-gpt", ORIGINAL, original(), counted(16, 4, 9)),
        "deepseek" => {
            let usage = r#"{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49,"prompt_cache_hit_tokens":16,"prompt_cache_miss_tokens":24,"completion_tokens_details":{"reasoning_tokens":4}}"#;
            usual(thinking("reasoning_content", usage), counted(16, 4, 9))
        }
        "groq" => {
            let last = format!(r#"{LAST},"x_groq":{{"id":"req_1","usage":{PLAIN}}}"#);
            usual(chat(&[FIRST, SECOND, &last]), counted(0, 0, 9))
        }
        "mistral" => ("m/small", MISTRAL, beside(PLAIN), counted(0, 0, 9)),
        "xai" => usual(thinking("reasoning_content", DETAILED), counted(16, 4, 13)),
        "perplexity" => {
            // The answer so far stands beside each piece.
            let piece = |so_far: &str, piece: &str, reason: &str| {
                format!(
                    r#""usage":{{"prompt_tokens":40,"completion_tokens":9,"cost":{{"total_cost":0.006}}}},"citations":["https://example.com/"],"choices":[{{"index":0,"finish_reason":{reason},"message":{{"role":"assistant","content":"{so_far}"}},"delta":{{"role":"assistant","content":"{piece}"}}}}]"#
                )
            };
            let pieces = [piece("Seven ", "Seven ", "null"), piece("Seven metres.", "metres.", "\"stop\"")];
            terse(chat(&pieces.each_ref().map(String::as_str)), counted(0, 0, 9))
        }
        "openrouter" => {
            let usage = r#"{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49,"cost":0.00042,"is_byok":false,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":4}}"#;
            let mut stream = b": OPENROUTER PROCESSING\n\n".to_vec();
            stream.extend(thinking("reasoning", usage));
            usual(stream, counted(16, 4, 9))
        }
        "zhipu" | "zai" => terse(thinking("reasoning_content", DETAILED), counted(16, 4, 9)),
        "moonshot" => {
            let usage = r#"{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49,"cached_tokens":16}"#;
            usual(thinking("reasoning_content", usage), counted(16, 0, 9))
        }
        "together" | "fireworks" => usual(beside(PLAIN), counted(0, 0, 9)),
        "cerebras" | "llama-cpp" | "vllm" | "lm-studio" | "litellm" | "compatible" => {
            usual(original(), counted(16, 4, 9))
        }
        other => panic!("{other} has no dialect here"),
    }
}

fn lines(events: &[&str]) -> Vec<u8> {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

fn responses() -> Vec<u8> {
    lines(&[
        r#"{"type":"response.created","response":{"id":"resp_1","status":"in_progress","model":"m-1","output":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Seven "}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"metres."}"#,
        r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"m-1","usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":16},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":49}}}"#,
    ])
}

fn anthropic() -> Vec<u8> {
    lines(&[
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m-1","stop_reason":null,"usage":{"input_tokens":24,"cache_read_input_tokens":16,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Seven "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"metres."}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}"#,
        r#"{"type":"message_stop"}"#,
    ])
}

fn gemini() -> Vec<u8> {
    lines(&[
        r#"{"candidates": [{"content": {"parts": [{"text": "Seven "}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 40},"modelVersion": "m-1"}"#,
        r#"{"candidates": [{"content": {"parts": [{"text": "metres."}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 40,"candidatesTokenCount": 5,"thoughtsTokenCount": 4,"cachedContentTokenCount": 16},"modelVersion": "m-1"}"#,
    ])
}

fn bedrock() -> Vec<u8> {
    let event = |kind: &str, data: &str| {
        let headers = [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
        encode(&headers, data.as_bytes())
    };
    [
        event("messageStart", r#"{"p":"abc","role":"assistant"}"#),
        event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"Seven "}}"#),
        event("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"metres."}}"#),
        event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        event("messageStop", r#"{"stopReason":"end_turn"}"#),
        event("metadata", r#"{"metrics":{"latencyMs":5},"usage":{"inputTokens":24,"outputTokens":9,"cacheReadInputTokens":16,"totalTokens":49}}"#),
    ]
    .concat()
}

fn cohere() -> Vec<u8> {
    lines(&[
        r#"{"id":"1","type":"message-start","delta":{"message":{"role":"assistant","content":[]}}}"#,
        r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
        r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Seven "}}}}"#,
        r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"metres."}}}}"#,
        r#"{"type":"content-end","index":0}"#,
        r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":20,"output_tokens":9},"tokens":{"input_tokens":40,"output_tokens":9},"cached_tokens":16}}}"#,
    ])
}

fn ollama() -> Vec<u8> {
    let line = |rest: &str| format!("{{\"model\":\"m-1\",\"created_at\":\"2026-01-01T00:00:00Z\",{rest}}}\n");
    [
        line(r#""message":{"role":"assistant","content":"Seven "},"done":false"#),
        line(r#""message":{"role":"assistant","content":"metres."},"done":false"#),
        line(r#""message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":40,"eval_count":9"#),
    ]
    .concat()
    .into_bytes()
}

fn case(kind: &str) -> Case {
    let own = |model, path, body: &str, stream, usage| Case { model, path, body: body.to_owned(), stream, usage };
    let all = counted(16, 4, 9);
    match kind {
        "openai-responses" => own("gpt-6-sol", "/responses", RESPONSES, responses(), all),
        "anthropic" => own("claude-sonnet-4-6", "/messages", ANTHROPIC, anthropic(), all),
        "gemini" | "vertex" => {
            own("gemini-3.8-flash", "/models/gemini-3.8-flash:streamGenerateContent?alt=sse", GEMINI, gemini(), all)
        }
        "bedrock" => {
            let path = "/model/us.anthropic.claude-sonnet-4-6/converse-stream";
            own("anthropic.claude-sonnet-4-6", path, BEDROCK, bedrock(), counted(16, 0, 9))
        }
        "cohere" => {
            own("command-a-plus-05-2026", "/chat", COHERE, cohere(), TokenUsage { input: 20, ..counted(16, 0, 9) })
        }
        "ollama" => own("qwen3:8b", "/api/chat", OLLAMA, ollama(), counted(0, 0, 9)),
        chat => {
            let (model, body, stream, usage) = dialect(chat);
            let path = if chat == "azure" { "/openai/v1/chat/completions" } else { "/chat/completions" };
            own(model, path, &body.replace("MODEL", model), stream, usage)
        }
    }
}

#[tokio::test]
async fn every_kind_of_provider_is_sent_these_very_bytes_and_understood_in_its_dialect() {
    for Vendor { kind, .. } in VENDORS {
        let Case { model, path, body, stream, usage } = case(kind);
        let token =
            || Reply::error(200, &[], r#"{"access_token":"ya29-token","expires_in":3600,"token_type":"Bearer"}"#);
        let account = *kind == "vertex";
        let replies = account.then(token).into_iter().chain([Reply::stream(kind, &[&stream])]).collect();
        let (base, mut seen) = serve(replies).await;
        let credential = match account {
            true => Credential::Google(SecretString::from(format!(
                r#"{{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r","token_uri":"{base}/token"}}"#
            ))),
            false => Credential::Key(ApiKey::for_its_address(SecretString::from("sk-very-secret"))),
        };
        let vendor = Vendor::of(kind).unwrap();
        let config = RemoteConfig {
            region: Some("us-east-1".to_owned()),
            project: Some("p-1".to_owned()),
            credential,
            ..RemoteConfig::new(vendor)
        };
        let address = vendor.address(&config).unwrap_or_else(|_| "https://lab.example.com".to_owned());
        let (address, client) = at_home(&address, &base);
        let before = address.path().trim_end_matches('/').to_owned();
        let remote = named(configured(RemoteConfig { base_url: Some(address.into()), ..config }), model);
        let remote = Remote { client, ..remote };
        let answer = remote.answer(&asked(), &DeltaSink::none()).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.calls.len()), ("Seven metres.", 0), "{kind}");
        assert_eq!(answer.usage, Some(usage), "{kind}");
        assert_eq!(answer.charged, (*kind == "openrouter").then_some(MicroUsd(420)), "{kind}");
        if account {
            assert_eq!(seen.recv().await.unwrap().path, "/token");
        }
        let seen = seen.recv().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&seen.raw), body, "{kind}");
        assert_eq!(seen.path, format!("{before}{path}"), "{kind}");
        if account {
            assert_eq!(seen.headers["authorization"], "Bearer ya29-token");
        }
    }
}
