//! Runs that wait: for the answer that another run is asking for, and for a server that cannot be reached.

use super::pipeline::{answered, speller, words};
use super::server::{Play, Seen, Server};
use super::single::tells;
use crate::support::Project;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read as _};
use std::net::TcpListener;
use std::process::Child;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

const WAITS: &str = "warning: ask: waiting for answers that another run is asking for";

/// The reply to a request: each name in capitals, or `Yes`.
fn reply(seen: &Seen) -> Play {
    let asked = seen.json().to_string();
    let mut answers: Vec<Value> = Vec::new();
    for n in 0..9 {
        if let Some(at) = asked.find(&format!("name {n}")) {
            let id = asked[..at].rsplit("id").next().unwrap();
            let id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
            let id = id.trim_end_matches("questionname");
            answers.push(json!({ "id": id, "word": format!("NAME {n}") }));
        }
    }
    let text = match answers.len() {
        0 => json!({ "said": "Yes" }),
        _ => json!(answers),
    };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{ "type": "text", "text": text.to_string() }], "stop_reason": "end_turn",
        "usage": { "input_tokens": 10, "output_tokens": 20 }
    });
    let json = &["content-type: application/json"];
    Play::Says(200, json, message.to_string())
}

fn is_question(seen: &Seen) -> bool {
    seen.line.starts_with("POST")
}

/// A server that holds its first reply until the sender is used or dropped, and tells when it has the question.
fn holding() -> (Server, Sender<()>, std::sync::mpsc::Receiver<()>) {
    let (release, held) = channel::<()>();
    let (came, begun) = channel();
    let first = Mutex::new(Some((held, came)));
    let server = Server::answering(move |seen| {
        let first = first.lock().unwrap().take_if(|_| is_question(seen));
        if let Some((held, came)) = first {
            came.send(()).unwrap();
            let _ = held.recv();
        }
        if is_question(seen) {
            reply(seen)
        } else {
            Play::Says(200, &[], r#"{"data":[]}"#.to_owned())
        }
    });
    (server, release, begun)
}

fn port(server: &Server) -> u16 {
    server.url.rsplit(':').next().unwrap().parse().unwrap()
}

/// Two workspaces with the same questions.
fn two_workspaces(server: &Server) -> Project {
    let project = speller(port(server), "well");
    project.edit("milepost.toml", "size = 4", "size = 10");
    let things = project.read("workspace/inputs/things.json");
    for workspace in ["a", "b"] {
        project.write(&format!("{workspace}/inputs/things.json"), &things);
    }
    project
}

const RUN: [&str; 5] = ["run", "--agent", "speller=api", "-j", "2"];

fn start(project: &Project, workspace: &str) -> Child {
    project.spawn(&[&RUN[..], &["--workspace", workspace]].concat())
}

/// Reads what a run prints until it waits for the run of the workspace `a`, or ends.
fn until_it_waits(
    project: &Project,
    child: &mut Child,
) -> (bool, BufReader<std::process::ChildStderr>) {
    let mut printed = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while printed.read_line(&mut line).unwrap() > 0 {
        if let Some(run) = line.strip_prefix(WAITS) {
            let claims = files_below(project);
            let claim = claims
                .iter()
                .find(|name| name.strip_suffix(".claim").is_some());
            let id = claim.unwrap().split_once('-').unwrap().0;
            let since = milepost_store::store::id::made_at(id).unwrap();
            assert_eq!(run, format!(": run {id} in a, since {since:.0}\n"));
            return (true, printed);
        }
        line.clear();
    }
    (false, printed)
}

fn questions(server: &Server) -> usize {
    server
        .seen()
        .iter()
        .filter(|seen| is_question(seen))
        .count()
}

#[test]
fn a_question_that_another_run_is_asking_is_not_asked() {
    let (server, release, begun) = holding();
    let project = two_workspaces(&server);
    let first = start(&project, "a");
    begun.recv().unwrap();
    let mut second = start(&project, "b");
    let (waits, mut printed) = until_it_waits(&project, &mut second);
    release.send(()).unwrap();
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(waits && !rest.contains(WAITS), "{rest}");
    for child in [first, second] {
        assert!(child.wait_with_output().unwrap().status.success(), "{rest}");
    }
    assert_eq!(questions(&server), 1);
    for workspace in ["a", "b"] {
        let made = project.json(&format!("{workspace}/outputs/all.json"));
        assert_eq!(made["elements"], words(10), "{workspace}");
    }
    assert_eq!(files_below(&project), ["lock"]);
}

fn files_below(project: &Project) -> Vec<String> {
    let folder = std::fs::read_dir(project.at(".milepost/answers/asking")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn a_question_of_a_killed_run_is_asked_by_the_one_that_waits() {
    let (server, _release, begun) = holding();
    let project = two_workspaces(&server);
    let mut first = start(&project, "a");
    begun.recv().unwrap();
    let mut second = start(&project, "b");
    let (waits, mut printed) = until_it_waits(&project, &mut second);
    first.kill().unwrap();
    first.wait().unwrap();
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(waits && second.wait().unwrap().success(), "{rest}");
    // The server has not replied to the first one.
    assert_eq!(questions(&server), 1, "{rest}");
    assert_eq!(files_below(&project), ["lock"]);
    let again = project.output(&[&RUN[..], &["--workspace", "a"]].concat().join(" "));
    assert_eq!((again.code, questions(&server)), (0, 1), "{}", again.text());
}

#[test]
fn a_run_that_asks_again_does_not_wait_for_another_one() {
    let (server, release, begun) = holding();
    let project = two_workspaces(&server);
    let first = start(&project, "a");
    begun.recv().unwrap();
    let mut fresh = project.spawn(&[&RUN[..], &["--workspace", "b", "--fresh"]].concat());
    let (waits, mut printed) = until_it_waits(&project, &mut fresh);
    let asked = questions(&server);
    release.send(()).unwrap();
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(!waits && fresh.wait().unwrap().success(), "{rest}");
    assert!(first.wait_with_output().unwrap().status.success());
    // The server counts a request when it has replied.
    assert_eq!((asked, questions(&server)), (1, 2));
    assert_eq!(files_below(&project), ["lock"]);
}

/// A claim of a dead run, and a file that is none.
const LEFT: [&str; 2] = [
    "01HGJ3Z0000000000000000000-0000000000000000000000000000000000000000000000000000000000000000.claim",
    "01HGJ3Z0000000000000000000-notes.claim",
];

#[test]
fn only_claims_of_dead_runs_are_removed() {
    let (server, release, _begun) = holding();
    drop(release);
    let project = two_workspaces(&server);
    let folder = project.at(".milepost/answers/asking");
    let other = project.at("elsewhere");
    for folder in [&folder, &other] {
        std::fs::create_dir_all(folder).unwrap();
        for name in LEFT {
            std::fs::write(folder.join(name), "mine").unwrap();
        }
    }
    let ran = project.output(&[&RUN[..], &["--workspace", "a"]].concat().join(" "));
    assert_eq!(ran.code, 0, "{}", ran.text());
    let mut left = files_below(&project);
    left.sort();
    assert_eq!(left, [LEFT[1], "lock"]);
    // Behind a link, nothing is removed or written.
    std::fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&other, &folder).unwrap();
    let ran = project.output(
        &[&RUN[..], &["--workspace", "b", "--fresh"]]
            .concat()
            .join(" "),
    );
    let message = "answers/asking: expected a folder, found a symbolic link: remove it";
    assert_eq!(ran.code, 1, "{}", ran.text());
    assert!(ran.text().contains(message), "{}", ran.text());
    let mut left = files_below(&project);
    left.sort();
    assert_eq!(left, LEFT);
    assert_eq!(questions(&server), 1);
}

#[test]
fn a_run_that_waits_for_another_one_can_be_stopped() {
    let (server, release, begun) = holding();
    let project = two_workspaces(&server);
    let first = start(&project, "a");
    begun.recv().unwrap();
    let mut second = start(&project, "b");
    let (waits, mut printed) = until_it_waits(&project, &mut second);
    let id = i32::try_from(second.id()).unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(waits, "{rest}");
    assert_eq!(second.wait().unwrap().code(), Some(130), "{rest}");
    release.send(()).unwrap();
    assert!(first.wait_with_output().unwrap().status.success());
    assert_eq!(questions(&server), 1);
}

/// Three prompts to a server at this port, each sent at most so often.
fn prompts_to(port: u16, tries: u32) -> Project {
    let mut project = tells(port, "attempts = 1");
    let from = format!("base_url = \"http://127.0.0.1:{port}\"");
    project.edit("milepost.toml", &from, &format!("tries = {tries}\n{from}"));
    project.env("MILEPOST_PACE", "10");
    project
}

#[test]
fn batches_wait_for_a_server_that_refuses_connections() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let project = prompts_to(port, 4);
    project.edit(
        "stages/1_tell.toml",
        "[1, 2, 3]",
        "[1, 2, 3, 4, 5, 6, 7, 8]",
    );
    let arguments = ["--agent", "speller=api", "-j", "4"];
    let ran = project.run_unplanned(&arguments);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("tell  waiting  8 batches left, ");
    ran.says(" calls, waiting for agent `api`: could not connect: ");
    let advice = format!(
        ": check `base_url = \"http://127.0.0.1:{port}\"`, or run again when http://127.0.0.1:{port} is reachable"
    );
    ran.says(&advice);
    assert_eq!(
        ran.output.matches("attempt 1 failed").count(),
        1,
        "{}",
        ran.output
    );
    assert!(ran.output.lines().count() < 12, "{}", ran.output);
    assert_eq!(ran.batches("batch_failed"), [""; 0], "{}", ran.output);
    // Calls that were in flight when the first was refused, and those of one call.
    let sent = ran.data("called").count();
    assert!(sent <= 7, "{sent}: {}", ran.output);
    // The next run continues.
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let _server = Server::on(listener, |seen| {
        if is_question(seen) {
            reply(seen)
        } else {
            Play::Says(200, &[], r#"{"data":[]}"#.to_owned())
        }
    });
    let ran = project.run(&arguments);
    assert_eq!((ran.code, ran.tried().len()), (0, 8), "{}", ran.output);
}

#[test]
fn provider_batches_wait_for_a_server_that_refuses_connections() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let project = prompts_to(port, 2);
    let tries = "tries = 2\n";
    project.edit(
        "milepost.toml",
        tries,
        &format!("{tries}mode = \"batch\"\n"),
    );
    let ran = project.run_unplanned(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("tell  waiting  3 batches left, ");
    ran.says(&format!(
        "or run again when http://127.0.0.1:{port} is reachable"
    ));
    assert_eq!(ran.batches("batch_failed"), [""; 0], "{}", ran.output);
}

/// The steps before the call of a batch may cost something, too.
#[test]
fn without_its_agent_no_further_batch_of_a_stage_begins() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let project = prompts_to(port, 1);
    let text = project.read("stages/1_tell.toml");
    let text = text
        .replace(
            "[step]\n",
            "[[step]]\ncommand = \"echo {{ run }} >> {{ project }}/begun; echo {} > {{ paths.first }}\"\nout = \"first\"\n\n\
             [[step]]\nout = \"told\"\n",
        )
        .replace(
            "[outputs]\n",
            "[outputs]\nfirst = { path = \"intermediate/first_{{ run }}.json\", schema = false }\n",
        )
        .replace("{{ project }}", &project.path().display().to_string());
    project.write("stages/1_tell.toml", text);
    let ran = project.run_unplanned(&["--agent", "speller=api", "-j", "1"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("tell  waiting  3 batches left, ");
    assert_eq!(project.read("begun"), "1\n");
}

#[test]
fn a_server_that_ends_in_a_run_and_returns_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let listener = Arc::new(Mutex::new(Some(listener)));
    // It answers one question, closes the next connection, and ends.
    let serving = Arc::clone(&listener);
    let ended = std::thread::spawn(move || {
        let listener = serving.lock().unwrap().take().unwrap();
        Server::serve_until(&listener, |seen| {
            if is_question(seen) {
                reply(seen)
            } else {
                Play::Says(200, &[], r#"{"data":[]}"#.to_owned())
            }
        });
    });
    let project = prompts_to(port, 500);
    let arguments = ["run", "--agent", "speller=api", "-j", "3"];
    let mut run = project.spawn(&arguments);
    ended.join().unwrap();
    let mut printed = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("CONNECT") {
        line.clear();
        assert_ne!(printed.read_line(&mut line).unwrap(), 0);
    }
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let _server = Server::on(listener, reply);
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(run.wait().unwrap().success(), "{rest}");
    let answers = super::pipeline::calls(&project);
    let answers: Vec<_> = answers
        .into_iter()
        .filter(|call| call.1 == "answered")
        .collect();
    assert_eq!(answers, answered(&[1, 1, 1]), "{rest}");
}
