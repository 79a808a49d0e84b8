//! Journals on the disk: what one run knew the next one reads, and wherever one ends, a run can begin.

use super::machine::{Seed, event, seeds};
use super::project::{assert_same, operations};
use super::sweep::in_parallel;
use crate::support::{Files, Project};
use milepost_core::base::digest::Digest;
use milepost_core::model::checkpoint::Status;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::fingerprint::Facts;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::state::{Phase, StageState, State};
use milepost_engine::ops::project::lock::lock_and_read;
use milepost_engine::ops::project::{Request, open};
use milepost_engine::run::record::recorder::Recorder;
use milepost_store::store::disk::Disk;
use milepost_store::store::manifest::kept;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Opens a workspace, records what can follow, seals here and there, and gives what is known at the end.
fn lived(project: &Project, seeds: &[Seed]) -> Result<State, TestCaseError> {
    let disk = Disk::from_setting(Some("unflushed"));
    let request = Request {
        disk,
        ..Request::new(project.path().to_owned(), BTreeMap::new())
    };
    let mut opened = open(&request).unwrap();
    let held = lock_and_read(&mut opened, "test").unwrap();
    let mut recorder = Recorder::new(opened.context(), held.state, held.journal, "test");
    let record = |recorder: &mut Recorder<'_>, event: Event| {
        recorder.record(EventType::Invoke, "test", event, "")
    };
    let mut recorded = Vec::new();
    for seed in seeds {
        // Seals are the keeper's own, and are made when nothing runs and everything is in place.
        if seed.0 == 21 {
            let batches = recorder
                .state
                .stages
                .values()
                .flat_map(|stage| stage.batches.values());
            let is_tried =
                |phase: &Phase| matches!(phase, Phase::Running { .. } | Phase::Backoff { .. });
            let is_tried = batches.map(|batch| &batch.phase).any(is_tried);
            if !is_tried && recorder.state.children.is_empty() {
                record(&mut recorder, Event::Barrier).unwrap();
                recorded.push(Event::Barrier);
                recorder.seal().unwrap();
            }
            continue;
        }
        let event = event(*seed);
        let begun = recorder.has_begun();
        let before = recorder.state.clone();
        if record(&mut recorder, event.clone()).is_ok() {
            recorded.push(event);
        } else if begun {
            prop_assert_eq!(
                &recorder.state,
                &before,
                "{:?} was refused and changed the state",
                event
            );
        }
    }
    // What was refused is not written; a run begins by itself, and seals by itself.
    let is_own = |event: &Event| matches!(event, Event::RunStarted { .. } | Event::Sealed { .. });
    let written: Vec<Event> = project
        .journal()
        .into_iter()
        .filter(|record| record.run_id == recorder.run_id())
        .map(|record| record.event)
        .filter(|event| !is_own(event))
        .collect();
    recorded.retain(|event| !is_own(event));
    prop_assert_eq!(written, recorded);
    Ok(recorder.state)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_one_run_knew_the_next_one_reads(runs in prop::collection::vec(seeds(), 1..4)) {
        let project = Project::empty();
        project.write("milepost.toml", "name = \"x\"\n");
        project.write("stages/1_x.toml", "[step]\njq = '1'\n[outputs]\nx = { path = \"outputs/x.json\", schema = false }\n");
        for seeds in runs {
            let live = lived(&project, &seeds)?;
            let read = project.state();
            // Facts that no record names go at a seal; a run tells them again when it begins the stage.
            let known = |state: &State| -> BTreeMap<String, StageState> {
                state.stages.iter().map(|(name, stage)| (name.clone(), StageState { facts: BTreeMap::new(), ..kept(stage) })).filter(|(_, stage)| !stage.batches.is_empty()).collect()
            };
            prop_assert_eq!(known(&read), known(&live));
            // What a killed run leaves for the next to put in order.
            prop_assert_eq!(&read.unsettled, &live.unsettled);
            prop_assert_eq!(&read.retiring, &live.retiring);
            prop_assert_eq!(&read.children, &live.children);
            prop_assert_eq!(&read.checkpoints, &live.checkpoints);
            // `--force` of a run that did not get to everything survives a seal.
            prop_assert_eq!(&read.forced, &live.forced);
            // So does an approval.
            prop_assert_eq!(&read.approvals, &live.approvals);
        }
    }
}

/// A stage that stands under another number than when its manifest was written keeps it.
#[test]
fn the_number_that_a_checkpoint_gives_is_sealed() {
    let project = Project::empty();
    project.write("milepost.toml", "name = \"x\"\n");
    project.write(
        "stages/1_x.toml",
        "[step]\njq = '1'\n[outputs]\nx = { path = \"outputs/x.json\", schema = false }\n",
    );
    let disk = Disk::from_setting(Some("unflushed"));
    let request = Request {
        disk,
        ..Request::new(project.path().to_owned(), BTreeMap::new())
    };
    let mut opened = open(&request).unwrap();
    let held = lock_and_read(&mut opened, "test").unwrap();
    let mut recorder = Recorder::new(opened.context(), held.state, held.journal, "test");
    let stage = "x".to_owned();
    let started = |number| Event::StageStarted {
        stage: stage.clone(),
        number,
        shared: String::new(),
        facts: Facts::default(),
        batches: 1,
        will: 1,
    };
    let record = BatchRecord {
        key: "a".to_owned(),
        ..BatchRecord::default()
    };
    let events = [
        started(1),
        Event::AttemptStarted {
            stage: stage.clone(),
            batch: "a".to_owned(),
            attempt: 1,
        },
        Event::Published {
            stage: stage.clone(),
            record: Box::new(record),
            files: Vec::new(),
            retired: BTreeMap::new(),
        },
        Event::Barrier,
    ];
    for event in events {
        recorder
            .record(EventType::Invoke, "test", event, "")
            .unwrap();
    }
    recorder.seal().unwrap();
    let written = Event::CheckpointWritten {
        stage: stage.clone(),
        number: 2,
        status: Status::Complete,
        digest: Digest::of("checkpoint"),
    };
    recorder
        .record(EventType::Complete, "test", written, "")
        .unwrap();
    recorder.seal().unwrap();
    assert_eq!(project.state().stages["x"].number, 2);
}

/// The small pipeline, its first run stopped before anything but the journal's first segment tells what was made.
fn before_the_first_seal(whole: &Project) -> (Project, Vec<u8>) {
    let all = operations(whole, &["run"]);
    let seal = all.iter().position(|one| one.contains("/manifests"));
    let stopped = Project::small();
    stopped.run_on_disk(&["run"], &format!("{},unflushed", seal.unwrap() + 1));
    let bytes = fs::read(stopped.at(SEGMENT)).unwrap();
    (stopped, bytes)
}

const SEGMENT: &str = "workspace/.milepost/journal/000001.jsonl";

/// Records that were flushed are lost only with a disk. Even then a run makes the same, or refuses to write over what nobody vouches
/// for, and makes the same when it is told to.
#[test]
fn every_prefix_of_a_journal_is_a_start() {
    let whole = Project::small();
    let (stopped, bytes) = before_the_first_seal(&whole);
    let ends: Vec<usize> = (0..=bytes.len())
        .filter(|at| *at == 0 || bytes[at - 1] == b'\n')
        .collect();
    assert!(ends.len() > 15, "{ends:?}");
    let refused = AtomicUsize::new(0);
    in_parallel(&ends, |end| {
        let project = stopped.copy();
        fs::write(project.at(SEGMENT), &bytes[..*end]).unwrap();
        project.state();
        project.journal();
        project.assert_checkpoints(&Files::new());
        let before = project.outputs();
        let ended = project.run_on_disk(&["run"], "unflushed");
        if ended.code == 5 {
            refused.fetch_add(1, Ordering::Relaxed);
            assert_same(&project.outputs(), &before);
            project.complete(&["run", "-B"]);
        } else {
            assert_eq!(ended.code, 0, "{}", ended.text());
        }
        project.assert_done(&whole.outputs());
        project.assert_verified();
    });
    let refused = refused.into_inner();
    assert!(0 < refused && refused < ends.len(), "{refused}");
}

#[test]
fn a_journal_cut_at_any_byte_that_was_not_flushed_is_a_start() {
    let whole = Project::small();
    let all = operations(&whole, &["run"]);
    let flush = all
        .iter()
        .position(|one| one.starts_with("flush") && one.ends_with("000001.jsonl"));
    let stopped = Project::small();
    stopped.run_on_disk(&["run"], &format!("{},unflushed", flush.unwrap() + 1));
    let journal = "workspace/.milepost/journal/000001.jsonl";
    let bytes = fs::read(stopped.at(journal)).unwrap();
    assert!(bytes.len() > 2000);
    // Everywhere near the ends of lines, and here and there within.
    let is_end =
        |at: usize| bytes[at.saturating_sub(2)..(at + 2).min(bytes.len())].contains(&b'\n');
    let places: Vec<usize> = (0..bytes.len())
        .filter(|at| is_end(*at) || at % 311 == 0)
        .collect();
    in_parallel(&places, |place| {
        let project = stopped.copy();
        fs::write(project.at(journal), &bytes[..*place]).unwrap();
        project.complete(&["run"]);
        project.assert_complete(&whole.outputs());
    });
}
