//! The five systems: each report is followed to the inputs.

use super::{main_pipeline, of, traced};
use crate::support::Project;
use crate::support::required::{self, Missing, require};
use milepost_engine::ops::trace::{FileCheck, StationKind, Trace};
use std::collections::BTreeSet;
use std::net::TcpListener;

/// The system, with what it needs.
fn system(name: &str) -> Result<Project, Missing> {
    if name == "building-model" {
        return Ok(main_pipeline());
    }
    let mut project = Project::copy_of(&format!("examples/{name}"));
    if name == "diagrams" {
        required::program("node", &["--version"])?;
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        project.env(
            "DIAGRAM_SCREENSHOT_URL",
            &format!("http://127.0.0.1:{port}"),
        );
    }
    project.env("SOURCE_DATE_EPOCH", "1795305600");
    Ok(project)
}

/// The stages of the way, the agents that answered, and the inputs that it ends at.
fn reached(data: &Trace) -> [Vec<String>; 3] {
    let (mut stages, mut agents, mut inputs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (place, station) in data.stations.iter().enumerate() {
        assert!(station.to.is_none_or(|to| to < place));
        assert_eq!(station.to.is_none(), place == 0);
        if let Some(file) = &station.file {
            let is_recorded =
                file.check != FileCheck::NotRecorded || file.path.starts_with("project:");
            assert!(is_recorded && file.check != FileCheck::Modified, "{file:?}");
            assert_eq!(file.stage.is_some(), file.when.is_some(), "{file:?}");
            stages.extend(file.stage.clone());
            if file.stage.is_none() {
                inputs.insert(file.path.clone());
            }
        }
        let shown = serde_json::to_value(station).unwrap();
        if let StationKind::Answer(_) = station.about {
            agents.insert(shown["agent"].as_str().unwrap().to_owned());
        }
    }
    [stages, agents, inputs].map(|set| set.into_iter().collect())
}

#[test]
fn each_report_is_followed_to_the_inputs() {
    let pdfs = [
        "cell-biology-syllabus",
        "linear-algebra-exercises",
        "linear-algebra-syllabus",
        "microeconomics-syllabus",
        "midterm-notice",
    ]
    .map(|name| format!("inputs/{name}.pdf"));
    let study_inputs = [&pdfs[..1], &["inputs/courses.json".to_owned()], &pdfs[1..]].concat();
    let study_inputs: Vec<&str> = study_inputs.iter().map(String::as_str).collect();
    let patterns = "project:data/jsxgraph_patterns";
    let (palette, straight_lines) = (
        format!("{patterns}/scottish_color_palette.json"),
        format!("{patterns}/straight_lines_patterns.json"),
    );
    let systems: [(&str, &str, &[&str], &[&str], &[&str]); 5] = [
        (
            "building-model",
            "outputs/report.pdf",
            &["batch", "classify", "generate", "parse"],
            &["classifier"],
            &[
                "inputs/corrections.csv",
                "inputs/sample.ifc",
                "project:rules/labels.toml",
            ],
        ),
        (
            "grading",
            "outputs/larder_report.pdf",
            &["evaluate", "parse", "report", "score", "validate"],
            &["evaluator"],
            &[
                "inputs/grading_request.json",
                "inputs/submission.pdf",
                "project:criteria.toml",
            ],
        ),
        (
            "study-plan",
            "outputs/study_plan.pdf",
            &[
                "approve", "collect", "dispatch", "export", "ingest", "intake", "plan", "read",
                "window",
            ],
            &["estimation", "ingestion", "planner"],
            &study_inputs,
        ),
        (
            "diagrams",
            "results/card_001.json",
            &["author", "cards", "patterns"],
            &["diagram_author", "visual_critic"],
            &["inputs/n5_maths_12.json", &palette, &straight_lines],
        ),
        (
            "prompt-tests",
            "outputs/2026-11-22T000000-meeting-actions-workspace.tap",
            &["auth", "context", "extract", "report", "test"],
            &["extractor", "judge", "result"],
            &[
                "inputs/meeting-actions.md",
                "project:under-test/house-style.md",
                "project:under-test/meeting-actions.md",
            ],
        ),
    ];
    for (name, report, stages, agents, inputs) in systems {
        let project = require!(system(name));
        let (code, printed) = project.milepost(&["run"]);
        assert_eq!(code, 0, "{name}: {printed}");
        let found = reached(&traced(&project, &of(report)));
        let expected = [stages, agents, inputs]
            .map(|all| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(found, expected, "{name}");
    }
}
