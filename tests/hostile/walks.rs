//! Walks over hostile PDF and IFC structures are bounded.

mod damaged;
mod documents;
mod models;

use std::path::Path;
use std::time::{Duration, Instant};

/// The time that a hostile file may take in a debug build on a busy machine.
const TIME: Duration = Duration::from_mins(1);

/// The bytes of a file that broke an earlier version; `None` where there is no folder of them.
fn broke(name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/hostile");
    if !folder.is_dir() {
        eprintln!("skipped: ../shared is not here");
        return None;
    }
    Some(std::fs::read(folder.join(name)).unwrap())
}

/// What `work` returns, if it returns soon.
fn soon<T>(work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    assert!(begun.elapsed() < TIME, "{:?}", begun.elapsed());
    result
}
