//! The embedded critic of `examples/diagrams`: faults of teaching, not of form alone.

use super::{example, folder};
use crate::support::required::{Missing, require};
use milepost_core::expr::jq::Jq;
use serde_json::{Value, json};

/// The card, the diagram that the embedded author makes of it, and what the render service says of the picture.
fn drawn(card: &str) -> Result<(Value, Value, Value), Missing> {
    let project = example()?;
    project.write(
        "lesson.json",
        json!({"lessonTemplateId": "l", "courseId": "c", "sow_order": 1, "title": "Lesson",
            "cards": [serde_json::from_str::<Value>(card).unwrap()]})
        .to_string(),
    );
    let ran = project.run_unplanned(&["--set", "lesson=lesson.json"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let card = project.json("workspace/cards_for_diagrams.json")["cards"][0].clone();
    let name = card["card_id"].as_str().unwrap();
    let diagram = project.json(&format!("workspace/diagrams/{name}_diagram.json"));
    let labels = diagram["diagram"]["elements"].as_array().unwrap().iter();
    let labels = labels.filter(|element| element["type"] == "text");
    let labels = labels.map(|element| element["parents"][2].clone());
    let labels = labels.chain([diagram["diagram"]["board"]["title"].clone()]);
    // Each label has a place of its own: what is tested here are not places.
    let labels: Vec<Value> = labels
        .enumerate()
        .map(|(place, text)| json!({"text": text, "x": 10, "y": 10 * place, "width": 50, "height": 8, "crossed_by": []}))
        .collect();
    let seen = json!({"width": 600, "height": 600, "board": {"width": 600, "height": 560}, "labels": labels, "points": [], "ticks": []});
    Ok((card, diagram, seen))
}

/// The critique of a picture in the first iteration.
fn critique(card: &Value, diagram: &Value, seen: &Value) -> Value {
    let source = std::fs::read_to_string(folder().join("filters/critic.jq")).unwrap();
    let critic = Jq::compile("filters/critic.jq", &source, &["card", "iteration"]).unwrap();
    let input = json!({"diagram": diagram, "rendered": {"metadata": seen}, "previous": null});
    critic.one(input, &[card.clone(), json!(1)]).unwrap()
}

fn without_label(seen: &Value, text: &str) -> Value {
    let mut seen = seen.clone();
    let labels = seen["labels"].as_array_mut().unwrap();
    let before = labels.len();
    labels.retain(|label| label["text"] != text);
    assert_eq!(labels.len(), before - 1, "{text}");
    seen
}

/// Each of the five faults alone keeps a diagram below the threshold.
#[test]
fn the_critic_catches_the_five_faults_of_a_teacher() {
    let gradient = r#"{"id": "a", "title": "Gradient", "explainer": "The line y = 2x + 1 passes through A(0, 1) and B(2, 5). Going from A to B we move 2 to the right and 4 up."}"#;
    let triangle = r#"{"id": "b", "title": "Ladder", "explainer": "Triangle ABC has a right angle at B. AB = 4 m and BC = 3 m, so AC is 5 m long and angle BAC is 36.9°."}"#;
    let chart = r#"{"id": "c", "title": "School", "explainer": "We asked 23 pupils. Draw a bar chart: walking 14, bus 9."}"#;
    let (card, diagram, seen) = require!(drawn(gradient));
    let good = critique(&card, &diagram, &seen);
    assert_eq!(
        (&good["score"], &good["feedback"]),
        (&json!(1), &json!("nothing to change"))
    );

    let expect = |critique: Value, feedback: &str| {
        assert_eq!(critique["feedback"], feedback);
        assert!(critique["pedagogy"].as_f64().unwrap() <= 0.5, "{critique}");
        assert!(critique["score"].as_f64().unwrap() < 0.85, "{critique}");
    };
    // Unequal axes, where a gradient is taught.
    let mut stretched = diagram.clone();
    stretched["diagram"]["board"]["keepaspectratio"] = json!(false);
    stretched["diagram"]["board"]["boundingbox"] = json!([-2, 6, 4, -1]);
    expect(
        critique(&card, &stretched, &seen),
        "the axes are unequal: 1 is 100 pixels across and 80 up, so slopes look wrong",
    );
    // No scale.
    let mut bare = diagram.clone();
    bare["diagram"]["board"]["axis"] = json!(false);
    expect(
        critique(&card, &bare, &seen),
        "the picture has no scale: axes with numbers are missing",
    );
    // No title.
    expect(
        critique(&card, &diagram, &without_label(&seen, "Gradient")),
        "no label says the title \"Gradient\"",
    );
    // A step whose length is not written; the coordinates of a point do not stand for it.
    expect(
        critique(&card, &diagram, &without_label(&seen, "2")),
        "no label says 2, of step from A to B",
    );
    // A length and an angle without their labels.
    let (card, diagram, seen) = drawn(triangle).unwrap();
    assert_eq!(critique(&card, &diagram, &seen)["score"], 1);
    expect(
        critique(&card, &diagram, &without_label(&seen, "5 m")),
        "the length 5 m has no label",
    );
    expect(
        critique(&card, &diagram, &without_label(&seen, "36.9°")),
        "angle BAC has no label: 36.9°",
    );
    // A chart without its scale.
    let (card, mut diagram, seen) = drawn(chart).unwrap();
    assert_eq!(critique(&card, &diagram, &seen)["score"], 1);
    let elements = diagram["diagram"]["elements"].as_array_mut().unwrap();
    elements.retain(|element| !element["name"].as_str().unwrap().starts_with("scale "));
    expect(
        critique(&card, &diagram, &seen),
        "the chart has no scale: numbers beside its height are missing",
    );
}

/// A side that is drawn in another proportion than the card says.
#[test]
fn the_critic_measures_the_sides_of_a_triangle() {
    let triangle = r#"{"id": "b", "title": "Ladder", "explainer": "Triangle ABC has a right angle at B. AB = 4 m and BC = 3 m."}"#;
    let (card, mut diagram, seen) = require!(drawn(triangle));
    let elements = diagram["diagram"]["elements"].as_array_mut().unwrap();
    let c = elements
        .iter_mut()
        .find(|element| element["name"] == "C")
        .unwrap();
    c["parents"] = json!([6, 0]);
    let critique = critique(&card, &diagram, &seen);
    assert_eq!(
        critique["feedback"],
        "BC = 3 m is drawn 2 times as long as it is"
    );
    assert!(critique["score"].as_f64().unwrap() < 0.85, "{critique}");
}
