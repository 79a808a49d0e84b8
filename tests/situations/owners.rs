//! A file with the bytes that Milepost recorded is its own, whichever batch or stage writes it next.

use crate::support::Project;

/// A stage whose program writes `NAME of STAGE` to each output.
fn stage(name: &str, outputs: &[&str]) -> String {
    let mut text = format!(
        "[step]\ncommand = [\"sh\", \"-c\", 'for o in \"$@\"; do echo \"$(basename \"$o\") of {name}\" > \"$o\"; done', \"sh\""
    );
    for output in outputs {
        text.push_str(&format!(", \"{{{{ paths.{output} }}}}\""));
    }
    text.push_str("]\n\n[outputs]\n");
    for output in outputs {
        text.push_str(&format!("{output} = \"outputs/{output}.txt\"\n"));
    }
    text
}

fn two_stages(first: &[&str], second: &[&str]) -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"owners\"\n"),
        ("stages/1_first.toml", &stage("first", first)),
        ("stages/2_second.toml", &stage("second", second)),
    ])
}

/// Runs after a change that lets other batches write the same files: nobody is accused, and nothing of a person is moved.
#[track_caller]
fn runs_without_a_question(project: &Project, tried: &[&str], files: &[(&str, &str)]) {
    project.run(&[]).expect(0, tried);
    for (path, text) in files {
        assert_eq!(project.read(path), *text);
    }
    let quarantine = project.quarantine();
    assert!(
        !quarantine.iter().any(|path| path.contains("modified")),
        "{quarantine:?}"
    );
    project.run(&[]).expect(0, &[]);
    let (code, said) = project.milepost(&["verify"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn an_output_moves_to_an_earlier_stage() {
    let project = two_stages(&["a"], &["b", "c"]);
    project.run(&[]).expect(0, &["first", "second"]);
    project.write("stages/1_first.toml", stage("first", &["a", "b"]));
    project.write("stages/2_second.toml", stage("second", &["c"]));
    let files = [
        ("workspace/outputs/b.txt", "b.txt of first\n"),
        ("workspace/outputs/c.txt", "c.txt of second\n"),
    ];
    runs_without_a_question(&project, &["first", "second"], &files);
}

#[test]
fn stages_exchange_their_outputs() {
    let project = two_stages(&["a"], &["b"]);
    project.run(&[]).expect(0, &["first", "second"]);
    project.write("stages/1_first.toml", stage("first", &["b"]));
    project.write("stages/2_second.toml", stage("second", &["a"]));
    let files = [
        ("workspace/outputs/b.txt", "b.txt of first\n"),
        ("workspace/outputs/a.txt", "a.txt of second\n"),
    ];
    runs_without_a_question(&project, &["first", "second"], &files);
}

#[test]
fn a_file_that_a_person_wrote_is_still_theirs() {
    let project = two_stages(&["a"], &["b", "c"]);
    project.run(&[]).expect(0, &["first", "second"]);
    project.write("stages/1_first.toml", stage("first", &["a", "b"]));
    project.write("stages/2_second.toml", stage("second", &["c"]));
    project.write("workspace/outputs/b.txt", "mine\n");
    project.run(&[]).expect(5, &[]).says("outputs/b.txt");
    assert_eq!(project.read("workspace/outputs/b.txt"), "mine\n");
}

/// A batch for each row, whose output is named by the column `file`.
fn rows(program: &str, output: &str, table: &str) -> Project {
    let stage = format!(
        "[each.r]\nfrom = \"inputs/rows.csv\"\nselect = '.[]'\nkey = '.id'\n\n[step]\ncommand = [\"sh\", \"-c\", '{program}', \"sh\", \"{{{{ r.id }}}}\", \"{{{{ paths.o }}}}\"]\n\n[outputs]\no = \"{output}\"\n"
    );
    Project::new(&[
        ("milepost.toml", "name = \"rows\"\n"),
        ("stages/1_work.toml", &stage),
        ("workspace/inputs/rows.csv", table),
    ])
}

#[test]
fn batches_exchange_their_outputs() {
    let project = rows(
        "echo $1 > \"$2\"",
        "outputs/{{ r.file }}.txt",
        "id,file\n1,x\n2,y\n",
    );
    project.run(&[]).expect(0, &["work/1", "work/2"]);
    project.write("workspace/inputs/rows.csv", "id,file\n1,y\n2,x\n");
    let files = [
        ("workspace/outputs/x.txt", "2\n"),
        ("workspace/outputs/y.txt", "1\n"),
    ];
    runs_without_a_question(&project, &["work/1", "work/2"], &files);
}

#[test]
fn an_output_that_is_a_folder_of_another_is_an_error_before_anything_runs() {
    let project = rows("true", "outputs/{{ r.file }}", "id,file\n1,x\n2,y\n");
    project.edit(
        "stages/1_work.toml",
        "o = ",
        "p = \"outputs/{{ r.id }}/z\"\no = ",
    );
    project.write("workspace/inputs/rows.csv", "id,file\n1,2\n2,y\n");
    project.run(&[]).expect(1, &[]).says(
        "batch `1` of stage `work` would write the file `outputs/2`, and batch `2` would write `outputs/2/z` in it: choose another path for one of them",
    );
    assert!(!project.exists("workspace/outputs"));
}

#[test]
fn batches_exchange_the_names_of_an_output_with_a_star() {
    for jobs in ["1", "2"] {
        let program = "mkdir -p outputs; echo $1 > \"outputs/${3}_$1.txt\"; echo $1 > \"outputs/${3}_all.txt\"";
        let project = rows(program, "outputs/{{ r.file }}_*.txt", "id,file\n1,x\n2,y\n");
        project.edit(
            "stages/1_work.toml",
            "\"{{ paths.o }}\"]",
            "\"\", \"{{ r.file }}\"]",
        );
        project.run(&["-j", jobs]).expect(0, &["work/1", "work/2"]);
        project.write("workspace/inputs/rows.csv", "id,file\n1,y\n2,x\n");
        let files = [
            ("workspace/outputs/x_all.txt", "2\n"),
            ("workspace/outputs/y_all.txt", "1\n"),
            ("workspace/outputs/x_2.txt", "2\n"),
            ("workspace/outputs/y_1.txt", "1\n"),
        ];
        project.run(&["-j", jobs]).expect(0, &["work/1", "work/2"]);
        runs_without_a_question(&project, &[], &files);
        for gone in ["x_1", "y_2"] {
            assert!(!project.exists(&format!("workspace/outputs/{gone}.txt")));
        }
    }
}

#[test]
fn a_file_where_an_output_needs_a_folder_is_an_error_before_anything_runs() {
    let project = two_stages(&["a"], &["b"]);
    project.run(&[]).expect(0, &["first", "second"]);
    project.edit(
        "stages/1_first.toml",
        "outputs/a.txt",
        "outputs/b.txt/c.txt",
    );
    let (code, plan) = project.milepost(&["plan"]);
    let both = "of `outputs/b.txt` and `outputs/b.txt/c.txt`, one is a file and the other is in it";
    assert!(code == 4 && plan.contains(both), "{plan}");
    project.edit("stages/1_first.toml", "b.txt/c.txt", "a.txt/c.txt");
    let why = "output `a`: `outputs/a.txt/c.txt`: `outputs/a.txt` is a file, and the output is in a folder of this name: remove it, or choose another path";
    let (_, plan) = project.milepost(&["plan"]);
    assert!(plan.contains(why), "{plan}");
    project.run(&[]).expect(1, &[]).says(why);
    project.remove("workspace/outputs/a.txt");
    project.run(&[]).expect(0, &["first"]);
    assert_eq!(
        project.read("workspace/outputs/a.txt/c.txt"),
        "c.txt of first\n"
    );
}

#[test]
fn manifests_that_are_gone_are_rebuilt_from_the_journal() {
    let project = two_stages(&["a"], &["b", "c"]);
    project.run(&[]).expect(0, &["first", "second"]);
    let manifest = "workspace/manifests/second/page_0001.sha256";
    let whole = project.read(manifest);
    let gone = |path: &str| std::fs::remove_dir_all(project.at(path)).unwrap();
    for path in ["workspace/manifests", "workspace/manifests/second"] {
        gone(path);
        let (code, status) = project.milepost(&["status"]);
        assert!(code == 0 && !status.contains("modified"), "{status}");
        let (code, said) = project.milepost(&["verify"]);
        let missing = "missing  manifests/second (of second): it lacks pages: the next run rebuilds it from the journal\n";
        assert!(code == 5 && said.contains(missing), "{said}");
        assert!(!said.contains("modified "), "{said}");
        let ran = project.run(&[]);
        ran.expect(0, &[])
            .says("recovered: rebuilt manifests/second from the journal: it was missing");
        assert_eq!(project.read(manifest), whole);
        let (code, said) = project.milepost(&["verify"]);
        assert_eq!(code, 0, "{said}");
    }
}

/// A stage whose manifest has two pages.
fn two_pages() -> Project {
    let ids: String = (1..=1100).map(|id| format!("{id}\n")).collect();
    let project = rows("echo $1 > $2", "outputs/{{ r.id }}", &format!("id\n{ids}"));
    assert_eq!(project.run_unplanned(&[]).code, 0);
    assert!(project.exists("workspace/manifests/work/page_0002.sha256"));
    project
}

#[test]
fn a_page_that_is_gone_is_rebuilt_from_the_journal() {
    let project = two_pages();
    for page in ["page_0001", "page_0002"] {
        let page = format!("workspace/manifests/work/{page}.sha256");
        let whole = project.read(&page);
        project.remove(&page);
        let (code, status) = project.milepost(&["status"]);
        assert!(code == 0 && !status.contains("modified"), "{status}");
        let (code, said) = project.milepost(&["verify"]);
        let missing = "missing  manifests/work (of work): it lacks pages: the next run rebuilds it from the journal\n";
        assert!(code == 5 && said.contains(missing), "{said}");
        assert!(!said.contains("modified "), "{said}");
        let ran = project.run(&[]);
        ran.expect(0, &[])
            .says("recovered: rebuilt manifests/work from the journal");
        assert_eq!(project.read(&page), whole);
        let (code, said) = project.milepost(&["verify"]);
        assert_eq!(code, 0, "{said}");
    }
}

/// The journal that began anew does not know the batches of the page that is left.
#[test]
fn a_page_that_the_journal_does_not_know_is_not_replaced() {
    let project = two_pages();
    std::fs::remove_dir_all(project.at("workspace/.milepost/journal")).unwrap();
    project
        .run_unplanned(&["--force", "work/1100"])
        .expect(0, &["work/1100"]);
    let left = project.read("workspace/manifests/work/page_0001.sha256");
    project.remove("workspace/manifests/work/page_0002.sha256");
    for command in ["status", "plan", "run"] {
        let (code, said) = project.milepost(&[command]);
        let why = "page_0002.sha256, line 1: the page is missing, and the journal does not record its batches";
        assert!(code == 1 && said.contains(why), "{said}");
    }
    let page = project.read("workspace/manifests/work/page_0001.sha256");
    assert_eq!(page, left);
}

#[test]
fn a_damaged_page_is_an_error_and_accuses_nobody() {
    let project = two_pages();
    let page = "workspace/manifests/work/page_0002.sha256";
    let whole = project.read(page);
    let lines: Vec<&str> = whole.lines().rev().collect();
    for damaged in [&whole[..whole.len() / 2], &lines.join("\n")] {
        project.write(page, damaged);
        for command in ["status", "plan", "run"] {
            let (code, said) = project.milepost(&[command]);
            assert!(
                code == 1 && said.contains("The manifest was damaged"),
                "{said}"
            );
            assert!(!said.contains("by hand"), "{said}");
        }
    }
    project.write(page, whole);
    project.run(&[]).expect(0, &[]);
}

#[test]
fn a_journal_that_is_gone_accuses_nobody() {
    for gone in ["workspace/.milepost/journal", "workspace/.milepost"] {
        let project = two_stages(&["a"], &["b", "c"]);
        project.run(&[]).expect(0, &["first", "second"]);
        std::fs::remove_dir_all(project.at(gone)).unwrap();
        for _ in 0..2 {
            let (code, said) = project.milepost(&["verify"]);
            let missing = "missing  manifests/second (of second): the journal does not record it: restore `.milepost` from a copy\n";
            assert!(code == 5 && said.contains(missing), "{said}");
            // Nothing is said of outputs and single batches.
            assert!(
                !said.contains("(of second/") && !said.contains("outputs/"),
                "{said}"
            );
            project.run_unplanned(&[]).expect(0, &[]);
        }
    }
}
