//! Hostile submissions among good ones: the good ones are graded, and what is wrong with the others is said.

use crate::hostile::files::hostile_file;
use crate::support::Project;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const HOSTILE: [&str; 4] = ["firstself", "nextself", "namescycle", "deepq60"];

#[test]
fn good_submissions_are_graded_and_hostile_ones_are_named() {
    let mut project = Project::copy_of("examples/grading");
    project.env("SOURCE_DATE_EPOCH", "1772323200");
    let good = |id: &str| json!({"workspace": id, "request": format!("submissions/{id}.json"), "submission": format!("submissions/{id}.pdf")});
    let mut list = vec![good("tern")];
    for name in HOSTILE {
        let (request, document) = (
            format!("hostile/{name}.json"),
            format!("hostile/{name}.pdf"),
        );
        project.write(
            &request,
            format!(r#"{{"pdf_path": "inputs/{name}.pdf", "self_grade": 64}}"#),
        );
        project.write(&document, hostile_file(&format!("{name}.pdf")));
        list.push(json!({"workspace": name, "request": request, "submission": document}));
    }
    list.push(good("shiftly"));
    project.write("list.json", Value::from(list).to_string());

    let output = project
        .command(&["run", "--workspaces", "list.json", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |list: &str| -> BTreeSet<String> {
        let rows = summary[list].as_array().unwrap();
        let name = |row: &Value| row["workspace"].as_str().unwrap().to_owned();
        rows.iter().map(name).collect()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let graded: BTreeSet<String> = set(&["tern", "shiftly", "firstself", "nextself", "namescycle"]);
    assert_eq!(names("grades"), graded);
    assert_eq!(names("not_graded"), set(&["deepq60"]));
    let error = summary["not_graded"][0]["error"].as_str().unwrap();
    assert!(
        error.starts_with(
            "All parsers failed: parse: `inputs/deepq60.pdf` exceeds a limit of the reader"
        ),
        "{error}"
    );
    assert!(!project.exists("workspaces/deepq60/outputs"));

    // Those whose text is there are graded by it, and what is wrong with them is said.
    let ring = "the bookmarks link to themselves: each was read once";
    for (name, warning) in [
        ("firstself", ring),
        ("nextself", ring),
        ("namescycle", ring),
    ] {
        let document = project.json(&format!(
            "workspaces/{name}/intermediate/parsed_document.json"
        ));
        let warnings = document["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        assert!(
            warnings[0].as_str().unwrap().starts_with(warning),
            "{name}: {warnings:?}"
        );
    }
    for name in ["tern", "shiftly"] {
        let document = project.json(&format!(
            "workspaces/{name}/intermediate/parsed_document.json"
        ));
        assert_eq!(document["warnings"], json!([]), "{name}");
    }
}
