//! Anthropic's Messages: the exact body, and every way in which an answer ends.

use super::server::{Play, Server};
use super::{KEY, LIMIT, anthropic};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::request::{AgentRequest, Attachment, Reply, StopReason};
use milepost_core::model::usage::Usage;
use serde_json::{Value, json};

fn request() -> AgentRequest {
    AgentRequest {
        system: Some("You classify.".to_owned()),
        prompt: "Q1".to_owned(),
        schema: Some(json!({
            "type": "object", "required": ["code"], "properties": {"code": {"type": "string", "minLength": 2}}
        })),
        max_tokens: 100,
        temperature: Some(0.0),
        ..AgentRequest::default()
    }
}

fn body(model: &str, request: &AgentRequest) -> Value {
    let client = anthropic("http://localhost:1", model);
    let bytes = client.body(request);
    assert_eq!(bytes, client.body(request));
    assert!(!String::from_utf8_lossy(&bytes).contains(KEY));
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn the_body_is_what_the_model_takes() {
    let system = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    let messages = json!([{"role": "user", "content": [{"type": "text", "text": "Q1"}]}]);
    let schema = json!({
        "type": "object", "required": ["code"],
        "properties": {"code": {"type": "string", "description": "(minLength: 2)"}},
        "additionalProperties": false
    });
    let expected = json!({
        "model": "claude-haiku-4-5", "max_tokens": 100, "temperature": 0.0,
        "system": system("You classify."), "messages": messages,
        "output_config": {"format": {"type": "json_schema", "schema": schema}}
    });
    assert_eq!(body("claude-haiku-4-5", &request()), expected);
    // One that refuses a temperature, and one whose answer may be long.
    let long = AgentRequest {
        max_tokens: 20_000,
        schema: None,
        ..request()
    };
    let expected = json!({
        "model": "claude-opus-5-5", "max_tokens": 20_000, "system": system("You classify."), "messages": messages, "stream": true
    });
    assert_eq!(body("claude-opus-5-5", &long), expected);
    // An older one is told the schema in words.
    let told = "You classify.\n\nAnswer with JSON only: no Markdown fence, no words before or after it. It must be valid against \
        this JSON Schema:\n{\"type\":\"object\",\"required\":[\"code\"],\"properties\":{\"code\":{\"type\":\"string\",\"minLength\":2}}}";
    let old = body("claude-sonnet-4-20250514", &request());
    assert_eq!(
        (&old["system"], &old["output_config"]),
        (&system(told), &Value::Null)
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
        ..request()
    };
    let expected = json!([
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVA="}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, "title": "b.pdf"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x,y"}, "title": "c.csv"},
        {"type": "text", "text": "Q1"}
    ]);
    assert_eq!(
        body("claude-haiku-4-5", &request)["messages"][0]["content"],
        expected
    );
}

#[test]
fn a_reply_is_read_whole() {
    let message = r#"{"id":"msg_1","type":"message","model":"claude-haiku-4-5-20251001","content":[{"type":"thinking","thinking":"hm"},
        {"type":"text","text":"{\"code\":"},{"type":"text","text":"\"Ss\"}"}],"stop_reason":"end_turn",
        "usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":7,
        "output_tokens_details":{"thinking_tokens":2}}}"#;
    let server = Server::new(vec![Play::Says(
        200,
        &["request-id: req_1", "content-type: application/json"],
        message.to_owned(),
    )]);
    let client = anthropic(&server.url, "claude-haiku-4-5");
    let sent = client.body(&request());
    let reply = client.call(&sent, LIMIT).unwrap();
    let expected = Reply {
        text: r#"{"code":"Ss"}"#.to_owned(),
        structured: None,
        stop: StopReason::End,
        usage: Usage {
            input: 10,
            cache_read: 300,
            cache_write: 20,
            output: 7,
            reasoning: 2,
        },
        reported_cost: None,
        served_model: Some("claude-haiku-4-5-20251001".to_owned()),
        request_id: Some("req_1".to_owned()),
        raw: message.into(),
    };
    assert_eq!(reply, expected);
    assert_eq!(reply.usage.total_input(), 330);
    let seen = &server.seen()[0];
    assert_eq!(
        (seen.line.as_str(), &seen.body),
        ("POST /v1/messages", &sent)
    );
    let headers = [
        "x-api-key",
        "anthropic-version",
        "content-type",
        "authorization",
    ]
    .map(|name| seen.header(name));
    assert_eq!(
        headers,
        [
            Some(KEY),
            Some("2023-06-01"),
            Some("application/json"),
            None
        ]
    );
}

#[test]
fn a_cut_or_refused_answer_is_told_apart() {
    let message = |reason: &str| {
        let message = format!(
            r#"{{"type":"message","content":[{{"type":"text","text":"{{\"co"}}],"stop_reason":"{reason}","usage":{{}}}}"#
        );
        Play::Says(200, &[], message)
    };
    let reasons = [
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refused),
        ("stop_sequence", StopReason::End),
        ("pause_turn", StopReason::Other("pause_turn".to_owned())),
    ];
    let server = Server::new(reasons.iter().map(|(reason, _)| message(reason)).collect());
    let client = anthropic(&server.url, "claude-haiku-4-5");
    for (reason, stop) in reasons {
        let reply = client.call(b"{}", LIMIT).unwrap();
        assert_eq!(
            (reply.stop, reply.text.as_str()),
            (stop, "{\"co"),
            "{reason}"
        );
    }
    let server = Server::new(vec![
        Play::Cuts(500, r#"{"type":"message","#.to_owned()),
        Play::Says(200, &[], r#"{"type":"message","#.to_owned()),
        Play::Says(200, &[], "<html>Welcome</html>".to_owned()),
        Play::Says(200, &[], r#"{"hello":1}"#.to_owned()),
    ]);
    let client = anthropic(&server.url, "claude-haiku-4-5");
    let kinds = [(); 4].map(|()| client.call(b"{}", LIMIT).unwrap_err().kind);
    assert_eq!(
        kinds,
        [
            FaultKind::Cut,
            FaultKind::Cut,
            FaultKind::Unreadable,
            FaultKind::Unreadable
        ]
    );
}

fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

fn beginning() -> String {
    [
        json!({"type": "message_start", "message": {"model": "claude-opus-5-5", "usage": {"input_tokens": 9, "cache_read_input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Gr"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "üße"}}),
    ]
    .iter()
    .map(event)
    .collect()
}

#[test]
fn a_stream_is_put_together() {
    let end = [
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 0, "output_tokens": 12}}),
        json!({"type": "message_stop"}),
    ];
    let stream = beginning() + &end.iter().map(event).collect::<String>();
    let server = Server::new(vec![Play::Streams(stream.clone())]);
    let reply = anthropic(&server.url, "claude-opus-5-5")
        .call(b"{}", LIMIT)
        .unwrap();
    let expected = Reply {
        text: "Grüße".to_owned(),
        structured: None,
        stop: StopReason::End,
        usage: Usage {
            input: 9,
            cache_read: 5,
            output: 12,
            ..Usage::default()
        },
        reported_cost: None,
        served_model: Some("claude-opus-5-5".to_owned()),
        request_id: None,
        raw: stream.into_bytes(),
    };
    assert_eq!(reply, expected);
}

#[test]
fn a_stream_that_breaks_off_is_no_answer() {
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failed = beginning() + &event(&error);
    let cut = beginning();
    let server = Server::new(vec![
        Play::Streams(failed.clone()),
        Play::Streams(cut.clone()),
    ]);
    let client = anthropic(&server.url, "claude-opus-5-5");
    // What was used is told: it is paid for.
    let usage = Usage {
        input: 9,
        cache_read: 5,
        output: 1,
        ..Usage::default()
    };
    let expected = CallFault {
        code: Some("overloaded_error".to_owned()),
        usage,
        raw: failed.into_bytes(),
        text: "Grüße".into(),
        ..CallFault::new(
            FaultKind::Overloaded,
            "the stream ended with an error: Overloaded",
        )
    };
    assert_eq!(client.call(b"{}", LIMIT), Err(expected.clone()));
    // Kept bytes are read as they were.
    assert_eq!(client.read(expected.raw.clone()), Err(expected));
    let expected = CallFault {
        usage,
        raw: cut.into_bytes(),
        text: "Grüße".into(),
        ..CallFault::new(FaultKind::Cut, "the stream ended before its last event")
    };
    assert_eq!(client.call(b"{}", LIMIT), Err(expected));
}
