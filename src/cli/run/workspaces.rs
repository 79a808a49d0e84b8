//! `run --workspaces`: runs one workspace after another, and prints a summary.

use super::progress::RunProgress;
use crate::cli::print::Printer;
use crate::cli::signals;
use crate::view;
use milepost_core::model::money::NanoUsd;
use milepost_core::plan::options::invocation::Invocation;
use milepost_core::plan::options::invocation::shell_word;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::workspaces::{WorkspacesResult, entries, worst_code};
use milepost_engine::ops::run::{RunOptions, adopt_orphans};
use std::path::Path;

/// Runs or plans all entries of a workspace list, and returns the exit code of the entry that ended worst.
///
/// # Errors
/// If the list cannot be read or the summary fails. A failed entry is not an error: the table lists it.
pub(crate) fn run(
    printer: &Printer,
    request: &Request,
    options: &RunOptions,
    file: &Path,
    dry: bool,
    verbose: bool,
) -> Result<u8, OpsError> {
    let invocation = &request.invocation;
    let entries = entries(request, file)?;
    adopt_orphans();
    let stop = signals::stop_flag(printer);
    let mut batch = WorkspacesResult {
        dry_run: dry || options.until_paid,
        entries: Vec::new(),
    };
    let count = entries.all.len();
    let mut spent = NanoUsd::ZERO;
    for (entry, number) in entries.all.iter().zip(1..) {
        if !printer.quiet && !stop.is_set() {
            let name = printer.err.strong(&entry.workspace);
            printer.say(&format!("{name} ({number} of {count})"));
        }
        let workspace = shell_word(&invocation.near(&entry.folder.to_string_lossy()));
        let of_entry = Invocation {
            milepost: format!("{} --workspace {workspace}", invocation.milepost),
            ..invocation.clone()
        };
        let mut progress = RunProgress::new(printer, &of_entry).verbose(verbose);
        // The budget is for all entries together.
        let own = RunOptions {
            budget_usd: options.budget_usd.map(|budget| budget.less(spent)),
            ..options.clone()
        };
        let ended = entries.one(entry, request, &own, dry, &mut progress, &stop);
        progress.end();
        spent = spent + ended.usage.known;
        // Otherwise the table shows it.
        if let Some(error) = ended.error.as_ref().filter(|_| printer.json) {
            printer.error(&format!(
                "{}: {}: {}",
                ended.workspace, error.code, error.message
            ));
        }
        batch.entries.push(ended);
    }
    let code = worst_code(&batch.entries);
    let summary = entries.summary(&batch)?;
    if printer.json {
        printer.result_json(&summary);
        return Ok(code);
    }
    if !printer.quiet || code != 0 {
        printer.result(&view::run::workspaces::table(printer.out, &batch));
    }
    if entries.has_summary() && !printer.quiet {
        printer.result_json(&summary);
    }
    Ok(code)
}
