//! Schemas that are no schemas: refused at their place before anything runs.

use crate::support::Project;
use serde_json::{Value, json};

/// A stage whose program leaves a trace, and whose output has this schema.
fn project(schema: &str) -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"schemas\"\n"),
        (
            "stages/1_write.toml",
            "[step]\ncommand = 'echo ran >> \"$HOME/ran\"; echo 1 > {{ paths.o }}'\n\n[outputs]\no = \"o.json\"\n",
        ),
        ("schemas/o.schema.json", schema),
        ("schemas/referred.json", "{\n  \"type\": \"interger\"\n}\n"),
    ])
}

/// What `plan` reports of a project: the code, and file, line, column and message of its only problem.
fn refusal(project: &Project, command: &str) -> (i32, Value) {
    let said = project.output(&format!("--json {command}"));
    let json: Value = serde_json::from_str(&said.out).unwrap();
    let problems = json["error"]["problems"].as_array();
    let problem = problems.map_or(Value::Null, |all| {
        assert_eq!(all.len(), 1, "{json}");
        let named = |key: &str| all[0][key].clone();
        json!([
            named("file"),
            named("line"),
            named("column"),
            named("message")
        ])
    });
    (said.code, problem)
}

#[test]
fn a_schema_that_is_none_is_refused_before_anything_runs() {
    let own = "schemas/o.schema.json";
    let no_type = "`interger` is not a type: expected array, boolean, integer, null, number, object or string";
    for (schema, expected) in [
        (
            "{\n  \"type\": \"interger\"\n}",
            json!([own, 2, 11, no_type]),
        ),
        (
            "{\"$ref\": \"referred.json\"}",
            json!(["schemas/referred.json", 2, 11, no_type]),
        ),
        (
            "{\"properties\": {\"a/b\": [\n1]}}",
            json!([own, 1, 24, "a list, a boolean or an object was expected"]),
        ),
        (
            "{\n\"pattern\": \"(\"}",
            json!([own, 2, 12, "\"(\" is not a regex"]),
        ),
        (
            "{\"required\": \"a\"}",
            json!([own, 1, 14, "\"a\" is a string, a list was expected"]),
        ),
        (
            "{\"minimum\": \"1\"}",
            json!([own, 1, 13, "\"1\" is a string, a number was expected"]),
        ),
    ] {
        let project = project(schema);
        for command in ["plan", "run"] {
            assert_eq!(
                refusal(&project, command),
                (4, expected.clone()),
                "{schema}"
            );
        }
        assert!(!project.exists("workspace/o.json"));
    }
}

#[test]
fn a_schema_that_cannot_be_compiled_is_refused_before_anything_runs() {
    for schema in [
        "{\"items\": [{\"type\": \"string\"}]}",
        "{\"$ref\": \"#/$defs/a b\", \"$defs\": {\"a b\": {}}}",
        "{\"$ref\": \"#nothing\"}",
        "{\"patternProperties\": {\"(\": {}}}",
        "{\"minLength\": -1}",
        "{\"enum\": 3}",
        "{\"$schema\": \"https://example.com/schema\"}",
    ] {
        let project = project(schema);
        let (code, problem) = refusal(&project, "run");
        assert_eq!(
            (code, &problem[0]),
            (4, &json!("schemas/o.schema.json")),
            "{schema}: {problem}"
        );
        assert!(!project.exists("workspace/o.json"), "{schema}");
    }
}

#[test]
fn a_list_that_cannot_be_validated_as_a_stream_is_refused_before_anything_runs() {
    let project = project("{\"properties\": {\"all\": {\"uniqueItems\": true}}}");
    project.edit(
        "stages/1_write.toml",
        "o = \"o.json\"",
        "o = { path = \"o.json\", stream = \".all\" }",
    );
    let (code, problem) = refusal(&project, "run");
    assert_eq!(
        (code, &problem[0]),
        (4, &json!("schemas/o.schema.json")),
        "{problem}"
    );
}
