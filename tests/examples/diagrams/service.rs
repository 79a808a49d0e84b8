//! The render service of `examples/diagrams`: what it draws, what it refuses, and what its errors are called.

use super::{example, folder, free_port};
use crate::agents::server::{Play, Server};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

#[test]
fn errors_of_the_render_service_have_names() {
    let unfit = r#"{"metadata": {}}"#.to_owned();
    for (play, said) in [
        (
            Play::Closes,
            "author/card_001 failed: CONNECTION_ERROR: POST http://",
        ),
        (
            Play::Says(500, &[], "broken".to_owned()),
            "author/card_001 failed: HTTP_ERROR: POST http://",
        ),
        (
            Play::Stalls,
            "author/card_001 failed: TIMEOUT: POST http://",
        ),
        (
            Play::Says(200, &["content-type: application/json"], unfit),
            "author/card_001 failed: INVALID_STRUCTURE: POST http://",
        ),
    ] {
        let Some(mut project) = example() else { return };
        let service = Server::new(vec![Play::Says(200, &[], "{}".to_owned()), play]);
        project.env("DIAGRAM_SCREENSHOT_URL", &service.url);
        project.edit(
            "stages/3_author.toml",
            "timeout = \"30s\"",
            "timeout = \"1s\"",
        );
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says(said);
        let lines: Vec<String> = service.seen().into_iter().map(|seen| seen.line).collect();
        assert_eq!(lines, ["GET /health", "POST /api/v1/render"], "asked once");
    }
    let Some(project) = example() else { return };
    project.edit("milepost.toml", "service/server.js", "milepost.toml");
    project
        .run_unplanned(&[])
        .says("author/card_001 failed: CONNECTION_ERROR: the service `screenshot`: it ended");
    let Some(project) = example() else { return };
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
        let port = free_port();
        let child = Command::new("node")
            .arg(folder().join("service/server.js"))
            .env("DIAGRAM_SCREENSHOT_URL", format!("http://127.0.0.1:{port}"))
            .env("CHROMIUM", "/nowhere/chromium")
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
    if example().is_none() {
        return;
    }
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
    assert_eq!(
        answer["metadata"],
        json!({
            "renderer": "plain", "note": "drawn by the service itself: neither a browser nor JSXGraph had a part in it",
            "format": "png", "width": 600, "height": 600,
            "labels": [{"text": "A", "x": 310, "y": 281.6, "width": 6.5, "height": 16.8, "crossed_by": []}],
            "points": [{"name": "A", "x": 300, "y": 300}],
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
            "CHROMIUM names /nowhere/chromium, which is not there",
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
