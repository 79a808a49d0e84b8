//! The render service of `examples/diagrams`: what it draws, what it refuses, and what its errors are called.

use super::{NO_CHROMIUM, PATTERNS, example, folder, free_port};
use crate::agents::server::{Play, Server};
use crate::support::required::require;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[test]
fn errors_of_the_render_service_have_names() {
    let unfit = r#"{"metadata": {}}"#.to_owned();
    for (play, said) in [
        (
            Play::Closes,
            "author/card_001 failed: Diagram rendering failed: CONNECTION_ERROR: POST http://",
        ),
        (
            Play::Says(500, &[], "broken".to_owned()),
            "author/card_001 failed: Diagram rendering failed: HTTP_ERROR: POST http://",
        ),
        (
            Play::Stalls,
            "author/card_001 failed: Diagram rendering failed: TIMEOUT: Rendering timeout after 1 seconds: POST http://",
        ),
        (
            Play::Says(200, &["content-type: application/json"], unfit),
            "author/card_001 failed: Diagram rendering failed: INVALID_STRUCTURE: POST http://",
        ),
    ] {
        let mut project = require!(example());
        let service = Server::new(vec![Play::Says(200, &[], "{}".to_owned()), play]);
        project.env("DIAGRAM_SCREENSHOT_URL", &service.url);
        project.edit(
            "stages/3_author.toml",
            "timeout = \"30s\"",
            "timeout = \"1s\"",
        );
        project.edit(
            "stages/3_author.toml",
            "after 30 seconds",
            "after 1 seconds",
        );
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says(said);
        let lines: Vec<String> = service.seen().into_iter().map(|seen| seen.line).collect();
        assert_eq!(lines, ["GET /health", "POST /api/v1/render"], "asked once");
    }
    let project = require!(example());
    project
        .run_unplanned(&["--set", "renderer=jsxgraph"])
        .says("author/card_001 failed: Diagram rendering failed: HTTP_ERROR: POST http://")
        .says("\"error\":\"Diagram rendering failed: the renderer jsxgraph is not here");
    project.edit("milepost.toml", "service/server.js", "milepost.toml");
    project.run_unplanned(&["--unset", "renderer", "--until", "patterns"]);
    project
        .run_unplanned(&[])
        .says("author/card_001 failed: CONNECTION_ERROR: the service `screenshot`: it ended");
    // Nobody listens.
    let project = require!(example());
    project.edit("stages/3_author.toml", "services = [\"screenshot\"]\n", "");
    project
        .run_unplanned(&[])
        .says("author/card_001 failed: Diagram rendering failed: CONNECTION_ERROR: Cannot connect to DiagramScreenshot service: POST http://127.0.0.1:");
    let project = require!(example());
    project.write("filters/author.jq", "{board: {}, elements: []}");
    project
        .run_unplanned(&[])
        .says("author/card_001 failed: INVALID_STRUCTURE: agent `diagram_author`");
}

/// The render service alone, ended when it is dropped.
struct Service {
    child: Child,
    port: u16,
}

impl Service {
    fn start() -> Service {
        Service::start_in(&folder().join("service"), Path::new(NO_CHROMIUM))
    }

    fn start_in(service: &Path, chromium: &Path) -> Service {
        let port = free_port();
        let child = Command::new("node")
            .arg(service.join("server.js"))
            .env("DIAGRAM_SCREENSHOT_URL", format!("http://127.0.0.1:{port}"))
            .env("CHROMIUM", chromium)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let service = Service { child, port };
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(std::time::Instant::now() < end, "the service does not come");
            std::thread::yield_now();
        }
        service
    }

    /// Sends a request; gives the status and the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: service\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_render_service_draws_and_refuses() {
    require!(example());
    let service = Service::start();
    assert_eq!(
        service.ask("GET", "/health", ""),
        (
            200,
            json!({"status": "ok", "renderers": {"plain": true, "jsxgraph": false}})
        )
    );
    let board = json!({"boundingbox": [-1, 1, 1, -1]});
    let point =
        json!({"type": "point", "name": "A", "parents": [0, 0], "attributes": {"face": "x"}});
    let diagram = json!({"diagram": {"board": board, "elements": [point]}});
    let (status, answer) = service.ask("POST", "/api/v1/render", &diagram.to_string());
    assert_eq!(
        (status, &answer["success"]),
        (200, &json!(true)),
        "{answer}"
    );
    let fallback = answer["metadata"]["fallback"].as_str().unwrap();
    assert!(fallback.starts_with(
        "the renderer jsxgraph is not here: CHROMIUM names /nowhere/chromium, which is not there"
    ));
    assert_eq!(
        answer["metadata"],
        json!({
            "renderer": "plain", "fallback": fallback,
            "note": "drawn by the service itself, without a browser and without JSXGraph",
            "format": "png", "width": 600, "height": 600, "board": {"width": 600, "height": 600},
            "labels": [{"text": "A", "x": 310, "y": 281.6, "width": 6.5, "height": 16.8, "crossed_by": []}],
            "points": [{"name": "A", "x": 300, "y": 300}], "ticks": [],
            "ignored": ["attributes.face"],
        })
    );
    let with =
        |elements: Value| json!({"diagram": {"board": board, "elements": elements}}).to_string();
    let jsxgraph =
        json!({"diagram": diagram["diagram"], "options": {"renderer": "jsxgraph"}}).to_string();
    for (method, path, body, status, code, error) in [
        (
            "POST",
            "/api/v1/render",
            "{}".to_owned(),
            400,
            "INVALID_STRUCTURE",
            "Missing 'diagram' key in JSON",
        ),
        (
            "POST",
            "/api/v1/render",
            "{".to_owned(),
            400,
            "INVALID_STRUCTURE",
            "the request is no JSON",
        ),
        (
            "POST",
            "/api/v1/render",
            with(json!([{"type": "ellipse", "parents": []}])),
            400,
            "INVALID_STRUCTURE",
            "diagram.elements[0].type is \"ellipse\"",
        ),
        (
            "POST",
            "/api/v1/render",
            with(json!([{"type": "segment", "parents": ["A", "B"]}])),
            400,
            "INVALID_STRUCTURE",
            "do not make a segment",
        ),
        (
            "POST",
            "/api/v1/render",
            with(json!([{"type": "functiongraph", "parents": ["process.exit(1)"]}])),
            400,
            "INVALID_STRUCTURE",
            "is no term of x",
        ),
        (
            "POST",
            "/api/v1/render",
            jsxgraph,
            503,
            "RENDERER_MISSING",
            "Diagram rendering failed: the renderer jsxgraph is not here: CHROMIUM names /nowhere/chromium",
        ),
        (
            "GET",
            "/api/v1/render",
            String::new(),
            405,
            "METHOD_NOT_ALLOWED",
            "takes POST",
        ),
        (
            "POST",
            "/elsewhere",
            String::new(),
            404,
            "NOT_FOUND",
            "nothing is at /elsewhere",
        ),
    ] {
        let (found, answer) = service.ask(method, path, &body);
        assert_eq!(
            (found, &answer["success"], &answer["error_code"]),
            (status, &json!(false), &json!(code)),
            "{answer}"
        );
        assert!(
            answer["error"].as_str().unwrap().contains(error),
            "{answer}"
        );
    }
}

/// Every pattern is a diagram that the service draws: with a title, nothing ignored, and no line through a label.
#[test]
fn every_pattern_can_be_drawn() {
    require!(example());
    let service = Service::start();
    let mut drawn = 0;
    for name in PATTERNS
        .iter()
        .filter(|name| name.ends_with("_patterns.json"))
    {
        let file = folder().join("data/jsxgraph_patterns").join(name);
        let library: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        for pattern in library["patterns"].as_array().unwrap() {
            let (status, answer) = service.ask("POST", "/api/v1/render", &pattern.to_string());
            assert_eq!(status, 200, "{name}: {answer}");
            let metadata = &answer["metadata"];
            assert_eq!(metadata["ignored"], json!([]), "{name}: {pattern}");
            let labels = metadata["labels"].as_array().unwrap();
            let title = &pattern["diagram"]["board"]["title"];
            assert!(
                labels.iter().any(|label| label["text"] == *title),
                "{name}: {title}"
            );
            let crossed: Vec<&Value> = labels
                .iter()
                .filter(|label| label["crossed_by"] != json!([]))
                .collect();
            assert!(crossed.is_empty(), "{name}: {title}: {crossed:?}");
            drawn += 1;
        }
    }
    assert_eq!(drawn, 14);
}

/// A program in the place of Chromium: runs `begin`, then prints a page whose title is what `page.js` reports.
fn fake_chromium(folder: &Path, begin: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let program = folder.join("chromium");
    let told = json!({"labels": [], "points": [], "ticks": []}).to_string();
    let title = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, told);
    let text = format!(
        "#!/bin/sh\n{begin}\n\
         for part; do case $part in --screenshot=*) printf picture > \"${{part#*=}}\";; esac; done\n\
         echo '<title>{title}</title>'\n"
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// JSXGraph in Chromium draws wherever both are there; if Chromium fails, or crashes twice, the service draws, and says why.
#[test]
fn jsxgraph_draws_where_it_is_there() {
    let project = require!(example());
    project.write("service/node_modules/jsxgraph/distrib/jsxgraphcore.js", "");
    let board = json!({"boundingbox": [-1, 1, 1, -1]});
    let body = json!({"diagram": {"board": board, "elements": []}});
    let crashes_once = "mkdir ${0%/*}/crashed 2>/dev/null && kill -SEGV $$";
    for (begin, renderer, fallback) in [
        ("", "jsxgraph", json!(null)),
        (crashes_once, "jsxgraph", json!(null)),
        ("exit 7", "plain", json!("Chromium ended with exit code 7")),
        (
            "kill -SEGV $$",
            "plain",
            json!("Chromium crashed (SIGSEGV)"),
        ),
    ] {
        let chromium = fake_chromium(&project.at(""), begin);
        let service = Service::start_in(&project.at("service"), &chromium);
        let (status, answer) = service.ask("POST", "/api/v1/render", &body.to_string());
        assert_eq!(status, 200, "{answer}");
        let metadata = &answer["metadata"];
        assert_eq!(
            (&metadata["renderer"], &metadata["fallback"]),
            (&json!(renderer), &fallback)
        );
        if renderer == "plain" {
            let body = json!({"diagram": body["diagram"], "options": {"renderer": "jsxgraph"}});
            let (status, answer) = service.ask("POST", "/api/v1/render", &body.to_string());
            assert_eq!(
                (status, &answer["error_code"]),
                (500, &json!("RENDER_FAILED"))
            );
        } else {
            assert_eq!(answer["image"], "cGljdHVyZQ==");
        }
    }
}

/// What the MCP server answers, in the order of the answers' ids.
fn mcp(url: &str, messages: &[Value]) -> Vec<Value> {
    let mut child = Command::new("node")
        .arg(folder().join("service/mcp.js"))
        .env("DIAGRAM_SCREENSHOT_URL", url)
        .env("RENDER_TIMEOUT", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

/// The tool of the document: its name, its argument, its answers and its errors.
#[test]
fn the_tool_render_diagram_is_offered_over_mcp() {
    require!(example());
    let call = |id: u32, text: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "render_diagram", "arguments": {"jsxgraph_json": text}}})
    };
    let diagram =
        json!({"diagram": {"board": {"boundingbox": [-1, 1, 1, -1]}, "elements": []}}).to_string();
    let said = |answer: &Value| -> (Value, Value) {
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        (
            serde_json::from_str(text).unwrap(),
            answer["result"]["isError"].clone(),
        )
    };

    let service = Service::start();
    let url = format!("http://127.0.0.1:{}", service.port);
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let answers = mcp(
        &url,
        &[
            start,
            list,
            call(3, &diagram),
            call(4, "{}"),
            call(5, r#"{"diagram": 1}"#),
        ],
    );
    assert_eq!(
        answers[0]["result"]["serverInfo"]["name"],
        "diagram-screenshot"
    );
    assert_eq!(answers[1]["result"]["tools"][0]["name"], "render_diagram");
    let (drawn, is_error) = said(&answers[2]);
    assert_eq!((&drawn["success"], &is_error), (&json!(true), &json!(null)));
    assert_eq!(answers[2]["result"]["content"][1]["data"], drawn["image"]);
    assert_eq!(
        said(&answers[3]),
        (
            json!({"success": false, "error": "Missing 'diagram' key in JSON", "error_code": "INVALID_STRUCTURE"}),
            json!(true)
        )
    );
    let (refused, is_error) = said(&answers[4]);
    assert_eq!(
        (&refused["error_code"], is_error),
        (&json!("HTTP_ERROR"), json!(true))
    );
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .starts_with("HTTP 400: diagram.board.boundingbox must be")
    );
    drop(service);

    let error = |error: String, code: &str| {
        (
            json!({"success": false, "error": error, "error_code": code}),
            json!(true),
        )
    };
    assert_eq!(
        said(&mcp(&url, &[call(1, &diagram)])[0]),
        error(
            format!("Cannot connect to DiagramScreenshot service at {url}"),
            "CONNECTION_ERROR"
        )
    );
    let silent = Server::new(vec![Play::Stalls]);
    assert_eq!(
        said(&mcp(&silent.url, &[call(1, &diagram)])[0]),
        error("Rendering timeout after 1 seconds".to_owned(), "TIMEOUT")
    );
}
