//! A server in the place of a model, for the page that asks one: it labels a comment by the words in it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Starts a server that speaks the Messages API until the tests end, and returns its URL.
pub fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let reply = if body.is_empty() {
        json!({"data": []})
    } else {
        message(&String::from_utf8(body).unwrap())
    };
    let reply = reply.to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{reply}",
        reply.len()
    )
    .unwrap();
}

fn message(prompt: &str) -> Value {
    let label = if prompt.contains("parcel") {
        json!({"topic": "delivery", "is_complaint": true})
    } else if prompt.contains("fabric") {
        json!({"topic": "product", "is_complaint": false})
    } else {
        json!({"topic": "other", "is_complaint": false})
    };
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": label.to_string()}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 82, "output_tokens": 16},
    })
}
