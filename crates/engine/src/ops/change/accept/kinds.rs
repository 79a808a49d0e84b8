//! Parses `--change`: kinds of facts, or single facts.

use crate::ops::project::error::OpsError;
use milepost_core::model::fingerprint::{Change, FactKind};
use std::collections::BTreeSet;

/// The changes that `--change` selects.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    kinds: BTreeSet<FactKind>,
    facts: BTreeSet<String>,
}

impl Kinds {
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.facts.is_empty()
    }

    pub(super) fn has(&self, change: &Change) -> bool {
        let mut facts = std::iter::once(&change.fact).chain(&change.of);
        facts.any(|fact| self.kinds.contains(&fact.kind) || self.facts.contains(&fact.to_string()))
    }
}

pub(super) fn kinds(names: &[String]) -> Result<Kinds, OpsError> {
    let mut found = Kinds::default();
    for name in names {
        let kind = match name.as_str() {
            "prompt" | "template" | "filter" | "workbook" => Some(FactKind::File),
            "rules" => Some(FactKind::Agent),
            word => FactKind::of_word(word),
        };
        match kind {
            Some(kind) if kind.only_validates() => {
                return Err(OpsError::Usage(format!(
                    "`--change {name}`: after such a change, a run validates outputs again without rebuilding them"
                )));
            }
            Some(kind) => {
                found.kinds.insert(kind);
            }
            None if name.contains(' ') => {
                found.facts.insert(name.clone());
            }
            None => {
                return Err(OpsError::Usage(format!(
                    "`--change {name}`: expected a kind of fact, as `milepost why` lists them: step, input, item, param, file, \
                     agent, env, workspace, version, program; or one fact, such as \"file templates/report.md\""
                )));
            }
        }
    }
    Ok(found)
}
