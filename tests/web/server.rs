//! A server of pages, and the requests that tests send to it.

use crate::support::Project;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server of pages at a port of its own; killed when it is dropped.
pub struct Ui {
    child: Child,
    /// Host and port.
    pub address: String,
    /// The start of the path of every page, without a slash at its end.
    pub root: String,
}

/// What came back.
pub struct Reply {
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    pub body: String,
}

impl Ui {
    pub fn start(project: &Project) -> Ui {
        Ui::with(project, &[])
    }

    /// A server that was started with more arguments.
    pub fn with(project: &Project, arguments: &[&str]) -> Ui {
        let arguments = [&["ui", "--no-open"], arguments].concat();
        Ui::of(&mut project.command(&arguments))
    }

    /// The server that a command starts.
    pub fn of(command: &mut Command) -> Ui {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("open ") {
            line.clear();
            assert!(
                err.read_line(&mut line).unwrap() > 0 && !line.starts_with("error"),
                "{line}"
            );
        }
        let url = line
            .split(' ')
            .nth(1)
            .unwrap()
            .strip_prefix("http://")
            .unwrap();
        let (address, root) = url.split_at(url.find('/').unwrap());
        let (address, root) = (address.to_owned(), root.trim_end_matches('/').to_owned());
        // What is said later must not end the program for want of a reader.
        std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
        Ui {
            child,
            address,
            root,
        }
    }

    /// Sends a request to a path of the server; the stream is open for the reply. `Host` and `Origin` are those of the server unless
    /// they are given; an empty header is left out.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // A server that answers nobody fails the test.
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        let origin = format!("http://{}", self.address);
        let mut all = vec![("Connection", "close")];
        for (name, value) in [
            ("Host", self.address.as_str()),
            ("Origin", &origin),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ] {
            if !headers.iter().any(|(given, _)| *given == name) {
                all.push((name, value));
            }
        }
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let head: String = all
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = body.len();
        let request =
            format!("{method} {path} HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n{body}");
        // A server that refuses the head may close the connection before it has read the body.
        let _ = stream.write_all(request.as_bytes());
        stream
    }

    /// Requests a page, such as `batch?stage=a`.
    pub fn get(&self, page: &str) -> Reply {
        Reply::read(self.send("GET", &format!("{}/{page}", self.root), &[], ""))
    }

    /// Sends a form.
    pub fn post(&self, page: &str, fields: &[(&str, &str)]) -> Reply {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let path = format!("{}/{page}", self.root);
        Reply::read(self.send("POST", &path, &[], &body.finish()))
    }

    /// Requests a page again and again until it contains a text. Each request waits for the server, so nothing sleeps.
    pub fn wait_for(&self, page: &str, text: &str) -> String {
        for _ in 0..20_000 {
            let body = self.get(page).body;
            if body.contains(text) {
                return body;
            }
            std::thread::yield_now();
        }
        panic!("`{page}` never contained `{text}`: {}", self.get(page).body);
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server as Ctrl-C does, and returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    /// Reads a reply whose connection is closed after it.
    pub fn read(mut stream: TcpStream) -> Reply {
        let mut bytes = Vec::new();
        // A connection that was refused may end by a reset.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        Reply {
            status: head
                .split(' ')
                .nth(1)
                .and_then(|code| code.parse().ok())
                .unwrap_or(0),
            head: head.to_lowercase(),
            // The templates escape more than HTML needs.
            body: body.replace("&#x2f;", "/"),
        }
    }

    /// A header of the reply.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}
