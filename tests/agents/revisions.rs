//! The main pipeline asks a model about real building models: of another revision only what is new, under another packing nothing.

use super::pipeline::{Served, calls};
use crate::support::Project;
use crate::support::required::{real_model, require};
use serde_json::Value;
use std::path::Path;

/// The main pipeline, with an agent `model`.
fn fixture(port: u16) -> Project {
    let declared = include_str!("../../milepost.toml");
    let agent = format!(
        "\n[agents.model]\nopenai = \"gpt-5.1\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nmax_tokens = 8000\n"
    );
    let mut project = Project::new(&[("milepost.toml", &format!("{declared}{agent}"))]);
    project.env("OPENAI_API_KEY", "right");
    project.take(&[
        "stages",
        "schemas",
        "rules",
        "filters",
        "prompts",
        "templates",
    ]);
    project
}

/// Every record rests on the answer to the question of its element; how many questions and elements there are.
fn checked(project: &Project) -> (usize, usize) {
    let (mut questions, mut elements) = (0, 0);
    for name in project.list("intermediate/batches") {
        let batch = project.json(&format!("workspace/intermediate/batches/{name}"));
        let stem = name.strip_suffix(".json").unwrap();
        let records = format!("workspace/intermediate/classified/{stem}_classified.json");
        let records = project.json(&records);
        for asked in batch["questions"].as_array().unwrap() {
            questions += 1;
            for place in asked["elements"].as_array().unwrap() {
                let place = usize::try_from(place.as_u64().unwrap()).unwrap();
                let record = &records[place];
                assert_eq!(record["global_id"], batch["elements"][place]["global_id"]);
                let because = record["reasoning"].as_str().unwrap();
                let because: Value = serde_json::from_str(because).unwrap();
                assert_eq!(because, asked["question"], "{name}");
                elements += 1;
            }
        }
    }
    (questions, elements)
}

#[test]
fn a_revision_of_a_real_model_asks_what_is_new() {
    let first = require!(real_model("duplex_A_20110505.ifc"));
    let second = require!(real_model("duplex_A_20110907.ifc"));
    let served = Served::new("elements");
    let project = fixture(served.port);
    let run = |flags: &[&str]| {
        let agent = ["--agent", "classifier=model", "--until", "classify"];
        let ran = project.run(&[&agent, flags].concat());
        assert_eq!(ran.code, 0, "{}", ran.output);
        let asked: u64 = calls(&project).iter().map(|(questions, _)| questions).sum();
        (calls(&project).len(), asked)
    };
    let set = |model: &Path| format!("model={}", model.display());
    assert_eq!(run(&["--set", &set(&first)]), (1, 46));
    assert_eq!(checked(&project), (46, 208));
    // Two of its 48 questions are new.
    assert_eq!(run(&["--set", &set(&second)]), (2, 48));
    assert_eq!(checked(&project), (48, 218));
    for flags in [["--set", "batch_size=7"], ["--set", "batch_size=30"]] {
        assert_eq!(run(&flags), (2, 48));
        assert_eq!(checked(&project), (48, 218));
    }
}
