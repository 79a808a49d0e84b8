//! The output of a filter, as text.

use milepost_engine::ops::eval::Evaluation;

/// Returns the values as JSON, one after another.
pub(crate) fn eval(found: &Evaluation) -> String {
    let values = found.values.iter().map(|value| format!("{value:#}"));
    values.collect::<Vec<_>>().join("\n")
}
