//! How much of a sweep over crashes a test runs: a sample by default, all of it with `MILEPOST_TEST_SWEEP=full`.
//!
//! A sample holds a crash at every kind of operation (the action, and the sort of file), and others at equal distances.
//! `MILEPOST_TEST_SEED` chooses another sample. Each test prints how many crashes it ran.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns true if the whole sweep runs.
pub fn is_full() -> bool {
    std::env::var("MILEPOST_TEST_SWEEP").is_ok_and(|sweep| sweep == "full")
}

/// A number from the environment, by which a test is made deeper.
pub fn setting(name: &str, default: usize) -> usize {
    let set = std::env::var(name).ok();
    set.map_or(default, |set| set.parse().unwrap())
}

/// The seed of the samples.
pub fn seed() -> usize {
    setting("MILEPOST_TEST_SEED", 0)
}

/// A number below `below`, from a seed: the same for every run of the tests.
pub fn random(seed: &mut u64, below: u64) -> u64 {
    // Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014 (SplitMix64).
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below
}

/// The distance between the crashes of a sample; 1 in a full sweep.
pub fn step(sample: usize) -> usize {
    if is_full() { 1 } else { sample }
}

/// Returns true for every `of`th case; for every one in a full sweep.
pub fn is_every(case: usize, of: usize) -> bool {
    (case + seed()).is_multiple_of(step(of))
}

/// A stop of a run: before one of its operations, or in the middle of it.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The setting of the disk that stops the run.
    pub setting: String,
    /// The number of the operation, from 1.
    pub at: usize,
    kind: String,
}

impl Stop {
    /// The kind of the operation: its action, and the sort of file.
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

/// The stops of a run with these operations: before each one, and in the middle of those that can be half done. A flush changes
/// nothing that a kill could show: the stop after it would be the stop before it.
pub fn all_stops(operations: &[String]) -> Vec<Stop> {
    let mut stops = Vec::new();
    for at in 1..=operations.len() + 1 {
        let before = at.checked_sub(2).and_then(|at| operations.get(at));
        let operation = operations.get(at - 1).map_or("the end", String::as_str);
        let kind = kind(operation);
        if before.is_none_or(|one| !one.starts_with("flush")) {
            stops.push(Stop {
                setting: format!("{at},unflushed"),
                at,
                kind: kind.clone(),
            });
        }
        if operation.starts_with("write") || operation.starts_with("remove") {
            stops.push(Stop {
                setting: format!("{at}:half,unflushed"),
                at,
                kind: format!("half {kind}"),
            });
        }
    }
    stops
}

/// The stops that a test goes through: of a sample, about `size`, and at least one of each kind.
pub fn stops(operations: &[String], size: usize) -> Vec<Stop> {
    let all = all_stops(operations);
    let kinds: Vec<&str> = all.iter().map(|stop| stop.kind.as_str()).collect();
    let chosen = sample(&kinds, size);
    chosen.into_iter().map(|at| all[at].clone()).collect()
}

/// The places of a sample among cases of these kinds: one of each kind, and others at equal distances up to about `size`.
pub fn sample(kinds: &[&str], size: usize) -> Vec<usize> {
    if is_full() {
        return (0..kinds.len()).collect();
    }
    sample_without_sweep(kinds, size)
}

fn sample_without_sweep(kinds: &[&str], size: usize) -> Vec<usize> {
    if kinds.len() <= size {
        return (0..kinds.len()).collect();
    }
    let mut by_kind: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, kind) in kinds.iter().enumerate() {
        by_kind.entry(kind).or_default().push(at);
    }
    let mut chosen: Vec<usize> = by_kind
        .values()
        .map(|places| places[seed() % places.len()])
        .collect();
    let others = size.saturating_sub(chosen.len()).max(1);
    let distance = kinds.len().div_ceil(others);
    chosen.extend((seed() % distance..kinds.len()).step_by(distance));
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// The kind of an operation: `rename intermediate json`. Names of batches and runs, and numbers, make no other kind.
fn kind(operation: &str) -> String {
    let (action, path) = operation.split_once(' ').unwrap_or((operation, ""));
    let inside = path.split_once("/workspace/").map_or("", |(_, path)| path);
    let parts: Vec<&str> = inside.split('/').collect();
    let folder = match parts.as_slice() {
        [".milepost", folder, _, ..] => format!(".milepost/{folder}"),
        [".milepost", file] => format!(".milepost/{file}"),
        [folder, _, ..] => (*folder).to_owned(),
        _ => "workspace".to_owned(),
    };
    let name = parts.last().copied().unwrap_or_default();
    let is_temporary = if name.starts_with('.') {
        "temporary "
    } else {
        ""
    };
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    format!("{action} {is_temporary}{folder} {extension}")
}

/// Goes through all cases on two threads. The first that fails ends the test with its name and the seed.
pub fn in_parallel<T: Sync + Debug>(cases: &[T], case: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while let Some(one) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(one)));
                    if let Err(cause) = done {
                        next.store(cases.len(), Ordering::SeqCst);
                        eprintln!("in the case {one:?}, MILEPOST_TEST_SEED={}", seed());
                        std::panic::resume_unwind(cause);
                    }
                }
            });
        }
    });
}

/// Goes through all stops on two threads, and prints how many there were.
pub fn at_each(operations: &[String], stops: &[Stop], case: impl Fn(&Stop) + Sync) {
    in_parallel(stops, case);
    eprintln!(
        "{} of {} crashes in {} operations",
        stops.len(),
        all_stops(operations).len(),
        operations.len()
    );
}

#[test]
fn a_sample_contains_every_kind() {
    let kinds: Vec<&str> = (0..200)
        .map(|at| if at == 77 { "seldom" } else { "often" })
        .collect();
    let chosen = sample_without_sweep(&kinds, 20);
    assert!(chosen.contains(&77), "{chosen:?}");
    assert!((16..=24).contains(&chosen.len()), "{chosen:?}");
    let all: Vec<usize> = (0..15).collect();
    assert_eq!(sample_without_sweep(&kinds[..15], 20), all);
}
