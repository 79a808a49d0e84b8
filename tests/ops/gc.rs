//! `gc`: logs that no record names, and what it leaves alone.

use crate::support::{Project, files_below, temporary};
use std::os::unix::fs::symlink;

/// Two batches that print.
fn printing() -> Project {
    Project::new(&[
        ("milepost.toml", "name = \"printing\"\n"),
        (
            "stages/1_copy.toml",
            r#"[each.item]
path = "inputs/*.txt"

[step]
command = ["sh", "-c", 'echo "copies $1"; cat "$1"; cp "$1" "$2"', "copy", "{{ item.path }}", "{{ paths.copy }}"]

[outputs]
copy = "outputs/{{ item.stem }}.txt"
"#,
        ),
        ("workspace/inputs/a.txt", "a\n"),
        ("workspace/inputs/b.txt", "b\n"),
    ])
}

/// Returns the runs with logs, in their order.
fn runs(project: &Project) -> Vec<String> {
    let logs = project.list(".milepost/logs");
    let runs = logs
        .iter()
        .map(|log| log.split('/').next().unwrap().to_owned());
    let mut runs: Vec<String> = runs.collect();
    runs.dedup();
    runs
}

/// Returns the logs of each run.
fn logs(project: &Project) -> Vec<Vec<String>> {
    let of = |run: &String| project.list(&format!(".milepost/logs/{run}"));
    runs(project).iter().map(of).collect()
}

#[test]
fn old_logs_go_unless_a_record_names_their_attempt() {
    let project = printing();
    assert_eq!(project.run(&[]).code, 0);
    project.write("workspace/inputs/b.txt", "c\n");
    assert_eq!(project.run(&[]).code, 0);
    let [first, second] = &logs(&project)[..] else {
        panic!("{:?}", logs(&project));
    };
    assert_eq!((first.len(), second.len()), (2, 1));
    let (a, b) = (vec![first[0].clone()], second.clone());
    assert_eq!(
        numbers_left_out(&project.output("gc --yes").out),
        "left: .milepost/journal: N file, N bytes: records of runs are never removed\n\
         left: .milepost/logs: N files, N bytes: `--older-than` removes old ones that no record names\n\
         N bytes freed\n"
    );
    assert_eq!(logs(&project).concat().len(), 3);
    let (code, text) = project.milepost(&["gc", "--older-than", "1ms", "--yes"]);
    assert_eq!(code, 0, "{text}");
    let run = &runs(&project)[0];
    assert!(
        text.starts_with("logs  1 file  ") && text.contains(&format!("  .milepost/logs/{run}\n")),
        "{text}"
    );
    assert_eq!(logs(&project), [a, b]);
    // The log of a failed batch stays as well.
    project.edit("stages/1_copy.toml", "cat", "exit 1; cat");
    assert_eq!(project.run(&["--keep-going"]).code, 1);
    let kept = logs(&project);
    let (code, text) = project.milepost(&["gc", "--older-than", "1ms", "--yes"]);
    let left = text.split_inclusive('\n');
    let left: String = left.filter(|line| line.starts_with("left:")).collect();
    assert_eq!(
        (code, numbers_left_out(&left).as_str()),
        (
            0,
            "left: .milepost/journal: N file, N bytes: records of runs are never removed\n\
             left: .milepost/logs: N files, N bytes: of attempts that a record names, of failed batches, or younger\n"
        )
    );
    assert_eq!(logs(&project), kept);
}

/// Returns a text with `N` for each number.
fn numbers_left_out(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || c == ',';
    let words = text.split(' ').map(|word| {
        let is_number = !word.is_empty() && word.trim_start_matches(is_number).is_empty();
        if is_number { "N" } else { word }
    });
    let text = words.collect::<Vec<_>>().join(" ");
    text.replace("\n0 bytes", "\nN bytes")
}

#[test]
fn many_runs_share_a_segment_of_the_journal() {
    let project = printing();
    for _ in 0..20 {
        assert_eq!(project.output("-q --force").code, 0);
    }
    assert_eq!(project.list(".milepost/journal"), ["000001.jsonl"]);
    let verified = project.output("verify");
    assert_eq!(verified.code, 0, "{}", verified.out);
}

#[test]
fn a_run_removes_nothing_behind_a_link() {
    let project = printing();
    assert_eq!(project.run(&[]).code, 0);
    let elsewhere = temporary();
    std::fs::create_dir_all(elsewhere.path().join("gone/1")).unwrap();
    std::fs::write(elsewhere.path().join("gone/1/mine.txt"), "mine").unwrap();
    let place = project.at("workspace/.milepost/rounds");
    symlink(elsewhere.path(), &place).unwrap();
    let ran = project.run_unplanned(&["--force"]);
    ran.says("it is a symbolic link: replace it with a folder");
    assert_eq!(ran.code, 1, "{}", ran.output);
    assert!(elsewhere.path().join("gone/1/mine.txt").exists());
    std::fs::remove_file(&place).unwrap();
    assert_eq!(project.run(&["--force"]).code, 0);
}

#[test]
fn nothing_behind_a_link_is_removed() {
    for name in [
        "answers",
        "calls",
        "logs",
        "quarantine",
        "accepted",
        "scratch",
    ] {
        let project = printing();
        assert_eq!(project.run(&[]).code, 0);
        let elsewhere = temporary();
        let run = &runs(&project)[0];
        for file in [
            format!("{run}/000001.request"),
            format!("{run}.jsonl"),
            "00000000010000000000000000.jsonl".to_owned(),
            "ab/cd".to_owned(),
            "mine.txt".to_owned(),
        ] {
            let place = elsewhere.path().join(file);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, "mine").unwrap();
        }
        let before = files_below(elsewhere.path(), |_| true);
        let place = project.at(&format!("workspace/.milepost/{name}"));
        if place.exists() {
            std::fs::remove_dir_all(&place).unwrap();
        }
        symlink(elsewhere.path(), &place).unwrap();
        let (code, text) = project.milepost(&["gc", "--older-than", "1ms", "--yes"]);
        assert_eq!(code, 0, "{name}: {text}");
        // A link in place of scratch files goes itself.
        if name != "scratch" {
            let left = format!(
                "left: .milepost/{name}: it is a symbolic link, and its target is not removed\n"
            );
            assert!(text.contains(&left), "{name}: {text}");
            assert!(place.is_symlink(), "{name}");
        }
        assert!(
            files_below(elsewhere.path(), |_| true) == before,
            "{name}: {text}"
        );
    }
}
