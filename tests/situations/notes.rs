//! A run with nothing to do leaves notes. The next run checks only these, and finds every change that a whole check finds.

use super::letters::{NOTES, PAGE, checked, letters};
use crate::situations::mounted::Mounted;
use crate::support::required::require;
use crate::support::{Project, RunResult};
use std::os::unix::fs::MetadataExt as _;

#[test]
fn reports_what_a_whole_check_reports() {
    let project = checked();
    let quick = project.run_unplanned(&[]);
    project.remove(NOTES);
    let look = project.run_unplanned(&[]);
    let without_time = |ran: &RunResult| {
        let lines = ran.output.lines();
        lines
            .filter(|line| !line.contains(" s"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(quick.code, 0);
    assert_eq!(without_time(&quick), without_time(&look));
    assert!(quick.records.is_empty());
}

#[test]
fn what_the_project_says_is_seen() {
    let project = checked();
    project.edit("filters/clean.jq", "ascii_upcase", "ascii_downcase");
    let ran = project.run(&[]);
    assert_eq!(
        (ran.code, project.read("workspace/outputs/page.md")),
        (0, PAGE.to_lowercase().replace("dear", "Dear"))
    );

    let mut project = checked();
    project.env("TONE", "loud");
    assert_eq!(project.run(&[]).code, 0);
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.replace("plain", "loud")
    );

    let project = checked();
    project.edit("tools/greet.sh", "%s, %s", "%s: %s");
    assert_eq!(project.run(&[]).code, 0);
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.replace("Dear,", "Dear:")
    );

    let project = checked();
    assert_eq!(project.run(&["--set", "greeting=Hi"]).code, 0);
    assert_eq!(
        project.read("workspace/outputs/page.md"),
        PAGE.replace("Dear", "Hi")
    );
}

#[test]
fn milepost_s_own_files_are_seen() {
    let project = checked();
    project.remove("workspace/stage_2_complete.json");
    project.run(&[]).expect(0, &[]);
    assert!(project.exists("workspace/stage_2_complete.json"));

    let project = checked();
    project.edit(
        "workspace/stage_2_complete.json",
        "\"complete\"",
        "\"partial\"",
    );
    assert_eq!(project.run(&[]).code, 5);

    let project = checked();
    let page = "workspace/manifests/greet/page_0001.sha256";
    let text = project.read(page);
    project.write(page, &text[..text.find("# end").unwrap()]);
    let ran = project.run_unplanned(&[]);
    assert!(
        ran.code != 0 && ran.output.contains("page_0001.sha256"),
        "{} {}",
        ran.code,
        ran.output
    );
}

#[test]
fn torn_notes_are_nothing_to_go_by() {
    let project = checked();
    let notes = std::fs::read(project.at(NOTES)).unwrap();
    project.write(NOTES, &notes[..notes.len() / 2]);
    project.run(&[]).expect(0, &[]);
    assert_eq!(std::fs::read(project.at(NOTES)).unwrap(), notes);
}

#[test]
fn what_milepost_wrote_itself_is_not_read_again() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"notes\"\n"),
        (
            "stages/1_note.toml",
            r#"[[step]]
jq = '1'
out = "note"

[[step]]   # a file is put in place a tick of the clock after it was written
command = ["sh", "-c", 'begin=$(date +%s%N); while [ $(($(date +%s%N) - begin)) -lt 50000000 ]; do :; done; echo >$0', "{{ paths.later }}"]
out = "later"

[outputs]
note = { path = "outputs/note.json", schema = false }
later = { path = "outputs/later.txt", schema = false }
"#,
        ),
    ]);
    // Where temporary files are usually kept, times tell more than in memory.
    let disk = tempfile::tempdir().unwrap();
    let workspace = disk.path().join("workspace");
    let device = std::fs::metadata(disk.path()).unwrap().dev();
    // Temporary files may be in memory or on another machine.
    let is_local = rustix::fs::major(device) != 0;
    let image = disk.path().join("image");
    let mounted = (!is_local).then(|| Mounted::ext4(&workspace, &image, &[]));
    let _mounted = require!(mounted.transpose());
    let words = |command| [command, "--workspace", workspace.to_str().unwrap()];
    let (code, output) = project.milepost(&words("run"));
    assert_eq!(code, 0, "{output}");
    let notes = std::fs::read(workspace.join(".milepost/glance")).unwrap();
    let name = b"note.json";
    let at = notes.windows(name.len()).rposition(|part| part == name);
    // An entry begins with how its file is known: 1 by its stamp, 2 by its content, which must be read.
    let known = notes[at.unwrap() - 3];
    assert_eq!(known, 1);
    // A change that keeps size and time is noticed.
    let note = workspace.join("outputs/note.json");
    let time = std::fs::metadata(&note).unwrap().modified().unwrap();
    std::fs::write(&note, "2\n").unwrap();
    let open = std::fs::File::options().write(true).open(&note).unwrap();
    open.set_modified(time).unwrap();
    let (_, plan) = project.milepost(&words("plan"));
    assert!(plan.contains("outputs/note.json"), "{plan}");
}

#[test]
fn an_output_that_changed_between_its_maker_and_its_reader_is_noticed() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"edited\"\n"),
        (
            "stages/1_note.toml",
            "[step]\njq = '1'\n[outputs]\nnote = { path = \"intermediate/note.json\", schema = false }\n",
        ),
        (
            "stages/3_end.toml",
            "[inputs]\nnote = \"intermediate/note.json\"\nedited = \"intermediate/edited.txt\"\n\
             [step]\njq = '$note'\n[outputs]\nend = { path = \"outputs/end.json\", schema = false }\n",
        ),
    ]);
    // A person edits the file while the run goes on.
    let note = project.at("workspace/intermediate/note.json");
    project.write(
        "stages/2_wait.toml",
        format!(
            "[step]\ncommand = 'echo 12 >{}; echo >{{{{ paths.edited }}}}'\n\
             [outputs]\nedited = {{ path = \"intermediate/edited.txt\", schema = false }}\n",
            note.display()
        ),
    );
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let (_, plan) = project.milepost(&["plan"]);
    assert!(plan.contains("stops the run: 1 modified file"), "{plan}");
    assert_eq!(project.run_unplanned(&[]).code, 5);
}

#[test]
fn a_file_on_a_further_page_of_a_manifest_is_explained() {
    let project = Project::new(&[
        ("milepost.toml", "name = \"many\"\n"),
        (
            "stages/1_many.toml",
            r#"[step]
command = ["sh", "-c", 'for n in $(seq 1001 2050); do echo $n >"${0%\**}$n.txt"; done', "{{ paths.part }}"]
[outputs]
part = { path = "parts/part_*.txt", schema = false }
"#,
        ),
        (
            "stages/2_end.toml",
            "[inputs]\npart = \"parts/part_2050.txt\"\n[step]\ncopy = \"part\"\n[outputs]\nend = { path = \"end.txt\", schema = false }\n",
        ),
    ]);
    let ran = project.run_unplanned(&[]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    let whys = [
        "parts/part_1001.txt",
        "parts/part_2050.txt",
        "end.txt",
        "many",
        "end",
    ];
    let told = |project: &Project| whys.map(|what| project.milepost(&["why", what, "--json"]));
    let by_notes = told(&project);
    project.remove(NOTES);
    assert_eq!(by_notes, told(&project));
    assert!(
        by_notes[1].1.contains("\"stage\":\"many\"")
            || by_notes[1].1.contains("\"stage\": \"many\""),
        "{}",
        by_notes[1].1
    );
}

#[test]
fn readers_report_the_same_by_notes() {
    let project = checked();
    for command in [
        &["plan", "--json"][..],
        &["status", "--json"],
        &["why", "clean", "--json"],
        &["why", "clean/person_1", "--json"],
        &["why", "join", "--json"],
        &["why", "workspace/outputs/page.md", "--json"],
        &["why", "workspace/inputs/person_1.json", "--json"],
        &["why", "clean/person_1"],
        &["plan"],
        &["status"],
    ] {
        let by_notes = project.milepost(command);
        let notes = std::fs::read(project.at(NOTES)).unwrap();
        project.remove(NOTES);
        let by_check = project.milepost(command);
        project.write(NOTES, notes);
        assert_eq!(by_notes, by_check, "{command:?}");
        assert_eq!(by_notes.0, 0, "{command:?}: {}", by_notes.1);
    }
    // An altered output is seen all the same.
    project.write("workspace/outputs/page.md", "another\n");
    let (_, status) = project.milepost(&["status"]);
    assert!(status.contains("modified"), "{status}");
    let (_, plan) = project.milepost(&["plan"]);
    assert!(plan.contains("outputs/page.md"), "{plan}");
}

#[test]
fn a_run_that_worked_leaves_what_a_long_look_would() {
    let mut project = letters();
    project.env("MILEPOST_AHEAD", "3600");
    assert_eq!(project.run(&[]).code, 0);
    let commands = [&["plan", "--json"][..], &["status", "--json"]];
    let told = |project: &Project| commands.map(|command| project.milepost(command));
    let by_notes = told(&project);
    let notes = std::fs::read(project.at(NOTES)).unwrap();
    project.remove(NOTES);
    assert_eq!(by_notes, told(&project));
    project.write(NOTES, notes);

    project.edit("workspace/inputs/person_2.json", "Bo", "Bea");
    let all = ["clean/person_2", "greet/person_2", "join"];
    project.run(&[]).expect(0, &all);
    let page = PAGE.replace("BO", "BEA");
    assert_eq!(project.read("workspace/outputs/page.md"), page);
    let by_notes = told(&project);
    project.remove(NOTES);
    assert_eq!(by_notes, told(&project));
}

/// What happens to a workspace between two runs.
type Change = fn(&Project, u64);

const CHANGES: [Change; 14] = [
    |_, _| {},
    |project, n| project.write(&person(n), format!(r#"{{"id": {n}, "name": "New {n}"}}"#)),
    |project, n| project.write(&person(n % 3), r#"{"id": 7, "name": "Same"}"#),
    |project, n| touch(project, any(project, "inputs", n)),
    |project, n| remove(project, any(project, "inputs", n)),
    |project, n| {
        for m in 0..20 {
            touch(project, any(project, "inputs", m));
        }
        project.write(&person(n), format!(r#"{{"id": {n}, "name": "Late"}}"#));
    },
    |project, n| remove(project, any(project, "intermediate/clean", n)),
    |project, n| remove(project, any(project, "intermediate/letters", n)),
    |project, n| {
        write(
            project,
            any(project, "intermediate/letters", n),
            "altered\n",
        );
    },
    |project, _| remove(project, any(project, "outputs", 0)),
    |project, n| {
        if let Some(path) = any(project, "intermediate/clean", n) {
            project.write_with_mtime_kept(&path, "{}");
        }
    },
    |project, n| {
        let page = "{% for letter in letters %}{{ letter }}{% endfor %}";
        project.write("templates/page.md", format!("{n} {page}"));
    },
    |project, n| {
        let two = (any(project, "inputs", n), any(project, "inputs", n + 1));
        if let (Some(one), Some(other)) = two {
            let held = (project.read(&one), project.read(&other));
            project.write(&one, held.1);
            project.write(&other, held.0);
        }
    },
    |project, _| project.write("workspace/notes.txt", "nobody asks for it"),
];

fn touch(project: &Project, path: Option<String>) {
    if let Some(path) = path {
        project.set_mtime(&path, crate::support::long_ago());
    }
}

fn remove(project: &Project, path: Option<String>) {
    if let Some(path) = path {
        project.remove(&path);
    }
}

fn write(project: &Project, path: Option<String>, text: &str) {
    if let Some(path) = path {
        project.write(&path, text);
    }
}

fn person(n: u64) -> String {
    format!("workspace/inputs/person_{}.json", n % 20)
}

/// One of the files in a folder; none when there is none.
fn any(project: &Project, folder: &str, n: u64) -> Option<String> {
    let names = project.list(folder);
    let name = names.get(n as usize % names.len().max(1))?;
    Some(format!("workspace/{folder}/{name}"))
}

/// Two workspaces go through the same; one never has notes. All that runs do must be the same.
#[test]
fn runs_do_the_same_with_and_without_notes() {
    for seed in 1..=4_u64 {
        let mut random = seed;
        let mut next = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        let mut by_notes = letters();
        by_notes.env("MILEPOST_AHEAD", "3600");
        let mut by_check = by_notes.without_results();
        by_check.env("MILEPOST_AHEAD", "3600");
        let mut quick = 0;
        for step in 0..12 {
            let changes: Vec<(usize, u64)> = (0..next() % 3)
                .map(|_| ((next() % 14) as usize, next()))
                .collect();
            let arguments: &[&str] = match next() % 6 {
                0 => &["-B", "greet"],
                1 => &["--limit", "2"],
                2 => &["clean"],
                _ => &[],
            };
            let mut ran = Vec::new();
            for project in [&by_notes, &by_check] {
                for (change, n) in &changes {
                    CHANGES[*change](project, *n);
                }
                ran.push(project.run_unplanned(arguments));
            }
            let at = format!("seed {seed}, step {step}: {changes:?} {arguments:?}");
            let (one, two) = (&ran[0], &ran[1]);
            assert_eq!(
                (one.code, one.tried(), one.retired()),
                (two.code, two.tried(), two.retired()),
                "{at}\n{}\n{}",
                one.output,
                two.output
            );
            assert_eq!(by_notes.output_digests(), by_check.output_digests(), "{at}");
            if one.code == 0 && arguments.is_empty() {
                by_notes.check_checkpoints();
            }
            quick += usize::from(one.records.is_empty() && one.code == 0);
            // What was altered by hand would stop all that follows.
            for project in [&by_notes, &by_check] {
                if one.code == 5 {
                    project.run_unplanned(&["--force"]);
                }
            }
            if by_check.exists(NOTES) {
                by_check.remove(NOTES);
            }
        }
        assert!(quick > 0, "seed {seed}: no run had nothing to do");
    }
}
