//! The page of elements: search by text, and the way of a value.

use super::server::Ui;
use crate::support::{MAIN_PIPELINE, Project};
use std::os::unix::fs::symlink;

#[test]
fn a_text_finds_elements_and_a_key_its_way() {
    let project = Project::new(&[]);
    project.take(&MAIN_PIPELINE);
    project.take(&["workspace/inputs"]);
    project.run_in_process();
    let ui = Ui::start(&project);

    let found = ui.get("elements?what=streifenFUNDAMENT").body;
    assert!(found.contains("Elements with this text"), "{found}");
    let link = found.split("/elements?what=").nth(1).unwrap();
    let key = link.split('"').next().unwrap();

    let way = ui.get(&format!("elements?what={key}&field=volume_m3")).body;
    let titles: Vec<&str> = way
        .split("<h3>")
        .skip(1)
        .map(|part| part.split("</h3>").next().unwrap())
        .collect();
    assert_eq!(
        titles,
        [
            "line of the input",
            "element as it was read",
            "answer of classifier",
            "record that the agent was asked about",
            "batch",
            "record",
            "record",
        ]
    );
    assert!(
        way.contains("inputs/sample.ifc:") && way.contains("IFCFOOTING("),
        "{way}"
    );

    let none = ui
        .get("elements?what=%3Cscript%3Ealert(1)%3C%2Fscript%3E")
        .body;
    assert!(
        none.contains("&lt;script&gt;alert(1)") && !none.contains("<script>"),
        "{none}"
    );
    assert!(none.contains("role=\"alert\""), "{none}");
}

#[test]
fn a_file_that_the_viewer_refuses_has_no_way() {
    let project = Project::letters();
    assert_eq!(project.run(&[]).code, 0);
    project.write("creds.json", r#"{"secret": "hunter2"}"#);
    project.write("workspace/notes.json", r#"{"secret": "hunter2"}"#);
    symlink(
        "../.milepost/workspace.json",
        project.at("workspace/inputs/person_own.json"),
    )
    .unwrap();
    let ui = Ui::start(&project);
    for what in [
        "project:creds.json&pointer=/secret",
        "creds.json&pointer=/secret",
        "notes.json&pointer=/secret",
        "notes.json&element=hunter2",
        "notes.json&cell=A!A1",
        "notes.json",
        ".milepost/workspace.json&pointer=/id",
        "project:workspace/.milepost/workspace.json&pointer=/id",
        "inputs/person_own.json&pointer=/id",
    ] {
        let refused = ui.get(&format!("elements?what={what}"));
        assert_eq!(refused.status, 400, "{what}: {}", refused.body);
        assert!(refused.body.contains(" is not shown: "), "{}", refused.body);
        assert!(!refused.body.contains("hunter2"), "{}", refused.body);
    }
    let shown = ui.get("elements?what=inputs/person_1.json&pointer=/name");
    assert!(
        shown.status == 200 && shown.body.contains("Ann"),
        "{}",
        shown.body
    );
}
