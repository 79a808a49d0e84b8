//! What right declarations become: defaults, parts for fingerprints, warnings.

use super::Files;
use super::cases::project;
use milepost_core::model::stage::{EachSource, Stage, Templated};
use milepost_core::model::step::{AgentStep, StepKind, TemplateChoice};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

fn stage(files: &Files, name: &str) -> Stage {
    let (pipeline, _) = files
        .load()
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    pipeline.stage(name).unwrap().clone()
}

#[test]
fn defaults_are_filled_in() {
    let classify = stage(&project(), "3");
    assert_eq!(
        (classify.name.as_str(), classify.file.as_str()),
        ("classify", "stages/3_classify.toml")
    );
    assert_eq!(classify.progress.as_str(), "classify_progress.json");
    assert_eq!(classify.checkpoint_name(), "stage_3_complete.json");
    let step = &classify.steps[0];
    assert_eq!(
        (step.out.as_str(), step.attempts, step.kind.name()),
        ("classified", 3, "agent")
    );
    assert!(
        matches!(step.timeout, Some(Templated::Fixed(time)) if time == Duration::from_mins(10))
    );
    let StepKind::Agent(AgentStep {
        result: Some(result),
        prompt: TemplateChoice::One(prompt),
        ..
    }) = &step.kind
    else {
        panic!("{step:?}")
    };
    let fixed = [
        "params",
        "env",
        "workspace",
        "paths",
        "digests",
        "agents",
        "milepost",
    ];
    let names: Vec<&str> = fixed
        .into_iter()
        .chain([
            "batch",
            "classified",
            "run",
            "overrides",
            "element",
            "question",
        ])
        .collect();
    assert_eq!(*result.vars, *names);
    assert_eq!(classify.scope_names(), names[..11]);
    assert_eq!(
        (prompt.asset.path.as_str(), prompt.included.len()),
        ("prompts/classify.md", 0)
    );
    let batch = stage(&project(), "batch");
    let StepKind::Split(split) = &batch.steps[0].kind else {
        panic!("{batch:?}")
    };
    assert!(matches!(
        (&split.max_elements, &split.size),
        (Templated::Fixed(1000), Templated::Template(_))
    ));
    assert!(
        matches!(&classify.each[0].source, EachSource::Path(path) if path.shown() == "intermediate/batches/batch_*.json")
    );
}

#[test]
fn an_output_takes_the_schema_of_its_name() {
    let parse = "[inputs]\nmodel = \"inputs/m.ifc\"\n[step]\nifc = \"model\"\n[outputs]\nparsed = \"intermediate/parsed.json\"\n";
    let files = project().with("stages/1_parse.toml", parse);
    let (pipeline, warnings) = files.load().unwrap();
    assert!(pipeline.stages[0].outputs[0].schema.is_none());
    let warnings: Vec<String> = warnings
        .iter()
        .map(|warning| warning.render(false))
        .collect();
    assert_eq!(
        warnings,
        [
            "warning: output `parsed` is not validated: it has no schema\n \
          --> stages/1_parse.toml:6:1\n  |\n6 | parsed = \"intermediate/parsed.json\"\n  | ^^^^^^\n  |\n  \
          = help: create schemas/parsed.schema.json, or write schema = false\n"
        ]
    );
    let files = files.with("schemas/parsed.schema.json", "{}");
    let (pipeline, warnings) = files.load().unwrap();
    assert_eq!(
        pipeline.stages[0].outputs[0]
            .schema
            .as_ref()
            .unwrap()
            .path
            .as_str(),
        "schemas/parsed.schema.json"
    );
    assert_eq!(warnings, []);
}

const FULL: &str = r#"
description = "Everything"
progress = "all.json"
marker = "intermediate/x/{{ batch.stem }}.done"
[each.batch]
path = "intermediate/batches/batch_*.json"
[inputs]
parsed = { path = "intermediate/parsed.json", optional = true, format = "json" }
[inputs.files]
from = "intermediate/parsed.json"
select = ".files[]"
base = "project:"
[[step]]
jq = ".batch.data"
out = "x"
role = "Reader"
timeout = "5s"
attempts = 2
[[step]]
split = ".x.elements"
size = 50
out = "y"
[outputs]
x = { path = "intermediate/x/{{ batch.stem }}.json", schema = false }
y = { path = "intermediate/y/{{ batch.stem }}_*.json", schema = false }
[conserve]
in = ".x.elements[].id"
out = ".y[].elements[].id"
[[check]]
test = "true"
error = "NOT_TRUE"
[policy]
concurrency = { batch = 2 }
timeout = "1h"
on_failure = "continue"
placeholder = "{failed: .outcome}"
max_failures = 0.5
altered = "redo"
[errors]
schema = "WRONG"
"#;

fn parts(text: &str) -> BTreeMap<String, Value> {
    stage(&project().with("stages/3_classify.toml", text), "classify").parts
}

#[test]
fn parts_hold_what_changes_outputs() {
    let expected = json!({
        "checks": ["true"],
        "conserve": { "in": ".x.elements[].id", "out": ".y[].elements[].id" },
        "each": { "batch": { "path": "intermediate/batches/batch_*.json" } },
        "inputs": {
            "files": { "base": "Project", "from": "intermediate/parsed.json", "select": ".files[]" },
            "parsed": { "format": "json", "path": "intermediate/parsed.json" },
        },
        "marker": "intermediate/x/{{ batch.stem }}.done",
        "outputs": {
            "x": { "format": "json", "path": "intermediate/x/{{ batch.stem }}.json", "stream": null },
            "y": { "format": "json", "path": "intermediate/y/{{ batch.stem }}_*.json", "stream": null },
        },
        "step": [
            { "jq": ".batch.data", "out": "x" },
            { "max_elements": 1000, "out": "y", "size": 50, "split": ".x.elements" },
        ],
    });
    assert_eq!(
        serde_json::to_string(&parts(FULL)).unwrap(),
        expected.to_string()
    );
}

#[test]
fn parts_are_the_same_whatever_changes_no_output() {
    let whole = parts(FULL);
    for (from, to) in [
        (
            "description = \"Everything\"",
            "description = \"Something else\"",
        ),
        ("progress = \"all.json\"", ""),
        ("timeout = \"5s\"", "timeout = \"6s\""),
        ("attempts = 2", ""),
        ("role = \"Reader\"", ""),
        ("size = 50\n", ""),
        ("concurrency = { batch = 2 }", "concurrency = 7"),
        ("altered = \"redo\"", ""),
        ("max_failures = 0.5", ""),
        ("placeholder = \"{failed: .outcome}\"", ""),
        ("error = \"NOT_TRUE\"", ""),
        ("optional = true", "optional = false"),
        ("schema = \"WRONG\"", ""),
        (
            "jq = \".batch.data\"\nout = \"x\"",
            "out = \"x\"\njq = \".batch.data\"",
        ),
    ] {
        assert!(FULL.contains(from), "{from}");
        assert_eq!(parts(&FULL.replacen(from, to, 1)), whole, "{from}");
    }
    for (from, to) in [
        ("size = 50", "size = 40"),
        ("test = \"true\"", "test = \"true and true\""),
    ] {
        assert_ne!(parts(&FULL.replacen(from, to, 1)), whole, "{from}");
    }
}

#[test]
fn errors_of_the_stage_win_over_those_of_the_project() {
    let project_file = "name = \"x\"\n[params]\nmodel = { file = \"inputs/m.ifc\", base = \"project:\" }\nbatch_size = 5\n\
                        [agents.classifier]\nrules = \"rules/elements.toml\"\n[errors]\nschema = \"A\"\ntimeout = \"B\"\n";
    let files = project()
        .with("milepost.toml", project_file)
        .with("stages/3_classify.toml", FULL);
    let (pipeline, _) = files.load().unwrap();
    let names: Vec<_> = pipeline
        .stage("classify")
        .unwrap()
        .errors
        .iter()
        .map(|(kind, name)| (kind.as_str(), name.as_str()))
        .collect();
    assert_eq!(names, [("schema", "WRONG"), ("timeout", "B")]);
    assert_eq!(pipeline.errors.len(), 2);
    let model = pipeline.param("model").unwrap();
    assert_eq!(model.default, json!("inputs/m.ifc"));
    assert_eq!(
        model.file.as_ref().unwrap().base.as_deref(),
        Some("project:")
    );
}

#[test]
fn problems_are_data_too() {
    let files = project().with(
        "stages/2_batch.toml",
        "[step]\ncopy = \"x\"\ntimeout = 60\n[outputs]\ny = \"outputs/y.txt\"\n",
    );
    let problems = files.load().unwrap_err();
    let expected = json!([
        { "file": "stages/2_batch.toml", "line": 2, "column": 8, "message": "`x` is neither an input nor the `out` of an earlier step",
          "span": [14, 17], "label": "unknown name", "help": "declare it: [inputs] and below it x = \"path\"" },
        { "file": "stages/2_batch.toml", "line": 3, "column": 11, "message": "`timeout` must be a duration with a unit, such as \"60s\" or \"10m\"",
          "span": [28, 30], "label": "this is an integer", "help": "write the unit too: timeout = \"60s\"" },
        { "file": "stages/3_classify.toml", "line": 2, "column": 8,
          "message": "no stage before `classify` writes anything that `intermediate/batches/batch_*.json` matches",
          "span": [20, 55], "label": "no stage writes this", "help": "files that people provide belong in `inputs/`" },
    ]);
    assert_eq!(problems.to_json(), expected);
    assert!(
        problems
            .to_string()
            .starts_with("stages/2_batch.toml:2:8: `x` is neither an input"),
        "{problems}"
    );
}

#[test]
fn a_call_has_its_method_written_down() {
    let text = |more: &str| {
        format!(
            "[step]\nhttp = \"http://a/\"\n{more}\n[outputs]\nparsed = {{ path = \"intermediate/parsed.json\", schema = false }}\n"
        )
    };
    let call = |more: &str| {
        let stage = stage(&project().with("stages/1_parse.toml", &text(more)), "1");
        let StepKind::Http(call) = stage.steps[0].kind.clone() else {
            panic!("{stage:?}")
        };
        let sent = call.sent_file().map(str::to_owned);
        let step = stage.parts["step"].clone();
        (call.method.clone(), sent, step)
    };
    let step = |more: Value| {
        let mut step = json!({"http": "http://a/", "out": "parsed"});
        step.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([step])
    };
    assert_eq!(
        call(""),
        ("GET".to_owned(), None, step(json!({"method": "GET"})))
    );
    assert_eq!(call("method = \"GET\""), call(""));
    let (method, sent, _) = call("body = '.params | .model'");
    assert_eq!((method.as_str(), sent), ("POST", None));
    let (method, sent, _) = call("body = ' $params '\nmethod = \"PATCH\"");
    assert_eq!(
        (method.as_str(), sent.as_deref()),
        ("PATCH", Some("params"))
    );
}
