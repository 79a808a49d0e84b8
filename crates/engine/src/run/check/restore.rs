//! Finds the outputs of a retired batch in quarantine if the batch comes back with the same facts.

use crate::run::check::batch_scanner::{BatchScanner, MARKER};
use crate::run::check::planned_disk::BatchDisk;
use milepost_core::base::path::RelPath;
use milepost_core::model::event::{Event, Publish};
use milepost_core::model::record::{BatchRecord, Made};
use milepost_core::model::state::{BatchState, Phase};
use milepost_core::plan::decide::{Decision, Found, RebuildPolicy, decide};
use milepost_core::plan::facts;
use milepost_store::store::files::digest_of;
use milepost_store::store::layout::Layout;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the decision on a new batch, if quarantine has its outputs as they were recorded, with the same facts. They are restored,
/// unless an earlier stage may still change a fact.
pub(super) fn from_quarantine(
    scanner: &BatchScanner<'_, '_>,
    key: &str,
    found: &Found<'_>,
    targets: &BTreeMap<String, RelPath>,
) -> Option<Decision> {
    let is_recorded = found.known.is_some_and(|known| known.record.is_some());
    let is_forced = found.policy == RebuildPolicy::Forced || found.forced.is_some();
    if is_recorded || is_forced || !found.on_disk.is_empty() {
        return None;
    }
    let (stage, layout) = (scanner.stage, scanner.ctx.layout);
    scanner.world.retired(key).find_map(|(folder, record)| {
        let is_shared = record.shared == scanner.common.shared_id;
        let record = Some(record).filter(|record| is_shared && record.pin.is_none())?;
        let disk = BatchDisk::new(scanner.world, Some(&record.facts));
        let mut own = found.own.clone();
        facts::add_dependencies(&mut own, stage, &record.facts, &disk).ok()?;
        let made = record.outputs.iter();
        let on_disk = made.map(|made| (made.path.clone(), made.digest)).collect();
        let renamed = scanner.renamed(targets, Some(&record));
        let known = BatchState {
            phase: Phase::Complete,
            record: Some(record),
            ..BatchState::default()
        };
        let as_recorded = Found {
            known: Some(&known),
            recorded_shared: Arc::clone(&scanner.common.shared),
            own: &own,
            renamed,
            on_disk: &on_disk,
            pending: Vec::new(),
            ..*found
        };
        // Facts that an earlier stage may still change are not known.
        let may_be_same = !found.pending.is_empty() || decide(&as_recorded) == Decision::UpToDate;
        let record = known.record.filter(|_| may_be_same)?;
        let files = files(layout, folder, &record)?;
        let restored = Event::Published {
            stage: stage.name.clone(),
            record: Box::new(record),
            files,
            retired: BTreeMap::new(),
        };
        Some(match found.pending.as_slice() {
            [] => Decision::Restore(Box::new(restored)),
            pending => Decision::May(pending.to_vec()),
        })
    })
}

/// Returns the moves of outputs from quarantine to their places; `None` if one of them is not as recorded, or its place is taken.
fn files(layout: &Layout, folder: &RelPath, record: &BatchRecord) -> Option<Vec<Publish>> {
    let file = |made: &Made| {
        let scratch = folder.with(&made.path);
        let (there, _) = digest_of(&layout.at(&scratch)).ok().flatten()?;
        let is_free = layout.at(&made.path).symlink_metadata().is_err();
        (there == made.digest && is_free).then(|| Publish {
            scratch,
            path: made.path.clone(),
            old: None,
            new: made.digest,
            quarantine: None,
            marker: made.name == MARKER,
        })
    };
    record.outputs.iter().map(file).collect()
}
