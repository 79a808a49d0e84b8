//! Publishing and its recovery, quarantine, checkpoints and gc.

use super::place;
use super::sample::path;
use milepost_core::base::digest::Digest;
use milepost_core::model::checkpoint::{Checkpoint, Checksums, FORMAT, Status};
use milepost_core::model::event::Publish;
use milepost_store::store::disk::Disk;
use milepost_store::store::gc;
use milepost_store::store::layout::Layout;
use milepost_store::store::publish::{
    PublishError, RecoveredFile, flush_group, rename_into_place, settle,
};
use milepost_store::store::{checkpoint, quarantine};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

fn lay(layout: &Layout, file: &str, text: &str) {
    let file = layout.root().join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn text(layout: &Layout, file: &str) -> Option<String> {
    fs::read_to_string(layout.root().join(file)).ok()
}

fn one(old: Option<&str>, quarantine: Option<&str>) -> Publish {
    Publish {
        scratch: path(".milepost/scratch/R/s/b~1/x.json"),
        path: path("out/x.json"),
        old: old.map(Digest::of),
        new: Digest::of("new"),
        quarantine: quarantine.map(path),
        marker: false,
    }
}

#[test]
fn settles_as_the_table_says() {
    let lost = |old: Option<&str>| RecoveredFile::Lost {
        old: old.map(Digest::of),
    };
    // What was recorded as old, what lies in scratch and in place; what becomes of it, and what lies in place then.
    for (old, scratch, there, settled, after) in [
        (
            Some("old"),
            Some("new"),
            Some("new"),
            RecoveredFile::Done,
            Some("new"),
        ),
        (
            Some("old"),
            None,
            Some("new"),
            RecoveredFile::Done,
            Some("new"),
        ),
        (
            Some("old"),
            Some("new"),
            Some("old"),
            RecoveredFile::Renamed,
            Some("new"),
        ),
        (None, Some("new"), None, RecoveredFile::Renamed, Some("new")),
        (
            Some("old"),
            Some("new"),
            None,
            RecoveredFile::Renamed,
            Some("new"),
        ),
        (
            Some("old"),
            Some("ne"),
            Some("old"),
            lost(Some("old")),
            Some("old"),
        ),
        (Some("old"), None, None, lost(None), None),
        (None, Some(""), None, lost(None), None),
        (
            Some("old"),
            None,
            Some("mine"),
            RecoveredFile::Modified,
            Some("mine"),
        ),
        (
            Some("old"),
            Some("new"),
            Some("mine"),
            RecoveredFile::Modified,
            Some("mine"),
        ),
        (
            None,
            Some("new"),
            Some("mine"),
            RecoveredFile::Modified,
            Some("mine"),
        ),
    ] {
        let place = place();
        if let Some(scratch) = scratch {
            lay(&place.layout, ".milepost/scratch/R/s/b~1/x.json", scratch);
        }
        if let Some(there) = there {
            lay(&place.layout, "out/x.json", there);
        }
        let found = settle(&Disk::real(), &place.layout, &[one(old, None)]).unwrap();
        assert_eq!(found, [settled], "{old:?} {scratch:?} {there:?}");
        assert_eq!(text(&place.layout, "out/x.json").as_deref(), after);
    }
}

#[test]
fn what_was_altered_is_kept_before_it_is_replaced() {
    let place = place();
    lay(&place.layout, ".milepost/scratch/R/s/b~1/x.json", "new");
    lay(&place.layout, "out/x.json", "mine");
    let folder = quarantine::folder("01KAK2Y9R00000000000000000", 1, "altered");
    let to = folder.with(&path("out/x.json"));
    let publish = one(Some("mine"), Some(to.as_str()));
    flush_group(
        &Disk::real(),
        &place.layout,
        std::slice::from_ref(&publish.scratch),
    )
    .unwrap();
    rename_into_place(&Disk::real(), &place.layout, &[publish], &mut |_| {}).unwrap();
    quarantine::write_reason(&Disk::real(), &place.layout, &folder, "by hand").unwrap();
    assert_eq!(text(&place.layout, "out/x.json").as_deref(), Some("new"));
    assert_eq!(text(&place.layout, to.as_str()).as_deref(), Some("mine"));
    let next = quarantine::next_sequence(&place.layout, "01KAK2Y9R00000000000000000");
    assert_eq!(next, 2);
    let entries = quarantine::list(&place.layout).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].files, entries[0].size), (2, 11));
    assert!(entries[0].since.is_some());
}

#[test]
fn each_folder_is_flushed_once() {
    let place = place();
    let files: Vec<Publish> = (0..100)
        .map(|n| {
            let scratch = format!(".milepost/scratch/R/{n}");
            lay(&place.layout, &scratch, "new");
            Publish {
                scratch: path(&scratch),
                path: path(&format!("out/{n}.json")),
                old: None,
                new: Digest::of("new"),
                quarantine: None,
                marker: false,
            }
        })
        .collect();
    let scratch: Vec<_> = files.iter().map(|file| file.scratch.clone()).collect();
    let disk = Disk::real();
    flush_group(&disk, &place.layout, &scratch).unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(disk.count(), 1);
    }
    let disk = Disk::real();
    rename_into_place(&disk, &place.layout, &files, &mut |_| {}).unwrap();
    assert_eq!(disk.count(), 2 + 100 + 1);
}

#[test]
fn an_output_folder_that_leads_out_is_refused() {
    let place = place();
    let other = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(other.path(), place.layout.root().join("out")).unwrap();
    lay(&place.layout, ".milepost/scratch/R/s/b~1/x.json", "new");
    let refused = rename_into_place(
        &Disk::real(),
        &place.layout,
        &[one(None, None)],
        &mut |_| {},
    );
    assert!(matches!(refused, Err(PublishError::Leaves { .. })));
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
}

fn sample() -> Checkpoint {
    let digest = Digest::of("x");
    Checkpoint {
        stage: "parse".into(),
        number: 1,
        status: Status::Complete,
        timestamp: "2026-11-21T10:00:00Z".parse().unwrap(),
        output_file: Some(path("intermediate/parsed_data.json")),
        output_files: Vec::new(),
        element_count: Some(3),
        checksums: Checksums {
            input: digest,
            output: digest,
        },
        summary: None,
        failed: BTreeMap::new(),
        verdict: None,
        overrides: Vec::new(),
        approval: None,
        batches: 1,
        fingerprint: BTreeMap::new(),
        inputs: BTreeMap::new(),
        schemas: BTreeMap::new(),
        manifest: path("manifests/parse"),
        run_id: "R".into(),
        spent: None,
        duration_s: 0.5,
        milepost: "0.1.0".into(),
        format: FORMAT,
    }
}

#[test]
fn checkpoints_are_written_read_and_removed() {
    let place = place();
    let (disk, layout) = (Disk::real(), &place.layout);
    assert_eq!(checkpoint::read(layout, 1).unwrap(), None);
    let digest = checkpoint::write(&disk, layout, &sample()).unwrap();
    let found = checkpoint::read(layout, 1).unwrap().unwrap();
    assert_eq!((found.checkpoint, found.digest), (sample(), digest));
    let bytes = fs::read(layout.checkpoint(1)).unwrap();
    assert_eq!(Digest::of(bytes), digest);
    lay(layout, "stage_2_complete.json", "{\"format\": 7}");
    lay(layout, "stage_3_complete.json", "{\"stage\":");
    let same = fs::read_to_string(layout.checkpoint(1)).unwrap();
    lay(layout, "stage_4_complete.json", &same);
    let all = checkpoint::list(layout).unwrap();
    let said: Vec<String> = all
        .values()
        .map(|found| {
            found
                .as_ref()
                .map_or_else(ToString::to_string, |_| "read".into())
        })
        .collect();
    assert_eq!(said[0], "read");
    assert!(
        said[1].ends_with("newer Milepost (format 7; this one reads up to 2): update milepost")
    );
    assert!(said[2].contains("stage_3_complete.json is not a checkpoint: EOF"));
    assert!(said[3].contains("it is of stage number 1"));
    assert!(checkpoint::remove(&disk, layout, 1).unwrap());
    assert!(!checkpoint::remove(&disk, layout, 1).unwrap());
    assert_eq!(checkpoint::read(layout, 1).unwrap(), None);
}

#[test]
fn gc_finds_what_nobody_needs() {
    let place = place();
    let layout = &place.layout;
    for (file, text) in [
        (".milepost/scratch/DEAD/s/b~1/x", "12345"),
        (".milepost/scratch/LIVE/s/b~1/x", "1"),
        (
            ".milepost/quarantine/01KAK2Y9R00000000000000000-0001-retired/a",
            "123",
        ),
        (".milepost/journal/000001.jsonl", ""),
        (".milepost/.workspace.json.tmp", "12"),
        (".stage_1_complete.json.tmp", "1"),
        (".mine.tmp", "1"),
        ("manifests/parse/.page_0001.sha256.tmp", "1"),
    ] {
        lay(layout, file, text);
    }
    let live = BTreeSet::from(["LIVE".to_owned()]);
    let found = gc::find(layout, &live, None).unwrap();
    let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
    let leftovers = [
        ".milepost/scratch/DEAD",
        ".milepost/.workspace.json.tmp",
        ".stage_1_complete.json.tmp",
        "manifests/parse/.page_0001.sha256.tmp",
    ];
    assert_eq!(paths, leftovers);
    let later = "2030-01-01T00:00:00Z".parse().unwrap();
    let found = gc::find(layout, &live, Some(later)).unwrap();
    assert_eq!(found.len(), 5);
    for one in &found {
        gc::remove(&Disk::real(), layout, one).unwrap();
    }
    let sizes = found.iter().map(|one| one.size);
    assert_eq!(sizes.sum::<u64>(), 5 + 3 + 2 + 1 + 1);
    assert_eq!(gc::find(layout, &live, Some(later)).unwrap(), []);
    assert!(layout.segment(1).exists());
    assert!(layout.root().join(".mine.tmp").exists());
}
