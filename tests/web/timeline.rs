//! The timeline: the last run and all runs.

use super::server::Ui;
use crate::support::Project;

#[test]
fn the_last_run_or_all_runs_are_drawn() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    assert!(
        ui.get("timeline")
            .body
            .contains("No batch has run here yet.")
    );
    assert_eq!(project.milepost(&["run"]).0, 0);
    project.write("workspace/inputs/person_2.json", r#"{"name": "Bob"}"#);
    assert_eq!(project.milepost(&["run"]).0, 0);

    let last = ui.get("timeline").body;
    let lanes = |page: &str| {
        let runs = page.matches("<option value=").count() - 1;
        (runs, page.matches("/batch?stage=copy").count())
    };
    // Two runs to select; the last one ran one batch of `copy`.
    assert_eq!(lanes(&last), (2, 1), "{last}");
    assert_eq!(lanes(&ui.get("timeline?run=all").body).0, 2);
    // What a person accepts is no run to select, and in the report only a decision.
    project.write("workspace/outputs/page.txt", "by hand");
    let accepted = project.milepost(&["accept", "join", "--why", "checked"]);
    assert_eq!(accepted.0, 0, "{}", accepted.1);
    assert_eq!(lanes(&ui.get("timeline").body), (2, 1));
    assert_eq!(project.milepost(&["report"]).0, 0);
    let report = project.read("report.html");
    assert_eq!(
        (
            report.matches("<td>accepted</td>").count(),
            report.contains("checked")
        ),
        (1, true)
    );
    // A run that does not exist is no error.
    assert_eq!(ui.get("timeline?run=nothing").status, 200);
}
