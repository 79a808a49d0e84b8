//! Files that a node does not see yet, as on a network file system with caches.

use super::pbs::Pbs;
use super::{check_outputs, project, runs};
use crate::support::Project;
use crate::support::required::require;

const STAGE: &str = "executor = \"command\"";

/// Hides a file from the node before its program starts. It comes back after a while, or never.
const HIDE: &str = r#"
cd "$1" || exit 1
mv "$2" "$2.hidden"
[ "$3" = never ] || { sleep 0.5; mv "$2.hidden" "$2"; } >/dev/null 2>&1 &
"#;

/// A project whose only job does not see a file at first, named from the folder of its submission.
fn hides(pbs: &Pbs, file: &str, until: &str, visible: &str) -> Project {
    let hide = format!(
        "setup = ['sh \"$(dirname \"$0\")/../../../../hide.sh\" \"$(dirname \"$0\")\" {file} {until}']\n"
    );
    let executor = pbs.executor(&hide).replace("visible = \"1s\"", visible);
    let project = project(2, &executor, STAGE, "");
    project.write("hide.sh", HIDE);
    project
}

#[test]
fn a_node_waits_for_the_files_of_its_job() {
    let pbs = require!(Pbs::start(1));
    for file in ["job.json", "tasks/0.json", "../../../../stages/1_up.toml"] {
        let project = hides(&pbs, file, "later", "visible = \"30s\"");
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 0, "{file}: {}", ran.output);
        check_outputs(&project, 2);
        assert!(runs(&project).values().all(|&times| times == 1), "{file}");
    }
}

#[test]
fn a_node_that_never_sees_the_files_of_its_job_says_so() {
    let pbs = require!(Pbs::start(1));
    for (file, why) in [
        (
            "job.json",
            "job.json (waited 0.3 s for the files of the run",
        ),
        (
            "tasks/0.json",
            "tasks/0.json (waited 0.3 s for the files of the run",
        ),
        (
            "../../../../stages/1_up.toml",
            "error: the project has no stages",
        ),
    ] {
        let project = hides(&pbs, file, "never", "visible = \"300ms\"");
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 1, "{file}: {}", ran.output);
        assert!(ran.output.contains(why), "{file}: {}", ran.output);
        assert!(runs(&project).is_empty(), "{file}");
    }
}
