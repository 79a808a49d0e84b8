//! `report`: one HTML file, whatever the workspace holds.

use crate::support::Project;
use milepost_core::base::digest::Digest;
use serde_json::{Value, json};

/// What a name or a message tries.
const HOSTILE: &str = "<script>alert(1)</script>";

/// A project whose batches have hostile names, and of which one fails with a hostile message.
fn hostile() -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"<b>hostile</b>\"\n"),
        (
            "stages/1_copy.toml",
            r#"description = "<img src=x onerror=alert(1)>"

[each.item]
values = ["good", "<i onload=x>", "bad"]

[step]
jq = 'if $item == "bad" then error("<script>alert(1)</script>") else $item end'

[outputs]
made = { path = "outputs/{{ item }}.json", schema = false }

[policy]
on_failure = "continue"
"#,
        ),
    ])
}

/// Returns the ids of the headings.
fn sections(report: &str) -> Vec<&str> {
    let headings = report.split("<h2 id=\"").skip(1);
    headings
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

/// Fails if a browser would run or load something.
fn assert_harmless(report: &str) {
    for forbidden in [
        "<script",
        "<img",
        "<b>",
        "<i ",
        "<link",
        "<iframe",
        "<object",
        " onload=",
        " onerror=",
        "javascript:",
        "@import",
        "url(",
        "src=",
    ] {
        let of_text = report.replace("&lt;img src=x onerror=alert(1)&gt;", "");
        let of_text = of_text.replace("&lt;i onload=x&gt;", "");
        assert!(
            !of_text.contains(forbidden),
            "`{forbidden}` is in the report"
        );
    }
    let addresses = report.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http:") && !addresses.contains("https:"));
    let links = report.split("href=\"").skip(1);
    for link in links {
        assert!(
            link.starts_with('#'),
            "a link leads to {}",
            &link[..40.min(link.len())]
        );
    }
}

#[test]
fn hostile_values_are_text() {
    let project = hostile();
    let (code, text) = project.milepost(&["run", "-k"]);
    assert_eq!(code, 3, "{text}");
    assert_eq!(
        project.milepost(&["report"]),
        (0, "written  report.html\n".to_owned())
    );
    let report = project.read("report.html");
    assert!(
        report.starts_with("<!doctype html>\n<!-- A report of Milepost -->\n<html lang=\"en\">"),
        "{}",
        &report[..200]
    );
    assert!(report.contains("default-src 'none'; style-src 'sha256-"));
    assert_eq!(
        sections(&report),
        [
            "overview", "graph", "timeline", "stages", "failures", "cost", "people", "digests",
            "verify"
        ]
    );
    assert!(report.contains("<td>copy/bad</td><td class=\"text\">"));
    assert!(report.contains("&lt;script&gt;alert(1)&lt;"));
    assert!(!report.contains(HOSTILE));
    assert_harmless(&report);
}

#[test]
fn only_a_report_is_replaced() {
    let project = Project::names();
    project.write("notes.html", "mine");
    let (code, text) = project.milepost(&["report", "--out", "notes.html"]);
    assert_eq!(
        (code, text.as_str()),
        (
            2,
            "error: `notes.html` is not a report of Milepost, so it is not replaced: remove it, or choose another place with `--out FILE`\n"
        )
    );
    assert_eq!(project.read("notes.html"), "mine");
    for inside in ["workspace/report.html", "workspace/inputs/list_1.json"] {
        let (code, text) = project.milepost(&["report", "--out", inside]);
        assert_eq!(
            (code, text),
            (
                2,
                format!(
                    "error: `{inside}` is in the workspace, whose files are inputs, outputs and records: choose another place with `--out FILE`\n"
                )
            )
        );
    }
    for _ in 0..2 {
        assert_eq!(project.milepost(&["report"]).0, 0);
    }
    assert!(project.read("report.html").contains("No batch ran yet."));
}

/// Appends records of 10,000 failed batches and of 200 large imports to the journal.
fn record_many(project: &Project) {
    let segments = project.list(".milepost/journal");
    let path = |name: &String| format!("workspace/.milepost/journal/{name}");
    let first = project.read(&path(&segments[0]));
    let path = path(segments.last().unwrap());
    let mut text = project.read(&path);
    let failed = first.lines().find(|line| line.contains("\"batch_failed\""));
    let failed: Value = serde_json::from_str(failed.unwrap()).unwrap();
    let mut last = Digest::of(text.lines().next_back().unwrap());
    let mut append = |mut record: Value| {
        record["prev"] = last.to_string().into();
        let line = record.to_string();
        last = Digest::of(&line);
        text.push_str(&line);
        text.push('\n');
    };
    let mut record = failed.clone();
    record["data"]["outcome"]["message"] = "long ".repeat(2_000).into();
    for number in 0..10_000 {
        record["data"]["batch"] = format!("batch_{number:05}{HOSTILE}").into();
        record["summary"] = format!("batch_{number:05} failed").into();
        append(record.clone());
    }
    let correction = format!("{}<&>'\"", "long ".repeat(400));
    for number in 0..200 {
        append(json!({
            "kind": "corrections_imported",
            "event_type": "review",
            "data": {
                "file": "review.xlsx",
                "into": "inputs/corrections.csv",
                "to": Digest::of("table").to_string(),
                "added": 1_000,
                "corrections": vec![&correction; 100],
            },
            "summary": format!("import {number}"),
            "timestamp": failed["timestamp"],
            "session_id": failed["session_id"],
            "run_id": failed["run_id"],
            "agent_name": "milepost",
        }));
    }
    project.write(&path, text);
}

#[test]
fn a_report_of_ten_thousand_batches_is_small() {
    let project = hostile();
    project.write(
        "stages/2_list.toml",
        r#"[step]
command = ["sh", "-c", "for i in $(seq 10000); do echo $i > $0/$1_$i.json; done", "{{ paths.part | replace('/*.json', '') }}", "LONG"]

[outputs]
part = { path = "outputs/parts/*.json", schema = false }
"#
        .replace("LONG", &"part&".repeat(40)),
    );
    project.milepost(&["run", "-k"]);
    let parts = project.list("outputs/parts");
    assert_eq!(parts.len(), 10_000);
    for part in &parts {
        project.write(&format!("workspace/outputs/parts/{part}"), "\"modified\"");
    }
    record_many(&project);
    let (code, text) = project.milepost(&["report"]);
    assert_eq!((code, text.as_str()), (0, "written  report.html\n"));
    let report = project.read("report.html");
    assert!(report.len() < 2_000_000, "{} bytes", report.len());
    for text in [
        "9,801 more failures are left out of this report.",
        "<dt>Modified by hand</dt><dd>10,000 outputs</dd>",
        "more outputs are left out of this report.",
        "more characters)",
        "and 1,000 more</td>",
    ] {
        assert!(report.contains(text), "{text}");
    }
    assert_harmless(&report);
}
