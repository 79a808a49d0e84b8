//! Browsers and other programs that take more than their share of the server of the pages.

use super::clients::peak_memory;
use crate::support::Project;
use crate::web::server::{Reply, Ui};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

#[test]
fn half_sent_requests_block_nobody() {
    let project = Project::letters();
    // Few files may be open, so that connections without end leave none.
    let program = project.command(&[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 256; exec \"$0\" ui --no-open"])
        .arg(program.get_program())
        .current_dir(project.path());
    let ui = Ui::of(&mut command);
    let head = format!(
        "POST {}/run HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n",
        ui.root,
        host = ui.address
    );
    let mut half = Vec::new();
    for number in 0..600 {
        // Nothing, half of a head, and half of a body.
        let text = match number % 4 {
            0 => "",
            1 => head.as_str(),
            _ => &format!("{head}Content-Length: 1000\r\n\r\n{{"),
        };
        let mut stream = TcpStream::connect(&ui.address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        half.push(stream);
        if number % 100 == 99 {
            assert_eq!(ui.get("").status, 200);
        }
    }
    assert_eq!(ui.end(), Some(0));
}

#[test]
fn pipelined_requests_take_little_memory() {
    const COUNT: usize = 1_000;
    let project = Project::letters();
    let ui = Ui::start(&project);
    let request = format!(
        "GET {}/style.css HTTP/1.1\r\nHost: {}\r\n\r\n",
        ui.root, ui.address
    );
    let mut stream = TcpStream::connect(&ui.address).unwrap();
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
    let peak = peak_memory(ui.pid());
    assert!(peak < 200 << 20, "{} MB", peak >> 20);
}

#[test]
fn odd_requests_are_refused_and_the_server_lives_on() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    let status = |text: &str| {
        let mut stream = TcpStream::connect(&ui.address).unwrap();
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(text.as_bytes());
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let page = format!("GET {}/ HTTP/1.1\r\nConnection: close\r\n", ui.root);
    let host = format!("Host: {}\r\n", ui.address);
    assert_eq!(status(&format!("{page}{host}\r\n")), "200");
    for (headers, expected) in [
        (format!("Host: evil.example\r\n{host}"), "421"),
        (
            format!("{host}Content-Length: 5\r\nContent-Length: 6\r\n"),
            "400",
        ),
        (format!("{host}X: a\r\n b\r\n"), "400"),
        (format!("{host}X: {}\r\n", "x".repeat(1 << 20)), "431"),
        (format!("{host}{}", "X: a\r\n".repeat(100)), "431"),
    ] {
        assert_eq!(
            status(&format!("{page}{headers}\r\n")),
            expected,
            "{headers:.60}"
        );
    }
    let form = format!(
        "POST {}/run HTTP/1.1\r\n{host}Origin: http://{}\r\n",
        ui.root, ui.address
    );
    let long = "x".repeat(5 << 20);
    let chunked = format!(
        "{form}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}",
        long.len()
    );
    assert_eq!(status(&chunked), "413");
    for method in ["PUT", "PATCH", "TRACE", "BREW"] {
        let reply = Reply::read(ui.send(method, &format!("{}/", ui.root), &[], ""));
        assert_eq!(reply.status, 405, "{method}");
    }
    assert_eq!(ui.get("").status, 200);
}

#[test]
fn event_streams_without_end_do_not_end_the_server() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    let path = format!("{}/events", ui.root);
    let mut streams: Vec<TcpStream> = (0..100).map(|_| ui.send("GET", &path, &[], "")).collect();
    let mut first = [0; 12];
    streams[99].read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    assert_eq!(ui.get("").status, 200);
    assert_eq!(ui.end(), Some(0));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let project = Project::letters();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let said = project.output(&format!("ui --no-open --port {port}"));
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(
        said.err
            .starts_with(&format!("error: cannot listen at 127.0.0.1:{port}: ")),
        "{}",
        said.err
    );
}
