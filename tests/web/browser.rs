//! The browser that the server opens: it gets a private file, because every user of the machine can see the arguments of a program.

use crate::support::Project;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// A browser that notes its arguments, the permissions of its file, and the content.
const BROWSER: &str = r#"#!/bin/sh
{ echo "$*"; ls -l "$1" | cut -c 1-10; cat "$1"; } > seen.new
mv seen.new seen
"#;

#[test]
fn no_argument_of_the_browser_has_the_token() {
    let project = Project::letters();
    project.write("bin/xdg-open", BROWSER);
    let program = project.at("bin/xdg-open");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let milepost = project.command(&["ui"]);
    let path = format!(
        "{}:{}",
        project.at("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let mut terminal = Command::new("python3")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/situations/terminal.py"
        ))
        .args(["200", "sh", "-c", "echo $$ > pid; exec \"$0\" \"$@\""])
        .arg(milepost.get_program())
        .args(milepost.get_args())
        .current_dir(project.path())
        .envs([("PATH", path.as_str()), ("DISPLAY", ":0")])
        .env_remove("SSH_CONNECTION")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(terminal.stdout.take().unwrap()).lines();
    let line = shown.find_map(|line| line.ok().filter(|line| line.contains("open http://")));
    let line = line.unwrap();
    let url = line.split_whitespace().nth(1).unwrap();
    while !project.at("seen").exists() {
        std::thread::yield_now();
    }
    let pid: i32 = project.read("pid").trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    shown.for_each(drop);
    assert!(terminal.wait().unwrap().success());
    let file = project.at("workspace/.milepost/ui.html");
    assert_eq!(
        project.read("seen"),
        format!(
            "{}\n-rw-------\n<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n<title>Milepost</title>\n<p><a href=\"{url}\">Open the pages</a></p>",
            file.display()
        )
    );
    assert!(!file.exists());
}
