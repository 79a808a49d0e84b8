//! A mistake in the declaration of one stage: commands that read show what is recorded, and the mistake on top.

use crate::support::Project;
use crate::web::server::Ui;
use serde_json::Value;

/// The mistake, with its place and its mark.
const WARNING: &str = r#"warning: `jqq` is not a key of `[step]`
 --> stages/2_join.toml:7:1
  |
7 | jqq = '[.people[] | $params.greeting + " " + .name] | join("\n")'
  | ^^^ unknown key
"#;

const END: &str = "
warning: 1 error in the declarations: no run can begin, and this shows only what is recorded
";

/// A finished project in which a letter of a stage is wrong.
fn faulty() -> Project {
    let project = Project::letters();
    assert_eq!(project.run(&[]).code, 0);
    project.edit("stages/2_join.toml", "jq = ", "jqq = ");
    project
}

/// Returns what a command prints on standard output, and checks that the mistake is on standard error.
#[track_caller]
fn shown(project: &Project, arguments: &str) -> String {
    let output = project.output(arguments);
    assert_eq!(output.code, 0, "{arguments}: {}{}", output.err, output.out);
    assert!(
        output.err.starts_with(WARNING) && output.err.ends_with(END),
        "{arguments}: {}",
        output.err
    );
    assert_eq!(output.err.matches("warning: `jqq`").count(), 1);
    output.out
}

#[test]
fn reading_commands_show_what_is_recorded() {
    let project = faulty();
    let status = shown(&project, "status");
    for line in [
        "1  copy  out of date  3 of 3",
        "2  join  out of date  1 of 1",
        "\nThe declarations are wrong, so the plan of a run is unknown.\n",
    ] {
        assert!(status.contains(line), "{status}");
    }
    assert!(!status.contains("up to date"), "{status}");
    let log = shown(&project, "log join");
    assert!(log.contains("join starts"), "{log}");
    let why = shown(&project, "why join");
    assert!(
        why.starts_with("join cannot run\n  the declarations are wrong: stages/2_join.toml:7:1: "),
        "{why}"
    );
    assert!(why.contains("outputs/page.txt"), "{why}");
    let why = shown(&project, "why copy/person_2");
    assert!(why.contains("intermediate/person_2.json"), "{why}");
    let why = shown(&project, "why outputs/page.txt");
    assert!(why.contains("join"), "{why}");
    let trace = shown(&project, "trace outputs/page.txt");
    assert!(trace.contains("intermediate/person_1.json"), "{trace}");
    let graph = shown(&project, "graph");
    assert!(graph.contains("join"), "{graph}");
    assert!(shown(&project, "gc --yes").ends_with("\n0 bytes freed\n"));
    assert_eq!(shown(&project, "report"), "written  report.html\n");
    let report = project.read("report.html");
    assert!(
        report.contains("2_join.toml:7:1: `jqq` is not a key of `[step]`"),
        "{report}"
    );
    assert!(!report.contains("up to date"), "{report}");
    let status: Value = serde_json::from_str(&shown(&project, "status --json")).unwrap();
    let problems = status["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{status:#}");
}

#[test]
fn verify_checks_all_but_what_the_declaration_says() {
    let project = faulty();
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bea\"}\n");
    let verified = shown(&project, "verify");
    for line in [
        "note     copy: 1 of its batches is out of date: `milepost why copy` shows why\n",
        "note     the declarations are wrong: stages/2_join.toml:7:1: ",
        ": everything matches the record\n",
    ] {
        assert!(verified.contains(line), "{verified}");
    }
    project.write("workspace/outputs/page.txt", "by hand");
    let output = project.output("verify");
    assert_eq!(output.code, 5, "{}", output.out);
    assert!(
        output
            .out
            .starts_with("modified outputs/page.txt (of join): "),
        "{}",
        output.out
    );
}

#[test]
fn pages_show_the_mistake_until_it_is_corrected() {
    let project = faulty();
    let ui = Ui::start(&project);
    for page in [
        "",
        "stages",
        "stage?stage=join",
        "batch?stage=copy&batch=person_1",
        "timeline?run=all",
    ] {
        let shown = ui.get(page);
        assert_eq!(shown.status, 200, "{page}: {}", shown.body);
        assert!(
            shown.body.contains("stages/2_join.toml:7:1"),
            "{page}: {}",
            shown.body
        );
    }
    let stage = ui.get("stage?stage=join").body;
    assert!(
        stage.contains("<p>Not known: the declarations are wrong.</p>"),
        "{stage}"
    );
}

#[test]
fn nothing_runs_and_nothing_is_accepted() {
    let project = faulty();
    for command in ["run", "plan", "accept join --why good", "clean"] {
        let output = project.output(command);
        assert_eq!(output.code, 4, "{command}: {}", output.err);
        assert!(
            output
                .err
                .starts_with("error: `jqq` is not a key of `[step]`"),
            "{}",
            output.err
        );
    }
}

#[test]
fn a_project_file_that_cannot_be_read_hides_nothing_that_is_recorded() {
    for text in [&b"name = \"letters\n"[..], b"\xff\xfe", b"nam = 1\n"] {
        let project = Project::letters();
        assert_eq!(project.run(&[]).code, 0);
        project.write("milepost.toml", text);
        for (command, line) in [
            ("status", "1  copy  out of date  3 of 3"),
            ("log join", "join starts"),
            ("verify", ": everything matches the record\n"),
            ("why outputs/page.txt", "join"),
            ("trace outputs/page.txt", "intermediate/person_1.json"),
            ("graph", "join"),
            ("gc --yes", "\n0 bytes freed\n"),
            ("report", "written  report.html\n"),
        ] {
            let output = project.output(command);
            assert_eq!(output.code, 0, "{command}: {}{}", output.err, output.out);
            assert!(output.out.contains(line), "{command}: {}", output.out);
            assert!(output.err.contains("milepost.toml"), "{}", output.err);
        }
        let report = project.read("report.html");
        assert!(report.contains("The declarations are wrong"), "{report}");
        let ui = Ui::start(&project);
        let shown = ui.get("stage?stage=join");
        assert_eq!(shown.status, 200, "{}", shown.body);
        for command in ["run", "plan"] {
            assert_eq!(project.output(command).code, 4, "{command}");
        }
    }
}
