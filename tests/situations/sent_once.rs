//! Requests that must not be sent twice: by the same run, and by later ones.

use super::http::{ACCEPTED, MAY_BE_DONE, failures, fixture, posting, says};
use crate::agents::server::{Play, Server};
use crate::support::{Project, exit_code, printed};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

/// How the summary offers to send it again.
const SEND_AGAIN: &str = "send the requests again: only if the service did not carry them out";

#[test]
fn what_a_service_may_have_done_is_not_asked_twice() {
    let done = |body: &str| Play::Says(201, &["content-type: application/json"], body.to_owned());
    let replies = |play: fn() -> Play| (0..3).map(|_| play()).collect::<Vec<_>>();
    let key = "headers = { Idempotency-Key = \"order-{{ params.scale }}\" }";
    let get = "method = \"GET\"";
    for (plays, more, sent) in [
        // The reply says that it is done.
        (vec![done(""), done("")], "", 1),
        (vec![done("OK"), done("OK")], "idempotent = true", 1),
        (vec![done("{\"a\": 1, \"a\": 2}")], get, 1),
        (vec![done("{}")], "schema = \"schemas/reply.json\"", 1),
        // No reply says anything.
        (replies(|| Play::Says(502, &[], String::new())), "", 1),
        (replies(|| Play::Cuts(100, "{".to_owned())), "", 1),
        (replies(|| Play::Closes), "method = \"PATCH\"", 1),
        (
            replies(|| Play::Says(303, &["location: /orders/1"], String::new())),
            "",
            1,
        ),
        (
            replies(|| Play::Says(303, &["location: /orders/1"], String::new())),
            get,
            1,
        ),
        (
            replies(|| Play::Says(206, &["content-range: bytes 0-1/9"], "{}".to_owned())),
            get,
            3,
        ),
        (
            replies(|| Play::Says(200, &["content-encoding: gzip"], "{}".to_owned())),
            get,
            1,
        ),
        (replies(|| Play::Says(502, &[], String::new())), key, 3),
        (
            replies(|| Play::Cuts(100, "{".to_owned())),
            "idempotent = true",
            3,
        ),
        (replies(|| Play::Closes), get, 3),
        // The service refused it.
        (
            replies(|| Play::Says(429, &["retry-after: 0"], String::new())),
            "",
            3,
        ),
    ] {
        let server = Server::new(plays);
        let project = fixture(&server.url, &posting(more).replace("attempts = 1\n", ""));
        project.write("schemas/reply.json", "{\"required\": [\"ok\"]}");
        let ran = project.run(&[]);
        assert_eq!(ran.code, 1, "{more}: {}", ran.output);
        let seen = server.seen();
        assert_eq!(seen.len(), sent, "{more}: {}", ran.output);
        for request in &seen {
            assert_eq!(request.header("accept-encoding"), Some("identity"));
            let expected = (more == key).then_some("order-2");
            assert_eq!(request.header("idempotency-key"), expected);
        }
    }
    // The reply is set aside.
    let server = Server::new(vec![done("made order 17")]);
    let project = fixture(&server.url, &posting("").replace("attempts = 1\n", ""));
    project.run(&[]).expect(1, &["call"]);
    let set_aside = walkdir::WalkDir::new(project.at("workspace/.milepost/quarantine"));
    let found = set_aside.into_iter().filter_map(Result::ok).any(|entry| {
        std::fs::read_to_string(entry.path()).is_ok_and(|text| text == "made order 17")
    });
    assert!(found);
}

#[test]
fn a_request_that_a_service_accepted_is_not_sent_by_a_later_run() {
    let created = |_: &_| Play::Says(201, &["content-type: application/json"], "OK".to_owned());
    let server = Server::answering(created);
    let project = fixture(&server.url, &posting(""));
    let mut sent = 0;
    // A fact changes, or a person wants it.
    for (arguments, is_sent) in [
        (&[][..], true),
        (&[], false),
        (&["call"], false),
        (&["-k"], false),
        (&["--failed"], true),
        (&[], false),
        (&["--force"], true),
        (&[], false),
        (&["--set", "scale=3"], true),
        (&[], false),
    ] {
        let ran = project.run(arguments);
        sent += usize::from(is_sent);
        assert_eq!(
            (ran.code, server.seen().len()),
            (1, sent),
            "{arguments:?}: {}",
            ran.output
        );
        ran.says(ACCEPTED).says(SEND_AGAIN);
    }
    // It does no harm to send this one again.
    let project = fixture(&server.url, &posting("idempotent = true"));
    for more in 1..3 {
        project.run(&[]).expect(1, &["call"]);
        assert_eq!(server.seen().len(), sent + more);
    }
}

#[test]
fn a_request_with_its_key_is_sent_again_with_the_same() {
    let sent = |server: &Server, name: &str| -> Vec<String> {
        let seen = server.seen();
        let keys = seen.iter().map(|seen| seen.header(name));
        keys.map(|key| key.unwrap().to_owned()).collect()
    };
    let server = Server::answering(|_| Play::Closes);
    let stage = posting("idempotency_key = true").replace("attempts = 1", "attempts = 2");
    let project = fixture(&server.url, &stage);
    for _ in 0..2 {
        project.run(&[]).expect(1, &["call"]);
    }
    let keys = sent(&server, "idempotency-key");
    assert_eq!(keys.len(), 4);
    assert!(
        keys.iter().all(|key| *key == keys[0] && key.len() > 30),
        "{keys:?}"
    );
    // A fact makes another request.
    project.run(&["--set", "scale=3"]).expect(1, &["call"]);
    let keys = sent(&server, "idempotency-key");
    assert!(keys[4] == keys[5] && keys[4] != keys[0], "{keys:?}");
    // Each step has its own, in a header that the service knows.
    let server = Server::answering(|_| says("1"));
    let step = "http = \"{{ env.SERVICE }}/x\"\nmethod = \"POST\"\nidempotency_key = \"X-Key\"";
    let project = fixture(
        &server.url,
        &format!(
            "[[step]]\n{step}\nout = \"a\"\n[[step]]\n{step}\nout = \"b\"\n\
             [outputs]\na = {{ path = \"a.json\", schema = false }}\nb = {{ path = \"b.json\", schema = false }}\n"
        ),
    );
    project.run(&[]).expect(0, &["call"]);
    let keys = sent(&server, "x-key");
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
    for wrong in ["1", "\"a b\"", "\"x-user\""] {
        let more = format!("idempotency_key = {wrong}\nheaders = {{ X-User = \"a\" }}");
        let (code, printed) = fixture(&server.url, &posting(&more)).milepost(&["run"]);
        assert_eq!(code, 4, "{printed}");
        let message =
            "error: `idempotency_key` must be true or the name of a header that `headers` lacks";
        assert!(printed.contains(message), "{printed}");
    }
}

#[test]
fn a_complete_batch_whose_new_request_was_accepted_is_not_sent_again() {
    let server = Server::new(vec![says("1"), says("no JSON"), says("2"), says("no JSON")]);
    let project = fixture(&server.url, &posting(""));
    for (arguments, code, sent) in [
        (&[][..], 0, 1),
        (&["--set", "scale=3"], 1, 2),
        (&[], 1, 2),
        (&["--force"], 0, 3),
    ] {
        let ran = project.run(arguments);
        assert_eq!(
            (ran.code, server.seen().len()),
            (code, sent),
            "{arguments:?}"
        );
    }
    // A placeholder replaces what the request has not given.
    let stage = posting("[policy]\nplaceholder = '0'");
    project.write("stages/1_call.toml", &stage);
    project.run(&["--force"]).says(ACCEPTED);
    project.run_unplanned(&[]).says(ACCEPTED);
    assert_eq!(server.seen().len(), 4);
}

#[test]
fn whatever_fails_after_an_accepted_request_does_not_send_it_again() {
    let later = |step: &str| {
        let stage = posting("").replace("[step]", "[[step]]");
        let stage = stage.replace("attempts = 1", "attempts = 1\nout = \"made\"");
        let step = format!("[[step]]\n{step}\nout = \"late\"\n[outputs]");
        stage.replace("[outputs]", &step)
    };
    let waiting = later("wait = \"inputs/never.txt\"");
    let failing = later("jq = 'error(\"no\")'");
    let half = || Play::StallsAfter("{\"half\":".to_owned());
    let time = "[policy]\ntimeout = \"300ms\"\n";
    for (play, stage, kind) in [
        (
            says("{}"),
            posting("").replace("schema = false", "schema = \"schemas/reply.json\""),
            "schema",
        ),
        (
            says("{}"),
            posting("") + "[[check]]\ntest = 'false'\n",
            "check",
        ),
        (says("{}"), failing, "parse"),
        (says("{}"), waiting.clone() + time, "timeout"),
        (half(), posting("") + time, "timeout"),
    ] {
        let server = Server::new(vec![play]);
        let project = fixture(&server.url, &stage);
        project.write("schemas/reply.json", "{\"required\": [\"ok\"]}");
        for tried in [&["call"][..], &[]] {
            let ran = project.run(&[]);
            ran.expect(1, tried).says(ACCEPTED);
            let failed = failures(&ran.records);
            assert_eq!(failed[0]["kind"], kind, "{}", ran.output);
            assert!(failed[0]["accepted"].is_string(), "{}", ran.output);
        }
        assert_eq!(server.seen().len(), 1, "{stage}");
    }
    for (play, stage) in [(says("{}"), waiting), (half(), posting(""))] {
        let server = Server::new(vec![play]);
        let project = fixture(&server.url, &stage);
        stopped(&project, &["run"], || !server.seen().is_empty());
        let ran = project.run(&[]);
        assert_eq!((ran.code, server.seen().len()), (1, 1), "{}", ran.output);
        assert_eq!(failures(&ran.records)[0]["kind"], "cut");
    }
}

#[test]
fn a_request_whose_output_cannot_be_published_is_not_sent_again() {
    // Something is in the way when the reply comes.
    let file: fn(&Path) = |outputs| std::fs::write(outputs, "mine").unwrap();
    let folder: fn(&Path) = |outputs| std::fs::create_dir_all(outputs.join("made.json")).unwrap();
    for (block, code, policy) in [
        (file, 1, ""),
        (folder, 1, ""),
        (
            file,
            3,
            "[[check]]\ntest = 'false'\n[policy]\nplaceholder = '0'\n",
        ),
    ] {
        let outputs = Arc::new(OnceLock::<PathBuf>::new());
        let place = Arc::clone(&outputs);
        let server = Server::answering(move |_| {
            block(place.get().unwrap());
            says("{}")
        });
        let project = fixture(&server.url, &(posting("") + policy));
        let outputs = outputs.get_or_init(|| project.at("workspace/outputs"));
        let ran = project.run_unplanned(&[]);
        assert_eq!((ran.code, server.seen().len()), (code, 1), "{}", ran.output);
        let _ = std::fs::remove_file(outputs);
        let _ = std::fs::remove_dir_all(outputs);
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, code, "{}", ran.output);
        ran.says(ACCEPTED);
        assert_eq!(server.seen().len(), 1, "{policy}");
    }
}

#[test]
fn a_request_without_a_readable_reply_is_not_sent_by_a_later_run() {
    let plays: [fn() -> Play; 3] = [
        || Play::Closes,
        || Play::Says(502, &[], String::new()),
        || Play::Says(200, &["no head"], String::new()),
    ];
    for play in plays {
        let server = Server::answering(move |_| play());
        let project = fixture(&server.url, &posting(""));
        project.run(&[]).expect(1, &["call"]).says(MAY_BE_DONE);
        project.run(&[]).expect(1, &[]).says(MAY_BE_DONE);
        assert_eq!(server.seen().len(), 1);
        project.write("stages/1_call.toml", posting("idempotent = true"));
        project.run(&[]).expect(1, &["call"]);
        assert_eq!(server.seen().len(), 2);
    }
}

#[test]
fn a_request_that_is_not_sent_again_stops_no_other_batch() {
    let server = Server::answering(|seen| match seen.json()["file"].as_str() {
        Some("inputs/a.txt") => Play::Says(201, &[], "OK".to_owned()),
        _ => says("{}"),
    });
    let stage = "[each.f]\npath = \"inputs/*.txt\"\n[step]\nhttp = \"{{ env.SERVICE }}/render\"\nbody = '{file: $f.path}'\n\
        [outputs]\nmade = { path = \"outputs/{{ f.stem }}.json\", schema = false }\n[policy]\nconcurrency = 1\n";
    let project = fixture(&server.url, stage);
    for name in ["a", "b", "c"] {
        project.write(&format!("workspace/inputs/{name}.txt"), name);
    }
    let ran = project.run(&[]);
    ran.expect(1, &["call/a"])
        .says("continue with the other batches");
    assert_eq!(server.seen().len(), 1);
    let (_, plan) = project.milepost(&["plan"]);
    assert!(
        plan.contains("1 batch fails: a request is not sent again, will run 2 of 3"),
        "{plan}"
    );
    let ran = project.run(&[]);
    ran.expect(1, &["call/b", "call/c"]);
    assert_eq!(server.seen().len(), 3);
    let next = &ran.output[ran.output.find("\nnext").unwrap()..];
    let next = next.trim_start().lines();
    let next: Vec<&str> = next.take_while(|line| !line.starts_with("call")).collect();
    assert_eq!(next.len(), 2, "{next:?}");
    assert!(
        next[0].contains("log call/a")
            && next[1].contains("run --failed")
            && next[1].ends_with(SEND_AGAIN),
        "{next:?}"
    );
    let (_, status) = project.milepost(&["status"]);
    assert_eq!(status.matches(ACCEPTED).count(), 1, "{status}");
    assert!(
        status.contains("call: a request is not sent again\n"),
        "{status}"
    );
}

#[test]
fn ctrl_c_ends_a_call_and_so_does_the_time_of_the_stage() {
    let server = Server::new(vec![Play::Stalls, Play::Stalls, says("[]")]);
    let project = fixture(&server.url, &posting("[policy]\ntimeout = \"300ms\""));
    project
        .run(&[])
        .expect(1, &["call"])
        .says("stage `call` exceeded its time limit");
    project.edit("stages/1_call.toml", "300ms", "10m");
    // The service may have carried out the request.
    project.run(&[]).expect(1, &[]).says(MAY_BE_DONE);
    stopped(&project, &["run", "--failed"], || server.seen().len() == 2);
    project.run(&[]).expect(1, &[]).says(MAY_BE_DONE);
    assert_eq!(server.seen().len(), 2);
    project.run(&["--failed"]).expect(0, &["call"]);
}

/// Runs the program, and stops it by Ctrl-C once this is true.
fn stopped(project: &Project, arguments: &[&str], is_there: impl Fn() -> bool) {
    let run = project
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !is_there() {
        std::thread::yield_now();
    }
    let sent = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(exit_code(&output), 130, "{}", printed(&output));
}

#[test]
fn a_partial_stage_says_what_failed_sends_again() {
    let server = Server::answering(|seen| {
        if seen.line.ends_with('1') {
            says("1")
        } else {
            Play::Says(201, &[], "OK".to_owned())
        }
    });
    let stage = posting("").replace("/render", "/{{ run }}");
    let stage = stage.replace("made.json", "made_{{ run }}.json");
    let each = "[policy]\non_failure = \"continue\"\n[each.run]\nvalues = [1, 2]\n";
    let project = fixture(&server.url, &format!("{each}{stage}"));
    project.write(
        "stages/2_next.toml",
        "[inputs]\nall = \"outputs/made_*.json\"\n[step]\njq = \".all\"\n[outputs]\nsum = { path = \"outputs/sum.json\", schema = false }\n",
    );
    project.run_unplanned(&[]).says(SEND_AGAIN);
    let ran = project.run_unplanned(&["next"]);
    ran.says(&format!("milepost run --failed call  {SEND_AGAIN}"));
    assert_eq!(server.seen().len(), 2);
}
