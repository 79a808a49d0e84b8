//! Stages whose jobs ask agents: only where they declare it, within one budget, and each call counts once.

use super::pbs::Pbs;
use super::{for_each_kill, wait_until};
use crate::agents::pipeline::{Served, answered, calls, made, speller, words};
use crate::support::Project;
use milepost_core::model::call::Spent;
use milepost_core::model::money::NanoUsd;
use milepost_store::store::layout::Layout;
use std::collections::BTreeSet;

pub(super) const API: [&str; 2] = ["--agent", "speller=api"];

/// The agents' project, with a scheduler whose jobs set the key. Only jobs of a stage that declares `executor` ask.
pub(super) fn project(served: &Served, pbs: &Pbs, size: u64, more: &str) -> Project {
    let project = speller(served.port, "well");
    let executor = pbs.executor("batches_per_job = 1\nsetup = [\"export KEY=right\"]\n");
    let toml = project.read("milepost.toml");
    let toml = toml.replace("size = 4", &format!("size = {size}"));
    project.write("milepost.toml", format!("{toml}\n{executor}\n{more}"));
    project
}

/// Declares the executor of the stage that asks.
pub(super) fn ask_in_jobs(project: &Project) {
    let ask = project.read("stages/2_ask.toml");
    project.write(
        "stages/2_ask.toml",
        format!("executor = \"command\"\n{ask}"),
    );
}

/// Returns a project whose second stage asks in jobs of one batch each.
pub(super) fn asking(served: &Served, pbs: &Pbs) -> Project {
    let project = project(served, pbs, 1, "");
    ask_in_jobs(&project);
    project
}

/// Adds a step that waits for the file `open` with the first batch, and then runs commands.
pub(super) fn hold_first(project: &Project, then: &str) {
    let open = project.at("open").display().to_string();
    let held = format!("until [ $key != batch_1 ] || [ -e {open} ]; do sleep 0.05; done;");
    add_step(project, &format!("{held} {then}"));
}

/// Returns the questions and outcomes of all calls in the journal, in order of their sizes.
pub(super) fn sorted_calls(project: &Project) -> Vec<(u64, String)> {
    let mut calls = calls(project);
    calls.sort();
    calls
}

/// Returns the logs of calls in which the journal has calls.
fn logs(project: &Project) -> BTreeSet<Option<String>> {
    let records = project.records();
    let called = records.iter().filter(|record| record["kind"] == "called");
    called
        .map(|record| record["data"]["log"].as_str().map(str::to_owned))
        .collect()
}

/// Returns what all calls of the workspace cost, by their logs.
pub(super) fn spent(project: &Project) -> Spent {
    let layout = Layout::new(project.at("workspace"));
    milepost_store::store::calls::spent(&layout, &|_| false).unwrap()
}

/// Adds a step behind the agent's that runs a line of shell, which knows `$key` of the batch.
pub(super) fn add_step(project: &Project, line: &str) {
    project.edit("stages/2_ask.toml", "[step]", "[[step]]\nout = \"words\"");
    let command = format!(
        "[\"sh\", \"-c\", '''key=$1; {line} echo $key >\"$2\"''', \"mark\", \"{{{{ batch.stem }}}}\", \"{{{{ paths.mark }}}}\"]"
    );
    let mark = "mark = { path = \"intermediate/marks/{{ batch.stem }}.txt\", schema = false }";
    project.edit(
        "stages/2_ask.toml",
        "[outputs]",
        &format!("[[step]]\nout = \"mark\"\ncommand = {command}\n[outputs]\n{mark}"),
    );
}

/// Lets the jobs of the stage wait for the file `open` of the project, after they have asked.
pub(super) fn wait_in_jobs(project: &Project) {
    let open = project.at("open").display().to_string();
    add_step(
        project,
        &format!("until [ -e {open} ]; do sleep 0.05; done;"),
    );
}

/// Lets the first job of the stage run until it is cancelled, after it has asked.
pub(super) fn stay_once(project: &Project) {
    let once = project.at("once").display().to_string();
    let stays = format!("mkdir {once} 2>/dev/null && sleep 60;");
    add_step(project, &stays);
}

/// Kills a run when a job has asked. The job runs on.
pub(super) fn leave_a_job(project: &Project, options: &[&str]) {
    let mut runner = project.spawn(&[&["run"][..], &API, options].concat());
    let answers = || project.list(".milepost/answers").len();
    wait_until("a job has its answer", || answers() > 0);
    runner.kill().unwrap();
    runner.wait().unwrap();
}

/// Returns how many batches wait for budget, and how many questions were answered.
pub(super) fn held(project: &Project) -> (usize, u64) {
    let count = |folder: &str| project.list(folder).len();
    let waiting = count("intermediate/batches") - count("intermediate/words");
    (
        waiting,
        calls(project).iter().map(|(questions, _)| questions).sum(),
    )
}

#[test]
fn jobs_of_a_stage_that_declares_them_ask_agents_and_make_what_a_local_run_makes() {
    let Some(pbs) = Pbs::start(3) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 4, "");
    // Neither the option nor the default of a run makes the jobs of this stage spend money.
    let ran =
        project.run_unplanned(&[&API[..], &["--executor", "command", "--until", "ask"]].concat());
    assert_eq!(
        (ran.code, logs(&project)),
        (0, [None].into()),
        "{}",
        ran.output
    );
    assert_eq!(
        pbs.submissions().len(),
        1,
        "only the stage `split` has jobs"
    );
    let project = self::project(&served, &pbs, 4, "");
    ask_in_jobs(&project);
    let ran = project.run(&API);
    assert_eq!(ran.code, 0, "{}", ran.output);
    ran.says("ask submitted 2 batches in 2 jobs with `command`");
    assert_eq!(made(&project), words(10));
    assert_eq!(sorted_calls(&project), answered(&[1, 4]));
    let records = project.records();
    let run = records.last().unwrap()["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let logs = logs(&project);
    assert_eq!(logs.len(), 2, "{logs:?}");
    for log in logs.iter().flatten() {
        assert!(log.starts_with(&format!("{run}-")), "{log}");
        assert!(project.exists(&format!("workspace/.milepost/calls/{log}/000001.request")));
    }
    assert!(!project.exists("workspace/.milepost/jobs"));
    // What is known of the calls is what is known of local ones.
    let (code, verified) = project.milepost(&["verify", "--deep"]);
    assert_eq!(code, 0, "{verified}");
    let (_, why) = project.milepost(&["why", "ask/batch_1"]);
    assert!(
        why.contains("command job ") && !why.contains("kept"),
        "{why}"
    );
    // Answers are kept: nothing is asked again, here or there.
    for executor in ["local", "command"] {
        let again = project
            .run_unplanned(&[&API[..], &["--force", "ask", "--executor", executor]].concat());
        assert_eq!(again.code, 0, "{}", again.output);
    }
    assert_eq!(sorted_calls(&project), answered(&[1, 4]));
    let fresh = project.run_unplanned(&[&API[..], &["--force", "ask", "--fresh"]].concat());
    assert_eq!(fresh.code, 0, "{}", fresh.output);
    assert_eq!(sorted_calls(&project), answered(&[1, 1, 4, 4]));
    assert_eq!(made(&project), words(10));
}

#[test]
fn all_jobs_together_stay_within_the_budget() {
    let Some(pbs) = Pbs::start(3) else { return };
    let served = Served::new("well");
    let policy = "\n[policy]\non_failure = \"continue\"\n";
    let started = |more: &str| {
        let project = project(&served, &pbs, 1, more);
        ask_in_jobs(&project);
        let ask = project.read("stages/2_ask.toml");
        project.write("stages/2_ask.toml", ask + policy);
        project
    };
    // Five batches of one question each, and three calls.
    let limited = started("[limits]\ncalls = 3\n");
    let ran = limited.run_unplanned(&API);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says("this workspace has made all of its 3 calls: raise `calls` under [limits]");
    assert_eq!((held(&limited), spent(&limited).calls), ((2, 3), 3));
    // What is left is too little for five shares at a time, and enough for fewer.
    let project = started("");
    let ran = project.run_unplanned(&[&API[..], &["--budget-usd", "0.04"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(held(&project), (0, 5));
    assert!(spent(&project).cost < NanoUsd(40_000_000));
    // A call may cost 0.0153 dollars.
    let poor = started("[limits]\nusd = 0.01\n");
    let ran = poor.run_unplanned(&API);
    assert_eq!(ran.code, 3, "{}", ran.output);
    ran.says(
        "but only $0.0100 of the $0.0100 for this workspace are left: raise `usd` under [limits]",
    );
    assert_eq!((held(&poor), spent(&poor)), ((5, 0), Spent::default()));
}

#[test]
fn a_job_that_runs_twice_spends_its_share_once_and_each_call_counts_once() {
    let Some(pbs) = Pbs::start(3) else { return };
    for fault in ["twice", "node"] {
        let served = Served::new("well");
        let project = project(&served, &pbs, 4, "[limits]\ncalls = 4\n");
        ask_in_jobs(&project);
        add_step(&project, &pbs.fault("batch_1", fault));
        let ran = project.run_unplanned(&API);
        assert_eq!(ran.code, 0, "{fault}: {}", ran.output);
        assert_eq!(made(&project), words(10), "{fault}");
        // The answer of the first attempt is kept.
        assert_eq!(sorted_calls(&project), answered(&[1, 4]), "{fault}");
        assert_eq!(spent(&project).calls, 2, "{fault}");
        let (code, report) = project.milepost(&["verify", "--deep"]);
        assert_eq!(code, 0, "{fault}: {report}");
    }
}

#[test]
fn a_run_that_is_killed_costs_no_call() {
    for_each_kill(4, 2500, |moment| {
        let Some(pbs) = Pbs::start(2) else { return };
        let served = Served::new("well");
        let limits = "[limits]\ncalls = 5\n";
        let project = project(&served, &pbs, 1, limits);
        ask_in_jobs(&project);
        let mut runner = project.spawn(&[&["run"][..], &API].concat());
        std::thread::sleep(moment);
        runner.kill().unwrap();
        runner.wait().unwrap();
        let ran = project.run_unplanned(&API);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(made(&project), words(10));
        let calls = milepost_store::store::calls::read(&project.at("workspace/.milepost/calls"));
        // A process whose share was taken back may have recorded a call that it did not send.
        let sent = calls.unwrap().into_iter().filter(|call| {
            let heard = call.heard.as_ref();
            heard.is_none_or(|heard| heard.outcome != "cancelled")
        });
        let sent: Vec<_> = sent.collect();
        assert_eq!(sent.len(), 5, "{sent:?}");
        let (code, report) = project.milepost(&["verify", "--deep"]);
        assert_eq!(code, 0, "{report}");
    });
}

#[test]
fn jobs_have_equal_parts_of_the_limits_of_an_agent() {
    let Some(pbs) = Pbs::start(5) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    let limited = "[agents.api]\nconcurrency = 2";
    project.edit("milepost.toml", "[agents.api]", limited);
    // The scheduler is not told how many jobs may run at once.
    project.edit("milepost.toml", "{{ at_once }}", "99");
    let ran = project.run_unplanned(&API);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let submitted = pbs.submissions();
    let jobs = submitted.iter().map(|line| line.split(' ').next().unwrap());
    let jobs: Vec<u64> = jobs.map(|jobs| jobs.parse().unwrap()).collect();
    assert_eq!((jobs[0], jobs.iter().sum()), (2, 5), "{submitted:?}");
    assert!(jobs.iter().all(|&jobs| jobs <= 2), "{submitted:?}");
}

#[test]
fn a_job_of_an_earlier_run_that_has_all_of_a_limit_delays_the_others_and_no_more() {
    let Some(pbs) = Pbs::start(5) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    let limited = "[agents.api]\nconcurrency = 4";
    project.edit("milepost.toml", "[agents.api]", limited);
    wait_in_jobs(&project);
    let split = project.run_unplanned(&["--until", "split"]);
    assert_eq!(split.code, 0, "{}", split.output);
    leave_a_job(&project, &["--limit", "1"]);
    project.write("open", "");
    let ran = project.run_unplanned(&API);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(made(&project), words(10));
    assert_eq!(pbs.submissions(), ["1 1 0", "4 4 0"]);
}

#[test]
fn a_job_that_starts_again_costs_its_batches_no_attempt() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    project.edit(
        "milepost.toml",
        "batches_per_job = 1",
        "batches_per_job = 5",
    );
    let open = project.at("open").display().to_string();
    let waits = format!("[ $key != batch_3 ] || until [ -e {open} ]; do sleep 0.05; done;");
    let fault = pbs.fault("batch_2", "twice");
    add_step(&project, &format!("{fault} {waits}"));
    let runner = project.spawn(&[&["run"][..], &API].concat());
    let begun = || {
        let files = project.list(".milepost/jobs");
        let logs = files
            .iter()
            .filter(|file| file.rsplit('.').next() == Some("jsonl"));
        let texts = logs.map(|log| project.read(&format!("workspace/.milepost/jobs/{log}")));
        let mut begun: Vec<usize> = texts
            .map(|text| text.matches("\"begun\"").count())
            .collect();
        begun.sort_unstable();
        begun
    };
    // The process without a share begins none.
    wait_until("another job runs the third batch", || begun() == [0, 2, 2]);
    project.write("open", "");
    let ran = runner.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    assert_eq!(made(&project), words(10));
    // The four that were left share one job again.
    let jobs = pbs.submissions();
    let jobs = jobs.iter().map(|line| line.split(' ').next().unwrap());
    assert_eq!(jobs.collect::<Vec<_>>(), ["1", "1"]);
    let records = project.records();
    let failed = records.iter().filter(|one| one["kind"] == "attempt_failed");
    assert_eq!(failed.count(), 0);
    assert_eq!(sorted_calls(&project), answered(&[1; 5]));
}

#[test]
fn the_journal_lists_a_call_once_if_the_next_run_takes_its_job_over() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    project.edit(
        "milepost.toml",
        "batches_per_job = 1",
        "batches_per_job = 5",
    );
    let folder = project.path().display().to_string();
    let fails = format!("[ $key = batch_1 ] && mkdir {folder}/once 2>/dev/null && exit 1;");
    let waits = format!("[ $key = batch_1 ] || until [ -e {folder}/open ]; do sleep 0.05; done;");
    add_step(&project, &format!("{fails} {waits}"));
    let ask = project.read("stages/2_ask.toml");
    let policy = "\n[policy]\non_failure = \"continue\"\n";
    project.write("stages/2_ask.toml", ask + policy);
    let mut runner = project.spawn(&[&["run"][..], &API].concat());
    let journal = "workspace/.milepost/journal";
    let has_failed = || {
        let files = project.list(".milepost/journal");
        let mut texts = files
            .iter()
            .map(|file| project.read(&format!("{journal}/{file}")));
        texts.any(|text| text.contains("batch_failed"))
    };
    wait_until("the journal has the failure", has_failed);
    runner.kill().unwrap();
    runner.wait().unwrap();
    project.write("open", "");
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(sorted_calls(&project), answered(&[1; 5]));
    assert_eq!(spent(&project).calls, 5);
}

#[test]
fn only_jobs_that_ask_an_agent_get_its_key() {
    let Some(pbs) = Pbs::start(3) else { return };
    let served = Served::new("well");
    let mut project = project(&served, &pbs, 4, "");
    ask_in_jobs(&project);
    let keys = project.at("keys").display().to_string();
    let noted = format!("submit = \"echo key $KEY >>{keys}; ");
    project.edit("milepost.toml", "submit = \"", &noted);
    let all = [&API[..], &["--executor", "command"]].concat();
    let ran = project.run_unplanned(&all);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(project.read("keys"), "key\nkey right\nkey\n");
    // The run needs none if the jobs have it.
    project.unset("KEY");
    project.remove("keys");
    let ran = project.run_unplanned(&[&all[..], &["--force", "ask", "--fresh"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(project.read("keys"), "key\n");
    assert_eq!(sorted_calls(&project), answered(&[1, 1, 4, 4]));
    // The server decides whether it needs one.
    project.edit("milepost.toml", "export KEY=right", "unset KEY");
    let ran = project.run_unplanned(&[&all[..], &["--force", "ask", "--fresh"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("HTTP 401: invalid x-api-key");
}

#[test]
fn what_jobs_cannot_ask_is_refused_before_they_are_submitted() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let person = "[agents.person]\nexternal = true\n";
    let project = project(&served, &pbs, 4, person);
    ask_in_jobs(&project);
    let ask = project.read("stages/2_ask.toml");
    let other = ask.replace("\"speller\"", "\"person\"");
    project.write("stages/2_ask.toml", other);
    let (code, output) = project.milepost(&["plan"]);
    assert_eq!(code, 4, "{output}");
    assert!(
        output.contains("the stage cannot run on `command`")
            && output.contains("an external agent submits its answers to the machine of the run"),
        "{output}"
    );
    project.write("stages/2_ask.toml", ask);
    let batched = ("base_url = \"http", "mode = \"batch\"\nbase_url = \"http");
    let toml = project.read("milepost.toml");
    let changed = toml.replacen(batched.0, batched.1, 1);
    project.write("milepost.toml", &changed);
    let why = "jobs cannot ask agent `api`: a provider batch collects the requests of one machine; remove `executor` from stage `ask`, or run with --executor local";
    let ran = project.run_unplanned(&API);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says(why);
    let (_, plan) = project.milepost(&[&["plan"][..], &API].concat());
    assert!(plan.contains(why) && !plan.contains("submits"), "{plan}");
    assert_eq!((pbs.submissions().len(), spent(&project).calls), (0, 0));
    // A node without the key says so, and asks nothing.
    let unset = toml.replace("export KEY=right", "unset KEY");
    project.write("milepost.toml", unset);
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, spent(&project).calls), (1, 0), "{}", ran.output);
    ran.says("`KEY` is not set on this node");
    ran.says("help: export it in `setup` under [executor.command], from a file that only you can read, or let the scheduler pass it on from the run");
    // Without paid calls the stage stays here.
    let free = ["--agent", "speller=default", "--until-paid"];
    let ran = project.run_unplanned(&free);
    let submitted = pbs.submissions().len();
    assert_eq!((ran.code, submitted), (0, 1), "{}", ran.output);
    // A stage that is up to date asks nothing.
    project.write("milepost.toml", toml);
    let local = [&API[..], &["--executor", "local"]].concat();
    let ran = project.run_unplanned(&local);
    assert_eq!(ran.code, 0, "{}", ran.output);
    project.write("milepost.toml", changed);
    let ran = project.run_unplanned(&API);
    assert_eq!(ran.code, 0, "{}", ran.output);
}
