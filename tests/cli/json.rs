//! Everything that is printed with `--json` is of its published schema.

use crate::support::Project;
use milepost_engine::ops::schema::{schema, schemas};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn what_is_printed_as_json_is_of_its_schema() {
    let project = Project::letters();
    let mut seen = BTreeSet::new();
    let mut told = |arguments: &str, name: &'static str| {
        let said = project.output(&format!("{arguments} --json"));
        let value: Value = serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{arguments}: {error}: {}{}", said.out, said.err));
        let validator = jsonschema::validator_for(&schema(name).unwrap()).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{arguments}: {value:#}");
        seen.insert(name);
    };
    told("init minimal made", "init");
    told("plan", "plan");
    told("run --limit 1", "run");
    told("status", "status");
    told("params", "params");
    told("run", "run");
    told("run", "run");
    project.write("workspace/inputs/person_2.json", "{}");
    told("run -k", "run");
    told("status", "status");
    told("plan join", "plan");
    told("plan --show-request join", "request");
    told("run join", "run");
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bo\"}");
    told("run", "run");
    project.remove("workspace/stage_1_complete.json");
    told("plan", "plan");
    told("run", "run");
    project.write("workspace/outputs/page.txt", "by hand");
    told("plan", "plan");
    told("run", "run");
    told("status", "status");
    told("why join", "why");
    told("why copy/person_1", "why");
    told("why outputs/page.txt", "why");
    told("trace outputs/page.txt", "trace");
    told("verify", "verify");
    told("accept join --why better", "accept");
    project.edit(
        "stages/1_copy.toml",
        "[outputs]",
        "[approve]\nby = \"reviewer\"\n\n[outputs]",
    );
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bea\"}");
    told("plan", "plan");
    told("why copy", "why");
    told("status", "status");
    told("run copy", "run");
    told("approve copy --why seen", "approve");
    told("approve copy --why seen", "approve");
    told("run copy", "run");
    told("approve copy --why seen", "approve");
    told("verify", "verify");
    told("log", "log");
    told("graph", "graph");
    told("diff", "diff");
    told("clean", "clean");
    told("gc", "gc");
    project.write("all.json", r#"[{"workspace": "a"}, {"workspace": 2}]"#);
    told("run --workspaces all.json", "manifest");
    told("run --workspaces all.json -n", "manifest");
    told("run nope", "error");
    project.edit("stages/2_join.toml", "jq =", "jp =");
    told("run", "error");
    // What else is published is of files.
    let files = [
        "checkpoint",
        "prices",
        "progress",
        "project",
        "record",
        "rules",
        "stage",
        "workbook",
        "workspace",
    ];
    let printed: BTreeSet<&str> = schemas()
        .into_keys()
        .filter(|name| !files.contains(name))
        .collect();
    assert_eq!(seen, printed);
}
