//! The id of a question, as the `result` of an agent step sees it.

use crate::support::Project;
use milepost_core::base::digest::Digest;
use serde_json::{Value, json};

const SPLIT: &str = r#"
[inputs]
things = "inputs/things.json"

[[step]]
split = ".things"
question = "{name}"
size = "{{ params.size }}"
out = "batch"

[outputs]
batch = { path = "intermediate/batch_*.json", schema = false }
"#;

const ASK: &str = r#"
[each.batch]
path = "intermediate/batch_*.json"

[step]
agent = "speller"
prompt = "prompts/spell.md"
questions = true
schema = "schemas/word.schema.json"
result = "filters/result.jq"

[outputs]
words = { path = "outputs/{{ batch.stem }}.json", schema = false }
"#;

fn project(result: &str) -> Project {
    Project::new(&[
        (
            "milepost.toml",
            "name = \"words\"\n[params]\nsize = 20\n[agents.speller]\njq = '{word: .name}'\n[agents.loud]\njq = '{word: (.name | ascii_upcase)}'\n",
        ),
        ("stages/1_split.toml", SPLIT),
        ("stages/2_ask.toml", ASK),
        ("filters/result.jq", result),
        ("prompts/spell.md", "Spell {{ questions | tojson }}\n"),
        (
            "schemas/word.schema.json",
            r#"{"type": "object", "required": ["word"]}"#,
        ),
        (
            "workspace/inputs/things.json",
            r#"[{"id": 1, "name": "Ann"}, {"id": 2, "name": "Bo"}, {"id": 3, "name": "Ann"}]"#,
        ),
    ])
}

fn results(project: &Project) -> Value {
    project.json("workspace/outputs/batch_1.json")
}

#[test]
fn each_record_knows_the_question_that_it_asked() {
    let [ann, bo] =
        ["Ann", "Bo"].map(|name| Digest::of(json!({ "name": name }).to_string()).short());
    // The second program runs in a worker.
    for result in [
        "[$element.id, $question]",
        "[$element.id, (last(range(2)) | $question)]",
    ] {
        let project = project(result);
        project.run(&[]).expect(0, &["ask/batch_1", "split"]);
        assert_eq!(results(&project), json!([[1, ann], [2, bo], [3, ann]]));
    }
    // The id depends neither on the other elements nor on the agent.
    let project = project("[$element.id, .word, $question]");
    project.write(
        "workspace/inputs/things.json",
        r#"[{"name": "Bo", "id": 9}]"#,
    );
    project
        .run(&["--agent", "loud"])
        .expect(0, &["ask/batch_1", "split"]);
    assert_eq!(results(&project), json!([[9, "BO", bo]]));
}

#[test]
fn an_input_of_the_stage_hides_the_id() {
    let project = project("[$element.id, $question]");
    project.write("workspace/inputs/own.json", "\"own\"");
    project.edit(
        "stages/2_ask.toml",
        "[each.batch]",
        "[inputs]\nquestion = \"inputs/own.json\"\n\n[each.batch]",
    );
    project.run(&[]).expect(0, &["ask/batch_1", "split"]);
    assert_eq!(
        results(&project),
        json!([[1, "own"], [2, "own"], [3, "own"]])
    );
}
