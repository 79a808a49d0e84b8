//! Accepted modifications by hand as text: by whom, when, why, and the digests before and after.

use crate::view::text::table::time;
use crate::view::text::words::batches;
use crate::view::text::words::place;
use milepost_core::base::visible::visible;
use milepost_core::model::approval::Approval;
use milepost_core::model::record::Override;

/// Returns `accepted by Ada on 2026-11-23 10:00:00Z: why; 0123456789ab… → 456789abcdef…`.
pub(crate) fn accepted(one: &Override) -> String {
    let when = one
        .at
        .map_or_else(String::new, |at| format!(" on {}", time(at)));
    let digests = match (&one.from, &one.to) {
        (Some(from), Some(to)) => format!("; {}… → {}…", from.short(), to.short()),
        (None, Some(to)) => format!("; now {}…", to.short()),
        _ => String::new(),
    };
    let text = format!("accepted by {}{when}: {}{digests}", one.by, one.why);
    visible(&text).into_owned()
}

/// Returns `12 batches by Ada as reviewer on 2026-11-23 10:00:00Z: why`.
pub(crate) fn approved(one: &Approval) -> String {
    let when = one
        .at
        .map_or_else(String::new, |at| format!(" on {}", time(at)));
    let many = batches(one.batches);
    let text = format!("{many} by {} as {}{when}: {}", one.by, one.role, one.why);
    visible(&text).into_owned()
}

/// Returns a line with the file, its batch, and the acceptance.
pub(crate) fn line(one: &Override) -> String {
    let made_by = place(&one.stage, &one.batch);
    match &one.path {
        Some(path) => format!("{} (of {made_by}): {}", visible(path), accepted(one)),
        None => format!("an output of {made_by}: {}", accepted(one)),
    }
}
