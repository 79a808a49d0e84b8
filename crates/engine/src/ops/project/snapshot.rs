//! What is known of a workspace at present, for readers that a run at work must not disturb.

use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::replay;
use jiff::Timestamp;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::state::State;
use milepost_store::store::journal::{self, JournalError};
use milepost_store::store::layout::Layout;
use milepost_store::store::lock::{Holder, Lock};
use serde::Serialize;

/// Readings until one is whole: a run may write manifests and begin a segment of the journal in between.
const READINGS: usize = 5;

/// What is known of a workspace.
pub(crate) struct Snapshot {
    /// The manifests, and the last segment of the journal after them.
    pub(crate) state: State,
    /// The records of that segment.
    pub(crate) records: Vec<Record>,
    /// The run that is at work.
    pub(crate) runner: Option<Runner>,
}

/// A run that is at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Runner {
    /// The run.
    pub run_id: String,
    /// Its process.
    pub pid: u32,
    /// The machine that it runs on.
    pub host: String,
    /// What it was started by.
    pub command: String,
    /// When it began, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub since: Timestamp,
}

/// The run that began last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct LastRun {
    /// The run.
    pub run_id: String,
    /// How it ended: the word of its last record; `running` while it is at work, `broken off` when it was killed.
    pub status: String,
    /// When its last record was written, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub when: Timestamp,
}

impl Snapshot {
    /// Reads what is known. Nothing is written, and no lock is taken.
    ///
    /// # Errors
    /// When a manifest or the journal is damaged.
    pub(crate) fn read(layout: &Layout) -> Result<Self, OpsError> {
        let mut readings = 1;
        loop {
            let runner = runner(layout);
            let before = journal::segments(layout)?.last().copied();
            let read = journal::read_last_segment(layout)
                .map_err(OpsError::from)
                .and_then(|(records, _)| Ok((replay(layout, &records)?, records)));
            let whole = journal::segments(layout)?.last().copied() == before;
            match read {
                Ok((state, records)) if whole || readings == READINGS => {
                    return Ok(Self {
                        state,
                        records,
                        runner,
                    });
                }
                Err(error) if readings == READINGS || is_final(&error) => return Err(error),
                _ => readings += 1,
            }
        }
    }
}

/// How the last run ended, or that it goes on; none when the last segment of the journal has no record.
pub(crate) fn last_run(records: &[Record], runner: Option<&Runner>) -> Option<LastRun> {
    let last = records.last()?;
    let at_work = runner.is_some_and(|runner| runner.run_id == last.run_id);
    let status = match &last.event {
        Event::RunFinished { status, .. } => status.as_str(),
        _ if at_work => "running",
        _ => "broken off",
    };
    Some(LastRun {
        run_id: last.run_id.clone(),
        status: status.to_owned(),
        when: last.timestamp,
    })
}

/// An error that another reading cannot mend.
fn is_final(error: &OpsError) -> bool {
    matches!(error, OpsError::Journal(JournalError::Newer { .. }))
}

/// The run that is at work in a workspace.
pub(crate) fn runner(layout: &Layout) -> Option<Runner> {
    let holder: Holder = Lock::peek(&layout.lock()).filter(Holder::is_alive)?;
    Some(Runner {
        run_id: holder.run_id,
        pid: holder.pid,
        host: holder.host,
        command: holder.command,
        since: holder.since,
    })
}
