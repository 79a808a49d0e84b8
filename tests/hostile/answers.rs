//! Answers of services that never end, grow, or ask for the impossible: each ends in an outcome, within time and memory.

use crate::support::Project;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How much a service sends before it falls silent, in bytes.
const MOST: usize = 4 << 20;

/// What a service sends: a beginning, and a piece that it repeats until nobody reads it.
struct Answer {
    begin: &'static [u8],
    repeated: &'static [u8],
    /// The code of the outcome.
    expected: &'static str,
    /// What the message contains.
    message: &'static str,
}

const ANSWERS: [Answer; 9] = [
    Answer {
        begin: b"HTTP/1.1 200 OK\r\n",
        repeated: b"X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        expected: "CUT",
        message: "message head is too large",
    },
    Answer {
        begin: b"",
        repeated: b"HTTP/1.1 100 Continue\r\n\r\n",
        expected: "TIMEOUT",
        message: "no answer within 2.0 s",
    },
    Answer {
        begin: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        repeated: b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        expected: "CUT",
        message: "chunk extensions over limit",
    },
    Answer {
        begin: b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n[",
        repeated: b"0,",
        expected: "CUT",
        message: "message head is too large",
    },
    // Nothing is inflated.
    Answer {
        begin: b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\0",
        repeated: b"",
        expected: "PARSE",
        message: "the response is compressed (gzip), although the request accepts no compression",
    },
    Answer {
        begin: b"HTTP/1.1 429 No\r\nRetry-After: 1e300\r\nContent-Length: 0\r\n\r\n",
        repeated: b"",
        expected: "STATUS",
        message: "HTTP 429",
    },
    Answer {
        begin: b"HTTP/1.1 503 No\r\nDate: Mon, 23 Nov 2026 10:00:00 GMT\r\nRetry-After: Thu, 31 Dec 2099 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n",
        repeated: b"",
        expected: "STATUS",
        message: "the server asks to retry in ",
    },
    Answer {
        begin: b"HTTP/1.1 999 No\r\nContent-Length: 2\r\n\r\n{}",
        repeated: b"",
        expected: "STATUS",
        message: "HTTP 999",
    },
    Answer {
        begin: b"\0\xff\x1b]0;x\x07",
        repeated: b"\0\xff",
        expected: "CUT",
        message: "invalid HTTP version parsed",
    },
];

/// Answers one request, and stops once nobody reads.
fn play(mut stream: TcpStream, answer: &Answer) -> io::Result<()> {
    let _ = stream.read(&mut [0; 4096])?;
    stream.set_write_timeout(Some(Duration::from_secs(3)))?;
    stream.write_all(answer.begin)?;
    let piece = answer.repeated.repeat(1000);
    let mut sent = 0;
    while !piece.is_empty() && sent < MOST {
        stream.write_all(&piece)?;
        sent += piece.len();
    }
    // Whoever closes first may lose what is not read.
    stream.set_read_timeout(Some(Duration::from_secs(3)))?;
    stream.read(&mut [0; 1]).map(drop)
}

#[test]
fn an_answer_without_end_or_reason_ends_in_an_outcome() {
    for answer in &ANSWERS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let project = Project::new(&[
            ("milepost.toml", "name = \"answers\"\n"),
            (
                "stages/1_call.toml",
                &format!(
                    "[step]\nhttp = \"{url}\"\nattempts = 1\ntimeout = \"2s\"\n\
                     [outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
                ),
            ),
        ]);
        let begun = Instant::now();
        let ran = std::thread::scope(|threads| {
            // A client that does not read on is no error of the service.
            threads.spawn(|| listener.accept().map(|(stream, _)| play(stream, answer)));
            project.run_unplanned(&[])
        });
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", ran.output);
        let failed: Vec<_> = ran.data("batch_failed").collect();
        let outcome = &failed[0]["outcome"];
        assert_eq!(outcome["code"], answer.expected, "{outcome}");
        let message = outcome["message"].as_str().unwrap();
        assert!(message.contains(answer.message), "{message}");
        assert!(!ran.output.contains('\x1b'), "{}", ran.output);
    }
}
