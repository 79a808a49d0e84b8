//! OpenAI's Chat Completions, and servers that speak it.

use super::server::{Play, Server};
use super::{KEY, LIMIT, client, openai, settings};
use milepost_agents::api::ClientSettings;
use milepost_agents::fault::FaultKind;
use milepost_agents::request::{AgentRequest, Attachment, Reply, StopReason};
use milepost_core::model::api_kind::ApiKind;
use milepost_core::model::usage::Usage;
use serde_json::{Value, json};

fn request(required: &[&str]) -> AgentRequest {
    AgentRequest {
        system: Some("You classify.".to_owned()),
        prompt: "Q1".to_owned(),
        schema: Some(json!({
            "type": "object", "required": required, "properties": {"code": {"type": "string"}, "why": {"type": "string"}}
        })),
        max_tokens: 100,
        temperature: Some(0.0),
        ..AgentRequest::default()
    }
}

fn body(url: Option<&str>, model: &str, request: &AgentRequest) -> Value {
    let settings = ClientSettings {
        base_url: url.map(str::to_owned),
        ..settings("", model)
    };
    let bytes = client(ApiKind::OpenAi, settings).body(request);
    assert!(!String::from_utf8_lossy(&bytes).contains(KEY));
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn the_body_is_what_the_server_takes() {
    let strict = json!({
        "type": "object", "required": ["code", "why"],
        "properties": {"code": {"type": "string"}, "why": {"type": "string"}}, "additionalProperties": false
    });
    let expected = json!({
        "model": "gpt-6-luna",
        "messages": [{"role": "system", "content": "You classify."}, {"role": "user", "content": "Q1"}],
        "max_completion_tokens": 100,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": strict}}
    });
    assert_eq!(
        body(None, "gpt-6-luna", &request(&["code", "why"])),
        expected
    );
    // What is not strict is told in words, and only an object is asked for.
    let loose = request(&["code"]);
    let told = format!(
        "You classify.\n\nAnswer with JSON only: no Markdown fence, no words before or after it. It must be valid against this \
         JSON Schema:\n{}",
        loose.schema.as_ref().unwrap()
    );
    let sent = body(None, "gpt-4.1", &loose);
    assert_eq!(sent["response_format"], json!({"type": "json_object"}));
    assert_eq!(
        (&sent["messages"][0]["content"], &sent["temperature"]),
        (&json!(told), &json!(0.0))
    );
    // Servers of one's own make grammars of such a schema, and know the older name of the limit.
    let sent = body(Some("http://localhost:11434/v1/"), "llama3.1:8b", &loose);
    let whole = json!({"name": "answer", "strict": false, "schema": loose.schema.unwrap()});
    assert_eq!(
        sent["response_format"],
        json!({"type": "json_schema", "json_schema": whole})
    );
    assert_eq!(
        (&sent["max_tokens"], &sent["max_completion_tokens"]),
        (&json!(100), &Value::Null)
    );
}

#[test]
fn files_are_sent_along() {
    let file = |name: &str, kind: &str, bytes: &[u8]| Attachment {
        pages: None,
        name: name.to_owned(),
        media_type: kind.to_owned(),
        bytes: bytes.to_vec(),
    };
    let attachments = vec![
        file("a.png", "image/png", b"\x89P"),
        file("b.pdf", "application/pdf", b"%PDF"),
        file("c.csv", "text/csv", b"x,y"),
    ];
    let request = AgentRequest {
        attachments,
        schema: None,
        system: None,
        ..request(&[])
    };
    let expected = json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVA="}},
        {"type": "file", "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        {"type": "text", "text": "The file c.csv:\n\nx,y"},
        {"type": "text", "text": "Q1"}
    ]}]);
    assert_eq!(body(None, "gpt-4o", &request)["messages"], expected);
}

#[test]
fn a_reply_is_read_whole() {
    let completion = r#"{"id":"chatcmpl-1","model":"gpt-6-luna","choices":[{"index":0,"message":{"role":"assistant","content":"{}","refusal":null},
        "finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,
        "prompt_tokens_details":{"cached_tokens":600,"cache_write_tokens":100},"completion_tokens_details":{"reasoning_tokens":40}}}"#;
    let server = Server::new(vec![Play::Says(
        200,
        &["x-request-id: req_2"],
        completion.to_owned(),
    )]);
    let client = openai(&server.url, "gpt-6-luna");
    let sent = client.body(&request(&["code", "why"]));
    let expected = Reply {
        text: "{}".to_owned(),
        structured: None,
        stop: StopReason::End,
        // Cached tokens stand within the prompt's, and are told apart.
        usage: Usage {
            input: 300,
            cache_read: 600,
            cache_write: 100,
            output: 50,
            reasoning: 40,
        },
        reported_cost: None,
        served_model: Some("gpt-6-luna".to_owned()),
        request_id: Some("req_2".to_owned()),
        raw: completion.into(),
    };
    assert_eq!(client.call(&sent, LIMIT), Ok(expected));
    let seen = &server.seen()[0];
    assert_eq!(
        (seen.line.as_str(), &seen.body),
        ("POST /v1/chat/completions", &sent)
    );
    let bearer = format!("Bearer {KEY}");
    let headers = ["authorization", "content-type", "x-api-key"].map(|name| seen.header(name));
    assert_eq!(
        headers,
        [Some(bearer.as_str()), Some("application/json"), None]
    );
}

#[test]
fn every_way_in_which_an_answer_ends() {
    let says = |message: &str, reason: &str| {
        let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"{reason}"}}]}}"#);
        Play::Says(200, &[], body)
    };
    let server = Server::new(vec![
        says(r#"{"content":null,"refusal":"I will not"}"#, "stop"),
        says(r#"{"content":"{\"co"}"#, "length"),
        says(r#"{"content":""}"#, "content_filter"),
        says(
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            "stop",
        ),
        says(r#"{"content":"x","reasoning_content":"hm"}"#, "tool_calls"),
    ]);
    let client = openai(&server.url, "m");
    let ended = [(); 5].map(|()| {
        let reply = client.call(b"{}", LIMIT).unwrap();
        (reply.text, reply.stop)
    });
    let expected = [
        ("I will not", StopReason::Refused),
        ("{\"co", StopReason::Length),
        ("", StopReason::Refused),
        ("ab", StopReason::End),
        ("x", StopReason::Other("tool_calls".to_owned())),
    ];
    assert_eq!(ended, expected.map(|(text, stop)| (text.to_owned(), stop)));
    let server = Server::new(vec![
        Play::Says(200, &[], r#"{"error":{"message":"Provider returned error","code":429}}"#.to_owned()),
        Play::Says(200, &[], r#"{"choices":[]}"#.to_owned()),
        Play::Says(400, &[], r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#.to_owned()),
        Play::Says(404, &[], r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#.to_owned()),
    ]);
    let client = openai(&server.url, "m");
    let kinds = [(); 4].map(|()| client.call(b"{}", LIMIT).unwrap_err().kind);
    assert_eq!(
        kinds,
        [
            FaultKind::RateLimited,
            FaultKind::Unreadable,
            FaultKind::TooLong,
            FaultKind::BadRequest
        ]
    );
}

#[test]
fn a_server_that_wants_no_key_is_sent_none() {
    let server = Server::new(vec![Play::Says(200, &[], r#"{"data":[]}"#.to_owned())]);
    let settings = ClientSettings {
        model: "m".to_owned(),
        base_url: Some(format!("{}/v1", server.url)),
        ..ClientSettings::default()
    };
    let client = client(ApiKind::OpenAi, settings);
    assert_eq!(client.check(LIMIT), Ok(()));
    assert_eq!(server.seen()[0].header("authorization"), None);
    // An answer that is compressed would not be read.
    let accepted = server.seen()[0]
        .header("accept-encoding")
        .map(str::to_owned);
    assert_eq!(accepted.as_deref(), Some("identity"));
}
