//! `run --manifest`: one workspace after another, and a summary at the end.

use super::print::Printer;
use super::progress::Show;
use super::signals;
use crate::view;
use crate::view::call::Call;
use crate::view::words::shell_word;
use milepost_core::model::money::NanoUsd;
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::workspaces::{WorkspacesResult, entries, worst_code};
use milepost_engine::ops::run::{RunOptions, adopt_orphans};
use std::path::Path;

/// Runs, or plans, all entries of a manifest, and gives the exit code of the one that ended worst.
///
/// # Errors
/// When the manifest cannot be read, or its summary fails. What hinders an entry is told with it.
pub(crate) fn run(
    printer: &Printer,
    request: &Request,
    options: &RunOptions,
    file: &Path,
    dry: bool,
    call: &Call,
) -> Result<u8, OpsError> {
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
        let workspace = shell_word(&call.near(&entry.folder.to_string_lossy()));
        let of_entry = Call {
            milepost: format!("{} --workspace {workspace}", call.milepost),
            ..call.clone()
        };
        let mut show = Show::new(printer, &of_entry);
        // What may be spent is so of all entries together.
        let own = RunOptions {
            budget_usd: options.budget_usd.map(|budget| budget.less(spent)),
            ..options.clone()
        };
        let ended = entries.one(entry, request, &own, dry, &mut show, &stop);
        show.end();
        spent = spent + ended.usage.known;
        if let Some(error) = &ended.error {
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
        printer.result(&view::manifest::manifest(printer.out, &batch));
    }
    if entries.has_summary() && !printer.quiet {
        printer.result_json(&summary);
    }
    Ok(code)
}
