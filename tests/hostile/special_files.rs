//! FIFOs, devices and odd names at the paths of inputs and outputs.

use crate::support::{Output, Project, pipe};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Child;
use std::sync::mpsc::channel;
use std::time::Duration;

/// People are cleaned, and counted on a page.
fn people() -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"people\"\n"),
        (
            "stages/1_clean.toml",
            r#"
progress = "progress.json"

[each.person]
path = "inputs/person_*.json"

[step]
jq = "filters/clean.jq"

[outputs]
clean = { path = "intermediate/{{ person.stem }}.json", schema = "schemas/person.json" }
"#,
        ),
        (
            "stages/2_page.toml",
            r#"
[inputs]
people = "intermediate/person_*.json"
note = "inputs/note.txt"

[step]
render = "templates/page.md"

[outputs]
page = "outputs/page.md"
"#,
        ),
        ("filters/clean.jq", "$person.data\n"),
        ("schemas/person.json", "{\"type\": \"object\"}\n"),
        ("templates/page.md", "{{ people | length }}: {{ note }}\n"),
        ("workspace/inputs/person_1.json", "{\"name\": \"Ann\"}\n"),
        ("workspace/inputs/person_2.json", "{\"name\": \"Bo\"}\n"),
        ("workspace/inputs/note.txt", "hello\n"),
    ])
}

/// Waits for a process to end. Fails if that takes longer than a hanging process is worth.
fn ended(child: Child) -> Output {
    let process = rustix::process::Pid::from_child(&child);
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(Duration::from_secs(30));
    if output.is_err() {
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    }
    Output::of(&output.expect("the program hangs").unwrap())
}

const COMMANDS: [&[&str]; 5] = [
    &["plan"],
    &["status"],
    &["verify"],
    &["why", "page"],
    &["run", "--force"],
];

/// Runs all commands. Returns their exit codes and what they printed.
fn all(project: &Project) -> (Vec<i32>, String) {
    let ran: Vec<Output> = COMMANDS
        .iter()
        .map(|arguments| ended(project.spawn(arguments)))
        .collect();
    let codes = ran.iter().map(|output| output.code).collect();
    let text: Vec<String> = ran.iter().map(Output::text).collect();
    (codes, text.join("\n"))
}

#[test]
fn no_command_waits_at_a_named_pipe() {
    let said =
        "expected a regular file, found a named pipe: remove it, or put the file itself there";
    for (path, codes) in [
        ("stages/1_clean.toml", [4, 0, 0, 0, 4]),
        ("filters/clean.jq", [4, 0, 0, 0, 4]),
        ("schemas/person.json", [4, 0, 0, 0, 4]),
        ("templates/page.md", [4, 0, 0, 0, 4]),
        ("workspace/inputs/person_1.json", [1, 0, 0, 0, 1]),
        ("workspace/inputs/note.txt", [1, 0, 0, 0, 1]),
        ("workspace/intermediate/person_1.json", [1, 0, 5, 0, 1]),
        ("workspace/outputs/page.md", [1, 0, 5, 0, 1]),
        ("workspace/stage_1_complete.json", [1, 0, 5, 0, 1]),
        (
            "workspace/manifests/clean/page_0001.sha256",
            [1, 1, 5, 1, 1],
        ),
        ("workspace/.milepost/journal/000001.jsonl", [1, 1, 1, 1, 1]),
        ("workspace/.milepost/workspace.json", [1, 1, 1, 1, 1]),
        ("workspace/.milepost/lock", [0, 0, 0, 0, 1]),
    ] {
        let (found, text) = at_a_pipe(path);
        assert_eq!(found, codes, "{path}\n{text}");
        let name = path.trim_start_matches("workspace/");
        let is_named = |line: &str| line.contains(name) && line.contains(said);
        assert!(text.lines().any(is_named), "{path}\n{text}");
    }
}

#[test]
fn a_named_pipe_in_place_of_a_cache_is_replaced() {
    for (path, verified) in [
        ("workspace/.milepost/glance", 0),
        ("workspace/.milepost/stat-cache", 0),
        // It is a copy of what the journal says, but people read it.
        ("workspace/progress.json", 5),
    ] {
        let (codes, text) = at_a_pipe(path);
        assert_eq!(codes, [0, 0, verified, 0, 0], "{path}\n{text}");
    }
}

/// Runs all commands in a project where a file of a complete run was replaced by a named pipe.
fn at_a_pipe(path: &str) -> (Vec<i32>, String) {
    let project = people();
    assert_eq!(project.output("-q").code, 0);
    // A run may leave no cache.
    if project.exists(path) {
        project.remove(path);
    }
    pipe(&project.at(path));
    all(&project)
}

#[test]
fn sockets_and_devices_are_named() {
    let project = people();
    project.remove("workspace/inputs/note.txt");
    let _socket = UnixListener::bind(project.at("workspace/inputs/note.txt")).unwrap();
    let (codes, text) = all(&project);
    assert_eq!(codes, [1, 0, 0, 0, 1], "{text}");
    let said = "`inputs/note.txt`: expected a regular file, found a socket: remove it, or put the file itself there";
    assert!(text.contains(said), "{text}");

    let project = people();
    project.remove("workspace/inputs/note.txt");
    symlink("/dev/zero", project.at("workspace/inputs/note.txt")).unwrap();
    let (codes, text) = all(&project);
    assert_eq!(codes, [1, 0, 0, 0, 1], "{text}");
    let said = "`inputs/note.txt` leaves the workspace by a symbolic link, to /dev/zero: put the file itself there";
    assert!(text.contains(said), "{text}");
}

#[test]
fn verify_reports_every_output_that_it_cannot_read() {
    let project = people();
    assert_eq!(project.output("-q").code, 0);
    let outputs = [
        "intermediate/person_1.json",
        "intermediate/person_2.json",
        "outputs/page.md",
    ];
    for path in outputs {
        project.remove(&format!("workspace/{path}"));
    }
    pipe(&project.at("workspace/intermediate/person_1.json"));
    std::fs::create_dir(project.at("workspace/intermediate/person_2.json")).unwrap();
    symlink("page.md", project.at("workspace/outputs/page.md")).unwrap();
    let output = ended(project.spawn(&["verify"]));
    let text = output.text();
    assert_eq!(output.code, 5, "{text}");
    for (path, why) in outputs.into_iter().zip([
        "it cannot be read: expected a regular file, found a named pipe",
        "it cannot be read: expected a regular file, found a folder",
        "it cannot be read: ",
    ]) {
        let is_named = |line: &str| line.contains(path) && line.contains(why);
        assert!(text.lines().any(is_named), "{path}\n{text}");
    }
}

#[test]
fn a_workspace_list_without_an_ending_is_json() {
    let project = people();
    for (list, code, said) in [
        (
            "[{\"workspace\": \"one\"}]",
            1,
            "1 workspace, 1 not complete",
        ),
        (
            "workspace\none\n",
            2,
            "the name has no ending such as `.csv`, so the list is read as JSON",
        ),
        ("{}", 2, "expected a list"),
    ] {
        project.write("list", list);
        let mut command = project.command(&["run", "--dry-run", "--workspaces", "/dev/stdin"]);
        command.stdin(std::fs::File::open(project.at("list")).unwrap());
        let output = Output::of(&command.output().unwrap());
        let text = output.text();
        assert_eq!(output.code, code, "{text}");
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn the_workspace_list_may_come_from_a_pipe() {
    let project = people();
    let list = project.at("list.json");
    pipe(&list);
    let child = project.spawn(&["run", "--dry-run", "--workspaces", "list.json"]);
    std::thread::spawn(move || std::fs::write(list, "[{\"workspace\": \"one\"}]"));
    let output = ended(child);
    assert!(
        output.text().contains("1 workspace, 1 not complete"),
        "{}",
        output.text()
    );
}

#[test]
fn a_program_that_makes_a_pipe_in_place_of_its_output_fails() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"pipes\"\n"),
        (
            "stages/1_make.toml",
            "[step]\ncommand = [\"mkfifo\", \"{{ paths.made }}\"]\n\n[outputs]\nmade = \"outputs/made.txt\"\n",
        ),
    ]);
    let output = ended(project.spawn(&["run"]));
    assert_eq!(output.code, 1, "{}", output.text());
    assert!(
        output.text().contains("outputs/made.txt"),
        "{}",
        output.text()
    );
}
