//! Wrong usage, help, and what is said of flags that do not go together.

use crate::support::{Project, expect};

const USAGE: &str = "
Usage: milepost [OPTIONS]
       milepost [OPTIONS] COMMAND

For more information, try '--help'.
";

#[test]
fn what_is_typed_wrong_is_named_with_what_can_be_typed() {
    let project = Project::letters();
    let cases: &[(&str, &str)] = &[
        (
            "run nope",
            "error: there is no stage `nope`; this project has copy, join\n",
        ),
        (
            "--until nope",
            "error: there is no stage `nope`; this project has copy, join\n",
        ),
        (
            "--set greeting",
            "error: `--set greeting`: write `--set NAME=VALUE`\n",
        ),
        (
            "--set nope=1",
            "error: `--set nope`: there is no parameter `nope`; this project has greeting\n",
        ),
        (
            "--set today=soon",
            "error: --set today=soon: expected a date such as 2026-11-21\n",
        ),
        (
            "run joyn",
            "error: there is no stage `joyn`; this project has copy, join: did you mean `join`?\n",
        ),
        (
            "--set greting=1",
            "error: `--set greting`: there is no parameter `greting`; this project has greeting: did you mean `greeting`?\n",
        ),
        (
            "log jion",
            "error: there is no stage `jion`; this project has copy, join: did you mean `join`?\n",
        ),
        (
            "--agent x",
            "error: `--agent x`: this project declares no agents\n",
        ),
        ("-C nowhere", "error: there is no folder `…/nowhere`\n"),
        (
            "-C / plan",
            "error: no `milepost.toml` in `/` or above: change to a project, name one with `-C DIR`, or create one with `milepost init`\n",
        ),
        (
            "--workspace milepost.toml",
            "error: …/milepost.toml is not a folder, and a workspace must be one\n",
        ),
        (
            "run -j 0",
            "error: invalid value '0' for '--jobs <N>': expected `auto`, or a number from 1 to 65535\n\nFor more information, try '--help'.\n",
        ),
        (
            "run --limit many",
            "error: invalid value 'many' for '--limit <N>': expected a whole number, such as 10\n\nFor more information, try '--help'.\n",
        ),
        (
            "run --wait nan",
            "error: invalid value 'nan' for '--wait <DURATION>': `nan` is not a duration: write a number and a unit, such as \"60s\", \"10m\", \"1h30m\" or \"250ms\"\n\nFor more information, try '--help'.\n",
        ),
    ];
    for (arguments, said) in cases {
        expect(project.output(arguments), 2, "", said);
    }
    assert!(
        !project.at("workspace/.milepost").exists(),
        "nothing is made by mistake"
    );
}

#[test]
fn what_is_meant_in_the_place_of_a_command_is_told() {
    let project = Project::letters();
    project.write("house.ifc", "");
    for (word, tip) in [
        ("copy", "to run the stage `copy`: milepost run copy"),
        ("stats", "a similar subcommand exists: 'status'"),
        ("jion", "did you mean the stage `join`? milepost run join"),
        (
            "house.ifc",
            "`house.ifc` is a file: `milepost run house.ifc` shows how to read it",
        ),
        (
            "zzz",
            "the stages of this project are copy, join: milepost run STAGE",
        ),
    ] {
        let said = format!("error: unrecognized subcommand '{word}'\n\n  tip: {tip}\n{USAGE}");
        expect(project.output(word), 2, "", &said);
    }
    project.write(
        "stages/3_stats.toml",
        project.read("stages/2_join.toml").replace("page", "stats"),
    );
    let said = project.output("stats").err;
    assert!(
        said.contains("tip: to run the stage `stats`: milepost run stats\n"),
        "{said}"
    );
}

#[test]
fn a_stage_is_known_by_its_number_and_its_file() {
    let project = Project::letters();
    for target in [
        "1",
        "stages/1_copy.toml",
        "./stages/1_copy.toml",
        "stage/1_copy.toml",
        "1_copy.toml",
        "1_copy",
        "stages/1_copy",
    ] {
        let plan = project.output(&format!("plan --json {target}"));
        assert_eq!(plan, project.output("plan --json copy"), "{target}");
    }
    assert_eq!(project.output("run -q 1_copy/person_2").code, 3);
    assert!(project.at("workspace/intermediate/person_2.json").exists());
    assert!(!project.at("workspace/intermediate/person_1.json").exists());
}

#[test]
fn a_file_in_the_place_of_a_stage_is_told_how_to_be_read() {
    let project = Project::letters();
    project.write("house.ifc", "");
    let no_stage = "error: there is no stage `house.ifc`; this project has copy, join\n";
    let help = "    help: `house.ifc` is a file, and no parameter of this project takes one: put it under `inputs/` of the workspace, and run without it\n";
    expect(
        project.output("run house.ifc"),
        2,
        "",
        &format!("{no_stage}{help}"),
    );
    project.edit(
        "milepost.toml",
        "[params]",
        "[params]\nmodel = { file = \"inputs/model.ifc\" }",
    );
    let help =
        "    help: `house.ifc` is a file; to read it: `milepost run --set model=house.ifc`\n";
    expect(
        project.output("run house.ifc"),
        2,
        "",
        &format!("{no_stage}{help}"),
    );
    expect(
        project.output("run hause.ifc"),
        2,
        "",
        "error: there is no stage `hause.ifc`; this project has copy, join\n",
    );
}

#[test]
fn help_is_a_command_too() {
    let empty = Project::new(&[]);
    assert_eq!(empty.output("help").out, empty.output("--help").out);
    for command in ["run", "plan", "completions"] {
        let asked = empty.output(&format!("help {command}"));
        assert_eq!(
            (asked.code, asked.out),
            (0, empty.output(&format!("{command} --help")).out)
        );
    }
    expect(
        empty.output("help rnu"),
        2,
        "",
        "error: there is no command `rnu`: did you mean `run`?\n",
    );
    expect(
        empty.output("help run now"),
        2,
        "",
        "error: there is no command `run now`: `run` has no commands\n",
    );
    assert_eq!(empty.output("-V").out, empty.output("--version").out);
}

#[test]
fn flags_of_a_run_before_another_command_are_not_lost_in_silence() {
    let project = Project::letters();
    let said = format!("error: `--jobs` is a flag of `run`, not of `status`\n{USAGE}");
    expect(project.output("-j 2 status"), 2, "", &said);
    let said = format!("error: `--failed` is a flag of `run`, not of `status`\n{USAGE}");
    expect(project.output("--failed status"), 2, "", &said);
    assert_eq!(project.output("--set greeting=Hi -q run copy").code, 0);
    assert_eq!(project.output("-q run").code, 0);
    assert_eq!(
        project.read("workspace/outputs/page.txt"),
        "Hi Ann\nHi Bo\nHi Cy"
    );
}

#[test]
fn the_day_comes_from_the_environment_when_it_is_told_there() {
    let mut project = Project::letters();
    project.env("SOURCE_DATE_EPOCH", "yesterday");
    expect(
        project.output("plan"),
        2,
        "",
        "error: `SOURCE_DATE_EPOCH=yesterday`: expected seconds since 1970, such as 1795219200\n",
    );
    project.env("SOURCE_DATE_EPOCH", "1795219200");
    project.edit("stages/2_join.toml", "$params.greeting", "$workspace.today");
    assert_eq!(project.output("-q").code, 0);
    let page = "2026-11-21 Ann\n2026-11-21 Bo\n2026-11-21 Cy";
    assert_eq!(project.read("workspace/outputs/page.txt"), page);
}

#[test]
fn help_and_completions_are_there_without_a_project() {
    let empty = Project::new(&[]);
    let version = format!("milepost {}\n", env!("CARGO_PKG_VERSION"));
    expect(empty.output("--version"), 0, &version, "");
    for (arguments, holds) in [
        ("--help", "Examples:\n  milepost  "),
        ("run --help", "Examples:\n  milepost run  "),
        ("completions bash", "_clap_complete_milepost()"),
        ("completions zsh", "#compdef milepost"),
    ] {
        let said = empty.output(arguments);
        assert!(
            said.code == 0 && said.out.contains(holds),
            "{arguments}: {}",
            said.out
        );
    }
    for line in empty.output("--help").out.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
