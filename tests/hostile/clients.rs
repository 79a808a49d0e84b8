//! Clients of the MCP server that take more than their share.

use crate::mcp::client::{Client, well};
use crate::support::Project;
use serde_json::{Value, json};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

/// A wait for a file that never comes.
fn wait(id: u64) -> Value {
    let arguments = json!({"output_file": "x.json", "timeout": 3600});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "wait_for_subagent", "arguments": arguments}})
}

/// The most memory that a process ever used, in bytes.
pub fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

#[test]
fn waiting_calls_on_standard_input_do_not_starve_a_status() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    for number in 1_000..1_600 {
        client.line(&wait(number).to_string());
    }
    assert_eq!(client.call("status", json!({}))["project"], "letters");
    let refused = client.answer(1_599);
    assert_eq!(
        refused["result"]["structuredContent"]["code"],
        "too_many_calls"
    );
    assert_eq!(client.leave(), well());
}

/// The answer to a line on standard input that is no message.
fn refused(client: &mut Client, line: &str) -> Value {
    client.line(line);
    let answer = client.next().unwrap();
    assert!(answer["error"]["message"].is_string(), "{answer}");
    json!([answer["error"]["code"], answer["id"]])
}

#[test]
fn lines_that_are_no_messages_are_answered() {
    let project = Project::letters();
    let mut client = Client::silent(&mut project.command(&["mcp"]));
    let deep = "[".repeat(100_000);
    let long = format!("{{\"x\": \"{}\"}}", "x".repeat(17 << 20));
    for begun in [false, true] {
        for (line, answer) in [
            ("this is no JSON", json!([-32700, null])),
            ("{\"jsonrpc\": \"2.0\", \"id\": 4", json!([-32700, null])),
            (deep.as_str(), json!([-32700, null])),
            ("\u{0}\u{1b}[2J", json!([-32700, null])),
            (long.as_str(), json!([-32600, null])),
            ("[]", json!([-32600, null])),
            (
                "[{\"jsonrpc\": \"2.0\", \"id\": 4, \"method\": \"ping\"}]",
                json!([-32600, null]),
            ),
            ("{\"jsonrpc\": \"2.0\"}", json!([-32600, null])),
            ("{\"jsonrpc\": \"2.0\", \"id\": 4}", json!([-32600, 4])),
            (
                "{\"id\": \"five\", \"method\": \"ping\"}",
                json!([-32600, "five"]),
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"ping\"}",
                json!([-32600, null]),
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": 1.5, \"method\": \"ping\"}",
                json!([-32600, null]),
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": 4, \"method\": 7}",
                json!([-32600, 4]),
            ),
        ] {
            let shown = &line[..line.len().min(60)];
            assert_eq!(refused(&mut client, line), answer, "{begun} {shown}");
        }
        if !begun {
            // Messages that may not come first are no reason to end, either.
            client.notify("notifications/initialized", json!({}));
            client.line("{\"jsonrpc\": \"2.0\", \"id\": 9, \"result\": {}}");
            let me = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "script", "version": "1"},
            });
            let answer = client.ask("initialize", me);
            assert_eq!(answer["result"]["serverInfo"]["name"], "milepost");
        }
    }
    assert_eq!(client.call("status", json!({}))["project"], "letters");
    assert_eq!(client.leave(), well());
}

/// Messages that name a key twice, so that two readers of them differ.
const TWICE: [(&str, &str); 4] = [
    (
        r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "run", "arguments": {"dry_run": true, "dry_run": false}}}"#,
        "duplicate key `dry_run`",
    ),
    (
        r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "status", "n\u0061me": "run", "arguments": {}}}"#,
        "duplicate key `name`",
    ),
    (
        r#"{"jsonrpc": "2.0", "id": 7, "method": "ping", "method": "tools/call", "params": {"name": "run", "arguments": {}}}"#,
        "duplicate key `method`",
    ),
    (
        r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "run", "arguments": {"set": {"greeting": "a", "greeting": "b"}}}}"#,
        "duplicate key `greeting`",
    ),
];

#[test]
fn messages_with_a_key_twice_are_refused_on_standard_input() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    for (line, why) in TWICE {
        client.line(line);
        let answer = client.next().unwrap();
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
        let refused = (&answer["error"]["code"], &answer["id"]);
        assert_eq!(refused, (&json!(-32600), &json!(7)));
    }
    assert!(!project.exists("workspace/outputs"));
    assert_eq!(client.call("status", json!({}))["project"], "letters");
    assert_eq!(client.leave(), well());
}

/// An attack of our own: a second request under the id of one in progress, and a message without its end.
#[test]
fn an_id_that_is_in_use_and_a_message_without_its_end_are_answered() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    client.line(&wait(500).to_string());
    assert_eq!(
        refused(&mut client, &wait(500).to_string()),
        json!([-32600, 500])
    );
    client.notify("notifications/cancelled", json!({"requestId": 500}));
    client.part("{\"jsonrpc\": \"2.0\", \"id\": 501, \"met");
    client.close();
    let answer = client.next().unwrap();
    assert_eq!(answer["error"]["code"], -32700, "{answer}");
    assert_eq!(client.leave(), well());
}

/// An attack of our own: a client that sends requests and never reads an answer.
#[test]
fn a_client_that_reads_no_answer_takes_little_memory() {
    let project = Project::letters();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut child = project
        .command(&["mcp"])
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "script", "version": "1"},
    }});
    writeln!(ours, "{hello}").unwrap();
    ours.set_write_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    // The server reads no more lines once its answers wait.
    let is_stuck = (2..20_000).any(|number| {
        let list = json!({"jsonrpc": "2.0", "id": number, "method": "tools/list"});
        writeln!(ours, "{list}").is_err()
    });
    assert!(is_stuck);
    let peak = peak_memory(child.id());
    assert!(peak < 300 << 20, "{} MB", peak >> 20);
    child.kill().unwrap();
    child.wait().unwrap();
}
