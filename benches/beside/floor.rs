//! Floors: what the machine takes for the part of the work that cannot be left out.

use crate::Result;
use crate::child::Sample;
use crate::work::Work;
use milepost_core::base::digest::Digest;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Reads all inputs and hashes them, on so many threads.
pub fn read_and_hash(work: &Work, threads: usize) -> Result<Sample> {
    on_threads(work.batches, threads, |item| {
        Digest::of(std::fs::read(work.input(item))?);
        Ok(())
    })
}

/// Reads all results and parses them, on one thread: what an aggregate of them cannot do without.
pub fn read_and_parse(work: &Work) -> Result<Sample> {
    on_threads(work.batches, 1, |item| {
        let value: serde_json::Value = serde_json::from_slice(&std::fs::read(work.result(item))?)?;
        drop(value);
        Ok(())
    })
}

/// One `stat` of every input and every result by its path, on so many threads.
pub fn stat_all(work: &Work, threads: usize) -> Result<Sample> {
    on_threads(work.batches, threads, |item| {
        let paths: [PathBuf; 2] = [work.input(item), work.result(item)];
        for path in paths {
            std::fs::metadata(path)?;
        }
        Ok(())
    })
}

/// Does something for every number below `count`.
fn on_threads(
    count: usize,
    threads: usize,
    each: impl Fn(usize) -> std::io::Result<()> + Sync,
) -> Result<Sample> {
    let next = AtomicUsize::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let item = next.fetch_add(1, Ordering::Relaxed);
                        if item >= count {
                            return Ok(());
                        }
                        each(item)?;
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(std::io::Error::other("a thread fell")))
        })
    })?;
    Ok(Sample::of_wall(began.elapsed()))
}
