//! The descriptor of each kind of step.

use super::part::Part;
use crate::expr::scope::Format;
use crate::model::declared::keys::KeySpec;
use std::time::Duration;

/// The time limit of an attempt that starts a program, reads a model or a PDF, asks an agent or calls a service, if the step declares none.
pub const PROGRAM_TIMEOUT: Duration = Duration::from_mins(10);

/// The time limit of an attempt that waits for a file of another process, if the step declares none.
pub const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// The descriptor of a kind of step.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
#[derive(Debug)]
pub struct KindInfo {
    /// The key that declares it.
    pub name: &'static str,
    /// The key that defines the kind, and those allowed beside it. `schema` of agent and http is a key of all steps.
    pub keys: &'static [KeySpec],
    /// The time limit of one attempt, if the step declares none.
    pub(crate) timeout: Option<Duration>,
    /// The attempts, if the step declares none.
    pub(crate) attempts: u32,
    /// The files that it makes.
    pub outputs: Outputs,
    /// The extension that its output must have; `json` stands for any JSON file.
    pub(crate) ending: Option<&'static str>,
    /// The format of an `out` that is not an output.
    pub(crate) format: Format,
    /// True if it reads nothing but its inputs and kept answers, so that a dry run can simulate it.
    pub computes: bool,
    /// True if another attempt with the same inputs may succeed.
    pub reaches_out: bool,
    /// True if it watches its own time limit.
    pub ends_itself: bool,
    /// True if it writes files by their paths.
    pub writes_by_path: bool,
}

/// The files that a step makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    One,
    /// A file for each batch of a path with `*`.
    Many,
    /// Any outputs of its stage that no other step makes.
    Any,
}

impl KindInfo {
    /// A kind that computes one JSON value.
    pub(crate) const fn computing(name: &'static str, keys: &'static [KeySpec]) -> Self {
        Self {
            name,
            keys,
            timeout: None,
            attempts: 1,
            outputs: Outputs::One,
            ending: None,
            format: Format::Json,
            computes: true,
            reaches_out: false,
            ends_itself: false,
            writes_by_path: false,
        }
    }

    /// A kind that depends on programs or services besides its inputs.
    pub(crate) const fn outside(name: &'static str, keys: &'static [KeySpec]) -> Self {
        Self {
            timeout: Some(PROGRAM_TIMEOUT),
            computes: false,
            reaches_out: true,
            ends_itself: true,
            ..Self::computing(name, keys)
        }
    }
}

/// Describes a kind of step.
pub(crate) trait Describe {
    /// The properties that all steps of the kind share.
    const INFO: KindInfo;

    /// Takes the step apart. Destructure it without `..`, so that a new field does not compile until it has its part.
    fn parts(&self) -> Vec<(&'static str, Part<'_>)>;

    /// Returns how an `out` that is not an output is read back.
    fn out_format(&self) -> Format {
        Self::INFO.format
    }
}
