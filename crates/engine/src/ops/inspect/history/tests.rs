//! The history of journals that are written here.

use super::timeline::{BarKind, Timeline, TimelineBar, TimelineLane, TimelineMark, Window};
use super::*;
use milepost_core::base::digest::Digest;
use milepost_core::model::event::EventType;
use milepost_core::model::event::Round;
use milepost_core::model::record::BatchRecord;
use milepost_core::model::usage::Usage;

/// Feeds records to a history.
#[derive(Default)]
struct Feed {
    history: History,
    run: &'static str,
}

impl Feed {
    fn at(&mut self, at: i64, event: Event) {
        self.history.add(&Record {
            timestamp: timestamp(at),
            session_id: String::new(),
            run_id: self.run.to_owned(),
            agent_name: "planner".to_owned(),
            event_type: EventType::Invoke,
            event,
            summary: "it happened".to_owned(),
            artifact_refs: Vec::new(),
            prev: None,
        });
    }

    fn run(&mut self, run: &'static str, at: i64) {
        self.run = run;
        self.at(
            at,
            Event::RunStarted {
                command: "milepost run".to_owned(),
                version: "1".to_owned(),
            },
        );
    }

    fn attempt(&mut self, at: i64, batch: &str, attempt: u32) {
        self.at(
            at,
            Event::AttemptStarted {
                stage: "plan".to_owned(),
                batch: batch.to_owned(),
                attempt,
            },
        );
    }

    fn published(&mut self, at: i64, batch: &str) {
        let record = BatchRecord {
            key: batch.to_owned(),
            duration_ms: 40,
            ..BatchRecord::default()
        };
        self.at(
            at,
            Event::Published {
                stage: "plan".to_owned(),
                record: Box::new(record),
                files: Vec::new(),
                retired: std::collections::BTreeMap::new(),
            },
        );
    }

    fn view(&self, width: u32) -> Timeline {
        self.history.view(&Window {
            width,
            lanes: 10,
            now: 5000,
            ..Window::default()
        })
    }
}

fn bar(
    kind: BarKind,
    (row, from, to): (u32, i64, i64),
    result: BarResult,
    name: &str,
) -> TimelineBar {
    TimelineBar {
        kind,
        row,
        from,
        to,
        count: 1,
        failed: u64::from(result == BarResult::Failed),
        result,
        name: name.to_owned(),
        attempts: 1,
    }
}

#[test]
#[expect(clippy::too_many_lines)]
fn batches_have_parts_and_marks() {
    let mut feed = Feed::default();
    feed.run("R1", 0);
    let stage = "plan".to_owned();
    let batch = "b".to_owned();
    feed.attempt(100, "a", 1);
    feed.attempt(100, "b", 1);
    feed.at(
        100,
        Event::StepStarted {
            stage: stage.clone(),
            batch: batch.clone(),
            out: "draft".to_owned(),
            round: Some(1),
        },
    );
    feed.at(
        500,
        Event::Called {
            stage: stage.clone(),
            batch: batch.clone(),
            number: 1,
            agent: "api".to_owned(),
            model: String::new(),
            served: None,
            questions: 1,
            request: Digest::of(""),
            answer: Digest::of(""),
            outcome: "answered".to_owned(),
            usage: Usage::NONE,
            cost: None,
            estimated: None,
            took_ms: 300,
        },
    );
    feed.at(
        550,
        Event::StepFinished {
            stage: stage.clone(),
            batch: batch.clone(),
            out: "draft".to_owned(),
            round: Some(1),
            summary: None,
        },
    );
    feed.at(
        560,
        Event::StepHandoff {
            stage: stage.clone(),
            batch: batch.clone(),
            from: "writer".to_owned(),
            outs: vec!["draft".to_owned()],
            round: Some(1),
            summaries: std::collections::BTreeMap::new(),
        },
    );
    let round = |round, right| Round {
        round,
        right,
        score: None,
        summary: None,
    };
    feed.at(
        600,
        Event::RoundJudged {
            stage: stage.clone(),
            batch: batch.clone(),
            round: round(1, false),
        },
    );
    feed.at(
        600,
        Event::RoundStarted {
            stage: stage.clone(),
            batch: batch.clone(),
            round: 2,
            why: String::new(),
        },
    );
    feed.attempt(700, "a", 2);
    feed.at(
        900,
        Event::RoundJudged {
            stage: stage.clone(),
            batch: batch.clone(),
            round: round(2, true),
        },
    );
    feed.published(1000, "b");
    feed.published(1000, "no start");
    feed.at(
        1000,
        Event::BatchCancelled {
            stage,
            batch: "a".to_owned(),
        },
    );
    feed.at(
        1100,
        Event::Handoff {
            stage: "plan".to_owned(),
            from: Vec::new(),
            files: 1,
            elements: None,
            failed: std::collections::BTreeMap::new(),
            summaries: std::collections::BTreeMap::new(),
        },
    );
    feed.at(
        1200,
        Event::RunFinished {
            status: "complete".to_owned(),
            ran: 3,
            reused: 0,
            failed: 0,
        },
    );
    let part = BarKind::Part;
    assert_eq!(
        feed.view(1000),
        Timeline {
            from: 100,
            to: 1100,
            width: 1000,
            runs: vec![Run {
                run: "R1".to_owned(),
                command: "milepost run".to_owned(),
                version: "1".to_owned(),
                from: 0,
                to: 1200,
                status: Some("complete".to_owned()),
                batches: 2,
                failed: 0,
            }],
            left_out: 0,
            lanes: vec![TimelineLane {
                run: "R1".to_owned(),
                stage: "plan".to_owned(),
                agents: vec!["planner".to_owned()],
                batches: 3,
                rows: 3,
                bars: vec![
                    TimelineBar {
                        attempts: 2,
                        ..bar(BarKind::Batch, (0, 100, 1000), BarResult::Cancelled, "a")
                    },
                    bar(BarKind::Batch, (1, 100, 1000), BarResult::Built, "b"),
                    bar(BarKind::Batch, (2, 960, 1000), BarResult::Built, "no start"),
                    bar(
                        part(PartKind::Step),
                        (1, 100, 550),
                        BarResult::Built,
                        "planner: draft"
                    ),
                    bar(part(PartKind::Call), (1, 200, 500), BarResult::Built, "api"),
                    bar(
                        part(PartKind::Iteration),
                        (1, 100, 600),
                        BarResult::Repeated,
                        "1"
                    ),
                    bar(
                        part(PartKind::Iteration),
                        (1, 600, 900),
                        BarResult::Built,
                        "2"
                    ),
                ],
                marks: [560, 1100]
                    .map(|at| TimelineMark {
                        kind: MarkKind::Handoff,
                        at,
                        count: 1,
                        text: "it happened".to_owned(),
                    })
                    .to_vec(),
            }],
        }
    );
}

#[test]
fn a_batch_without_a_start_begins_with_its_run_at_the_earliest() {
    let mut feed = Feed::default();
    feed.run("R1", 1000);
    for (at, duration_ms) in [(1500, 200), (1600, i64::MAX as u64), (1700, u64::MAX)] {
        let record = BatchRecord {
            key: format!("at {at}"),
            duration_ms,
            ..BatchRecord::default()
        };
        feed.at(
            at,
            Event::Published {
                stage: "plan".to_owned(),
                record: Box::new(record),
                files: Vec::new(),
                retired: std::collections::BTreeMap::new(),
            },
        );
    }
    let lanes = feed.view(1000).lanes;
    let times = lanes[0].bars.iter().map(|bar| (bar.from, bar.to));
    let times: Vec<(i64, i64)> = times.collect();
    assert_eq!(times, [(1000, 1600), (1000, 1700), (1300, 1500)]);
}

#[test]
fn what_a_killed_run_left_ends_with_its_last_record() {
    let mut feed = Feed::default();
    feed.run("R1", 0);
    feed.attempt(100, "a", 1);
    feed.attempt(300, "b", 1);
    feed.run("R2", 2000);
    feed.attempt(2100, "a", 1);
    let lanes = feed.view(1000).lanes;
    let bars: Vec<(&str, &[TimelineBar])> = lanes
        .iter()
        .map(|lane| (lane.run.as_str(), lane.bars.as_slice()))
        .collect();
    assert_eq!(
        bars,
        [
            (
                "R1",
                &[
                    bar(BarKind::Batch, (0, 100, 300), BarResult::Interrupted, "a"),
                    bar(BarKind::Batch, (0, 300, 300), BarResult::Interrupted, "b"),
                ][..]
            ),
            (
                "R2",
                &[bar(
                    BarKind::Batch,
                    (0, 2100, 5000),
                    BarResult::Running,
                    "a"
                )][..]
            ),
        ]
    );
}

#[test]
fn many_batches_are_few_bars_and_few_bytes() {
    const ALL: i64 = 100_000;
    let mut feed = Feed::default();
    feed.run("R1", 0);
    for at in 0..ALL {
        feed.attempt(at * 10, &format!("batch_{at:06}"), 1);
        // Four at a time.
        if at >= 3 {
            feed.published(at * 10 + 9, &format!("batch_{:06}", at - 3));
        }
    }
    let all = feed.view(900);
    let [lane] = all.lanes.as_slice() else {
        panic!("{} lanes", all.lanes.len());
    };
    assert_eq!((lane.batches, lane.rows), (ALL as u64, 4));
    assert!(lane.bars.len() <= 900, "{} bars", lane.bars.len());
    assert_eq!(
        lane.bars.iter().map(|bar| bar.count).sum::<u64>(),
        ALL as u64
    );
    let few = feed.history.view(&Window {
        width: 900,
        lanes: 1,
        bars: Some(20),
        ..Window::default()
    });
    assert!(few.lanes[0].bars.len() <= 20);
    // 24 bytes and the name.
    assert_eq!(feed.history.lanes[0].bytes(), 100_000 * (24 + 12));
}
