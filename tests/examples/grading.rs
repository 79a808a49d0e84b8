//! `examples/grading`: run whole, what it refuses, a manifest, and kills.

mod formulas;
mod model;
mod strangers;
mod ungraded;

use crate::support::Project;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/grading")
}

/// The example, at a fixed date.
fn fixture() -> Project {
    let mut project = Project::copy_of("examples/grading");
    project.env("SOURCE_DATE_EPOCH", TODAY);
    project
}

/// The table of the example, as JSON.
fn table() -> Value {
    let text = std::fs::read_to_string(example().join("criteria.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

/// Floating point differs in the last digits by the order of the operations.
#[track_caller]
fn near(found: &Value, expected: f64) {
    let found = found
        .as_f64()
        .unwrap_or_else(|| panic!("{found} is no number"));
    assert!(
        (found - expected).abs() < 0.005_001,
        "{found} instead of {expected}"
    );
}

/// 1 March 2026, as `SOURCE_DATE_EPOCH`: reports bear it.
const TODAY: &str = "1772323200";

/// What a run must leave, checked against what it read: the evaluator cannot make anything up.
fn check_graded(project: &Project, id: &str) -> f64 {
    let document = project.json("workspace/intermediate/parsed_document.json");
    let result = project.json(&format!("workspace/outputs/{id}_result.json"));
    assert_eq!(
        result,
        project.json("workspace/intermediate/scoring_result.json")
    );
    assert_eq!(result["submission_id"], id);
    let pages = document["text_content"].as_object().unwrap();
    assert_eq!(document["total_pages"], pages.len());
    let (mut sum, mut weights) = (0.0, 0.0);
    let factors = &table()["severity_factors"];
    let multiplier = result["criticism_multiplier"].as_f64().unwrap();
    for found in result["evaluations"].as_array().unwrap() {
        let criterion = found["criterion_id"].as_str().unwrap();
        let mut file = project.json(&format!(
            "workspace/intermediate/evaluations/{criterion}.json"
        ));
        file["category"] = found["category"].clone();
        assert_eq!(&file, found);
        assert_eq!(found["error"], Value::Null);
        for line in found["evidence"].as_array().unwrap() {
            let line = line.as_str().unwrap();
            let (page, said) = line
                .strip_prefix("Page ")
                .unwrap()
                .split_once(": ")
                .unwrap();
            let text: String = pages[page]
                .as_str()
                .unwrap()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let Some((before, quoted)) = said.split_once('“') else {
                assert!(said.contains(" lines of "), "{line}");
                continue;
            };
            if before.ends_with("section ") {
                continue; // the title of a bookmark may lack the number that stands on the page
            }
            let quoted = quoted.trim_end_matches('”');
            assert!(
                text.contains(&quoted.replace(" | ", " ")),
                "{criterion}: {line} is not on that page"
            );
            check_prose(&document, criterion, before, quoted);
        }
        let (score, weight) = (
            found["score"].as_f64().unwrap(),
            found["weight"].as_f64().unwrap(),
        );
        let mut adjusted = score
            * factors[found["severity"].as_str().unwrap()]
                .as_f64()
                .unwrap();
        if multiplier > 1.0 && score < 100.0 {
            adjusted -= (100.0 - score) * (multiplier - 1.0) * 0.2;
        } else if multiplier < 1.0 && score < 100.0 {
            adjusted += (100.0 - score) * (1.0 - multiplier) * 0.3;
        }
        sum += adjusted * weight;
        weights += weight;
    }
    let expected = (sum / weights).max(0.0);
    near(&result["final_score"], expected);
    expected
}

/// A quotation is a whole sentence, or a row of a table, and nothing of the submission's code.
#[track_caller]
fn check_prose(document: &Value, criterion: &str, before: &str, quoted: &str) {
    for block in document["code_blocks"].as_array().unwrap() {
        let code = block["content"].as_str().unwrap();
        assert!(!code.contains(quoted), "{criterion}: {quoted} is code");
    }
    if before.ends_with("table row ") {
        assert!(quoted.contains(" | "), "{criterion}: {quoted}");
        return;
    }
    if before.ends_with("list item ") {
        return;
    }
    let first = quoted.chars().next().unwrap();
    assert!(
        first.is_uppercase() || first.is_ascii_digit() || "“\"(".contains(first),
        "{criterion}: {quoted}"
    );
    let end = quoted.trim_end_matches(['"', ')', '”', '’']);
    assert!(end.ends_with(['.', '!', '?', ':']), "{criterion}: {quoted}");
}

#[test]
fn a_submission_is_graded_whole_and_only_once() {
    let project = fixture();
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let grade = check_graded(&project, "larder");
    assert!((70.0..95.0).contains(&grade), "{grade}");
    assert_eq!(
        project.list("outputs"),
        [
            "larder_criteria.csv",
            "larder_report.md",
            "larder_report.pdf",
            "larder_result.json"
        ]
    );
    assert_eq!(project.list("intermediate/evaluations").len(), 17);
    let document = project.json("workspace/intermediate/parsed_document.json");
    assert_eq!(document["total_pages"], 12);
    let languages: BTreeSet<_> = document["code_blocks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["language"].as_str().unwrap())
        .collect();
    assert!(
        languages.is_superset(&BTreeSet::from(["python", "sql", "json", "yaml"])),
        "{languages:?}"
    );
    let report = project.read("workspace/outputs/larder_report.md");
    for part in [
        "# Grading report: larder",
        "| Own grade | 85 |",
        "| Criticism multiplier | 1.2 |",
        "| Criteria | 17 of 17 evaluated |",
        "| Graded by | offline evaluator: rules of criteria.toml, no model |",
        "| Cost | 0 tokens, 0.0000 US dollars |",
        "| Date | 2026-03-01 |",
        "| Fallbacks | none |",
        "## PRD Quality: score 100, strength",
        "## CI/CD: ",
        "## Version Control: ",
    ] {
        assert!(report.contains(part), "no {part:?} in\n{report}");
    }
    let result = project.json("workspace/outputs/larder_result.json");
    assert_eq!(
        result["graded_by"],
        json!({ "agent": "offline evaluator", "model": null, "date": "2026-03-01", "fallbacks": [] })
    );
    assert_eq!(
        project.json("workspace/stage_2_complete.json")["summary"],
        json!({
            "output_path": "intermediate/parsed_document.json", "engine": "builtin", "pages": 12,
            "code_blocks": 15, "sections": 41, "warnings": []
        })
    );
    assert_eq!(
        project.json("workspace/stage_5_complete.json")["summary"],
        json!({
            "report_paths": {
                "markdown": "outputs/larder_report.md", "pdf": "outputs/larder_report.pdf",
                "json": "outputs/larder_result.json", "csv": "outputs/larder_criteria.csv"
            },
            "formats_generated": ["markdown", "pdf", "json", "csv"]
        })
    );
    let csv = project.read("workspace/outputs/larder_criteria.csv");
    assert_eq!(csv.lines().count(), 18);
    assert!(csv.starts_with("\"criterion\",\"category\",\"weight\",\"score\",\"severity\",\"severity_factor\",\"penalty\",\"bonus\",\"adjusted_score\",\"tokens_used\",\"cost_usd\",\"error\"\n\"prd_quality\",\"documents\",0.08,"), "{csv}");
    let roles: BTreeSet<_> = project
        .records()
        .iter()
        .filter_map(|record| record["agent_name"].as_str().map(str::to_owned))
        .collect();
    for role in [
        "ValidationAgent",
        "ParserAgent",
        "EvaluatorAgent",
        "ScoringAgent",
        "ReporterAgent",
    ] {
        assert!(roles.contains(role), "{roles:?}");
    }

    project.run(&[]).expect(0, &[]);
    // Another factor: no page is read again and no criterion evaluated.
    project.edit("criteria.toml", "minor = 0.95", "minor = 0.9");
    let ran = project.run(&[]);
    ran.expect(0, &["report/larder", "score", "validate"]);
    assert!(
        project.json("workspace/outputs/larder_result.json")["final_score"]
            .as_f64()
            .unwrap()
            < grade
    );
    // Other words for one criterion: that one alone.
    project.edit(
        "criteria.toml",
        "\"measurements\" = [",
        "\"measurements\" = [\"stopwatch\", ",
    );
    let ran = project.run(&[]);
    assert!(ran.tried().contains(&"evaluate/performance".to_owned()));
    assert_eq!(
        ran.tried()
            .iter()
            .filter(|name| name.starts_with("evaluate/"))
            .count(),
        1,
        "{:?}",
        ran.tried()
    );
}

#[test]
fn formats_that_are_not_wanted_are_not_made() {
    let project = fixture();
    let ran = project.run(&["--set", "formats=[\"markdown\"]"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(project.list("outputs"), ["larder_report.md"]);
}

#[test]
fn what_says_little_gets_little() {
    let mut grades = Vec::new();
    for id in ["shiftly", "tern"] {
        let project = fixture();
        let request = format!("request=submissions/{id}.json");
        let submission = format!("submission=submissions/{id}.pdf");
        let ran = project.run(&["--set", &request, "--set", &submission]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        grades.push(check_graded(&project, id));
    }
    assert!(
        grades[0] < 10.0 && grades[1] > 25.0 && grades[1] < 70.0,
        "{grades:?}"
    );
}

#[test]
fn wrong_requests_are_refused_before_anything_costs_money() {
    for (request, says) in [
        (
            "self_grade_130",
            "ValidationError: `inputs/self_grade_130.json` does not match schemas/request.schema.json: 130 is more than 100 at /self_grade",
        ),
        ("self_grade_below_0", "-1 is less than 0 at /self_grade"),
        ("no_self_grade", "Missing self_grade"),
        ("outside", "\"../../../etc/passwd.pdf\" does not match"),
        ("no_pdf", "\"inputs/report.docx\" does not match"),
    ] {
        let project = fixture();
        let ran = project.run(&["--set", &format!("request=bad/{request}.json")]);
        ran.expect(1, &["validate"])
            .says("ValidationError")
            .says(says);
        assert!(!project.exists("workspace/intermediate"), "{request}");
    }
    let project = fixture();
    project
        .run(&["--set", "request=bad/not_there.json"])
        .says("PDFParsingError")
        .says("`inputs/nowhere.pdf` does not exist");
}

#[test]
fn files_without_text_are_refused_and_not_graded() {
    for pdf in ["broken", "cut", "locked", "scanned"] {
        let project = fixture();
        let request = format!("request=bad/{pdf}.json");
        let submission = format!("submission=bad/{pdf}.pdf");
        let ran = project.run(&["--set", &request, "--set", &submission]);
        ran.expect(1, &["parse", "validate"])
            .says("All parsers failed");
        assert!(
            !project.exists("workspace/intermediate/parsed_document.json"),
            "{pdf}"
        );
    }
}

#[test]
fn a_damaged_submission_is_graded_on_a_bare_machine() {
    let mut project = fixture();
    project.env("PATH", "/nowhere");
    project.run(&[]);
    let document = "workspace/intermediate/parsed_document.json";
    let whole = project.json(document);
    let result = "workspace/outputs/larder_result.json";
    let score = project.json(result)["final_score"].clone();
    let submission = "workspace/inputs/submission.pdf";
    let bytes = std::fs::read(project.at(submission)).unwrap();
    // What was sent as an attachment has lines in front of it, and what a program appended behind it.
    let damaged = [
        b"Content-Type: application/pdf\r\n\r\n",
        &bytes[..],
        &[0; 2048],
    ]
    .concat();
    project.write(submission, damaged);
    assert_eq!(project.run(&[]).code, 0);
    assert_eq!(project.json(document), whole);
    let graded = project.json(result);
    assert_eq!(graded["final_score"], score);
    assert_eq!(graded["graded_by"]["fallbacks"], serde_json::json!([]));
}

#[test]
fn a_table_that_does_not_add_up_is_refused() {
    let project = fixture();
    project.edit("criteria.toml", "weight = 0.09", "weight = 0.19");
    project
        .run(&[])
        .expect(1, &["validate"])
        .says("WeightError")
        .says("add up to 1.1, not to 1");
    project.edit("criteria.toml", "weight = 0.19", "weight = 0.09");
    project.edit("criteria.toml", "\"coverage\"\n", "\"unit_tests\"\n");
    project.run(&[]).says("CriterionError");
}

#[test]
fn an_engine_that_is_not_known_is_a_wrong_declaration() {
    let project = fixture();
    project.edit("stages/2_parse.toml", "\"pdftotext\"", "\"pymupdf\"");
    let ran = project.run_unplanned(&[]);
    assert_eq!((ran.code, ran.tried()), (4, vec![]), "{}", ran.output);
    ran.says("`pymupdf` reads no PDF");
}

#[test]
fn criteria_that_are_late_get_a_placeholder() {
    let project = fixture();
    project.edit("stages/3_evaluate.toml", "\"300s\"", "\"1ms\"");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    let result = project.json("workspace/outputs/larder_result.json");
    let failed = result["failed"].as_array().unwrap();
    assert!(failed.len() > 7, "{failed:?}");
    let late = failed[0].as_str().unwrap();
    let late = project.json(&format!("workspace/intermediate/evaluations/{late}.json"));
    let error = late["error"].as_str().unwrap();
    assert!(
        error.starts_with("TimeoutError: stage `evaluate` exceeded its time limit"),
        "{error}"
    );

    project.edit("stages/3_evaluate.toml", "\"1ms\"", "\"300s\"");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_graded(&project, "larder");
}

#[test]
fn the_submissions_are_set_from_their_markdown() {
    let project = fixture();
    let (code, said) = project.milepost(&["-C", "submissions", "run"]);
    assert_eq!(code, 0, "{said}");
    for name in ["larder", "shiftly", "tern"] {
        let made = project.at(&format!("submissions/workspace/outputs/{name}.pdf"));
        assert!(made.is_file(), "{name}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_run_that_is_killed_anywhere_continues_to_the_same_bytes() {
    let whole = fixture();
    assert_eq!(whole.run(&[]).code, 0);
    for stop in [60, 200, 260, 400] {
        let project = fixture();
        let killed = project
            .command(&["run"])
            .env("MILEPOST_STOP_AT", stop.to_string())
            .output()
            .unwrap();
        assert!(!killed.status.success(), "nothing stopped at {stop}");
        let before = project.list("intermediate/evaluations").len();
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        let again = ran
            .tried()
            .iter()
            .filter(|name| name.starts_with("evaluate/"))
            .count();
        // What was published is not evaluated again.
        assert!(
            again + before <= 17,
            "stopped at {stop}: {before} were there, {again} ran"
        );
        assert_eq!(
            project.output_digests(),
            whole.output_digests(),
            "stopped at {stop}"
        );
    }
}

#[test]
fn a_manifest_grades_each_by_itself_and_sums_up() {
    let project = fixture();
    let output = project
        .command(&["run", "--workspaces", "submissions.json", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut best = f64::INFINITY;
    let mut order = Vec::new();
    for row in summary["grades"].as_array().unwrap() {
        let id = row["workspace"].as_str().unwrap();
        let result = project.json(&format!("workspaces/{id}/outputs/{id}_result.json"));
        assert_eq!(row["grade"], result["final_score"]);
        assert_eq!(row["status"], "complete");
        let grade = row["grade"].as_f64().unwrap();
        assert!(grade <= best, "{summary:#}");
        best = grade;
        order.push(id);
    }
    assert_eq!(order, ["larder", "tern", "shiftly"]);
    let refused = summary["not_graded"].as_array().unwrap();
    assert_eq!(refused.len(), 1, "{summary:#}");
    assert_eq!(refused[0]["workspace"], "overrated");
    let error = refused[0]["error"].as_str().unwrap();
    assert!(
        error.contains("130 is more than 100 at /self_grade"),
        "{error}"
    );
    assert!(!project.exists("workspaces/overrated/outputs"));
    let results = summary["results"].as_array().unwrap();
    for result in results {
        assert!(result["execution_time"].as_f64().unwrap() > 0.0);
        assert_eq!(result["metadata"]["total_cost"], 0.0);
    }
    assert_eq!(
        (
            &results[0]["success"],
            &results[0]["output"],
            &results[0]["error"]
        ),
        (
            &json!(true),
            &json!("outputs/larder_result.json"),
            &json!(null)
        )
    );
    assert_eq!(
        (
            &results[2]["success"],
            &results[2]["output"],
            &results[2]["error"]
        ),
        (&json!(false), &json!(null), &refused[0]["error"])
    );
}
