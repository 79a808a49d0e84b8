//! What a run says: from the first to one that has nothing to do, and when something is in its way.

use crate::support::{Project, expect};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

#[test]
fn a_first_run_says_what_it_does_and_a_second_why_it_does_nothing() {
    let project = Project::letters();
    expect(
        project.run(""),
        0,
        "\
copy  complete  3 batches ran  …
join  complete  ran  …

complete in …
outputs  workspace/outputs/page.txt
",
        "\
copy starts: 3 batches  Copy each person
copy complete in …
join starts  Greet them all
join complete in …
",
    );
    assert_eq!(
        project.read("workspace/outputs/page.txt"),
        "Hello Ann\nHello Bo\nHello Cy"
    );
    expect(
        project.run("run"),
        0,
        "\
nothing to do: 2 stages are complete and nothing they depend on has changed
outputs  workspace/outputs/page.txt
",
        "",
    );
    expect(
        project.run("run copy"),
        0,
        "nothing to do: copy is complete and nothing it depends on has changed\n",
        "",
    );
}

#[test]
fn a_change_runs_what_depends_on_it_and_retires_what_nobody_makes() {
    let project = Project::letters();
    project.run("-q");
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bea\"}\n");
    project.remove("workspace/inputs/person_10.json");
    expect(
        project.run("--set greeting=Hi"),
        0,
        "\
copy  complete  1 ran, 1 reused, 1 batch retired  …
join  complete  ran  …

complete in …
outputs  workspace/outputs/page.txt
",
        "\
copy/person_10 is no longer made: 1 file moved to quarantine
copy starts: 1 of 2 batches  Copy each person
copy complete in …
join starts  Greet them all
join complete in …
",
    );
    assert_eq!(project.read("workspace/outputs/page.txt"), "Hi Ann\nHi Bea");
}

#[test]
fn a_failed_batch_stops_its_stage_and_the_ways_on_are_told() {
    let project = Project::letters();
    project.write("workspace/inputs/person_2.json", "{}");
    expect(
        project.run(""),
        1,
        "\
copy  failed    1 ran, 1 failed, 1 left  …
join  blocked   stage `copy` is not complete

failed in …
next     milepost log copy/person_2  what happened there
         milepost run                try again, and go on with the rest
         milepost run -k             the same, and go on after what fails
",
        "\
copy starts: 3 batches  Copy each person
copy/person_2 failed: EXIT: `sh` ended with exit code 1
copy failed in …
",
    );
    expect(
        project.run("-q --keep-going"),
        3,
        "",
        "\
copy/person_2 failed: EXIT: `sh` ended with exit code 1
copy  partial   1 ran, 1 reused, 1 failed  …
join  blocked   stage `copy` is partial

partial in …
next     milepost log copy/person_2  what happened there
         milepost run                try again, and go on with the rest
",
    );
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bo\"}");
    expect(
        project.run("run --failed"),
        3,
        "\
copy  complete  1 ran, 2 reused  …
join  held      did not run

held in …
next     milepost run  run the rest: 1 batch of join
",
        "\
copy starts: 1 of 3 batches  Copy each person
copy complete in …
",
    );
}

#[test]
fn what_was_not_asked_for_is_held() {
    let project = Project::letters();
    expect(
        project.run("-q --limit 1"),
        3,
        "",
        "\
copy  held      1 ran, 2 left  …
join  blocked   stage `copy` is not complete

held in …
next     milepost run  run the rest: 2 batches of copy
",
    );
    expect(
        project.run("run copy/person_10"),
        3,
        "\
copy  held      1 ran, 1 reused, 1 left  …

held in …
next     milepost run copy  run the rest: 1 batch of copy
",
        "\
copy starts: 1 of 3 batches  Copy each person
copy held in …
",
    );
    expect(
        project.run("run join"),
        3,
        "\
join  blocked   stage `copy` is not complete

held in …
next     milepost run --until join  run it with the stages before it
",
        "",
    );
    expect(
        project.run("run copy/nobody"),
        1,
        "\
copy  failed    there is no batch `nobody`: it has person_1, person_2, person_10

failed in …
",
        "",
    );
}

#[test]
fn altered_files_stop_a_run_and_the_two_ways_on_are_told() {
    let project = Project::letters();
    project.run("-q");
    project.write("workspace/outputs/page.txt", "by hand");
    expect(
        project.run("-C ."),
        5,
        "\
copy  complete  3 batches reused
join  altered   1 file was altered
      outputs/page.txt  altered since it was made

altered in …
next     milepost -C . accept join --why TEXT  keep what is there: outputs/page.txt
         milepost -C . run --force join        make it again; what is there goes to quarantine
",
        "",
    );
    expect(project.run("-q run --force join"), 0, "", "");
    project.write("workspace/stage_1_complete.json", "{}");
    expect(
        project.run(""),
        5,
        "\
copy  altered   1 file was altered
      stage_1_complete.json  altered since it was made

altered in …
next     rm workspace/stage_1_complete.json  the next run writes the checkpoint anew
",
        "",
    );
}

#[test]
fn ctrl_c_stops_in_order_and_the_next_run_goes_on() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"nap\"\n"),
        (
            "stages/1_nap.toml",
            "[step]\ncommand = \"sleep 60 && echo done > {{ paths.done }}\"\n\n[outputs]\ndone = \"done.txt\"\n",
        ),
    ]);
    let mut command = project.command(&["run"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert_eq!(first, "nap starts\n");
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{rest}");
    let out = project.steady(&ended.stdout);
    assert_eq!(
        (out.as_str(), project.steady(rest.as_bytes()).as_str()),
        (
            "\
nap  held      did not run

interrupted in …
next     milepost run  go on from here
",
            "\
stopping: what runs is cancelled; run again to go on (once more: end at once)
nap held in …
"
        )
    );
    project.edit("stages/1_nap.toml", "sleep 60", "true");
    assert_eq!(project.run("-q").code, 0);
    assert_eq!(project.read("workspace/done.txt"), "done\n");
}
