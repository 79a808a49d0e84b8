//! Durability: killed anywhere, a run leaves a workspace that resumes to the same bytes, and nothing that it says is untrue.

mod agents;
mod by_hand;
mod changes;
mod every;
mod forced;
mod glance;
mod journal;
mod kill;
mod machine;
mod power;
mod project;
mod rounds;
mod untrue;

use std::sync::atomic::{AtomicUsize, Ordering};

/// The main pipeline over a model of six elements.
pub fn six() -> project::Project {
    project::Project::six()
}

/// A folder that goes when this is dropped, in memory where the system has a place for that.
pub fn folder() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("milepost-crash-");
    let folder = builder.tempdir_in("/dev/shm");
    folder.unwrap_or_else(|_| builder.tempdir().unwrap())
}

/// A number from the environment, by which a test is made deeper.
pub fn setting(name: &str, default: usize) -> usize {
    let set = std::env::var(name).ok();
    set.map_or(default, |set| set.parse().unwrap())
}

/// Does all cases on two threads; the first that fails ends the test with its name.
pub fn in_parallel<T: Sync + std::fmt::Debug>(cases: &[T], case: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while let Some(one) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(one)));
                    if let Err(cause) = done {
                        next.store(cases.len(), Ordering::SeqCst);
                        eprintln!("in the case {one:?}");
                        std::panic::resume_unwind(cause);
                    }
                }
            });
        }
    });
}
