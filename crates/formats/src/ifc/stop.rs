//! Why a model is not read to its end although the file could be read on.

use super::open::IfcError;
use std::cell::Cell;
use std::io;

/// The end of reading before the end of the model.
#[derive(Debug)]
pub(super) enum Stop {
    /// The caller of the reader ended it.
    Cancelled(io::Error),
    /// The result could not be written.
    Write(io::Error),
    /// The model exceeds a limit: what of it, and how much is read.
    Limit(String),
}

impl Stop {
    /// Returns the error for the file that messages call `name`.
    pub(super) fn named(self, name: &str) -> IfcError {
        let file = name.to_owned();
        match self {
            Self::Cancelled(source) => IfcError::Read { file, source },
            Self::Write(source) => IfcError::Write { file, source },
            Self::Limit(what) => IfcError::Limit { file, what },
        }
    }
}

/// Steps between two questions to the caller.
const STEPS: u32 = 4096;

/// Asks the caller of the reader now and then whether to continue.
pub(super) struct Interrupt<'l> {
    ask: &'l dyn Fn() -> io::Result<()>,
    steps: Cell<u32>,
}

impl<'l> Interrupt<'l> {
    pub(super) fn new(ask: &'l dyn Fn() -> io::Result<()>) -> Self {
        Self {
            ask,
            steps: Cell::new(0),
        }
    }

    /// Counts a step, and asks after each few thousand.
    pub(super) fn step(&self) -> Result<(), Stop> {
        let steps = self.steps.get() + 1;
        if steps < STEPS {
            self.steps.set(steps);
            return Ok(());
        }
        self.steps.set(0);
        self.ask()
    }

    /// Asks at once.
    pub(super) fn ask(&self) -> Result<(), Stop> {
        (self.ask)().map_err(Stop::Cancelled)
    }
}
