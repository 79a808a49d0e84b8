//! The processes that read files for Milepost keep their own limits, and one request leaves nothing to the next.

use crate::support::Project;
use serde_json::json;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

const XCPU: i32 = 24;

#[test]
fn a_worker_whose_program_does_not_watch_it_ends_after_its_processor_time() {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_milepost"))
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let request = json!({
        "memory": 1 << 30,
        "seconds": 1,
        "work": {"Jq": {
            "program": {"name": "endless", "source": "def f: f; f", "names": [], "vars": []},
            "set": [],
            "inputs": [{"value": null, "variables": []}],
            "only": true,
        }},
    })
    .to_string();
    let mut stdin = worker.stdin.take().unwrap();
    let length = (request.len() as u64).to_le_bytes();
    stdin.write_all(&length).unwrap();
    stdin.write_all(request.as_bytes()).unwrap();
    let status = worker.wait().unwrap();
    assert_eq!(status.signal(), Some(XCPU), "{status}");
}

#[test]
fn a_request_is_read_under_its_own_limit_of_memory() {
    // The first stage is read with little memory by the worker that then reads the second, which is longer than that.
    let stage = |name: &str, more: &str| {
        format!(
            "[inputs]\ndata = \"inputs/{name}.json\"\n\n[step]\njq = '[range(1)] as $one | .data | length'\n\n[outputs]\n{name} = {{ path = \"outputs/{name}.json\", schema = false }}\n{more}"
        )
    };
    let little = "\n[limits]\nmemory = \"8 MiB\"\n";
    let project = Project::new(&[
        ("milepost.toml", "name = \"limits\"\n"),
        ("stages/1_short.toml", &stage("short", little)),
        ("stages/2_long.toml", &stage("long", "")),
        ("workspace/inputs/short.json", "\"x\""),
        (
            "workspace/inputs/long.json",
            &json!("x".repeat(12 << 20)).to_string(),
        ),
    ]);
    project.run(&["-j", "1"]).expect(0, &["long", "short"]);
    assert_eq!(project.json("workspace/outputs/long.json"), 12 << 20);
}
