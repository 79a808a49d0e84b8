//! A server that keeps what it is asked and answers by a script, one request a connection.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// `POST /v1/messages`.
    pub line: String,
    /// Headers, their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Seen {
    /// A header by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.0 == name);
        found.map(|header| header.1.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What is answered to one request.
pub enum Play {
    /// A status, more headers (each `name: value`), and a body.
    Says(u16, &'static [&'static str], String),
    /// As many bytes are announced, and those of the body are sent before the connection is closed.
    Cuts(usize, String),
    /// A stream of events, as it is; the connection is closed after it.
    Streams(String),
    /// The beginning of a stream, and then nothing until the client goes.
    StallsAfter(String),
    /// Nothing until the client goes.
    Stalls,
    /// The connection is closed without a word.
    Closes,
    /// What the request leads to.
    By(Arc<dyn Fn(&Seen) -> Play + Send + Sync>),
}

/// A server that runs until it is dropped.
pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// A server that plays these answers, one after another, and then says 500.
    pub fn new(script: Vec<Play>) -> Self {
        let mut script = VecDeque::from(script);
        Self::start(bound(), move || script.pop_front())
    }

    /// A server that answers each request by a function.
    pub fn answering(answer: impl Fn(&Seen) -> Play + Send + Sync + 'static) -> Self {
        Self::on(bound(), answer)
    }

    /// The same at an address of the test's choice.
    pub fn on(
        listener: TcpListener,
        answer: impl Fn(&Seen) -> Play + Send + Sync + 'static,
    ) -> Self {
        let answer: Arc<dyn Fn(&Seen) -> Play + Send + Sync> = Arc::new(answer);
        Self::start(listener, move || Some(Play::By(Arc::clone(&answer))))
    }

    /// Answers the check of a key and one question, and closes the next connection.
    pub fn serve_until(listener: &TcpListener, answer: fn(&Seen) -> Play) {
        let seen = Mutex::default();
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            serve(stream, Play::By(Arc::new(answer)), &seen);
        }
        drop(listener.accept());
    }

    fn start(
        listener: TcpListener,
        mut next: impl FnMut() -> Option<Play> + Send + 'static,
    ) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let play = next();
                let over = play.is_none();
                let play = play.unwrap_or(Play::Says(500, &[], "the script is over".to_owned()));
                let kept = Arc::clone(&kept);
                // A client that is served slowly does not hold up the next.
                std::thread::spawn(move || serve(stream, play, &kept));
                if over {
                    break;
                }
            }
        });
        Self { url, seen }
    }

    /// What came so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn bound() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn serve(mut stream: TcpStream, play: Play, seen: &Mutex<Vec<Seen>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|header| header.0 == "content-length");
    let mut body = vec![0; length.map_or(0, |header| header.1.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let request = Seen {
        line,
        headers,
        body,
    };
    let play = match play {
        Play::By(answer) => answer(&request),
        play => play,
    };
    seen.lock().unwrap().push(request);
    let head = |status: u16, more: &str| {
        format!("HTTP/1.1 {status} Said\r\nconnection: close\r\n{more}\r\n")
    };
    let events = "content-type: text/event-stream\r\n";
    match play {
        Play::Says(status, more, body) => {
            let more: String = more.iter().map(|header| format!("{header}\r\n")).collect();
            let more = format!("{more}content-length: {}\r\n", body.len());
            stream
                .write_all((head(status, &more) + &body).as_bytes())
                .ok()?;
        }
        Play::Cuts(length, body) => {
            let more = format!("content-type: application/json\r\ncontent-length: {length}\r\n");
            stream
                .write_all((head(200, &more) + &body).as_bytes())
                .ok()?;
        }
        Play::Streams(body) => stream
            .write_all((head(200, events) + &body).as_bytes())
            .ok()?,
        Play::StallsAfter(body) => {
            stream
                .write_all((head(200, events) + &body).as_bytes())
                .ok()?;
            wait_for_the_end(&mut stream);
        }
        Play::Stalls => wait_for_the_end(&mut stream),
        Play::Closes | Play::By(_) => {}
    }
    Some(())
}

/// Returns when the client closes the connection.
fn wait_for_the_end(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0; 1]);
}
