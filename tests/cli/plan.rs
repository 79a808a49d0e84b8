//! What a plan says: what would run, and why.

use crate::support::{Project, expect};

#[test]
fn everything_is_new_at_first() {
    expect(
        Project::letters().output("plan"),
        0,
        "\
letters in workspace

  1 copy  will run 3 batches
          never run  person_1, person_2, person_10
  2 join  will run
          never run

4 batches will run; to do it: milepost run
",
        "",
    );
}

#[test]
fn each_reason_stands_with_the_batches_that_have_it() {
    let project = Project::letters();
    project.output("-q");
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bea\"}\n");
    project.write("workspace/inputs/person_3.json", "{\"name\": \"Di\"}\n");
    project.remove("workspace/inputs/person_10.json");
    project.remove("workspace/intermediate/person_1.json");
    let plan = "\
letters in workspace

  1 copy  will run 3 batches, 1 batch retired
          output intermediate/person_1.json was deleted               person_1
          input inputs/person_2.json changed (2f52704b… → bacfae65…)  person_2
          never run                                                   person_3
          no longer produced, outputs go to quarantine: person_10
          retires intermediate/person_10.json: it goes to quarantine
  2 join  will run
          input intermediate/person_10.json was removed
          input intermediate/person_3.json is new

4 batches will run; to do it: milepost run
";
    expect(project.output("-n"), 0, plan, "");
    expect(project.output("run --dry-run"), 0, plan, "");
    assert_eq!(project.output("-q").code, 0);
    expect(
        project.output("plan"),
        0,
        "\
letters in workspace

  1 copy  3 up to date
  2 join  up to date

up to date: 2 stages, nothing changed
",
        "",
    );
}

#[test]
fn what_is_proposed_is_the_run_that_was_planned() {
    let project = Project::letters();
    project.output("-q");
    expect(
        project.output("plan --set greeting=Hi join"),
        0,
        "\
letters in workspace

  2 join  will run
          param greeting \"Hello\" → \"Hi\"

1 batch will run; to do it: milepost run --set greeting=Hi join
",
        "",
    );
    project.edit("stages/2_join.toml", "\" \"", "\", \"");
    expect(
        project.output("plan --until join"),
        0,
        "\
letters in workspace

  1 copy  3 up to date
  2 join  will run
          jq changed: [.people[] | $params.greeting + \" \" + .name] | join(\"\\n\") → [.people[] | $params.greeting + \", \" + .name] | join(\"\\n\")

1 batch will run; to do it: milepost run --until join
",
        "",
    );
}

#[test]
fn the_command_of_a_plan_has_every_flag() {
    let project = Project::letters();
    let line = "--jobs 2 --executor local --keep-going --fresh --budget-usd 2.5 --force --limit 1 --until join copy";
    let plan = project.output(&format!(
        "--workspace workspace plan --set greeting=Hi {line}"
    ));
    let same = format!("to do it: milepost --workspace workspace run --set greeting=Hi {line}\n");
    assert!(plan.out.ends_with(&same), "{}{}", plan.out, plan.err);
    let quoted = project
        .milepost(&["plan", "--set", "greeting=Good day", "join"])
        .1;
    assert!(quoted.ends_with("to run join with the stages before it: milepost run --set 'greeting=Good day' --until join\n"), "{quoted}");
}

#[test]
fn advice_about_the_declarations_is_for_those_who_look_for_details() {
    let project = Project::letters();
    project.edit(
        "stages/2_join.toml",
        "outputs/page.txt",
        "outputs/page.json",
    );
    let advice = "is not validated: it has no schema";
    for command in ["plan", "plan --json", "run", "status"] {
        let output = project.output(command);
        assert!(
            !format!("{}{}", output.out, output.err).contains(advice),
            "{command}"
        );
    }
    let output = project.output("plan -v");
    assert!(output.out.contains(advice), "{}", output.out);
}

#[test]
fn suggested_commands_work_where_the_program_was_called() {
    let project = Project::letters();
    let unknown = project.output("--workspace my/new cpoy").err;
    assert!(
        unknown.contains("did you mean the stage `copy`? milepost --workspace my/new run copy"),
        "{unknown}"
    );
    project.write("my/new/inputs/person_1.json", r#"{"name": "Ann"}"#);
    assert_eq!(project.output("--workspace my/new -q").code, 0);
    project.write("my/new/inputs/person_1.json", r#"{"name": "Eve"}"#);
    let verified = project
        .output("--workspace my/new verify --set greeting=Hi")
        .out;
    assert!(
        verified.contains("`milepost --workspace my/new why copy --set greeting=Hi` shows why"),
        "{verified}"
    );
}

#[test]
fn what_many_batches_share_is_told_once() {
    let project = Project::letters();
    for number in 20..40 {
        project.write(
            &format!("workspace/inputs/person_{number}.json"),
            "{\"name\": \"Em\"}\n",
        );
    }
    project.output("-q");
    for number in 20..32 {
        project.write(
            &format!("workspace/inputs/person_{number}.json"),
            "{\"name\": \"Emma\"}\n",
        );
    }
    let plan = project.output("plan");
    assert_eq!(plan.code, 0);
    let lines: Vec<&str> = plan.out.lines().skip(2).collect();
    assert_eq!(
        lines[0],
        "  1 copy  will run 12 of 23 batches, 11 up to date"
    );
    let first = "          input inputs/person_20.json changed (";
    assert!(lines[1].starts_with(first), "{}", plan.out);
    let last = lines[4]
        .split_once("  person_")
        .map(|(kind, names)| (kind.trim(), names));
    assert_eq!(
        last,
        Some((
            "and 9 more of this kind",
            "23, person_24, person_25, person_26, person_27 and 4 more"
        )),
        "{}",
        plan.out
    );
    assert_eq!(
        lines[5..],
        [
            "  2 join  may run",
            "          if copy changes any of 12 files in intermediate",
            "",
            "12 batches will run, 1 may; to do it: milepost run",
        ],
        "{}",
        plan.out
    );
}

#[test]
fn a_plan_says_where_the_run_would_stop() {
    let project = Project::letters();
    project.output("-q");
    project.write("workspace/intermediate/person_2.json", "by hand");
    expect(
        project.output("plan"),
        5,
        "\
letters in workspace

  1 copy  stops the run: 1 modified file, 2 up to date
          intermediate/person_2.json: modified (2f52704be1f7 → c9616cb59d02)
          milepost accept copy --why TEXT  accept the modified output: intermediate/person_2.json
          milepost run --force copy        rebuild; the modified output goes to quarantine
  2 join  out of date: the run stops at stage `copy`

the run would stop at copy
",
        "",
    );
    let fresh = Project::letters();
    expect(
        fresh.output("plan join"),
        0,
        "\
letters in workspace

  2 join  out of date: stage `copy` is not complete

nothing can run; to run join with the stages before it: milepost run --until join
",
        "",
    );
    for number in [1, 2, 10] {
        fresh.remove(&format!("workspace/inputs/person_{number}.json"));
    }
    expect(
        fresh.output("plan"),
        1,
        "\
letters in workspace

  1 copy  cannot run: [each.person] of stage `copy`: no file matches `inputs/person_*.json`: add one
  2 join  out of date: stage `copy` is not complete

not everything can run
",
        "",
    );
}

#[test]
fn a_stage_that_is_no_longer_declared_is_forgotten() {
    let project = Project::letters();
    project.output("-q");
    project.remove("stages/2_join.toml");
    expect(
        project.output("plan"),
        0,
        "\
letters in workspace
join is no longer declared: its outputs go to quarantine
  retires outputs/page.txt: it goes to quarantine

  1 copy  3 up to date

outputs that are no longer declared go to quarantine; to do it: milepost run
",
        "",
    );
    expect(
        project.output(""),
        0,
        "\
copy  up to date  3 batches up to date

complete in …
",
        "note: outputs/page.txt is no longer produced by join: moved to .milepost/quarantine/…-join-retired/outputs/page.txt\n",
    );
    let checked = "up to date: copy, nothing changed\n";
    expect(project.output(""), 0, checked, "");
}
