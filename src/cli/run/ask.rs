//! Asks what happens to the jobs of a scheduler when a run is stopped.

use crate::cli::print::Printer;
use milepost_core::model::executor::ExecutorName;
use std::io::{BufRead as _, IsTerminal as _};

/// Asks whether jobs are left where they are, and returns true if so. Without a terminal they are left.
pub(super) fn leaves_jobs(printer: &Printer, executor: ExecutorName, jobs: u64) -> bool {
    let what = match jobs {
        1 => format!("1 job with `{executor}` waits or runs"),
        many => format!("{many} jobs with `{executor}` wait or run"),
    };
    let input = std::io::stdin();
    if !input.is_terminal() {
        printer.say(&format!(
            "{what}: left there; the next run collects their results"
        ));
        return true;
    }
    printer.say(&format!(
        "{what}: leave them there (Enter), or cancel them (c and Enter)?"
    ));
    let mut answer = String::new();
    let is_read = input.lock().read_line(&mut answer).is_ok();
    !(is_read && answer.trim().eq_ignore_ascii_case("c"))
}
