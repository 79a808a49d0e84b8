//! Messages on standard input and output. A line that is not a message, or too long, gets an answer and does no harm.

use super::limits::{DRAIN, LINE, UNREAD};
use super::server::Server;
use milepost_core::expr::json;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Stdin, Stdout};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// The codes of JSON-RPC for a text that is not JSON, and for JSON that is not a message.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// The lines of standard input and output. Clones share them.
#[derive(Clone)]
pub(super) struct Lines {
    input: Arc<AsyncMutex<Input>>,
    output: Arc<AsyncMutex<Stdout>>,
    answers: Arc<Answers>,
    server: Server,
}

struct Input {
    stdin: BufReader<Stdin>,
    /// The part of the present line that was read.
    line: Vec<u8>,
    /// True while the rest of a line that is too long is skipped.
    skips: bool,
    is_over: bool,
    /// Answers to lines that are not messages, on their way.
    refusals: JoinSet<()>,
}

/// The requests whose answers the client has not read. No further line is read while there are too many.
struct Answers {
    room: Arc<Semaphore>,
    open: Mutex<HashMap<RequestId, OwnedSemaphorePermit>>,
}

/// A line of standard input.
enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// The answer to a line that is not a message.
#[derive(Debug, PartialEq)]
struct Malformed {
    code: i32,
    id: Value,
    message: String,
}

impl Lines {
    /// The end of standard input cancels the calls of `server`.
    pub(super) fn new(server: Server) -> Self {
        let (stdin, stdout) = rmcp::transport::stdio();
        Self {
            input: Arc::new(AsyncMutex::new(Input {
                stdin: BufReader::new(stdin),
                line: Vec::new(),
                skips: false,
                is_over: false,
                refusals: JoinSet::new(),
            })),
            output: Arc::new(AsyncMutex::new(stdout)),
            answers: Arc::new(Answers {
                room: Arc::new(Semaphore::new(UNREAD)),
                open: Mutex::default(),
            }),
            server,
        }
    }

    /// Answers a line that is not a message, on a task of its own: reading may be cancelled at any moment.
    fn refuse(&self, input: &mut Input, malformed: Malformed, room: OwnedSemaphorePermit) {
        let Malformed { code, id, message } = malformed;
        let error = json!({"code": code, "message": message});
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
        let output = Arc::clone(&self.output);
        while input.refusals.try_join_next().is_some() {}
        input.refusals.spawn(async move {
            // A client that is gone reads no answers.
            let _ = write(&output, answer.to_string()).await;
            drop(room);
        });
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (output, answers) = (Arc::clone(&self.output), Arc::clone(&self.answers));
        async move {
            let answered = match &message {
                JsonRpcMessage::Response(response) => Some(response.id.clone()),
                JsonRpcMessage::Error(error) => error.id.clone(),
                _ => None,
            };
            let written = write(&output, serde_json::to_string(&message)?).await;
            if let Some(id) = answered {
                answers.open().remove(&id);
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let input = Arc::clone(&self.input);
        let mut input = input.lock().await;
        loop {
            let room = Arc::clone(&self.answers.room).acquire_owned().await.ok()?;
            let read = match input.line().await {
                Some(Line::Whole(line)) => message(&line),
                Some(Line::TooLong) => Err(Malformed::request(
                    Value::Null,
                    format!("the line is longer than {LINE} bytes"),
                )),
                None => {
                    self.server.stop();
                    let refusals = std::mem::take(&mut input.refusals);
                    let _ = tokio::time::timeout(DRAIN, refusals.join_all()).await;
                    return None;
                }
            };
            let message = match read {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(malformed) => {
                    self.refuse(&mut input, malformed, room);
                    continue;
                }
            };
            match &message {
                JsonRpcMessage::Request(request) => {
                    if self.answers.open().contains_key(&request.id) {
                        let id = json!(request.id);
                        let why = format!("a request with the id {id} is in progress");
                        self.refuse(&mut input, Malformed::request(id, why), room);
                        continue;
                    }
                    self.answers.open().insert(request.id.clone(), room);
                }
                JsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancelled) =
                        &notification.notification
                    {
                        // A cancelled request has no answer.
                        if let Some(id) = &cancelled.params.request_id {
                            self.answers.open().remove(id);
                        }
                    }
                }
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Answers {
    fn open(&self) -> MutexGuard<'_, HashMap<RequestId, OwnedSemaphorePermit>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Input {
    /// Returns the next line, or `None` at the end. If this is cancelled, the next call continues.
    async fn line(&mut self) -> Option<Line> {
        loop {
            if self.is_over {
                return None;
            }
            let (taken, is_whole) = match self.stdin.fill_buf().await {
                Ok([]) | Err(_) => {
                    self.is_over = true;
                    (0, true)
                }
                Ok(bytes) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let taken = end.map_or(bytes.len(), |end| end + 1);
                    if !self.skips {
                        self.line.extend_from_slice(&bytes[..taken]);
                    }
                    (taken, end.is_some())
                }
            };
            self.stdin.consume(taken);
            let was_skipped = self.skips;
            self.skips = !is_whole && (self.skips || self.line.len() > LINE);
            if self.line.len() > LINE {
                self.line = Vec::new();
                return Some(Line::TooLong);
            }
            if is_whole && !was_skipped && !self.line.trim_ascii().is_empty() {
                return Some(Line::Whole(std::mem::take(&mut self.line)));
            }
            if is_whole {
                self.line.clear();
            }
        }
    }
}

impl Malformed {
    fn request(id: Value, message: impl Into<String>) -> Self {
        Self {
            code: INVALID_REQUEST,
            id,
            message: message.into(),
        }
    }
}

/// Reads a message; `None` for a notification that is not known, because notifications have no answers.
fn message(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Malformed> {
    let value: Value = serde_json::from_slice(line).map_err(|error| Malformed {
        code: PARSE_ERROR,
        id: Value::Null,
        message: format!("the line is not JSON: {error}"),
    })?;
    let Some(object) = value.as_object() else {
        let why = "expected a JSON object: batches of messages are not supported";
        return Err(Malformed::request(Value::Null, why));
    };
    let id = object.get("id");
    let is_id = |id: &Value| id.is_string() || id.is_i64();
    let known = id.filter(|id| is_id(id)).cloned().unwrap_or_default();
    let wrong = |why: &str| Err(Malformed::request(known.clone(), why));
    if let Err(error) = json::parse_bytes(line) {
        return wrong(&format!("the message is invalid: {error}"));
    }
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return wrong("`jsonrpc` must be \"2.0\"");
    }
    if id.is_some_and(|id| !is_id(id)) {
        return wrong("`id` must be a string or an integer");
    }
    match object.get("method") {
        Some(method) if !method.is_string() => return wrong("`method` must be a string"),
        Some(_) => {}
        None if id.is_some() && object.contains_key("result") != object.contains_key("error") => {}
        None => return wrong("expected `method`, or `id` with either `result` or `error`"),
    }
    let is_notification = id.is_none();
    let is_request = !is_notification && object.contains_key("method");
    match serde_json::from_value::<ClientJsonRpcMessage>(value) {
        Ok(message) if is_request != matches!(message, JsonRpcMessage::Request(_)) => {
            wrong("the message is not one of the Model Context Protocol")
        }
        Ok(message) => Ok(Some(message)),
        Err(_) if is_notification => Ok(None),
        Err(error) => wrong(&format!("the message is invalid: {error}")),
    }
}

async fn write(output: &AsyncMutex<Stdout>, mut line: String) -> io::Result<()> {
    line.push('\n');
    let mut output = output.lock().await;
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_messages_from_what_is_none() {
        let null = Value::Null;
        for (line, code, id) in [
            ("x", PARSE_ERROR, &null),
            ("{\"id\": 1", PARSE_ERROR, &null),
            ("\u{feff}[", PARSE_ERROR, &null),
            ("[]", INVALID_REQUEST, &null),
            ("7", INVALID_REQUEST, &null),
            ("{\"jsonrpc\": \"2.0\"}", INVALID_REQUEST, &null),
            (
                "{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"ping\"}",
                INVALID_REQUEST,
                &json!(1),
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": \"a\", \"method\": 1}",
                INVALID_REQUEST,
                &json!("a"),
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": 3, \"method\": \"a\", \"params\": {\"b\": [{\"c\": 1, \"\\u0063\": 2}]}}",
                INVALID_REQUEST,
                &json!(3),
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": 4, \"method\": \"a\", \"method\": \"ping\"}",
                INVALID_REQUEST,
                &json!(4),
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": 1.5, \"method\": \"ping\"}",
                INVALID_REQUEST,
                &null,
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"ping\"}",
                INVALID_REQUEST,
                &null,
            ),
            (
                "{\"jsonrpc\": \"2.0\", \"id\": 2, \"result\": {}, \"error\": {}}",
                INVALID_REQUEST,
                &json!(2),
            ),
        ] {
            let found = message(line.as_bytes()).unwrap_err();
            assert_eq!((found.code, &found.id), (code, id), "{line}");
        }
        let ping = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}";
        assert!(matches!(
            message(ping.as_bytes()),
            Ok(Some(JsonRpcMessage::Request(_)))
        ));
        assert!(
            message("{\"jsonrpc\": \"2.0\", \"method\": \"notifications/unknown\"}".as_bytes())
                .is_ok()
        );
    }
}
