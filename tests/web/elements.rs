//! The page of elements: search by text, and the way of a value.

use super::server::Ui;
use crate::support::{MAIN_PIPELINE, Project};

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
