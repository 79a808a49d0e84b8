//! `log --follow`: prints records as runs write them, until Ctrl-C.

use super::print::Printer;
use super::signals::{self, INTERRUPTED};
use crate::view;
use crate::view::log::RecordLines;
use milepost_core::model::event::Record;
use milepost_engine::ops::exit_code::FAILED;
use milepost_engine::ops::inspect::log::{Log, LogOptions, follow_log};
use milepost_engine::ops::project::{OpsError, Request};
use milepost_engine::ops::run::StopFlag;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The time between two reads of the journal.
const EVERY: Duration = Duration::from_millis(200);

/// Prints the latest records, then new ones, until Ctrl-C or until the reader of standard output is gone.
///
/// # Errors
/// If the journal cannot be read, or is broken or replaced in the meantime.
pub(crate) fn follow(
    printer: &Printer,
    request: &Request,
    options: &LogOptions,
) -> Result<u8, OpsError> {
    let stop = Arc::new(StopFlag::new());
    if let Err(error) = signals::listen(Arc::clone(&stop), || ()) {
        printer.warning(&format!("Ctrl-C ends the program at once: {error}"));
    }
    let (log, follower) = follow_log(request, options)?;
    let mut lines = RecordLines::of_unknown();
    let Log {
        records,
        left_out,
        broken,
        ..
    } = log;
    if left_out > 0 && !printer.json {
        printer.result(&view::log::left_out(left_out, "records"));
    }
    print(printer, &mut lines, &records);
    let Some(mut follower) = follower else {
        printer.error(&broken.unwrap_or_default());
        return Ok(FAILED);
    };
    while !stop.is_set() {
        let records = follower.read()?;
        print(printer, &mut lines, &records);
        if Printer::is_closed() {
            return Ok(0);
        }
        if records.is_empty() {
            stop.pause(EVERY);
        }
    }
    Ok(INTERRUPTED)
}

/// Prints records: as lines for people, or each as JSON on one line.
fn print(printer: &Printer, lines: &mut RecordLines, records: &[Record]) {
    if printer.json {
        for record in records {
            printer.result_line(&json!(record));
        }
        return;
    }
    let text = lines.lines(records);
    if !text.is_empty() {
        printer.result(&text);
    }
}
