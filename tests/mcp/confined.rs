//! Paths of a client stay in the project: by their text, by links, and by parameters that name files.

use super::client::{Client, well};
use crate::support::Project;
use serde_json::json;

#[test]
fn no_path_of_a_client_leads_out_of_the_project() {
    let project = Project::letters();
    let outside = Project::new(&[("secret.json", "{\"name\": \"secret\"}")]);
    let secret = outside.at("secret.json").display().to_string();
    let folder = outside.at("").display().to_string();
    std::os::unix::fs::symlink(outside.at(""), project.at("workspace/link")).unwrap();
    let mut client = Client::of(&project);
    for path in [
        "../../secret.json",
        "a/../../../secret.json",
        "project:../secret.json",
        "link/secret.json",
        secret.as_str(),
        "/etc/passwd",
        "",
    ] {
        let wait = json!({"output_file": path, "timeout": 0});
        let fault = client.fault("wait_for_subagent", wait);
        assert_eq!(fault["code"], "path", "{path}: {fault:#}");
        let join = json!({"batch_dir": path, "output_file": "outputs/x.json"});
        let fault = client.fault("aggregate_batch_results", join);
        assert_eq!(fault["code"], "path", "{path}: {fault:#}");
        let why = client.fault("why", json!({"what": path}));
        let code = why["code"].as_str().unwrap();
        assert!(["usage", "failed"].contains(&code), "{path}: {why:#}");
        assert!(!why.to_string().contains("sha256"), "{why:#}");
    }
    project.write("workspace/mine/batch_1_classified.json", "[]");
    for path in [
        "../x.json",
        "link/x.json",
        "/tmp/x.json",
        &format!("{folder}/x.json"),
    ] {
        let join = json!({"batch_dir": "mine", "output_file": path});
        let fault = client.fault("aggregate_batch_results", join);
        assert_eq!(fault["code"], "path", "{path}: {fault:#}");
    }
    assert!(!outside.at("x.json").exists());
    assert_eq!(client.leave(), well());
}

#[test]
fn a_trace_shows_no_file_that_is_not_of_the_pipeline() {
    let project = Project::letters();
    assert_eq!(project.run(&[]).code, 0);
    project.write("creds.json", r#"{"secret": "hunter2"}"#);
    project.write("workspace/notes.json", r#"{"secret": "hunter2"}"#);
    let mut client = Client::of(&project);
    for (what, pointer) in [
        ("project:creds.json", "/secret"),
        ("creds.json", "/secret"),
        ("notes.json", "/secret"),
        (".milepost/workspace.json", "/id"),
    ] {
        let fault = client.fault("trace", json!({"what": what, "pointer": pointer}));
        assert_eq!(fault["code"], "path", "{what}: {fault:#}");
        assert!(!fault.to_string().contains("hunter2"), "{fault:#}");
    }
    let traced = client.call(
        "trace",
        json!({"what": "intermediate/person_1.json", "pointer": "/name"}),
    );
    let stations = traced["stations"].as_array().unwrap();
    let way: Vec<_> = stations
        .iter()
        .map(|station| (&station["station"], &station["file"]["path"]))
        .collect();
    assert_eq!(
        json!(way),
        json!([
            ["record", "intermediate/person_1.json"],
            ["batch", null],
            ["file", "inputs/person_1.json"],
        ])
    );
    assert_eq!(stations[0]["value"], "Ann");
    assert_eq!(client.leave(), well());
}

#[test]
fn a_parameter_names_no_file_outside_of_the_project() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"one\"\n\n[params]\nletter = { file = \"inputs/letter.txt\" }\n",
        ),
        (
            "stages/1_copy.toml",
            "[inputs]\nletter = \"{{ params.letter }}\"\n\n[step]\ncopy = \"letter\"\n\n[outputs]\ncopied = \"outputs/copied.txt\"\n",
        ),
        ("workspace/inputs/letter.txt", "inside"),
        ("letters/other.txt", "of the project"),
    ]);
    let outside = Project::new(&[("secret.txt", "secret")]);
    let secret = outside.at("secret.txt").display().to_string();
    std::os::unix::fs::symlink(outside.at("secret.txt"), project.at("letters/link.txt")).unwrap();
    let mut client = Client::of(&project);
    for path in [
        secret.as_str(),
        "../secret.txt",
        "/etc/passwd",
        "letters/link.txt",
    ] {
        for tool in ["plan", "run"] {
            let fault = client.fault(tool, json!({"set": [format!("letter={path}")]}));
            assert_eq!(fault["code"], "path", "{tool} {path}: {fault:#}");
        }
    }
    let inside = project.at("letters/other.txt").display().to_string();
    for path in ["letters/other.txt", &inside] {
        client.call("run", json!({"set": [format!("letter={path}")]}));
        assert_eq!(
            project.read("workspace/outputs/copied.txt"),
            "of the project"
        );
        client.call("run", json!({"set": ["letter=inputs/letter.txt"]}));
        assert_eq!(project.read("workspace/outputs/copied.txt"), "inside");
    }
    assert_eq!(client.leave(), well());
}
