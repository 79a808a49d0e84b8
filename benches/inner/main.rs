//! The inner loops, one by one: `cargo bench --bench inner`, or with part of a name to measure fewer.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark prepares files, starts the program that makes a workspace, and stops at what is wrong"
)]

mod elements;
mod journal;
mod json;
mod known;
#[path = "../beside/work.rs"]
#[allow(dead_code, reason = "the other benchmark uses all of it")]
mod work;

use criterion::Criterion;
use std::time::Duration;

/// What the work's files can say when they cannot be made.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Short: the machines that this runs on have more to do, and medians of 20 show what matters.
fn brief() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .without_plots()
}

fn main() {
    // `cargo test --benches` and `--all-targets` start benches too: whoever tests does not want to wait for this.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let mut criterion = brief().configure_from_args();
    json::benches(&mut criterion);
    journal::benches(&mut criterion);
    known::benches(&mut criterion);
    criterion.final_summary();
}
