//! Checks whether batches are up to date, and whether their outputs are valid.

use super::audit::Audit;
use super::findings::Severity;
use crate::ops::project::open_project::scan_stage;
use crate::run::check::batch_scanner::Keep;
use crate::run::check::revalidate::holds;
use milepost_core::base::words::{count, grouped};
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::{Decision, RebuildPolicy};
use milepost_store::check::schemas::Schemas;
use std::sync::Arc;

impl Audit<'_> {
    /// Finds batches that are out of date; with `deep`, checks the others again.
    pub(super) fn batches(&mut self, state: &State, deep: bool) {
        let opened = self.opened;
        let ctx = opened.context();
        let (schemas, never) = (Schemas::default(), Arc::default());
        if let Some(why) = opened.no_run() {
            let left_out = "untracked files, and which batches of stages with such a mistake are out of date, are not checked";
            self.note(None, None, format!("{why}: {left_out}"));
        }
        for stage in opened.pipeline.stages.iter().filter(|stage| stage.is_read) {
            let Some(known) = state.stages.get(&stage.name) else {
                continue;
            };
            let needed = RebuildPolicy::Needed;
            let found = match scan_stage(&ctx, stage, state, needed, Keep::All) {
                Ok(found) => found,
                Err(why) => {
                    self.note(Some(&stage.name), None, why);
                    continue;
                }
            };
            let mut outdated = 0;
            let mut unvalidated = 0;
            for batch in &found.batches {
                let key = &batch.batch.key;
                let Some(record) = known
                    .batches
                    .get(key)
                    .and_then(|batch| batch.record.as_ref())
                else {
                    continue;
                };
                match &batch.decision {
                    Ok(Decision::UpToDate) if record.failure().is_none() => {}
                    Ok(Decision::Revalidate(_)) if record.failure().is_none() => unvalidated += 1,
                    Ok(Decision::Modified(_)) => continue,
                    _ => {
                        outdated += 1;
                        continue;
                    }
                }
                if deep {
                    self.checked.batches += 1;
                    let held = holds(
                        &ctx,
                        stage,
                        batch,
                        (&record.outputs, &record.failed_keys()),
                        &schemas,
                        &never,
                    );
                    if let Err(outcome) = held {
                        self.invalid(stage, key, &outcome);
                    }
                }
            }
            if unvalidated > 0 && !deep {
                let message = format!(
                    "{} of its batches must be revalidated: `{}` does so without writing",
                    grouped(unvalidated),
                    opened.invocation.line(&["verify", "--deep"])
                );
                self.note(Some(&stage.name), None, message);
            }
            if outdated > 0 {
                let message = format!(
                    "{} out of date: `{}` shows why",
                    count(outdated, "of its batches is", "of its batches are"),
                    opened.invocation.line(&["why", &stage.name])
                );
                self.note(Some(&stage.name), None, message);
            }
        }
    }

    fn invalid(
        &mut self,
        stage: &Stage,
        key: &str,
        outcome: &milepost_core::model::outcome::Outcome,
    ) {
        self.add(
            Severity::Invalid,
            Some(&stage.name),
            Some(key),
            None,
            outcome.to_string(),
        );
    }
}
