//! Manifests that are gone, or lack pages, rebuilt from the journal.

use crate::ops::project::error::OpsError;
use crate::run::error::RunError;
use milepost_core::model::event::{Event, Record};
use milepost_core::model::state::{StageState, State};
use milepost_core::plan::machine::apply;
use milepost_store::store::journal;
use milepost_store::store::layout::{self, Layout};
use milepost_store::store::manifest::{self, ManifestError};
use std::collections::BTreeMap;

/// Returns the stages whose manifests are gone, as the journal has them at its last seal. `records` are those since then.
///
/// # Errors
/// When the journal is damaged, or does not know batches of the pages that are left.
pub(crate) fn lost_manifests(
    layout: &Layout,
    records: &[Record],
) -> Result<BTreeMap<String, StageState>, OpsError> {
    let first = records.first().map(|record| &record.event);
    let Some(Event::Sealed {
        checkpoints, pages, ..
    }) = first
    else {
        return Ok(BTreeMap::new());
    };
    let there = manifest::page_counts(layout)?;
    let is_gone = |stage: &String| match pages.get(stage) {
        Some(pages) => there.get(stage).is_none_or(|there| there < pages),
        None => !layout.at(&layout::manifest(stage)).exists(),
    };
    let mut stages = checkpoints.keys().chain(pages.keys());
    if layout.manifests().exists() && !stages.any(is_gone) {
        return Ok(BTreeMap::new());
    }
    let seal = journal::sealed_at(layout)?;
    let (mut state, mut refused) = (State::default(), None);
    journal::read_all(layout, &mut |place, record| {
        let counts = Some(place.position()) < seal && !matches!(record.event, Event::Sealed { .. });
        if counts && refused.is_none() {
            refused = apply(&mut state, &record.run_id, &record.event).err();
        }
    })?;
    if let Some(error) = refused {
        return Err(RunError::from(error).into());
    }
    let gone = state.stages.into_iter().filter(|(stage, _)| is_gone(stage));
    let gone = gone.map(|(stage, known)| (stage, manifest::kept(&known)));
    let mut found = BTreeMap::new();
    for (stage, known) in gone.filter(|(_, known)| !known.batches.is_empty()) {
        // A journal that began anew does not know what the pages that are left do.
        let mut knows_all = true;
        manifest::keys(layout, &stage, &mut |key| {
            knows_all = known.batches.contains_key(key);
            knows_all
        })?;
        if !knows_all {
            let mut pages = (1..).map(|number| layout.at(&manifest::page(&stage, number)));
            return Err(OpsError::from(ManifestError::Damaged {
                path: pages.find(|page| !page.exists()).unwrap_or_default(),
                line: 1,
                problem: "the page is missing, and the journal does not record its batches"
                    .to_owned(),
            }));
        }
        found.insert(stage, known);
    }
    Ok(found)
}
