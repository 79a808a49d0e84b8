//! `examples/diagrams`, run whole in a temporary folder: what it makes, what it refuses, and that it goes on inside the loop.

mod critic;
mod killed;
mod model;
mod service;
mod strangers;

use crate::support::required::{self, Missing, require};
use crate::support::{Project, RunResult};
use base64::Engine as _;
use milepost_core::expr::jq::Jq;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;

const CARDS: [&str; 5] = ["card_001", "card_002", "card_004", "card_005", "card_006"];
const PATTERNS: [&str; 9] = [
    "algebra_patterns.json",
    "circles_patterns.json",
    "geometry_patterns.json",
    "number_lines_patterns.json",
    "scottish_color_palette.json",
    "statistics_patterns.json",
    "straight_lines_patterns.json",
    "trigonometry_patterns.json",
    "vectors_patterns.json",
];
/// No browser is there: pictures are the same on every machine.
const NO_CHROMIUM: &str = "/nowhere/chromium";
/// Why the service does not draw with JSXGraph, as results and contact sheet say it.
const NO_BROWSER: &str = "the renderer jsxgraph is not here: CHROMIUM names /nowhere/chromium, which is not there; \
     JSXGraph is not installed (npm install --prefix service)";
/// 22 November 2026, as `SOURCE_DATE_EPOCH`: results bear it.
const TODAY: &str = "1795305600";

/// The example in a folder of its own, with a render service of its own.
fn example() -> Result<Project, Missing> {
    required::program("node", &["--version"])?;
    let mut project = Project::copy_of("examples/diagrams");
    project.env(
        "DIAGRAM_SCREENSHOT_URL",
        &format!("http://127.0.0.1:{}", free_port()),
    );
    project.env("CHROMIUM", NO_CHROMIUM);
    project.env("SOURCE_DATE_EPOCH", TODAY);
    Ok(project)
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/diagrams")
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

/// What stages made in the default workspace: no checkpoints, manifests, progress.
fn made(project: &Project) -> BTreeMap<String, String> {
    let all = project.digests().into_iter().filter(|(path, _)| {
        let is_record = path.starts_with("stage_")
            || path.starts_with("manifests/")
            || path.ends_with("_progress.json");
        !is_record
    });
    all.map(|(path, digest)| (path, digest.to_string()))
        .collect()
}

fn every_batch() -> Vec<String> {
    let authors = CARDS.iter().map(|card| format!("author/{card}"));
    let patterns = PATTERNS.iter().map(|file| format!("patterns/{file}"));
    let mut all: Vec<String> = authors
        .chain(patterns)
        .chain(["cards".to_owned(), "collect".to_owned()])
        .collect();
    all.sort();
    all
}

/// Rounds that were judged, as batch, whether they were right, and score.
fn judged(ran: &RunResult) -> Vec<(String, bool, f64)> {
    let rounds = ran.data("round_judged").map(|data| {
        let batch = data["batch"].as_str().unwrap().to_owned();
        (
            batch,
            data["right"].as_bool().unwrap(),
            data["score"].as_f64().unwrap(),
        )
    });
    rounds.collect()
}

#[test]
fn a_lesson_becomes_diagrams() {
    let project = require!(example());
    let ran = project.run(&[]);
    assert_eq!(
        (ran.code, ran.tried()),
        (0, every_batch()),
        "{}",
        ran.output
    );

    let images: Vec<String> = CARDS
        .iter()
        .flat_map(|card| [format!("{card}_diagram.json"), format!("{card}_image.png")])
        .collect();
    assert_eq!(project.list("diagrams"), images);
    assert_eq!(project.list("jsxgraph_patterns"), PATTERNS);
    for pattern in PATTERNS {
        let source =
            std::fs::read_to_string(folder().join("data/jsxgraph_patterns").join(pattern)).unwrap();
        assert_eq!(
            project.read(&format!("workspace/jsxgraph_patterns/{pattern}")),
            source
        );
    }
    assert_eq!(
        project.json("workspace/lesson_template.json"),
        project.json("workspace/inputs/n5_maths_12.json")
    );
    let cards = project.json("workspace/cards_for_diagrams.json");
    let kinds: Vec<(&str, &str)> = cards["cards"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| {
            (
                card["card_id"].as_str().unwrap(),
                card["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("card_001", "straight_lines"),
            ("card_002", "geometry"),
            ("card_004", "algebra"),
            ("card_005", "statistics"),
            ("card_006", "circles")
        ]
    );

    let history = project.json("workspace/critique_history.json");
    let rounds: Vec<Value> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|card| {
            let scores: Vec<&Value> = card["critiques"]
                .as_array()
                .unwrap()
                .iter()
                .map(|round| &round["score"])
                .collect();
            json!([card["card_id"], scores])
        })
        .collect();
    assert_eq!(
        json!(rounds),
        json!([
            ["card_001", [0.66, 1]],
            ["card_002", [1]],
            ["card_004", [0.61, 0.71, 1]],
            ["card_005", [0.74, 1]],
            ["card_006", [1]]
        ])
    );
    assert_eq!(
        history[3]["critiques"][0],
        json!({"iteration": 1, "score": 0.74, "feedback": "car in #f2b705 has the contrast 1.8 to 1, 3 is the least"})
    );
    assert_eq!(
        history[2]["critiques"][1]["feedback"],
        "the label U(2.2, −0.96) is crossed by y = x^2 - 4x + 3"
    );

    let sheet = project.read("workspace/outputs/diagrams.html");
    assert!(sheet.contains(&format!(
        "<strong>Fallback:</strong> 5 of 5 pictures are drawn without JSXGraph: {}</p>",
        NO_BROWSER.replace('/', "&#x2f;")
    )));
    for (place, card) in CARDS.iter().enumerate() {
        let image =
            std::fs::read(project.at(&format!("workspace/diagrams/{card}_image.png"))).unwrap();
        assert_eq!(image[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(
            (&image[16..20], &image[20..24]),
            (&600_u32.to_be_bytes()[..], &600_u32.to_be_bytes()[..])
        );
        let encoded = base64::engine::general_purpose::STANDARD.encode(&image);
        assert!(sheet.contains(&format!("src=\"data:image/png;base64,{encoded}\"")));
        let critiques = &history[place]["critiques"];
        let iterations = critiques.as_array().unwrap().len();
        let result = project.json(&format!("workspace/results/{card}.json"));
        assert_eq!(
            result,
            json!({
                "success": true,
                "card_id": card,
                "jsxgraph_json": project.json(&format!("workspace/diagrams/{card}_diagram.json")),
                "image_base64": encoded,
                "visual_critique_score": 1,
                "critique_iterations": iterations,
                "critique_feedback": critiques,
                "made_by": {
                    "author": "jq filters/author.jq",
                    "critic": "jq filters/critic.jq",
                    "renderer": "plain",
                    "fallback": NO_BROWSER,
                    "date": "2026-11-22",
                    "cost_usd": 0.0,
                },
            })
        );
        let drafts: Vec<String> = project
            .list("drafts")
            .into_iter()
            .filter(|name| name.starts_with(card))
            .collect();
        assert_eq!(drafts.len(), 2 * iterations);
    }

    let summary = |stage: u32| {
        project.json(&format!("workspace/stage_{stage}_complete.json"))["summary"].clone()
    };
    assert_eq!(
        summary(1),
        json!({"lesson_template_id": "n5_maths_12", "sow_order": 12, "eligible_cards": 5})
    );
    assert_eq!(
        summary(4),
        json!({
            "diagrams_generated": 5, "iterations": 9, "renderers": {"plain": 5}, "cost_usd": 0.0,
            "warnings": [format!("pictures drawn without JSXGraph: 5: {NO_BROWSER}")],
        })
    );
    ran.says("outputs  workspace/outputs/diagrams.html");
    let services: Vec<&str> = ran
        .records
        .iter()
        .filter(|record| record["data"]["again"] != true)
        .filter_map(|record| record["kind"].as_str())
        .filter(|kind| kind.starts_with("service_"))
        .collect();
    assert_eq!(services, ["service_started", "service_ended"]);

    project.run(&[]).expect(0, &[]);
    project.remove("workspace/diagrams/card_002_image.png");
    project.run(&[]).expect(0, &["author/card_002"]);
    // A changed card alone is drawn again.
    project.edit(
        "workspace/inputs/n5_maths_12.json",
        "walking 14",
        "walking 15",
    );
    project
        .run(&[])
        .expect(0, &["author/card_005", "cards", "collect"]);
    let forced = project.run(&["--force"]);
    assert_eq!((forced.code, forced.tried()), (0, every_batch()));
}

#[test]
fn bad_lessons_are_refused() {
    let project = require!(example());
    for (file, said) in [
        (
            "no_cards",
            "cards failed: SCHEMA: `inputs/no_cards.json` does not match schemas/lesson.schema.json: Missing cards in object",
        ),
        (
            "id_with_path",
            "cards failed: SCHEMA: `inputs/id_with_path.json` does not match schemas/lesson.schema.json: \"../../card_001\" does not match",
        ),
        (
            "one_id_twice",
            "cards failed: DUPLICATE_CARD: two cards of the lesson have one id",
        ),
        (
            "not_json",
            "cards failed: SCHEMA: `inputs/not_json.json` does not match schemas/lesson.schema.json: line 3",
        ),
    ] {
        let set = format!("lesson=bad/{file}.json");
        let ran = project.run_unplanned(&["--set", &set]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says(said);
        assert!(!project.exists("workspace/cards_for_diagrams.json"));
        assert!(!project.exists("workspace/diagrams"));
    }
    let ran = project.run_unplanned(&["--set", "lesson=bad/cannot_be_drawn.json"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("author/card_001 failed: QUALITY_THRESHOLD: Diagram for card_001 failed to meet quality threshold (≥0.85) after 3 iterations. Best score: 0.55")
        .says("iteration 1: not right, score 0.45")
        .says("iteration 3: not right, score 0.55");
    assert!(!project.exists("workspace/critique_history.json"));
    assert!(!project.exists("workspace/diagrams/card_001_image.png"));
}

#[test]
fn the_threshold_is_a_parameter() {
    let project = require!(example());
    let ran = project.run(&["--set", "threshold=0.3"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/stage_4_complete.json")["summary"]["iterations"],
        5
    );
    // What is not good enough any more is made again, and what is stays.
    let ran = project.run_unplanned(&["--set", "threshold=0.85"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/stage_4_complete.json")["summary"]["iterations"],
        9
    );
}

#[test]
fn a_pattern_file_that_is_not_there_is_a_warning() {
    let project = require!(example());
    project.remove("data/jsxgraph_patterns/statistics_patterns.json");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(
        project.json("workspace/stage_2_complete.json")["summary"]["warnings"],
        json!(["Pattern file not found: statistics_patterns.json"])
    );
    let others: Vec<&str> = PATTERNS
        .into_iter()
        .filter(|name| !name.starts_with("statistics"))
        .collect();
    assert_eq!(project.list("jsxgraph_patterns"), others);
}

/// The example, killed at an operation on the disk.
fn killed_at(operation: usize) -> Result<Project, Missing> {
    let project = example()?;
    let killed = project
        .command(&["run"])
        .env("MILEPOST_STOP_AT", format!("{operation},unflushed"))
        .output()
        .unwrap();
    assert_eq!(killed.status.code(), None, "it was killed");
    Ok(project)
}

/// How many rounds of the hardest card are kept.
fn finished(project: &Project) -> usize {
    let kept = project.list(".milepost/rounds/author/card_004");
    let kept = kept.iter().filter(|name| !name.starts_with('.'));
    kept.filter_map(|name| name.strip_suffix(".json")).count()
}

#[test]
fn killed_inside_the_loop_it_continues_inside() {
    let (whole, list) = (require!(example()), require!(example()));
    let ran = whole.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let expected = made(&whole);

    let operations = list.at("operations");
    let setting = format!("unflushed,list={}", operations.display());
    let done = list
        .command(&["run"])
        .env("MILEPOST_STOP_AT", setting)
        .output()
        .unwrap();
    assert!(done.status.success());
    let operations = std::fs::read_to_string(operations).unwrap();
    let kept = |round: u32| {
        let end = format!("rounds/author/card_004/{round}.json");
        let is_it = |line: &str| line.starts_with("rename") && line.ends_with(&end);
        operations.lines().position(is_it).unwrap() + 1
    };
    // After the first round, in the midst of the second, and after it. What five cards do at once is not in the same order
    // in every run: where another number of rounds was finished, it is stopped a little earlier or later.
    for (stop, rounds) in [
        (kept(1) + 2, 1),
        (usize::midpoint(kept(1), kept(2)), 1),
        (kept(2) + 2, 2),
    ] {
        let near = (0..20).flat_map(|by| [stop + 3 * by, stop.saturating_sub(3 * by)]);
        let project = near
            .map(|stop| killed_at(stop).unwrap())
            .find(|project| finished(project) == rounds)
            .expect("no run was stopped with so many rounds finished");
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        let again: Vec<_> = judged(&ran)
            .into_iter()
            .filter(|(batch, ..)| batch == "card_004")
            .collect();
        let all = [
            ("card_004".to_owned(), false, 0.61),
            ("card_004".to_owned(), false, 0.71),
            ("card_004".to_owned(), true, 1.0),
        ];
        assert_eq!(
            again,
            all[rounds..],
            "rounds that were finished are not done again"
        );
        assert_eq!(made(&project), expected);
    }
}

/// What a run of the course prints: the summary.
fn course(project: &Project, more: &[&str], code: i32) -> Value {
    let mut command = project.command(&["run", "--workspaces", "course/lessons.json", "--json"]);
    let output = command.args(more).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_course_runs_lesson_after_lesson() {
    let mut project = require!(example());
    project.env("ANTHROPIC_API_KEY", "nobody-is-asked");
    let lesson = |name: &str, order: u32, cards: u32| json!({"lesson_template_id": name, "sow_order": order, "eligible_cards": cards});
    // Nothing is written, so the lessons are not read: what is not known is null.
    assert_eq!(
        course(&project, &["--agent", "claude", "-n"], 0),
        json!({
            "dry_run": true, "courseId": "course_n5_maths", "total_lessons": 3, "lessons_needing_diagrams": null,
            "total_eligible_cards": null, "estimated_tokens": null, "estimated_cost_usd": null, "lessons_details": [],
        })
    );
    assert_eq!(
        course(&project, &["--agent", "claude", "--until-paid"], 0),
        json!({
            "dry_run": true, "courseId": "course_n5_maths", "total_lessons": 3, "lessons_needing_diagrams": 2, "total_eligible_cards": 7,
            "estimated_tokens": 35000, "estimated_cost_usd": 0.27,
            "lessons_details": [lesson("n5_maths_11", 11, 2), lesson("n5_maths_12", 12, 5)],
        })
    );
    let whole = |processed: u32, diagrams: u32| {
        json!({
            "success": true, "courseId": "course_n5_maths", "total_lessons": 3, "lessons_processed": processed,
            "diagrams_generated": diagrams, "errors": [],
        })
    };
    // The lesson without cards was complete when it had been read.
    let drawn = course(&project, &["--agent", "default"], 0);
    assert_eq!(drawn, whole(2, 7));
    assert_eq!(course(&project, &[], 0), whole(0, 0));
    let generated = |name: &str| {
        let checkpoint = format!("workspaces/{name}/stage_4_complete.json");
        project.json(&checkpoint)["summary"]["diagrams_generated"].clone()
    };
    assert_eq!(
        ["n5_maths_11", "n5_maths_12", "n5_maths_13"].map(generated),
        [json!(2), json!(5), json!(0)]
    );
}

#[test]
fn a_card_is_estimated_at_5000_tokens() {
    let project = require!(example());
    let ran = project.run(&["--until", "patterns"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let plan = project.plan(&["--agent", "claude"]).unwrap();
    let author = plan["stages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|stage| stage["stage"] == "author")
        .unwrap();
    let asks = &author["asks"];
    // 25,000 tokens, 60 % of them input: 15,000 at $3 and 10,000 at $15 for a million, in billionths of a dollar.
    assert_eq!(
        json!([
            asks["input_tokens"],
            asks["output_tokens"],
            asks["cost"],
            asks["basis"]
        ]),
        json!([15_000, 10_000, 195_000_000, "declared"])
    );
}

#[test]
fn the_summary_of_a_batch_has_the_fields_of_the_document() {
    let source = std::fs::read_to_string(folder().join("filters/batch_summary.jq")).unwrap();
    let summary = Jq::compile("filters/batch_summary.jq", &source, &[]).unwrap();
    let entry = |lesson: &str, order: u32, cards: u32, more: Value| {
        let mut entry = json!({
            "params": {"courseId": "course_n5_maths"},
            "workspace": lesson,
            "status": "complete",
            "error": null,
            "stages": {"cards": {"summary": {"lesson_template_id": lesson, "sow_order": order, "eligible_cards": cards}}, "collect": {"summary": {"diagrams_generated": cards}}},
            "estimate": {"tokens": 5000 * cards, "cost_usd": 0.039 * f64::from(cards)},
        });
        entry
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        entry
    };
    let entries = json!([
        entry("n5_maths_11", 11, 2, json!({"status": "reused"})),
        entry("n5_maths_12", 12, 5, json!({})),
        entry(
            "n5_maths_13",
            13,
            0,
            json!({"status": "failed", "error": {"message": "broken"}})
        ),
    ]);
    assert_eq!(
        summary
            .one(json!({"dry_run": true, "entries": entries}), &[])
            .unwrap(),
        json!({
            "dry_run": true, "courseId": "course_n5_maths", "total_lessons": 3, "lessons_needing_diagrams": 2, "total_eligible_cards": 7,
            "estimated_tokens": 35000, "estimated_cost_usd": 0.27,
            "lessons_details": [
                {"lesson_template_id": "n5_maths_11", "sow_order": 11, "eligible_cards": 2},
                {"lesson_template_id": "n5_maths_12", "sow_order": 12, "eligible_cards": 5},
            ],
        })
    );
    assert_eq!(
        summary
            .one(json!({"dry_run": false, "entries": entries}), &[])
            .unwrap(),
        json!({
            "success": false, "courseId": "course_n5_maths", "total_lessons": 3, "lessons_processed": 1, "diagrams_generated": 5,
            "errors": [{"lesson_template_id": "n5_maths_13", "sow_order": 13, "error": "broken"}],
        })
    );

    // What is not known is null, and a lesson that was left held is not processed.
    let why = "author: raise --budget-usd";
    let entries = json!([
        entry(
            "n5_maths_11",
            11,
            2,
            json!({"estimate": {"tokens": 10_000, "cost_usd": null}})
        ),
        entry(
            "n5_maths_12",
            12,
            5,
            json!({"status": "held", "reason": why, "stages": {}, "estimate": null})
        ),
    ]);
    assert_eq!(
        summary
            .one(json!({"dry_run": true, "entries": entries}), &[])
            .unwrap(),
        json!({
            "dry_run": true, "courseId": "course_n5_maths", "total_lessons": 2, "lessons_needing_diagrams": null,
            "total_eligible_cards": null, "estimated_tokens": null, "estimated_cost_usd": null,
            "lessons_details": [{"lesson_template_id": "n5_maths_11", "sow_order": 11, "eligible_cards": 2}],
        })
    );
    assert_eq!(
        summary
            .one(json!({"dry_run": false, "entries": entries}), &[])
            .unwrap(),
        json!({
            "success": false, "courseId": "course_n5_maths", "total_lessons": 2, "lessons_processed": 1, "diagrams_generated": 2,
            "errors": [{"lesson_template_id": "n5_maths_12", "sow_order": null, "error": why}],
        })
    );
}
