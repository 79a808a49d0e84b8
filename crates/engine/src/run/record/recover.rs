//! Repairs what an interrupted run left: its programs, its half-published batches, its scratch.

use crate::run::error::RunError;
use crate::run::notice::Repair;
use crate::run::record::recorder::Recorder;
use crate::run::record::retire;
use crate::steps::command::{StartedProcess, end_survivors};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::state::Unsettled;
use milepost_core::plan::expand::batch_name;
use milepost_store::store::publish::{RecoveredFile, settle};
use milepost_store::store::{quarantine, scratch};
use std::collections::BTreeMap;
use std::time::Duration;

/// Repairs what an interrupted run left in the workspace, and returns the repairs.
///
/// # Errors
/// When the disk fails.
pub(crate) fn recover(
    recorder: &mut Recorder<'_>,
    grace: Duration,
) -> Result<Vec<Repair>, RunError> {
    let mut done = Vec::new();
    let children = recorder.state.children.clone();
    let broken_off = recorder.state.open_run.clone();
    if !children.is_empty() || broken_off.is_some() {
        let started = children.iter().map(|child| StartedProcess {
            pid: child.pid,
            group: child.pid,
            start_time: child.start_time,
            boot_id: child.boot_id.clone(),
        });
        let started: Vec<StartedProcess> = started.collect();
        let mut tokens: Vec<String> = children.iter().map(|child| child.token.clone()).collect();
        // A command may have started before its attempt was recorded.
        tokens.extend(broken_off.map(|run| format!("{run}/")));
        let pids = end_survivors(&started, &tokens, grace);
        if !pids.is_empty() {
            done.push(Repair::ProcessesEnded { pids });
        }
    }
    let unsettled = recorder.state.unsettled.clone();
    let mut finished = 0_u64;
    for batch in &unsettled {
        let (disk, layout) = (recorder.ctx.disk, recorder.ctx.layout);
        let settled = settle(disk, layout, &batch.files)?;
        for (file, settled) in batch.files.iter().zip(&settled) {
            match (settled, &file.quarantine) {
                (RecoveredFile::Done | RecoveredFile::Renamed, _) => finished += 1,
                // A person wrote it: it goes to quarantine as planned.
                (RecoveredFile::Lost { old: Some(_) }, Some(aside)) => {
                    quarantine::keep(disk, layout, &file.path, aside)?;
                }
                // If a person modified it, the scan of the stage reports that.
                (RecoveredFile::Lost { .. } | RecoveredFile::Modified, _) => {}
            }
        }
        if let Some(event) = lost(batch, &settled) {
            let batch = batch_name(&batch.stage, &batch.batch);
            let summary = format!("{batch} was lost");
            done.push(Repair::BatchLost { batch });
            recorder.record(EventType::Revision, "milepost", event, summary)?;
        }
    }
    let moved = retire::finish(recorder)?;
    if moved > 0 {
        done.push(Repair::Quarantined { files: moved });
    }
    if !unsettled.is_empty() || moved > 0 {
        recorder.barrier("what was published is in place")?;
        recorder.flush()?;
    }
    if !unsettled.is_empty() {
        done.push(Repair::Published { files: finished });
    }
    done.extend(clear_scratch(recorder));
    Ok(done)
}

/// Removes the scratch files, and returns what could not be removed.
pub(crate) fn clear_scratch(recorder: &Recorder<'_>) -> Option<Repair> {
    let stuck = scratch::clear(recorder.ctx.disk, recorder.ctx.layout, recorder.run_id())?;
    Some(Repair::StuckScratch {
        folder: stuck.folder.to_string(),
        problem: stuck.problem,
    })
}

/// Returns the record that a published batch is lost; `None` if recovery completes its files.
pub(crate) fn lost(batch: &Unsettled, recovered: &[RecoveredFile]) -> Option<Event> {
    if !recovered.iter().any(RecoveredFile::is_lost) {
        return None;
    }
    let mut remains = BTreeMap::new();
    for (file, recovered) in batch.files.iter().zip(recovered) {
        let digest = match recovered {
            RecoveredFile::Lost { old: Some(old) } if file.quarantine.is_none() => *old,
            _ => file.new,
        };
        remains.insert(file.path.clone(), digest);
    }
    Some(Event::Lost {
        stage: batch.stage.clone(),
        batch: batch.batch.clone(),
        remains,
    })
}
