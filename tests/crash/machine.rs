//! The state machine: replaying a journal gives the live state, and what cannot follow changes nothing.

use super::in_parallel;
use super::project::{Project, operations};
use milepost::base::digest::Digest;
use milepost::base::path::RelPath;
use milepost::model::checkpoint::Status;
use milepost::model::event::{Child, Event, EventType, Publish, Record};
use milepost::model::fingerprint::{FactKind, Facts};
use milepost::model::outcome::{Outcome, OutcomeKind};
use milepost::model::record::{BatchRecord, Made, Pin};
use milepost::model::state::{Phase, StageState, State};
use milepost::ops::hold::hold;
use milepost::ops::open::{self, Request};
use milepost::plan::machine::apply;
use milepost::run::keeper::Keeper;
use milepost::store::disk::Disk;
use milepost::store::manifest::kept;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// One of these events, of a stage, a batch, an attempt, with some content.
type Seed = (u8, u8, u8, u32, u8);

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn facts(content: &str) -> Facts {
    let mut facts = Facts::default();
    facts.add(FactKind::Param, "p", content);
    facts
}

fn outcome(content: &str) -> Outcome {
    Outcome::new(OutcomeKind::Exit, content)
}

fn made(content: &str) -> Made {
    Made {
        name: "out".into(),
        path: path(&format!("out/{content}")),
        digest: Digest::of(content),
        size: 1,
    }
}

fn pin() -> Pin {
    Pin {
        who: "me".into(),
        why: "so".into(),
    }
}

fn event((kind, stage, batch, attempt, content): Seed) -> Event {
    let stage = format!("stage_{stage}");
    let batch = format!("batch_{batch}");
    let content = content.to_string();
    let facts = facts(&content);
    let shared = facts.id();
    let moved = BTreeMap::from([(path(&format!("old/{content}")), path("aside/x"))]);
    match kind {
        0 => Event::RunStarted {
            command: "run".into(),
            version: "0".into(),
        },
        1 | 2 => Event::StageStarted {
            stage,
            number: attempt,
            shared,
            facts,
            batches: 2,
            will: 2,
        },
        3..=5 => Event::AttemptStarted {
            stage,
            batch,
            attempt,
        },
        6 => Event::ChildStarted(Child {
            token: content,
            stage,
            batch,
            pid: attempt,
            start_time: 1,
            boot_id: "b".into(),
        }),
        7 => Event::AttemptFailed {
            stage,
            batch,
            attempt,
            outcome: outcome(&content),
        },
        8 => Event::BatchFailed {
            stage,
            batch,
            outcome: outcome(&content),
            quarantine: None,
        },
        9 => Event::BatchCancelled { stage, batch },
        10 | 11 => Event::Published {
            stage,
            record: Box::new(BatchRecord {
                key: batch,
                shared,
                facts,
                outputs: vec![made(&content)],
                elements: None,
                summary: None,
                said: None,
                verdict: None,
                placeholder: None,
                pin: None,
                stale: None,
                attempts: attempt,
                duration_ms: 1,
                run: "R".into(),
            }),
            files: vec![Publish {
                scratch: path("s/x"),
                path: path(&format!("out/{content}")),
                old: None,
                new: Digest::of(&content),
                quarantine: None,
                marker: false,
            }],
            retired: moved,
        },
        12 => Event::Barrier,
        13 => Event::Lost {
            stage,
            batch,
            remains: BTreeMap::from([(path("out/x"), Digest::of(&content))]),
        },
        14 => Event::Retired {
            stage,
            batch,
            files: moved,
        },
        15 => Event::Judged {
            stage,
            shared,
            facts,
            batches: vec![batch],
            opinions: BTreeMap::new(),
        },
        16 => Event::Accepted {
            stage,
            batch,
            outputs: vec![made(&content)],
            pin: pin(),
        },
        17 => Event::ChangeAccepted {
            stage,
            change: "prompt".into(),
            shared,
            facts: facts.clone(),
            batches: BTreeMap::from([(batch, facts)]),
            pin: pin(),
        },
        18 => Event::CheckpointWritten {
            stage,
            number: attempt,
            status: Status::Complete,
            digest: Digest::of(&content),
        },
        19 => Event::CheckpointRemoved {
            stage,
            number: attempt,
        },
        20 => Event::StageForgotten { stage },
        21 => Event::Sealed {
            segment: 1,
            checkpoints: BTreeMap::from([(stage, Digest::of(&content))]),
        },
        _ => Event::RunFinished {
            status: "complete".into(),
            ran: 1,
            reused: 1,
            failed: 0,
        },
    }
}

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    prop::collection::vec((0..23_u8, 0..2_u8, 0..2_u8, 1..4_u32, 0..3_u8), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_gives_the_live_state_and_what_cannot_follow_changes_nothing(seeds in seeds()) {
        let mut live = State::default();
        let mut journal = Vec::new();
        let mut prev = None;
        let mut states = vec![live.clone()];
        for seed in seeds {
            let event = event(seed);
            let before = live.clone();
            if apply(&mut live, "R", &event).is_err() {
                prop_assert_eq!(&live, &before, "{:?} was refused and changed the state", event);
                continue;
            }
            let record = Record {
                timestamp: "2026-11-21T10:00:00Z".parse().unwrap(),
                session_id: "S".into(),
                run_id: "R".into(),
                agent_name: "milepost".into(),
                event_type: EventType::Invoke,
                event,
                summary: String::new(),
                artifact_refs: Vec::new(),
                prev,
            };
            let line = serde_json::to_string(&record).unwrap();
            prev = Some(Digest::of(&line));
            journal.push(line);
            states.push(live.clone());
        }
        // Every prefix is a start, and gives the state as it was.
        let mut replayed = State::default();
        for (line, expected) in journal.iter().zip(&states[1..]) {
            let record: Record = serde_json::from_str(line).unwrap();
            prop_assert!(apply(&mut replayed, &record.run_id, &record.event).is_ok());
            prop_assert_eq!(&replayed, expected);
        }
    }

    #[test]
    fn nothing_is_finished_that_was_not_tried(seeds in seeds()) {
        // Which batches run, by a rule that is not the machine's.
        let mut live = State::default();
        let mut running = BTreeSet::new();
        for seed in seeds {
            let event = event(seed);
            let done = apply(&mut live, "R", &event).is_ok();
            match &event {
                Event::AttemptStarted { stage, batch, .. } if done => {
                    let is_new = running.insert((stage.clone(), batch.clone()));
                    prop_assert!(is_new, "{:?} runs twice", batch);
                }
                Event::Published { stage, record, .. } => {
                    let tried = running.remove(&(stage.clone(), record.key.clone()));
                    prop_assert_eq!(tried, done);
                }
                Event::AttemptFailed { stage, batch, .. }
                | Event::BatchFailed { stage, batch, .. }
                | Event::BatchCancelled { stage, batch }
                | Event::Lost { stage, batch, .. }
                | Event::Retired { stage, batch, .. } if done => {
                    running.remove(&(stage.clone(), batch.clone()));
                }
                Event::StageForgotten { stage } => running.retain(|(of, _)| of != stage),
                Event::RunStarted { .. } => running.clear(),
                _ => {}
            }
        }
    }
}

/// Opens a workspace, records what can follow, seals here and there, and gives what is known at the end. `Err` is what was wrong.
fn lived(project: &Project, seeds: &[Seed]) -> Result<State, String> {
    let disk = Disk::from_setting(Some("unflushed"));
    let request = Request {
        disk,
        ..Request::new(project.path().to_owned(), BTreeMap::new())
    };
    let mut opened = open::open(&request).unwrap();
    let held = hold(&mut opened, "test").unwrap();
    let mut keeper = Keeper::new(opened.context(), held.state, held.journal, "test");
    for seed in seeds {
        // Seals are the keeper's own, and are made when nothing runs.
        if seed.0 == 21 {
            let batches = keeper
                .state
                .stages
                .values()
                .flat_map(|stage| stage.batches.values());
            let is_tried =
                |phase: &Phase| matches!(phase, Phase::Running { .. } | Phase::Backoff { .. });
            if !batches.map(|batch| &batch.phase).any(is_tried) {
                keeper.seal().unwrap();
            }
            continue;
        }
        let event = event(*seed);
        let (before, text) = (keeper.state.clone(), project.files(&[".milepost/journal"]));
        let recorded = keeper.record(EventType::Invoke, "test", event.clone(), "", Vec::new());
        if recorded.is_err() {
            // The first of a run is preceded by its start.
            let same_state = keeper.state == before
                || !matches!(before.open_run, Some(ref run) if run == keeper.run_id());
            if !same_state {
                return Err(format!("{event:?} was refused and changed the state"));
            }
            let grew = project.files(&[".milepost/journal"]) != text;
            if grew && before.open_run.as_deref() == Some(keeper.run_id()) {
                return Err(format!("{event:?} was refused and written"));
            }
        }
    }
    Ok(keeper.state)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_one_run_knew_the_next_one_reads(runs in prop::collection::vec(seeds(), 1..4)) {
        let project = Project::empty();
        project.write("milepost.toml", "name = \"x\"\n");
        project.write("stages/1_x.toml", "[step]\njq = '1'\n[outputs]\nx = { path = \"outputs/x.json\", schema = false }\n");
        for seeds in runs {
            let live = match lived(&project, &seeds) {
                Ok(live) => live,
                Err(problem) => { prop_assert!(false, "{}", problem); unreachable!() }
            };
            let read = project.state();
            // Facts that no record names go at a seal; a run tells them again when it begins the stage.
            let known = |state: &State| -> BTreeMap<String, StageState> {
                state.stages.iter().map(|(name, stage)| (name.clone(), StageState { facts: BTreeMap::new(), ..kept(stage) })).filter(|(_, stage)| !stage.batches.is_empty()).collect()
            };
            prop_assert_eq!(known(&read), known(&live));
            prop_assert_eq!(&read.checkpoints, &live.checkpoints);
        }
    }
}

#[test]
fn a_journal_cut_at_any_byte_that_was_not_flushed_is_a_start() {
    let whole = Project::small();
    let all = operations(&whole, &["run"]);
    let flush = all
        .iter()
        .position(|one| one.starts_with("flush") && one.ends_with("000001.jsonl"));
    let stopped = Project::small();
    stopped.run(&["run"], &format!("{},unflushed", flush.unwrap() + 1));
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
        project.assert_complete(&whole.made());
    });
}
