//! Two batches that wait for a word of the test, so that it can do something while they are at work.

use super::house::House;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Two batches that each wait for a word of the test on a pipe of their own, and tell on another that they are there.
pub fn meeting() -> House {
    let mut house = House::new(&[
        (
            "milepost.toml",
            "name = \"meeting\"\n\n[env]\nPIPES = \"\"\n",
        ),
        (
            "stages/1_meet.toml",
            r#"
[each.n]
count = 2

[step]
command = ["sh", "-c", 'sleep 600 & echo $! > "$PIPES/here_$1"; read word < "$PIPES/go_$1"; kill $!; echo "$word" > "$2"', "sh", "{{ n }}", "{{ paths.made }}"]
env = ["PIPES"]
timeout = "60s"

[outputs]
made = "outputs/{{ n }}.txt"
"#,
        ),
    ]);
    for pipe in ["here_1", "go_1", "here_2", "go_2"] {
        let made = Command::new("mkfifo").arg(house.at(pipe)).status().unwrap();
        assert!(made.success());
    }
    let pipes = house.at("").display().to_string();
    house.env("PIPES", &pipes);
    house
}

/// The process that a batch started, once it is there.
pub fn here(house: &House, n: u32) -> u32 {
    let mut text = String::new();
    std::fs::File::open(house.at(&format!("here_{n}")))
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text.trim().parse().unwrap()
}

pub fn go(house: &House, n: u32) {
    std::fs::write(house.at(&format!("go_{n}")), "on\n").unwrap();
}

/// Whether a process is there and is not merely waiting to be counted.
pub fn lives(process: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"))
        .unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

pub fn start(house: &House, arguments: &[&str]) -> std::process::Child {
    house
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}
