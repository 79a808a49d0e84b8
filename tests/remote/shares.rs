//! The shares of jobs that ask agents: within one run, and those of jobs that an earlier run left.

use super::agents::{
    API, add_step, ask_in_jobs, asking, held, hold_first, leave_a_job, project, sorted_calls,
    spent, stay_once, wait_in_jobs,
};
use super::pbs::Pbs;
use super::{runs, wait_until};
use crate::agents::pipeline::{Served, answered, made, words};
use crate::support::Project;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_store::store::disk::Disk;
use milepost_store::store::jobs::Submission;
use milepost_store::store::layout::Layout;
use std::collections::BTreeMap;

/// Lets a job of the stage run five batches.
fn share_a_job(project: &Project) {
    let (one, five) = ("batches_per_job = 1", "batches_per_job = 5");
    project.edit("milepost.toml", one, five);
}

/// Adds a stage `other` that asks five further questions on the machine of the run.
fn add_other_stage(project: &Project) {
    let other = project.read("stages/2_ask.toml");
    let other = other.replace("prompts/spell.md", "prompts/other.md");
    let other = other.replace("intermediate/words", "intermediate/others");
    project.write("stages/4_other.toml", other);
    let prompt = project.read("prompts/spell.md");
    project.write("prompts/other.md", format!("Please. {prompt}"));
}

/// Runs the stage before the one that asks.
fn split(project: &Project) {
    let ran = project.run_unplanned(&["--until", "split"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
}

#[test]
fn jobs_that_run_at_once_divide_the_budget() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    project.edit(
        "milepost.toml",
        "batches_per_job",
        "max_jobs = 1\nbatches_per_job",
    );
    // Enough for two calls at a time, and for all of them one after the other.
    let ran = project.run_unplanned(&[&API[..], &["--budget-usd", "0.04"]].concat());
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(pbs.submissions(), ["1 1 0"; 5]);
}

#[test]
fn what_the_jobs_of_a_stage_do_not_spend_is_there_for_the_next_stage() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    for fails in ["", "[ $key = batch_2 ] && exit 1;"] {
        let project = project(&served, &pbs, 1, "[limits]\ncalls = 10\n");
        add_other_stage(&project);
        ask_in_jobs(&project);
        // Its share is all that there is.
        share_a_job(&project);
        add_step(&project, fails);
        split(&project);
        let ran = project.run_unplanned(&[&API[..], &["ask", "other", "--keep-going"]].concat());
        let code = i32::from(!fails.is_empty());
        assert_eq!(ran.code, code, "{}", ran.output);
        assert_eq!(project.list("intermediate/others").len(), 5);
    }
}

#[test]
fn a_stage_that_asks_cancels_jobs_of_another_stage_and_has_what_they_did_not_spend() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    // The stage may ask no more when the next run begins.
    for asks in [true, false] {
        let project = project(&served, &pbs, 1, "[limits]\ncalls = 6\n");
        add_other_stage(&project);
        ask_in_jobs(&project);
        share_a_job(&project);
        stay_once(&project);
        split(&project);
        leave_a_job(&project, &["ask"]);
        if !asks {
            let asks = "agent = \"speller\"\nprompt = \"prompts/spell.md\"\nquestions = true\nschema = \"schemas/word.schema.json\"\nresult = '{id: $element.id, word}'";
            let ask = project.read("stages/2_ask.toml").replace(asks, "jq = '[]'");
            let ask = ask.split("[conserve]").next().unwrap().to_owned();
            project.write("stages/2_ask.toml", ask);
        }
        let ran = project.run_unplanned(&[&API[..], &["other"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(spent(&project).calls, 6);
        assert_eq!(project.list("intermediate/others").len(), 5);
        pbs.wait_for_end();
    }
}

#[test]
fn a_forced_run_has_what_jobs_of_the_earlier_one_did_not_spend() {
    let Some(pbs) = Pbs::start(2) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 1, "[limits]\ncalls = 5\n");
    ask_in_jobs(&project);
    share_a_job(&project);
    stay_once(&project);
    leave_a_job(&project, &[]);
    let ran = project.run_unplanned(&[&API[..], &["--force"]].concat());
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(spent(&project).calls, 5);
    pbs.wait_for_end();
}

#[test]
fn a_limit_that_was_raised_applies_to_the_batches_of_jobs_that_an_earlier_run_left() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 1, "[limits]\ncalls = 1\n");
    ask_in_jobs(&project);
    share_a_job(&project);
    wait_in_jobs(&project);
    leave_a_job(&project, &[]);
    project.edit("milepost.toml", "calls = 1\n", "calls = 10\n");
    project.write("open", "");
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(sorted_calls(&project), answered(&[1; 5]));
    assert_eq!(pbs.submissions().len(), 2);
}

#[test]
fn the_tokens_of_a_call_limit_the_jobs_also_if_the_run_has_no_key() {
    let served = Served::new("well");
    let Some(pbs) = Pbs::start(1) else { return };
    let mut project = project(&served, &pbs, 1, "");
    ask_in_jobs(&project);
    project.unset("KEY");
    let toml = project.read("milepost.toml");
    // A scheduler that starts no job, and an agent that needs a key.
    let list = project.at("submissions").display().to_string();
    let lines = toml.lines().map(|line| match line.split_once(" = ") {
        Some(("submit", _)) => {
            format!("submit = \"echo {{{{ jobs }}}} >>{list}; : {{{{ script }}}}; echo 1\"")
        }
        Some(("poll", _)) => "poll = \"echo {{ ids }} 0 queued\"".to_owned(),
        Some(("cancel", _)) => "cancel = \": {{ id }}\"".to_owned(),
        _ => line.to_owned(),
    });
    let toml = lines.collect::<Vec<_>>().join("\n");
    let base = format!("base_url = \"http://127.0.0.1:{}\"\n", served.port);
    let toml = toml.replacen(&base, "tokens_per_minute = 5000\n", 1);
    project.write("milepost.toml", toml);
    let mut runner = project.spawn(&[&["run"][..], &API].concat());
    wait_until("jobs are submitted", || project.exists("submissions"));
    runner.kill().unwrap();
    runner.wait().unwrap();
    // Five parts suffice for the 1,000 tokens of an answer, but not for the question too.
    assert_eq!(project.read("submissions"), "4\n");
}

#[test]
fn jobs_that_a_killed_run_left_keep_their_shares() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 1, "[limits]\ncalls = 5\n");
    ask_in_jobs(&project);
    let mut runner = project.spawn(&[&["run"][..], &API].concat());
    let words_of = || project.list("intermediate/words").len();
    wait_until("a batch is published", || words_of() > 0);
    runner.kill().unwrap();
    runner.wait().unwrap();
    let ran = project.run_unplanned(&API);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(spent(&project).calls, 5);
    assert_eq!(made(&project), words(10));
    assert_eq!(pbs.submissions().len(), 1);
}

#[test]
fn a_run_that_asks_by_itself_ends_the_jobs_that_an_earlier_one_left() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 1, "[limits]\ncalls = 5\n");
    ask_in_jobs(&project);
    // The first job asks, and goes on until it is cancelled.
    add_step(&project, "case $PWD in */jobs/*) sleep 60;; esac;");
    let mut runner = project.spawn(&[&["run"][..], &API].concat());
    let answers = || project.list(".milepost/answers").len();
    wait_until("a job has its answer", || answers() > 0);
    runner.kill().unwrap();
    runner.wait().unwrap();
    let ran = project.run_unplanned(&[&API[..], &["--executor", "local"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!((made(&project), spent(&project).calls), (words(10), 5));
    assert!(!project.exists("workspace/.milepost/jobs"));
    pbs.wait_for_end();
}

#[test]
fn a_limit_that_is_new_or_lower_applies_to_jobs_of_the_earlier_run() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    for limits in ["", "[limits]\ncalls = 5\n"] {
        let project = project(&served, &pbs, 1, limits);
        ask_in_jobs(&project);
        share_a_job(&project);
        let folder = project.path().display().to_string();
        let notes = format!("echo $key >>{folder}/runs;");
        let stays = format!("[ $key = batch_2 ] && mkdir {folder}/once 2>/dev/null && sleep 60;");
        add_step(&project, &format!("{notes} {stays}"));
        let mut runner = project.spawn(&[&["run"][..], &API].concat());
        wait_until("the second batch runs", || runs(&project).len() == 2);
        runner.kill().unwrap();
        runner.wait().unwrap();
        let toml = project.read("milepost.toml").replace(limits, "");
        project.write("milepost.toml", format!("{toml}\n[limits]\ncalls = 3\n"));
        let ran = project.run_unplanned(&API);
        assert_eq!(ran.code, 3, "{}", ran.output);
        ran.says("this workspace has made all of its 3 calls: raise `calls` under [limits]");
        assert_eq!(spent(&project).calls, 3);
        assert_eq!(sorted_calls(&project), answered(&[1; 3]));
        // The first batch was finished, and the second had its answer.
        let (first, second) = ("batch_1".to_owned(), "batch_2".to_owned());
        let expected = BTreeMap::from([(first, 1), (second, 2), ("batch_3".to_owned(), 1)]);
        assert_eq!(runs(&project), expected);
        pbs.wait_for_end();
    }
}

#[test]
fn jobs_of_batches_that_a_run_does_not_select_keep_their_part_of_the_limits_of_an_agent() {
    let Some(pbs) = Pbs::start(2) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    let limited = "[agents.api]\nconcurrency = 1";
    project.edit("milepost.toml", "[agents.api]", limited);
    let running = project.at("running").display().to_string();
    let first = format!("[ $key != batch_1 ] || {{ touch {running}; sleep 3; rm {running}; }};");
    add_step(&project, &format!("{first} [ ! -e {running} ] || exit 1;"));
    split(&project);
    leave_a_job(&project, &["--limit", "1"]);
    let ran = project.run_unplanned(&[&API[..], &["ask/batch_2"]].concat());
    assert_eq!((ran.code, held(&project).0), (3, 4), "{}", ran.output);
}

#[test]
fn a_run_that_fails_leaves_the_jobs_of_batches_that_it_does_not_select() {
    let Some(pbs) = Pbs::start(2) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    let open = project.at("open").display().to_string();
    hold_first(
        &project,
        &format!("[ $key != batch_2 ] || [ -e {open} ] || exit 1;"),
    );
    split(&project);
    leave_a_job(&project, &["--limit", "1"]);
    // It does not wait for the first batch.
    let ran = project.run_unplanned(&[&API[..], &["ask/batch_2"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.output);
    project.write("open", "");
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(spent(&project).calls, 5);
    assert_eq!(pbs.submissions().len(), 3);
}

#[test]
fn a_budget_that_is_much_smaller_than_an_earlier_share_is_spent() {
    let Some(pbs) = Pbs::start(2) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    hold_first(&project, "");
    split(&project);
    leave_a_job(&project, &["--limit", "1", "--budget-usd", "1"]);
    let ran = project.run_unplanned(&[&API[..], &["--budget-usd", "0.1", "ask/batch_2"]].concat());
    assert_eq!(pbs.submissions().len(), 2, "{}", ran.output);
    project.write("open", "");
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(spent(&project).calls, 5);
}

#[test]
fn a_new_limit_ends_jobs_of_batches_that_a_run_does_not_select() {
    let Some(pbs) = Pbs::start(2) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    stay_once(&project);
    split(&project);
    leave_a_job(&project, &["--limit", "1"]);
    let toml = project.read("milepost.toml");
    project.write("milepost.toml", format!("{toml}\n[limits]\ncalls = 5\n"));
    let ran = project.run_unplanned(&[&API[..], &["ask/batch_2"]].concat());
    assert_eq!((ran.code, held(&project).0), (3, 4), "{}", ran.output);
    pbs.wait_for_end();
    // A later run knows that they ended.
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(spent(&project).calls, 5);
}

#[test]
fn a_limit_of_an_agent_that_is_lower_ends_jobs_of_the_earlier_run() {
    let Some(pbs) = Pbs::start(2) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    stay_once(&project);
    let of_api = |limit: u64| format!("[agents.api]\nconcurrency = {limit}");
    project.edit("milepost.toml", "[agents.api]", &of_api(4));
    split(&project);
    leave_a_job(&project, &["--limit", "1"]);
    project.edit("milepost.toml", &of_api(4), &of_api(3));
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    let jobs: Vec<String> = pbs.submissions();
    assert_eq!(jobs[..2], ["1 1 0", "3 3 0"], "{jobs:?}");
    assert_eq!(spent(&project).calls, 5);
    pbs.wait_for_end();
}

#[test]
fn jobs_keep_the_limits_that_the_run_divided() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    let once = "max_jobs = 1\nbatches_per_job = 4";
    project.edit("milepost.toml", "batches_per_job = 1", once);
    wait_in_jobs(&project);
    let runner = project.spawn(&[&["run"][..], &API].concat());
    let answers = || project.list(".milepost/answers").len();
    wait_until("a job has its answer", || answers() > 0);
    // The second job would wait for its first call for more than a day.
    let limited = "[agents.api]\ntokens_per_minute = 1";
    project.edit("milepost.toml", "[agents.api]", limited);
    project.write("open", "");
    let ran = runner.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    assert_eq!(made(&project), words(10));
}

#[test]
fn a_record_of_a_process_without_the_share_hides_no_finished_batch() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 4, "");
    ask_in_jobs(&project);
    share_a_job(&project);
    let folder = project.path().display().to_string();
    let waits = format!("until [ -e {folder}/open ]; do sleep 0.05; done;");
    add_step(&project, &format!("echo $key >>{folder}/runs; {waits}"));
    split(&project);
    let mut runner = project.spawn(&[&["run"][..], &API].concat());
    wait_until("the first batch runs", || !runs(&project).is_empty());
    runner.kill().unwrap();
    runner.wait().unwrap();
    let layout = Layout::new(project.at("workspace"));
    let submission = Submission::all(&Disk::real(), &layout).unwrap().remove(0);
    // The scheduler starts the job again while its first process lives, and the name of the second process comes first.
    let batches = ["batch_1", "batch_2", "batch_3"];
    for (place, batch) in batches.into_iter().enumerate() {
        let process = "0.-0";
        let outcome = Outcome::new(OutcomeKind::Node, "the job started again");
        let record = serde_json::json!({
            "kind": "done", "batch": batch, "took_ms": 0, "lacked": "share",
            "folder": submission.inside(&["work", process, &place.to_string()]),
            "result": {"Err": outcome},
        });
        submission.log(process).append(&record.to_string()).unwrap();
    }
    project.write("open", "");
    pbs.wait_for_end();
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert!(runs(&project).values().all(|&times| times == 1));
}

/// Returns the calls that a plan expects of the stage `ask`, and the answers that are kept.
fn planned(project: &Project, options: &[&str]) -> (u64, u64) {
    let plan = project.plan(&[&API[..], options].concat()).unwrap();
    let stages = plan["stages"].as_array().unwrap();
    let ask = stages.iter().find(|stage| stage["stage"] == "ask").unwrap();
    let asks = &ask["asks"];
    let number = |key: &str| asks[key].as_u64().unwrap();
    (number("calls"), number("kept"))
}

#[test]
fn a_plan_knows_the_answers_of_jobs_of_a_forced_run() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    share_a_job(&project);
    split(&project);
    wait_in_jobs(&project);
    leave_a_job(&project, &["--force", "--fresh"]);
    assert_eq!(planned(&project, &[]), (4, 1));
}

#[test]
fn a_plan_counts_a_question_for_each_batch_that_may_ask_it_in_a_job() {
    let Some(pbs) = Pbs::start(2) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 10, "");
    split(&project);
    ask_in_jobs(&project);
    let batches = "workspace/intermediate/batches";
    let batch = project.read(&format!("{batches}/batch_1.json"));
    for copy in 1..=2 {
        project.write(&format!("workspace/inputs/batch_{copy}.json"), &batch);
    }
    project.edit("stages/2_ask.toml", "intermediate/batches", "inputs");
    assert_eq!(planned(&project, &["ask"]), (2, 0));
    assert_eq!(planned(&project, &["ask", "--executor", "local"]), (1, 0));
}

#[test]
fn gc_leaves_the_answers_that_jobs_write() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = asking(&served, &pbs);
    share_a_job(&project);
    split(&project);
    let ran = project.run_unplanned(&[&API[..], &["--limit", "1"]].concat());
    assert_eq!(ran.code, 3, "{}", ran.output);
    let open = project.at("open").display().to_string();
    let waits = format!("[ $key = batch_1 ] || until [ -e {open} ]; do sleep 0.05; done;");
    add_step(&project, &waits);
    let mut runner = project.spawn(&[&["run"][..], &API].concat());
    let answers = || project.list(".milepost/answers").len();
    wait_until("a job has its answer", || answers() > 1);
    runner.kill().unwrap();
    runner.wait().unwrap();
    let (code, printed) = project.milepost(&["gc", "--yes"]);
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("answers of the workspace: jobs that ask agents may write them now"),
        "{printed}"
    );
    project.write("open", "");
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    let ran = project.run_unplanned(&[&API[..], &["--force", "ask"]].concat());
    assert_eq!((ran.code, spent(&project).calls), (0, 5), "{}", ran.output);
}

#[test]
fn a_fresh_run_takes_no_job_over_that_counts_kept_answers() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 1, "[limits]\ncalls = 6\n");
    ask_in_jobs(&project);
    stay_once(&project);
    leave_a_job(&project, &[]);
    let ran = project.run_unplanned(&[&API[..], &["--fresh"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!((made(&project), spent(&project).calls), (words(10), 6));
    pbs.wait_for_end();
}

#[test]
fn a_stage_that_asks_leaves_the_jobs_of_others_without_common_limits() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 1, "");
    add_other_stage(&project);
    ask_in_jobs(&project);
    wait_in_jobs(&project);
    split(&project);
    leave_a_job(&project, &["ask"]);
    let ran = project.run_unplanned(&[&API[..], &["other"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.output);
    project.write("open", "");
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(pbs.submissions().len(), 1);
}

#[test]
fn a_stage_takes_over_what_jobs_finished_before_another_stage_cancelled_them() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 1, "[limits]\ncalls = 10\n");
    add_other_stage(&project);
    ask_in_jobs(&project);
    share_a_job(&project);
    let folder = project.path().display().to_string();
    let notes = format!("echo $key >>{folder}/runs;");
    let stays = format!("[ $key = batch_2 ] && mkdir {folder}/once 2>/dev/null && sleep 60;");
    add_step(&project, &format!("{notes} {stays}"));
    split(&project);
    let mut runner = project.spawn(&[&["run"][..], &API, &["ask"]].concat());
    wait_until("the second batch runs", || runs(&project).len() == 2);
    runner.kill().unwrap();
    runner.wait().unwrap();
    let ran = project.run_unplanned(&[&API[..], &["other"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.output);
    ran.says("ask: jobs that an earlier run left are cancelled, because `other` asks agents within the same limits; finished batches are kept");
    pbs.wait_for_end();
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(spent(&project).calls, 10);
    let times = (1..=5).map(|batch| (format!("batch_{batch}"), 1 + usize::from(batch == 2)));
    assert_eq!(runs(&project), times.collect());
}

#[test]
fn a_stage_whose_agents_are_free_leaves_the_jobs_of_others() {
    let Some(pbs) = Pbs::start(1) else { return };
    let served = Served::new("well");
    let project = project(&served, &pbs, 4, "[agents.free]\njq = '{word: .name}'\n");
    let ask = project.read("stages/2_ask.toml");
    ask_in_jobs(&project);
    wait_in_jobs(&project);
    leave_a_job(&project, &[]);
    let free = ask.replace("\"speller\"", "\"free\"");
    let free = free.replace("intermediate/words", "intermediate/others");
    project.write("stages/4_free.toml", free);
    let ran = project.run_unplanned(&["free"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    project.write("open", "");
    let ran = project.run_unplanned(&API);
    assert_eq!((ran.code, made(&project)), (0, words(10)), "{}", ran.output);
    assert_eq!(pbs.submissions().len(), 1);
}
