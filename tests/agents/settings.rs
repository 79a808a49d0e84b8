//! How agents are declared: where they are, and how often they are asked.

use super::pipeline::{Served, answered, calls};
use super::single::tells;
use crate::support::{MAIN_PIPELINE, Project};

/// The project of three runs, whose agent `api` has this in the place of its address.
fn with_address(port: u16, address: &str) -> Project {
    let project = tells(port, "attempts = 1");
    let from = format!("base_url = \"http://127.0.0.1:{port}\"");
    project.edit("milepost.toml", &from, address);
    project
}

#[test]
fn an_address_comes_from_the_environment() {
    let served = Served::new("well");
    let mut project = with_address(served.port, "base_url = \"{{ env.MODEL_URL }}\"");
    project.edit(
        "milepost.toml",
        "[params]",
        "[env]\nMODEL_URL = \"\"\n\n[params]",
    );
    project.env("MODEL_URL", &format!("http://127.0.0.1:{}", served.port));
    let ran = project.run(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(calls(&project), answered(&[1, 1, 1]));

    // Where it gives nothing, the provider is asked at its own address, which wants a key.
    project.env("MODEL_URL", "");
    project.env("KEY", "");
    project.write("workspace/inputs/topic.txt", "doors");
    project
        .run_unplanned(&["--agent", "speller=api"])
        .expect(1, &[])
        .says("agent `api` needs a key: set the environment variable KEY");

    project.env("MODEL_URL", "localhost:80");
    let (code, said) = project.milepost(&["plan", "--agent", "speller=api"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("`base_url` of agent `api` is `localhost:80`: expected a URL"),
        "{said}"
    );
}

#[test]
fn an_agent_says_how_often_a_request_is_sent() {
    // Nobody listens there. One answer is wanted, so nothing was sent again if the agent said nothing.
    for (tries, sent) in [("", 1), ("tries = 1\n", 1), ("tries = 2\n", 2)] {
        let address = format!("{tries}base_url = \"http://127.0.0.1:1\"");
        let project = with_address(2, &address);
        project.edit("stages/1_tell.toml", "[1, 2, 3]", "[1]");
        let ran = project.run_unplanned(&["--agent", "speller=api"]);
        ran.expect(3, &["tell/1"]);
        let want: Vec<(u64, String)> = vec![(1, "connect".to_owned()); sent];
        assert_eq!(calls(&project), want, "{tries}: {}", ran.output);
    }
}

#[test]
fn a_server_that_refuses_connections_is_tried_by_one_call() {
    let project = with_address(2, "tries = 2\nbase_url = \"http://127.0.0.1:1\"");
    let ran = project.run_unplanned(&["--agent", "speller=api", "--keep-going", "-j", "1"]);
    ran.expect(3, &["tell/1", "tell/2", "tell/3"]);
    assert_eq!(calls(&project).len(), 2, "{}", ran.output);
    assert_eq!(ran.batches("batch_failed"), [""; 0], "{}", ran.output);
}

#[test]
fn a_tool_that_is_not_there_is_asked_once() {
    let project = tells(1, "attempts = 3");
    project.edit("milepost.toml", "\"python3\"", "\"no-such-program-here\"");
    let ran = project.run(&["--agent", "speller=tool"]);
    ran.expect(1, &["tell/1"]).says("exit code 127");
    assert_eq!(calls(&project).len(), 1, "{}", ran.output);
}

#[test]
fn a_batch_ends_at_its_time_limit() {
    let declared = format!(
        "{}\n[agents.slow]\ncli = [\"sleep\", \"60\"]\n",
        include_str!("../../milepost.toml")
    );
    let project = Project::new(&[
        ("milepost.toml", &declared),
        (
            "workspace/inputs/sample.ifc",
            include_str!("../crash/six_elements.ifc"),
        ),
    ]);
    project.take(&MAIN_PIPELINE[1..]);
    project.edit(
        "stages/3_classify.toml",
        "timeout =",
        "attempts = 1\ntimeout =",
    );
    let arguments = ["--agent", "classifier=slow", "--set", "batch_timeout=300ms"];
    let ran = project.run(&arguments);
    assert_eq!(ran.code, 1, "{}", ran.output);
    ran.says("classify/batch_1 failed: TIMEOUT: agent `slow`");
    // The limit is not part of the fingerprint: outputs made without it stay up to date.
    let classifier = ["--agent", "classifier=default", "--unset", "batch_timeout"];
    assert_eq!(project.run(&classifier).code, 0);
    let ran = project.run(&["--set", "batch_timeout=60s"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    ran.says("up to date");
}
