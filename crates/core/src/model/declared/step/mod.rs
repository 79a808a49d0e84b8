//! A step as declared: its kind, its output, its attempts and its time limit.

mod diff;
mod documents;
mod geometry;
mod info;
mod kinds;
mod outside;
mod part;

pub use diff::DiffStep;
pub(crate) use diff::TOLERANCE;
pub use documents::{IfcStep, PdfEngine, PdfStep, PdfTextStep, XlsxStep};
pub use geometry::Geometry;
pub use info::{KindInfo, Outputs, PROGRAM_TIMEOUT, WAIT_TIMEOUT};
pub use kinds::*;
pub use outside::{AgentStep, AnswerForm, CommandStep, HttpStep, Items, WaitStep, carries_key};
pub use part::Part;

pub use super::expression::{Picked, TemplateChoice, TemplateFile, Text, project_path};
use super::expression::{Program, Templated};
use crate::model::outcome::Outcome;
use std::collections::BTreeMap;
use std::time::Duration;

/// One `[step]` or `[[step]]`.
#[derive(Debug, Clone)]
pub struct Step {
    pub kind: StepKind,
    /// The name of the result: an output, or a name that only later steps see.
    pub out: String,
    /// Runs the step only if this returns true.
    pub when: Option<Program>,
    /// `agent_name` in the journal; by default the stage's name.
    pub role: Option<String>,
    /// The counts, names and warnings that the journal says of its result.
    pub summary: Option<Program>,
    /// One try of this step.
    pub timeout: Option<Templated<Duration>>,
    /// Tries of this step.
    pub attempts: u32,
    /// The names of its failures; those of the stage name the others.
    pub errors: BTreeMap<String, String>,
}

impl Step {
    /// Gives an outcome the code that the step declares.
    #[must_use]
    pub fn named(&self, mut outcome: Outcome) -> Outcome {
        if let Some(name) = self.errors.get(outcome.kind.name()) {
            outcome.code.clone_from(name);
        }
        outcome
    }
}

/// The output that `split` writes beside its batches: the batch of each question.
pub const ASSIGNMENT: &str = "assignment";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_foreign_files_ends_by_itself() {
        for kind in [KindName::Ifc, KindName::PdfText, KindName::Jq] {
            assert_eq!(
                kind.info().timeout,
                Some(PROGRAM_TIMEOUT),
                "{}",
                kind.info().name
            );
        }
    }
}
