//! What stands in the way of a run is told, and the watch goes on when it is gone.

use super::session::{Gate, Session, WAITS};
use crate::agents::server::{Play, Server};
use crate::support::Project;
use std::net::TcpListener;
use std::process::Stdio;

const PAGE: &str = "workspace/outputs/page.txt";

/// A stage whose only batch copies its input, and then waits at the gate.
fn gated(gate: &Gate) -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"gated\"\n"),
        (
            "stages/1_page.toml",
            &format!(
                "[inputs]\ntext = \"inputs/text.txt\"\n\n[step]\ncommand = [\"sh\", \"-c\", 'cp \"$1\" \"$2\"; cat \"{}\" > /dev/null', \"page\", \"{{{{ paths.text }}}}\", \"{{{{ paths.page }}}}\"]\n\n[outputs]\npage = \"outputs/page.txt\"\n",
                gate.path().display()
            ),
        ),
    ]);
    project.write("workspace/inputs/text.txt", "one\n");
    project
}

#[test]
fn folders_that_are_away_are_waited_for() {
    for arguments in ["", "--poll=0.1"] {
        let project = Project::letters();
        let watch = Session::start(&project, arguments);
        watch.waits();
        let (inputs, aside) = (project.at("workspace/inputs"), project.at("aside"));
        std::fs::rename(&inputs, &aside).unwrap();
        let said = watch.until("waiting: workspace/inputs is missing");
        assert_eq!(said.len(), 1, "{said:#?}");
        assert_eq!(project.read(PAGE), "Hello Ann\nHello Bo\nHello Cy");
        std::fs::write(aside.join("person_1.json"), "{\"name\": \"Ada\"}").unwrap();
        std::fs::rename(&aside, &inputs).unwrap();
        watch.until("complete in");
        watch.waits();
        assert_eq!(project.read(PAGE), "Hello Ada\nHello Bo\nHello Cy");
        // What is in it is heard of, though it is another folder than at first: deleted, and made anew.
        watch.at_once(|| {
            std::fs::remove_dir_all(&inputs).unwrap();
            project.write("workspace/inputs/person_1.json", "{\"name\": \"Al\"}\n");
        });
        watch.until("complete in");
        watch.waits();
        assert_eq!(project.read(PAGE), "Hello Al");
        watch.at_once(|| project.write("workspace/inputs/person_1.json", "{\"name\": \"Amy\"}\n"));
        watch.until("complete in");
        watch.waits();
        assert_eq!(project.read(PAGE), "Hello Amy");
        let (stages, aside) = (project.at("stages"), project.at("aside"));
        std::fs::rename(&stages, &aside).unwrap();
        watch.until("waiting: stages is missing");
        std::fs::rename(&aside, &stages).unwrap();
        watch.waits();
        let (file, aside) = (project.at("milepost.toml"), project.at("aside"));
        std::fs::rename(&file, &aside).unwrap();
        watch.until("waiting: milepost.toml is missing");
        std::fs::rename(&aside, &file).unwrap();
        watch.waits();
        assert_eq!(watch.end(), (Some(130), vec![]), "{arguments}");
        assert_eq!(project.output("verify").code, 0);
    }
}

#[test]
fn declarations_that_are_wrong_are_told_and_read_anew() {
    let project = Project::letters();
    let watch = Session::start(&project, "");
    watch.waits();
    watch.at_once(|| project.edit("stages/2_join.toml", "+ .name]", "+ .name"));
    watch.until("waiting until this is fixed");
    watch.at_once(|| project.edit("stages/2_join.toml", "+ .name", "+ .name + \"!\"]"));
    watch.until("complete in");
    watch.waits();
    assert_eq!(project.read(PAGE), "Hello Ann!\nHello Bo!\nHello Cy!");
    // A stage that was not there.
    watch.at_once(|| {
        project.write(
            "stages/3_shout.toml",
            "[inputs]\npage = \"outputs/page.txt\"\n\n[step]\njq = '.page | ascii_upcase'\n\n[outputs]\nloud = \"outputs/loud.txt\"\n",
        );
    });
    watch.until("complete in");
    watch.waits();
    assert_eq!(
        project.read("workspace/outputs/loud.txt"),
        "HELLO ANN!\nHELLO BO!\nHELLO CY!"
    );
    assert_eq!(watch.end(), (Some(130), vec![]));
}

#[test]
fn altered_outputs_are_told_and_not_run() {
    let project = Project::letters();
    let watch = Session::start(&project, "");
    watch.waits();
    watch.at_once(|| project.write(PAGE, "by hand"));
    let said = watch.waits();
    assert_eq!(
        said[1], "  2 join  stops the run: 1 modified file",
        "{said:#?}"
    );
    assert_eq!(
        said.last().unwrap(),
        "waiting for changes: join cannot continue"
    );
    assert_eq!(project.read(PAGE), "by hand");
    watch.at_once(|| project.write(PAGE, "Hello Ann\nHello Bo\nHello Cy"));
    assert_eq!(watch.waits(), [WAITS]);
    // What is deleted is made again.
    watch.at_once(|| project.remove(PAGE));
    watch.until("complete in");
    watch.waits();
    assert_eq!(project.read(PAGE), "Hello Ann\nHello Bo\nHello Cy");
    assert_eq!(watch.end(), (Some(130), vec![]));
}

#[test]
fn another_run_is_waited_for() {
    let gate = Gate::new();
    let project = gated(&gate);
    let mut other = project.command(&["run"]);
    let mut other = other
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut watch = None;
    gate.open(|| {
        let begun = Session::start(&project, "");
        let said = begun.until("waiting for another run: `milepost run`");
        assert_eq!(said.len(), 2, "{said:#?}");
        watch = Some(begun);
    });
    assert_eq!(other.wait().unwrap().code(), Some(0));
    let watch = watch.unwrap();
    // There is nothing left to do.
    assert_eq!(watch.waits(), [WAITS]);
    project.write("workspace/inputs/text.txt", "two\n");
    watch.until("  1 page  will run");
    gate.open(|| {
        // Nor can another begin beside this one.
        assert_eq!(project.output("run").code, 6);
    });
    watch.until("complete in");
    watch.waits();
    assert_eq!(project.read(PAGE), "two\n");
    assert_eq!(watch.end(), (Some(130), vec![]));
}

#[test]
fn ctrl_c_during_a_run_ends_it_in_order() {
    let gate = Gate::new();
    let project = gated(&gate);
    let watch = Session::start(&project, "");
    watch.until("  1 page  will run");
    let mut ended = None;
    gate.open(|| ended = Some(watch.end()));
    let (code, said) = ended.unwrap();
    assert_eq!(code, Some(130));
    assert!(
        said.iter().any(|line| line.starts_with("interrupted in")),
        "{said:#?}"
    );
    let watch = Session::start(&project, "");
    watch.until("  1 page  will run");
    gate.open(|| ());
    watch.until("complete in");
    watch.waits();
    assert_eq!(watch.end(), (Some(130), vec![]));
    assert_eq!(project.output("verify").code, 0);
}

#[test]
fn what_costs_money_is_not_bought_unasked() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"paid\"\n\n[agents.model]\nanthropic = \"claude-sonnet-4-5\"\nmax_tokens = 100\n",
        ),
        ("prompts/ask.md", "Say {{ text }}\n"),
        (
            "stages/1_ask.toml",
            "[inputs]\ntext = \"inputs/text.txt\"\n\n[step]\nagent = \"model\"\nprompt = \"prompts/ask.md\"\nanswer = \"text\"\n\n[outputs]\nsaid = \"outputs/said.txt\"\n",
        ),
        ("workspace/inputs/text.txt", "one"),
    ]);
    let watch = Session::start(&project, "");
    let said = watch.waits();
    assert!(
        said.iter().any(|line| line.contains("): 1 call")),
        "{said:#?}"
    );
    let ran = said.iter().filter(|line| line.starts_with("waiting after"));
    assert_eq!(ran.count(), 0, "{said:#?}");
    let way = "paid agents are called with --budget-usd DOLLARS, or with --paid";
    let waits = "waiting for changes: ask cannot continue";
    assert_eq!(said[said.len() - 2..], [way, waits]);
    project.write("workspace/inputs/text.txt", "two");
    let said = watch.waits();
    assert!(said.iter().any(|line| line == way), "{said:#?}");
    assert_eq!(watch.end(), (Some(130), vec![]));
}

/// A stage that posts to a service.
fn posting(url: &str) -> Project {
    let stage = format!(
        "[step]\nhttp = \"{url}/a\"\nbody = \"{{n: 1}}\"\nattempts = 1\n[outputs]\nmade = {{ path = \"outputs/made.json\", schema = false }}\n"
    );
    Project::new(&[
        ("milepost.toml", "name = \"calls\"\n"),
        ("stages/1_call.toml", stage.as_str()),
    ])
}

#[test]
fn a_run_that_waits_for_a_service_continues_later() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let project = posting(&format!("http://{address}"));
    let watch = Session::start(&project, "");
    let said = watch.waits();
    let waits = format!("call  waiting  did not run, waiting for POST http://{address}/a: could");
    assert!(
        said.iter().any(|line| line.starts_with(&waits)),
        "{said:#?}"
    );
    assert_eq!(
        said.last().unwrap(),
        "waiting for changes; next run in 1 min"
    );
    // A change does not wait for that.
    let listener = TcpListener::bind(address).unwrap();
    let answer = |_: &_| Play::Says(200, &["content-type: application/json"], "1".to_owned());
    let _server = Server::on(listener, answer);
    project.edit("stages/1_call.toml", "/a", "/b");
    let said = watch.waits();
    assert_eq!(said.last().unwrap(), "waiting for changes", "{said:#?}");
    assert_eq!(project.read("workspace/outputs/made.json").trim(), "1");
    assert_eq!(watch.end(), (Some(130), vec![]));
}

#[test]
fn what_a_service_may_have_done_is_said_with_the_command_that_sends_it_again() {
    let answer = |_: &_| Play::Says(201, &[], "OK".to_owned());
    let server = Server::answering(answer);
    let project = posting(&server.url);
    let watch = Session::start(&project, "");
    let said = watch.waits();
    let failed = "1 batch failed: call; rerun when an input changes, or now with milepost run --until-paid --failed (send the requests again: only if the service did not carry them out)";
    assert_eq!(said[said.len() - 2..], [failed, "waiting for changes"]);
    assert_eq!(watch.end(), (Some(130), vec![]));
    assert_eq!(server.seen().len(), 1);
}
