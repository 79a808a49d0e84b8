//! The recorded state of a workspace, read without disturbing a run.

use crate::ops::project::error::OpsError;
use crate::ops::project::half_published::recover_for_reading;
use crate::ops::project::open_project::replay;
use jiff::Timestamp;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::state::State;
use milepost_store::store::journal::{self, JournalError};
use milepost_store::store::layout::Layout;
use milepost_store::store::lock::{Holder, Lock};
use serde::Serialize;

/// How often reading is tried: a run may replace manifests and seal the journal meanwhile.
const READINGS: usize = 5;

/// The recorded state of a workspace at one moment.
pub(crate) struct Snapshot {
    /// The state by the manifests and the journal's records since its last seal.
    pub(crate) state: State,
    /// These records.
    pub(crate) records: Vec<Record>,
    /// Events that recovery will record for batches whose files are lost. `state` already includes them.
    pub(crate) lost: Vec<Event>,
    /// The run in progress.
    pub(crate) runner: Option<Runner>,
}

/// The status of a run that neither recorded its end nor is in progress.
pub(crate) const BROKEN_OFF: &str = "broken off";

/// A run in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Runner {
    /// The id of the run.
    pub run_id: String,
    /// Its process id.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// The command that started it.
    pub command: String,
    /// When it started, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub since: Timestamp,
}

/// The last run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct LastRun {
    /// The id of the run.
    pub run_id: String,
    /// How it ended, by its last record; `running` if it is in progress, `broken off` if it was killed.
    pub status: String,
    /// The time of its last record, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "String"))]
    pub when: Timestamp,
}

impl Snapshot {
    /// Reads the state without a lock. Nothing is written.
    ///
    /// # Errors
    /// When a manifest or the journal is damaged.
    pub(crate) fn read(layout: &Layout) -> Result<Self, OpsError> {
        let mut readings = 1;
        loop {
            let runner = runner(layout);
            let before = journal::sealed_at(layout)?;
            let read = journal::read_since_seal(layout)
                .map_err(OpsError::from)
                .and_then(|(records, _)| {
                    let mut state = replay(layout, &records)?;
                    let lost = recover_for_reading(layout, &mut state, runner.is_some())?;
                    Ok((state, records, lost))
                });
            let whole = journal::sealed_at(layout)? == before;
            match read {
                Ok((state, records, lost)) if whole || readings == READINGS => {
                    return Ok(Self {
                        state,
                        records,
                        lost,
                        runner,
                    });
                }
                Err(error) if readings == READINGS || is_final(&error) => return Err(error),
                _ => readings += 1,
            }
        }
    }
}

/// Returns the last run; `None` if the journal is empty.
pub(crate) fn last_run(records: &[Record], runner: Option<&Runner>) -> Option<LastRun> {
    let last = records.last()?;
    let at_work = runner.is_some_and(|runner| runner.run_id == last.run_id);
    let status = match &last.event {
        Event::RunFinished { status, .. } => status.as_str(),
        _ if at_work => "running",
        _ => BROKEN_OFF,
    };
    Some(LastRun {
        run_id: last.run_id.clone(),
        status: status.to_owned(),
        when: last.timestamp,
    })
}

/// Returns true if reading again would not help.
fn is_final(error: &OpsError) -> bool {
    matches!(error, OpsError::Journal(JournalError::Newer { .. }))
}

/// Returns the run that holds the lock of a workspace.
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
