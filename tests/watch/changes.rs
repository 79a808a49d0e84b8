//! What changes is run, whatever way it changes; nothing else is.

use super::session::{Gate, Session, WAITS};
use crate::support::Project;

const PAGE: &str = "workspace/outputs/page.txt";

fn count(said: &[String], start: &str) -> usize {
    said.iter().filter(|line| line.starts_with(start)).count()
}

/// A stage with one batch that tells how many files there are.
fn counting() -> Project {
    let project = Project::new(&[
        ("milepost.toml", "name = \"count\"\n"),
        (
            "stages/1_count.toml",
            "[inputs]\nall = \"inputs/*.json\"\n\n[step]\njq = '[.all[].n] | \"\\(length) \\(add)\"'\n\n[outputs]\npage = \"outputs/page.txt\"\n",
        ),
    ]);
    project.write("workspace/inputs/0.json", "{\"n\": 0}");
    project
}

/// One batch a person. Each try is written down in `tries`, outside of what is watched; then it waits at the gate, if there is one.
fn trying(gate: Option<&Gate>) -> (Project, tempfile::TempDir) {
    let outside = tempfile::tempdir().unwrap();
    let tries = outside.path().join("tries");
    let wait = gate.map_or_else(String::new, |gate| {
        format!("; cat \"{}\" > /dev/null", gate.path().display())
    });
    let project = Project::letters();
    let stage = format!(
        r#"[each.person]
path = "inputs/person_*.json"

[step]
command = ["sh", "-c", 'echo "$3" >> "{}"; grep name "$1" > "$2" || exit 1{wait}', "copy", "{{{{ person.path }}}}", "{{{{ paths.copy }}}}", "{{{{ person.stem }}}}"]

[outputs]
copy = {{ path = "intermediate/{{{{ person.stem }}}}.json", schema = false }}
"#,
        tries.display()
    );
    project.write("stages/1_copy.toml", &stage);
    (project, outside)
}

fn tries(outside: &tempfile::TempDir) -> Vec<String> {
    let text = std::fs::read_to_string(outside.path().join("tries")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn it_continues_when_a_stage_is_approved() {
    let project = Project::letters();
    let declared = project.read("stages/2_join.toml") + "\n[approve]\nby = \"reviewer\"\n";
    project.write("stages/2_join.toml", declared);
    let watch = Session::start(&project, "");
    let said = watch.waits();
    let line = "join  waiting     did not run, waiting for approval by reviewer: 1 batch";
    assert_eq!(count(&said, line), 1, "{said:#?}");
    let (code, text) = project.milepost(&["approve", "join", "--why", "seen"]);
    assert_eq!(code, 0, "{text}");
    watch.until("complete in");
    watch.waits();
    assert_eq!(project.read(PAGE), "Hello Ann\nHello Bo\nHello Cy");
    assert_eq!(watch.end(), (Some(130), vec![]));
}

#[test]
fn it_runs_shows_why_and_ends_with_ctrl_c() {
    let project = Project::letters();
    let watch = Session::start(&project, "");
    let said = watch.waits();
    let text = project.normalized(said.join("\n").as_bytes());
    assert_eq!(
        text,
        "\
watching workspace (press Ctrl-C to stop)

  1 copy  will run 3 batches
          never run  person_1, person_2, person_10
  2 join  will run
          never run

copy  up to date  3 batches ran  …
join  up to date  ran  …

complete in …
outputs  workspace/outputs/page.txt
waiting for changes"
    );
    watch.at_once(|| project.write("workspace/inputs/person_2.json", "{\"name\": \"Bea\"}\n"));
    let text = project.normalized(watch.waits().join("\n").as_bytes());
    let from = text.find("input inputs").unwrap();
    let to = text[from..].find("  person_2").unwrap() + from;
    assert_eq!(
        format!("{}CHANGE{}", &text[..from], &text[to..]),
        "
  1 copy  will run 1 of 3 batches, 2 up to date
          CHANGE  person_2
  2 join  may run
          if copy changes intermediate/person_2.json

copy  up to date  1 ran, 2 up to date  …
join  up to date  ran  …

complete in …
outputs  workspace/outputs/page.txt
waiting for changes"
    );
    assert_eq!(project.read(PAGE), "Hello Ann\nHello Bea\nHello Cy");
    assert_eq!(watch.end(), (Some(130), vec![]));
    assert_eq!(project.output("verify").code, 0);
}

#[test]
fn an_editors_ways_to_save_are_changes_like_any_other() {
    for arguments in ["", "--poll=0.1"] {
        let project = Project::letters();
        let watch = Session::start(&project, arguments);
        watch.waits();
        let file = project.at("workspace/inputs/person_1.json");
        let beside = project.at("workspace/inputs/.person_1.json.swp");
        // Written aside and renamed over, with what vim tries first.
        watch.at_once(|| {
            project.write("workspace/inputs/4913", "");
            project.remove("workspace/inputs/4913");
            std::fs::write(&beside, "{\"name\": \"Ada\"}\n").unwrap();
            std::fs::rename(&beside, &file).unwrap();
        });
        watch.waits();
        assert_eq!(project.read(PAGE), "Hello Ada\nHello Bo\nHello Cy");
        // Moved away as a backup, and made anew.
        watch.at_once(|| {
            std::fs::rename(&file, project.at("workspace/inputs/person_1.json~")).unwrap();
            project.write("workspace/inputs/person_1.json", "{\"name\": \"Al\"}\n");
        });
        watch.waits();
        assert_eq!(project.read(PAGE), "Hello Al\nHello Bo\nHello Cy");
        // Deleted and made anew.
        watch.at_once(|| {
            std::fs::remove_file(&file).unwrap();
            project.write("workspace/inputs/person_1.json", "{\"name\": \"Amy\"}\n");
        });
        watch.waits();
        assert_eq!(project.read(PAGE), "Hello Amy\nHello Bo\nHello Cy");
        // A file of another name in a folder that was not there.
        watch.at_once(|| project.write("workspace/notes/deep/person_3.json", "{}"));
        watch.at_once(|| project.write("workspace/inputs/person_3.json", "{\"name\": \"Di\"}\n"));
        watch.waits();
        assert_eq!(
            project.read(PAGE),
            "Hello Amy\nHello Bo\nHello Di\nHello Cy"
        );
        assert_eq!(watch.end(), (Some(130), vec![]), "{arguments}");
    }
}

#[test]
fn thousands_of_changes_at_once_are_one_run() {
    let project = counting();
    let watch = Session::start(&project, "");
    watch.waits();
    assert_eq!(project.read(PAGE), "1 0");
    // More than the kernel keeps in its queue.
    watch.at_once(|| {
        for round in 0..4 {
            for n in 1..2000 {
                project.write(
                    &format!("workspace/inputs/{n}.json"),
                    format!("{{\"n\": {round}}}"),
                );
            }
        }
    });
    let said = watch.waits();
    assert_eq!(project.read(PAGE), "2000 5997");
    assert_eq!(count(&said, "complete in"), 1, "{said:#?}");
    // What follows is heard of.
    watch.at_once(|| project.write("workspace/inputs/0.json", "{\"n\": 3}"));
    let said = watch.waits();
    assert_eq!(project.read(PAGE), "2000 6000");
    assert_eq!(count(&said, "complete in"), 1, "{said:#?}");
    assert_eq!(watch.end(), (Some(130), vec![]));
}

#[test]
fn what_changes_during_a_run_is_run_after_it() {
    for arguments in ["", "--poll=0.1"] {
        let gate = Gate::new();
        let (project, outside) = trying(Some(&gate));
        project.remove("workspace/inputs/person_2.json");
        project.remove("workspace/inputs/person_10.json");
        let watch = Session::start(&project, arguments);
        gate.open(|| project.write("workspace/inputs/person_1.json", "{\"name\": \"Ada\"}\n"));
        let said = watch.until("out of date after");
        assert_eq!(count(&said, "  1 copy  will run"), 1, "{said:#?}");
        let said = watch.until("  1 copy  will run");
        assert_eq!(count(&said, "out of date after"), 0, "{said:#?}");
        gate.open(|| ());
        watch.until("complete in");
        watch.waits();
        assert_eq!(project.read(PAGE), "Hello Ada", "{arguments}");
        assert_eq!(tries(&outside), ["person_1", "person_1"]);
        assert_eq!(watch.end(), (Some(130), vec![]));
    }
}

#[test]
fn what_failed_is_tried_again_only_when_what_it_is_made_from_changes() {
    let (project, outside) = trying(None);
    project.write("workspace/inputs/person_2.json", "{}");
    let watch = Session::start(&project, "-k");
    let failed = "1 batch failed: copy/person_2; rerun when an input changes, or now with milepost run --keep-going --until-paid --failed";
    let said = watch.waits();
    assert_eq!(said[said.len() - 2..], [failed, WAITS]);
    assert_eq!(tries(&outside), ["person_1", "person_2", "person_10"]);
    watch.at_once(|| project.write("workspace/inputs/person_1.json", "{\"name\": \"Ada\"}\n"));
    let said = watch.waits();
    assert_eq!(said[said.len() - 2..], [failed, WAITS], "{said:#?}");
    assert_eq!(tries(&outside)[3..], ["person_1"]);
    watch.at_once(|| project.write("workspace/inputs/person_2.json", "{\"name\": \"Bo\"}\n"));
    watch.waits();
    assert_eq!(tries(&outside)[4..], ["person_2"]);
    assert_eq!(project.read(PAGE), "Hello Ada\nHello Bo\nHello Cy");
    assert_eq!(watch.end(), (Some(130), vec![]));
    assert_eq!(project.output("verify").code, 0);
}

#[test]
fn only_what_is_selected_is_run() {
    let project = Project::letters();
    let watch = Session::start(&project, "copy");
    watch.waits();
    watch.at_once(|| {
        project.edit("stages/2_join.toml", "+ \" \"", "+ \", \"");
        project.write("workspace/inputs/person_1.json", "{\"name\": \"Ada\"}\n");
    });
    let said = watch.waits();
    assert_eq!(count(&said, "complete in"), 1, "{said:#?}");
    assert!(!project.at(PAGE).exists());
    assert_eq!(watch.end(), (Some(130), vec![]));
    let mut wrong = project.command(&["watch", "nobody"]);
    assert_eq!(project.output_of(&mut wrong).code, 2);
}

#[test]
fn programs_read_a_line_for_each_event() {
    let project = Project::letters();
    let watch = Session::start(&project, "--json");
    let said = watch.until("{\"event\":\"waiting\"");
    let events: Vec<String> = said
        .iter()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["event"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(events, ["watching", "plan", "ended", "waiting"]);
    assert_eq!(watch.end(), (Some(130), vec![]));
}
