//! States after a power failure, by seeds.

use crate::store::disk::Disk;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Power;

/// What a folder holds after each of many failures of the power, after `work` was done on the disk and told.
fn after(in_order: bool, before: &[(&str, &str)], work: fn(&mut Power, &Path)) -> BTreeSet<String> {
    let mut states = BTreeSet::new();
    for seed in 0..200 {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let disk = Disk::real();
        for (name, text) in before {
            disk.write_atomic(&root.join(name), text.as_bytes())
                .unwrap();
        }
        let mut power = Power::new(&root, seed * 2 + u64::from(!in_order));
        work(&mut power, &root);
        power.off();
        let all = walkdir::WalkDir::new(&root).sort_by_file_name();
        let files = all
            .into_iter()
            .flatten()
            .filter(|entry| entry.file_type().is_file());
        let shown = files.map(|entry| {
            let text = fs::read_to_string(entry.path()).unwrap().replace('\0', "0");
            let name = entry
                .path()
                .strip_prefix(&root)
                .unwrap()
                .display()
                .to_string();
            format!("{name}={text}")
        });
        states.insert(shown.collect::<Vec<_>>().join(" "));
    }
    states
}

fn set(states: &[&str]) -> BTreeSet<String> {
    states.iter().map(|state| (*state).to_owned()).collect()
}

fn append(path: &Path, text: &str) {
    Disk::real()
        .open_append(path)
        .unwrap()
        .write_bytes(text.as_bytes())
        .unwrap();
}

#[test]
fn what_was_flushed_stays() {
    let states = after(false, &[], |power, root| {
        append(&root.join("a"), "12");
        power.made(&root.join("a"));
        power.flushed(&root.join("a"));
        power.flushed(root);
    });
    assert_eq!(states, set(&["a=12"]));
}

#[test]
fn what_was_not_flushed_is_there_missing_cut_or_zeros() {
    let states = after(true, &[("a", "1")], |power, root| {
        append(&root.join("a"), "23");
        power.made(&root.join("a"));
    });
    assert_eq!(
        states,
        set(&["a=1", "a=12", "a=123", "a=10", "a=100", "a=120", "a=103"])
    );
    let states = after(true, &[], |power, root| {
        append(&root.join("a"), "1");
        power.made(&root.join("a"));
    });
    assert_eq!(states, set(&["", "a=", "a=0", "a=1"]));
}

#[test]
fn a_rename_that_was_not_flushed_happened_or_not_or_by_halves() {
    let work = |power: &mut Power, root: &Path| {
        power.going(&root.join("b"));
        fs::rename(root.join("a"), root.join("b")).unwrap();
        power.renamed(&root.join("a"), &root.join("b"));
    };
    let before = [("a", "1"), ("b", "2")];
    assert_eq!(after(true, &before, work), set(&["a=1 b=2", "b=1"]));
    let all = ["a=1 b=2", "b=1", "b=2", "a=1 b=1"];
    assert_eq!(after(false, &before, work), set(&all));
}

#[test]
fn a_folder_that_was_not_flushed_takes_what_is_in_it_along() {
    let states = after(false, &[], |power, root| {
        let disk = Disk::real();
        disk.create_dir_all(&root.join("d")).unwrap();
        disk.write_atomic(&root.join("d/a"), b"1").unwrap();
        power.flushed(&root.join("d/a"));
        power.flushed(&root.join("d"));
    });
    assert_eq!(states, set(&["", "d/a=1"]));
}

#[test]
fn a_folder_that_was_removed_comes_back_with_whole_files_or_not() {
    let states = after(true, &[("a", "1")], |power, root| {
        let disk = Disk::real();
        disk.create_dir_all(&root.join("d")).unwrap();
        disk.rename(&root.join("a"), &root.join("d/a")).unwrap();
        power.flush_all();
        power.going(&root.join("d"));
        disk.remove_dir_all(&root.join("d")).unwrap();
        power.removed(&root.join("d"));
    });
    assert_eq!(states, set(&["", "d/a=1"]));
}

#[test]
fn what_a_program_wrote_is_flushed_with_everything() {
    let states = after(true, &[], |power, root| {
        append(&root.join("a"), "1");
        power.flush_all();
        append(&root.join("b"), "2");
    });
    assert_eq!(states, set(&["a=1", "a=1 b=", "a=1 b=0", "a=1 b=2"]));
}
