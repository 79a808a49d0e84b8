//! The server by HTTP: sessions, streams, pages of other hosts, and the end while a stream is open.

use crate::support::Project;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A server at a port of its own.
struct Server {
    child: Child,
    address: String,
}

/// What came back.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    fn start(project: &Project) -> Server {
        let mut child = project
            .command(&["mcp", "--http", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        err.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("listening at http://")
            .and_then(|rest| rest.strip_suffix('/'))
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned();
        // What is said later must not end the program for want of a reader.
        std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
        Server { child, address }
    }

    /// Sends a request; the stream is open for the reply.
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Connection", "close"),
        ];
        if !headers.iter().any(|(name, _)| *name == "Host") {
            all.push(("Host", &self.address));
        }
        all.extend(headers);
        let head: String = all
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = body.len();
        let request =
            format!("{method} / HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn post(&self, headers: &[(&str, &str)], body: &Value) -> Reply {
        let mut stream = self.send("POST", headers, &body.to_string());
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    }

    /// A session that has said who it is.
    fn session(&self) -> String {
        let reply = self.post(&[], &hello());
        assert_eq!(reply.status, 200, "{}", reply.body);
        let id = reply
            .head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.unwrap().to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&[("Mcp-Session-Id", &id)], &ready).status, 202);
        id
    }

    /// Ends it as a service manager does; what it wrote to standard output.
    fn end(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut out = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut out).unwrap();
        (self.child.wait().unwrap().code(), out)
    }
}

impl Reply {
    /// The message with an id in a stream of events.
    fn answer(&self) -> Value {
        let events = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let answer = messages.find(|message| message.get("id").is_some());
        answer.unwrap_or_else(|| panic!("{}", self.body))
    }
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "script", "version": "1"},
    }})
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    let parameters = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters})
}

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
        said.err.starts_with(&format!(
            "error: cannot listen at port {port} of this machine: "
        )),
        "{}",
        said.err
    );
}
