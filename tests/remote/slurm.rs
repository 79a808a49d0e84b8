//! Batches as jobs of a real Slurm, on a cluster of several nodes that the tests start on this machine. Where Slurm is not installed,
//! the tests are skipped.

use super::{check_kill, check_outputs, for_each_kill, project, runs, wait_until};
use crate::support::Project;
use crate::support::required::{Missing, require};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One cluster at a time: the machine is small.
static ONE: Mutex<()> = Mutex::new(());

/// A running cluster. It ends with this.
pub struct Cluster {
    root: tempfile::TempDir,
    port: u16,
    nodes: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Cluster {
    /// Starts a cluster of nodes with two processors each.
    pub fn start(nodes: usize) -> Result<Self, Missing> {
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let is_root = rustix::process::getuid().is_root();
        let has = |program: &str| {
            let folders = [
                "/usr/sbin",
                "/usr/bin",
                "/sbin",
                "/usr/local/sbin",
                "/usr/local/bin",
            ];
            folders
                .iter()
                .any(|folder| Path::new(folder).join(program).exists())
        };
        let missing: Vec<&str> = ["slurmctld", "slurmd", "sbatch", "munged", "setpriv"]
            .into_iter()
            .filter(|program| !has(program))
            .collect();
        if !missing.is_empty() || !is_root {
            return Err(Missing(if missing.is_empty() {
                "only root can start a cluster of Slurm".to_owned()
            } else {
                format!(
                    "there is no {}: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge",
                    missing.join(", ")
                )
            }));
        }
        let root = tempfile::tempdir().unwrap();
        let mut cluster = Self {
            root,
            port: 20000 + (std::process::id() % 4000) as u16 * 8,
            nodes,
            _alone: alone,
        };
        let started = cluster.script("up").output().unwrap();
        if !started.status.success() {
            cluster.nodes = 0;
            return Err(Missing(format!(
                "the cluster of Slurm did not start: {}",
                String::from_utf8_lossy(&started.stderr)
            )));
        }
        Ok(cluster)
    }

    fn script(&self, action: &str) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/cluster.sh");
        let mut command = Command::new("bash");
        command.arg(script).arg(action).arg(self.root.path());
        command
            .arg(self.port.to_string())
            .arg(self.nodes.max(1).to_string());
        // A daemon must not keep a pipe of the test open.
        command.stdin(Stdio::null());
        command
    }

    /// Returns the path of its configuration, the value of `SLURM_CONF`.
    pub fn conf(&self) -> String {
        self.root
            .path()
            .join("etc/slurm.conf")
            .display()
            .to_string()
    }

    /// A project whose stage runs as jobs of this cluster.
    pub fn project(&self, count: usize, slurm: &str, stage: &str, extra: &str) -> Project {
        let executor =
            format!("[executor.slurm]\npoll_interval = \"500ms\"\nvisible = \"2s\"\n{slurm}\n");
        let stage = format!("executor = \"slurm\"\n{stage}");
        let mut project = project(count, &executor, &stage, extra);
        project.env("SLURM_CONF", &self.conf());
        project
    }

    /// Runs a command of Slurm, and returns what it prints.
    fn slurm(&self, words: &[&str]) -> String {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("SLURM_CONF", self.conf());
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Ends a node without a word: its daemon, the daemons of its jobs, and everything else that runs on it.
    fn lose_node(&self, node: &str) {
        let pid = std::fs::read_to_string(self.root.path().join(format!("run/slurmd.{node}.pid")));
        let mut daemons = vec![pid.unwrap().trim().parse::<i32>().unwrap()];
        let mut doomed = Vec::new();
        let conf = format!("SLURM_CONF={}", self.conf());
        let of_node = format!("SLURMD_NODENAME={node}");
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
                continue;
            };
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let environ = read("environ");
            let has = |wanted: &str| {
                let mut variables = environ.split(|&byte| byte == 0);
                variables.any(|variable| variable == wanted.as_bytes())
            };
            if has(&conf) && has(&of_node) {
                doomed.push(pid);
                // The daemon of a job is its parent, and knows nothing of the node.
                let stat = String::from_utf8_lossy(&read("stat")).into_owned();
                let parent = stat
                    .rsplit(')')
                    .next()
                    .and_then(|rest| rest.split_whitespace().nth(1));
                let parent = parent.unwrap_or_default();
                let name = std::fs::read_to_string(format!("/proc/{parent}/comm"));
                if name.is_ok_and(|name| name.trim() == "slurmstepd") {
                    daemons.push(parent.parse().unwrap());
                }
            }
        }
        // A daemon that saw its job die would report it.
        for pid in daemons.into_iter().chain(doomed) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self
            .script("down")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

#[test]
fn batches_run_as_jobs_of_slurm() {
    let cluster = require!(Cluster::start(2));
    let slurm = "batches_per_job = 3\nmemory = \"100 MB\"\ntime = \"5min\"";
    let project = cluster.project(10, slurm, "", "");
    let ran = project.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert!(
        ran.output
            .contains("up submitted 10 batches in 4 jobs with `slurm`: 1"),
        "{}",
        ran.output
    );
    check_outputs(&project, 10);
    assert!(runs(&project).values().all(|&times| times == 1));
    let (_, why) = project.milepost(&["why", "up/w1"]);
    assert!(why.contains("slurm job 1_0 on "), "{why}");
    assert!(!project.exists("workspace/.milepost/jobs"));
    assert_eq!(project.run(&[]).tried(), Vec::<String>::new());
}

#[test]
fn slurm_names_limits_and_cancelled_jobs() {
    let cluster = require!(Cluster::start(1));
    // More memory than its job has, and then twice as much.
    let hungry = "if [ $key = w2 ]; then python3 -c 'import time; x = bytearray(150 << 20); time.sleep(4)'; fi;";
    let stage = "[resources]\nmemory = \"100 MB\"\nretry = { memory = \"x3\" }\n";
    let project = cluster.project(3, "batches_per_job = 1", stage, hungry);
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert!(
        ran.output
            .contains("up/w2 attempt 1 failed, trying again in a new job: MEMORY"),
        "{}",
        ran.output
    );
    check_outputs(&project, 3);
    assert_eq!(runs(&project)["w2"], 2);
    // A job that somebody cancels.
    let project = cluster.project(2, "batches_per_job = 1", "", "sleep 30;");
    let mut runner = project.spawn(&["run", "-k"]);
    wait_until("the jobs", || runs(&project).len() == 2);
    cluster.slurm(&["scancel", "--me"]);
    assert_eq!(runner.wait().unwrap().code(), Some(1));
    let (_, status) = project.milepost(&["status"]);
    assert!(status.contains("JOB_CANCELLED"), "{status}");
}

/// Takes minutes: Slurm starts a job again two minutes after its node came back.
#[test]
#[ignore = "takes three minutes"]
fn a_job_of_slurm_that_runs_twice_is_published_once() {
    let cluster = require!(Cluster::start(2));
    let project = cluster.project(4, "batches_per_job = 2", "", "sleep 3;");
    let runner = project.spawn(&["run"]);
    wait_until("a batch", || runs(&project).len() >= 2);
    // A node that is set down keeps running its jobs, and they are queued again.
    cluster.slurm(&[
        "scontrol",
        "update",
        "NodeName=n1",
        "State=DOWN",
        "Reason=test",
    ]);
    cluster.slurm(&["scontrol", "update", "NodeName=n1", "State=RESUME"]);
    let output = runner.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    check_outputs(&project, 4);
}

#[test]
fn a_runner_of_slurm_jobs_that_is_killed_finds_them_again() {
    let cluster = require!(Cluster::start(4));
    for_each_kill(3, 3000, |moment| {
        let project = cluster.project(16, "batches_per_job = 2", "", "sleep 0.2;");
        check_kill(&project, 16, moment);
    });
}

/// Takes minutes: Slurm notices a lost node after its timeout, and starts the job again two minutes later.
#[test]
#[ignore = "takes three minutes"]
fn a_lost_node_of_slurm_costs_only_what_ran_there() {
    let cluster = require!(Cluster::start(4));
    let project = cluster.project(16, "batches_per_job = 4", "", "sleep 2;");
    let runner = project.spawn(&["run"]);
    wait_until("all jobs", || runs(&project).len() >= 4);
    cluster.lose_node("n1");
    let output = runner.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    check_outputs(&project, 16);
    // Of each lost job, only the batch that ran was begun again.
    let twice = runs(&project).values().filter(|&&times| times > 1).count();
    assert!((1..=2).contains(&twice), "{:?}", runs(&project));
}
