//! Digests of the dependencies of a batch, which `watch` compares from one plan to the next.

use crate::model::fingerprint::{FactKey, FactKind, Facts};
use crate::model::pipeline::Pipeline;
use crate::model::reason::Reason;
use crate::model::stage::Stage;
use crate::plan::lineage;
use std::sync::Arc;

/// Digests of the dependencies of a batch.
#[derive(Debug, Clone, Default)]
pub struct BatchFacts {
    /// The digest of all facts.
    pub all: String,
    /// The digest of the facts that no stage produces; `None` if they are unknown until earlier stages have run.
    pub outside: Option<String>,
    /// True if it is out of date because of a fact that no stage makes.
    pub by_people: bool,
}

impl BatchFacts {
    /// Returns the facts of a batch that is out of date for these reasons. `shared` is the digest of the stage's facts.
    pub fn of(
        pipeline: &Pipeline,
        stage: &Stage,
        shared: &str,
        own: &Facts,
        reasons: &[Reason],
    ) -> Self {
        let mut facts = Self {
            all: format!("{shared}{}", own.id()),
            ..Self::default()
        };
        let is_first = lineage::upstream(pipeline, stage).is_empty();
        let no_stage_writes =
            |path: &str| is_first || lineage::writers(pipeline, stage, path).is_empty();
        let is_outside = |key: &FactKey| match key.kind {
            FactKind::Item => is_first,
            FactKind::Input => no_stage_writes(&key.name),
            _ => true,
        };
        facts.by_people = reasons.iter().any(|reason| match reason {
            Reason::Changed(change) => is_outside(&change.fact),
            Reason::Stale { input } => no_stage_writes(input),
            _ => false,
        });
        if !is_first && own == &Facts::default() {
            return facts;
        }
        let mut outside = Facts::default();
        for (key, value) in own.iter().filter(|(key, _)| is_outside(key)) {
            outside.add(key.kind, Arc::clone(&key.name), value.clone());
        }
        facts.outside = Some(format!("{shared}{}", outside.id()));
        facts
    }
}
