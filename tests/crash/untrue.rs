//! Lies that a crash could make a workspace tell, each looked for where it would begin.

use super::project::{assert_same, operations};
use crate::support::{Files, Project};
use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::event::{Event, Publish};
use milepost_store::store::disk::Disk;
use milepost_store::store::publish::{RecoveredFile, settle};
use std::fs;

const RUN: &[&str] = &["run"];

/// The small pipeline, run to its end.
fn done() -> Project {
    let project = Project::small();
    project.complete(RUN);
    project
}

/// A project made by `make`, in which a run was stopped before the first operation that matches.
fn stopped(make: impl Fn() -> Project, words: &[&str], matches: impl Fn(&str) -> bool) -> Project {
    for _ in 0..10 {
        let all = operations(&make(), words);
        let at = all.iter().position(|operation| matches(operation));
        let at = at.unwrap_or_else(|| panic!("nothing of that kind in {all:#?}"));
        let project = make();
        let list = tempfile::NamedTempFile::new().unwrap();
        let setting = format!("{},unflushed,list={}", at + 1, list.path().display());
        project.run_on_disk(words, &setting);
        // Threads may do their operations in another order the second time.
        let seen = fs::read_to_string(list.path()).unwrap();
        let mut seen = seen.lines();
        if seen.next_back().is_some_and(&matches) && !seen.any(&matches) {
            return project;
        }
    }
    panic!("never stopped where it was to");
}

/// Run to its end, and one input changed.
fn changed() -> Project {
    let project = done();
    project.input(2, "IfcDoor");
    project
}

/// The same, its second run stopped where what it made of the input was to be put in place.
fn changed_and_stopped() -> Project {
    stopped(changed, RUN, |operation| {
        renames(operation, "out/batch_2.json")
    })
}

fn renames(operation: &str, end: &str) -> bool {
    operation.starts_with("rename") && operation.ends_with(end)
}

/// Where a file lies in scratch that was published to a path that ends so, by the journal: the only one, and it is there.
fn in_scratch(project: &Project, end: &str) -> String {
    let journal = project.journal();
    let files = journal.iter().flat_map(|record| match &record.event {
        Event::Published { files, .. } => files.as_slice(),
        _ => &[],
    });
    let mut found = files.filter(|file| file.path.as_str().ends_with(end));
    let file = found
        .next()
        .unwrap_or_else(|| panic!("no {end} was published"));
    assert_eq!(found.next(), None);
    let there = project.workspace_files(&[".milepost/scratch"]);
    assert!(there.contains_key(file.scratch.as_str()), "{file:?}");
    format!("workspace/{}", file.scratch)
}

/// Events of the last run that match.
fn count(project: &Project, matches: impl Fn(&Event) -> bool) -> usize {
    let journal = project.journal();
    let last = journal.last().map(|record| record.run_id.clone());
    let of_last = journal
        .iter()
        .filter(|record| Some(&record.run_id) == last.as_ref());
    of_last.filter(|record| matches(&record.event)).count()
}

#[test]
fn a_retired_file_does_not_stay() {
    let make = || {
        let project = done();
        project.remove("workspace/inputs/batch_2.json");
        project
    };
    let whole = make();
    whole.complete(RUN);
    for end in ["out/batch_2.done", "out/batch_2.json"] {
        let project = stopped(make, RUN, |operation| {
            operation.contains("quarantine") && renames(operation, end)
        });
        assert!(
            project
                .outputs()
                .contains_key("intermediate/out/batch_2.json")
        );
        assert!(
            !project.state().stages["copy"]
                .batches
                .contains_key("batch_2")
        );
        project.complete(RUN);
        project.assert_complete(&whole.outputs());
    }
}

#[test]
fn a_file_that_is_made_no_more_does_not_stay() {
    let project = done();
    assert!(
        project
            .outputs()
            .contains_key("intermediate/batches/batch_2.json")
    );
    for number in [1, 2, 4] {
        project.remove(&format!("workspace/inputs/batch_{number}.json"));
    }
    project.complete(RUN);
    let made = project.outputs();
    let batches: Vec<_> = made
        .keys()
        .filter(|path| path.contains("/batches/"))
        .collect();
    assert_eq!(batches.len(), 1, "{batches:?}");
    // The elements that are left stay in the batch where they were, the second.
    assert!(!made.contains_key("intermediate/classified/batch_1.json"));
    let kept = project.workspace_files(&[".milepost/quarantine"]);
    let is_kept = |end: &str| kept.keys().any(|path| path.ends_with(end));
    assert!(
        is_kept("intermediate/out/batch_1.json"),
        "{:?}",
        kept.keys()
    );
}

#[test]
fn of_two_outputs_one_lost_both_are_made_again() {
    let whole = done();
    let expected = whole.outputs();
    // Nothing is in place yet, or the first is.
    for (at, lost) in [
        ("outputs/all.json", "outputs/all.json"),
        ("outputs/all.json", "outputs/count.json"),
        ("outputs/count.json", "outputs/count.json"),
    ] {
        let project = stopped(Project::small, RUN, |operation| renames(operation, at));
        project.remove(&in_scratch(&project, lost));
        project.complete(RUN);
        assert_same(&project.outputs(), &expected);
        let is_lost = |event: &Event| matches!(event, Event::Lost { stage, .. } if stage == "join");
        assert_eq!(count(&project, is_lost), 1);
        project.assert_checkpoints(&Files::new());
        project.assert_at_rest(RUN);
    }
}

#[test]
fn a_marker_never_stands_for_a_lost_output() {
    let publish = |name: &str, content: &str| Publish {
        scratch: RelPath::parse(&format!(".milepost/scratch/R/{name}")).unwrap(),
        path: RelPath::parse(&format!("intermediate/{name}")).unwrap(),
        old: None,
        new: Digest::of(content),
        quarantine: None,
        marker: content.is_empty(),
    };
    let files = [publish("a.json", "new"), publish("a.done", "")];
    // Where the marker lies: in scratch, or in place already, or from an earlier time.
    for places in [&["scratch/R"][..], &["place"], &["scratch/R", "place"]] {
        let project = Project::empty();
        for place in places {
            let place = match *place {
                "place" => "workspace/intermediate/a.done".to_owned(),
                other => format!("workspace/.milepost/{other}/a.done"),
            };
            project.write(&place, "");
        }
        let settled = settle(&Disk::real(), &project.layout(), &files).unwrap();
        assert_eq!(
            settled,
            [RecoveredFile::Lost { old: None }; 2],
            "{places:?}"
        );
        assert_eq!(project.outputs(), Files::new(), "{places:?}");
    }
}

#[test]
fn a_marker_goes_before_its_output_and_comes_after() {
    let project = changed();
    let all = operations(&project, RUN);
    let of = |start: &str, end: &str| {
        let found = all
            .iter()
            .position(|one| one.starts_with(start) && one.ends_with(end));
        found.unwrap_or_else(|| panic!("no {start} {end} in {all:#?}"))
    };
    let gone = of("remove", "out/batch_2.done");
    let output = of("rename", "out/batch_2.json");
    let marker = of("rename", "out/batch_2.done");
    assert!(gone < output && output < marker, "{all:#?}");
    let durable = all[output..marker]
        .iter()
        .any(|one| one.starts_with("flush"));
    assert!(durable, "{all:#?}");
}

#[test]
fn a_checkpoint_that_was_not_written_is_and_nothing_runs() {
    let expected = done().outputs();
    for end in ["stage_1_complete.json", ".stage_3_complete.json.tmp"] {
        let project = stopped(Project::small, RUN, |operation| operation.ends_with(end));
        let before = project.journal().len();
        project.complete(&["run", "--until", "copy"]);
        let later = &project.journal()[before..];
        let ran = later.iter().filter(|record| {
            matches!(&record.event, Event::AttemptStarted { stage, .. } if stage == "copy")
        });
        assert_eq!(ran.count(), 0, "{end}");
        let finished = later.iter().find_map(|record| match &record.event {
            Event::RunFinished { ran, .. } => Some(*ran),
            _ => None,
        });
        // Where the checkpoint of `copy` was complete, there was nothing to say.
        assert!(matches!(finished, None | Some(0)), "{end}: {finished:?}");
        assert!(project.at("workspace/stage_1_complete.json").exists());
        project.complete(RUN);
        project.assert_complete(&expected);
    }
}

#[test]
fn checkpoints_go_before_what_they_vouch_for() {
    let project = done();
    project.input(3, "IfcDoor");
    let all = operations(&project, RUN);
    let replaced = all.iter().position(|one| {
        let (action, path) = one.split_once(' ').unwrap();
        let path = path.split("/workspace/").nth(1).unwrap_or_default();
        let is_made = path.starts_with("intermediate/") || path.starts_with("outputs/");
        is_made && ["rename", "remove"].contains(&action)
    });
    let before = &all[..replaced.unwrap()];
    for number in 1..=5 {
        let removed = format!("stage_{number}_complete.json");
        let is_removed = |one: &String| one.starts_with("remove") && one.ends_with(&removed);
        let at = before.iter().position(is_removed);
        let at = at.unwrap_or_else(|| panic!("{removed} stays in {before:#?}"));
        assert!(before[at + 1].starts_with("flush"), "{before:#?}");
    }
}

#[test]
fn what_is_published_is_durable_before_it_is_in_place() {
    let project = Project::small();
    let all = operations(&project, RUN);
    let (mut scratch, mut journal) = (false, false);
    for one in &all {
        let (action, path) = one.split_once(' ').unwrap();
        let in_scratch = path.contains("/.milepost/scratch");
        let in_journal = path.contains("/.milepost/journal/");
        match action {
            "create" | "write" if in_scratch => scratch = true,
            "flush" if in_scratch => scratch = false,
            "write" if in_journal => journal = true,
            "flush" if in_journal => journal = false,
            "rename" if path.contains("/intermediate/") || path.contains("/outputs/") => {
                assert!(
                    !scratch,
                    "{path} is renamed before its data is durable: {all:#?}"
                );
                assert!(
                    !journal,
                    "{path} is renamed before its record is durable: {all:#?}"
                );
            }
            _ => {}
        }
    }
}

#[test]
fn an_import_is_whole_or_not_there() {
    let make = || {
        let project = Project::empty();
        project.write(
            "milepost.toml",
            "name = \"import\"\n[params]\nmodel = { file = \"inputs/first.txt\" }\n",
        );
        project.write(
            "stages/1_copy.toml",
            "[each.file]\npath = \"inputs/*\"\n[step]\ncommand = [\"cp\", \"{{ file.path }}\", \"{{ paths.copy }}\"]\n\
             [outputs]\ncopy = \"intermediate/{{ file.stem }}.txt\"\n",
        );
        project.write("workspace/inputs/first.txt", "first");
        project.write("outside.txt", "outside".repeat(1000));
        project
    };
    let words = ["run", "--set", "model=outside.txt"];
    let whole = make();
    let all = operations(&whole, &words);
    let known = whole.workspace_files(&["inputs"]);
    assert_eq!(
        known.keys().collect::<Vec<_>>(),
        ["inputs/first.txt", "inputs/outside.txt"]
    );
    let end = all.iter().position(|one| one.contains("journal")).unwrap();
    for n in 1..=end {
        for setting in [format!("{n},unflushed"), format!("{n}:half,unflushed")] {
            let project = make();
            project.run_on_disk(&words, &setting);
            for (path, bytes) in project.workspace_files(&["inputs"]) {
                assert_eq!(Some(&bytes), known.get(&path), "{path} at {setting}");
            }
            project.complete(&words);
            assert_same(&project.outputs(), &whole.outputs());
        }
    }
}

#[test]
fn a_change_that_keeps_size_and_time_is_noticed_after_a_crash() {
    let project = changed_and_stopped();
    let path = project.at("workspace/inputs/batch_2.json");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    project.input(2, "IfcWall");
    let size = fs::metadata(&path).unwrap().len();
    project.input(2, "IfcDoor");
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
    project.input(2, "IfcWall");
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    project.complete(RUN);
    assert_same(&project.outputs(), &done().outputs());
}

#[test]
fn a_run_with_nothing_to_do_touches_only_the_lock_and_the_cache() {
    let project = done();
    let journal = project.journal().len();
    for one in operations(&project, RUN) {
        // To be written, should there be something to say.
        if one.starts_with("open") && one.contains("/.milepost/journal/") {
            continue;
        }
        let file = one.rsplit('/').next().unwrap();
        let own = [
            "lock",
            ".stat-cache.tmp",
            "stat-cache",
            ".glance.tmp",
            "glance",
            ".glance-events.tmp",
            ".milepost",
        ];
        assert!(own.contains(&file), "{one}");
    }
    assert_eq!(project.journal().len(), journal);
}

#[test]
fn an_altered_output_is_never_written_over() {
    // By a person, after the run, while its input changed as well.
    let project = changed();
    project.write("workspace/intermediate/out/batch_2.json", "mine");
    let before = project.workspace_files(&["intermediate", "outputs", "manifests"]);
    let ended = project.run_on_disk(RUN, "unflushed");
    assert_eq!(ended.code, 5, "{}", ended.text());
    assert_same(
        &project.workspace_files(&["intermediate", "outputs", "manifests"]),
        &before,
    );
    project.complete(&["run", "-B"]);
    let kept = project.workspace_files(&[".milepost/quarantine"]);
    assert!(kept.values().any(|bytes| bytes == b"mine"));

    // By a person, between a crash and the next run, where the run before had not put its file yet.
    let project = changed_and_stopped();
    project.write("workspace/intermediate/out/batch_2.json", "mine");
    let ended = project.run_on_disk(RUN, "unflushed");
    assert_eq!(ended.code, 5, "{}", ended.text());
    let mine = fs::read_to_string(project.at("workspace/intermediate/out/batch_2.json"));
    assert_eq!(mine.unwrap(), "mine");
    project.complete(&["run", "-B"]);
    let kept = project.workspace_files(&[".milepost/quarantine"]);
    assert!(kept.values().any(|bytes| bytes == b"mine"));
    let expected = changed();
    expected.complete(RUN);
    assert_same(&project.outputs(), &expected.outputs());
}

#[test]
fn what_a_killed_run_left_is_flushed_before_anything_is_built_on_it() {
    let project = changed_and_stopped();
    let all = operations(&project, RUN);
    let flush = all
        .iter()
        .position(|one| one.starts_with("flush") && one.ends_with("/workspace"));
    let change = all.iter().position(|one| {
        let (action, path) = one.split_once(' ').unwrap();
        let is_lock = path.ends_with("/lock");
        !is_lock && ["write", "rename", "remove"].contains(&action)
    });
    assert!(flush.unwrap() < change.unwrap(), "{all:#?}");
    project.assert_complete(&project.outputs());
}

#[test]
fn what_a_killed_run_recorded_is_kept_when_a_run_of_other_stages_seals() {
    let make = || {
        let project = Project::small();
        project.write(
            "stages/9_other.toml",
            "[step]\njq = '1'\n[outputs]\nother = { path = \"outputs/other.json\", schema = false }\n",
        );
        project
    };
    let whole = make();
    whole.complete(RUN);
    // The batches of `copy` are finished, and no manifest has them.
    let project = stopped(make, RUN, |operation| {
        operation.starts_with("create") && operation.contains("manifests/copy/")
    });
    project.complete(&["run", "other"]);
    project.complete(RUN);
    project.assert_complete(&whole.outputs());
    project.assert_verified();

    // A stage is forgotten, and its manifest is still there.
    let make = || {
        let project = done();
        project.remove("stages/5_join.toml");
        project
    };
    let project = stopped(make, RUN, |operation| {
        operation.starts_with("remove") && operation.ends_with("manifests/join")
    });
    project.write(
        "stages/9_other.toml",
        "[step]\njq = '1'\n[outputs]\nother = { path = \"outputs/other.json\", schema = false }\n",
    );
    project.complete(RUN);
    assert!(!project.state().stages.contains_key("join"));
    project.assert_verified();
}

#[test]
fn a_retired_file_that_is_at_both_places_is_kept_once() {
    let make = || {
        let project = done();
        project.remove("workspace/inputs/batch_2.json");
        project
    };
    let whole = make();
    whole.complete(RUN);
    let project = stopped(make, RUN, |operation| {
        operation.contains("quarantine") && renames(operation, "out/batch_2.json")
    });
    let kept = project
        .journal()
        .into_iter()
        .find_map(|record| match record.event {
            Event::Retired { files, .. } => files
                .into_iter()
                .find(|(from, _)| from.as_str().ends_with("batch_2.json")),
            _ => None,
        });
    let (from, to) = kept.unwrap();
    let bytes = fs::read_to_string(project.at("workspace").join(from.as_str())).unwrap();
    project.write(&format!("workspace/{to}"), &bytes);
    project.complete(RUN);
    project.assert_complete(&whole.outputs());
}
