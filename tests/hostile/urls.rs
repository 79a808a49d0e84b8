//! Values in URLs and headers: each is one part, and none leads to another path, host or header.

use crate::agents::server::{Play, Server};
use crate::support::Project;
use serde_json::json;

const STAGE: &str = r#"[each.user]
from = "inputs/users.json"
select = ".[]"
key = ".key"

[step]
http = "{{ env.SERVICE }}/users/{{ user.id }}/items?x=1"
method = "DELETE"
attempts = 1

[outputs]
reply = { path = "outputs/{{ user.key }}.json", schema = false }
"#;

/// Runs a stage for each id, and returns what the service saw and the messages of failed batches.
fn calls(stage: &str, ids: &serde_json::Value) -> (Vec<String>, Vec<String>) {
    let plays = (0..12).map(|_| Play::Says(200, &[], "{}".to_owned()));
    let server = Server::new(plays.collect());
    let mut project = Project::new(&[
        (
            "milepost.toml",
            "name = \"calls\"\n[env]\nSERVICE = \"http://localhost:1\"\n",
        ),
        ("stages/1_call.toml", stage),
    ]);
    project.env("SERVICE", &server.url);
    let ids = ids.as_array().unwrap().iter();
    let users = (0..)
        .zip(ids)
        .map(|(key, id): (u32, _)| json!({"key": key, "id": id}));
    let users: Vec<_> = users.collect();
    project.write("workspace/inputs/users.json", json!(users).to_string());
    let ran = project.run(&["--keep-going"]);
    let failed = ran
        .records
        .iter()
        .filter(|record| record["kind"] == "batch_failed");
    let messages = failed.map(|record| {
        let message = record["data"]["outcome"]["message"].as_str().unwrap();
        message.replace(&server.url, "http://service")
    });
    let messages = messages.collect();
    (
        server.seen().into_iter().map(|seen| seen.line).collect(),
        messages,
    )
}

#[test]
fn a_value_is_one_part_of_a_path() {
    let ids = json!(["../all?x=1#", "7?all=true", 8, "a b"]);
    let (seen, failed) = calls(STAGE, &ids);
    assert_eq!(
        seen,
        [
            "DELETE /users/..%2Fall%3Fx%3D1%23/items?x=1",
            "DELETE /users/7%3Fall%3Dtrue/items?x=1",
            "DELETE /users/8/items?x=1",
            "DELETE /users/a%20b/items?x=1",
        ]
    );
    assert_eq!(failed, Vec::<String>::new());
}

#[test]
fn a_value_that_is_no_part_of_a_path_sends_nothing() {
    let ids = json!(["..", ".", "", null, ["a"], {"a": 1}]);
    let (seen, failed) = calls(STAGE, &ids);
    assert_eq!(seen, Vec::<String>::new());
    let no_part = "stages/1_call.toml: http, line 1, column 28: invalid operation:";
    let of_path = "cannot be a part of the path of a URL";
    assert_eq!(
        failed,
        [
            format!("stages/1_call.toml: http: `..` {of_path}: it leads to another path"),
            format!("stages/1_call.toml: http: `.` {of_path}: it leads to another path"),
            format!("stages/1_call.toml: http: an empty text {of_path}"),
            format!("{no_part} null cannot be a part of a URL"),
            format!("{no_part} a list or an object cannot be a part of a URL"),
            format!("{no_part} a list or an object cannot be a part of a URL"),
        ]
    );
}

#[test]
fn a_value_of_a_row_is_no_address_of_a_service() {
    let row = STAGE.replace("{{ env.SERVICE }}", "{{ user.id }}");
    let project = Project::new(&[
        ("milepost.toml", "name = \"calls\"\n"),
        ("stages/1_call.toml", &row),
    ]);
    project.write(
        "workspace/inputs/users.json",
        "[{\"key\": 1, \"id\": \"http://x/admin?all=1\"}]",
    );
    let (code, printed) = project.milepost(&["run"]);
    assert_eq!(code, 4, "{printed}");
    for part in [
        "error: a URL must begin with text, a parameter or a variable",
        "stages/1_call.toml:7:8",
        "`user.id` can change the host and the path",
        "with the filter `safe`, such as {{ row.url | safe }}",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    // A person allows it.
    let server = Server::answering(|_| Play::Says(200, &[], "{}".to_owned()));
    let stage = row.replace("user.id }}/users/{{ user.id }}", "user.id | safe }}");
    let project = Project::new(&[
        ("milepost.toml", "name = \"calls\"\n"),
        ("stages/1_call.toml", &stage),
    ]);
    let users = json!([{"key": 1, "id": format!("{}/a?all=1&", server.url)}]);
    project.write("workspace/inputs/users.json", users.to_string());
    assert_eq!(project.run(&[]).code, 0);
    let seen: Vec<_> = server.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(seen, ["DELETE /a?all=1&/items?x=1"]);
}

#[test]
fn an_address_with_more_than_a_path_is_no_beginning() {
    for (more, mark) in [("/a?all=1", "?"), ("/#", "#"), ("/a/../b", "..")] {
        let stage = STAGE.replace("env.SERVICE }}", &format!("env.SERVICE ~ '{more}' }}}}"));
        let (seen, failed) = calls(&stage, &json!([1]));
        assert_eq!(seen, Vec::<String>::new());
        let message = format!(
            "stages/1_call.toml: http: `http://service{more}` contains `{mark}`, so the rest of the URL would not be its path: to write it \
             all the same, use the filter `safe`"
        );
        assert_eq!(failed, [message]);
    }
}

#[test]
fn the_filter_safe_keeps_a_path() {
    let stage = STAGE.replace("user.id }}/items?x=1", "user.id | safe }}");
    let (seen, _) = calls(&stage, &json!(["7/items?y=2"]));
    assert_eq!(seen, ["DELETE /users/7/items?y=2"]);
}

#[test]
fn a_value_of_a_header_is_no_other_header() {
    let stage = STAGE.replace("{{ user.id }}/items?x=1", "all");
    let stage = stage.replace(
        "attempts",
        "headers = { x-user = \"{{ user.id }}\" }\nattempts",
    );
    let (seen, failed) = calls(&stage, &json!(["a\r\nx-admin: 1", "a\u{0}", "b"]));
    assert_eq!(seen, ["DELETE /users/all"]);
    let refused = "DELETE http://service/users/all: x-user contains a character that is not allowed in a header";
    assert_eq!(failed, [refused, refused]);
}
