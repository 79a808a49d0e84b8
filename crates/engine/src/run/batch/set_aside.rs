//! Moves what a failed batch left to quarantine, with the reason: partial files, and requests with invalid answers.

use crate::run::error::RunError;
use crate::run::record::recorder::Recorder;
use milepost_core::model::outcome::Outcome;
use milepost_store::store::scratch::Scratch;
use milepost_store::store::{layout, quarantine};

/// A call with invalid answers: its number in the run, and the violations.
pub(crate) type Refused = (u64, Vec<String>);

/// Moves the leftover files of a failed batch to quarantine and returns the folder; `None` if there are none.
///
/// # Errors
/// When the disk fails.
pub(crate) fn set_aside(
    recorder: &Recorder<'_>,
    name: &str,
    outcome: &Outcome,
    scratch: Option<Scratch>,
    refused: &[Refused],
) -> Result<Option<String>, RunError> {
    let ctx = recorder.ctx;
    let scratch = match scratch {
        Some(scratch) if scratch.is_empty() => {
            scratch.remove();
            None
        }
        other => other,
    };
    if scratch.is_none() && refused.is_empty() {
        return Ok(None);
    }
    let name = name.replace('/', "-");
    let folder = quarantine::folder(recorder.run_id(), recorder.counted(), &name);
    if let Some(scratch) = scratch {
        scratch.keep(ctx.layout, &folder)?;
    }
    let mut why = format!("{outcome}\n");
    for line in &outcome.details {
        why.push_str(line);
        why.push('\n');
    }
    for (number, violations) in refused {
        for what in ["request", "answer"] {
            let from = layout::call(recorder.run_id(), *number, what);
            quarantine::copy(ctx.disk, ctx.layout, &from, &folder)?;
        }
        why.push_str(&format!(
            "\nThe answer to call {number} was not valid:\n- {}\n",
            violations.join("\n- ")
        ));
    }
    quarantine::write_reason(ctx.disk, ctx.layout, &folder, &why)?;
    Ok(Some(folder.to_string()))
}
