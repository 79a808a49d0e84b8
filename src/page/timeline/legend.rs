//! The meaning of the bars and marks of a timeline.

use super::words::{mark_word, part_class, result_class};
use milepost_engine::ops::inspect::history::timeline::{BarKind, Timeline};
use milepost_engine::ops::inspect::history::{BarResult, MarkKind, PartKind};
use std::fmt::Write as _;

/// The height of a part of a bar, such as a call.
pub(super) const PART: i32 = 5;

/// Returns the class and the sign of a mark, 10 by 10.
pub(super) fn sign(kind: MarkKind) -> (&'static str, &'static str) {
    match kind {
        MarkKind::Handoff => ("d-handoff", "M1 1H9L5 9Z"),
        MarkKind::Positive => ("d-good-mark", "M1 5.5L4 8.5L9 2"),
        MarkKind::Negative => ("d-bad-mark", "M1 5H9"),
        MarkKind::Failure => ("d-bad-mark", "M1.5 1.5L8.5 8.5M8.5 1.5L1.5 8.5"),
        MarkKind::Approved => ("d-person", "M5 0.5L9.5 5L5 9.5L0.5 5Z"),
        MarkKind::Accepted => ("d-person", "M1 9L1.8 6L7 0.8L9.2 3L4 8.2Z"),
    }
}

/// Returns the meaning of the bars and marks that a timeline has.
pub(super) fn legend(data: &Timeline) -> String {
    let bars = || data.lanes.iter().flat_map(|lane| &lane.bars);
    let mut entries: Vec<(String, String)> = Vec::new();
    let results = [
        (BarResult::Built, "complete"),
        (BarResult::Failed, "failed"),
        (BarResult::Running, "running"),
        (BarResult::Interrupted, "interrupted"),
    ];
    for (result, word) in results {
        let class = result_class(result);
        if bars().any(|bar| bar.kind == BarKind::Batch && result_class(bar.result) == class) {
            entries.push((
                format!("<rect class=\"d-bar {class}\" y=\"1\" width=\"16\" height=\"10\"/>"),
                word.to_owned(),
            ));
        }
    }
    let parts = [
        (
            PartKind::Iteration,
            BarResult::Built,
            "iteration, satisfied",
        ),
        (
            PartKind::Iteration,
            BarResult::Repeated,
            "iteration, not satisfied",
        ),
        (PartKind::Step, BarResult::Built, "step"),
        (PartKind::Call, BarResult::Built, "call"),
    ];
    for (kind, result, word) in parts {
        if bars().any(|bar| bar.kind == BarKind::Part(kind) && bar.result == result) {
            let (class, result) = (part_class(kind), result_class(result));
            entries.push((
                format!(
                    "<rect class=\"{class} {result}\" y=\"4\" width=\"16\" height=\"{PART}\"/>"
                ),
                word.to_owned(),
            ));
        }
    }
    let marks = [
        MarkKind::Handoff,
        MarkKind::Positive,
        MarkKind::Negative,
        MarkKind::Failure,
        MarkKind::Approved,
        MarkKind::Accepted,
    ];
    for kind in marks {
        if data
            .lanes
            .iter()
            .flat_map(|lane| &lane.marks)
            .any(|mark| mark.kind == kind)
        {
            let (class, path) = sign(kind);
            entries.push((
                format!(
                    "<path class=\"d-mark {class}\" transform=\"translate(3 1)\" d=\"{path}\"/>"
                ),
                mark_word(kind).to_owned(),
            ));
        }
    }
    if bars().any(|bar| bar.kind == BarKind::Batch && bar.count > 1) {
        entries.push((
            String::new(),
            "number: batches merged into one block".to_owned(),
        ));
    }
    let mut svg = String::new();
    let mut x = 0;
    for (drawn, word) in entries {
        let _ = writeln!(
            svg,
            "<g transform=\"translate({x} 0)\">{drawn}<text class=\"d-muted d-small\" x=\"21\" y=\"10\">{word}</text></g>"
        );
        x += 36 + word.len() as i32 * 6;
    }
    svg
}
