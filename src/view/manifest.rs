//! What became of the entries of a manifest, as a table.

use super::paint::Paint;
use super::table::{Side, table};
use super::words::{at_most, count, seconds};
use milepost_engine::ops::run::workspaces::WorkspacesResult;

/// A line for each entry, and how many ended how.
pub(crate) fn manifest(paint: Paint, batch: &WorkspacesResult) -> String {
    let rows = batch.entries.iter().map(|entry| {
        let about = match (&entry.error, &entry.estimate) {
            (Some(error), _) => format!("{}: {}", error.code, error.message),
            (None, Some(left)) if left.calls != Some(0) => {
                let calls = match left.calls {
                    Some(calls) => format!("{} to make", count(calls, "call", "calls")),
                    None => "number of calls not known yet".to_owned(),
                };
                let cost = left
                    .cost_usd
                    .map_or(String::new(), |cost| format!(", ${cost:.2}"));
                let more = left
                    .calls
                    .map(|calls| at_most(calls, None, left.most_calls));
                let more = more.unwrap_or_default();
                format!("{calls}{more}{cost}")
            }
            (None, _) => entry.reason.clone().unwrap_or_default(),
        };
        vec![
            entry.workspace.clone(),
            entry.status.to_owned(),
            seconds(entry.seconds),
            about,
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let sides = [Side::Left, Side::Left, Side::Right, Side::Left];
    let failed = batch
        .entries
        .iter()
        .filter(|entry| entry.exit_code != 0)
        .count();
    let all = count(batch.entries.len() as u64, "workspace", "workspaces");
    let end = match failed {
        0 => paint.good(&all),
        some => paint.warn(format!("{all}, {some} not complete")),
    };
    format!("{}\n{end}\n", table(&sides, &rows))
}
