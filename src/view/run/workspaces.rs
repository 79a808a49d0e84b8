//! The result of `run --workspaces` as a table.

use crate::view::run::summary::shown;
use crate::view::text::style::Style;
use crate::view::text::table::{self, Side};
use crate::view::text::words::{at_most, count, seconds};
use milepost_core::model::stage_word::StageWord;
use milepost_engine::ops::run::workspaces::{Estimate, WorkspacesResult};

/// Codes of errors that say nothing beside the message.
const BUILT_IN: [&str; 3] = ["ALTERED", "ERROR", "INPUT"];

/// Returns a line for each workspace, and the number of those that are not complete.
pub(crate) fn table(style: Style, batch: &WorkspacesResult) -> String {
    let rows = batch.entries.iter().map(|entry| {
        let about = match (&entry.error, &entry.estimate) {
            (Some(error), _) if BUILT_IN.contains(&error.code.as_str()) => error.message.clone(),
            (Some(error), _) => format!("{}: {}", error.code, error.message),
            (None, Some(left)) if left.calls != Some(0) => calls(left),
            (None, _) => entry.reason.clone().unwrap_or_default(),
        };
        vec![
            entry.workspace.clone(),
            entry
                .held
                .map_or(shown(entry.status), StageWord::text)
                .to_owned(),
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
    let total = batch.total().filter(|total| total.calls != Some(0));
    let total = total.map_or(String::new(), |total| format!(", {}", calls(&total)));
    let end = match failed {
        0 => style.good(format!("{all}{total}")),
        some => style.warn(format!("{all}, {some} not complete{total}")),
    };
    format!("{}\n{end}\n", table::table(&sides, &rows))
}

/// Returns the calls that a workspace still needs, and their cost.
fn calls(left: &Estimate) -> String {
    let calls = match left.calls {
        Some(calls) => format!("{} to make", count(calls, "call", "calls")),
        None => "number of calls not known yet".to_owned(),
    };
    let more = left
        .calls
        .map(|calls| at_most(calls, None, left.most_calls));
    let more = more.unwrap_or_default();
    let cost = match (left.cost_usd, left.most_cost_usd) {
        (None, _) => String::new(),
        (Some(cost), Some(most)) if most > cost => format!(", ${cost:.2} to ${most:.2}"),
        (Some(cost), _) => format!(", ${cost:.2}"),
    };
    format!("{calls}{more}{cost}")
}
