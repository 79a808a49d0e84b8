//! The kind of step that compares records with those of an earlier revision.

use super::info::{Describe, KindInfo};
use super::part::Part;
use crate::expr::select::Select;
use crate::model::declared::expression::Program;
use crate::model::declared::keys::ValueKind::{Jq, Number, Select as Plain};
use crate::model::declared::keys::key;

/// Compares records with those of an earlier revision.
#[derive(Debug, Clone)]
pub struct DiffStep {
    pub records: Select,
    /// The records of the earlier revision.
    pub baseline: Select,
    /// Returns the parts of a record that are compared; `.` is the record.
    pub compare: Program,
    /// Relative tolerance for numbers; an absolute tolerance if both are below 1.
    pub tolerance: f64,
}

/// The tolerance of a step that declares none.
pub(crate) const TOLERANCE: f64 = 1e-6;

impl Describe for DiffStep {
    const INFO: KindInfo = KindInfo {
        ending: Some("json"),
        ..KindInfo::computing(
            "diff",
            &[
                key("diff", Plain)
                    .what()
                    .doc("Compares these records with those of an earlier revision."),
                key("baseline", Plain)
                    .required_beside("diff")
                    .doc("The records of the earlier revision."),
                key("compare", Jq).required_beside("diff").doc(
                    "Selects the parts of a record to compare; `.` is the record. Returns an \
                     object of `key`, `group`, `fields`, `quantities` and `part_of`.",
                ),
                key("tolerance", Number)
                    .beside(&["diff"])
                    .default("0.000001")
                    .doc(
                        "Relative tolerance for numbers; an absolute tolerance if both numbers are \
                         below 1.",
                    ),
            ],
        )
    };

    fn parts(&self) -> Vec<(&'static str, Part<'_>)> {
        let Self {
            records,
            baseline,
            compare,
            tolerance: _,
        } = self;
        vec![
            ("diff", Part::Select(records)),
            ("baseline", Part::Select(baseline)),
            ("compare", Part::Program(compare)),
            ("tolerance", Part::Literal),
        ]
    }
}
