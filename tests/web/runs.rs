//! Runs that are started on a page: after the plan, exactly the plan, and stopped with the server.

use super::server::Ui;
use crate::support::{Project, pipe};
use milepost_engine::ops::plan::{PlanDetails, plan_with};
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::{Silent, StopFlag, run};

/// The value of a hidden field of a page.
pub fn hidden<'a>(page: &'a str, name: &str) -> &'a str {
    let start = format!("name=\"{name}\" value=\"");
    page.split(&start)
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
}

#[test]
fn a_run_does_the_plan_that_was_shown() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    let shown = ui.get("plan").body;
    assert!(shown.contains("Run exactly this"), "{shown}");
    let plan = hidden(&shown, "plan");
    assert!(plan.starts_with("sha256:"), "{plan}");

    // Between the plan and the button, an input appears: the new plan is shown, and nothing runs.
    project.write("workspace/inputs/person_zoe.json", r#"{"name": "Zoe"}"#);
    let refused = ui.post("run", &[("plan", plan)]);
    assert_eq!(refused.status, 200);
    assert!(
        refused
            .body
            .contains("The plan has changed since it was shown."),
        "{}",
        refused.body
    );
    assert!(project.records().is_empty());

    let started = ui.post("run", &[("plan", hidden(&refused.body, "plan"))]);
    assert_eq!(
        (started.status, started.header("location")),
        (303, Some(format!("{}/", ui.root).as_str()))
    );
    ui.wait_for("", "complete.");
    assert!(project.read("workspace/outputs/page.txt").contains("Zoe"));
    let records = project.records();
    let command = &records[0]["data"]["command"];
    assert_eq!(command, "milepost run (page)");
    assert!(ui.get("plan").body.contains("There is nothing to run."));
}

#[test]
fn a_plan_of_what_never_ran_is_one_of_its_content() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    let shown = ui.get("plan").body;
    // Neither changes a number of the plan: a file of the first stage, and a program of a later one.
    project.write("workspace/inputs/person_1.json", r#"{"name": "Eve"}"#);
    let refused = ui.post("run", &[("plan", hidden(&shown, "plan"))]).body;
    assert!(refused.contains("The plan has changed"), "{refused}");
    project.edit("stages/2_join.toml", "\" \"", "\", \"");
    let again = ui.post("run", &[("plan", hidden(&refused, "plan"))]).body;
    assert!(again.contains("The plan has changed"), "{again}");
    assert!(project.records().is_empty());
    assert_eq!(
        ui.post("run", &[("plan", hidden(&again, "plan"))]).status,
        303
    );
    ui.wait_for("", "complete.");
}

#[test]
fn without_the_plan_nothing_runs() {
    let project = Project::letters();
    let ui = Ui::start(&project);
    for fields in [
        &[][..],
        &[("plan", "")],
        &[("plan", "0000")],
        &[("force", "1")],
    ] {
        let reply = ui.post("run", fields);
        assert_eq!(reply.status, 200);
        assert!(
            reply.body.contains("The plan has changed"),
            "{}",
            reply.body
        );
    }
    assert_eq!(ui.post("run", &[("target", "nothing")]).status, 400);
    assert_eq!(ui.post("stop", &[]).status, 400);
    assert!(project.records().is_empty());
}

#[test]
fn a_run_ends_with_its_server() {
    let project = Project::new(&[("milepost.toml", "name = \"slow\"\n")]);
    let gate = project.at("gate");
    pipe(&gate);
    // The program waits for a writer of the pipe, and none comes.
    let stage = format!(
        "[step]\ncommand = [\"sh\", \"-c\", 'cat \"$0\" > \"$1\"', \"{}\", \"{{{{ paths.out }}}}\"]\n\n[outputs]\nout = {{ path = \"outputs/out.txt\" }}\n",
        gate.display()
    );
    project.write("stages/1_wait.toml", stage);
    let ui = Ui::start(&project);
    let shown = ui.get("plan").body;
    ui.post("run", &[("plan", hidden(&shown, "plan"))]);
    ui.wait_for("", ">wait</a>, started <time");
    let second = ui.post("run", &[("plan", hidden(&ui.get("plan").body, "plan"))]);
    assert_ne!(second.status, 303, "one run at a time");
    assert_eq!(ui.end(), Some(0));
    let records = project.records();
    assert_eq!(records.last().unwrap()["data"]["status"], "interrupted");
}

#[test]
fn a_change_between_the_button_and_the_lock_is_noticed() {
    let project = Project::letters();
    assert_eq!(project.run(&[]).code, 0);
    let before = project.records().len();
    let options = project.wanted();
    let mut request = project.request();
    let plan = || plan_with(&project.request(), &options, PlanDetails::WITH_FACTS).unwrap();
    request.shown = Some(plan().digest());
    let run = |request: &Request| run(request, &options, &mut Silent, &StopFlag::new());
    project.write("workspace/inputs/person_1.json", r#"{"name": "Eve"}"#);
    let refused = run(&request).unwrap_err().to_string();
    assert_eq!(
        refused,
        "nothing was run: it has changed since it was shown"
    );
    assert_eq!(project.records().len(), before);
    request.shown = Some(plan().digest());
    run(&request).unwrap();
    assert!(project.read("workspace/outputs/page.txt").contains("Eve"));
}
