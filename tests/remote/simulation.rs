//! Simulates a run on a cluster in virtual time: nodes that finish batches, a runner that reads their logs and commits in groups. It
//! gives the numbers of `docs/explanation/scale.md`; `BLESS=1` writes them there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is simulated. Times are in microseconds.
#[derive(Clone, Copy)]
struct Model {
    /// Batches that run at once on all nodes.
    slots: u64,
    /// Batches of the stage.
    batches: u64,
    /// The mean time of a batch.
    batch: u64,
    /// The number of runners that share the batches, each with a journal and manifests of its own.
    shards: u64,
    /// Slots whose records share a log: 1 today, those of a node if a node had one log.
    slots_per_log: u64,
    /// Opening a log and reading its end.
    read: u64,
    /// Reading the file of a record, to compare its digest.
    check: u64,
    /// Flushing the journal and the folders of a group.
    flush: u64,
    /// Recording one batch and renaming its file.
    publish: u64,
}

/// The most batches of a group, and its age (`run/batch/dispatch.rs`).
const GROUP: usize = 1000;
const AGE: u64 = 200_000;

/// The pause of the runner between two looks at the logs (`run/remote/driver.rs`).
const TICK: u64 = 1_000_000;

/// What came out.
struct Outcome {
    /// The time of the run.
    took: u64,
    /// The time that the nodes alone would take.
    ideal: u64,
    /// The share of the time in which the runner committed.
    committing: f64,
    /// The share of the time in which the runner read logs.
    reading: f64,
}

/// Simulates one of the shards: they do not wait for each other.
fn simulate(model: Model) -> Outcome {
    let batches = model.batches.div_ceil(model.shards);
    let slots = model.slots.div_ceil(model.shards).min(batches);
    let logs = slots.div_ceil(model.slots_per_log);
    // The nodes: when each slot finishes its current batch.
    let mut seed = 1_u64;
    let mut duration = || {
        // Between half and one and a half times the mean (xorshift).
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        model.batch / 2 + seed % model.batch.max(1)
    };
    let mut running = BinaryHeap::new();
    for _ in 0..slots {
        running.push(Reverse(duration()));
    }
    let mut finished = Vec::with_capacity(batches as usize);
    while let Some(Reverse(at)) = running.pop() {
        finished.push(at);
        if finished.len() + running.len() < batches as usize {
            running.push(Reverse(at + duration()));
        }
    }
    let ideal = *finished.last().unwrap();
    // The runner's first thread reads all logs, and then pauses. What a pass finds reaches the second thread at its end.
    let (mut found, mut now, mut reading) = (Vec::with_capacity(finished.len()), 0, 0);
    while found.len() < finished.len() {
        let new = finished[found.len()..].partition_point(|&at| at <= now);
        let cost = logs * model.read + new as u64 * model.check;
        now += cost;
        reading += cost;
        found.extend(std::iter::repeat_n(now, new));
        now += TICK;
    }
    // The second commits groups.
    let (mut at, mut free, mut committing) = (0, 0, 0);
    while at < found.len() {
        let begin = found[at].max(free);
        let close = begin + AGE;
        let arrived = found[at..]
            .partition_point(|&found| found <= close)
            .min(GROUP);
        let closed = if arrived == GROUP {
            found[at + GROUP - 1].max(begin)
        } else {
            close
        };
        let cost = model.flush + arrived as u64 * model.publish;
        committing += cost;
        free = closed + cost;
        at += arrived;
    }
    Outcome {
        took: free,
        ideal,
        committing: committing as f64 / free as f64,
        reading: reading as f64 / free as f64,
    }
}

/// A runner on a shared file system: half a millisecond for each round trip, 20 ms for a flush, one output of a few kilobytes for each
/// batch.
const NETWORK: Model = Model {
    slots: 8,
    batches: 2000,
    batch: 500_000,
    shards: 1,
    slots_per_log: 1,
    read: 1000,
    check: 1500,
    flush: 40_000,
    publish: 600,
};

fn row(name: &str, model: Model) -> String {
    let ran = simulate(model);
    let seconds = |micros: u64| {
        let seconds = micros as f64 / 1e6;
        if seconds < 7200.0 {
            format!("{seconds:.0} s")
        } else {
            format!("{:.1} h", seconds / 3600.0)
        }
    };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    format!(
        "| {name} | {} | {} | {} | {} | {} |",
        seconds(ran.ideal),
        seconds(ran.took),
        percent(ran.ideal as f64 / ran.took as f64),
        percent(ran.committing),
        percent(ran.reading),
    )
}

fn table() -> Vec<String> {
    let tests = NETWORK;
    let hundred = Model {
        slots: 100 * 32,
        batches: 200_000,
        batch: 30_000_000,
        ..NETWORK
    };
    let thousand = Model {
        slots: 1000 * 32,
        batches: 1_000_000,
        batch: 30_000_000,
        ..NETWORK
    };
    vec![
        "| run | nodes alone | with the runner | efficiency | committing | reading logs |"
            .to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
        row("4 nodes of 2, 2,000 batches of 0.5 s", tests),
        row("100 nodes of 32, 200,000 batches of 30 s", hundred),
        row("1,000 nodes of 32, 1,000,000 batches of 30 s", thousand),
        row(
            "the same, one log for each node",
            Model {
                slots_per_log: 32,
                ..thousand
            },
        ),
        row(
            "and 4 shards",
            Model {
                slots_per_log: 32,
                shards: 4,
                ..thousand
            },
        ),
        row(
            "one log for each node, 100,000 batches of 5 min",
            Model {
                slots_per_log: 32,
                batches: 100_000,
                batch: 300_000_000,
                ..thousand
            },
        ),
    ]
}

#[test]
fn the_numbers_on_the_page_about_scale_are_those_of_the_simulation() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/explanation/scale.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines
        .iter()
        .position(|line| line.starts_with("| run | nodes alone"))
        .unwrap();
    let length = lines[begin..]
        .iter()
        .take_while(|line| line.starts_with('|'))
        .count();
    let table = table();
    if std::env::var_os("BLESS").is_some() {
        let mut all: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        all.splice(begin..begin + length, table);
        std::fs::write(path, all.join("\n") + "\n").unwrap();
        return;
    }
    assert_eq!(lines[begin..begin + length], table);
}

#[test]
fn a_runner_that_keeps_up_costs_only_its_last_group() {
    let ran = simulate(NETWORK);
    assert!(ran.took < ran.ideal + TICK + 2 * AGE + 1_000_000);
    assert!(ran.took > ran.ideal);
    // A slow disk is the limit, however many nodes there are.
    let slow = Model {
        publish: 1_000_000,
        ..NETWORK
    };
    assert!(simulate(slow).took >= 2000 * 1_000_000);
}
