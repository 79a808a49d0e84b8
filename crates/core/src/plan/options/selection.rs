//! The options of a run, with its targets found in the pipeline.

use crate::expr::place::nearest;
use crate::model::event::Event;
use crate::model::forced::Forced;
use crate::model::pipeline::Pipeline;
use crate::model::stage::Stage;
use crate::model::state::{BatchState, State};
use crate::plan::lineage;
use crate::plan::options::RunOptions;
use std::collections::BTreeSet;

/// The options of a run, with its targets found in the pipeline. The default selects everything.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The stages and batches that `options` names; empty: all.
    pub targets: Vec<Target>,
    /// The name of the last stage to run.
    pub until: Option<String>,
    /// As they were given.
    pub options: RunOptions,
}

/// A stage, or one batch of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The stage's name.
    pub stage: String,
    /// The batch's key.
    pub batch: Option<String>,
}

/// A name matches no stage.
#[derive(Debug, thiserror::Error)]
#[error("there is no stage `{name}`; this project has {known}{}", did_you_mean(.near.as_deref()))]
pub struct NoSuchStage {
    name: String,
    known: String,
    near: Option<String>,
}

/// Returns `; did you mean …?` for the end of a message, or nothing.
pub fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!(": did you mean `{near}`?"))
        .unwrap_or_default()
}

impl Target {
    /// Parses `STAGE` or `STAGE/BATCH`; a number can name the stage.
    ///
    /// # Errors
    /// If no stage has that name.
    pub fn parse(pipeline: &Pipeline, text: &str) -> Result<Self, NoSuchStage> {
        let (name, batch) = match text.split_once('/') {
            Some((name, batch)) => (name, Some(batch.to_owned())),
            None => (text, None),
        };
        if pipeline.stage(name).is_none()
            && let Some((stage, batch)) = of_file(pipeline, text)
        {
            return Ok(Self {
                stage: stage.name.clone(),
                batch,
            });
        }
        let stage = pipeline.stage(name).ok_or_else(|| NoSuchStage {
            near: nearest(
                name,
                pipeline.stages.iter().map(|stage| stage.name.as_str()),
            )
            .map(str::to_owned),
            name: name.to_owned(),
            known: pipeline
                .stages
                .iter()
                .map(|stage| stage.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        Ok(Self {
            stage: stage.name.clone(),
            batch,
        })
    }
}

/// Returns the stage that is named by its file, `stages/3_classify.toml`, or by the file's name, `3_classify` or
/// `3_classify/batch_2`.
fn of_file<'a>(pipeline: &'a Pipeline, text: &str) -> Option<(&'a Stage, Option<String>)> {
    let file_of = |stage: &Stage| format!("{}_{}", stage.number, stage.name);
    let stages = pipeline.stages.iter();
    if let Some(path) = text.strip_suffix(".toml") {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stage = stages.clone().find(|stage| file_of(stage) == name)?;
        return Some((stage, None));
    }
    let text = text
        .strip_prefix("stages/")
        .or_else(|| text.strip_prefix("stage/"))
        .unwrap_or(text);
    let (name, batch) = match text.split_once('/') {
        Some((name, batch)) => (name, Some(batch.to_owned())),
        None => (text, None),
    };
    let stage = stages.clone().find(|stage| file_of(stage) == name)?;
    Some((stage, batch))
}

impl Selection {
    /// Returns true if the selection includes the stage.
    pub fn wants_stage(&self, pipeline: &Pipeline, stage: &Stage) -> bool {
        let named =
            self.targets.is_empty() || self.targets.iter().any(|target| target.stage == stage.name);
        let last = self.until.as_deref().and_then(|name| pipeline.stage(name));
        named && last.is_none_or(|last| stage.number <= last.number)
    }

    /// Returns true if the stage depends, through a stage that is not selected, on one that `changes`. Whether it can begin is
    /// then known only after that one has run.
    pub(crate) fn skips_over(
        &self,
        pipeline: &Pipeline,
        stage: &Stage,
        changes: &dyn Fn(&str) -> bool,
    ) -> bool {
        let mut skipped = lineage::ancestors(pipeline, stage)
            .into_iter()
            .filter(|earlier| !self.wants_stage(pipeline, earlier));
        skipped.any(|skipped| {
            let mut earlier = lineage::ancestors(pipeline, skipped).into_iter();
            earlier.any(|earlier| changes(&earlier.name))
        })
    }

    /// A batch that is named and that the stage has not, if there is one: in words.
    pub(crate) fn unknown_batch<'a>(
        &self,
        stage: &str,
        mut batches: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<String> {
        let named = self
            .targets
            .iter()
            .filter(|target| target.stage == stage)
            .find_map(|target| {
                let batch = target.batch.as_deref()?;
                (!batches.clone().any(|known| known == batch)).then_some(batch)
            })?;
        let near = did_you_mean(nearest(named, batches.clone()));
        let some: Vec<&str> = batches.by_ref().take(3).collect();
        let more = if batches.next().is_some() {
            ", …"
        } else {
            ""
        };
        let known = if some.is_empty() || some == [""] {
            "it has no batches to name".to_owned()
        } else {
            format!("it has {}{more}", some.join(", "))
        };
        Some(format!("there is no batch `{named}`; {known}{near}"))
    }

    /// Returns true if the batch failed with the same facts, so that it does not run again.
    pub fn was_tried(&self, stage: &str, batch: &str, facts: &str) -> bool {
        let known_failures = self.options.known_failures.as_ref();
        let of_stage = known_failures.and_then(|failures| failures.get(stage));
        of_stage
            .and_then(|tried| tried.get(batch))
            .map(String::as_str)
            == Some(facts)
    }

    /// Returns true if the whole stage is selected, and not single batches of it.
    pub fn wants_whole(&self, stage: &str) -> bool {
        let mut of_stage = self.targets.iter().filter(|target| target.stage == stage);
        of_stage.all(|target| target.batch.is_none())
    }

    /// Returns the event that records which batches of a stage `--force` selects; `None`: none of those that were made. A batch that
    /// was never made runs in any case. `fresh`: answers from before this run do not count.
    pub fn force(&self, state: &State, stage: &str, fresh: bool) -> Option<Event> {
        let known = state.stages.get(stage);
        let known = known.into_iter().flat_map(|known| &known.batches);
        let is_selected = |(key, batch): &(&String, &BatchState)| {
            self.wants_batch(stage, key) && (!self.options.failed || is_failed(batch))
        };
        let batches: BTreeSet<String> = known
            .filter(is_selected)
            .map(|(key, _)| key.clone())
            .collect();
        let open = fresh && !self.options.failed && self.wants_whole(stage);
        (open || !batches.is_empty()).then(|| Event::Forced {
            stage: stage.to_owned(),
            batches,
            fresh,
            open,
        })
    }

    /// Returns the event that withdraws `--force` from what is selected of a stage; `None`: nothing of it is left there.
    pub fn drop_force(&self, state: &State, stage: &str) -> Option<Event> {
        let forced = || state.forced.iter();
        let stage_name = stage.to_owned();
        if self.wants_whole(stage) {
            let is_left =
                |forced: &Forced| forced.batches.contains_key(stage) || forced.open.contains(stage);
            return forced().any(is_left).then(|| Event::ForceDropped {
                stage: stage_name,
                batches: BTreeSet::new(),
            });
        }
        let left = forced().filter_map(|forced| forced.batches.get(stage));
        let batches: BTreeSet<String> = left
            .flatten()
            .filter(|batch| self.wants_batch(stage, batch))
            .cloned()
            .collect();
        (!batches.is_empty()).then_some(Event::ForceDropped {
            stage: stage_name,
            batches,
        })
    }

    /// Returns true if the batch is among those named.
    pub(crate) fn wants_batch(&self, stage: &str, batch: &str) -> bool {
        let mut of_stage = self
            .targets
            .iter()
            .filter(|target| target.stage == stage)
            .peekable();
        of_stage.peek().is_none()
            || of_stage.any(|target| target.batch.as_deref().is_none_or(|wanted| wanted == batch))
    }
}

/// Returns true if a batch failed when it was last tried, as a whole or in part.
pub(crate) fn is_failed(batch: &BatchState) -> bool {
    let record = batch.record.as_ref();
    batch.last_failure().is_some() || record.is_some_and(|record| record.failure().is_some())
}
