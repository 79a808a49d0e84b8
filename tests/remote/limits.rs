//! How many jobs run at once, and what the commands of a scheduler print.

use super::pbs::Pbs;
use super::{check_outputs, project, runs};
use crate::support::Project;
use crate::support::required::require;

const STAGE: &str = "executor = \"command\"";

#[test]
fn jobs_that_come_later_do_not_exceed_the_limit_either() {
    let pbs = require!(Pbs::start(4));
    let executor = pbs.executor("batches_per_job = 1\nmax_jobs = 1\n");
    // The node of w1 is lost. While w2 runs, the next job of w1 must wait, however many slots are free.
    let watch = format!(
        "if [ $key = w2 ]; then for try in $(seq 40); do [ $(wc -l <{}) = 1 ] || break; sleep 0.05; done; \
         for try in $(seq 20); do [ -e $folder/again ] && break; sleep 0.05; done; touch $folder/w2done; fi; \
         if [ $key = w1 ] && [ -e $folder/once ]; then touch $folder/again; \
         [ -e $folder/w2done ] || touch $folder/exceeded; fi; touch $folder/once;",
        pbs.list()
    );
    let extra = format!("{watch} {}", pbs.fault("w1", "node"));
    let project = project(3, &executor, STAGE, &extra);
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_outputs(&project, 3);
    assert_eq!(runs(&project)["w1"], 2);
    assert!(!project.exists("exceeded"), "{}", ran.output);
    assert_eq!(pbs.submissions(), ["3 1 0", "1 1 0"]);
}

#[test]
fn jobs_beyond_the_size_of_an_array_follow_in_further_ones() {
    let pbs = require!(Pbs::start(4));
    let executor = pbs.executor("batches_per_job = 1\nmax_array_size = 4\nmax_jobs = 2\n");
    let project = project(6, &executor, STAGE, "");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    check_outputs(&project, 6);
    let submissions = pbs.submissions();
    assert_eq!(submissions[0], "4 2 0");
    let sizes = submissions.iter().map(|line| &line[..1]);
    let jobs: usize = sizes.map(|size| size.parse::<usize>().unwrap()).sum();
    assert_eq!(jobs, 6, "{submissions:?}");
    for line in &submissions[1..] {
        // An array that comes while others run has only jobs that may run at once with them.
        assert!(
            matches!(line.as_str(), "1 1 0" | "2 2 0"),
            "{submissions:?}"
        );
    }
}

#[test]
fn warnings_of_a_scheduler_are_no_ids_and_no_states() {
    let pbs = require!(Pbs::start(2));
    let project = project(2, &pbs.executor(""), STAGE, "");
    for (key, end) in [("submit", "{{ memory_mb }}"), ("poll", "{{ ids }}")] {
        let warned = format!("{end}; echo '{key}: your quota is low' >&2\"");
        project.edit("milepost.toml", &format!("{end}\""), &warned);
    }
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert!(
        ran.output.contains("in 1 job with `command`: 0.pbs\n"),
        "{}",
        ran.output
    );
    assert!(!ran.output.contains("quota"), "{}", ran.output);
    assert_eq!(pbs.submissions().len(), 1);
    check_outputs(&project, 2);
}

/// A project whose commands of Slurm are these scripts, where `$folder` is its folder.
fn with_commands(executor: &str, count: usize, sbatch: &str, squeue: &str) -> Project {
    use std::os::unix::fs::PermissionsExt as _;
    let mut project = project(count, executor, "executor = \"slurm\"", "");
    let folder = project.path().display().to_string();
    let commands = [
        ("sbatch", sbatch),
        ("squeue", squeue),
        ("sacct", "echo closed today >&2; exit 1"),
        ("scancel", "exit 1"),
    ];
    for (name, script) in commands {
        let program = format!("bin/{name}");
        project.write(&program, format!("#!/bin/sh\nfolder={folder}\n{script}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.at(&program), mode).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    project.env("PATH", &format!("{folder}/bin:{path}"));
    project
}

#[test]
fn a_refusal_for_good_is_not_tried_again() {
    let executor = "[executor.slurm]\npoll_interval = \"50ms\"\npartition = \"long\"\n";
    for (says, tries, shown) in [
        (
            "Invalid partition name specified",
            1,
            "Invalid partition name specified: check `partition` under [executor.slurm]; `sinfo` lists them",
        ),
        (
            "Unable to create job record, try again",
            4,
            "Unable to create job record, try again",
        ),
    ] {
        let failed = format!("sbatch: error: Batch job submission failed: {says}");
        let sbatch = format!("echo x >>$folder/tried; echo '{failed}' >&2; exit 1");
        let project = with_commands(executor, 1, &sbatch, "exit 0");
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        let shown =
            format!("`sbatch` failed: sbatch: error: Batch job submission failed: {shown}\n");
        assert!(ran.output.contains(&shown), "{}", ran.output);
        assert_eq!(
            project.read("tried").lines().count(),
            tries,
            "{}",
            ran.output
        );
        assert_eq!(
            ran.output.contains("trying again"),
            tries > 1,
            "{}",
            ran.output
        );
    }
}

#[test]
fn keys_do_not_reach_the_disks_of_slurm() {
    let executor = "[executor.slurm]\npoll_interval = \"50ms\"\n[env]\nSITE_TOKEN = \"\"\n";
    // What plays Slurm's commands notes its environment, and refuses.
    let refuses = "echo closed today >&2; exit 1";
    let notes = format!("env >$folder/environment; {refuses}");
    let mut project = with_commands(executor, 1, &notes, refuses);
    project.env("OPENAI_API_KEY", "a key of an agent");
    project.env("NOTES", "sk-ant-0123456789abcdef0123456789abcdef");
    project.env("SITE_TOKEN", "declared, so needed");
    project.env("SLURM_CONF", "/nowhere");
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(
        ran.output.contains("`sbatch` failed: closed today"),
        "{}",
        ran.output
    );
    let environment = project.read("environment");
    let mut names: Vec<&str> = (environment.lines())
        .filter_map(|line| line.split('=').next())
        .filter(|name| ["OPENAI_API_KEY", "NOTES", "SITE_TOKEN", "SLURM_CONF"].contains(name))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["SITE_TOKEN", "SLURM_CONF"], "{environment}");
}
