//! Syllabi of other universities, which are not written for the embedded reader, and the calendar of a plan.

use super::{EVIDENCE, REQUEST, check_plan, example, minutes, strings};
use crate::support::Project;
use serde_json::{Value, json};
use std::path::Path;

/// The example with a timetable, a numbered list of contents, and a syllabus without any text.
fn strangers() -> Project {
    let project = example();
    for name in ["world-history.pdf", "mechanics.pdf", "empty.pdf"] {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples/study_plan/syllabi");
        let bytes = std::fs::read(folder.join(name)).unwrap();
        project.write(&format!("workspace/inputs/{name}"), bytes);
    }
    let course = |id: &str, name: &str, midterm: &str, file: &str| json!({"course_id": id, "course_name": name, "midterm_date": midterm, "file_ids": [file]});
    let request = json!({"start_date": "2027-03-01", "courses": [
        course("HIST 214", "The World since 1800", "2027-03-19", "world-history.pdf"),
        course("PHY 1010", "Mechanics", "2027-03-23", "mechanics.pdf"),
        course("CHEM 101", "General Chemistry", "2027-03-25", "empty.pdf"),
    ]});
    project.write(REQUEST, request.to_string());
    project
}

#[test]
fn syllabi_of_other_universities_are_planned() {
    let project = strangers();
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let evidence = project.json(EVIDENCE);
    let topics: Vec<_> = evidence["course_topic_evidence"]
        .as_array()
        .unwrap()
        .iter()
        .map(|topic| topic["topic"].as_str().unwrap())
        .collect();
    // No rule of grading, no learning outcome, no midterm, and nothing after it.
    assert_eq!(
        topics,
        [
            "Atlantic revolutions",
            "The industrial revolution",
            "Nationalism and the new states",
            "Empires in Africa and Asia",
            "The First World War",
            "Revolutions in Russia and Mexico",
            "Kinematics in one and two dimensions",
            "Newton's laws and friction",
            "Work and kinetic energy",
            "Potential energy and conservation",
            "Collisions and momentum",
            "Rotation",
        ]
    );
    let plan = check_plan(&project);
    assert_eq!(
        plan["verdict"],
        "incomplete: not all of the material could be read"
    );
    assert_eq!(
        strings(&plan["warnings"]),
        [
            "no topics were found in empty.pdf: name them in headings such as \"Week 3: Determinants\"",
            "course CHEM 101 has no usable evidence: its midterm on 2027-03-25 is not planned for",
        ]
    );
}

/// The lines of a calendar, unfolded, after a check that each physical line has at most 75 bytes and ends as RFC 5545 demands.
fn unfolded(project: &Project) -> Vec<String> {
    let text = project.read("workspace/outputs/study_plan.ics");
    assert!(text.ends_with("\r\n"));
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    assert!(text.split("\r\n").all(|line| line.len() <= 75), "{text}");
    let lines = text.replace("\r\n ", "");
    lines.lines().map(str::to_owned).collect()
}

#[test]
fn a_calendar_has_an_event_for_each_session_and_each_midterm() {
    let mut project = example();
    project.env("SOURCE_DATE_EPOCH", "1772355600");
    let mut request = project.json(REQUEST);
    request["courses"][0]["course_name"] =
        json!("Lineare Algebra; für Anfänger, Teil 1 (Räume, Abbildungen, Größen und Übungen)");
    project.write(REQUEST, request.to_string());
    assert_eq!(project.run(&["--set", "minutes_per_day=300"]).code, 0);
    let plan = project.json(super::FINAL);
    let lines = unfolded(&project);
    let values = |key: &str| -> Vec<&str> {
        let found = lines.iter().filter_map(|line| line.strip_prefix(key));
        found.collect()
    };
    let rows = plan["plan_rows"].as_array().unwrap();
    let is_event = |row: &&Value| row["topic"] == "Midterm" || minutes(row) > 0;
    assert_eq!(
        values("BEGIN:VEVENT").len(),
        rows.iter().filter(is_event).count()
    );
    assert_eq!(
        values("DTSTAMP:"),
        vec!["20260301T090000Z"; values("BEGIN:VEVENT").len()]
    );
    let mut ids = values("UID:");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), values("BEGIN:VEVENT").len());
    assert_eq!(
        values("DTSTART;VALUE=DATE:"),
        ["20270318", "20270322", "20270325"]
    );
    assert_eq!(
        values("DTEND;VALUE=DATE:"),
        ["20270319", "20270323", "20270326"]
    );
    assert_eq!(values("DTSTART:")[0], "20270301T160000");
    let name =
        "Lineare Algebra\\; für Anfänger\\, Teil 1 (Räume\\, Abbildungen\\, Größen und Übungen)";
    assert!(values("SUMMARY:").contains(&format!("Midterm: {name}").as_str()));
}
