//! Leases belong to a client, and what it is asked and answers to the owner of the workspace.

use crate::mcp::client::{Client, well};
use crate::support::Project;
use rustix::process::Signal;
use serde_json::json;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Two reviews that an external agent rates.
fn reviews() -> Project {
    Project::new(&[
        (
            "milepost.toml",
            "name = \"reviews\"\n\n[agents.coder]\nexternal = true\n",
        ),
        (
            "stages/1_rate.toml",
            "[each.review]\npath = \"inputs/*.txt\"\n\n[inputs]\ntext = \"{{ review.path }}\"\n\n\
             [step]\nagent = \"coder\"\nprompt = \"prompts/rate.md\"\n\n\
             [outputs]\nrating = { path = \"intermediate/{{ review.stem }}.json\", schema = false }\n",
        ),
        ("prompts/rate.md", "Rate it: {{ text }}\n"),
        ("workspace/inputs/a.txt", "The door sticks."),
        ("workspace/inputs/b.txt", "A quiet room."),
    ])
}

#[test]
fn another_server_neither_submits_nor_releases_whatever_it_calls_itself() {
    let project = reviews();
    let (mut one, mut two) = (Client::of(&project), Client::of(&project));
    let leased = one.call("next_batch", json!({"client": "one"}))["leased"].clone();
    let lease = &leased["lease"];
    for arguments in [
        json!({"lease": lease}),
        json!({"lease": lease, "client": "one"}),
        json!({"lease": lease, "client": "script"}),
    ] {
        let mut with_answer = arguments.clone();
        with_answer["answer"] = json!({"stars": 5});
        let refused = two.fault("submit_batch", with_answer);
        assert_eq!(refused["code"], "foreign_lease", "{refused:#}");
        let refused = two.fault("release_batch", arguments);
        assert_eq!(refused["code"], "foreign_lease", "{refused:#}");
    }
    let refused = two.fault("release_batch", json!({"lease": lease}));
    assert_eq!(
        refused["error"],
        "rate/a is leased to `one` by another running server"
    );
    assert!(!project.at("workspace/intermediate/a.json").exists());
    // Its own server does, whether or not it repeats its name.
    let answer = json!({"lease": lease, "answer": {"stars": 2}});
    assert_eq!(one.call("submit_batch", answer)["accepted"], true);
    assert_eq!((one.leave(), two.leave()), (well(), well()));
}

#[test]
fn a_lease_of_a_server_that_ended_belongs_to_who_knows_it() {
    let project = reviews();
    let mut client = Client::of(&project);
    let first = client.call("next_batch", json!({}))["leased"]["lease"].clone();
    assert_eq!(client.leave(), well());
    let mut client = Client::of(&project);
    let answer = json!({"lease": first, "answer": {"stars": 3}});
    assert_eq!(client.call("submit_batch", answer)["accepted"], true);
    let second = client.call("next_batch", json!({}))["leased"]["lease"].clone();
    client.kill(Signal::KILL);
    let mut client = Client::of(&project);
    let given = client.call("release_batch", json!({"lease": second}));
    assert_eq!(given["released"], true);
    assert_eq!(client.leave(), well());
}

#[test]
fn nothing_behind_a_link_counts_as_an_old_lease() {
    let project = reviews();
    project.run_unplanned(&[]);
    let leases = project.at("workspace/.milepost/leases");
    let other = project.at("elsewhere/01HGJ3Z0000000000000000000");
    std::fs::create_dir_all(&other).unwrap();
    let _ = std::fs::remove_dir_all(&leases);
    std::os::unix::fs::symlink(project.at("elsewhere"), &leases).unwrap();
    let mut client = Client::of(&project);
    let refused = client.fault("next_batch", json!({}))["error"].to_string();
    let message = ".milepost/leases: expected a folder, found a symbolic link: remove it";
    assert!(refused.contains(message), "{refused}");
    assert!(other.is_dir());
    assert_eq!(client.leave(), well());
}

/// An attack of our own: ids that are nearly the lease's, and paths.
#[test]
fn only_the_whole_id_of_a_lease_is_a_lease() {
    let project = reviews();
    let mut client = Client::of(&project);
    let leased = client.call("next_batch", json!({}))["leased"].clone();
    let id = leased["lease"].as_str().unwrap();
    let folder = Path::new(leased["input_file"].as_str().unwrap())
        .parent()
        .unwrap();
    for near in [
        &id[..25],
        &format!("{id}/"),
        &format!("./{id}"),
        &format!("../leases/{id}"),
        &folder.display().to_string(),
        "",
    ] {
        let fault = client.fault("release_batch", json!({"lease": near}));
        assert_eq!(fault["code"], "unknown_lease", "{near}: {fault:#}");
    }
    // What can be read without the lease does not name it.
    for (tool, arguments) in [
        ("status", json!({})),
        ("log", json!({})),
        ("next_batch", json!({})),
        ("next_batch", json!({})),
        ("why", json!({"what": "rate/a"})),
    ] {
        let result = client.result(tool, arguments).to_string();
        assert!(!result.contains(id), "{tool}: {result}");
    }
    assert_eq!(client.leave(), well());
}

/// The files and folders below a folder, with their permissions.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        found.push((
            folder.clone(),
            std::fs::metadata(&folder).unwrap().mode() & 0o777,
        ));
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let mode = std::fs::metadata(&path).unwrap().mode() & 0o777;
                found.push((path, mode));
            }
        }
    }
    found
}

/// Leases a batch and answers it wrongly and rightly, so that there is an answer, a call, a prompt, a lease and something set aside.
fn work(project: &Project) {
    let mut client = Client::of(project);
    let leased = client.call("next_batch", json!({}))["leased"].clone();
    client.fault(
        "submit_batch",
        json!({"lease": leased["lease"], "answer": "{"}),
    );
    let answer = json!({"lease": leased["lease"], "answer": {"stars": 3}});
    assert_eq!(client.call("submit_batch", answer)["accepted"], true);
    assert_eq!(client.leave(), well());
}

const PRIVATE: [&str; 4] = [
    "workspace/.milepost/leases",
    "workspace/.milepost/answers",
    "workspace/.milepost/calls",
    "workspace/.milepost/quarantine",
];

#[test]
fn what_agents_are_asked_and_answer_is_for_the_owner_only() {
    let project = reviews();
    work(&project);
    let mut files = 0;
    for folder in PRIVATE {
        for (path, mode) in modes(&project.at(folder)) {
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, wanted, "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 15, "{files}");
    // The rest is as the umask has it.
    let plain = std::fs::metadata(project.at("workspace/intermediate/a.json")).unwrap();
    let state = std::fs::metadata(project.at("workspace/.milepost/journal")).unwrap();
    let umask = std::fs::metadata(project.at("workspace/intermediate")).unwrap();
    assert_eq!(state.mode(), umask.mode());
    assert_eq!(plain.mode() & 0o600, 0o600);
}

#[test]
fn the_project_may_leave_permissions_to_the_umask() {
    let project = reviews();
    project.edit("milepost.toml", "name =", "permissions = \"umask\"\nname =");
    work(&project);
    let usual = std::fs::metadata(project.at("workspace/.milepost/journal")).unwrap();
    for folder in PRIVATE {
        let found = std::fs::metadata(project.at(folder)).unwrap();
        assert_eq!(found.mode(), usual.mode(), "{folder}");
    }
}

#[test]
fn folders_of_an_earlier_version_are_closed_at_the_next_run() {
    let project = reviews();
    work(&project);
    for folder in PRIVATE {
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.at(folder), open).unwrap();
    }
    project.remove("workspace/intermediate/a.json");
    let said = project.output("run");
    assert_eq!(said.code, 3, "{}", said.err);
    for folder in PRIVATE {
        let found = std::fs::metadata(project.at(folder)).unwrap();
        assert_eq!(found.mode() & 0o777, 0o700, "{folder}");
    }
}
