//! The timeline: the last run, all runs, and parts of them.

use super::server::Ui;
use crate::support::Project;

#[test]
fn a_run_is_drawn_and_can_be_zoomed() {
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
    let link = |page: &str, name: &str| {
        let before = page.split(&format!("data-zoom=\"{name}\"")).next().unwrap();
        let href = before.rsplit("href=\"").next().unwrap();
        let href = href.split('"').next().unwrap().replace("&amp;", "&");
        href.strip_prefix(&format!("{}/", ui.root))
            .unwrap()
            .to_owned()
    };
    // Far after the run, nothing is drawn, and the whole run is one link away.
    let mut page = last.clone();
    for _ in 0..4 {
        page = ui.get(&link(&page, "Later")).body;
    }
    assert_eq!(page.matches("/batch?stage=").count(), 0, "{page}");
    assert_eq!(lanes(&ui.get(&link(&page, "Whole run")).body), (2, 1));
    // The shortest part cannot be zoomed into another direction.
    let shortest = ui.get("timeline?from=1795593184995&to=1795593184996").body;
    let zoomed = link(&shortest, "Zoom in");
    assert!(
        zoomed.ends_with("&from=1795593184990&to=1795593185000"),
        "{zoomed}"
    );
    // What is no time or no run is not an error.
    for odd in [
        "timeline?from=9223372036854775807&to=-9223372036854775808",
        "timeline?run=nothing&from=x",
    ] {
        assert_eq!(ui.get(odd).status, 200, "{odd}");
    }
}
