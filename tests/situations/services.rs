//! Services: started when they are needed, told when they do not come, and gone after the run.

use crate::agents::server::{Play, Server};
use crate::support::required::{self, Missing, require};
use crate::support::{Project, exit_code, pipe, printed};
use serde_json::{Value, json};
use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// A service that answers with its process id and counts its answers; health is asked at `/health`.
const SERVER: &str = r#"
import http.server, json, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"pid": os.getpid(), "path": self.path}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"#;

const PYTHON: &str = "[\"python3\", \"project:server.py\"]";

/// A project with this service and a stage of these steps, twice.
fn fixture(command: &str, first: &str) -> Project {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let project = format!(
        "name = \"served\"\n[env]\nPORT = \"{port}\"\n[services.answers]\ncommand = {command}\nready = \"http://127.0.0.1:{{{{ env.PORT }}}}/health\"\nenv = [\"PORT\"]\n"
    );
    let stage = |step: &str, out: &str| {
        format!(
            "services = [\"answers\"]\n{step}\n[outputs]\n{out} = {{ path = \"outputs/{out}.json\", schema = false }}\n"
        )
    };
    Project::new(&[
        ("milepost.toml", &project),
        ("server.py", SERVER),
        ("stages/1_first.toml", &stage(first, "first")),
        (
            "stages/2_second.toml",
            &stage(
                "[step]\nhttp = \"http://127.0.0.1:{{ env.PORT }}/second\"",
                "second",
            ),
        ),
    ])
}

const CALL: &str = "[step]\nhttp = \"http://127.0.0.1:{{ env.PORT }}/first\"";

fn has_python() -> Result<(), Missing> {
    required::program("python3", &["-c", "import http.server"])
}

/// Whether a process runs.
fn runs(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

fn of_services(records: &[Value]) -> Vec<(String, u64)> {
    let of = records.iter().filter(|record| {
        let kind = record["kind"].as_str().unwrap();
        kind.starts_with("service_") && record["data"]["again"] != true
    });
    of.map(|record| {
        let pid = record["data"]["child"]["pid"].as_u64().unwrap_or(0);
        (record["kind"].as_str().unwrap().to_owned(), pid)
    })
    .collect()
}

#[test]
fn a_service_is_started_once_and_is_gone_after_the_run() {
    require!(has_python());
    let project = fixture(PYTHON, CALL);
    let ran = project.run(&[]);
    ran.expect(0, &["first", "second"])
        .says("answers starts, a service");
    let pid = project.json("workspace/outputs/first.json")["pid"]
        .as_u64()
        .unwrap();
    assert_eq!(
        project.json("workspace/outputs/second.json"),
        json!({"pid": pid, "path": "/second"})
    );
    let expected = [
        ("service_started".to_owned(), pid),
        ("service_ended".to_owned(), 0),
    ];
    assert_eq!(of_services(&ran.records), expected);
    assert!(!runs(pid));
    assert_eq!(of_services(&project.run(&[]).records), []);
}

#[test]
fn a_service_that_answers_is_left_alone() {
    let server = Server::new(vec![
        Play::Says(404, &[], "no such place".to_owned()),
        Play::Says(200, &[], "1".to_owned()),
        Play::Says(200, &[], String::new()),
        Play::Says(200, &[], "2".to_owned()),
    ]);
    let mut project = fixture("[\"touch\", \"project:started\"]", CALL);
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    project.write("started", "");
    project.env("PORT", &port);
    let ran = project.run(&[]);
    ran.expect(0, &["first", "second"]);
    assert_eq!(of_services(&ran.records), []);
    let lines: Vec<_> = server.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(
        lines,
        ["GET /health", "GET /first", "GET /health", "GET /second"]
    );
}

#[test]
fn a_service_that_does_not_come_fails_its_stage() {
    let project = fixture("\"echo no port left >&2; exit 3\"", CALL);
    // A plan cannot know that.
    let ran = project.run_unplanned(&[]);
    ran.expect(1, &["first", "second"])
        .says("answers failed: it ended with exit code 3 before http://127.0.0.1:")
        .says("    no port left")
        .says("first failed: CONNECT: the service `answers`: it ended with exit code 3")
        .says("second failed: CONNECT: the service `answers`: it ended with exit code 3");
    assert_eq!(of_services(&ran.records).len(), 1);
    assert!(!project.exists("workspace/stage_1_complete.json"));
    let failed: Vec<&Value> = ran.data("batch_failed").collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert_eq!(failed[0]["outcome"]["kind"], "connect", "{failed:?}");

    // It has a name like any other outcome, and what goes on after failures does.
    let after =
        "[policy]\nplaceholder = '{error: .error_code}'\n[errors]\nconnect = \"NO_SERVICE\"\n";
    let first = project.read("stages/1_first.toml");
    project.write("stages/1_first.toml", format!("{first}{after}"));
    let ran = project.run_unplanned(&["first"]);
    ran.expect(3, &["first"])
        .says("first failed: NO_SERVICE: the service `answers`");
    let placeholder = json!({"error": "NO_SERVICE"});
    assert_eq!(project.json("workspace/outputs/first.json"), placeholder);
    project.write("stages/1_first.toml", first);
    project.edit("milepost.toml", "echo no", "no_such_program; echo no");
    project
        .run_unplanned(&[])
        .expect(1, &["first", "second"])
        .says("no_such_program");
    project.edit(
        "milepost.toml",
        "\"no_such_program; echo no port left >&2; exit 3\"",
        "[\"no_such_program\"]",
    );
    project
        .run_unplanned(&[])
        .expect(1, &["first", "second"])
        .says("the service `answers`: program `no_such_program` was not found");
}

#[test]
fn a_service_is_gone_after_a_run_that_failed() {
    require!(has_python());
    let project = fixture(PYTHON, "[step]\ncommand = \"exit 1\"");
    let ran = project.run(&[]);
    ran.expect(1, &["first", "second"]);
    let services = of_services(&ran.records);
    assert_eq!(services[1].0, "service_ended");
    assert!(!runs(services[0].1));
}

/// A run that was killed leaves its service; the next run ends it and starts its own.
#[test]
fn a_service_that_outlived_its_run_is_ended_by_the_next() {
    require!(has_python());
    let project = fixture(PYTHON, "[step]\ncommand = \"echo here > HERE; sleep 1000\"");
    let here = project.at("here");
    pipe(&here);
    project.edit("stages/1_first.toml", "HERE", here.to_str().unwrap());
    let mut run = project
        .command(&["run"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut word = String::new();
    std::fs::File::open(&here)
        .unwrap()
        .read_to_string(&mut word)
        .unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    let left = of_services(&project.records())[0].1;
    assert!(runs(left));
    project.write(
        "stages/1_first.toml",
        project
            .read("stages/2_second.toml")
            .replace("second", "first"),
    );
    project
        .run(&[])
        .expect(0, &["first", "second"])
        .says("ended processes of the interrupted run");
    assert!(!runs(left));
    let pid = project.json("workspace/outputs/first.json")["pid"]
        .as_u64()
        .unwrap();
    assert!(pid != left && !runs(pid));
}

#[test]
fn ctrl_c_while_a_service_is_waited_for() {
    let project = fixture("\"echo here > HERE; sleep 1000\"", CALL);
    let here = project.at("here");
    pipe(&here);
    project.edit("milepost.toml", "HERE", here.to_str().unwrap());
    let run = project
        .command(&["run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = String::new();
    std::fs::File::open(&here)
        .unwrap()
        .read_to_string(&mut word)
        .unwrap();
    let sent = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(exit_code(&output), 130, "{}", printed(&output));
    let services = of_services(&project.records());
    assert_eq!(services[1].0, "service_ended");
    assert!(!runs(services[0].1));
}
