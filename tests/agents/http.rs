//! The client itself: deadlines, cancellation, broken connections, redirects, keys.

use super::server::{Play, Server};
use super::{KEY, LIMIT, LONG, anthropic, never, openai};
use milepost_agents::fault::{CallFault, FaultKind};
use milepost_agents::http::{CallLimit, Http, HttpRequest};
use milepost_agents::policy::{Next, after};
use std::net::TcpListener;
use std::time::{Duration, Instant};

const OK: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

fn get(url: &str, within: Duration, largest: usize) -> Result<Vec<u8>, CallFault> {
    let http = Http::new(None).unwrap();
    let send = HttpRequest {
        url,
        headers: &[],
        body: None,
        within,
        largest,
    };
    let answer = http.send(send, &never)?;
    match answer.cut {
        Some(fault) => Err(fault.with_raw(answer.body)),
        None => Ok(answer.body),
    }
}

#[test]
fn trouble_passes_as_the_server_asks() {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let limited = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"},"request_id":"req_7"}"#;
    let message = r#"{"type":"message","model":"m","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{}}"#;
    let server = Server::new(vec![
        Play::Says(529, &[], overloaded.to_owned()),
        Play::Says(429, &["retry-after: 7"], limited.to_owned()),
        Play::Says(200, &[], message.to_owned()),
    ]);
    let client = anthropic(&server.url, "claude-haiku-4-5");
    let mut waits = Vec::new();
    let reply = (1..).find_map(|attempt| match client.call(b"{}", LIMIT) {
        Ok(reply) => Some(reply),
        Err(fault) => {
            let Next::Retry { wait } = after(&fault, attempt, 0.0) else {
                panic!("{fault:?}");
            };
            waits.push(wait.as_millis());
            None
        }
    });
    assert_eq!(waits, [1_000, 7_000]);
    assert_eq!(reply.unwrap().text, "ok");
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn a_slow_answer_meets_the_deadline() {
    let server = Server::new(vec![
        Play::Stalls,
        Play::StallsAfter("event: ping\n".to_owned()),
    ]);
    let short = Duration::from_millis(150);
    let fault = get(&server.url, short, 100).unwrap_err();
    assert_eq!(
        fault,
        CallFault::new(FaultKind::Timeout, "no complete response within 150ms")
    );
    // What had come by then is kept.
    let fault = get(&server.url, Duration::from_millis(400), 100).unwrap_err();
    assert_eq!(
        (fault.kind, fault.raw),
        (FaultKind::Timeout, b"event: ping\n".to_vec())
    );
}

#[test]
fn a_call_in_flight_is_cancelled() {
    let server = Server::new(vec![Play::Stalls]);
    let client = openai(&server.url, "m");
    let begun = Instant::now();
    let arrived = || !server.seen().is_empty();
    let fault = client
        .call(
            b"{}",
            CallLimit {
                within: LONG,
                cancelled: &arrived,
            },
        )
        .unwrap_err();
    assert_eq!(
        fault,
        CallFault::new(
            FaultKind::Cancelled,
            "cancelled before the response arrived"
        )
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
    let fault = client
        .call(
            b"{}",
            CallLimit {
                within: LONG,
                cancelled: &|| true,
            },
        )
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Cancelled);
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn connections_that_fail_are_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let fault = get(&format!("http://{closed}"), LONG, 100).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Connect);
    assert!(fault.message.contains("onnection refused"), "{fault}");
    let server = Server::new(vec![Play::Closes, Play::Cuts(100, "half".to_owned())]);
    assert_eq!(
        get(&server.url, LONG, 100).unwrap_err().kind,
        FaultKind::Cut
    );
    let fault = get(&server.url, LONG, 100).unwrap_err();
    assert_eq!((fault.kind, fault.raw), (FaultKind::Cut, b"half".to_vec()));
    assert_eq!(
        get("localhost:1", LONG, 100).unwrap_err().kind,
        FaultKind::BadRequest
    );
}

#[test]
fn an_answer_has_a_largest_size() {
    let server = Server::new(vec![
        Play::Says(200, &[], "x".repeat(101)),
        Play::Says(200, &[], "x".repeat(100)),
    ]);
    let fault = get(&server.url, LONG, 100).unwrap_err();
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::Unreadable, "the answer is larger than 100 bytes")
    );
    assert_eq!(get(&server.url, LONG, 100).unwrap().len(), 100);
}

#[test]
fn a_key_goes_to_its_own_address_only() {
    let other = Server::new(vec![]);
    let to: &'static str =
        Box::leak(format!("location: {}/v1/messages", other.url).into_boxed_str());
    let server = Server::new(vec![Play::Says(
        307,
        Box::leak(Box::new([to])),
        String::new(),
    )]);
    let fault = anthropic(&server.url, "m").call(b"{}", LIMIT).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Status(307));
    assert_eq!(
        fault.message,
        format!(
            "HTTP 307: nothing; it redirects to {}/v1/messages: if that is right, use it as `base_url`",
            other.url
        )
    );
    assert_eq!(server.seen()[0].header("x-api-key"), Some(KEY));
    assert_eq!(other.seen().len(), 0);
}

#[test]
fn a_wrong_key_is_found_before_anything_is_asked() {
    let told = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY}.","type":"invalid_request_error","code":"invalid_api_key"}}}}"#
    );
    let server = Server::new(vec![
        Play::Says(401, &["x-request-id: req_1"], told),
        Play::Says(404, &[], "404 page not found".to_owned()),
        Play::Says(200, &[], r#"{"data":[]}"#.to_owned()),
        Play::Says(400, &[], r#"{"error":{"message":"HTTP 404"}}"#.to_owned()),
    ]);
    let client = openai(&server.url, "m");
    let fault = client.check(LIMIT).unwrap_err();
    let expected = CallFault {
        code: Some("invalid_api_key".to_owned()),
        request_id: Some("req_1".to_owned()),
        status: Some(401),
        raw: br#"{"error":{"message":"Incorrect API key provided: [key].","type":"invalid_request_error","code":"invalid_api_key"}}"#.to_vec(),
        ..CallFault::new(FaultKind::Auth, "HTTP 401: Incorrect API key provided: [key].")
    };
    assert_eq!(fault, expected);
    // A server without a list of models cannot say.
    assert_eq!(client.check(LIMIT), Ok(()));
    assert_eq!(client.check(LIMIT), Ok(()));
    // A request that is refused says nothing of the key, whatever its message.
    let fault = client.check(LIMIT).unwrap_err();
    assert_eq!(
        (fault.kind, fault.status),
        (FaultKind::BadRequest, Some(400))
    );
    assert_eq!(server.seen()[0].line, "GET /v1/models");
    assert_eq!(
        server.seen()[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert!(!format!("{client:?}").contains(KEY));
}

#[test]
fn threads_share_a_client() {
    let plays = (0..16)
        .map(|_| Play::Says(200, &[], OK.to_owned()))
        .collect();
    let server = Server::new(plays);
    let client = openai(&server.url, "m");
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| client.call(b"{}", LIMIT)))
            .collect();
        for call in calls {
            assert_eq!(call.join().unwrap().unwrap().text, "hi");
        }
    });
    assert_eq!(server.seen().len(), 16);
}

#[test]
fn a_proxy_is_used_where_one_is_declared() {
    let proxy = Server::new(vec![Play::Says(200, &[], "by proxy".to_owned())]);
    let http = Http::new(Some(&proxy.url)).unwrap();
    let send = HttpRequest {
        url: "http://model.invalid/v1",
        headers: &[],
        body: None,
        within: LONG,
        largest: 100,
    };
    assert_eq!(http.send(send, &never).unwrap().body, b"by proxy");
    assert_eq!(proxy.seen()[0].line, "GET http://model.invalid/v1");
    assert!(
        Http::new(Some("not a url"))
            .unwrap_err()
            .to_string()
            .starts_with("the proxy `not a url` is not a usable URL")
    );
}
