//! The server by HTTP: sessions, streams, pages of other hosts, and the end while a stream is open.

use super::http_server::{Server, call, hello};
use crate::support::Project;
use serde_json::json;
use std::io::{BufRead as _, BufReader};

#[test]
fn a_session_runs_the_pipeline() {
    let project = Project::letters();
    let server = Server::start(&project);
    let id = server.session();
    let reply = server.post(&[("Mcp-Session-Id", &id)], &call(2, "run", json!({})));
    assert_eq!(reply.status, 200);
    let told = reply.body.matches("notifications/progress").count();
    assert_eq!(told, 6, "{}", reply.body);
    let data = &reply.answer()["result"]["structuredContent"];
    assert_eq!(data["status"], "complete");
    let unknown = server.post(&[("Mcp-Session-Id", "x")], &call(3, "status", json!({})));
    assert_eq!(unknown.status, 404);
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn pages_of_other_hosts_are_refused() {
    let project = Project::letters();
    let server = Server::start(&project);
    for headers in [
        [("Host", "evil.example"), ("Origin", "http://evil.example")],
        [
            ("Host", server.address.as_str()),
            ("Origin", "http://evil.example"),
        ],
        [
            ("Host", "evil.example:80"),
            ("Origin", "http://localhost:5173"),
        ],
    ] {
        let reply = server.post(&headers, &hello());
        assert_eq!(reply.status, 403, "{headers:?}: {}", reply.body);
    }
    let local = [
        ("Host", server.address.as_str()),
        ("Origin", "http://localhost:5173"),
    ];
    assert_eq!(server.post(&local, &hello()).status, 200);
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn an_open_stream_does_not_keep_the_server_from_ending() {
    let project = Project::letters();
    let server = Server::start(&project);
    let id = server.session();
    let mut events = BufReader::new(server.send("GET", &[("Mcp-Session-Id", &id)], ""));
    let mut line = String::new();
    events.read_line(&mut line).unwrap();
    assert!(line.contains("200"), "{line}");
    // A call that would wait for an hour.
    let wait = call(
        4,
        "wait_for_subagent",
        json!({"output_file": "x.json", "timeout": 3600}),
    );
    let mut waits =
        BufReader::new(server.send("POST", &[("Mcp-Session-Id", &id)], &wait.to_string()));
    let mut told = String::new();
    while !told.contains("is not there") {
        told.clear();
        assert!(waits.read_line(&mut told).unwrap() > 0);
    }
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let project = Project::letters();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let said = project.output(&format!("mcp --http {port}"));
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(
        said.err
            .starts_with(&format!("error: cannot listen at 127.0.0.1:{port}: ")),
        "{}",
        said.err
    );
}
