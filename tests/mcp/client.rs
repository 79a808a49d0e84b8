//! A scripted client: it speaks JSON-RPC over the standard input and output of the program.

use crate::support::{Project, pipe};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A server and the client that speaks to it.
pub struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    last: u64,
    /// Notifications that came, in order.
    pub told: Vec<Value>,
    /// Answers that came before they were waited for.
    early: Vec<Value>,
}

/// How the server ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code.
    pub code: i32,
    /// What it wrote to standard error.
    pub err: String,
}

impl Client {
    /// A client that has said who it is.
    pub fn of(project: &Project) -> Client {
        Self::with(project, &[])
    }

    /// The same with more arguments of the server.
    pub fn with(project: &Project, arguments: &[&str]) -> Client {
        let mut words = vec!["mcp"];
        words.extend(arguments);
        Self::start(&mut project.command(&words))
    }

    /// A client of the server that a command starts.
    pub fn start(command: &mut Command) -> Client {
        let mut client = Self::silent(command);
        let me = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "script", "version": "1"},
        });
        let answer = client.ask("initialize", me);
        assert_eq!(answer["result"]["serverInfo"]["name"], "milepost");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// A client that has said nothing yet.
    pub fn silent(command: &mut Command) -> Client {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Client {
            to: child.stdin.take(),
            from: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
            told: Vec::new(),
            early: Vec::new(),
        }
    }

    /// Sends a line as it is.
    pub fn line(&mut self, text: &str) {
        writeln!(self.to.as_ref().unwrap(), "{text}").unwrap();
    }

    /// Sends a text without the end of a line.
    pub fn part(&mut self, text: &str) {
        let mut to = self.to.as_ref().unwrap();
        to.write_all(text.as_bytes()).unwrap();
    }

    /// Closes standard input.
    pub fn close(&mut self) {
        self.to = None;
    }

    pub fn notify(&mut self, method: &str, parameters: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": parameters}).to_string());
    }

    /// Sends a request, and gives its id.
    pub fn send(&mut self, method: &str, parameters: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        self.line(&request.to_string());
        id
    }

    /// The next message; none at the end. Whatever stands on standard output is one.
    pub fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        if line.is_empty() {
            return None;
        }
        let message: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{error}: no message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        Some(message)
    }

    /// The answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        let found = self.early.iter().position(|message| message["id"] == id);
        if let Some(place) = found {
            return self.early.remove(place);
        }
        loop {
            let Some(message) = self.next() else {
                panic!("the server ended before its answer: {:?}", self.end_of())
            };
            if message["id"] == id {
                return message;
            } else if message.get("id").is_some() {
                self.early.push(message);
            } else {
                self.told.push(message);
            }
        }
    }

    /// Reads on until the server has told something that holds this text.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> Value {
        loop {
            let Some(message) = self.next() else {
                panic!(
                    "the server ended before it said {text}: {:?}",
                    self.end_of()
                )
            };
            let is_it = message.to_string().contains(text);
            if message.get("id").is_some() {
                let refused =
                    message["result"]["isError"] == true || message.get("error").is_some();
                assert!(!is_it && !refused, "{text} was waited for: {message:#}");
                self.early.push(message);
                continue;
            }
            self.told.push(message.clone());
            if is_it {
                return message;
            }
        }
    }

    pub fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        self.answer(id)
    }

    /// Begins to call a tool, with progress.
    pub fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        let token = self.last + 1;
        let call = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        self.send("tools/call", call)
    }

    /// Calls a tool; gives the whole result.
    #[track_caller]
    pub fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let call = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", call);
        taken(answer)
    }

    /// Calls a tool that does what is asked; gives its data.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], false, "{result:#}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that refuses; gives its fault: `[code, error, hint]`, then the rest.
    #[track_caller]
    pub fn fault(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        fault(result)
    }

    /// Closes standard input, and waits for the end; nothing but messages may come.
    pub fn leave(mut self) -> Ended {
        self.to = None;
        while self.next().is_some() {}
        self.end_of()
    }

    /// Ends the server by this signal.
    pub fn kill(mut self, signal: rustix::process::Signal) -> Ended {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
        while self.next().is_some() {}
        self.end_of()
    }

    fn end_of(&mut self) -> Ended {
        use std::os::unix::process::ExitStatusExt as _;
        let mut err = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        let code = status.code();
        Ended {
            code: code.unwrap_or_else(|| 128 + status.signal().unwrap()),
            err,
        }
    }
}

/// The result in an answer: its text is its data.
#[track_caller]
pub fn taken(answer: Value) -> Value {
    let result = answer["result"].clone();
    assert!(result.is_object(), "{answer:#}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let text: Value = serde_json::from_str(text).unwrap();
    assert_eq!(text, result["structuredContent"]);
    result
}

/// The data of a fault, without `success`.
#[track_caller]
pub fn fault(result: Value) -> Value {
    assert_eq!(result["isError"], true, "{result:#}");
    let mut data = result["structuredContent"].clone();
    assert_eq!(data["success"], false);
    data.as_object_mut().unwrap().shift_remove("success");
    data
}

/// A server that ended in order.
pub fn well() -> Ended {
    Ended {
        code: 0,
        err: String::new(),
    }
}

/// Two stages: a shell looks at each person and waits where it is told to by a file, then all are joined.
pub fn gated() -> Project {
    let project = Project::letters();
    project.write(
        "stages/1_copy.toml",
        r#"description = "Copy each person"

[each.person]
path = "inputs/person_*.json"

[step]
command = ["sh", "-c", 'if [ -p "$3" ]; then cat "$3"; fi; grep -q name "$1" && cp "$1" "$2"', "copy", "{{ person.path }}", "{{ paths.copy }}", "{{ params.gate }}-{{ person.number }}"]

[outputs]
copy = { path = "intermediate/{{ person.stem }}.json", schema = false }
"#,
    );
    let gate = project.at("gate");
    project.write(
        "milepost.toml",
        format!(
            "name = \"letters\"\n\n[params]\ngreeting = \"Hello\"\ngate = {:?}\n",
            gate.display().to_string()
        ),
    );
    project
}

/// Lets the batch of this number wait, until the gate is opened.
pub fn shut(project: &Project, number: u32) {
    pipe(&project.at(&format!("gate-{number}")));
}

/// Opens the gate for the batch of this number, which waits at it.
pub fn open(project: &Project, number: u32) {
    std::fs::write(project.at(&format!("gate-{number}")), "").unwrap();
}
