//! A server by HTTP, and the requests that tests send to it.

use crate::support::Project;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A server at a port of its own.
pub struct Server {
    child: Child,
    pub address: String,
    /// What its clients must send.
    pub token: String,
    /// The lines that it wrote after its address.
    pub said: Vec<String>,
}

/// What came back.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Server {
    pub fn start(project: &Project) -> Server {
        Self::of(&mut project.command(&["mcp", "--http", "0"]))
    }

    /// The server that a command starts.
    pub fn of(command: &mut Command) -> Server {
        let mut child = command
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
        // The token, or the warning that there is none; then the file of the token.
        let mut said = Vec::new();
        let mut token = String::new();
        while token.is_empty() {
            let mut line = String::new();
            err.read_line(&mut line).unwrap();
            said.push(line.trim_end().to_owned());
            if line.starts_with("warning: ") {
                break;
            }
            let configuration = line.strip_prefix("client configuration: ").unwrap();
            let configuration: Value = serde_json::from_str(configuration).unwrap();
            let server = &configuration["mcpServers"]["milepost"];
            assert_eq!(server["url"], format!("http://{address}/"));
            let bearer = server["headers"]["Authorization"].as_str().unwrap();
            bearer
                .strip_prefix("Bearer ")
                .unwrap()
                .clone_into(&mut token);
        }
        // What is said later must not end the program for want of a reader.
        std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
        Server {
            child,
            address,
            token,
            said,
        }
    }

    /// Sends a request; the stream is open for the reply.
    pub fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // A server that answers nobody fails the test.
        let minute = std::time::Duration::from_mins(1);
        stream.set_read_timeout(Some(minute)).unwrap();
        let mut all = vec![("Connection", "close")];
        let bearer = format!("Bearer {}", self.token);
        for (name, value) in [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Host", &self.address),
            ("Authorization", &bearer),
        ] {
            if !headers.iter().any(|(given, _)| *given == name) {
                all.push((name, value));
            }
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

    pub fn post(&self, headers: &[(&str, &str)], body: &Value) -> Reply {
        Reply::read(self.send("POST", headers, &body.to_string()))
    }

    /// A session that has said who it is.
    pub fn session(&self) -> String {
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

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a service manager does; what it wrote to standard output.
    pub fn end(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut out = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut out).unwrap();
        (self.child.wait().unwrap().code(), out)
    }
}

impl Reply {
    /// Reads a reply whose connection is closed after it.
    pub fn read(mut stream: TcpStream) -> Reply {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Reply {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    }

    /// The message with an id in a stream of events.
    pub fn answer(&self) -> Value {
        let events = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let answer = messages.find(|message| message.get("id").is_some());
        answer.unwrap_or_else(|| panic!("{}", self.body))
    }
}

pub fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "script", "version": "1"},
    }})
}

pub fn call(id: u64, tool: &str, arguments: Value) -> Value {
    let parameters = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters})
}
