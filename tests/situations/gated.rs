//! Two batches that wait until the test releases them, so that it can act while they run.

use crate::support::{Project, pipe};
use std::io::Read as _;

/// Two batches. Each reports on a pipe that it has started, and waits on another until the test releases it.
pub fn gated() -> Project {
    let mut project = Project::new(&[
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
command = ["sh", "-c", 'sleep 600 & echo $! > "$PIPES/started_$1"; read word < "$PIPES/release_$1"; kill $!; echo "$word" > "$2"', "sh", "{{ n }}", "{{ paths.made }}"]
env = ["PIPES"]
timeout = "60s"

[outputs]
made = "outputs/{{ n }}.txt"
"#,
        ),
    ]);
    for name in ["started_1", "release_1", "started_2", "release_2"] {
        pipe(&project.at(name));
    }
    let pipes = project.at("").display().to_string();
    project.env("PIPES", &pipes);
    project
}

/// Waits until a batch has started, and returns the process that it started.
pub fn wait_for_batch(project: &Project, n: u32) -> u32 {
    let mut text = String::new();
    std::fs::File::open(project.at(&format!("started_{n}")))
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text.trim().parse().unwrap()
}

/// Lets a batch continue.
pub fn release(project: &Project, n: u32) {
    std::fs::write(project.at(&format!("release_{n}")), "on\n").unwrap();
}
