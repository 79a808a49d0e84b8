//! Records appended to a journal, and made durable.

use criterion::{BatchSize, Criterion, Throughput};
use milepost_core::model::event::{Event, EventType};
use milepost_store::store::clock::SystemClock;
use milepost_store::store::disk::Disk;
use milepost_store::store::journal::{self, Journal};
use milepost_store::store::layout::Layout;
use std::sync::Arc;
use tempfile::TempDir;

/// Records of one measurement.
const RECORDS: u32 = 1_000;

/// Appending, and appending with a flush of each hundred.
pub fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal");
    group.throughput(Throughput::Elements(RECORDS.into()));
    for (name, every) in [("append", RECORDS + 1), ("append, flush each hundred", 100)] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                open,
                |(_, journal)| {
                    for number in 1..=RECORDS {
                        append(journal, number);
                        if number % every == 0 {
                            journal.flush().unwrap();
                        }
                    }
                },
                BatchSize::PerIteration,
            );
        });
    }
    let (folder, mut journal) = open();
    (1..=RECORDS).for_each(|number| append(&mut journal, number));
    let layout = Layout::new(folder.path());
    group.bench_function("read the last segment", |bencher| {
        bencher.iter(|| journal::read_since_seal(&layout).unwrap());
    });
    group.finish();
}

/// An empty journal on the disk of the build.
fn open() -> (TempDir, Journal) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let layout = Layout::new(folder.path());
    let clock = Arc::new(SystemClock);
    let opened = Journal::open(&Disk::real(), &layout, clock, "session", "run").unwrap();
    (folder, opened.journal)
}

fn append(journal: &mut Journal, number: u32) {
    let event = Event::AttemptStarted {
        stage: "map".to_owned(),
        batch: format!("item_{number:07}"),
        attempt: 1,
    };
    journal
        .append(EventType::Invoke, "map", event, "attempt 1", Vec::new())
        .unwrap();
}
