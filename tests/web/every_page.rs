//! The report and every page that links lead to, over all systems, with agents that cost and fail: templates name only data that is there.

use super::server::Ui;
use crate::agents::pipeline::{Served, speller};
use crate::external::client::Site;
use crate::support::Project;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most pages that are opened of one kind: one path with the same parameters.
const PAGES: usize = 3;

/// Pages that may have no link to them.
const SEEDS: [&str; 9] = [
    "",
    "timeline",
    "timeline?run=all",
    "stages",
    "calls",
    "elements?what=a",
    "review",
    "approvals",
    "plan",
];

/// Writes a report, opens every page, and returns the report.
#[track_caller]
pub fn check(project: &Project, workspace: &str) -> String {
    let arguments = ["report", "--workspace", workspace];
    let (code, text) = project.milepost(&arguments);
    assert_eq!((code, text.as_str()), (0, "written  report.html\n"));
    let ui = Ui::with(project, &arguments[1..]);
    let mut opened: BTreeMap<String, usize> = BTreeMap::new();
    let mut known: BTreeSet<String> = SEEDS.map(str::to_owned).into();
    let mut next: VecDeque<String> = SEEDS.map(str::to_owned).into();
    while let Some(page) = next.pop_front() {
        let page_of_kind = opened.entry(kind(&page)).or_default();
        *page_of_kind += 1;
        if *page_of_kind > PAGES {
            continue;
        }
        let reply = ui.get(&page);
        assert_eq!(reply.status, 200, "{page}: {}", reply.body);
        let links = reply.body.split("href=\"").skip(1);
        for link in links.filter_map(|rest| rest.split('"').next()) {
            let link = link.replace("&amp;", "&");
            let Some(link) = link.strip_prefix(&format!("{}/", ui.root)) else {
                continue;
            };
            let link = link.split('#').next().unwrap().to_owned();
            if known.insert(link.clone()) {
                next.push_back(link);
            }
        }
    }
    assert_eq!(ui.get("nowhere").status, 404);
    project.read("report.html")
}

/// Returns the path of a page with the names of its parameters.
fn kind(page: &str) -> String {
    let names = page.split(['?', '&']);
    let names = names.map(|part| part.split('=').next().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

/// Returns the rows of a section's tables as texts.
fn rows(report: &str, section: &str) -> Vec<String> {
    let start = report.find(&format!("<h2 id=\"{section}\"")).unwrap();
    let section = report[start..].split("</section>").next().unwrap();
    let rows = section.split("<tr><td>").skip(1);
    let row = |row: &str| {
        let row = row.split("</tr>").next().unwrap();
        let cells = row.replace("</td><td class=\"number\">", "|");
        cells.replace("</td><td>", "|").replace("</td>", "")
    };
    rows.map(row).collect()
}

#[test]
fn workspaces_of_the_five_systems() {
    for (system, workspace) in [
        ("building-model", "workspace"),
        ("grading", "workspace"),
        ("study-plan", "workspace"),
        ("diagrams", "workspace"),
        ("prompt-tests", "workspace"),
        ("letters", "workspaces/accepted"),
        ("letters", "workspaces/failed"),
    ] {
        let fixture = format!("tests/fixtures/workspaces/{system}");
        check(&Project::copy_with_results(&fixture), workspace);
    }
}

#[test]
fn agents_with_and_without_prices() {
    let served = Served::new("well");
    for (agent, cost) in [("api", "$0.0008"), ("chat", "$0.000"), ("tool", "unknown")] {
        let project = speller(served.port, "well");
        let agents = format!("speller={agent}");
        assert_eq!(project.run_unplanned(&["--agent", &agents]).code, 0);
        let report = check(&project, "workspace");
        let day = project.records()[0]["timestamp"].as_str().unwrap()[..10].to_owned();
        let [row] = &rows(&report, "cost")[..] else {
            panic!("{report}");
        };
        let cells: Vec<&str> = row.split('|').collect();
        assert_eq!((cells[0], cells[1], cells[3]), (&*day, agent, "2"), "{row}");
        assert!(cells[7].starts_with(cost), "{row}");
    }
}

#[test]
fn an_agent_that_fails() {
    let served = Served::new("well");
    for (agent, key, answering) in [("tool", "right", "leaky:x"), ("api", "wrong", "well")] {
        let mut project = speller(served.port, answering);
        project.env("KEY", key);
        let agents = format!("speller={agent}");
        assert_eq!(project.run_unplanned(&["--agent", &agents]).code, 1);
        let report = check(&project, "workspace");
        assert!(report.contains("<td>ask/batch_1</td>"), "{report}");
    }
}

#[test]
fn an_external_agent_and_the_main_pipeline() {
    let site = Site::new();
    site.run(&[]);
    check(&site, "workspace");
    let leased = site.lease("somebody");
    site.answer(&leased);
    assert!(site.submit(&leased.lease).accepted);
    let report = check(&site, "workspace");
    assert_eq!(
        rows(&report, "cost"),
        ["2026-11-21|outside|somebody|1|0|0|0|$0.0000"]
    );
}
