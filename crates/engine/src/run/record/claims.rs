//! The owners of outputs, as far as the scan cannot know them: of files whose names are known only when their batch has run (outputs
//! with a `*`), and of files behind a symbolic link or in another workspace, which other names may lead to.

use crate::run::batch::stage_context::Produced;
use milepost_core::base::path::RelPath;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::StageState;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::scan::StageScan;
use milepost_store::store::layout::Layout;
use milepost_store::store::publish::refusal;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The keys of the batches that own files of outputs with a `*`, and the checked folders.
pub(crate) struct Claims<'a> {
    layout: &'a Layout,
    folders: HashSet<Option<RelPath>>,
    /// The names of these outputs.
    outputs: BTreeSet<String>,
    owners: HashMap<RelPath, String>,
}

impl<'a> Claims<'a> {
    /// Collects the files of batches that do not run.
    pub(crate) fn new(
        layout: &'a Layout,
        stage: &Stage,
        scan: &StageScan,
        known: Option<&StageState>,
    ) -> Self {
        let many = stage.outputs.iter().filter(|output| output.is_many());
        let mut claims = Self {
            layout,
            folders: HashSet::new(),
            outputs: many.map(|output| output.name.clone()).collect(),
            owners: HashMap::new(),
        };
        if claims.outputs.is_empty() {
            return claims;
        }
        let stays = |decision: &Decision| !matches!(decision, Decision::Will(_));
        let staying = scan
            .batches
            .iter()
            .filter(|batch| batch.decision.as_ref().is_ok_and(stays));
        for batch in staying {
            let key = &batch.batch.key;
            let record = known.and_then(|known| known.batches.get(key)?.record.as_ref());
            for made in record.iter().flat_map(|record| &record.outputs) {
                if claims.outputs.contains(&made.name) {
                    claims.owners.insert(made.path.clone(), key.clone());
                }
            }
        }
        claims
    }

    /// Makes a batch the owner of its outputs.
    ///
    /// # Errors
    /// If another batch owns one of the files, or may own it by another name.
    pub(crate) fn claim(&mut self, key: &str, produced: &Produced) -> Result<(), Outcome> {
        for (made, _) in &produced.files {
            // The scan checked the folders that were there.
            let folder = made.path.parent();
            if self.folders.contains(&folder) {
                continue;
            }
            if let Some(why) = refusal(self.layout, &made.path) {
                let message = format!("output `{}`: `{}`: {why}", made.name, made.path);
                return Err(Outcome::new(OutcomeKind::Path, message));
            }
            self.folders.insert(folder);
        }
        let made = || {
            let files = produced.files.iter().map(|(made, _)| made);
            files.filter(|made| self.outputs.contains(&made.name))
        };
        for made in made() {
            if let Some(owner) = self.owners.get(&made.path).filter(|owner| *owner != key) {
                let message = format!(
                    "output `{}`: `{}` belongs to the batch `{owner}`: choose a path whose files tell the batch, such as a folder for each",
                    made.name, made.path
                );
                return Err(Outcome::new(OutcomeKind::Output, message));
            }
        }
        let paths: Vec<RelPath> = made().map(|made| made.path.clone()).collect();
        self.owners
            .extend(paths.into_iter().map(|path| (path, key.to_owned())));
        Ok(())
    }
}
