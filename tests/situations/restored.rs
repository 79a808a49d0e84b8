//! Outputs of a batch that left and comes back with the same facts are restored from quarantine: nothing runs.

use crate::crash::project::operations;
use crate::crash::sweep::{at_each, is_every, stops};
use crate::support::Project;

/// Two stages, each with a batch for each input.
fn chain(names: &[&str]) -> Project {
    let stage = |from: &str, to: &str| {
        format!(
            r#"[each.f]
path = "{from}/*.txt"

[step]
command = ["sh", "-c", 'cat "$1" > "$2"', "sh", "{{{{ f.path }}}}", "{{{{ paths.o }}}}"]

[outputs]
o = "{to}/{{{{ f.stem }}}}.txt"
"#
        )
    };
    let project = Project::new(&[
        ("milepost.toml", "name = \"chain\"\n"),
        ("stages/1_take.toml", &stage("inputs", "work")),
        ("stages/2_copy.toml", &stage("work", "outputs")),
    ]);
    for name in names {
        write(&project, name, &format!("{name}\n"));
    }
    project
}

fn write(project: &Project, name: &str, text: &str) {
    project.write(&format!("workspace/inputs/{name}.txt"), text);
}

/// The batches `a` and `b` ran, and `b` has left.
fn b_has_left() -> Project {
    let project = chain(&["a", "b"]);
    project
        .run(&[])
        .expect(0, &["copy/a", "copy/b", "take/a", "take/b"]);
    project.remove("workspace/inputs/b.txt");
    project.run(&[]).expect(0, &[]);
    assert_eq!(project.quarantine(), ["outputs/b.txt", "work/b.txt"]);
    project
}

#[test]
fn a_batch_that_comes_back_with_the_same_facts_does_not_run() {
    let project = b_has_left();
    write(&project, "b", "b\n");
    let (code, plan) = project.milepost(&["plan"]);
    assert_eq!(code, 0, "{plan}");
    for text in [
        "restores 1 batch from quarantine",
        "restored from quarantine: b",
        "2 batches restored from quarantine",
    ] {
        assert!(plan.contains(text), "{plan}");
    }
    for batch in ["take/b", "copy/b"] {
        let (_, why) = project.milepost(&["why", batch]);
        let text = "its outputs are restored from quarantine, without a run";
        assert!(why.contains(text), "{why}");
    }
    let (_, status) = project.milepost(&["status"]);
    let text = "1 batch will be restored from quarantine";
    assert!(status.contains(text), "{status}");

    let restored = project.run(&[]);
    restored.expect(0, &[]).says("1 restored");
    assert_eq!(restored.restored(), ["copy/b", "take/b"]);
    assert_eq!(project.read("workspace/outputs/b.txt"), "b\n");
    assert_eq!(project.quarantine(), [] as [&str; 0]);
    assert_eq!(project.list(".milepost/quarantine"), [] as [&str; 0]);
    project.run(&[]).expect(0, &[]).says("nothing changed");
    let (code, said) = project.milepost(&["verify"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_batch_that_comes_back_with_other_facts_runs() {
    let project = b_has_left();
    write(&project, "b", "other\n");
    project.run(&[]).expect(0, &["copy/b", "take/b"]);
    assert_eq!(project.read("workspace/outputs/b.txt"), "other\n");
    assert_eq!(project.quarantine(), ["outputs/b.txt", "work/b.txt"]);
    // It leaves again, and comes back as it was first.
    project.remove("workspace/inputs/b.txt");
    project.run(&[]).expect(0, &[]);
    write(&project, "b", "b\n");
    project.run(&[]).expect(0, &[]);
    assert_eq!(project.read("workspace/outputs/b.txt"), "b\n");
}

#[test]
fn what_is_not_as_recorded_is_not_restored() {
    for change in ["modified", "missing", "no record", "in the way", "forced"] {
        let project = b_has_left();
        let files = project.list(".milepost/quarantine");
        let file = |end: &str| {
            let mut files = files.iter();
            let file = files.find(|file| file.contains("take") && file.ends_with(end));
            format!("workspace/.milepost/quarantine/{}", file.unwrap())
        };
        let (mut code, mut words, mut tried) = (0, vec![], vec!["take/b"]);
        match change {
            "modified" => project.write(&file("work/b.txt"), "mine\n"),
            "missing" => project.remove(&file("work/b.txt")),
            "no record" => project.write(&file("record.json"), "{"),
            "in the way" => {
                project.write("workspace/work/b.txt", "b\n");
                (code, tried) = (5, vec![]);
            }
            _ => words = vec!["-B", "take/b"],
        }
        write(&project, "b", "b\n");
        let ran = project.run(&words);
        ran.expect(code, &tried);
        // Its output is as before.
        let restored = if change == "missing" || change == "no record" || change == "modified" {
            vec!["copy/b"]
        } else {
            vec![]
        };
        assert_eq!(ran.restored(), restored, "{change}");
    }
}

#[test]
fn a_stage_that_comes_back_does_not_run() {
    let project = chain(&["a", "b"]);
    project
        .run(&[])
        .expect(0, &["copy/a", "copy/b", "take/a", "take/b"]);
    project.rename("stages/2_copy.toml", "2_copy.toml");
    project.run(&[]).expect(0, &[]);
    assert!(!project.exists("workspace/outputs/a.txt"));
    project.rename("2_copy.toml", "stages/2_copy.toml");
    project.run(&[]).expect(0, &[]).says("2 restored");
    assert_eq!(project.read("workspace/outputs/a.txt"), "a\n");
    project.run(&[]).expect(0, &[]).says("nothing changed");
}

#[test]
fn an_input_that_is_as_before_a_failure_restores_the_output() {
    let project = chain(&["a", "aa"]);
    project.edit("stages/1_take.toml", "cat \"$1\" >", "grep a \"$1\" >");
    let all = ["copy/a", "copy/aa", "take/a", "take/aa"];
    project.run(&[]).expect(0, &all);
    write(&project, "a", "wrong\n");
    project.run(&["-k"]).expect(1, &["take/a"]);
    assert!(!project.exists("workspace/work/a.txt"));
    write(&project, "a", "a\n");
    let ran = project.run(&[]);
    ran.expect(0, &[]);
    assert_eq!(ran.restored(), ["take/a"]);
    project.run(&[]).expect(0, &[]).says("nothing changed");
}

#[test]
fn a_batch_with_a_long_name_is_restored() {
    let name = "ä".repeat(100);
    let project = chain(&["a", &name]);
    project.run_unplanned(&[]);
    project.remove(&format!("workspace/inputs/{name}.txt"));
    project.run(&[]).expect(0, &[]);
    write(&project, &name, &format!("{name}\n"));
    project.run(&[]).expect(0, &[]).says("1 restored");
}

#[test]
fn more_batches_than_a_slice_are_restored() {
    let names: Vec<String> = (100..140).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let project = chain(&names);
    project.run_unplanned(&[]);
    let before = project.output_digests();
    project.rename("workspace/inputs", "inputs");
    write(&project, "100", "100\n");
    project.run(&[]).expect(0, &[]);
    project.rename("workspace/inputs", "one");
    project.rename("inputs", "workspace/inputs");
    project.run(&[]).expect(0, &[]).says("39 restored");
    assert!(before == project.output_digests());
}

#[test]
fn a_run_that_is_stopped_while_it_restores_continues_to_the_same_bytes() {
    let base = b_has_left();
    write(&base, "b", "b\n");
    let whole = base.copy();
    let operations = operations(&whole, &["run"]);
    let expected = whole.output_digests();
    at_each(&operations, &stops(&operations, 24), |stop| {
        let project = base.copy();
        project.run_on_disk(&["run"], &stop.setting);
        if is_every(stop.at, 3) {
            let setting = format!("{},unflushed", stop.at % 20 + 1);
            project.run_on_disk(&["run"], &setting);
        }
        project.run(&[]).expect(0, &[]);
        assert!(project.output_digests() == expected);
        project.assert_verified();
        let mut began = project.records();
        began.retain(|record| record["kind"] == "attempt_started");
        assert_eq!(began.len(), 4);
        project.run(&[]).expect(0, &[]).says("nothing changed");
    });
}
