//! Is a stage complete, is a file there: the answers of `check_stage_completion` and `wait_for_subagent`.

use super::client::{Client, taken, well};
use crate::support::Project;
use milepost_core::base::digest::Digest;
use serde_json::json;

#[test]
fn complete_means_verified_now() {
    let project = Project::letters();
    let mut client = Client::of(&project);
    let stage = |number: u32| json!({"stage_num": number});
    assert_eq!(
        client.call("check_stage_completion", stage(1)),
        json!({
            "success": true,
            "complete": false,
            "stage": "copy",
            "number": 1,
            "state": null,
            "state_file": "stage_1_complete.json",
            "missing": [
                "3 of 3 batches must run: copy/person_1, copy/person_2, copy/person_10",
                "`stage_1_complete.json` does not exist",
            ],
            "files_checked": 0,
        })
    );
    let found = client.call("check_stage_completion", stage(2));
    assert_eq!(
        found["missing"],
        json!(["must run: join", "`stage_2_complete.json` does not exist"])
    );
    client.call("run", json!({}));
    let found = client.call("check_stage_completion", stage(1));
    let state: serde_json::Value =
        serde_json::from_str(&project.read("workspace/stage_1_complete.json")).unwrap();
    assert_eq!(
        found,
        json!({
            "success": true,
            "complete": true,
            "stage": "copy",
            "number": 1,
            "state": state,
            "state_file": "stage_1_complete.json",
            "missing": [],
            "files_checked": 4,
        })
    );
    // A file that exists is not yet one that is true.
    let made = project.read("workspace/intermediate/person_2.json");
    project.write("workspace/intermediate/person_2.json", "{}");
    let found = client.call("check_stage_completion", stage(1));
    assert_eq!(
        (&found["complete"], &found["missing"]),
        (
            &json!(false),
            &json!(["modified by hand: intermediate/person_2.json"])
        )
    );
    project.write("workspace/intermediate/person_2.json", &made);
    assert_eq!(
        client.call("check_stage_completion", stage(1))["complete"],
        true
    );
    let checkpoint = project.read("workspace/stage_1_complete.json");
    project.edit(
        "workspace/stage_1_complete.json",
        "\"batches\": 3",
        "\"batches\": 4",
    );
    let found = client.call("check_stage_completion", stage(1));
    assert_eq!(
        found["missing"],
        json!(["modified by hand: stage_1_complete.json"])
    );
    project.write("workspace/stage_1_complete.json", &checkpoint);
    project.write("workspace/inputs/person_1.json", "{\"name\": \"Eve\"}");
    let found = client.call("check_stage_completion", stage(1));
    assert_eq!(
        found["missing"],
        json!(["1 of 3 batches must run: copy/person_1"])
    );
    let found = client.call("check_stage_completion", stage(2));
    assert_eq!(found["complete"], false);
    project.remove("workspace/stage_1_complete.json");
    let found = client.call("check_stage_completion", stage(1));
    assert_eq!(found["complete"], false);
    assert_eq!(client.leave(), well());
}

/// A stage whose outputs have a schema and a marker, and one that waits for a file of someone else.
fn marked() -> Project {
    let project = Project::letters();
    project.write(
        "stages/1_copy.toml",
        r#"marker = "intermediate/{{ person.stem }}_complete.txt"

[each.person]
path = "inputs/person_*.json"

[step]
command = ["cp", "{{ person.path }}", "{{ paths.copy }}"]

[outputs]
copy = { path = "intermediate/{{ person.stem }}.json", schema = "schemas/person.schema.json" }
"#,
    );
    project.write(
        "schemas/person.schema.json",
        r#"{"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}"#,
    );
    project.write(
        "stages/3_reply.toml",
        r#"[step]
wait = "drop/reply.json"
marker = "drop/reply_complete.txt"

[outputs]
reply = { path = "intermediate/answers/reply.json", schema = "schemas/person.schema.json" }
"#,
    );
    project
}

#[test]
fn a_file_is_complete_when_it_is_there_left_alone_valid_and_marked() {
    let project = marked();
    let mut client = Client::of(&project);
    client.call("run", json!({"until": "copy"}));
    let made = project.read("workspace/intermediate/person_1.json");
    let place = project.at("workspace/intermediate/person_1.json");
    let arrived = json!({
        "success": true,
        "output_file": "intermediate/person_1.json",
        "path": place.canonicalize().unwrap(),
        "bytes": made.len(),
        "digest": Digest::of(&made),
        "stage": "copy",
        "batch": "person_1",
        "schema": "schemas/person.schema.json",
        "marker": "intermediate/person_1_complete.txt",
        "recorded": true,
        "element_count": null,
        "summary": null,
    });
    let absolute = place.display().to_string();
    for path in [
        "intermediate/person_1.json",
        "workspace/intermediate/person_1.json",
        absolute.as_str(),
    ] {
        let wanted = json!({"output_file": path, "timeout": 10});
        assert_eq!(client.call("wait_for_subagent", wanted), arrived, "{path}");
    }
    // The marker is gone, and later the file.
    project.remove("workspace/intermediate/person_1_complete.txt");
    let wait = json!({"output_file": "intermediate/person_1.json", "timeout": 2});
    let why = "`intermediate/person_1.json` exists, but its marker `intermediate/person_1_complete.txt` does not";
    assert_eq!(
        client.fault("wait_for_subagent", wait),
        json!({
            "error": "Timeout waiting for subagent",
            "code": "timeout",
            "hint": format!("{why}; call again to wait longer"),
            "output_file": "intermediate/person_1.json",
            "lack": "marker",
            "why": why,
            "violations": [],
        })
    );
    let wait = json!({"output_file": "intermediate/person_7.json", "timeout": 0});
    let fault = client.fault("wait_for_subagent", wait);
    assert_eq!(
        (&fault["error"], &fault["lack"]),
        (&json!("Timeout waiting for subagent"), &json!("absent"))
    );
    assert_eq!(client.leave(), well());
}

#[test]
fn a_subagent_s_file_is_waited_for_until_it_is_right() {
    let project = marked();
    let mut client = Client::of(&project);
    let id = client.begin(
        "wait_for_subagent",
        json!({"output_file": "drop/reply.json", "timeout": 60}),
    );
    let told = client.wait_for("`drop/reply.json` does not exist");
    assert_eq!(told["params"]["total"], 60.0);
    project.write("workspace/drop/reply.json", "{\"name\": \"Ann\"}");
    project.write("workspace/drop/reply_complete.txt", "");
    let result = taken(client.answer(id));
    let data = &result["structuredContent"];
    assert_eq!(
        (&data["stage"], &data["batch"], &data["recorded"]),
        (&json!("reply"), &json!(""), &json!(false))
    );
    assert_eq!(data["marker"], "drop/reply_complete.txt");

    project.write("workspace/drop/reply.json", "{\"nom\": \"Ann\"}");
    let wait = json!({"output_file": "drop/reply.json", "timeout": 2});
    let fault = client.fault("wait_for_subagent", wait);
    assert_eq!(
        (&fault["error"], &fault["lack"]),
        (&json!("Timeout waiting for subagent"), &json!("invalid"))
    );
    let violations = fault["violations"].as_array().unwrap();
    assert!(
        violations
            .iter()
            .any(|one| one.to_string().contains("name")),
        "{violations:?}"
    );
    // Of a file that nothing is declared of, only the form is known.
    project.write("workspace/notes/a.json", "[{\"ifc_type\": \"IfcWall\"}, {}");
    let wait = json!({"output_file": "notes/a.json", "timeout": 2});
    let fault = client.fault("wait_for_subagent", wait);
    assert_eq!(
        fault["violations"],
        json!(["is not JSON: EOF while parsing a list at line 1 column 28"])
    );
    project.write(
        "workspace/notes/a.json",
        "[{\"ifc_type\": \"IfcWall\"}, {}]",
    );
    let wait = json!({"output_file": "notes/a.json", "timeout": 60});
    let data = client.call("wait_for_subagent", wait);
    assert_eq!(
        (&data["element_count"], &data["summary"], &data["stage"]),
        (&json!(2), &json!({"by_type": {"IfcWall": 1}}), &json!(null))
    );
    let wait = json!({"output_file": "notes/a.json", "timeout": 3601});
    assert_eq!(client.fault("wait_for_subagent", wait)["code"], "arguments");
    assert_eq!(client.leave(), well());
}

#[test]
fn a_wait_that_is_cancelled_ends_at_once() {
    let project = marked();
    let mut client = Client::of(&project);
    let id = client.begin(
        "wait_for_subagent",
        json!({"output_file": "drop/reply.json", "timeout": 3600}),
    );
    client.wait_for("does not exist");
    client.notify("notifications/cancelled", json!({"requestId": id}));
    let status = client.call("status", json!({}));
    assert_eq!(status["project"], "letters");
    // The end of the server waits for every call.
    assert_eq!(client.leave(), well());
}

#[test]
fn a_client_that_leaves_ends_its_wait() {
    let project = marked();
    let mut client = Client::of(&project);
    let id = client.begin(
        "wait_for_subagent",
        json!({"output_file": "drop/reply.json", "timeout": 3600}),
    );
    client.wait_for("does not exist");
    assert!(id > 0);
    assert_eq!(client.leave(), well());
}
