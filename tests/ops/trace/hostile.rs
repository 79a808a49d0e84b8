//! Keys and values that want to do harm: none is mistaken for another, and none reaches the terminal as it is.

use super::{of, traced};
use crate::support::Project;
use milepost::view::trace::trace as text;
use milepost_core::plan::options::invocation::Invocation;
use milepost_engine::ops::trace::{StationKind, TraceOptions, trace};
use serde_json::{Value, json};

/// A project that copies things with these keys.
fn things(keys: &[Value]) -> Project {
    let stage = r#"
[inputs]
things = "inputs/things.json"

[step]
jq = "$things"

[outputs]
copied = { path = "outputs/copied.json", schema = false }

[conserve]
in = ".things[].id"
out = ".copied[].id"
"#;
    let things: Vec<Value> = keys
        .iter()
        .map(|key| json!({"id": key, "of": "x"}))
        .collect();
    let project = Project::new(&[
        ("milepost.toml", "name = \"hostile\"\n"),
        ("stages/1_copy.toml", stage),
    ]);
    project.write(
        "workspace/inputs/things.json",
        Value::from(things).to_string(),
    );
    project
}

#[test]
fn every_key_finds_its_own_record() {
    let long = "long ".repeat(20_000);
    let keys = [
        json!("a"),
        json!("ab"),
        json!("a\"b"),
        json!("\"}],{\"id\":\"a"),
        json!("back\\slash"),
        json!("new\nline"),
        json!("\u{1b}]0;title\u{7}\u{1b}[31m"),
        json!("<script>alert(1)</script>"),
        json!("é😀\u{202e}"),
        json!("../../etc/passwd"),
        json!("{{ params.x }}"),
        json!("*"),
        json!("--json"),
        json!(7),
        json!(1.5),
        json!(true),
        json!(long),
    ];
    let project = things(&keys);
    project.run_in_process();
    for (place, key) in keys.iter().enumerate() {
        let name = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        let data = traced(&project, &of(&name));
        let records: Vec<&Value> = data
            .stations
            .iter()
            .filter_map(|station| match &station.about {
                StationKind::Record(record) | StationKind::Element(record) => {
                    assert_eq!(
                        record.pointer.as_deref(),
                        Some(format!("/{place}").as_str())
                    );
                    assert_eq!(record.others, Some(0));
                    Some(&record.value["id"])
                }
                _ => None,
            })
            .collect();
        assert_eq!(records, [key, key]);
        for full in [false, true] {
            let shown = text(&data, full, &Invocation::default());
            let control = |char: &char| char.is_control() && *char != '\n' || *char == '\u{202e}';
            assert_eq!(shown.chars().find(control), None, "{shown:?}");
        }
    }
}

#[test]
fn no_path_leads_out_of_the_workspace() {
    let project = things(&[json!("a")]);
    project.run_in_process();
    let outside = project.at("outside.json");
    std::fs::write(&outside, r#"[{"id": "secret"}]"#).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", project.at("workspace/outputs/link.json")).unwrap();
    for what in [
        "/etc/passwd",
        "../../../../etc/passwd",
        "outputs/link.json",
        "workspace/outputs/link.json",
    ] {
        for options in [
            of(what),
            TraceOptions {
                pointer: Some(String::new()),
                ..of(what)
            },
        ] {
            let found = trace(&project.request(), &options);
            let error = found
                .map(|data| text(&data, true, &Invocation::default()))
                .unwrap_err()
                .to_string();
            assert!(!error.contains("root:"), "{error}");
        }
    }
}

#[test]
fn secrets_are_removed_from_values() {
    let mut project = things(&[json!("a-very-secret-token")]);
    project.edit("milepost.toml", "name", "env = { API_TOKEN = \"\" }\nname");
    project.env("API_TOKEN", "a-very-secret-token");
    assert_eq!(project.milepost(&["run"]).0, 0);
    for more in [&["--full"][..], &["--json"]] {
        let pointer = ["trace", "outputs/copied.json", "--pointer", "/0/of"];
        let (code, shown) = project.milepost(&[&pointer[..], more].concat());
        assert_eq!(code, 0, "{shown}");
        assert!(!shown.contains("a-very-secret-token"), "{shown}");
    }
}
