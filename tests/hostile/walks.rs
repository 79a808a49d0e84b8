//! Walks over hostile PDF and IFC structures are bounded.

mod damaged;
mod documents;
mod models;

use std::time::{Duration, Instant};

/// The time that a hostile file may take in a debug build on a busy machine.
const TIME: Duration = Duration::from_mins(1);

/// What `work` returns, if it returns soon.
fn soon<T>(work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    assert!(begun.elapsed() < TIME, "{:?}", begun.elapsed());
    result
}
