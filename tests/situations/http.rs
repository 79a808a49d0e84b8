//! Calls of services: what is sent, what becomes of the reply, and how each failure is told.

use crate::agents::server::{Play, Server};
use crate::support::Project;
use serde_json::{Value, json};
use std::net::TcpListener;

const SECRET: &str = "tok-0123456789abcdef";

/// A project with a stage of this text, and the service's address in its environment.
pub(super) fn fixture(url: &str, stage: &str) -> Project {
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"calls\"\n[params]\nscale = 2\n[env]\nSERVICE = \"http://localhost:1\"\nTOKEN = \"\"\n",
        ),
        ("stages/1_call.toml", stage),
    ]);
    project.env("SERVICE", url);
    project.env("TOKEN", SECRET);
    project
}

/// A stage that posts and makes JSON, with more keys of its step.
pub(super) fn posting(more: &str) -> String {
    format!(
        "[step]\nhttp = \"{{{{ env.SERVICE }}}}/render\"\nbody = \"{{scale: $params.scale}}\"\nattempts = 1\n{more}\n\
         [outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
    )
}

/// The end of a message if a service may have carried out a request.
pub(super) const MAY_BE_DONE: &str = "; a service may have carried out the request, so no run sends it again until a fact of the batch changes: check that, or declare `idempotent = true`; `run --failed` sends the request again";

/// The end of a message if a service has accepted a request.
pub(super) const ACCEPTED: &str = "; a service has accepted the request, so no run sends it again until a fact of the batch changes: check what it did; `run --failed` sends the request again";

pub(super) fn says(body: &str) -> Play {
    Play::Says(200, &["content-type: application/json"], body.to_owned())
}

/// The outcomes of all batches that failed.
pub(super) fn failures(records: &[Value]) -> Vec<Value> {
    let failed = records
        .iter()
        .filter(|record| record["kind"] == "batch_failed");
    failed
        .map(|record| record["data"]["outcome"].clone())
        .collect()
}

/// Whether any file of the workspace holds the secret.
fn holds_secret(project: &Project) -> Vec<String> {
    let files = walkdir::WalkDir::new(project.at("workspace")).into_iter();
    let files = files
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file());
    files
        .filter(|entry| {
            let bytes = std::fs::read(entry.path()).unwrap();
            String::from_utf8_lossy(&bytes).contains(SECRET)
        })
        .map(|entry| entry.path().display().to_string())
        .collect()
}

#[test]
fn a_reply_is_made_once_and_the_key_is_nowhere() {
    let server = Server::new(vec![says("{\"url\": 1.50, \"ok\": true}"), says("[3]")]);
    let mut project = fixture(
        &server.url,
        &posting(
            "schema = \"schemas/reply.json\"\n[step.headers]\nAuthorization = \"Bearer {{ env.TOKEN }}\"\nX-Scale = \"{{ params.scale }}\"",
        ),
    );
    project.write("schemas/reply.json", "{\"required\": [\"ok\"]}");
    project.run(&[]).expect(0, &["call"]);
    project.run(&[]).expect(0, &[]);
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line, "POST /render");
    assert_eq!(seen[0].json(), json!({"scale": 2}));
    let bearer = format!("Bearer {SECRET}");
    for (name, value) in [
        ("authorization", bearer.as_str()),
        ("x-scale", "2"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(seen[0].header(name), Some(value), "{name}");
    }
    assert_eq!(
        project.read("workspace/outputs/made.json"),
        "{\n  \"url\": 1.5,\n  \"ok\": true\n}\n"
    );
    // Another key calls nobody again; another schema of the reply does.
    project.env("TOKEN", "tok-another");
    project.run(&[]).expect(0, &[]);
    project.write("schemas/reply.json", "{\"type\": \"array\"}");
    project.run(&[]).expect(0, &["call"]);
    assert_eq!(project.json("workspace/outputs/made.json"), json!([3]));
    assert_eq!(holds_secret(&project), Vec::<String>::new());
}

#[test]
fn what_a_service_repeats_of_a_key_is_not_kept() {
    let told = format!("{{\"error\": \"unknown token {SECRET}\"}}");
    let server = Server::new(vec![Play::Says(401, &[], told.clone()), says(&told)]);
    let project = fixture(
        &server.url,
        &posting("headers = { x-api-key = \"{{ env.TOKEN }}\" }"),
    );
    let ran = project.run(&[]);
    assert_eq!(
        failures(&ran.records),
        [json!({
            "kind": "status", "code": "STATUS", "passing": false,
            "message": format!("POST {}/render: HTTP 401", server.url),
            "details": ["{\"error\": \"unknown token [key]\"}"],
        })]
    );
    project.run(&[]).expect(0, &["call"]);
    assert_eq!(
        project.json("workspace/outputs/made.json"),
        json!({"error": "unknown token [key]"})
    );
    assert_eq!(holds_secret(&project), Vec::<String>::new());
    assert!(!ran.output.contains(SECRET), "{}", ran.output);
}

#[test]
fn a_key_in_the_address_is_not_told() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let project = fixture(
        &url,
        "[step]\nhttp = \"{{ env.SERVICE }}/a?key={{ env.TOKEN }}\"\nattempts = 1\n[outputs]\nmade = { path = \"outputs/made.json\", schema = false }\n",
    );
    let ran = project.run_unplanned(&[]);
    ran.says(&format!("waiting for GET {url}/a: could not connect"));
    ran.says("check `http = \"{{ env.SERVICE }}/a\"`, or run again when");
    assert_eq!(holds_secret(&project), Vec::<String>::new());
    assert!(!ran.output.contains(SECRET), "{}", ran.output);
}

/// Eight calls of a service that refuses connections.
fn dead_service(policy: &str) -> (Project, TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stage = "[each.run]\nvalues = [1, 2, 3, 4, 5, 6, 7, 8]\n[step]\nhttp = \"{{ env.SERVICE }}/{{ run }}\"\n\
                 [outputs]\nmade = { path = \"outputs/made_{{ run }}.json\", schema = false }\n";
    let mut project = fixture(&url, &format!("{policy}{stage}"));
    project.env("MILEPOST_PACE", "10");
    (project, listener, url)
}

#[test]
fn batches_wait_for_a_service_that_refuses_connections() {
    let (project, listener, url) = dead_service("");
    let address = listener.local_addr().unwrap();
    drop(listener);
    let ran = project.run_unplanned(&["-j", "4"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("call  waiting  8 batches left, waiting for GET http://127.0.0.1:");
    let advice = format!(
        ": check `http = \"{{{{ env.SERVICE }}}}/{{{{ run }}}}\"`, or run again when {url} is reachable"
    );
    ran.says(&advice);
    assert_eq!(ran.batches("batch_failed"), [""; 0], "{}", ran.output);
    assert_eq!(ran.data("attempt_failed").count(), 2, "{}", ran.output);
    let listener = TcpListener::bind(address).unwrap();
    let _server = Server::on(listener, |_| says("1"));
    let ran = project.run(&["-j", "4"]);
    assert_eq!((ran.code, ran.tried().len()), (0, 8), "{}", ran.output);
}

#[test]
fn a_stage_may_declare_that_a_refused_connection_is_a_failure() {
    for declared in [
        "[errors]\nconnect = \"GONE\"\n",
        "[policy]\non_failure = \"continue\"\n",
    ] {
        let (project, listener, _) = dead_service(declared);
        drop(listener);
        let ran = project.run_unplanned(&["-k"]);
        assert_eq!(ran.batches("batch_failed").len(), 8, "{}", ran.output);
        assert_eq!(ran.data("attempt_failed").count(), 2, "{}", ran.output);
    }
}

/// How the stage's only batch fails when the service plays this; the outcome without the service's address.
fn failure(play: Play, more: &str) -> (Value, usize) {
    let server = Server::new(vec![play]);
    let project = fixture(&server.url, &posting(more));
    project.write("schemas/reply.json", "{\"required\": [\"ok\"]}");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert_eq!(project.list("outputs"), Vec::<String>::new());
    let mut failed = failures(&ran.records).remove(0);
    let accepted = failed.as_object_mut().unwrap().remove("accepted");
    let message = failed["message"].as_str().unwrap();
    let is_once = message.ends_with(ACCEPTED) || message.ends_with(MAY_BE_DONE);
    assert_eq!(accepted.is_some(), is_once, "{message}");
    let failed = failed.to_string().replace(&server.url, "http://service");
    (serde_json::from_str(&failed).unwrap(), server.seen().len())
}

#[test]
fn failures_are_told_apart() {
    let cases = [
        (
            Play::Says(404, &[], "no such\nthing".to_owned()),
            "attempts = 3",
            json!({"kind": "status", "code": "HTTP_ERROR", "passing": false,
                "message": "POST http://service/render: HTTP 404", "details": ["no such", "thing"]}),
        ),
        (
            Play::Says(302, &["location: https://other/x?key=1"], String::new()),
            "",
            json!({"kind": "status", "code": "HTTP_ERROR", "passing": false,
                "message": format!("POST http://service/render: HTTP 302, and points to https://other/x: redirects are not followed{MAY_BE_DONE}")}),
        ),
        (
            Play::Says(503, &["retry-after: 7200"], String::new()),
            "attempts = 3",
            json!({"kind": "status", "code": "HTTP_ERROR", "passing": false,
                "message": format!("POST http://service/render: HTTP 503; the server asks to retry in 2 h{MAY_BE_DONE}")}),
        ),
        (
            Play::Stalls,
            "timeout = \"200ms\"",
            json!({"kind": "timeout", "code": "SLOW", "passing": false,
                "message": format!("POST http://service/render: no answer within 0.2 s{MAY_BE_DONE}")}),
        ),
        (
            Play::StallsAfter("{\"half\":".to_owned()),
            "timeout = \"200ms\"",
            json!({"kind": "timeout", "code": "SLOW", "passing": false, "details": ["{\"half\":"],
                "message": format!("POST http://service/render: no answer within 0.2 s{ACCEPTED}")}),
        ),
        (
            Play::Says(200, &[], "<html>".to_owned()),
            "",
            json!({"kind": "parse", "code": "PARSE", "passing": false,
                "message": format!("POST http://service/render: the response is not JSON: expected value at line 1 column 1{ACCEPTED}"),
                "details": ["<html>"]}),
        ),
        (
            says("{\"size\": 1}"),
            "schema = \"schemas/reply.json\"",
            json!({"kind": "schema", "code": "INVALID_STRUCTURE", "passing": false,
                "message": format!("POST http://service/render: the reply does not match schemas/reply.json: Missing ok in object{ACCEPTED}"),
                "details": ["Missing ok in object"]}),
        ),
    ];
    let names =
        "[errors]\nstatus = \"HTTP_ERROR\"\ntimeout = \"SLOW\"\nschema = \"INVALID_STRUCTURE\"";
    for (play, more, expected) in cases {
        let more = format!("{more}\n{names}");
        let more = more.replacen("attempts = 3\n", "", 1);
        assert_eq!(failure(play, &more), (expected, 1));
    }
    let (failed, _) = failure(Play::Cuts(100, "{\"half\"".to_owned()), "");
    assert_eq!(
        (&failed["kind"], &failed["details"]),
        (&json!("cut"), &json!(["{\"half\""]))
    );
}

#[test]
fn passing_trouble_is_tried_again() {
    let server = Server::new(vec![
        Play::Says(503, &[], "busy".to_owned()),
        says("{\"ok\": 1}"),
    ]);
    let project = fixture(
        &server.url,
        &posting("idempotent = true").replace("attempts = 1\n", ""),
    );
    project.run(&[]).expect(0, &["call"]);
    let records = project.records();
    let again = records
        .iter()
        .find(|record| record["kind"] == "attempt_failed");
    assert_eq!(
        again.unwrap()["data"]["outcome"],
        json!({"kind": "status", "code": "STATUS", "passing": true, "details": ["busy"],
            "message": format!("POST {}/render: HTTP 503", server.url)})
    );
}

#[test]
fn files_go_and_come_as_they_are_or_as_base64() {
    let png = "\u{1}\u{2}\u{3}P";
    let server = Server::new(vec![
        Play::Says(200, &["content-type: image/png"], png.to_owned()),
        says("\"AQIDUA==\""),
        says("{\"image\": \"AQIDUA==\"}"),
        Play::Says(200, &["content-type: text/plain"], "plain\n".to_owned()),
    ]);
    let project = fixture(
        &server.url,
        r#"[inputs]
scan = "inputs/scan.png"
all = "inputs/*.png"
note = "inputs/note.txt"

[[step]]
http = "{{ env.SERVICE }}/bytes"
body = ".scan"
out = "bytes"

[[step]]
http = "{{ env.SERVICE }}/base64"
method = "PUT"
body = "{scan: .scan, all: $all, note: .note}"
out = "decoded"

[[step]]
http = "{{ env.SERVICE }}/inside/{{ note | urlencode }}"
out = "reply"

[[step]]
jq = ".reply.image"
out = "image"

[[step]]
http = "{{ env.SERVICE }}/text"
body = ".bytes"
headers = { content-type = "image/x-own" }
out = "text"

[outputs]
bytes = "outputs/bytes.png"
decoded = "outputs/decoded.png"
image = "outputs/image.png"
text = "outputs/text.txt"
"#,
    );
    project.write("workspace/inputs/scan.png", b"\x89PNG");
    project.write("workspace/inputs/two.png", b"\x00");
    project.write("workspace/inputs/note.txt", "a b");
    project.run(&[]).expect(0, &["call"]);
    let seen = server.seen();
    let calls: Vec<_> = seen
        .iter()
        .map(|seen| (seen.line.as_str(), seen.header("content-type")))
        .collect();
    assert_eq!(
        calls,
        [
            ("POST /bytes", Some("image/png")),
            ("PUT /base64", Some("application/json")),
            ("GET /inside/a%20b", None),
            ("POST /text", Some("image/x-own")),
        ]
    );
    assert_eq!(seen[0].body, b"\x89PNG");
    assert_eq!(
        seen[1].json(),
        json!({"scan": "iVBORw==", "all": ["iVBORw==", "AA=="], "note": "a b"})
    );
    assert_eq!(seen[3].body, png.as_bytes());
    for name in ["bytes", "decoded", "image"] {
        assert_eq!(
            project.read(&format!("workspace/outputs/{name}.png")),
            png,
            "{name}"
        );
    }
    assert_eq!(project.read("workspace/outputs/text.txt"), "plain\n");
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_reply_that_does_not_suit_its_output_is_a_failure() {
    let stage = posting("").replace("made.json", "made.png");
    let server = Server::new(vec![says("{\"image\": 1}")]);
    let ran = fixture(&server.url, &stage).run(&[]);
    assert_eq!(
        failures(&ran.records)[0]["message"],
        format!("`made` is text: expected a string, found {{\"image\":1}}{ACCEPTED}")
    );
}
