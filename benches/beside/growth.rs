//! How cost grows with the number of batches: the exponent from one size to the next, and the memory of a batch.

use crate::book::{Bar, Book};
use crate::table::{Table, memory, time};
use crate::turns::Series;
use crate::{changed, cold, settled};

/// More than linear by more than measuring allows.
const LINEAR: f64 = 1.1;

/// Bytes that a run with nothing to do may take for each batch more.
const BYTES: f64 = 100.0;

/// Adds a row for each measure from each size to the next, and prints them as a table.
pub fn rows(batches: &[usize], book: &mut Book) {
    let measures = [
        (cold::COLD, cold::BY_COPY),
        (settled::NO_OP, "milepost"),
        (changed::ONE, "milepost"),
    ];
    let mut table = Table::new(&[
        "measure",
        "batches",
        "wall",
        "exponent",
        "CPU",
        "exponent",
        "memory",
        "bytes a batch",
    ]);
    let mut is_empty = true;
    for (measure, label) in measures {
        let mut last: Option<(usize, Series)> = None;
        for &size in batches {
            let Some(series) = book.series(measure, size, label) else {
                continue;
            };
            let before = last.as_ref();
            let exponent = |of: &dyn Fn(&Series) -> Option<f64>| {
                let (from, earlier) = before?;
                let times = of(&series)? / of(earlier)?;
                Some(times.ln() / (size as f64 / *from as f64).ln())
            };
            let wall = exponent(&|series| Some(series.wall().as_secs_f64()));
            let cpu = exponent(&|series| Some(series.cpu()?.as_secs_f64()));
            let bytes = before.and_then(|(from, earlier)| {
                let more = series.memory()? as f64 - earlier.memory()? as f64;
                Some(more / (size - from) as f64)
            });
            let shown = |value: Option<f64>| value.map(|value| format!("{value:.2}"));
            table.row([
                measure.to_owned(),
                size.to_string(),
                time(series.wall()),
                shown(wall).unwrap_or_default(),
                series.cpu().map(time).unwrap_or_default(),
                shown(cpu).unwrap_or_default(),
                series.memory().map(memory).unwrap_or_default(),
                bytes.map(|bytes| format!("{bytes:.0}")).unwrap_or_default(),
            ]);
            if let Some(wall) = wall {
                let name = format!("{measure}, exponent of growth");
                let milepost = format!("{wall:.2}");
                let bar = Bar::always(LINEAR);
                book.row(&name, size, milepost, "linear: 1".to_owned(), wall, bar);
                is_empty = false;
            }
            if let Some(bytes) = bytes.filter(|_| measure == settled::NO_OP) {
                let name = format!("{measure}, memory of a batch more");
                let (milepost, beside) = (format!("{bytes:.0} bytes"), "100 bytes".to_owned());
                let bar = Bar::at(1_000_000, 1.0);
                book.row(&name, size, milepost, beside, bytes / BYTES, bar);
            }
            last = Some((size, series));
        }
    }
    if !is_empty {
        println!("\nCost as work grows, by Milepost's own step `copy`.\n");
        table.print();
    }
}
