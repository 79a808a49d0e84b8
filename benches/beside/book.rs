//! The book: every series that was measured, every comparison with its bar, and how both are printed.

use crate::table::{Table, memory, time};
use crate::turns::Series;
use std::time::Duration;

/// What a ratio may be at most, and the number of batches that this is asked of; none for every number.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    /// At most this.
    pub most: f64,
    /// Batches.
    pub at: Option<usize>,
}

impl Bar {
    /// A bar for one number of batches.
    pub fn at(batches: usize, most: f64) -> Bar {
        let at = Some(batches);
        Bar { most, at }
    }

    /// A bar for every number of batches.
    pub fn always(most: f64) -> Bar {
        Bar { most, at: None }
    }
}

/// A comparison.
struct Row {
    measure: String,
    batches: usize,
    milepost: String,
    beside: String,
    ratio: f64,
    bar: Option<Bar>,
}

/// A series, with what was measured and for how many batches.
struct Entry {
    measure: &'static str,
    batches: usize,
    series: Series,
}

/// What was measured.
#[derive(Default)]
pub struct Book {
    entries: Vec<Entry>,
    rows: Vec<Row>,
}

impl Book {
    /// Keeps what was measured.
    pub fn keep(&mut self, measure: &'static str, batches: usize, series: Vec<Series>) {
        let entries = series.into_iter().map(|series| Entry {
            measure,
            batches,
            series,
        });
        self.entries.extend(entries);
    }

    /// A series that was kept.
    pub fn series(&self, measure: &str, batches: usize, label: &str) -> Option<Series> {
        let of = |entry: &&Entry| {
            entry.measure == measure && entry.batches == batches && entry.series.label == label
        };
        self.entries
            .iter()
            .find(of)
            .map(|entry| entry.series.clone())
    }

    /// Compares the wall times of two series that were kept; nothing if one of them was not taken.
    pub fn compare(
        &mut self,
        measure: &'static str,
        batches: usize,
        ours: &str,
        theirs: &str,
        bar: impl Into<Option<Bar>>,
    ) {
        if let (Some(a), Some(b)) = (
            self.series(measure, batches, ours),
            self.series(measure, batches, theirs),
        ) {
            let name = match ours.strip_prefix("milepost ") {
                Some(how) => format!("{measure}: {how}"),
                None => measure.to_owned(),
            };
            self.times(&name, batches, a.wall(), theirs, b.wall(), bar);
        }
    }

    /// Compares the times until everything is on the disk of two series that were kept.
    pub fn compare_durable(
        &mut self,
        measure: &'static str,
        batches: usize,
        ours: &str,
        theirs: &str,
    ) {
        let of = |label: &str| self.series(measure, batches, label)?.durable();
        if let (Some(a), Some(b)) = (of(ours), of(theirs)) {
            let how = ours.strip_prefix("milepost ").unwrap_or(ours);
            let name = format!("{measure}, until flushed: {how}");
            self.times(&name, batches, a, theirs, b, None);
        }
    }

    /// Compares the peaks of memory of two series that were kept.
    pub fn compare_memory(
        &mut self,
        measure: &'static str,
        batches: usize,
        theirs: &str,
        bar: impl Into<Option<Bar>>,
    ) {
        let of = |label: &str| {
            let series = self.series(measure, batches, label)?;
            series.memory()
        };
        if let (Some(a), Some(b)) = (of("milepost"), of(theirs)) {
            let beside = format!("{theirs} {}", memory(b));
            let name = format!("{measure}, memory");
            self.row(&name, batches, memory(a), beside, a as f64 / b as f64, bar);
        }
    }

    /// Compares two times.
    pub fn times(
        &mut self,
        measure: &str,
        batches: usize,
        ours: Duration,
        theirs: &str,
        time_of_theirs: Duration,
        bar: impl Into<Option<Bar>>,
    ) {
        let ratio = ours.as_secs_f64() / time_of_theirs.as_secs_f64();
        let beside = format!("{theirs} {}", time(time_of_theirs));
        self.row(measure, batches, time(ours), beside, ratio, bar);
    }

    /// A comparison of anything.
    pub fn row(
        &mut self,
        measure: &str,
        batches: usize,
        milepost: String,
        beside: String,
        ratio: f64,
        bar: impl Into<Option<Bar>>,
    ) {
        self.rows.push(Row {
            measure: measure.to_owned(),
            batches,
            milepost,
            beside,
            ratio,
            bar: bar.into(),
        });
    }

    /// Prints the comparisons, then what each took.
    pub fn print(&self) {
        let mut table = Table::new(&[
            "batches", "measure", "milepost", "beside", "ratio", "bar", "",
        ]);
        for row in &self.rows {
            let (bar, verdict) = row.verdict();
            table.row([
                number(row.batches),
                row.measure.clone(),
                row.milepost.clone(),
                row.beside.clone(),
                format!("{:.2}", row.ratio),
                bar,
                verdict,
            ]);
        }
        println!(
            "\nMedians of wall time. In brackets: the bar is set for another number of batches.\n"
        );
        table.print();

        let mut table = Table::new(&[
            "batches",
            "measure",
            "who",
            "rounds",
            "wall",
            "least",
            "most",
            "until flushed",
            "CPU",
            "memory",
        ]);
        for entry in &self.entries {
            let series = &entry.series;
            let (least, most) = series.span();
            table.row([
                number(entry.batches),
                entry.measure.to_owned(),
                series.label.clone(),
                series.samples.len().to_string(),
                time(series.wall()),
                time(least),
                time(most),
                series.durable().map(time).unwrap_or_default(),
                series.cpu().map(time).unwrap_or_default(),
                series.memory().map(memory).unwrap_or_default(),
            ]);
        }
        println!(
            "\nWhat each took. Until flushed: with a `sync` after it, which waits for what others wrote, too. CPU: user and system, of all its processes. Memory: peak resident set of its largest process.\n"
        );
        table.print();
    }
}

/// A number of batches; nothing for a project that has none.
fn number(batches: usize) -> String {
    Some(batches)
        .filter(|batches| *batches > 0)
        .map(|batches| batches.to_string())
        .unwrap_or_default()
}

impl Row {
    /// The bar, and whether it is held.
    fn verdict(&self) -> (String, String) {
        let Some(bar) = self.bar else {
            return (String::new(), String::new());
        };
        let word = if self.ratio <= bar.most {
            "held"
        } else {
            "missed"
        };
        let word = if bar.at.is_none_or(|at| at == self.batches) {
            word.to_owned()
        } else {
            format!("({word})")
        };
        (format!("at most {}", bar.most), word)
    }
}
