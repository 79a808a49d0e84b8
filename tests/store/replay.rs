//! Killed while manifests are written: some batches are on the disk as they were at the last seal, some as they are; the
//! last segment of the journal, applied to either, gives what is.

use super::sample::{facts, made, record};
use milepost_core::model::event::Event;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::Pin;
use milepost_core::model::state::{BatchState, Phase, State};
use milepost_core::plan::machine::apply;
use milepost_store::store::manifest::kept;
use proptest::prelude::*;
use std::collections::BTreeMap;

const STAGE: &str = "classify";

fn event(kind: u8, batch: &str, attempt: u32, content: &str) -> Event {
    let (stage, batch) = (STAGE.to_owned(), batch.to_owned());
    let outcome = Outcome::new(OutcomeKind::Schema, content);
    let pin = || Pin {
        who: "me".into(),
        why: content.to_owned(),
        ..Pin::default()
    };
    let shared = facts("rules", content);
    match kind {
        0 | 1 => Event::AttemptStarted {
            stage,
            batch,
            attempt,
        },
        2 | 3 => Event::Published {
            stage,
            record: Box::new(record(&batch, vec![made("out/x.json", content)])),
            files: Vec::new(),
            retired: BTreeMap::new(),
        },
        4 => Event::BatchFailed {
            stage,
            batch,
            outcome,
            quarantine: None,
        },
        5 => Event::AttemptFailed {
            stage,
            batch,
            attempt,
            outcome,
        },
        6 => Event::BatchCancelled { stage, batch },
        7 => Event::Lost {
            stage,
            batch,
            remains: BTreeMap::from([(super::sample::path("out/x.json"), shared_digest(content))]),
        },
        8 => Event::Retired {
            stage,
            batch,
            files: BTreeMap::new(),
            gone: attempt.is_multiple_of(2),
        },
        9 => Event::Accepted {
            stage,
            batch,
            outputs: vec![made("out/x.json", content)],
            pin: pin(),
        },
        10 => Event::Judged {
            stage,
            shared: shared.id(),
            facts: shared,
            batches: vec![batch],
            opinions: BTreeMap::new(),
        },
        11 => Event::ChangeAccepted {
            stage,
            change: "prompt".into(),
            shared: shared.id(),
            facts: shared,
            batches: BTreeMap::from([(batch, facts("item", content))]),
            pin: pin(),
        },
        12 => Event::Approved {
            stage,
            by: "reviewer".into(),
            facts: shared_digest(content),
            batches: BTreeMap::from([(batch, content.to_owned())]),
            pin: pin(),
        },
        _ => Event::RunStarted {
            command: "run".into(),
            version: "0".into(),
        },
    }
}

fn shared_digest(content: &str) -> milepost_core::base::digest::Digest {
    milepost_core::base::digest::Digest::of(content)
}

fn started() -> Event {
    let shared = facts("rules", "1");
    Event::StageStarted {
        stage: STAGE.into(),
        number: 3,
        shared: shared.id(),
        facts: shared,
        batches: 3,
        will: 3,
    }
}

/// Applies those of the events that can follow, and gives them.
fn follow(state: &mut State, events: &[(u8, u8, u32, u8)]) -> Vec<Event> {
    let mut followed = Vec::new();
    for (kind, batch, attempt, content) in events {
        let event = event(
            *kind,
            &format!("batch_{batch}"),
            *attempt,
            &content.to_string(),
        );
        // What was published and is not yet behind a barrier can be lost, and nothing else.
        if matches!(event, Event::Lost { .. })
            && !followed.iter().any(|before| publishes(before, *batch))
        {
            continue;
        }
        // Only what is there can be accepted.
        let known = &state.stages[STAGE].batches;
        let is_made = |key: &str| known.get(key).is_some_and(|batch| batch.record.is_some());
        if matches!(&event, Event::Accepted { batch, .. } if !is_made(batch)) {
            continue;
        }
        if apply(state, "R", &event).is_ok() {
            followed.push(event);
        }
    }
    followed
}

fn publishes(event: &Event, batch: u8) -> bool {
    matches!(event, Event::Published { record, .. } if record.key == format!("batch_{batch}"))
}

/// Nothing runs when a segment is sealed.
fn rest(state: &mut State) -> Event {
    let ended = event(99, "", 0, "");
    apply(state, "R", &ended).unwrap();
    ended
}

fn known(state: &State) -> milepost_core::model::state::StageState {
    kept(&state.stages[STAGE])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_mixture_of_old_and_new_batches_becomes_the_new(
        before in prop::collection::vec((0..14_u8, 0..3_u8, 1..3_u32, 0..3_u8), 0..20),
        segment in prop::collection::vec((0..14_u8, 0..3_u8, 1..3_u32, 0..3_u8), 0..20),
        is_new in prop::collection::vec(any::<bool>(), 3),
    ) {
        let mut live = State::default();
        apply(&mut live, "R", &started()).unwrap();
        follow(&mut live, &before);
        rest(&mut live);
        let old = known(&live);
        let mut events = follow(&mut live, &segment);
        events.push(rest(&mut live));
        let new = known(&live);

        let mut mixed = if is_new[0] { new.clone() } else { old.clone() };
        mixed.facts = old.facts.clone();
        mixed.facts.extend(new.facts.clone());
        mixed.batches = BTreeMap::new();
        for (at, is_new) in is_new.iter().enumerate() {
            let key = format!("batch_{at}");
            let from = if *is_new { &new } else { &old };
            if let Some(batch) = from.batches.get(&key) {
                mixed.batches.insert(key, batch.clone());
            }
        }
        let mut state = State::default();
        state.stages.insert(STAGE.into(), mixed);
        for event in &events {
            let applied = apply(&mut state, "R", event);
            prop_assert!(applied.is_ok(), "{:?} after {:?}", applied, events);
        }
        prop_assert_eq!(without_empty(known(&state).batches), without_empty(new.batches), "{:?}", events);
    }
}

/// A batch of which nothing is known is as good as none.
fn without_empty(mut batches: BTreeMap<String, BatchState>) -> BTreeMap<String, BatchState> {
    batches.retain(|_, batch| {
        batch.phase != Phase::Waiting || batch.record.is_some() || !batch.remains.is_empty()
    });
    batches
}
