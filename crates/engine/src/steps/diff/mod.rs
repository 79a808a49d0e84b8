//! The step `diff`: compares records with those of an earlier revision.
//!
//! It reads both lists once, and the earlier records that differ a second time. Memory holds about 250 bytes for each record, and
//! the quantities of parts; what differs is written at once.

mod compare;
mod compared;
mod totals;

use super::batch_context::{BatchContext, StepReport, StepResult, output_failure, parse_failure};
use super::records::Records;
pub use compare::{ChangeKind, RecordChange};
pub(crate) use compare::{Comparer, compare};
use milepost_core::model::step::DiffStep;
use std::io::{self, Write};
use std::rc::Rc;
pub use totals::{GroupChange, QuantityChange, Totals};

/// Runs the step.
///
/// # Errors
/// When records cannot be read, or `compare` returns something else than it must.
pub(crate) fn diff(ctx: &mut BatchContext<'_>, out: &str, step: &DiffStep) -> StepResult {
    let workers = Rc::clone(&ctx.jq);
    let comparer = Comparer::new(step, &ctx.base, &*workers, ctx.threads).map_err(parse_failure)?;
    let old = Records::of(ctx, "diff", &step.baseline)?;
    let new = Records::of(ctx, "diff", &step.records)?;
    let failed = |error: io::Error| output_failure(out, error);
    let mut sink = ctx.outputs.create(out, None).map_err(failed)?;
    sink.write_all(b"{\"changes\":[").map_err(failed)?;
    let mut separator = "\n";
    let totals = compare(&comparer, &old, &new, &mut |change| {
        let text = serde_json::to_string(&change).map_err(parse_failure)?;
        write!(sink, "{separator}{text}").map_err(failed)?;
        separator = ",\n";
        Ok(())
    })?;
    let text = serde_json::to_string(&totals).map_err(parse_failure)?;
    // The totals are an object: its fields follow the list.
    writeln!(sink, "\n],{}", &text[1..]).map_err(failed)?;
    sink.finish().map_err(failed)?;
    Ok(StepReport::default())
}
