//! The formulas of the grade, and what is read of a document, as tables.

use super::{example, near, table};
use milepost_core::expr::jq::Jq;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub fn filter(name: &str, vars: &[&str]) -> Jq {
    let read = |name: &str| std::fs::read_to_string(example().join(name)).unwrap();
    let name = format!("filters/{name}.jq");
    let source = read(&name).replace("include \"sums\";", &read("filters/sums.jq"));
    Jq::compile(&name, &source, vars).unwrap()
}

fn multiplier(self_grade: i64) -> Value {
    let scope = json!({
        "request": { "pdf_path": "inputs/essay.pdf", "self_grade": self_grade },
        "criteria": table()
    });
    filter("checked", &[]).one(scope, &[]).unwrap()
}

#[test]
fn the_criticism_multiplier_follows_the_own_grade() {
    for (self_grade, expected) in [
        (100, 1.5),
        (95, 1.5),
        (90, 1.5),
        (89, 1.2),
        (85, 1.2),
        (80, 1.2),
        (79, 1.0),
        (70, 1.0),
        (69, 0.8),
        (60, 0.8),
        (59, 0.6),
        (1, 0.6),
        (0, 0.6),
    ] {
        assert_eq!(
            multiplier(self_grade),
            json!({
                "submission_id": "essay", "pdf_path": "inputs/essay.pdf",
                "self_grade": self_grade, "criticism_multiplier": expected
            }),
            "own grade {self_grade}"
        );
    }
}

/// An evaluation as stage `evaluate` writes it.
fn evaluation(criterion: &str, weight: f64, score: f64, severity: &str) -> Value {
    json!({
        "criterion_id": criterion, "criterion_name": criterion, "weight": weight, "score": score, "evidence": [],
        "strengths": [], "weaknesses": [], "suggestions": [], "severity": severity, "error": null,
        "tokens_used": 100, "cost": 0.25
    })
}

/// The result of these evaluations.
fn scored(self_grade: i64, evaluations: &[Value]) -> Value {
    let scope = json!({
        "request": multiplier(self_grade), "evaluations": evaluations, "criteria": table(),
        "document": { "engine": "builtin" }, "agents": { "evaluator": "anthropic claude-sonnet-4-20250514" },
        "run": { "date": "2026-03-01" }
    });
    filter("scoring", &[]).one(scope, &[]).unwrap()
}

#[test]
fn severity_penalty_and_bonus_are_those_of_the_document() {
    // own grade, score, severity; factor, penalty, bonus, adjusted
    for (self_grade, score, severity, factor, penalty, bonus, adjusted) in [
        // 1.0: nothing but the severity
        (75, 80.0, "critical", 0.5, 0.0, 0.0, 40.0),
        (75, 80.0, "important", 0.8, 0.0, 0.0, 64.0),
        (75, 80.0, "minor", 0.95, 0.0, 0.0, 76.0),
        (75, 80.0, "strength", 1.0, 0.0, 0.0, 80.0),
        // 1.5: (100 - 80) * 0.5 * 0.2
        (95, 80.0, "minor", 0.95, 2.0, 0.0, 74.0),
        (95, 0.0, "critical", 0.5, 10.0, 0.0, -10.0),
        // 1.2: (100 - 50) * 0.2 * 0.2
        (85, 50.0, "important", 0.8, 2.0, 0.0, 38.0),
        // 0.8: (100 - 50) * 0.2 * 0.3
        (65, 50.0, "important", 0.8, 0.0, 3.0, 43.0),
        // 0.6: (100 - 90) * 0.4 * 0.3
        (30, 90.0, "strength", 1.0, 0.0, 1.2, 91.2),
        (30, 0.0, "critical", 0.5, 0.0, 12.0, 12.0),
        // nothing is missing: no penalty, no bonus
        (95, 100.0, "strength", 1.0, 0.0, 0.0, 100.0),
        (30, 100.0, "minor", 0.95, 0.0, 0.0, 95.0),
    ] {
        let result = scored(
            self_grade,
            &[evaluation("prd_quality", 0.08, score, severity)],
        );
        let row = &result["adjustments"][0];
        near(&row["severity_factor"], factor);
        near(&row["penalty"], penalty);
        near(&row["bonus"], bonus);
        near(&row["adjusted_score"], adjusted);
        near(&row["lost"], 100.0 - adjusted);
        near(&result["final_score"], adjusted.max(0.0));
    }
}

#[test]
fn the_grade_is_the_mean_by_weight() {
    let result = scored(
        75,
        &[
            evaluation("code_structure", 0.09, 100.0, "strength"),
            evaluation("architecture_doc", 0.07, 60.0, "minor"),
            evaluation("prd_quality", 0.08, 90.0, "minor"),
        ],
    );
    // (0.08 * 85.5 + 0.07 * 57 + 0.09 * 100) / 0.24 is 82.625, a little less in binary.
    near(&result["final_score"], 82.62);
    let breakdown = result["breakdown"].as_object().unwrap();
    assert_eq!(breakdown.keys().collect::<Vec<_>>(), ["documents", "code"]);
    near(&breakdown["documents"]["score"], 72.2);
    near(&breakdown["documents"]["weight"], 0.15);
    assert_eq!(breakdown["documents"]["criteria"], 2);
    near(&breakdown["code"]["score"], 100.0);
    near(&breakdown["code"]["weight"], 0.09);
    assert_eq!(
        (&result["failed"], &result["not_graded"]),
        (&json!([]), &json!(null))
    );
    let order: Vec<_> = result["evaluations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["criterion_id"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["prd_quality", "architecture_doc", "code_structure"]);
    assert_eq!(result["usage"], json!({ "tokens": 300, "cost_usd": 0.75 }));
    assert_eq!(
        result["graded_by"],
        json!({
            "agent": "anthropic", "model": "claude-sonnet-4-20250514", "date": "2026-03-01", "fallbacks": []
        })
    );
}

/// The record of a criterion whose evaluator failed so.
fn failed(criterion: &str, error: &str) -> Value {
    let row = json!({ "criterion": criterion, "name": format!("The {criterion}"), "weight": 0.08 });
    let failure =
        json!({ "outcome": "status", "error_code": "Claude API failed", "message": error });
    filter("placeholder", &["criterion"])
        .one(failure, &[row])
        .unwrap()
}

#[test]
fn without_every_evaluation_there_is_no_grade() {
    let result = scored(75, &[failed("unit_tests", "no connection")]);
    let reason = "no evaluation for 1 of 1 criteria: Claude API failed: no connection";
    assert_eq!(
        (&result["final_score"], &result["not_graded"]),
        (&json!(null), &json!(reason))
    );
    assert_eq!(
        result["breakdown"],
        json!({ "tests": { "score": null, "weight": 0.08, "criteria": 1, "evaluated": 0 } })
    );
    assert_eq!(
        result["comparison_message"],
        json!(format!("Not graded: {reason}"))
    );

    let one = evaluation("code_structure", 0.09, 100.0, "strength");
    let result = scored(
        75,
        &[
            failed("unit_tests", "no connection"),
            one,
            failed("coverage", "late"),
        ],
    );
    assert_eq!(
        (&result["final_score"], &result["not_graded"]),
        (
            &json!(null),
            &json!(
                "no evaluation for 2 of 3 criteria: Claude API failed: late; Claude API failed: no connection"
            )
        )
    );
    assert_eq!(
        result["breakdown"],
        json!({
            "code": { "score": 100.0, "weight": 0.09, "criteria": 1, "evaluated": 1 },
            "tests": { "score": null, "weight": 0.16, "criteria": 2, "evaluated": 0 }
        })
    );
    assert_eq!(result["adjustments"][0]["lost"], json!(null));
    assert_eq!(result["failed"], json!(["unit_tests", "coverage"]));
    assert_eq!(
        result["graded_by"]["fallbacks"],
        json!([
            "placeholder for The unit_tests",
            "placeholder for The coverage"
        ])
    );
    assert_eq!(result["usage"], json!({ "tokens": null, "cost_usd": null }));
}

#[test]
fn the_comparison_says_who_thought_higher() {
    for (self_grade, score, expected) in [
        (75, 80.0, "The author's own grade of 75 agrees with "),
        (75, 70.0, "The author's own grade of 75 agrees with "),
        (75, 80.01, "The work is better than its author thinks: "),
        (
            75,
            69.5,
            "The work is 5.5 points below its author's own grade of 75",
        ),
        (75, 20.0, "The work is 55 points below"),
    ] {
        let result = scored(
            self_grade,
            &[evaluation("prd_quality", 0.08, score, "strength")],
        );
        let said = result["comparison_message"].as_str().unwrap();
        assert!(said.starts_with(expected), "{score}: {said}");
    }
}

#[test]
fn the_table_holds_the_criteria_and_weights_of_the_document() {
    let table = table();
    let criteria = table["criteria"].as_array().unwrap();
    let weights: BTreeMap<_, _> = criteria
        .iter()
        .map(|it| {
            (
                it["criterion"].as_str().unwrap(),
                it["weight"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(weights.len(), 17);
    let names: BTreeSet<_> = criteria
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 17);
    assert!(
        names.contains("PRD Quality") && names.contains("CI/CD"),
        "{names:?}"
    );
    assert!((weights["prd_quality"] - 0.08).abs() < 1e-9);
    assert!((weights["architecture_doc"] - 0.07).abs() < 1e-9);
    assert!(weights.contains_key("code_structure") && weights.contains_key("unit_tests"));
    assert!((weights.values().sum::<f64>() - 1.0).abs() < 1e-9);
    assert_eq!(
        table["severity_factors"],
        json!({ "critical": 0.5, "important": 0.8, "minor": 0.95, "strength": 1.0 })
    );
    let prompts: BTreeSet<_> = criteria
        .iter()
        .map(|it| it["prompt"].as_str().unwrap())
        .collect();
    assert_eq!(prompts.len(), 17, "each criterion has a prompt of its own");
    for prompt in prompts {
        let text = std::fs::read_to_string(example().join("prompts").join(prompt)).unwrap();
        assert!(
            text.ends_with("{% include \"prompts/frame.md\" %}\n"),
            "{prompt}"
        );
    }
}

#[test]
fn pages_that_speak_of_a_criterion_are_its_context() {
    let context = filter("context", &["criterion", "document"]);
    let document =
        json!({ "text_content": { "2": "Nothing.", "10": "Costs.", "1": "The COST is low." } });
    let ask = |words: Value| {
        context
            .one(json!({}), &[json!({ "keywords": words }), document.clone()])
            .unwrap()
    };
    assert_eq!(
        ask(json!(["cost"])),
        "=== Page 1 ===\nThe COST is low.\n\n=== Page 10 ===\nCosts."
    );
    assert_eq!(ask(json!(["price"])), "No relevant content found.");
}

#[test]
fn code_is_told_from_prose_with_brackets() {
    let page = "1.2 Parsing notes\nA parser (of ours) reads it; the class has methods, and import is easy.\n\ndef add(a, b):\n    \"\"\"The sum.\"\"\"\n    return a + b\n\nMore words follow here, and they are not code at all.\nCREATE TABLE tin (\n  id integer PRIMARY KEY,\n  name text NOT NULL\n);\nx = 1\n";
    let scope = json!({
        "request": { "pdf_path": "inputs/x.pdf" },
        "text": {
            "engine": "test", "total_pages": 1, "pages": [{ "number": 1, "text": page, "code": null }],
            "outline": [], "headings": null, "warnings": []
        }
    });
    let document = filter("document", &[]).one(scope, &[]).unwrap();
    let blocks: Vec<_> = document["code_blocks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["language"].as_str().unwrap(),
                it["page_number"].as_i64().unwrap(),
                it["content"].as_str().unwrap().lines().next().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        blocks,
        [
            ("python", 1, "def add(a, b):"),
            ("sql", 1, "CREATE TABLE tin (")
        ]
    );
    assert_eq!(
        document["structure"]["sections"],
        json!([{ "title": "Parsing notes", "page": 1, "level": 2 }])
    );
}

/// A document of two pages, as `pdf_text` reads it with fonts, whose code says the same as its prose would.
fn two_pages() -> Value {
    let first = "Atlas, a report  page 1 of 3\n\n1 Tests\n\nThe unit tests run with pytest. They take e.g. Two seconds\nat most.\n\n\
        assert pick(\"An image is released on every push.\")\n\nPart  Lines  Branches\n\n• alarm has tests of its own. It has no mock.\n\nThis one is cut by the";
    let second = "Atlas, a report  page 2 of 3\n\nend of a page. But this one stands.\n\n1.1 What is left\n\nNothing is left, so to say.";
    let code = json!([{ "content": "assert pick(\"An image is released on every push.\")", "line_count": 1 }]);
    let page = |number: u32, text: &str, code: Value| json!({ "number": number, "text": text, "code": code });
    let heading = |title: &str, page: u32, level: u32| json!({ "title": title, "page": page, "level": level });
    json!({
        "request": { "pdf_path": "inputs/x.pdf" },
        "text": {
            "engine": "test", "total_pages": 3, "outline": [], "warnings": [],
            "pages": [page(1, first, code), page(2, second, json!([])), page(3, "Atlas, a report  page 3 of 3", json!([]))],
            "headings": [heading("1 Tests", 1, 1), heading("1.1 What is left", 2, 2), heading("Appendix", 3, 1)]
        }
    })
}

#[test]
fn passages_are_whole_sentences_and_no_code() {
    let document = filter("document", &[]).one(two_pages(), &[]).unwrap();
    let passages: Vec<_> = document["passages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["page"].as_i64().unwrap(),
                it["section"].as_array().unwrap().len(),
                it["text"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        passages,
        [
            (1, 1, "The unit tests run with pytest."),
            (1, 1, "They take e.g. Two seconds at most."),
            (1, 1, "Part | Lines | Branches"),
            (1, 1, "alarm has tests of its own."),
            (1, 1, "It has no mock."),
            (2, 1, "But this one stands."),
            (2, 2, "Nothing is left, so to say."),
        ]
    );
}

#[test]
fn what_only_code_says_gives_no_points() {
    let document = filter("document", &[]).one(two_pages(), &[]).unwrap();
    let criterion = json!({
        "criterion": "ci_cd", "keywords": ["push"],
        "points": { "release": ["release"], "push": ["push"] }
    });
    let scope = json!({ "criterion": criterion, "document": document });
    let found = filter("evaluator", &["document"])
        .one(scope, std::slice::from_ref(&document))
        .unwrap();
    assert_eq!(
        found,
        json!({
            "score": 0, "severity": "critical", "evidence": [], "strengths": [],
            "weaknesses": ["No sentence speaks of it", "Has no section of its own"],
            "suggestions": ["Add what the report lacks: release; push", "Give it a section, with “push” in the title"]
        })
    );
}
