//! Repairs what an interrupted run left: its programs, its half-published batches, its scratch.

use crate::run::error::RunError;
use crate::run::notice::Repair;
use crate::run::record::recorder::Recorder;
use crate::run::record::retire;
use crate::steps::command::{StartedProcess, end_survivors};
use milepost_core::model::event::{Event, EventType};
use milepost_store::store::publish::{RecoveredFile, settle};
use milepost_store::store::quarantine;
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
        let started: Vec<StartedProcess> = children
            .iter()
            .map(|child| StartedProcess {
                pid: child.pid,
                group: child.pid,
                start_time: child.start_time,
                boot_id: child.boot_id.clone(),
            })
            .collect();
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
        let mut remains = BTreeMap::new();
        let mut lost = false;
        let settled = settle(recorder.ctx.disk, recorder.ctx.layout, &batch.files)?;
        for (file, settled) in batch.files.iter().zip(settled) {
            match settled {
                RecoveredFile::Done | RecoveredFile::Renamed => finished += 1,
                RecoveredFile::Lost { old: there } => {
                    lost = true;
                    match (&file.quarantine, there) {
                        // A person wrote it: it goes to quarantine as planned.
                        (Some(aside), Some(_)) => {
                            let (disk, layout) = (recorder.ctx.disk, recorder.ctx.layout);
                            quarantine::keep(disk, layout, &file.path, aside)?;
                        }
                        (None, Some(digest)) => {
                            remains.insert(file.path.clone(), digest);
                        }
                        (_, None) => {}
                    }
                }
                // A person modified it: the scan of the stage reports that.
                RecoveredFile::Altered => {}
            }
        }
        if lost {
            for file in &batch.files {
                remains.entry(file.path.clone()).or_insert(file.new);
            }
            let name = milepost_core::plan::expand::batch_name(&batch.stage, &batch.batch);
            done.push(Repair::BatchLost {
                batch: name.clone(),
            });
            let event = Event::Lost {
                stage: batch.stage.clone(),
                batch: batch.batch.clone(),
                remains,
            };
            recorder.record(
                EventType::Revision,
                "milepost",
                event,
                format!("{name} was lost"),
                Vec::new(),
            )?;
        }
    }
    let moved = retire::finish(recorder)?;
    if moved > 0 {
        done.push(Repair::Quarantined { files: moved });
    }
    if !unsettled.is_empty() || moved > 0 {
        recorder.record(
            EventType::Complete,
            "milepost",
            Event::Barrier,
            "what was published is in place",
            Vec::new(),
        )?;
        recorder.flush()?;
    }
    if !unsettled.is_empty() {
        done.push(Repair::Published { files: finished });
    }
    if recorder.ctx.layout.scratch().exists() {
        recorder
            .ctx
            .disk
            .remove_dir_all(&recorder.ctx.layout.scratch())?;
    }
    Ok(done)
}
