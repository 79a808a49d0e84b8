//! How agents are declared: where they are, and how often they are asked.

use super::pipeline::{Served, answered, calls};
use super::single::tells;
use crate::situations::house::House;

/// The project of three runs, whose agent `api` has this in the place of its address.
fn with_address(port: u16, address: &str) -> House {
    let house = tells(port, "attempts = 1");
    let from = format!("base_url = \"http://127.0.0.1:{port}\"");
    house.edit("milepost.toml", &from, address);
    house
}

#[test]
fn an_address_comes_from_the_environment() {
    let served = Served::new("well");
    let mut house = with_address(served.port, "base_url = \"{{ env.MODEL_URL }}\"");
    house.edit(
        "milepost.toml",
        "[params]",
        "[env]\nMODEL_URL = \"\"\n\n[params]",
    );
    house.env("MODEL_URL", &format!("http://127.0.0.1:{}", served.port));
    let ran = house.run(&["--agent", "speller=api"]);
    assert_eq!(ran.code, 0, "{}", ran.said);
    assert_eq!(calls(&house), answered(&[1, 1, 1]));

    // Where it gives nothing, the provider is asked at its own address, which wants a key.
    house.env("MODEL_URL", "");
    house.env("KEY", "");
    house.write("workspace/inputs/topic.txt", "doors");
    house
        .run_unplanned(&["--agent", "speller=api"])
        .expect(1, &[])
        .says("agent `api` needs a key: set the environment variable KEY");

    house.env("MODEL_URL", "localhost:80");
    let (code, said) = house.milepost(&["plan", "--agent", "speller=api"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("`base_url` of agent `api` gives `localhost:80`: a URL was expected"),
        "{said}"
    );
}

#[test]
fn an_agent_says_how_often_a_request_is_sent() {
    // Nobody listens there. One answer is wanted, so nothing was sent again if the agent said nothing.
    for (tries, sent) in [("", 1), ("tries = 1\n", 1), ("tries = 2\n", 2)] {
        let address = format!("{tries}base_url = \"http://127.0.0.1:1\"");
        let house = with_address(2, &address);
        let ran = house.run(&["--agent", "speller=api"]);
        ran.expect(1, &["tell/1"]);
        let want: Vec<(u64, String)> = vec![(1, "connect".to_owned()); sent];
        assert_eq!(calls(&house), want, "{tries}: {}", ran.said);
    }
}

#[test]
fn a_tool_that_is_not_there_is_asked_once() {
    let house = tells(1, "attempts = 3");
    house.edit("milepost.toml", "\"python3\"", "\"no-such-program-here\"");
    let ran = house.run(&["--agent", "speller=tool"]);
    ran.expect(1, &["tell/1"]).says("exit code 127");
    assert_eq!(calls(&house).len(), 1, "{}", ran.said);
}
