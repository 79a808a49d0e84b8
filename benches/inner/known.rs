//! Reads the state of a workspace of 10,000 batches: manifest, digests of files, notes of a run.

use crate::work::{Step, Work};
use criterion::{Criterion, Throughput};
use milepost_core::base::clock::StillClock;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::FilePath;
use milepost_store::store::disk::Disk;
use milepost_store::store::files::Files;
use milepost_store::store::layout::Layout;
use milepost_store::store::manifest;
use milepost_store::store::statcache::StatCache;
use milepost_store::store::up_to_date::{self, Observations};
use std::path::PathBuf;
use std::process::Command;

/// How many.
const BATCHES: usize = 10_000;

/// All of them, in a workspace that the program made.
pub fn benches(criterion: &mut Criterion) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let work = Work::new(folder.path(), BATCHES);
    work.make().unwrap();
    work.declare(Step::Copy, true).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_milepost"))
        .args(["run", "--quiet"])
        .current_dir(&work.folder)
        .status()
        .unwrap();
    assert!(status.success());

    let workspace = work.folder.join("workspace");
    let mut group = criterion.benchmark_group("known");
    group.throughput(Throughput::Elements(BATCHES as u64));
    let layout = Layout::new(&workspace);
    assert_eq!(
        manifest::read(&layout, "map").unwrap().batches.len(),
        BATCHES
    );
    group.bench_function("manifest, read", |bencher| {
        bencher.iter(|| manifest::read(&layout, "map").unwrap());
    });

    // By this clock all files have been left alone for long.
    let ahead = StillClock(jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60));
    let paths: Vec<PathBuf> = (0..BATCHES).map(|item| work.input(item)).collect();
    group.bench_function("files, opened, read and hashed", |bencher| {
        bencher.iter(|| {
            let empty = StatCache::with_clock(&folder.path().join("none"), Box::new(ahead));
            for path in &paths {
                empty.look(path).unwrap();
            }
        });
    });
    let kept = folder.path().join("stat-cache");
    let cache = StatCache::with_clock(&kept, Box::new(ahead));
    for path in &paths {
        cache.look(path).unwrap();
    }
    group.bench_function("files, looked up", |bencher| {
        bencher.iter(|| paths.iter().all(|path| cache.look(path).unwrap().settled));
    });
    cache.save(&Disk::real()).unwrap();
    group.bench_function("stat cache, read", |bencher| {
        bencher.iter(|| {
            let cache = StatCache::with_clock(&kept, Box::new(ahead));
            cache.look(&paths[0]).unwrap()
        });
    });

    let files = Files::new(&work.folder, &workspace);
    let asked = Observations::noting();
    for (item, path) in paths.iter().enumerate() {
        let file: FilePath = format!("inputs/items/item_{item:07}.json").parse().unwrap();
        asked.file(&file, cache.look(path).ok());
    }
    let (notes, key) = (folder.path().join("glance"), Digest::of("key"));
    asked.keep(&Disk::real(), &notes, key, b"told").unwrap();
    assert!(up_to_date::again(&notes, key, &files, &cache, None).is_some());
    group.bench_function("the notes of a run", |bencher| {
        bencher.iter(|| up_to_date::again(&notes, key, &files, &cache, None));
    });
    group.finish();
}
