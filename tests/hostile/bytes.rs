//! `verify` finds a changed byte in every file that the record covers.

use crate::agents::pipeline::speller;
use crate::support::Project;
use milepost_core::base::digest::Digest;
use milepost_engine::ops::inspect::verify::{Severity, verify};

/// The positions that are flipped in each file, besides its first and last byte.
const SAMPLED: usize = 8;

/// A workspace that has every kind of file: calls and answers of an agent, checkpoints, manifests, progress, several segments.
fn ran() -> Project {
    let project = speller(1, "well");
    let ran = project.run_unplanned(&["--agent", "speller=tool"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    project
}

/// The files of a project that `verify` covers, without empty ones.
fn covered(project: &Project) -> Vec<String> {
    let mut paths = Vec::new();
    for folder in ["workspace", ".milepost"] {
        for entry in walkdir::WalkDir::new(project.at(folder)).sort_by_file_name() {
            let entry = entry.unwrap();
            let path = entry.path().strip_prefix(project.at("")).unwrap();
            let path = path.to_str().unwrap().to_owned();
            let uncovered = [
                "workspace/inputs/",
                "workspace/.milepost/logs/",
                "workspace/.milepost/glance",
                "workspace/.milepost/stat-cache",
            ];
            let is_uncovered = uncovered.iter().any(|start| path.starts_with(start));
            let is_file = entry.file_type().is_file() && entry.metadata().unwrap().len() > 0;
            if is_file && !is_uncovered && !path.ends_with("/lock") {
                paths.push(path);
            }
        }
    }
    paths
}

/// What `verify` says is altered, as text; empty if nothing is.
fn altered(project: &Project) -> String {
    match verify(&project.request(), false) {
        Ok(found) => {
            let altered = found.findings.iter();
            let altered = altered.filter(|finding| finding.severity <= Severity::Missing);
            let lines = altered.map(|finding| {
                format!(
                    "{}: {}\n",
                    finding.path.clone().unwrap_or_default(),
                    finding.message
                )
            });
            let lines: String = lines.collect();
            assert_eq!(lines.is_empty(), found.exit_code() == 0, "{lines}");
            lines
        }
        Err(error) => error.to_string(),
    }
}

/// `verify` must name a file once something was done to it.
#[track_caller]
fn is_named(project: &Project, path: &str, what: &str) {
    let told = altered(project);
    let name = path.rsplit('/').next().unwrap();
    assert!(told.contains(name), "{what}: {path}: {told}");
}

#[test]
fn every_flipped_bit_is_found() {
    let project = ran();
    assert_eq!(altered(&project), "");
    let files = covered(&project);
    for part in [
        "/.milepost/calls/",
        "/.milepost/answers/",
        "/.milepost/workspace.json",
        "/.milepost/journal-head.json",
        "/.milepost/journal/000001.jsonl",
        "/manifests/",
        "ask_progress.json",
        "/stage_3_complete.json",
        ".request",
        ".answer",
        "/outputs/",
    ] {
        assert!(
            files.iter().any(|path| path.contains(part)),
            "{part}: {files:?}"
        );
    }
    let mut flips = 0;
    for path in &files {
        let whole = project.bytes(path);
        let step = (whole.len() / SAMPLED).max(1);
        let sampled = (step / 2..whole.len()).step_by(step);
        for (at, place) in sampled.chain([0, whole.len() - 1]).enumerate() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << ((at + path.len()) % 8);
            std::fs::write(project.at(path), &damaged).unwrap();
            is_named(&project, path, &format!("byte {place}"));
            flips += 1;
        }
        std::fs::write(project.at(path), &whole).unwrap();
    }
    assert_eq!(altered(&project), "");
    eprintln!("{flips} flips in {} files", files.len());
}

#[test]
fn a_byte_more_is_found() {
    let project = ran();
    for path in covered(&project) {
        let whole = project.bytes(&path);
        for more in [" ", "\n", "x\n"] {
            let longer = [&whole[..], more.as_bytes()].concat();
            std::fs::write(project.at(&path), longer).unwrap();
            // A line that was begun is what a crash leaves; the next run removes it from the journal.
            let is_torn = more == " " && path.rsplit('.').next() == Some("jsonl")
                || path.ends_with("/000001.jsonl");
            if !is_torn {
                is_named(&project, &path, more);
            }
        }
        std::fs::write(project.at(&path), &whole).unwrap();
    }
}

#[test]
fn records_that_are_cut_off_are_missed() {
    let project = ran();
    let journal = "workspace/.milepost/journal";
    let head_path = "workspace/.milepost/journal-head.json";
    let last = format!("{journal}/000001.jsonl");
    let whole = project.bytes(&last);
    let lines = whole.split_inclusive(|&byte| byte == b'\n').count();
    for kept in 1..lines {
        let some: Vec<u8> = whole
            .split_inclusive(|&byte| byte == b'\n')
            .take(kept)
            .flatten()
            .copied()
            .collect();
        std::fs::write(project.at(&last), some).unwrap();
        is_named(&project, &last, &format!("{kept} of {lines} lines"));
    }
    // A run does not hide it: the head stays until a person looks.
    let head = project.bytes(head_path);
    let ran = project.run_unplanned(&["-B", "join", "--agent", "speller=tool"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_eq!(project.bytes(head_path), head);
    is_named(&project, &last, "after another run");
    project.remove(head_path);
    assert_eq!(altered(&project), "");
    let ran = project.run_unplanned(&["-B", "join", "--agent", "speller=tool"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert_ne!(project.bytes(head_path), head);
    assert_eq!(altered(&project), "");

    // A head that is damaged says what to do.
    let mut damaged = project.bytes(head_path);
    damaged[20] ^= 1;
    project.write(head_path, damaged);
    assert_eq!(
        altered(&project),
        ".milepost/journal-head.json: it does not match its own checksum. Restore it from a copy; if the journal is complete, remove \
         .milepost/journal-head.json: the next run writes it again\n"
    );
    project.remove(head_path);
    let ran = project.run_unplanned(&["-B", "join", "--agent", "speller=tool"]);
    assert_eq!(ran.code, 0, "{}", ran.output);
    assert!(project.at(head_path).exists());
    assert_eq!(altered(&project), "");

    // A whole segment.
    let files = project.list(".milepost/journal");
    let segment = files.last().unwrap();
    project.remove(&format!("{journal}/{segment}"));
    is_named(&project, segment, "segment");
}

#[test]
fn a_record_of_a_call_that_is_taken_out_is_missed() {
    let project = ran();
    let calls = project.list(".milepost/calls");
    let name = calls
        .iter()
        .find(|name| name.rsplit('.').next() == Some("jsonl"))
        .unwrap();
    let path = format!("workspace/.milepost/calls/{name}");
    let whole = project.read(&path);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for without in 0..lines.len() {
        let mut some = lines.clone();
        some.remove(without);
        project.write(&path, some.concat());
        is_named(&project, &path, &format!("line {without}"));
    }
    project.remove(&path);
    is_named(&project, &path, "the file");
}

#[test]
fn damaged_answers_of_the_project_hide_no_damaged_manifest() {
    let project = ran();
    project.write(".milepost/answers/x.jsonl", "damaged\nlines\n");
    let files = covered(&project);
    let page = files.iter().find(|path| path.contains("/manifests/"));
    let page = page.unwrap();
    let mut damaged = project.bytes(page);
    damaged[3] ^= 1;
    project.write(page, damaged);
    is_named(&project, page, "beside damaged answers");
    is_named(&project, ".milepost/answers/x.jsonl", "beside a page");
}

#[test]
fn a_record_of_a_call_by_a_newer_version_is_a_note() {
    let project = ran();
    let calls = project.list(".milepost/calls");
    let is_record = |name: &&String| name.rsplit('.').next() == Some("jsonl");
    let name = calls.iter().find(is_record).unwrap();
    let path = format!("workspace/.milepost/calls/{name}");
    let whole = project.read(&path);
    let text = "{\"newer\":[1]}";
    let newer = format!("{} {text}\n", Digest::of(text).hex());
    // Instead of each record, and behind them all.
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for at in 0..=lines.len() {
        let mut some = lines.clone();
        some.splice(at..(at + 1).min(lines.len()), [newer.as_str()]);
        project.write(&path, some.concat());
        let (code, text) = project.milepost(&["verify"]);
        let note = format!(
            "note     .milepost/calls/{name}: a newer Milepost wrote records of calls: they are not checked\n"
        );
        assert!(code == 0 && text.contains(&note), "line {at}: {text}");
    }
}

#[test]
fn files_without_the_new_checksums_are_said_to_be_uncovered() {
    let project = ran();
    for path in [
        "workspace/.milepost/workspace.json",
        "workspace/ask_progress.json",
    ] {
        let text = project.read(path);
        let (rest, _) = text.split_once(",\n  \"checksum\"").unwrap();
        project.write(path, format!("{rest}\n}}\n"));
    }
    project.remove("workspace/.milepost/journal-head.json");
    let (code, text) = project.milepost(&["verify"]);
    assert_eq!(code, 0, "{text}");
    let without = "an earlier version wrote it without a checksum: changes are not found";
    for line in [
        format!("note     .milepost/workspace.json: {without}\n"),
        format!("note     ask_progress.json: {without}\n"),
        "note     .milepost/journal-head.json: it does not exist: ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[test]
fn a_progress_file_that_is_garbage_is_written_again() {
    let project = ran();
    let path = "workspace/ask_progress.json";
    let whole = project.json(path);
    assert_eq!(project.run_unplanned(&[]).code, 0);
    for garbage in ["garbage", "{}", "{\"stage\": \"ask\"}", "\u{1}\n"] {
        project.write(path, garbage);
        is_named(&project, path, garbage);
        let ran = project.run_unplanned(&[]);
        assert_eq!(ran.code, 0, "{}", ran.output);
        let now = project.json(path);
        assert_eq!(
            (&now["completed_batches"], &now["status"]),
            (&whole["completed_batches"], &whole["status"])
        );
        assert_eq!(altered(&project), "");
        let ran = project.run_unplanned(&[]);
        ran.says("up to date: 3 stages, nothing changed");
    }
}
