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
    assert_eq!(project.output("gc --yes").out, "0 bytes freed\n");
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
    assert_eq!((code, text.contains("logs")), (0, false), "{text}");
    assert_eq!(logs(&project), kept);
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
                "left: .milepost/{name}: it is a symbolic link, and what it leads to is not removed\n"
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
