//! Ctrl-C while a call is in flight: it is paid for, so its answers are kept, and nothing else is asked.

use super::batch_mode::set;
use super::pipeline::{Served, answered, calls, speller};
use crate::support::{Project, exit_code, pipe};
use std::io::{BufRead, BufReader, Read as _};
use std::process::{Command, Stdio};

/// Stops a run when its first call has begun, and then lets the call end.
fn stopped_in_a_call(project: &Project, agent: &str) {
    let with = ["run", "--agent", &format!("speller={agent}")].map(str::to_owned);
    let words = with.each_ref().map(String::as_str);
    let mut command = project.command(&words);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The call has begun.
    std::fs::read(project.at("gate.started")).unwrap();
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.unwrap().success());
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("stopping") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0);
    }
    assert_eq!(
        line,
        "stopping: calls of agents in flight, if any, have up to 30 s to finish; run again to continue (press Ctrl-C again to exit at once)\n"
    );
    std::fs::write(project.at("gate.release"), "on\n").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(exit_code(&child.wait_with_output().unwrap()), 130, "{rest}");
    assert_eq!(calls(project), answered(&[4]), "{agent}: {rest}");
}

#[test]
fn a_call_in_flight_is_finished_and_not_sent_again() {
    let served = Served::new("well");
    for agent in ["api", "chat", "tool"] {
        let project = speller(served.port, "well");
        for name in ["gate.started", "gate.release"] {
            pipe(&project.at(name));
        }
        let gate = project.at("gate").display().to_string();
        let declared = project.read("milepost.toml");
        let waits = format!(
            r#"["sh", "-c", "echo on > {gate}.started; read word < {gate}.release; exec \"$@\"", "sh", "#
        );
        project.write(
            "milepost.toml",
            declared.replace("cli = [", &format!("cli = {waits}")),
        );
        set(&served, &format!("gate={gate}"));
        stopped_in_a_call(&project, agent);
        set(&served, "gate=");
        // The command of an agent is a part of the address of its answers, so that it stays.
        for name in ["gate.started", "gate.release"] {
            project.remove(name);
            project.write(name, "on\n");
        }
        let ran = project.run_unplanned(&["--agent", &format!("speller={agent}")]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        assert_eq!(calls(&project), answered(&[4, 1]), "{agent}");
    }
}
