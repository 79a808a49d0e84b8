//! Clients of the MCP server that take more than their share.

use crate::mcp::client::{Client, well};
use crate::mcp::http_server::{Reply, Server, call, hello};
use crate::support::Project;
use milepost_engine::ops::token::token;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;

/// A wait for a file that never comes.
fn wait(id: u64) -> Value {
    let arguments = json!({"output_file": "x.json", "timeout": 3600});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "wait_for_subagent", "arguments": arguments}})
}

/// The state of the project, by a session of its own.
#[track_caller]
fn status(server: &Server) {
    let id = server.session();
    let reply = server.post(&[("Mcp-Session-Id", &id)], &call(2, "status", json!({})));
    let data = &reply.answer()["result"]["structuredContent"];
    assert_eq!(data["project"], "letters", "{}", reply.body);
}

/// The most memory that a process ever used, in bytes.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

#[test]
fn requests_without_the_token_are_refused_and_the_token_is_for_its_owner() {
    let project = Project::letters();
    let server = Server::start(&project);
    for given in [
        "",
        "Bearer ",
        "Bearer 0",
        "Basic bWlsZXBvc3Q6bWlsZXBvc3Q=",
        &server.token,
        &format!("Bearer {}0", server.token),
        &format!("Bearer {}", &server.token[1..]),
    ] {
        let reply = server.post(&[("Authorization", given)], &hello());
        assert_eq!(reply.status, 401, "{given}: {}", reply.body);
        assert!(
            reply.head.contains("www-authenticate: bearer"),
            "{}",
            reply.head
        );
    }
    let lower = format!("bearer {}", server.token);
    assert_eq!(
        server.post(&[("Authorization", &lower)], &hello()).status,
        200
    );
    let file = project.at("workspace/.milepost/mcp-token");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept.trim_end(), server.token);
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let first = server.token.clone();
    assert_eq!(server.end(), (Some(0), String::new()));
    // The next server has the same one; if others could read it, another one.
    let server = Server::start(&project);
    assert_eq!(server.token, first);
    server.end();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let server = Server::start(&project);
    assert_ne!(server.token, first);
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    server.end();
}

#[test]
fn the_token_is_that_of_the_environment_or_none_on_demand() {
    let project = Project::letters();
    let mut command = project.command(&["mcp", "--http", "0"]);
    let server = Server::of(command.env("MILEPOST_MCP_TOKEN", "a-token-of-my-own"));
    assert_eq!(server.token, "a-token-of-my-own");
    status(&server);
    server.end();
    assert!(!project.at("workspace/.milepost/mcp-token").exists());
    let server = Server::of(&mut project.command(&["mcp", "--http", "0", "--no-token"]));
    assert_eq!(
        server.said,
        [
            "warning: every user and every program of this machine may call the server: it asks for no token"
        ]
    );
    status(&server);
    server.end();
    // The warning is shown to those who want to read nothing else.
    let mut quiet = project.command(&["-q", "mcp", "--http", "0", "--no-token"]);
    let mut quiet = quiet.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut err = BufReader::new(quiet.stderr.take().unwrap());
    err.read_line(&mut said).unwrap();
    quiet.kill().unwrap();
    quiet.wait().unwrap();
    assert_eq!(
        said,
        "warning: every user and every program of this machine may call the server: it asks for no token\n"
    );
    let mut command = project.command(&["mcp", "--http", "0"]);
    let refused = command.env("MILEPOST_MCP_TOKEN", "short").output().unwrap();
    let err = String::from_utf8(refused.stderr).unwrap();
    assert!(
        err.starts_with("error: `MILEPOST_MCP_TOKEN` is not a token"),
        "{err}"
    );
    let refused = project.output("mcp --no-token");
    assert_eq!(refused.code, 2, "{}", refused.err);
}

#[test]
fn six_hundred_waiting_calls_do_not_starve_a_status() {
    let project = Project::letters();
    let server = Server::start(&project);
    let mut streams = Vec::new();
    let mut refused = 0;
    for _ in 0..100 {
        let id = server.session();
        for number in 0..6 {
            let text = wait(number + 10).to_string();
            let stream = server.send("POST", &[("Mcp-Session-Id", &id)], &text);
            let mut reader = BufReader::new(stream);
            // The head of the reply: the call has begun, or is refused.
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {}
            assert!(line.contains(" 200 ") || line.contains(" 429 "), "{line}");
            refused += u32::from(line.contains(" 429 "));
            streams.push(reader);
        }
    }
    assert_eq!(refused, 0);
    status(&server);
    // Those that are too many are told so.
    let id = server.session();
    let reply = server.post(&[("Mcp-Session-Id", &id)], &wait(5));
    assert_eq!(
        reply.answer()["result"]["structuredContent"]["code"],
        "too_many_calls"
    );
    status(&server);
    assert_eq!(server.end(), (Some(0), String::new()));
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

#[test]
fn half_sent_requests_block_nobody() {
    let project = Project::letters();
    // Few files may be open, so that connections without end leave none.
    let program = project.command(&[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 256; exec \"$0\" mcp --http 0"])
        .arg(program.get_program())
        .current_dir(project.path());
    let server = Server::of(&mut command);
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n",
        server.address, server.token
    );
    let mut half = Vec::new();
    for number in 0..600 {
        // Nothing, half of a head, and half of a body, for which there was no limit of time.
        let text = match number % 4 {
            0 => "",
            1 => head.as_str(),
            _ => &format!("{head}Content-Length: 1000\r\n\r\n{{"),
        };
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        half.push(stream);
        if number % 100 == 99 {
            status(&server);
        }
    }
    assert_eq!(server.end(), (Some(0), String::new()));
}

#[test]
fn pipelined_requests_take_little_memory() {
    const COUNT: usize = 1_000;
    let project = Project::letters();
    let server = Server::start(&project);
    let id = server.session();
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}).to_string();
    for headers in [format!("Mcp-Session-Id: {id}\r\n"), String::new()] {
        let body = if headers.is_empty() {
            hello().to_string()
        } else {
            list.clone()
        };
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            server.address,
            server.token,
            body.len()
        );
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let reading = BufReader::new(stream.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let lines = reading.split(b'\n').map(Result::unwrap);
            let heads = lines.filter(|line| line.starts_with(b"HTTP/1.1 200"));
            heads.take(COUNT).count()
        });
        for _ in 0..COUNT {
            stream.write_all(request.as_bytes()).unwrap();
        }
        assert_eq!(reader.join().unwrap(), COUNT);
    }
    let peak = peak_memory(server.pid());
    assert!(peak < 200 << 20, "{} MB", peak >> 20);
    status(&server);
    server.end();
}

#[test]
fn a_body_or_a_head_without_end_is_refused() {
    let project = Project::letters();
    let server = Server::start(&project);
    let long = json!({"long": "x".repeat(5 << 20)}).to_string();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        server.address,
        server.token,
        long.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server may close the connection before it was read to its end.
    let _ = stream.write_all(long.as_bytes());
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.contains(" 413 "), "{line}");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let name = "x".repeat(100 << 10);
    let _ = stream.write_all(format!("POST / HTTP/1.1\r\n{name}").as_bytes());
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.contains(" 431 "), "{line}");
    status(&server);
    server.end();
}

/// An attack of our own: sessions without end. The oldest idle ones make room; one at work stays.
#[test]
fn sessions_without_end_do_not_end_the_one_at_work() {
    let project = Project::letters();
    let server = Server::start(&project);
    let id = server.session();
    let mut at_work = BufReader::new(server.send("GET", &[("Mcp-Session-Id", &id)], ""));
    let mut line = String::new();
    at_work.read_line(&mut line).unwrap();
    assert!(line.contains("200"), "{line}");
    let first = server.session();
    for _ in 0..700 {
        assert_eq!(server.post(&[], &hello()).status, 200);
    }
    let ask = |id: &str| {
        server
            .post(&[("Mcp-Session-Id", id)], &call(2, "status", json!({})))
            .status
    };
    assert_eq!((ask(&id), ask(&first)), (200, 404));
    server.end();
}

/// An attack of our own: requests for a session that is not the client's, and methods and paths that are not served.
#[test]
fn odd_requests_are_refused_and_the_server_lives_on() {
    let project = Project::letters();
    let server = Server::start(&project);
    let long = "7".repeat(10_000);
    for (headers, status) in [
        ([("Mcp-Session-Id", long.as_str()), ("X", "")], 404),
        ([("Mcp-Session-Id", "\u{9b}31m"), ("X", "")], 400),
        ([("Content-Type", "text/plain"), ("X", "")], 415),
        ([("Host", "evil.example"), ("Origin", "null")], 403),
    ] {
        let reply = server.post(&headers, &call(2, "status", json!({})));
        let found = if reply.status == 422 {
            400
        } else {
            reply.status
        };
        assert_eq!(found, status, "{headers:?}: {}", reply.body);
    }
    for method in ["PUT", "PATCH", "TRACE", "BREW"] {
        let reply = Reply::read(server.send(method, &[], ""));
        assert_eq!(reply.status, 405, "{method}");
    }
    status(&server);
    server.end();
}

/// An attack of our own: a page of another host that guesses the port, a token in other places, two lengths of one body.
#[test]
fn names_of_other_hosts_and_tokens_in_other_places_are_refused() {
    let project = Project::letters();
    let server = Server::start(&project);
    let body = hello().to_string();
    let ask = |path: &str, headers: &str| {
        let length = body.len();
        let text = format!(
            "POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let (token, host) = (&server.token, format!("Host: {}\r\n", server.address));
    let bearer = format!("Authorization: Bearer {token}\r\n");
    for (path, headers, status) in [
        ("/", format!("{host}{bearer}"), "200"),
        (
            "/",
            format!("Host: localhost.evil.example\r\n{bearer}"),
            "403",
        ),
        ("/", format!("Host: evil.example\r\n{host}{bearer}"), "403"),
        ("/", bearer.clone(), "400"),
        ("/", format!("{host}{bearer}Origin: null\r\n"), "403"),
        (
            "/",
            format!("{host}{bearer}Origin: http://localhost.evil.example\r\n"),
            "403",
        ),
        (
            "/",
            format!("{host}{bearer}Origin: http://localhost:99@evil.example\r\n"),
            "403",
        ),
        (
            &format!("/?token={token}&access_token={token}"),
            host.clone(),
            "401",
        ),
        ("/", format!("{host}Cookie: token={token}\r\n"), "401"),
        (
            "/",
            format!("{host}Authorization: Basic {token}\r\n"),
            "401",
        ),
        (
            "/",
            format!("{host}Authorization: Bearer x\r\n{bearer}"),
            "401",
        ),
        ("/", format!("{host}{bearer}Content-Length: 5\r\n"), "400"),
        ("/", format!("{host}{bearer}X: a\r\n b\r\n"), "400"),
    ] {
        assert_eq!(ask(path, &headers), status, "{path} {headers}");
    }
    status(&server);
    server.end();
}

/// An attack of our own: event streams without end. Connections with them make room for those with calls.
#[test]
fn event_streams_without_end_do_not_keep_others_out() {
    let project = Project::letters();
    let server = Server::start(&project);
    let mut streams = Vec::new();
    for _ in 0..7 {
        let id = server.session();
        for _ in 0..90 {
            streams.push(server.send("GET", &[("Mcp-Session-Id", &id)], ""));
        }
    }
    status(&server);
    assert_eq!(server.end(), (Some(0), String::new()));
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

#[test]
fn messages_with_a_key_twice_are_refused_over_http() {
    let project = Project::letters();
    let server = Server::start(&project);
    let id = server.session();
    for (body, why) in TWICE {
        let reply = Reply::read(server.send("POST", &[("Mcp-Session-Id", &id)], body));
        assert_eq!(reply.status, 400, "{}", reply.body);
        assert!(reply.body.contains(why), "{}", reply.body);
    }
    assert!(!project.exists("workspace/outputs"));
    status(&server);
    assert_eq!(server.end(), (Some(0), String::new()));
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
    writeln!(ours, "{}", hello()).unwrap();
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

#[test]
fn servers_that_start_at_once_have_one_token() {
    let project = Project::letters();
    let request = project.request();
    for _ in 0..20 {
        let start = Barrier::new(4);
        let tokens = std::thread::scope(|scope| {
            let server = || {
                start.wait();
                token(&request).unwrap().text
            };
            let servers = [(); 4].map(|()| scope.spawn(server));
            servers.map(|server| server.join().unwrap())
        });
        assert!(tokens.iter().all(|token| *token == tokens[0]));
        project.remove("workspace/.milepost/mcp-token");
    }
}
