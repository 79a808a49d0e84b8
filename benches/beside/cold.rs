//! First runs: by a command beside the other tools, by Milepost's own steps beside Ninja and `cp -r`.

use crate::Result;
use crate::book::{Bar, Book};
use crate::child::Sample;
use crate::stand::Stand;
use crate::tools::Tool;
use crate::turns::{Side, in_turn};
use crate::work::Step;

/// The name of these measures.
pub const COLD: &str = "cold";

/// The series that tells how cost grows.
pub const BY_COPY: &str = "milepost own step copy, 1 job";

/// Measures all of them. What Milepost made by its own step `copy` is left in place, and what the other tools made.
pub fn measure(stand: &Stand, book: &mut Book) -> Result<()> {
    let batches = stand.work.batches;
    let mut sides = Vec::new();
    for jobs in [1, 2] {
        if stand.is_huge() {
            break;
        }
        sides.push(Side::new(by_command(jobs), move |_| {
            milepost(stand, Step::Command, jobs)
        }));
        for &tool in &stand.tools {
            sides.push(Side::new(other(tool, jobs), move |_| {
                build(stand, tool, jobs)
            }));
        }
    }
    if !stand.is_huge() {
        sides.push(Side::new("milepost own step jq, 1 job", |_| {
            milepost(stand, Step::Jq, 1)
        }));
        sides.push(Side::new("milepost own step jq, 2 jobs", |_| {
            milepost(stand, Step::Jq, 2)
        }));
        sides.push(Side::new("milepost own step copy, 2 jobs", |_| {
            milepost(stand, Step::Copy, 2)
        }));
    }
    sides.push(Side::new(BY_COPY, |_| milepost(stand, Step::Copy, 1)));
    sides.push(Side::new("cp -r", |_| copy(stand)));
    eprintln!("{batches} batches, first runs");
    let series = in_turn(stand.cold_rounds(), &mut sides)?;
    drop(sides);
    book.keep(COLD, batches, series);

    for jobs in [1, 2] {
        let ours = by_command(jobs);
        for &tool in &stand.tools {
            let bar = match tool {
                Tool::Ninja => Some(Bar::at(10_000, 1.0)),
                Tool::Make => Some(Bar::at(10_000, 1.15)),
                _ => None,
            };
            book.compare(COLD, batches, &ours, &other(tool, jobs), bar);
            book.compare_durable(COLD, batches, &ours, &other(tool, jobs));
        }
    }
    for step in ["copy", "jq"] {
        for (jobs, plural) in [(1, ""), (2, "s")] {
            let ours = format!("milepost own step {step}, {jobs} job{plural}");
            let ninja = other(Tool::Ninja, jobs);
            book.compare(COLD, batches, &ours, &ninja, Bar::at(10_000, 0.1));
            book.compare(COLD, batches, &ours, "cp -r", Bar::at(100_000, 1.3));
            book.compare_durable(COLD, batches, &ours, "cp -r");
        }
    }
    Ok(())
}

fn by_command(jobs: usize) -> String {
    format!(
        "milepost cp, {jobs} job{}",
        if jobs == 1 { "" } else { "s" }
    )
}

fn other(tool: Tool, jobs: usize) -> String {
    format!("{tool} -j {jobs}")
}

/// A first run of Milepost. Nobody else's writes wait for the disk when it starts, and it made everything when it ends.
fn milepost(stand: &Stand, step: Step, jobs: usize) -> Result<Sample> {
    stand.work.declare(step, true)?;
    stand.work.clear()?;
    rustix::fs::sync();
    let sample = stand.run(jobs)?.flushed();
    let total = stand.work.folder.join("workspace/outputs/total.json");
    let total: serde_json::Value = serde_json::from_slice(&std::fs::read(total)?)?;
    if total["count"] != stand.work.batches {
        return Err(format!("milepost made {total} of {} batches", stand.work.batches).into());
    }
    Ok(sample)
}

/// The same of another tool.
fn build(stand: &Stand, tool: Tool, jobs: usize) -> Result<Sample> {
    tool.clear(&stand.work)?;
    rustix::fs::sync();
    let sample = stand.build(tool, jobs)?.flushed();
    let total = stand.work.folder.join(format!("made/{tool}.txt"));
    let total = std::fs::read_to_string(total)?;
    if total.trim().parse() != Ok(stand.work.bytes()) {
        return Err(format!(
            "{tool} made {} bytes of {}",
            total.trim(),
            stand.work.bytes()
        )
        .into());
    }
    Ok(sample)
}

/// A copy of the inputs, removed afterwards.
fn copy(stand: &Stand) -> Result<Sample> {
    stand.work.clear_made("cp", &[])?;
    std::fs::remove_dir(stand.work.made("cp"))?;
    rustix::fs::sync();
    let sample = stand.copy_inputs()?.flushed();
    std::fs::remove_dir_all(stand.work.made("cp"))?;
    Ok(sample)
}
