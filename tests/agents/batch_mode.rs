//! An agent in batch mode: one batch at the provider for what attempts ask at once, its id on disk before the first poll, and no
//! request sent twice whatever happens in between.

use super::pipeline::{Served, answered, calls, made, speller, things, words};
use crate::crash::sweep::{in_parallel, step};
use crate::support::{Project, exit_code, printed};
use milepost_core::model::call::Spent;
use milepost_store::store::layout::Layout;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

const AGENTS: [&str; 2] = ["api", "chat"];

/// Sets how the server's batches go.
pub fn set(served: &Served, query: &str) {
    get(served, &format!("/control/set?{query}"));
}

/// What the server says of its batches.
fn log(served: &Served) -> Value {
    get(served, "/control/log")
}

fn get(served: &Served, path: &str) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// How many requests each batch had.
fn sizes(log: &Value) -> Vec<usize> {
    let batches = log["batches"].as_array().unwrap().iter();
    batches
        .map(|batch| batch["requests"].as_array().unwrap().len())
        .collect()
}

/// How many requests each batch of the server had.
pub fn sizes_of(served: &Served) -> Vec<usize> {
    sizes(&log(served))
}

/// The project, its models in batch mode.
pub fn batched(mut project: Project) -> Project {
    project.edit(
        "milepost.toml",
        "max_tokens = 1000",
        "max_tokens = 1000\nmode = \"batch\"",
    );
    project.env("MILEPOST_PACE", "10");
    project
}

/// A project of 20 names, four a request, whose model answers in batches.
fn fixture(served: &Served) -> Project {
    let project = batched(speller(served.port, "well"));
    project.write("workspace/inputs/things.json", things(40).to_string());
    let workspace = project.at("workspace");
    set(served, &format!("watch={}", workspace.display()));
    project
}

fn with(agent: &str) -> [String; 2] {
    ["--agent".to_owned(), format!("speller={agent}")]
}

fn start(project: &Project, agent: &str) -> Child {
    let with = with(agent);
    let mut command = project.command(&["run", &with[0], &with[1]]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until the server's log is so.
fn until(served: &Served, what: impl Fn(&Value) -> bool) {
    for _ in 0..2_000 {
        if what(&log(served)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come: {:#}", log(served));
}

fn spent(project: &Project) -> Spent {
    let layout = Layout::new(project.at("workspace"));
    milepost_store::store::calls::spent(&layout, "").unwrap()
}

fn under_way(project: &Project) -> u64 {
    let layout = Layout::new(project.at("workspace"));
    milepost_store::store::batches::standing(&layout).unwrap().0
}

#[test]
fn what_is_asked_at_once_is_one_batch_at_half_the_price() {
    for agent in AGENTS {
        let served = Served::new("well");
        let project = fixture(&served);
        let with = with(agent);
        let with = [with[0].as_str(), with[1].as_str()];
        let ran = project.run(&with);
        assert_eq!(ran.code, 0, "{}", ran.output);
        ran.says("ask submitted 5 requests as provider batch `batch_1`");
        ran.says("ask provider batch `batch_1` ended: 5 of 5 answered");
        assert_eq!(made(&project), words(40), "{agent}");
        assert_eq!(calls(&project), answered(&[4; 5]), "{agent}");
        let told = log(&served);
        assert_eq!((sizes(&told), &told["direct"]), (vec![5], &json!(0)));
        assert_eq!(told["batches"][0]["on_disk"], true);

        // Nothing is asked again; what is new is a batch.
        project.write("workspace/inputs/things.json", things(43).to_string());
        assert_eq!(project.run(&with).code, 0);
        assert_eq!(sizes(&log(&served)), [5, 1], "{agent}");

        // As each by itself, at twice the price.
        let direct = speller(served.port, "well");
        direct.write("workspace/inputs/things.json", things(43).to_string());
        assert_eq!(direct.run(&with).code, 0);
        let (batched, alone) = (spent(&project), spent(&direct));
        assert_eq!(
            (batched.calls, alone.calls, batched.unpriced),
            (6, 6, 0),
            "{agent}"
        );
        let (half, whole) = (batched.cost.0 * 2, alone.cost.0);
        assert!(half.abs_diff(whole) <= 6 + whole / 20, "{half} {whole}");
    }
}

#[test]
fn a_run_that_is_killed_submits_nothing_twice() {
    for agent in AGENTS {
        let served = Served::new("well");
        let project = fixture(&served);
        set(&served, "hold=1");
        let mut run = start(&project, agent);
        until(&served, |log| log["batches"][0]["polls"].as_u64() > Some(1));
        run.kill().unwrap();
        run.wait().unwrap();
        assert_eq!(log(&served)["batches"][0]["on_disk"], true);
        assert_eq!((under_way(&project), spent(&project).calls), (1, 5));

        set(&served, "hold=0");
        let with = with(agent);
        let ran = project.run_unplanned(&[&with[0], &with[1]]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(made(&project), words(40), "{agent}");
        assert_eq!(sizes(&log(&served)), [5], "{agent}");
        assert_eq!(calls(&project), answered(&[4; 5]), "{agent}");
        // Each call is settled once, though the run that sent it is not the one that heard.
        let stage = &project.json("workspace/stage_2_complete.json")["spent"];
        assert_eq!(serde_json::to_value(spent(&project)).unwrap(), *stage);
        assert_eq!(under_way(&project), 0);
    }
}

#[test]
fn a_batch_whose_id_never_came_is_found() {
    for agent in AGENTS {
        let served = Served::new("well");
        let project = fixture(&served);
        set(&served, "mute=1");
        let mut run = start(&project, agent);
        until(&served, |log| sizes(log) == [5]);
        run.kill().unwrap();
        run.wait().unwrap();
        set(&served, "mute=0");
        let with = with(agent);
        let ran = project.run_unplanned(&[&with[0], &with[1]]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(made(&project), words(40), "{agent}");
        let told = log(&served);
        assert_eq!(sizes(&told), [5], "{agent}");
        assert_eq!(told["batches"][0]["on_disk"], true, "{agent}");
        assert_eq!(spent(&project).calls, 5, "{agent}");
    }
}

#[test]
fn a_batch_that_is_not_to_be_found_counts_as_spent() {
    let served = Served::new("well");
    let project = fixture(&served);
    set(&served, "deaf=1");
    let mut run = start(&project, "api");
    until(&served, |log| log["unheard"] == 1);
    run.kill().unwrap();
    run.wait().unwrap();
    set(&served, "deaf=0");
    // A batch of another workspace, of as many requests, made meanwhile: the ids in its results tell that it is another.
    let other = self::fixture(&served);
    assert_eq!(other.run_unplanned(&["--agent", "speller=api"]).code, 0);
    let ran = project.run_unplanned(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(made(&project), words(40));
    assert_eq!(sizes(&log(&served)), [5, 5]);
    assert_eq!(under_way(&project), 0);
    // The five whose batch is lost count with what was reserved.
    let (all, other) = (spent(&project), spent(&other));
    assert_eq!(
        (all.calls, all.usage.output),
        (10, other.usage.output + 5 * 1000)
    );
    assert!(all.usage.input > other.usage.input + 5 * 500, "{all:?}");
    assert!(all.cost.0 > 5 * other.cost.0, "{all:?} {other:?}");
}

#[test]
fn only_what_expired_or_failed_goes_again() {
    for agent in AGENTS {
        let served = Served::new("well");
        let project = fixture(&served);
        set(&served, "ill=expired,errored");
        let with = with(agent);
        let ran = project.run(&[&with[0], &with[1]]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(made(&project), words(40), "{agent}");
        let told = log(&served);
        assert_eq!(sizes(&told), [5, 2], "{agent}");
        let asked = |batch: usize| told["batches"][batch]["asked"].as_array().unwrap();
        let mut again: Vec<String> = asked(1).iter().map(Value::to_string).collect();
        let mut ill: Vec<String> = asked(0)[..2].iter().map(Value::to_string).collect();
        again.sort();
        ill.sort();
        assert_eq!(again, ill, "{agent}");
        // What was not answered cost nothing.
        let all = spent(&project);
        assert_eq!((all.calls, all.usage.output, all.unpriced), (7, 100, 0));

        // What the provider calls wrong is not sent again.
        set(&served, "ill=wrong");
        project.write("workspace/inputs/things.json", things(42).to_string());
        let ran = project.run_unplanned(&[&with[0], &with[1]]);
        assert_eq!(ran.code, 1, "{}", ran.output);
        ran.says("it is ill");
        assert_eq!(sizes(&log(&served)), [5, 2, 1], "{agent}");
    }
}

#[test]
fn runs_of_one_prompt_are_requests_of_their_own() {
    let served = Served::new("well");
    let project = batched(super::single::tells(
        served.port,
        "result = '{said, run: $run}'",
    ));
    set(&served, "hold=1");
    let mut run = start(&project, "chat");
    until(&served, |log| log["batches"][0]["polls"].as_u64() > Some(1));
    run.kill().unwrap();
    run.wait().unwrap();
    set(&served, "hold=0");
    let ran = project.run_unplanned(&["--agent", "speller=chat"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    ran.says("tell waits for a provider batch of an earlier run");
    assert_eq!(sizes(&log(&served)), [3]);
    assert_eq!(calls(&project), answered(&[1; 3]));
    let told = project.json("workspace/intermediate/told/run_2.json");
    assert_eq!(told, json!({"said": "Tell of walls", "run": 2}));
    let ran = project.run(&["--agent", "speller=chat", "-B", "--fresh"]);
    assert_eq!((ran.code, sizes(&log(&served))), (0, vec![3, 3]));
}

#[test]
fn what_nobody_asks_for_any_more_is_harvested_all_the_same() {
    let served = Served::new("well");
    let project = fixture(&served);
    set(&served, "hold=1");
    let mut run = start(&project, "api");
    until(&served, |log| log["batches"][0]["polls"].as_u64() > Some(1));
    run.kill().unwrap();
    run.wait().unwrap();
    set(&served, "hold=0");
    // Free answers instead: the run looks after the batch at its end, also if the agent is in batch mode no more.
    let declared = project.read("milepost.toml");
    project.write("milepost.toml", declared.replace("\"batch\"", "\"direct\""));
    let ran = project.run_unplanned(&["--agent", "speller=default"]);
    project.write("milepost.toml", &declared);
    assert_eq!((ran.code, under_way(&project)), (0, 0), "{}", ran.output);
    let all = spent(&project);
    assert_eq!((all.calls, all.usage.output), (5, 100));
    // Who asks the same later has them.
    let ran = project.run_unplanned(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(calls(&project), answered(&[4; 5]));
    assert_eq!((sizes(&log(&served)), spent(&project)), (vec![5], all));
}

#[test]
fn interrupted_it_ends_at_once_and_says_what_continues() {
    let served = Served::new("well");
    let project = fixture(&served);
    set(&served, "hold=1");
    let run = start(&project, "api");
    until(&served, |log| log["batches"][0]["polls"].as_u64() > Some(1));
    let pid = rustix::process::Pid::from_raw(i32::try_from(run.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(exit_code(&output), 130);
    let told = printed(&output);
    let line = "1 provider batch is in progress: the next run collects the answers";
    assert!(told.contains(line), "{told}");
    set(&served, "hold=0");
    assert_eq!(project.run_unplanned(&["--agent", "speller=api"]).code, 0);
    assert_eq!(sizes(&log(&served)), [5]);
    assert_eq!(calls(&project), answered(&[4; 5]));
}

#[test]
fn a_budget_holds_for_what_is_in_a_batch() {
    let served = Served::new("well");
    let project = fixture(&served);
    // A request may cost a little less than a cent, half of what it would by itself: three fit.
    let with = ["--agent", "speller=api", "--budget-usd"];
    let run = |dollars: &str| project.run_unplanned(&[with.as_slice(), &[dollars]].concat());
    let ran = run("0.001");
    assert_eq!(
        (ran.code, sizes(&log(&served))),
        (3, vec![]),
        "{}",
        ran.output
    );
    // They cost less than what was reserved: the others follow.
    let ran = run("0.029");
    assert_eq!(ran.code, 0, "{}", ran.output);
    let sizes = sizes(&log(&served));
    assert_eq!((sizes[0], sizes.iter().sum()), (3, 5), "{sizes:?}");
}

#[test]
fn a_limit_of_calls_holds_for_what_is_in_a_batch() {
    let served = Served::new("well");
    let project = fixture(&served);
    let declared = project.read("milepost.toml");
    project.write(
        "milepost.toml",
        format!("{declared}\n[limits]\ncalls = 2\n"),
    );
    let ran = project.run_unplanned(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 3, "{}", ran.output);
    assert_eq!(
        (sizes(&log(&served)), calls(&project)),
        (vec![2], answered(&[4; 2]))
    );
}

/// Ended at any operation on the disk, and run again, it has the same result; every request was submitted once, because a batch
/// that is under way is found again, and what was answered is used.
#[test]
fn ended_anywhere_it_submits_nothing_twice() {
    let listed = {
        let served = Served::new("well");
        let mut project = fixture(&served);
        let list = tempfile::NamedTempFile::new().unwrap();
        let setting = format!("unflushed,list={}", list.path().display());
        project.env("MILEPOST_STOP_AT", &setting);
        assert_eq!(project.run_unplanned(&["--agent", "speller=api"]).code, 0);
        std::fs::read_to_string(list.path())
            .unwrap()
            .lines()
            .count()
    };
    let stops: Vec<usize> = (1..=listed).step_by(step(17)).collect();
    in_parallel(&stops, |at| {
        let agent = AGENTS[at % 2];
        let served = Served::new("well");
        let mut project = fixture(&served);
        let with = with(agent);
        let with = [with[0].as_str(), with[1].as_str()];
        project.env("MILEPOST_STOP_AT", &format!("{at},unflushed"));
        project.run_unplanned(&with);
        project.env("MILEPOST_STOP_AT", "unflushed");
        let ran = project.run_unplanned(&with);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(made(&project), words(40));
        let told = log(&served);
        let mut asked: Vec<String> = told["batches"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|batch| batch["asked"].as_array().unwrap())
            .map(Value::to_string)
            .collect();
        asked.sort();
        asked.dedup();
        assert_eq!(
            (asked.len(), sizes(&told).iter().sum::<usize>()),
            (5, 5),
            "{told:#}"
        );
        assert!(spent(&project).calls >= 5);
        assert_eq!(under_way(&project), 0);
    });
}

#[test]
fn a_batch_that_is_refused_for_now_is_submitted_again() {
    let served = Served::new("well");
    let project = fixture(&served);
    set(&served, "busy=1");
    let ran = project.run(&["--agent", "speller=chat"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(sizes(&log(&served)), [5]);
    assert_eq!(calls(&project), answered(&[4; 5]));
}

#[test]
fn a_question_in_a_provider_batch_of_another_run_is_not_asked() {
    let served = Served::new("well");
    let project = batched(speller(served.port, "well"));
    for workspace in ["a", "b"] {
        let path = format!("{workspace}/inputs/things.json");
        project.write(&path, things(10).to_string());
    }
    set(&served, "hold=1");
    let with = with("api");
    let start =
        |workspace: &str| project.spawn(&["run", &with[0], &with[1], "--workspace", workspace]);
    let first = start("a");
    until(&served, |log| sizes(log).len() == 1);
    let mut second = start("b");
    let mut printed = BufReader::new(second.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting for answers that another run is asking for") {
        line.clear();
        assert_ne!(printed.read_line(&mut line).unwrap(), 0);
    }
    let is_named = line.contains(": run ") && line.contains(" in a, since ");
    assert!(is_named, "{line}");
    set(&served, "hold=0");
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(second.wait().unwrap().success(), "{rest}");
    assert!(first.wait_with_output().unwrap().status.success());
    assert_eq!(sizes(&log(&served)).len(), 1);
    for workspace in ["a", "b"] {
        let made = project.json(&format!("{workspace}/outputs/all.json"));
        assert_eq!(made["elements"], words(10), "{workspace}");
    }
}
