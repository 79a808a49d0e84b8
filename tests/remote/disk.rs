//! Disks that run full in the middle of a stage: that of one node, and the one that all share.

use super::pbs::Pbs;
use super::{Cluster, check_local_outputs, check_outputs, project, runs};
use crate::situations::mounted::Mounted;
use crate::support::Project;
use crate::support::required::{Missing, require};
use std::os::unix::fs::PermissionsExt as _;

const STAGE: &str = "executor = \"command\"";

/// Runs the program with a small disk of its own at the folder for temporary files, if it is on node n1 of Slurm, or else is job 1.
const NODE: &str = r#"#!/bin/sh
folder=$(dirname "$0")
[ "${SLURMD_NODENAME:-$5}" = 1 ] || [ "$SLURMD_NODENAME" = n1 ] || exec "$folder/milepost" "$@"
exec unshare --mount sh -c 'folder=$1; shift; mount -t tmpfs -o size=48k tmpfs "$folder/local" && exec "$folder/milepost" "$@"' sh "$folder" "$@"
"#;

/// What each batch does for itself in the folder for temporary files.
const WRITES: &str = "head -c 20000 /dev/zero >\"$TMPDIR/$key\" || exit 9;";

/// A project whose batches write temporary files, and leave them there.
fn writes_temporary_files(pbs: &Pbs, count: usize) -> Project {
    let executor = pbs.executor("batches_per_job = 3\n");
    on_nodes(project(count, &executor, STAGE, WRITES))
}

/// Gives the nodes of a project folders for temporary files.
fn on_nodes(mut project: Project) -> Project {
    let folder = project.path().display().to_string();
    let local = format!("{folder}/local");
    std::fs::create_dir(&local).unwrap();
    project.write("node", NODE);
    std::fs::set_permissions(project.at("node"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = project.command(&[]).get_program().to_owned();
    std::os::unix::fs::symlink(program, project.at("milepost")).unwrap();
    let declared = project.read("milepost.toml");
    project.write(
        "milepost.toml",
        format!(
            "{declared}program = \"{folder}/node\"\nsetup = [\"export TMPDIR={local}\"]\n[env]\nTMPDIR = \"\"\n"
        ),
    );
    let step = "attempts = 1\n";
    project.edit(
        "stages/1_up.toml",
        step,
        &format!("{step}env = [\"TMPDIR\"]\n"),
    );
    project.env("TMPDIR", &local);
    project
}

/// Checks that the nodes can mount a file system.
fn can_mount() -> Result<Mounted, Missing> {
    let folder = tempfile::tempdir().unwrap();
    Mounted::at(folder.path(), &["-t", "tmpfs", "-o", "size=48k", "tmpfs"])
}

#[test]
fn a_batch_on_a_node_with_a_full_disk_runs_elsewhere() {
    let pbs = require!(Pbs::start(3));
    drop(require!(can_mount()));
    let project = writes_temporary_files(&pbs, 9);
    let local = project.at("local").display().to_string();
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let full =
        format!("failed, trying again in a new job: NODE: no space left on {local} of node ");
    assert_eq!(ran.output.matches(&full).count(), 1, "{}", ran.output);
    check_outputs(&project, 9);
    let twice = runs(&project).into_values().filter(|&times| times == 2);
    assert_eq!(twice.count(), 1, "{:?}", runs(&project));
    assert_eq!(runs(&project).into_values().sum::<usize>(), 10);
    assert_eq!(pbs.submissions().len(), 2);
    check_local_outputs(&project);
}

#[test]
fn batches_on_a_node_of_slurm_with_a_full_disk_run_on_others() {
    let cluster = require!(Cluster::start(4));
    drop(require!(can_mount()));
    let project = cluster.project(24, "batches_per_job = 3", "", WRITES);
    let project = on_nodes(project);
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let full = "NODE: no space left on ";
    assert!(ran.output.contains(full), "{}", ran.output);
    check_outputs(&project, 24);
    assert!(
        runs(&project).into_values().all(|times| times <= 2),
        "{}",
        ran.output
    );
    check_local_outputs(&project);
    assert!(!project.exists("workspace/.milepost/jobs"));
}

#[test]
fn a_batch_that_finds_every_disk_full_fails_and_says_so() {
    let pbs = require!(Pbs::start(2));
    drop(require!(can_mount()));
    let project = writes_temporary_files(&pbs, 3);
    // Each job is on the node with the small disk, which is full from the start.
    let elsewhere = project.read("node");
    let elsewhere = elsewhere.lines().nth(2).unwrap();
    project.edit("node", elsewhere, "");
    project.edit("node", "size=48k", "size=16k");
    let ran = project.run_unplanned(&["-k"]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    for key in ["w1", "w2", "w3"] {
        let failed = format!("up/{key} failed: NODE: no space left on ");
        assert!(ran.output.contains(&failed), "{}", ran.output);
        assert_eq!(runs(&project)[key], 4, "{}", ran.output);
    }
    assert_eq!(project.list("up"), Vec::<String>::new());
}

#[test]
fn a_shared_disk_that_runs_full_costs_no_finished_batch() {
    let pbs = require!(Pbs::start(1));
    // w2 fills the disk, once.
    let fills = "if [ $key = w2 ] && mkdir $folder/filled 2>/dev/null; then head -c 9000000 /dev/zero >$folder/workspace/ballast; fi;";
    let project = project(4, &pbs.executor("batches_per_job = 4\n"), STAGE, fills);
    let inputs: Vec<(String, String)> = (1..=4)
        .map(|number| format!("workspace/inputs/w{number}.txt"))
        .map(|path| (project.read(&path), path))
        .collect();
    let small = ["-t", "tmpfs", "-o", "size=4m", "tmpfs"];
    let _disk = require!(Mounted::at(&project.at("workspace"), &small));
    for (text, path) in inputs {
        project.write(&path, text);
    }
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(ran.output.contains("no space left on "), "{}", ran.output);
    pbs.wait_for_end();
    project.remove("workspace/ballast");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_outputs(&project, 4);
    assert_eq!(runs(&project)["w1"], 1, "{}", ran.output);
    let (code, verified) = project.milepost(&["verify", "--deep"]);
    assert_eq!(code, 0, "{verified}");
}
