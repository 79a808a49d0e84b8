//! States of stages to write and read.

use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::fingerprint::{FactKind, Facts};
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::{BatchRecord, Made, Pin};
use milepost_core::model::state::{BatchState, Phase, StageState};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

pub fn facts(name: &str, value: &str) -> Facts {
    let mut facts = Facts::default();
    facts.add(FactKind::Input, name, value);
    facts
}

pub fn made(path_of: &str, content: &str) -> Made {
    Made {
        name: "out".into(),
        path: path(path_of),
        digest: Digest::of(content),
        size: content.len() as u64,
    }
}

pub fn record(key: &str, outputs: Vec<Made>) -> BatchRecord {
    BatchRecord {
        key: key.to_owned(),
        shared: facts("rules", "1").id(),
        facts: facts("item", key),
        outputs,
        elements: Some(50),
        summary: Some(Box::new(
            serde_json::json!({"by_type": {"IfcWall": 2, "IfcBeam": 1}}),
        )),
        attempts: 1,
        duration_ms: 12,
        run: "RUN".to_owned(),
        ..BatchRecord::default()
    }
}

pub fn complete(key: &str, outputs: Vec<Made>) -> BatchState {
    BatchState {
        phase: Phase::Complete,
        record: Some(record(key, outputs)),
        remains: BTreeMap::new(),
        failure: None,
    }
}

/// A stage whose batches, by number, are complete with one output each.
pub fn stage(batches: impl IntoIterator<Item = u32>) -> StageState {
    let shared = facts("rules", "1");
    let batch = |number: u32| {
        let key = format!("batch_{number}");
        let out = made(&format!("intermediate/{key}.json"), &key);
        (key.clone(), complete(&key, vec![out]))
    };
    StageState {
        number: 3,
        batches: batches.into_iter().map(batch).collect(),
        facts: BTreeMap::from([(shared.id(), Arc::new(shared))]),
        ..StageState::default()
    }
}

fn outcome() -> impl Strategy<Value = Outcome> {
    ("\\PC{0,12}", prop::collection::vec("\\PC{0,8}", 0..3)).prop_map(|(message, details)| {
        Outcome::new(OutcomeKind::Schema, message).with_details(details)
    })
}

fn file() -> impl Strategy<Value = RelPath> {
    "[a-z#]{1,3}/[a-z0-9 é'\"]{1,8}".prop_map(|text| path(&text))
}

fn output() -> impl Strategy<Value = Made> {
    (file(), "[a-z_]{1,6}", "[a-z]{0,6}").prop_map(|(path, name, content)| Made {
        name,
        path,
        digest: Digest::of(&content),
        size: content.len() as u64,
    })
}

fn outputs() -> impl Strategy<Value = Vec<Made>> {
    prop_oneof![
        8 => prop::collection::vec(output(), 0..4),
        1 => (output(), 990..2100_usize).prop_map(|(made, count)| vec![made; count]),
    ]
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![
        Just(Phase::Waiting),
        Just(Phase::Running { attempt: 2 }),
        Just(Phase::Backoff { attempt: 1 }),
        Just(Phase::Complete),
        outcome().prop_map(|outcome| Phase::Failed {
            outcome: Box::new(outcome),
        }),
    ]
}

fn batch() -> impl Strategy<Value = BatchState> {
    let made = (
        outputs(),
        0..3_u8,
        prop::option::of(outcome()),
        prop::option::of("\\PC{0,8}"),
        any::<Option<u64>>(),
    );
    let made = made.prop_map(
        |(outputs, shared, placeholder, stale, elements)| BatchRecord {
            shared: facts("rules", &shared.to_string()).id(),
            elements,
            pin: stale.clone().map(|why| {
                Box::new(Pin {
                    who: "me".into(),
                    why,
                    ..Pin::default()
                })
            }),
            placeholder: placeholder.map(Box::new),
            stale,
            ..record("", outputs)
        },
    );
    let remains = prop::collection::btree_map(file(), Just(Digest::of("old")), 0..3);
    (phase(), prop::option::weighted(0.7, made), remains).prop_map(|(phase, record, remains)| {
        BatchState {
            phase,
            record,
            remains,
            failure: None,
        }
    })
}

/// Any state of a stage.
pub fn any_stage() -> impl Strategy<Value = StageState> {
    let batches = prop::collection::btree_map("(batch_[0-9]{1,2})|(\\PC{0,5})", batch(), 0..12);
    (0..9_u32, batches).prop_map(|(number, mut batches)| {
        for (key, batch) in &mut batches {
            if let Some(record) = &mut batch.record {
                record.key.clone_from(key);
            }
        }
        let sets = (0..3).map(|at| facts("rules", &at.to_string()));
        StageState {
            number,
            batches,
            facts: sets.map(|set| (set.id(), Arc::new(set))).collect(),
            ..StageState::default()
        }
    })
}
