//! Runs inside the test's process: the library is called as other programs call it.

use super::{Files, Project, files_below};
use milepost_core::base::clock::StillClock;
use milepost_engine::ops::project::Request;
use milepost_engine::ops::run::{RunOptions, Timing, run};
use milepost_engine::run::notice::Silent;
use milepost_engine::run::report::Report;
use milepost_engine::run::stop::StopFlag;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The time of these runs.
pub const NOW: &str = "2026-11-21T10:00:00Z";

impl Project {
    /// The project as it is declared, at a time that stands still.
    pub fn request(&self) -> Request {
        Request {
            environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            disk: self.disk.clone(),
            clock: Arc::new(StillClock(NOW.parse().unwrap())),
            command: "milepost run".into(),
            version: "0.0.0".into(),
            ..Request::new(self.path().to_owned(), BTreeMap::new())
        }
    }

    /// The options of a run of everything, without a wait between attempts.
    pub fn wanted(&self) -> RunOptions {
        RunOptions {
            force: self.force,
            timing: Timing {
                backoff: Duration::ZERO,
                ..Timing::default()
            },
            ..RunOptions::default()
        }
    }

    /// Runs everything.
    pub fn run_in_process(&self) -> Report {
        self.run_in_process_with(&self.wanted())
    }

    /// Runs with these options.
    pub fn run_in_process_with(&self, wanted: &RunOptions) -> Report {
        let report = run(&self.request(), wanted, &mut Silent, &StopFlag::new());
        report.unwrap_or_else(|error| panic!("{error}: {error:?}"))
    }

    /// Every file of the project.
    pub fn all_files(&self) -> Files {
        files_below(self.path(), |_| true)
    }
}
