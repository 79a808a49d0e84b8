//! Something is otherwise: the content of one input, or the mtimes of all.

use crate::book::{Bar, Book};
use crate::machine::cores;
use crate::stand::Stand;
use crate::turns::{Series, Side, in_turn};
use crate::work::Step;
use crate::{Result, floor};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// One input has other content.
pub const ONE: &str = "one changed";

/// What a change of one input may cost beside a run with nothing to do.
const ONE_MORE: Duration = Duration::from_millis(20);

/// Rounds, each of which waits for files to settle.
fn rounds(stand: &Stand) -> usize {
    stand.rounds().min(stand.cold_rounds().max(3))
}

/// One input changed, with the aggregate.
pub fn one(stand: &Stand, book: &mut Book) -> Result<()> {
    let batches = stand.work.batches;
    eprintln!("{batches} batches, one changed");
    stand.settle_by(Step::Copy, true)?;
    for &tool in &stand.tools {
        stand.settle_tool(tool)?;
    }
    let mut sides = vec![
        Side::new("no-op", |_| {
            stand.settle()?;
            stand.run(cores())
        }),
        Side::new("milepost", |round| {
            change(stand, round)?;
            let sample = stand.run(cores())?;
            same(stand, round, &stand.work.result(item(stand, round)))?;
            Ok(sample)
        }),
    ];
    for &tool in &stand.tools {
        sides.push(Side::new(tool.name(), move |round| {
            let sample = stand.build(tool, cores())?;
            let item = item(stand, round);
            same(stand, round, &stand.work.made_by(tool.name(), item))?;
            Ok(sample)
        }));
    }
    sides.push(Side::new("no-op and the aggregate, forced", |_| {
        stand.settle()?;
        stand.milepost(&["run", "--quiet", "--force", "sum"])
    }));
    sides.push(Side::new("reading and parsing the results", |_| {
        floor::read_and_parse(&stand.work)
    }));
    let series = in_turn(rounds(stand), &mut sides)?;
    drop(sides);
    let wall = |label: &str| wall(&series, label);
    let (no_op, ours) = (wall("no-op"), wall("milepost"));
    let aggregate = wall("no-op and the aggregate, forced").saturating_sub(no_op);
    let parse = wall("reading and parsing the results");
    let others: Vec<(&str, Duration)> = stand
        .tools
        .iter()
        .map(|tool| (tool.name(), wall(tool.name())))
        .collect();
    book.keep(ONE, batches, series);
    let bar = Bar::at(100_000, 1.0);
    let allowed = no_op + aggregate.mul_f64(1.2);
    book.times(ONE, batches, ours, "no-op + 1.2 aggregate", allowed, bar);
    for (name, wall) in others {
        book.times(ONE, batches, ours, name, wall, None);
    }
    let name = "aggregate alone";
    book.times(name, batches, aggregate, "read and parse", parse, None);
    Ok(())
}

/// One input changed, where no stage reads all outputs.
pub fn one_without_aggregate(stand: &Stand, book: &mut Book) -> Result<()> {
    const ALONE: &str = "one changed, no aggregate";
    let batches = stand.work.batches;
    eprintln!("{batches} batches, one changed, no aggregate");
    stand.settle_by(Step::Copy, false)?;
    let series = in_turn(
        rounds(stand),
        &mut [
            Side::new("no-op", |_| {
                stand.settle()?;
                stand.run(cores())
            }),
            Side::new("milepost", |round| {
                // Other values than before: what is there must be made again.
                let round = round + 500;
                change(stand, round)?;
                let sample = stand.run(cores())?;
                same(stand, round, &stand.work.result(item(stand, round)))?;
                Ok(sample)
            }),
        ],
    )?;
    let allowed = wall(&series, "no-op") + ONE_MORE;
    let ours = wall(&series, "milepost");
    book.keep(ALONE, batches, series);
    let bar = Bar::at(100_000, 1.0);
    book.times(ALONE, batches, ours, "no-op + 20 ms", allowed, bar);
    Ok(())
}

/// All inputs touched: later mtimes, the same content. Nothing is made again.
pub fn all_touched(stand: &Stand, book: &mut Book) -> Result<()> {
    const TOUCHED: &str = "all touched";
    const FLOOR: &str = "reading and hashing them";
    let batches = stand.work.batches;
    eprintln!("{batches} batches, all touched");
    stand.settle_by(Step::Copy, true)?;
    let made = || std::fs::metadata(stand.work.result(0))?.modified();
    let before = made()?;
    let series = in_turn(
        rounds(stand),
        &mut [
            Side::new("milepost", |_| {
                stand.settle()?;
                let time = SystemTime::now();
                for item in 0..batches {
                    File::open(stand.work.input(item))?.set_modified(time)?;
                }
                stand.run(cores())
            }),
            Side::new(FLOOR, |_| floor::read_and_hash(&stand.work, cores())),
        ],
    )?;
    if made()? != before {
        return Err("a touched input was copied again".into());
    }
    book.keep(TOUCHED, batches, series);
    let bar = Bar::at(100_000, 2.0);
    book.compare(TOUCHED, batches, "milepost", FLOOR, bar);
    Ok(())
}

/// The input that a round changes.
fn item(stand: &Stand, round: usize) -> usize {
    (round + 1) * 7919 % stand.work.batches
}

/// What it holds then: as many digits as any other value of a changed input, and never what it held before.
fn change(stand: &Stand, round: usize) -> Result<()> {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let value = 1_000_000_000 + usize::try_from(seconds.as_millis() % 1_000_000_000)?;
    stand.work.write_input(item(stand, round), value)
}

/// The output must be what the input is.
fn same(stand: &Stand, round: usize, made: &Path) -> Result<()> {
    let input = stand.work.input(item(stand, round));
    if std::fs::read(input)? == std::fs::read(made)? {
        return Ok(());
    }
    Err(format!("{} is not made of its changed input", made.display()).into())
}

fn wall(series: &[Series], label: &str) -> Duration {
    let found = series.iter().find(|series| series.label == label);
    found.map(Series::wall).unwrap_or_default()
}
