//! Sides of a comparison, measured in turn: A B A B, so that whatever else the machine does falls on all of them.

use crate::Result;
use crate::child::Sample;
use std::time::Duration;

/// One side: what it is called, and what measures it once.
pub struct Side<'a> {
    label: String,
    once: Box<dyn FnMut(usize) -> Result<Sample> + 'a>,
}

impl<'a> Side<'a> {
    /// A side; what measures it is told the round, from 0.
    pub fn new(label: impl Into<String>, once: impl FnMut(usize) -> Result<Sample> + 'a) -> Self {
        Self {
            label: label.into(),
            once: Box::new(once),
        }
    }
}

/// What a side took, round by round.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name.
    pub label: String,
    /// One a round.
    pub samples: Vec<Sample>,
}

impl Series {
    /// The median of the wall times.
    pub fn wall(&self) -> Duration {
        median(self.samples.iter().map(|sample| sample.wall)).unwrap_or_default()
    }

    /// The shortest and the longest wall time.
    pub fn span(&self) -> (Duration, Duration) {
        let walls = || self.samples.iter().map(|sample| sample.wall);
        (
            walls().min().unwrap_or_default(),
            walls().max().unwrap_or_default(),
        )
    }

    /// The median of the CPU times.
    pub fn cpu(&self) -> Option<Duration> {
        median(self.samples.iter().filter_map(|sample| sample.cpu))
    }

    /// The median of the times until everything was on the disk.
    pub fn durable(&self) -> Option<Duration> {
        let samples = self.samples.iter();
        median(samples.filter_map(|sample| Some(sample.wall + sample.flush?)))
    }

    /// The median of the peaks, in bytes.
    pub fn memory(&self) -> Option<u64> {
        median(self.samples.iter().filter_map(|sample| sample.memory))
    }
}

/// Measures every side once a round.
pub fn in_turn(rounds: usize, sides: &mut [Side<'_>]) -> Result<Vec<Series>> {
    let mut series: Vec<Series> = sides
        .iter()
        .map(|side| Series {
            label: side.label.clone(),
            samples: Vec::new(),
        })
        .collect();
    for round in 0..rounds {
        for (side, series) in sides.iter_mut().zip(&mut series) {
            let sample = (side.once)(round)?;
            eprintln!(
                "  round {}, {}: {}",
                round + 1,
                side.label,
                crate::table::time(sample.wall)
            );
            series.samples.push(sample);
        }
    }
    Ok(series)
}

/// The one in the middle; of an even number, the lower of the two.
fn median<T: Ord>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    let middle = values.len().checked_sub(1)? / 2;
    Some(values.swap_remove(middle))
}
