//! What a run says: from the first to one that has nothing to do, and when something is in its way.

use crate::support::{Project, expect};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

#[test]
fn a_first_run_says_what_it_does_and_a_second_why_it_does_nothing() {
    let project = Project::letters();
    expect(
        project.output(""),
        0,
        "\
copy  up to date  3 batches ran  …
join  up to date  ran  …

complete in …
outputs  workspace/outputs/page.txt
",
        "\
copy starts: 3 batches  Copy each person
copy: up to date after …
join starts  Greet them all
join: up to date after …
",
    );
    assert_eq!(
        project.read("workspace/outputs/page.txt"),
        "Hello Ann\nHello Bo\nHello Cy"
    );
    expect(
        project.output("run"),
        0,
        "\
up to date: 2 stages, nothing changed
outputs  workspace/outputs/page.txt
",
        "",
    );
    expect(
        project.output("run copy"),
        0,
        "up to date: copy, nothing changed\n",
        "",
    );
}

#[test]
fn a_change_runs_what_depends_on_it_and_retires_what_nobody_makes() {
    let project = Project::letters();
    project.output("-q");
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bea\"}\n");
    project.remove("workspace/inputs/person_10.json");
    expect(
        project.output("--set greeting=Hi"),
        0,
        "\
copy  up to date  1 ran, 1 up to date, 1 batch retired  …
join  up to date  ran  …

complete in …
outputs  workspace/outputs/page.txt
",
        "\
note: intermediate/person_10.json is no longer produced by copy/person_10: moved to .milepost/quarantine/…-copy-person_10-retired/intermediate/person_10.json
copy starts: 1 of 2 batches  Copy each person
copy: up to date after …
join starts  Greet them all
join: up to date after …
",
    );
    assert_eq!(project.read("workspace/outputs/page.txt"), "Hi Ann\nHi Bea");
}

#[test]
fn a_failed_batch_stops_its_stage_and_the_ways_on_are_told() {
    let project = Project::letters();
    project.write("workspace/inputs/person_2.json", "{}");
    expect(
        project.output(""),
        1,
        "\
copy  failed       1 ran, 1 failed, 1 left  …
join  out of date  stage `copy` is not complete

failed in …
next     milepost log copy/person_2  show what happened
         milepost run                rerun the failed batches, then continue
         milepost run --keep-going   the same, and continue after a failure
",
        "\
copy starts: 3 batches  Copy each person
copy/person_2 failed: EXIT: `sh` ended with exit code 1
copy: failed after …
",
    );
    expect(
        project.output("-q --keep-going"),
        1,
        "",
        "\
copy/person_2 failed: EXIT: `sh` ended with exit code 1
copy  partial      1 ran, 1 up to date, 1 failed  …
join  out of date  stage `copy` is partial: `allow_partial = true` in this stage reads what is there

failed in …
next     milepost log copy/person_2  show what happened
         milepost run --keep-going   rerun the failed batches, then continue
",
    );
    let (code, text) = project.milepost(&["run", "--set", "greeting=Ho"]);
    assert_eq!(code, 1);
    assert!(
        text.contains(
            "\n         milepost run --unset greeting  run with the default of greeting\n"
        ),
        "{text}"
    );
    project.milepost(&["params", "--unset", "greeting"]);
    project.write("workspace/inputs/person_2.json", "{\"name\": \"Bo\"}");
    expect(
        project.output("run --failed"),
        3,
        "\
copy  up to date   1 ran, 2 up to date  …
join  out of date  did not run

out of date after …
next     milepost run  run the rest: 1 batch of join
",
        "\
copy starts: 1 of 3 batches  Copy each person
copy: up to date after …
",
    );
}

#[test]
fn what_was_not_asked_for_is_held() {
    let project = Project::letters();
    expect(
        project.output("-q --limit 1"),
        3,
        "",
        "\
copy  out of date  1 ran, 2 left  …
join  out of date  stage `copy` is not complete

out of date after …
next     milepost run  run the rest: 2 batches of copy
",
    );
    expect(
        project.output("run copy/person_10"),
        3,
        "\
copy  out of date  1 ran, 1 up to date, 1 left  …

out of date after …
next     milepost run copy  run the rest: 1 batch of copy
",
        "\
copy starts: 1 of 3 batches  Copy each person
copy: out of date after …
",
    );
    expect(
        project.output("run join"),
        3,
        "\
join  out of date  stage `copy` is not complete

out of date after …
next     milepost run --until join  run it with the stages before it
",
        "",
    );
    expect(
        project.output("run copy/nobody"),
        1,
        "\
copy  failed  there is no batch `nobody`; it has person_1, person_2, person_10

failed in …
",
        "",
    );
}

#[test]
fn altered_files_stop_a_run_and_the_two_ways_on_are_told() {
    let project = Project::letters();
    project.output("-q");
    project.write("workspace/outputs/page.txt", "by hand");
    expect(
        project.output("-C ."),
        5,
        "\
copy  up to date  3 batches up to date
join  modified    1 file was modified
      outputs/page.txt  modified by hand

modified after …
next     milepost -C . accept join --why TEXT  accept the modified output: outputs/page.txt
         milepost -C . run --force join        rebuild; the modified output goes to quarantine
",
        "",
    );
    expect(
        project.output("-q run --force join"),
        0,
        "",
        "\
warning: outputs/page.txt was modified by hand and is replaced
      help: your version is in .milepost/quarantine/…-modified/outputs/page.txt
",
    );
    project.write("workspace/stage_1_complete.json", "{}");
    expect(
        project.output(""),
        5,
        "\
copy  modified  1 file was modified
      stage_1_complete.json  modified by hand

modified after …
next     rm workspace/stage_1_complete.json  then the next run rewrites the checkpoint
",
        "",
    );
}

#[test]
fn making_the_same_again_leaves_later_stages_complete() {
    let project = Project::letters();
    project.output("-q");
    let later = project.read("workspace/stage_2_complete.json");
    expect(project.output("-q run -B copy"), 0, "", "");
    assert_eq!(project.read("workspace/stage_2_complete.json"), later);
    let checked = "up to date: join, nothing changed\noutputs  workspace/outputs/page.txt\n";
    expect(project.output("run join"), 0, checked, "");
    // Other bytes take away what vouches for the old ones.
    project.edit("stages/1_copy.toml", "cp ", "tr B b < ");
    project.edit("stages/1_copy.toml", "\"$1\" \"$2\"'", "\"$1\" > \"$2\"'");
    assert_eq!(project.output("-q run copy").code, 0);
    assert!(!project.at("workspace/stage_2_complete.json").exists());
}

#[test]
fn a_checkpoint_that_is_gone_is_written_and_said() {
    let project = Project::letters();
    project.output("-q");
    project.remove("workspace/stage_1_complete.json");
    expect(
        project.output("plan"),
        0,
        "\
letters in workspace

  1 copy  3 up to date, the checkpoint is written
  2 join  up to date

1 checkpoint is written, nothing else changes; to do it: milepost run
",
        "",
    );
    let status = project.output("status");
    assert!(
        status
            .out
            .ends_with("\n\n  copy: the checkpoint is missing; the next run writes it\n"),
        "{}",
        status.out
    );
    let verify = project.output("verify");
    assert!(
        verify.out.starts_with(
            "missing  stage_1_complete.json (of copy): it does not exist: the next run writes it\n"
        ),
        "{}",
        verify.out
    );
    expect(
        project.output(""),
        0,
        "\
copy  up to date  3 batches up to date, checkpoint written
join  up to date  up to date

complete in …
outputs  workspace/outputs/page.txt
",
        "",
    );
    assert_eq!(project.output("verify").code, 0);
}

#[test]
fn an_altered_checkpoint_has_one_way_on_wherever_it_is_told() {
    let project = Project::letters();
    project.output("-q");
    project.write("workspace/stage_1_complete.json", "{}");
    let way = "rm workspace/stage_1_complete.json  then the next run rewrites the checkpoint\n";
    for command in ["plan", "run", "status"] {
        let said = project.output(command);
        assert!(said.out.contains(way), "{command}\n{}", said.out);
        assert!(!said.out.contains("accept"), "{command}\n{}", said.out);
    }
    expect(
        project.output("plan"),
        5,
        "\
letters in workspace

  1 copy  stops the run: 1 modified file, 3 up to date
          stage_1_complete.json: modified (TWO)
          rm workspace/stage_1_complete.json  then the next run rewrites the checkpoint
  2 join  out of date: the run stops at stage `copy`

the run would stop at copy
"
        .replace("(TWO)", &two(&project.output("plan").out))
        .as_str(),
        "",
    );
    project.remove("workspace/stage_1_complete.json");
    assert_eq!(project.output("-q").code, 0);
    assert_eq!(project.output("verify").code, 0);
}

/// The two digests in brackets: that of a checkpoint differs from run to run.
fn two(text: &str) -> String {
    let from = text.find("modified (").unwrap() + "modified ".len();
    let to = from + text[from..].find(')').unwrap() + 1;
    text[from..to].to_owned()
}

#[test]
fn what_blocks_a_stage_is_told_with_the_way_to_unblock_it() {
    let project = Project::letters();
    project.output("-q");
    project.write("workspace/intermediate/person_2.json", "by hand");
    expect(
        project.output("run join"),
        3,
        "\
join  out of date  stage `copy` has files that were modified by hand

out of date after …
next     milepost accept copy --why TEXT  accept the modified output: intermediate/person_2.json
         milepost run --force copy        rebuild; the modified output goes to quarantine
",
        "",
    );
    let project = Project::letters();
    project.write("workspace/inputs/person_2.json", "{}");
    project.output("-q");
    let next = "\
next     milepost log copy/person_2  show what happened
         milepost run --until join        run it with the stages before it
";
    let next = next
        .replace("       what", "  what")
        .replace("        run it", "   run it");
    expect(
        project.output("run join"),
        1,
        &format!("join  out of date  stage `copy` is not complete\n\nfailed in …\n{next}"),
        "",
    );
    expect(
        project.output("plan join"),
        0,
        &format!(
            "letters in workspace\n\n  2 join  out of date: stage `copy` is not complete\n\nnothing can run\n{next}"
        ),
        "",
    );
    project.output("-q -k");
    expect(
        project.output("run join"),
        1,
        "\
join  out of date  stage `copy` is partial: `allow_partial = true` in this stage reads what is there

failed in …
next     milepost log copy/person_2  show what happened
         milepost run --failed copy  rerun the failed batches
",
        "",
    );
}

#[test]
fn an_output_that_no_longer_holds_and_is_not_made_again_is_no_output() {
    let project = Project::letters();
    project.write("schemas/copy.schema.json", "{}");
    project.edit(
        "stages/1_copy.toml",
        "schema = false",
        "schema = \"schemas/copy.schema.json\"",
    );
    project.output("-q");
    project.write(
        "schemas/copy.schema.json",
        r#"{"properties": {"name": {"minLength": 3}}}"#,
    );
    expect(
        project.output("run join"),
        3,
        "\
join  out of date  stage `copy` must be revalidated

out of date after …
next     milepost run --until join  run it with the stages before it
",
        "",
    );
    let verify = project.output("verify");
    assert!(
        verify
            .out
            .contains("copy: 3 of its batches must be revalidated"),
        "{}",
        verify.out
    );
    let said = project.output("-k");
    assert_eq!(said.code, 1, "{}\n{}", said.out, said.err);
    for gone in ["person_2", "person_10"] {
        assert!(
            !project
                .at(&format!("workspace/intermediate/{gone}.json"))
                .exists()
        );
        let line = format!(
            "note: intermediate/{gone}.json is out of date and copy/{gone} failed: moved to .milepost/quarantine/…-copy-{gone}-retired/intermediate/{gone}.json\n"
        );
        assert!(said.err.contains(&line), "{}", said.err);
    }
    assert_eq!(project.output("verify").code, 0);
    let stopped = Project::letters();
    stopped.write("schemas/copy.schema.json", "{}");
    stopped.edit(
        "stages/1_copy.toml",
        "schema = false",
        "schema = \"schemas/copy.schema.json\"",
    );
    stopped.output("-q");
    stopped.write(
        "schemas/copy.schema.json",
        r#"{"properties": {"name": {"minLength": 3}}}"#,
    );
    let said = stopped.output("-q");
    assert_eq!(said.code, 1, "{}", said.err);
    let summary = "copy  failed       1 up to date, 1 failed, 1 left, 1 revalidated  …\n";
    assert!(said.err.contains(summary), "{}", said.err);
    assert!(!stopped.at("workspace/intermediate/person_2.json").exists());
    assert_eq!(stopped.output("run join").code, 1);
}

#[test]
fn what_a_person_pinned_is_not_written_over_when_it_no_longer_holds() {
    let project = Project::letters();
    project.write("schemas/copy.schema.json", "{}");
    project.edit(
        "stages/1_copy.toml",
        "schema = false",
        "schema = \"schemas/copy.schema.json\"",
    );
    project.output("-q");
    project.write(
        "workspace/intermediate/person_2.json",
        "{\"name\": \"Robert\"}",
    );
    assert_eq!(project.output("accept copy --why better").code, 0);
    assert_eq!(project.output("-q").code, 0);
    project.write(
        "schemas/copy.schema.json",
        r#"{"properties": {"name": {"maxLength": 3}}}"#,
    );
    for _ in 0..2 {
        expect(
            project.output(""),
            5,
            "\
copy  modified  1 file was modified
      intermediate/person_2.json  accepted by hand, but out of date

modified after …
next     milepost accept copy --why TEXT  accept the modified output: intermediate/person_2.json
         milepost run --force copy        rebuild; the modified output goes to quarantine
",
            "",
        );
    }
    let kept = "{\"name\": \"Robert\"}";
    assert_eq!(project.read("workspace/intermediate/person_2.json"), kept);
    assert_eq!(project.output("-q run --force copy").code, 0);
    assert_eq!(
        project.read("workspace/intermediate/person_2.json"),
        "{\"name\": \"Bo\"}\n"
    );
}

#[test]
fn the_debug_log_holds_decisions_and_records() {
    let project = Project::letters();
    assert_eq!(project.output("-q --log-file debug.log").code, 0);
    let log = project.read("debug.log");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let decided = lines.iter().find(|line| line["batch"] == "person_1");
    let decided = decided.unwrap();
    assert_eq!(
        (&decided["stage"], &decided["decision"], &decided["reasons"]),
        (
            &json!("copy"),
            &json!("will"),
            &json!([{"reason": "never_made"}])
        )
    );
    // Each record of the journal is there, but for the fields that only the journal has.
    let logged = lines.iter().filter(|line| line["kind"].is_string());
    let logged: Vec<_> = logged
        .map(|line| {
            (
                &line["kind"],
                &line["data"],
                &line["summary"],
                &line["agent_name"],
            )
        })
        .collect();
    let records = project.records();
    // The journal writes by itself where a segment begins.
    let recorded = records.iter().filter(|record| record["kind"] != "sealed");
    let recorded: Vec<_> = recorded
        .map(|record| {
            (
                &record["kind"],
                &record["data"],
                &record["summary"],
                &record["agent_name"],
            )
        })
        .collect();
    assert_eq!(logged, recorded);
}

/// Sends Ctrl-C to a run that has said `first`. Gives its exit code, its output, and what else it said.
fn interrupted(project: &Project, arguments: &[&str], first: &str) -> (i32, String, String) {
    let mut command = project.command(arguments);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, first);
    let id = child.id().to_string();
    let mut kill = Command::new("kill");
    assert!(kill.args(["-INT", &id]).status().unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let ended = child.wait_with_output().unwrap();
    let (out, rest) = (
        project.normalized(&ended.stdout),
        project.normalized(rest.as_bytes()),
    );
    (ended.status.code().unwrap(), out, rest)
}

#[test]
fn batches_that_ctrl_c_ends_are_left() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"nap\"\n"),
        (
            "stages/1_nap.toml",
            "[each.n]\nvalues = [1, 2, 3]\n\n[step]\ncommand = \"sleep 60\"\n\n[outputs]\ndone = \"{{ n }}.txt\"\n",
        ),
    ]);
    let (code, out, _) = interrupted(&project, &["run", "--json"], "nap starts: 3 batches\n");
    assert_eq!(code, 130);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let nap = &json["stages"][0];
    assert_eq!(
        (&nap["batches"], &nap["left"]),
        (&3.into(), &3.into()),
        "{json:#}"
    );
}

#[test]
fn ctrl_c_stops_in_order_and_the_next_run_continues() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"nap\"\n"),
        (
            "stages/1_nap.toml",
            "[step]\ncommand = \"sleep 60 && echo done > {{ paths.done }}\"\n\n[outputs]\ndone = \"done.txt\"\n",
        ),
    ]);
    let (code, out, rest) = interrupted(&project, &["run"], "nap starts\n");
    assert_eq!(code, 130, "{rest}");
    assert_eq!(
        (out.as_str(), rest.as_str()),
        (
            "\
nap  out of date  did not run

interrupted in …
next     milepost run  continue
",
            "\
stopping: calls of agents in flight, if any, have up to … to finish; run again to continue (press Ctrl-C again to exit at once)
nap: out of date after …
"
        )
    );
    project.edit("stages/1_nap.toml", "sleep 60", "true");
    assert_eq!(project.output("-q").code, 0);
    assert_eq!(project.read("workspace/done.txt"), "done\n");
}
