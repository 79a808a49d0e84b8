//! The state machine: replaying a journal gives the live state, and what cannot follow changes nothing.

use milepost_core::base::digest::Digest;
use milepost_core::base::path::RelPath;
use milepost_core::model::checkpoint::Status;
use milepost_core::model::event::{Child, Event, EventType, Publish, Record, Round};
use milepost_core::model::fingerprint::{FactKind, Facts};
use milepost_core::model::forced::Forced;
use milepost_core::model::money::NanoUsd;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::{AnswersOf, BatchRecord, FailedKeys, Made, Pin};
use milepost_core::model::state::{Phase, State};
use milepost_core::model::usage::Usage;
use milepost_core::plan::machine::apply;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// One of these events, of a stage, a batch, an attempt, with some content.
pub type Seed = (u8, u8, u8, u32, u8);

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

fn failed(content: &str) -> FailedKeys {
    FailedKeys {
        keys: vec![content.to_owned()],
        outcome: outcome(content),
    }
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
        ..Pin::default()
    }
}

pub fn event((kind, stage, batch, attempt, content): Seed) -> Event {
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
                failed: vec![failed(&content)],
                answers: vec![AnswersOf::one("R", 1)],
                attempts: attempt,
                duration_ms: 1,
                run: "R".into(),
                ..BatchRecord::default()
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
            gone: content.len() % 2 == 0,
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
            checkpoints: BTreeMap::from([(stage.clone(), Digest::of(&content))]),
            pages: BTreeMap::new(),
            forced: vec![Forced {
                run: content,
                ended: attempt > 1,
                runs: vec!["Q".into()],
                batches: BTreeMap::from([(stage, BTreeSet::from([batch]))]),
                open: BTreeSet::new(),
            }],
            approvals: BTreeMap::new(),
        },
        22 => Event::StepStarted {
            stage,
            batch,
            out: content,
            round: Some(attempt),
        },
        23 => Event::Called {
            stage,
            batch,
            number: 1,
            agent: content,
            model: String::new(),
            served: None,
            questions: 1,
            request: Digest::of("request"),
            answer: Digest::of("answer"),
            outcome: "answered".into(),
            usage: Usage::default(),
            cost: Some(NanoUsd(1)),
            estimated: None,
            took_ms: 1,
        },
        24 => Event::AnswersRefused {
            stage,
            batch,
            number: 1,
            valid: 1,
            violations: vec![content],
        },
        25 => Event::RoundJudged {
            stage,
            batch,
            round: Round {
                round: attempt,
                right: false,
                score: Some(0.1),
                summary: None,
            },
        },
        26 => Event::RoundStarted {
            stage,
            batch,
            round: attempt,
            why: content,
        },
        27 => Event::Verdict {
            stage,
            batch,
            verdict: true,
            summary: None,
        },
        28 => Event::ElementsFailed {
            stage,
            batch,
            failed: vec![failed(&content)],
            quarantine: None,
        },
        29 => Event::ServiceStarted {
            child: Child {
                token: format!("service {content}"),
                stage: String::new(),
                batch: content,
                pid: attempt,
                start_time: 1,
                boot_id: "b".into(),
            },
            again: attempt > 1,
        },
        30 => Event::ServiceEnded {
            token: format!("service {content}"),
            service: content,
        },
        31 => Event::Forced {
            stage,
            batches: BTreeSet::from([batch]),
            fresh: attempt > 1,
            open: attempt > 2,
        },
        32 => Event::ForceDropped {
            stage,
            batches: (attempt > 1).then_some(batch).into_iter().collect(),
        },
        33 => Event::Approved {
            stage,
            by: "reviewer".into(),
            facts: Digest::of(&content),
            batches: BTreeMap::from([(batch, content)]),
            pin: pin(),
        },
        34 => Event::StepFinished {
            stage,
            batch,
            out: content,
            round: Some(attempt),
            summary: None,
        },
        35 => Event::StepHandoff {
            stage,
            batch,
            from: "reviewer".into(),
            outs: vec![content],
            round: Some(attempt),
            summaries: BTreeMap::new(),
        },
        _ => Event::RunFinished {
            status: if attempt > 1 {
                "complete"
            } else {
                "interrupted"
            }
            .into(),
            ran: 1,
            reused: 1,
            failed: 0,
        },
    }
}

pub fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    prop::collection::vec((0..37_u8, 0..2_u8, 0..2_u8, 1..4_u32, 0..3_u8), 0..100)
}

/// How often events of a kind were taken, and how often refused.
type Counts = BTreeMap<String, (u32, u32)>;

/// Goes through many sequences of events, and counts what became of each kind.
fn sequences(cases: u32, mut test: impl FnMut(&[Seed], &mut Counts) -> Result<(), TestCaseError>) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let counts = RefCell::new(Counts::new());
    let test = RefCell::new(&mut test);
    let run = |seeds: Vec<Seed>| (test.borrow_mut())(&seeds, &mut counts.borrow_mut());
    TestRunner::new(config).run(&seeds(), run).unwrap();
    // A machine that takes nothing, or everything, would hold as well.
    let counts = counts.into_inner();
    assert_eq!(counts.len(), 33, "{counts:?}");
    for (kind, (taken, refused)) in &counts {
        assert!(*taken > 20, "{kind} is taken {taken} times");
        assert_eq!(
            *refused > 20,
            NEEDS_SOMETHING.contains(&kind.as_str()),
            "{kind} {refused}"
        );
    }
}

fn kind(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap();
    value["kind"].as_str().unwrap().to_owned()
}

/// Kinds of events that cannot follow everything.
const NEEDS_SOMETHING: &[&str] = &[
    "attempt_started",
    "child_started",
    "step_started",
    "step_finished",
    "step_handoff",
    "called",
    "answers_refused",
    "round_judged",
    "round_started",
    "verdict",
    "elements_failed",
    "attempt_failed",
    "batch_failed",
    "batch_cancelled",
    "published",
    "lost",
];

#[test]
fn a_journal_gives_the_live_state_and_what_cannot_follow_changes_nothing() {
    sequences(5000, |seeds, counts| {
        let mut live = State::default();
        let mut journal = Vec::new();
        let mut prev = None;
        let mut states = vec![live.clone()];
        for seed in seeds {
            let event = event(*seed);
            let before = live.clone();
            let count = counts.entry(kind(&event)).or_default();
            if apply(&mut live, "R", &event).is_err() {
                prop_assert_eq!(
                    &live,
                    &before,
                    "{:?} was refused and changed the state",
                    event
                );
                count.1 += 1;
                continue;
            }
            count.0 += 1;
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
        Ok(())
    });
}

/// Where a batch is, by rules that are not the machine's.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Rest,
    Tried(u32),
    Waits(u32),
}

/// A batch: where it is, and whether there is something that it made.
type Known = (At, bool);

/// What may happen, and what becomes of a batch: the table that the state machine must be.
#[derive(Default)]
struct Table {
    stages: BTreeSet<String>,
    batches: BTreeMap<(String, String), Known>,
}

impl Table {
    /// Whether an event may follow; if so, it does.
    fn follow(&mut self, event: &Event) -> bool {
        use At::{Rest, Tried, Waits};
        let (stage, batch) = match event {
            Event::AttemptStarted { stage, batch, .. }
            | Event::AttemptFailed { stage, batch, .. }
            | Event::BatchFailed { stage, batch, .. }
            | Event::BatchCancelled { stage, batch }
            | Event::StepStarted { stage, batch, .. }
            | Event::StepFinished { stage, batch, .. }
            | Event::StepHandoff { stage, batch, .. }
            | Event::Called { stage, batch, .. }
            | Event::AnswersRefused { stage, batch, .. }
            | Event::RoundJudged { stage, batch, .. }
            | Event::RoundStarted { stage, batch, .. }
            | Event::Verdict { stage, batch, .. }
            | Event::ElementsFailed { stage, batch, .. }
            | Event::Lost { stage, batch, .. }
            | Event::Retired { stage, batch, .. } => (stage, batch),
            Event::ChildStarted(child) => (&child.stage, &child.batch),
            Event::Published { stage, record, .. } => (stage, &record.key),
            Event::StageStarted { stage, .. }
            | Event::Judged { stage, .. }
            | Event::ChangeAccepted { stage, .. }
            | Event::CheckpointWritten { stage, .. } => {
                self.stages.insert(stage.clone());
                return true;
            }
            Event::StageForgotten { stage } => {
                self.stages.remove(stage);
                self.batches.retain(|(of, _), _| of != stage);
                return true;
            }
            Event::RunStarted { .. } => {
                for (at, _) in self.batches.values_mut() {
                    *at = Rest;
                }
                return true;
            }
            _ => return true,
        };
        let key = (stage.clone(), batch.clone());
        if matches!(event, Event::Retired { .. }) {
            self.batches.remove(&key);
            return true;
        }
        let known = self.batches.get(&key).copied().unwrap_or((Rest, false));
        let next = match (event, known) {
            _ if !self.stages.contains(stage) => None,
            (Event::AttemptStarted { attempt: 1, .. }, (Rest, made)) => Some((Tried(1), made)),
            (Event::AttemptStarted { attempt, .. }, (Waits(before), made)) => {
                (*attempt == before + 1).then_some((Tried(*attempt), made))
            }
            (
                Event::ChildStarted(_)
                | Event::StepStarted { .. }
                | Event::StepFinished { .. }
                | Event::StepHandoff { .. }
                | Event::RoundJudged { .. }
                | Event::RoundStarted { .. }
                | Event::Verdict { .. }
                | Event::ElementsFailed { .. },
                (Tried(_), _),
            )
            // Someone outside answers while nothing runs.
            | (Event::Called { .. } | Event::AnswersRefused { .. }, _) => Some(known),
            (Event::AttemptFailed { attempt, .. }, (Tried(at), made)) => {
                (*attempt == at).then_some((Waits(at), made))
            }
            (Event::BatchFailed { .. }, (_, made))
            | (Event::BatchCancelled { .. }, (Tried(_) | Waits(_), made)) => Some((Rest, made)),
            // A batch whose outputs are restored does not run.
            (Event::Published { .. }, (Tried(_) | Rest, _)) => Some((Rest, true)),
            (Event::Lost { .. }, (_, true)) => Some((Rest, false)),
            _ => None,
        };
        if let Some(next) = next {
            self.batches.insert(key, next);
        }
        next.is_some()
    }
}

#[test]
fn just_what_may_follow_is_taken() {
    sequences(5000, |seeds, counts| {
        let (mut live, mut table) = (State::default(), Table::default());
        for seed in seeds {
            let event = event(*seed);
            let taken = apply(&mut live, "R", &event).is_ok();
            prop_assert_eq!(taken, table.follow(&event), "{:?}", event);
            let count = counts.entry(kind(&event)).or_default();
            *(if taken { &mut count.0 } else { &mut count.1 }) += 1;
            // What is known of each batch is what the table has.
            for ((stage, batch), (at, made)) in &table.batches {
                let known = live
                    .stages
                    .get(stage)
                    .and_then(|known| known.batches.get(batch));
                let known = known.map_or((At::Rest, false), |known| {
                    let at = match known.phase {
                        Phase::Running { attempt } => At::Tried(attempt),
                        Phase::Backoff { attempt } => At::Waits(attempt),
                        _ => At::Rest,
                    };
                    (at, known.record.is_some())
                });
                prop_assert!(
                    known == (*at, *made),
                    "{}/{} after {:?}",
                    stage,
                    batch,
                    event
                );
            }
        }
        Ok(())
    });
}
