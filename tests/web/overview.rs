//! The overview: what runs now, and what it says before anything has run.

use super::server::Ui;
use crate::support::{Project, pipe};
use std::process::Stdio;

#[test]
fn the_running_batches_are_listed() {
    let project = Project::new(&[("milepost.toml", "name = \"slow\"\n")]);
    let gate = project.at("gate");
    pipe(&gate);
    // Each program waits for a writer of the pipe.
    let stage = format!(
        "[each.page]\npath = \"inputs/*.txt\"\n\n[step]\ncommand = [\"sh\", \"-c\", 'cat \"$0\" > \"$1\"', \"{}\", \"{{{{ paths.out }}}}\"]\n\n[outputs]\nout = \"outputs/{{{{ page.stem }}}}.txt\"\n",
        gate.display()
    );
    project.write("stages/1_wait.toml", stage);
    for number in 1..=22 {
        project.write(&format!("workspace/inputs/page_{number:02}.txt"), "x");
    }
    let ui = Ui::start(&project);
    assert!(ui.get("").body.contains("Idle. No batch has run yet."));
    let mut run = project
        .command(&["run", "--jobs", "22"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let shown = ui.wait_for("", "And 2 more.");
    let batch = "batch=page_01\">wait/page_01</a>, started <time";
    assert!(shown.contains(batch), "{shown}");
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    run.wait().unwrap();
    assert!(!ui.get("").body.contains(">Running</h2>"));
}

#[test]
fn a_run_that_only_waits_for_approval_is_not_denied() {
    let project = Project::letters();
    project.edit(
        "stages/1_copy.toml",
        "[step]",
        "[approve]\nby = \"reviewer\"\n\n[step]",
    );
    assert_eq!(project.run(&[]).code, 3);
    let ui = Ui::start(&project);
    let shown = ui.wait_for("", "waiting for approval by reviewer");
    assert!(!shown.contains("No run yet."), "{shown}");
}
