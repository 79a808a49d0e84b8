//! The id of a question: `result` of an agent step sees it, and a correction may name it.

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
words = { path = "intermediate/words/{{ batch.stem }}.json", schema = false }
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
    project.json("workspace/intermediate/words/batch_1.json")
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

const JOIN: &str = r#"
[inputs]
words = "intermediate/words/*.json"

[inputs.fixes]
path = "inputs/fixes.csv"
optional = true

[step]
merge = ".words[][]"
key = ".id"
corrections = "fixes"
shared_key = "question"

[outputs]
all = { path = "outputs/all.json", schema = false }
"#;

/// A project whose records are merged, with these corrections.
pub fn merged(fixes: &str) -> Project {
    let project = project("{id: $element.id, word, size: 1, question: $question}");
    project.write("stages/3_join.toml", JOIN);
    project.write("workspace/inputs/fixes.csv", fixes);
    project
}

#[test]
fn a_correction_by_question_corrects_all_its_elements_and_one_by_key_wins() {
    let ann = Digest::of(r#"{"name":"Ann"}"#).short();
    let project = merged(&format!(
        "id,question,field,value,who,why\n,{ann},word,Anna,Ada,heard\n,{ann},size,4,Ada,measured\n3,,word,Annie,Bo,asked\n"
    ));
    project
        .run(&[])
        .expect(0, &["ask/batch_1", "join", "split"]);
    let all = project.json("workspace/outputs/all.json");
    let note = |field: &str, from: Value, to: Value, who: &str, why: &str| json!({"field": field, "from": from, "to": to, "who": who, "why": why});
    let by_question = |mut note: Value| {
        note["question"] = json!(ann);
        note
    };
    let size = by_question(note("size", json!(1), json!(4), "Ada", "measured"));
    assert_eq!(
        all["elements"],
        json!([
            {"id": 1, "word": "Anna", "size": 4, "question": ann,
                "corrections": [by_question(note("word", json!("Ann"), json!("Anna"), "Ada", "heard")), size]},
            {"id": 2, "word": "Bo", "size": 1, "question": Digest::of(r#"{"name":"Bo"}"#).short()},
            {"id": 3, "word": "Annie", "size": 4, "question": ann,
                "corrections": [size, note("word", json!("Ann"), json!("Annie"), "Bo", "asked")]},
        ])
    );
}

#[test]
fn a_row_names_either_a_key_or_a_question() {
    let project = merged(
        "id,question,field,value,who,why\n1,0123456789ab,word,x,Ada,y\n,,word,x,Ada,y\n,0123456789ab,word,x,Ada,y\n,0123456789ab,word,z,Ada,y\n",
    );
    project
        .run(&[])
        .expect(1, &["ask/batch_1", "join", "split"])
        .says("INPUT: inputs/fixes.csv:2: expected a value in `id` or `question`, found both: remove one")
        .says("inputs/fixes.csv:3: expected a value in `id` or `question`, found none")
        .says("inputs/fixes.csv:5: `word` of `0123456789ab` is corrected in line 4 already: keep one of the two");
    assert!(!project.exists("workspace/outputs/all.json"));
}

#[test]
fn corrections_that_match_nothing_are_warnings() {
    let rows: String = (10..32).map(|id| format!("{id},,word,x,Ada,y\n")).collect();
    let project = merged(&format!(
        "id,question,field,value,who,why\n,0123456789ab,word,x,Ada,y\n2,,word,Bob,Ada,y\n{rows}"
    ));
    let run = project.run(&[]);
    run.expect(0, &["ask/batch_1", "join", "split"])
        .says("warning: inputs/fixes.csv:2: no element has the question `0123456789ab`, so its `word` is not corrected")
        .says("warning: inputs/fixes.csv:22: no element has the id `28`, so its `word` is not corrected")
        .says("warning: inputs/fixes.csv: 3 more corrections match no element");
    let all = project.json("workspace/outputs/all.json");
    assert_eq!(all["elements"][1]["word"], "Bob");
    // Without the column of questions the table is as it was before there were any.
    project.write(
        "workspace/inputs/fixes.csv",
        "id,field,value,who,why\n2,word,Bob,Ada,y\n",
    );
    project.run(&[]).expect(0, &["join"]);
    assert_eq!(project.json("workspace/outputs/all.json"), all);
}
