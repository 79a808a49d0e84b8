//! Nothing to do: a run, and what is asked of a workspace, when everything is done and settled.

use crate::book::{Bar, Book};
use crate::machine::cores;
use crate::stand::Stand;
use crate::tools::Tool;
use crate::turns::{Side, in_turn};
use crate::work::Step;
use crate::{Measure, Result, floor};

/// A run with nothing to do.
pub const NO_OP: &str = "no-op";

/// Measures both groups, or one of them.
pub fn measure(stand: &Stand, wants: &dyn Fn(Measure) -> bool, book: &mut Book) -> Result<()> {
    eprintln!("{} batches, nothing to do", stand.work.batches);
    stand.settle_by(Step::Copy, true)?;
    if wants(Measure::NoOp) {
        no_op(stand, book)?;
    }
    if wants(Measure::Questions) {
        questions(stand, book)?;
    }
    Ok(())
}

fn no_op(stand: &Stand, book: &mut Book) -> Result<()> {
    let batches = stand.work.batches;
    for &tool in &stand.tools {
        stand.settle_tool(tool)?;
    }
    stand.settle()?;
    let mut sides = vec![Side::new("milepost", |_| stand.run(cores()))];
    for &tool in &stand.tools {
        sides.push(Side::new(tool.name(), move |_| stand.build(tool, cores())));
    }
    sides.push(Side::new("one stat of each file", |_| {
        floor::stat_all(&stand.work, cores())
    }));
    let series = in_turn(stand.rounds(), &mut sides)?;
    drop(sides);
    book.keep(NO_OP, batches, series);
    for &tool in &stand.tools {
        let bar = match tool {
            Tool::Ninja => Some(Bar::at(100_000, 1.0)),
            _ => None,
        };
        book.compare(NO_OP, batches, "milepost", tool.name(), bar);
        book.compare_memory(NO_OP, batches, tool.name(), bar);
    }
    book.compare(NO_OP, batches, "milepost", "one stat of each file", None);
    Ok(())
}

fn questions(stand: &Stand, book: &mut Book) -> Result<()> {
    const QUESTIONS: &str = "questions";
    let batches = stand.work.batches;
    let batch = format!("map/item_{:07}", batches / 2);
    let asked: [&[&str]; 5] = [
        &["plan"],
        &["status"],
        &["why", "map"],
        &["why", &batch],
        &["why", "outputs/total.json"],
    ];
    let mut sides = vec![Side::new("a run with nothing to do", |_| {
        stand.run(cores())
    })];
    for arguments in asked {
        let label = format!("milepost {}", arguments.join(" "));
        sides.push(Side::new(label, move |_| stand.milepost(arguments)));
    }
    let series = in_turn(stand.rounds(), &mut sides)?;
    drop(sides);
    book.keep(QUESTIONS, batches, series);
    for arguments in asked {
        let label = format!("milepost {}", arguments.join(" "));
        let bar = Bar::at(100_000, 1.0);
        book.compare(QUESTIONS, batches, &label, "a run with nothing to do", bar);
    }
    Ok(())
}
