//! What a run would do, and why. Nothing is written.

use super::open::{Opened, OpsError, Request, open, state};
use super::run::{Wanted, selection};
use crate::base::digest::Digest;
use crate::model::fingerprint::Change;
use crate::model::reason::{Condition, Reason};
use crate::model::state::State;
use crate::plan::decide::Decision;
use crate::plan::lineage;
use crate::plan::selection::Selection;
use crate::run::engine::wish;
use crate::run::survey::{Pending, survey};
use serde::Serialize;

/// What a run would do.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Plan {
    /// The project's name.
    pub project: String,
    /// The workspace's folder.
    pub workspace: String,
    /// Stage by stage.
    pub stages: Vec<StagePlan>,
    /// Warnings about the declarations.
    pub warnings: Vec<String>,
}

/// What a run would do of a stage.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct StagePlan {
    /// Its name.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// What it is for.
    pub description: Option<String>,
    /// Whether the batches are known, or may be others once earlier stages ran.
    pub certain: bool,
    /// Batches that run, with why.
    pub will: Vec<Will>,
    /// Batches that run if a condition comes true.
    pub may: Vec<May>,
    /// Batches whose outputs are validated again.
    pub judge: Vec<Judge>,
    /// Batches that are reused.
    pub reused: u64,
    /// Batches that are left out by what was asked for.
    pub left: u64,
    /// Batches that there are no more: their outputs are retired.
    pub retire: Vec<String>,
    /// Files that somebody altered: the run stops here.
    pub altered: Vec<Altered>,
    /// Inputs that are missing, by batch.
    pub missing: Vec<Missing>,
    /// Why nothing can be told of the stage.
    pub problem: Option<String>,
    /// The earlier stage that is not complete and not asked for either.
    pub blocked: Option<String>,
    /// Whether the stage is left out by what was asked for.
    pub skipped: bool,
}

impl StagePlan {
    /// Batches that there are, as far as they are known.
    pub fn batches(&self) -> u64 {
        let altered: std::collections::BTreeSet<&str> = self
            .altered
            .iter()
            .map(|file| file.batch.as_str())
            .collect();
        let listed = self.will.len() + self.may.len() + self.judge.len() + self.missing.len();
        (listed + altered.len()) as u64 + self.reused + self.left
    }

    /// Whether what the stage makes may differ after the run.
    pub fn changes(&self) -> bool {
        !self.certain
            || !self.will.is_empty()
            || !self.may.is_empty()
            || !self.judge.is_empty()
            || !self.retire.is_empty()
            || !self.missing.is_empty()
            || self.problem.is_some()
    }
}

/// A batch that runs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Will {
    /// The batch.
    pub batch: String,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// A batch that may run.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct May {
    /// The batch.
    pub batch: String,
    /// If one of these comes true.
    pub conditions: Vec<Condition>,
}

/// A batch whose outputs are validated again.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Judge {
    /// The batch.
    pub batch: String,
    /// What differs.
    pub changes: Vec<Change>,
}

/// A file that somebody altered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Altered {
    /// The batch that made it.
    pub batch: String,
    /// The file, in the workspace.
    pub path: String,
    /// What was made; none: nothing says who made it.
    pub recorded: Option<Digest>,
    /// What it is.
    pub found: Digest,
    /// A person pinned it, and it would have to be made again.
    pub pinned: bool,
}

/// A batch whose input is missing.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Missing {
    /// The batch.
    pub batch: String,
    /// What is missing.
    pub why: String,
}

impl Plan {
    /// Whether a run would do nothing.
    pub fn is_empty(&self) -> bool {
        self.stages.iter().all(|stage| {
            stage.will.is_empty()
                && stage.may.is_empty()
                && stage.judge.is_empty()
                && stage.retire.is_empty()
                && stage.altered.is_empty()
                && stage.missing.is_empty()
                && stage.problem.is_none()
                && stage.blocked.is_none()
                && stage.certain
        })
    }
}

/// What a run would do.
///
/// # Errors
/// When there is no project, its declarations are wrong, or the workspace cannot be read.
pub fn plan(request: &Request, wanted: &Wanted) -> Result<Plan, OpsError> {
    let opened = open(request)?;
    let selection = selection(&opened, wanted)?;
    let known = state(&opened.workspace.layout)?;
    Ok(Plan {
        project: opened.pipeline.name.clone(),
        workspace: opened.workspace.layout.root().display().to_string(),
        stages: of(&opened, &known, &selection),
        warnings: opened.warnings.iter().map(ToString::to_string).collect(),
    })
}

/// What a run of a selection would do of each stage, from what is known.
pub fn of(opened: &Opened, known: &State, selection: &Selection) -> Vec<StagePlan> {
    let ctx = opened.context();
    let mut pending = Pending::default();
    let mut budget = selection.limit;
    let mut stages = Vec::new();
    for stage in &opened.pipeline.stages {
        let mut line = StagePlan {
            stage: stage.name.clone(),
            number: stage.number,
            description: stage.description.clone(),
            certain: true,
            ..StagePlan::default()
        };
        if !selection.wants_stage(&opened.pipeline, stage) {
            line.skipped = true;
            stages.push(line);
            continue;
        }
        let blocked = lineage::upstream(&opened.pipeline, stage)
            .into_iter()
            .find(|up| {
                !selection.wants_stage(&opened.pipeline, up)
                    && known
                        .stages
                        .get(&up.name)
                        .is_none_or(|known| known.status.is_none())
            });
        if let Some(up) = blocked {
            line.blocked = Some(format!("stage `{}` is not complete", up.name));
            stages.push(line);
            continue;
        }
        match survey(&ctx, stage, known, &pending, &|batch| {
            wish(selection, stage, batch)
        }) {
            Err(why) => line.problem = Some(why),
            Ok(found) => {
                line.certain = found.certain;
                line.retire = found.gone;
                for batch in found.batches {
                    let key = batch.batch.key;
                    match batch.decision {
                        Ok(Decision::Will(reasons)) => {
                            let failed = reasons
                                .iter()
                                .any(|reason| matches!(reason, Reason::Failed { .. }));
                            let wanted = selection.wants_batch(&stage.name, &key)
                                && (!selection.failed || failed);
                            let room = budget.is_none_or(|left| left > 0);
                            if wanted && room {
                                budget = budget.map(|left| left - 1);
                                line.will.push(Will {
                                    batch: key,
                                    reasons,
                                });
                            } else {
                                line.left += 1;
                            }
                        }
                        Ok(Decision::Reused) => line.reused += 1,
                        Ok(Decision::May(conditions)) => line.may.push(May {
                            batch: key,
                            conditions,
                        }),
                        Ok(Decision::Judge(changes)) => line.judge.push(Judge {
                            batch: key,
                            changes,
                        }),
                        Ok(Decision::Altered(files)) => {
                            line.altered.extend(files.into_iter().map(|file| Altered {
                                batch: key.clone(),
                                path: file.path.to_string(),
                                recorded: file.recorded,
                                found: file.found,
                                pinned: file.pinned,
                            }));
                        }
                        Err(why) => line.missing.push(Missing { batch: key, why }),
                    }
                }
            }
        }
        if line.changes() {
            pending.stages.insert(stage.name.clone());
        }
        stages.push(line);
    }
    stages
}
