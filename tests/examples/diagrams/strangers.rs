//! Lessons of strangers, whose words are not those of our own lesson.

use super::{course, example, folder};
use crate::support::required::require;
use milepost_core::expr::jq::Jq;
use serde_json::{Value, json};

/// What cards ask for, as kind and name, by the text of each.
fn asked(texts: &[&str]) -> Vec<Vec<String>> {
    let source = std::fs::read_to_string(folder().join("filters/cards.jq")).unwrap();
    let cards = Jq::compile("filters/cards.jq", &source, &[]).unwrap();
    let found = cards.one(json!({"lesson": lesson(texts)}), &[]).unwrap();
    let asked = found["cards"].as_array().unwrap().iter().map(|card| {
        let elements = card["elements"].as_array().unwrap().iter();
        let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
        elements
            .map(|it| format!("{} {}", text(it, "what"), text(it, "name")))
            .collect()
    });
    asked.collect()
}

fn lesson(texts: &[&str]) -> Value {
    let cards = texts.iter().enumerate().map(|(place, text)| {
        json!({"id": format!("card_{place}"), "title": format!("Card {place}"), "explainer": text})
    });
    json!({"lessonTemplateId": "l", "courseId": "c", "sow_order": 1, "title": "Lesson", "cards": cards.collect::<Vec<_>>()})
}

const TABLE: &str = "Draw y = 3x − 2 for three values. When x = 1, y = 1 and when x = 2, y = 4. Plot (0, −2) and (1, 1), and join them.";
const CHECK: &str = "Does (3, 7) lie on y = 3x − 2? y = 3(3) − 2 = 7. It does.";
const JOINED: &str = "Find the gradient of the straight line joining A(−1, 4) and B(2, −2).";
const SINES: &str =
    "In triangle PQR, PQ = 9 cm, angle P = 40° and angle R = 75°. Find QR by the sine rule.";
const SECTOR: &str =
    "A sector of a circle with centre O has radius 5 cm and angle 100°. Find its area.";
const CHART: &str = "Pupils named their pet. Dog 7, cat 5, a fish 2 and none 4. Draw a bar chart of it. In 2020, it was the same.";
const RAMP: &str = "Triangle ABC is right-angled at C with AB = 10 m and BC = 6 m.";

#[test]
fn what_a_lesson_asks_for_is_read() {
    let found = asked(&[TABLE, CHECK, JOINED, SINES, SECTOR, CHART, RAMP]);
    let expected: [&[&str]; 7] = [
        &[
            "point (0, -2)",
            "point (1, 1)",
            "point (2, 4)",
            "graph y = 3x - 2",
        ],
        &["point (3, 7)", "graph y = 3x - 2"],
        &["point A", "point B", "line line AB"],
        &[
            "triangle PQR",
            "angle angle at P",
            "angle angle at R",
            "side 9 cm",
        ],
        &["circle circle O", "sector sector of 100°"],
        &["bar Dog", "bar cat", "bar a fish", "bar none"],
        &[
            "triangle ABC",
            "right_angle right angle at C",
            "side 10 m",
            "side 6 m",
        ],
    ];
    assert_eq!(found, expected);
    assert_eq!(
        asked(&["The line y = 3 is level, and so is the graph of y = −2."]),
        [["graph y = 3", "graph y = -2"]]
    );
}

/// All that a stranger's lesson asks for is drawn.
#[test]
fn a_lesson_of_a_stranger_is_drawn() {
    let project = require!(example());
    let texts = [TABLE, CHECK, JOINED, SINES, SECTOR, CHART, RAMP];
    project.write("lesson.json", lesson(&texts).to_string());
    let ran = project.run(&["--set", "lesson=lesson.json"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let history = project.json("workspace/critique_history.json");
    let last = history.as_array().unwrap().iter().map(|card| {
        let critiques = card["critiques"].as_array().unwrap();
        critiques.last().unwrap()["feedback"].as_str().unwrap()
    });
    assert_eq!(last.collect::<Vec<_>>(), ["nothing to change"; 7]);
    for (card, drawn) in [
        ("card_2", "line AB"),
        ("card_4", "sector of 100°"),
        ("card_5", "Dog"),
        ("card_6", "right angle at C"),
    ] {
        let diagram = project.json(&format!("workspace/diagrams/{card}_diagram.json"));
        let mut elements = diagram["diagram"]["elements"].as_array().unwrap().iter();
        assert!(elements.any(|it| it["name"] == drawn), "{card}: {drawn}");
    }
}

/// What cannot be drawn from what a card says fails by the critic, with what is missing.
#[test]
fn a_triangle_of_which_too_little_is_known_fails_with_what_is_missing() {
    let project = require!(example());
    project.write(
        "lesson.json",
        lesson(&["Triangle ABC has AB = 4 m. What else must be known?"]).to_string(),
    );
    let ran = project.run_unplanned(&["--set", "lesson=lesson.json"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("author/card_0 failed: QUALITY_THRESHOLD: Diagram for card_0 failed to meet quality threshold (≥0.85) after 3 iterations.")
        .says("ABC is asked for and not drawn");
}

#[test]
fn the_service_is_at_port_3001_by_default() {
    let text = std::fs::read_to_string(folder().join("milepost.toml")).unwrap();
    let project: Value = toml::from_str(&text).unwrap();
    let url = &project["env"]["DIAGRAM_SCREENSHOT_URL"];
    assert_eq!(url, "http://localhost:3001");
    for name in ["server.js", "mcp.js"] {
        let text = std::fs::read_to_string(folder().join("service").join(name)).unwrap();
        assert!(text.contains(url.as_str().unwrap()), "{name}");
    }
}

/// A file of a course that is not a lesson is listed among the errors, with its name in the list.
#[test]
fn a_lesson_that_cannot_be_read_is_named_with_its_place() {
    let project = require!(example());
    project.write("course/n5_maths_11.json", "{");
    let summary = course(&project, &["--until", "cards"], 1);
    let failed = &summary["errors"][0];
    assert_eq!(
        json!([
            summary["success"],
            failed["lesson_template_id"],
            failed["sow_order"]
        ]),
        json!([false, "n5_maths_11", 11])
    );
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.contains("does not match schemas/lesson.schema.json"),
        "{error}"
    );
}
