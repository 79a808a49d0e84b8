//! The output of a batch altered with its mtime kept, with a new mtime, cut to nothing, deleted.

use super::super::letters::completed;
use super::{both, matches_a_fresh_run};
use crate::support::Project;

/// An output, and the batch that makes it.
pub struct Output {
    pub path: &'static str,
    pub batch: &'static str,
}

const LETTER: Output = Output {
    path: "intermediate/letters/person_2.txt",
    batch: "greet/person_2",
};

/// Runs stop before they do anything, name the file and the ways on, and leave everything as it is; `run --force` makes the
/// file again, only it, and keeps what was there.
pub fn is_noticed_and_refused(output: &Output, alter: fn(&Project, &str)) {
    both(|project| {
        let path = format!("workspace/{}", output.path);
        let made = project.read(&path);
        alter(project, &path);
        let (altered, before) = (project.read(&path), project.digests());
        assert_ne!(altered, made);
        let (_, status) = project.milepost(&["status"]);
        assert!(status.contains("modified"), "{status}");
        for _ in 0..2 {
            let ran = project.run(&[]);
            ran.expect(5, &[])
                .says(output.path)
                .says("accept")
                .says("--force");
            let others = before
                .keys()
                .filter(|other| *other != output.path && other.contains('/'));
            for other in others {
                assert!(
                    !ran.output.contains(other.as_str()),
                    "{other}: {}",
                    ran.output
                );
            }
        }
        assert_eq!(project.digests(), before);
        project
            .run(&["--force", output.batch])
            .expect(0, &[output.batch]);
        assert_eq!(project.read(&path), made);
        let kept = project.list(".milepost/quarantine");
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert!(kept[0].ends_with("/WHY.txt"), "{kept:?}");
        let kept = format!("workspace/.milepost/quarantine/{}", kept[1]);
        assert!(kept.ends_with(output.path), "{kept}");
        assert_eq!(project.read(&kept), altered);
        matches_a_fresh_run(project);
    });
}

/// A run makes it again, and nothing else.
pub fn is_made_again(output: &Output, path: &str) {
    both(|project| {
        project.remove(&format!("workspace/{path}"));
        project.run(&[]).expect(0, &[output.batch]);
        matches_a_fresh_run(project);
    });
}

/// The same size.
pub fn another_content(project: &Project, path: &str) -> String {
    let text = project.read(path);
    let other = text.replace("BO", "BA");
    assert_eq!((text == other, text.len()), (false, other.len()));
    other
}

#[test]
fn altered_with_its_mtime_kept() {
    is_noticed_and_refused(&LETTER, |project, path| {
        project.write_with_mtime_kept(path, another_content(project, path));
    });
}

#[test]
fn altered_with_a_new_mtime() {
    is_noticed_and_refused(&LETTER, |project, path| {
        project.write(path, another_content(project, path));
    });
}

#[test]
fn cut_to_0_bytes() {
    is_noticed_and_refused(&LETTER, |project, path| project.write(path, ""));
}

#[test]
fn cut_to_0_bytes_with_its_mtime_kept() {
    is_noticed_and_refused(&LETTER, |project, path| {
        project.write_with_mtime_kept(path, "");
    });
}

#[test]
fn deleted() {
    is_made_again(&LETTER, LETTER.path);
}

#[test]
fn altered_where_the_stage_says_that_it_is_made_again() {
    let project = completed();
    let stage = project.read("stages/2_greet.toml");
    let policy = "\n[policy]\naltered = \"redo\"\n";
    project.write("stages/2_greet.toml", format!("{stage}{policy}"));
    project.write("workspace/intermediate/letters/person_2.txt", "Dear me");
    project.run(&[]).expect(0, &["greet/person_2"]);
    assert_eq!(project.quarantine(), ["WHY.txt", LETTER.path]);
    matches_a_fresh_run(&project);
}
