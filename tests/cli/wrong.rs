//! What cannot be done, in words and as JSON.

use crate::support::required::require;
use crate::support::unprivileged::is_root;
use crate::support::{Project, expect};
use serde_json::{Value, json};

#[test]
fn wrong_declarations_are_shown_all_at_once() {
    let project = Project::letters();
    project.edit("stages/1_copy.toml", "[each.person]", "[each.persons]");
    project.edit("stages/2_join.toml", "[inputs]", "[input]");
    let said = project.output("");
    assert_eq!((said.code, said.out.as_str()), (4, ""));
    let marks = [
        "error: `input` is not a key of a stage\n --> stages/2_join.toml:3:2\n",
        "  = help: tables of names are plural: write `[inputs]`\n",
        " --> stages/1_copy.toml:",
    ];
    for mark in marks {
        assert!(said.err.contains(mark), "{mark}\n--- in\n{}", said.err);
    }
    assert!(
        said.err
            .ends_with(" errors in the declarations; nothing was run\n"),
        "{}",
        said.err
    );

    let json: Value = serde_json::from_str(&project.output("--json plan").out).unwrap();
    assert_eq!(json["status"], "error");
    assert_eq!(json["exit_code"], 4);
    let problems = json["error"]["problems"].as_array().unwrap();
    let last = problems.last().unwrap();
    assert_eq!(
        (&last["file"], &last["line"], &last["column"], &last["help"]),
        (
            &json!("stages/2_join.toml"),
            &json!(3),
            &json!(2),
            &json!("tables of names are plural: write `[inputs]`")
        )
    );
}

#[test]
fn one_runner_at_a_time() {
    let project = Project::letters();
    project.write("workspace/.milepost/lock", "");
    let lock = std::fs::File::open(project.at("workspace/.milepost/lock")).unwrap();
    lock.lock().unwrap();
    let said = "error: another run is starting in this workspace (lock …/workspace/.milepost/lock); if this lasts, `lslocks` shows the process that holds the lock\n";
    expect(project.output(""), 6, "", said);
    assert_eq!(project.output("plan").code, 0, "readers are never blocked");
    lock.unlock().unwrap();
    assert_eq!(project.output("-q").code, 0);
}

#[test]
fn a_workspace_of_a_newer_version_is_left_alone() {
    let project = Project::letters();
    project.output("-q");
    project.edit(
        "workspace/.milepost/workspace.json",
        "\"format\": 2",
        "\"format\": 3",
    );
    let message = "…/workspace/.milepost/workspace.json is written by a newer Milepost (format 3; this one reads up to 2): update milepost";
    expect(project.output(""), 1, "", &format!("error: {message}\n"));
    let json: Value = serde_json::from_str(&project.output("run --json").out).unwrap();
    assert_eq!(
        json,
        json!({ "status": "error", "exit_code": 1, "error": { "kind": "workspace", "message": message } })
    );
}

#[test]
fn a_report_as_json_holds_what_the_summary_says() {
    let project = Project::letters();
    project.write("workspace/inputs/person_2.json", "{}");
    let said = project.output("run --json -q");
    assert_eq!(said.code, 1);
    let mut json: Value = serde_json::from_str(&said.out).unwrap();
    json["seconds"] = json!("…");
    for stage in json["stages"].as_array_mut().unwrap() {
        stage["seconds"] = json!("…");
    }
    assert!(
        json["run_id"]
            .take()
            .as_str()
            .is_some_and(|id| id.len() == 26),
        "{json:#}"
    );
    let outcome =
        json!({ "kind": "exit", "code": "EXIT", "message": "`sh` ended with exit code 1" });
    assert_eq!(
        json,
        json!({
            "status": "failed", "exit_code": 1, "run_id": null, "workspace": "…/workspace",
            "interrupted": false, "under_way": 0, "seconds": "…", "forgotten": [],
            "stages": [
                { "stage": "copy", "number": 1, "status": "failed", "why": null, "blocked_by": null, "batches": 3, "ran": 1, "reused": 0,
                  "restored": 0, "validated_again": 0, "retired": 0, "checkpoint_rewritten": false, "left": 1, "approval": null, "awaits": null,
                  "failed": [{ "batch": "person_2", "outcome": outcome }],
                  "altered": [], "verdict": null, "elements": null, "outputs": [], "seconds": "…" },
                { "stage": "join", "number": 2, "status": "blocked", "why": "stage `copy` is not complete",
                  "blocked_by": { "stage": "copy", "number": 1, "how": "incomplete", "failed": "copy/person_2", "altered": [] },
                  "batches": 0, "ran": 0, "reused": 0, "restored": 0, "validated_again": 0, "retired": 0, "checkpoint_rewritten": false, "left": 0, "approval": null, "awaits": null, "failed": [],
                  "altered": [], "verdict": null, "elements": null, "outputs": [], "seconds": "…" },
            ],
            "stored": [],
        })
    );
}

#[test]
fn one_slip_is_one_mistake() {
    for (path, from, to, said) in [
        (
            "stages/1_copy.toml",
            "command =",
            "comand =",
            "`comand` is not a key of `[step]`",
        ),
        (
            "stages/1_copy.toml",
            "[outputs]",
            "[output]",
            "`output` is not a key of a stage",
        ),
        (
            "stages/2_join.toml",
            "[inputs]",
            "[input]",
            "`input` is not a key of a stage",
        ),
        (
            "stages/1_copy.toml",
            "[step]",
            "[steps]",
            "`steps` is not a key of a stage",
        ),
        (
            "stages/1_copy.toml",
            "path = \"inputs",
            "paths = \"inputs",
            "`paths` is not a key of `[each.person]`",
        ),
        (
            "stages/2_join.toml",
            "jq =",
            "jp =",
            "`jp` is not a key of `[step]`",
        ),
        (
            "milepost.toml",
            "[params]",
            "[param]",
            "`param` is not a key of a project",
        ),
    ] {
        let project = Project::letters();
        project.edit(path, from, to);
        let said_all = project.output("plan");
        assert_eq!(said_all.code, 4);
        assert!(
            said_all.err.starts_with(&format!("error: {said}\n"))
                && said_all.err.contains("  = help: ")
                && said_all
                    .err
                    .ends_with("\nerror: 1 error in the declarations; nothing was run\n"),
            "{to}\n{}",
            said_all.err
        );
    }
}

#[test]
fn a_link_to_nothing_is_said_to_be_one() {
    let project = Project::letters();
    std::os::unix::fs::symlink("nowhere", project.at("workspace/inputs/person_4.json")).unwrap();
    let said = project.output("-q");
    let why = "`inputs/person_4.json` is a symbolic link to `nowhere`, where nothing is: remove the link, or put the file there\n";
    assert!(said.code == 1 && said.err.contains(why), "{}", said.err);
}

#[test]
fn a_model_that_is_none_is_named_once() {
    let project = Project::new(&[
        (
            "milepost.toml",
            "name = \"models\"\n\n[params]\nmodel = { file = \"inputs/model.ifc\" }\n",
        ),
        (
            "stages/1_parse.toml",
            "[inputs]\nmodel = \"{{ params.model }}\"\n\n[step]\nifc = \"model\"\n\n[outputs]\nparsed = { path = \"parsed.json\", schema = false }\n",
        ),
        ("workspace/inputs/empty.ifc", ""),
    ]);
    let said = project.output("-q --set model=inputs/empty.ifc");
    let first = "parse failed: INPUT: inputs/empty.ifc: the file is empty, but a building model (IFC) was expected; export or copy it again\n";
    assert!(
        said.code == 1 && said.err.starts_with(first),
        "{}",
        said.err
    );
    let graph = project.output("graph");
    assert!(
        graph.out.contains("\n  ← inputs/empty.ifc\n"),
        "{}",
        graph.out
    );
    let unknown = project.output("why nope");
    assert!(
        unknown.code == 2
            && unknown
                .err
                .starts_with("error: `nope` is not a stage, a batch or a known file"),
        "{}{}",
        unknown.out,
        unknown.err
    );
    assert_eq!(project.output("why inputs/empty.ifc").code, 0);
    std::os::unix::fs::symlink("nowhere.ifc", project.at("workspace/inputs/dead.ifc")).unwrap();
    for (value, why) in [
        (
            "inputs/dead.ifc",
            "it is a symbolic link to `nowhere.ifc`, which does not exist",
        ),
        (
            "none.ifc",
            "there is no such file, neither in the workspace nor in `…`",
        ),
        ("", "expected a file"),
        ("workspace", "expected a file"),
    ] {
        let said = format!("error: `--set model={value}`: {why}\n");
        expect(
            project.output(&format!("--set model={value}")),
            2,
            "",
            &said,
        );
    }
}

#[test]
fn a_damaged_identity_is_told_how_to_mend() {
    let project = Project::letters();
    project.output("-q");
    let identity = "workspace/.milepost/workspace.json";
    let text = project.read(identity);
    project.write(identity, &text[..text.len() / 2]);
    let said = project.output("");
    let way = "Restore it from a copy; or remove it, and the next run creates it again, with the day of that run and without the values of `--set`\n";
    assert!(
        said.code == 1
            && said
                .err
                .starts_with("error: …/workspace/.milepost/workspace.json is damaged: ")
            && said.err.ends_with(way),
        "{}",
        said.err
    );
    project.remove(identity);
    assert_eq!(project.output("-q").code, 0);
    assert_eq!(project.output("verify").code, 0);
}

#[test]
fn values_of_the_wrong_kind_are_told_which_was_expected() {
    let project = Project::letters();
    project.write(
        "milepost.toml",
        "name = \"letters\"\n\n[params]\ngreeting = \"Hello\"\nsize = 50\nshare = 0.5\nloud = true\nnames = [\"a\"]\nmap = { a = 1 }\n",
    );
    for (set, kind) in [
        ("size=many", "a whole number"),
        ("size=1.5", "a whole number"),
        ("share=half", "a number"),
        ("loud=yes", "true or false"),
        ("map=a", "a JSON object"),
    ] {
        let said = format!("error: --set {set}: expected {kind}\n");
        expect(project.output(&format!("--set {set}")), 2, "", &said);
    }
    assert_eq!(
        project
            .output("-q --set size=3 --set share=1 --set loud=false --set names=a,b")
            .code,
        0
    );
}

#[test]
fn a_journal_that_breaks_off_is_read_and_one_that_was_changed_is_refused() {
    let project = Project::letters();
    project.output("-q --limit 1");
    let folder = project.at("workspace/.milepost/journal");
    let mut segments: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    segments.sort();
    let last = segments.last().unwrap();
    let text = std::fs::read_to_string(last).unwrap();
    // Half a record at the end was being written when the run was killed.
    std::fs::write(last, format!("{text}{}", &text[..40])).unwrap();
    for command in ["status", "log", "plan"] {
        assert_eq!(project.output(command).code, 0, "{command}");
    }
    let said = project.output("");
    assert!(
        said.code == 0
            && said.err.starts_with(
                "recovered: removed an incomplete record of 40 bytes from the journal\n"
            ),
        "{}",
        said.err
    );
    let changed = text.replacen("\"summary\":\"", "\"summary\":\"not ", 1);
    assert_ne!(changed, text);
    std::fs::write(last, changed).unwrap();
    let verify = project.output("verify");
    assert!(verify.code == 5, "{}", verify.out);
}

#[test]
fn whoever_may_not_write_is_told_whose_folder_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::letters();
    let may = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    may(&project.at(""), 0o755);
    may(&project.at("workspace"), 0o755);
    let mut command = require!(project.unprivileged(&["run"]));
    if !is_root() {
        may(&project.at("workspace"), 0o555);
    }
    let output = command.output().unwrap();
    may(&project.at("workspace"), 0o755);
    let err = project.normalized(&output.stderr);
    assert_eq!(
        (output.status.code(), err.as_str()),
        (
            Some(1),
            "error: no permission to write in …/workspace: check the folder's owner (`ls -ld …/workspace`)\n"
        )
    );
}

#[test]
fn whoever_reads_while_a_run_seals_reads_something_whole() {
    let project = Project::letters();
    for number in 20..60 {
        project.write(
            &format!("workspace/inputs/person_{number}.json"),
            "{\"name\": \"Em\"}\n",
        );
    }
    for round in 0..3 {
        let mut run = project.command(&["-q", "run", "-B"]);
        let mut run = run.spawn().unwrap();
        let mut looks = 0;
        loop {
            let over = run.try_wait().unwrap();
            for command in ["status", "log", "plan", "why join"] {
                let said = project.output(command);
                assert!(
                    said.code == 0,
                    "round {round}, {command}: {}{}",
                    said.out,
                    said.err
                );
            }
            looks += 1;
            if let Some(status) = over {
                assert!(status.success());
                break;
            }
        }
        assert!(looks > 0);
        assert_eq!(project.output("verify").code, 0);
    }
}

/// The first stage of `letters`, with this command.
fn with_command(command: &str) -> Project {
    let project = Project::letters();
    let text = project.read("stages/1_copy.toml");
    let lines: Vec<&str> = text
        .lines()
        .map(|line| {
            if line.starts_with("command") {
                command
            } else {
                line
            }
        })
        .collect();
    project.write("stages/1_copy.toml", lines.join("\n"));
    project
}

#[test]
fn what_a_command_did_is_told_without_its_scratch_folder() {
    for (command, wanted) in [
        (
            "command = [\"tools/none\", \"{{ person.path }}\"]",
            "there is no program `tools/none` in the scratch folder where the command runs: for a file of the project, write \"project:tools/none\"\n",
        ),
        (
            "command = [\"true\"]",
            "OUTPUT: output `copy`: no step wrote `intermediate/person_1.json`\n",
        ),
        (
            "command = [\"sh\", \"-c\", 'echo \"$PWD/tools/x.py is not there\"; exit 2']",
            "\n    tools/x.py is not there\n",
        ),
        (
            "command = [\"sleep\", \"9\"]\ntimeout = \"10ms\"",
            "`sleep` took longer than …: set `timeout` in the step to give it more\n",
        ),
    ] {
        let said = with_command(command).output("run -q copy/person_1");
        assert!(
            said.code == 1 && said.err.contains(wanted),
            "{command}\n{}",
            said.err
        );
    }
}
