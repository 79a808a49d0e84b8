//! Why a stage, a batch or a file is as it is: the decision that a plan makes, with its facts.

use crate::ops::inspect::calls::{Asked, asked};
use crate::ops::inspect::origin::{self, FileWhy, Makers};
use crate::ops::outlook::look;
use crate::ops::plan::Altered;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open;
use crate::ops::project::opened::Opened;
use crate::ops::project::present::Present;
use crate::ops::project::request::Request;
use crate::ops::run::up_to_date;
use crate::run::agents::estimate::CostEstimator;
use crate::run::check::scan::Keep;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::FilePath;
use milepost_core::model::event::Event;
use milepost_core::model::fingerprint::{Change, FactKind, Facts};
use milepost_core::model::outcome::Outcome;
use milepost_core::model::reason::{Condition, Reason};
use milepost_core::model::record::{BatchRecord, FailedKeys, Made, Pin};
use milepost_core::model::stage::{PathTemplate, Stage};
use milepost_core::model::state::State;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::lineage;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::selection::Target;
use milepost_core::plan::world::World;
use milepost_store::store::journal;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Names that are suggested in the place of one that is not known.
const SUGGESTED: usize = 3;

/// Why something is as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Why {
    /// A stage with several batches.
    Stage(StageWhy),
    /// A batch.
    Batch(Box<BatchWhy>),
    /// A file.
    File(Box<FileWhy>),
}

/// What becomes of the batches of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct StageWhy {
    /// The stage.
    pub stage: String,
    /// Its number.
    pub number: u32,
    /// What it is for.
    pub description: Option<String>,
    /// Why nothing can be told of its batches.
    pub problem: Option<String>,
    /// Batches that there are.
    pub batches: u64,
    /// Batches that are reused.
    pub reused: u64,
    /// The other batches.
    pub others: Vec<BatchVerdict>,
    /// Batches that there are no more: their outputs are retired.
    pub gone: Vec<String>,
}

/// What becomes of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct BatchVerdict {
    /// The batch.
    pub batch: String,
    /// What becomes of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What becomes of a batch when a run begins at this moment, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Will {
        /// Why.
        reasons: Vec<Reason>,
    },
    /// It waits for someone outside to answer.
    Waits {
        /// Who: an agent, by name.
        agent: String,
        /// Why it must be made.
        reasons: Vec<Reason>,
    },
    /// It is reused.
    Reused,
    /// Its outputs are validated again.
    Judge {
        /// What differs.
        changes: Vec<Change>,
    },
    /// It runs if one of these comes true.
    May {
        /// What must come true.
        conditions: Vec<Condition>,
    },
    /// The run stops: somebody altered what was made.
    Altered {
        /// The files.
        files: Vec<Altered>,
    },
    /// It cannot run.
    Impossible {
        /// Why not.
        why: String,
    },
}

/// Everything that is known of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct BatchWhy {
    /// The stage.
    pub stage: String,
    /// The batch; empty for the only one of the stage.
    pub batch: String,
    /// What becomes of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Who made what is there; none when nothing is.
    pub made: Option<MadeBy>,
    /// Elements that failed, and are not among what was made.
    pub failed: Vec<FailedKeys>,
    /// Where is kept what it left when it last failed, with requests and answers that were not valid, in the workspace.
    pub quarantine: Option<String>,
    /// What it asked of agents; none: nothing.
    pub asked: Option<Asked>,
    /// Files that it reads.
    pub inputs: Vec<InputFile>,
    /// Files that it made.
    pub outputs: Vec<OutputFile>,
    /// The facts that its outputs depend on beside the inputs, as they are at present.
    pub made_from: BTreeMap<String, String>,
    /// The facts that only say what is valid, as they are at present.
    pub judged_by: BTreeMap<String, String>,
}

/// Who made a batch, and how that went.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct MadeBy {
    /// The run.
    pub run: String,
    /// When it was finished, in UTC.
    #[cfg_attr(debug_assertions, schemars(with = "Option<String>"))]
    pub when: Option<Timestamp>,
    /// Tries that it took.
    pub attempts: u32,
    /// How long the last try took, in seconds.
    pub seconds: f64,
    /// Elements that came out.
    pub elements: Option<u64>,
    /// What the stage's `summary` says of it.
    pub summary: Option<Value>,
    /// How the batch failed whose placeholder this is.
    pub placeholder: Option<Outcome>,
    /// Who pinned the outputs as they are, and why.
    pub pin: Option<Pin>,
}

/// A file that a batch reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct InputFile {
    /// The file.
    pub path: String,
    /// Its digest when the batch was made; none: it was not read then.
    pub recorded: Option<String>,
    /// Its digest at present; none: it is not read any more.
    pub present: Option<String>,
    /// The stage and batch that made it; none: people put it there.
    pub made_by: Option<String>,
}

/// A file that a batch made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct OutputFile {
    /// The output's name in the declaration.
    pub(crate) name: String,
    /// The file, in the workspace.
    pub path: String,
    /// Its digest when it was made.
    pub digest: Digest,
    /// Its size then, in bytes.
    pub size: u64,
    /// What lies there at present.
    pub state: FileState,
}

/// What lies at the path of a recorded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// The recorded bytes.
    AsMade,
    /// The recorded bytes, which a person modified by hand and accepted.
    Accepted,
    /// Other bytes.
    Altered,
    /// Nothing.
    Deleted,
}

/// Why a stage, a batch (`STAGE/BATCH`) or a file is as it is. Nothing is written.
///
/// # Errors
/// When there is no project, its declarations are wrong, the workspace cannot be read, or nothing of that name is known.
pub fn why(request: &Request, what: &str) -> Result<Why, OpsError> {
    let mut opened = open(request)?;
    let stages = up_to_date::again(&mut opened);
    if let Some(stage) = opened
        .pipeline
        .stage(what)
        .filter(|stage| !stage.each.is_empty())
        && let Some(stages) = stages
        && let Some(report) = stages.iter().find(|report| report.stage == stage.name)
    {
        let batches = report.batches;
        return Ok(Why::Stage(StageWhy {
            batches,
            reused: batches,
            ..StageWhy::of(stage)
        }));
    }
    let present = Present::read(&opened.workspace.layout)?;
    let state = &present.state;
    if let Ok(target) = Target::parse(&opened.pipeline, what)
        && let Some(stage) = opened.pipeline.stage(&target.stage)
    {
        // The only batch of a stage without `each` has the empty key.
        let key = target.batch.as_deref().unwrap_or_default();
        let found = look(&opened, state, stage, Keep::And(key));
        match (target.batch, found) {
            (None, Ok(found)) if stage.each.is_empty() => {
                let waits = waits(request, &opened, stage, &found)?;
                if let Some(batch) = found.batches.first() {
                    return batch_why(&opened, state, stage, (&found, &waits), batch);
                }
                return Ok(Why::Stage(stage_why(stage, Ok(found), &waits)));
            }
            (None, found) => {
                let waits = match &found {
                    Ok(found) => waits(request, &opened, stage, found)?,
                    Err(_) => BTreeMap::new(),
                };
                return Ok(Why::Stage(stage_why(stage, found, &waits)));
            }
            (Some(key), Ok(found)) => {
                if let Some(batch) = found.batches.iter().find(|one| one.batch.key == key) {
                    let waits = waits(request, &opened, stage, &found)?;
                    return batch_why(&opened, state, stage, (&found, &waits), batch);
                }
            }
            (Some(_), Err(_)) => {}
        }
    }
    if let Some(found) = origin::file_why(&opened, &request.folder, state, what)? {
        return Ok(Why::File(Box::new(found)));
    }
    Err(unknown(&opened, state, what))
}

impl StageWhy {
    /// Of a stage without batches.
    fn of(stage: &Stage) -> Self {
        Self {
            stage: stage.name.clone(),
            number: stage.number,
            description: stage.description.clone(),
            problem: None,
            batches: 0,
            reused: 0,
            others: Vec::new(),
            gone: Vec::new(),
        }
    }
}

/// The batches that wait for someone outside to answer: for which agent.
fn waits(
    request: &Request,
    opened: &Opened,
    stage: &Stage,
    found: &StageScan,
) -> Result<BTreeMap<String, String>, OpsError> {
    let is_open = |batch: &&BatchScan| matches!(batch.decision, Ok(Decision::Will(_)));
    let open: Vec<&BatchScan> = found.batches.iter().filter(is_open).collect();
    let agents = opened.planned_agents(request)?;
    let estimator = CostEstimator::new(opened.context(), &opened.project, &agents, false);
    let awaited = estimator.awaited(stage, &open).map_err(OpsError::World)?;
    let waits = open.iter().zip(awaited);
    Ok(waits
        .filter_map(|(batch, sent)| Some((batch.batch.key.clone(), sent?.agent)))
        .collect())
}

fn stage_why(
    stage: &Stage,
    found: Result<StageScan, String>,
    waits: &BTreeMap<String, String>,
) -> StageWhy {
    let mut why = StageWhy::of(stage);
    match found {
        Err(problem) => why.problem = Some(problem),
        Ok(found) => {
            why.batches = found.batches.len() as u64;
            for batch in &found.batches {
                match verdict(batch, waits) {
                    Verdict::Reused => why.reused += 1,
                    verdict => why.others.push(BatchVerdict {
                        batch: batch.batch.key.clone(),
                        verdict,
                    }),
                }
            }
            why.gone = found.gone;
        }
    }
    why
}

fn verdict(found: &BatchScan, waits: &BTreeMap<String, String>) -> Verdict {
    match found.decision.clone() {
        Ok(Decision::Will(reasons)) if waits.contains_key(&found.batch.key) => Verdict::Waits {
            agent: waits[&found.batch.key].clone(),
            reasons,
        },
        Ok(Decision::Will(reasons)) => Verdict::Will { reasons },
        Ok(Decision::Reused) => Verdict::Reused,
        Ok(Decision::Judge(changes)) => Verdict::Judge { changes },
        Ok(Decision::May(conditions)) => Verdict::May { conditions },
        Ok(Decision::Altered(files)) => Verdict::Altered {
            files: files
                .into_iter()
                .map(|file| Altered {
                    batch: found.batch.key.clone(),
                    path: file.path.to_string(),
                    recorded: file.recorded,
                    found: file.found,
                    pinned: file.pinned,
                })
                .collect(),
        },
        Err(missed) => Verdict::Impossible {
            why: missed.to_string(),
        },
    }
}

fn batch_why(
    opened: &Opened,
    state: &State,
    stage: &Stage,
    (found, waits): (&StageScan, &BTreeMap<String, String>),
    batch: &BatchScan,
) -> Result<Why, OpsError> {
    let key = &batch.batch.key;
    let record = state
        .stages
        .get(&stage.name)
        .and_then(|known| known.batches.get(key)?.record.as_ref());
    let of_kind = |judged: bool| -> BTreeMap<String, String> {
        let facts = found.shared.iter().chain(batch.own.iter());
        let is_told = |kind: FactKind| {
            kind.is_judged() == judged && !matches!(kind, FactKind::Input | FactKind::Detail)
        };
        facts
            .filter(|(key, _)| is_told(key.kind))
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    };
    let (when, quarantine) = journalled(opened, &stage.name, key)?;
    let made = record.map(|record| made_by(when, record));
    Ok(Why::Batch(Box::new(BatchWhy {
        stage: stage.name.clone(),
        batch: key.clone(),
        verdict: verdict(batch, waits),
        made,
        failed: record.map_or_else(Vec::new, |record| record.failed.clone()),
        quarantine,
        asked: asked(opened, &stage.name, key, record)?,
        inputs: inputs(state, record.map(|record| &record.facts), &batch.own),
        outputs: outputs(opened, record)?,
        made_from: of_kind(false),
        judged_by: of_kind(true),
    })))
}

fn made_by(when: Option<Timestamp>, record: &BatchRecord) -> MadeBy {
    MadeBy {
        run: record.run.clone(),
        when,
        attempts: record.attempts,
        seconds: record.duration_ms as f64 / 1000.0,
        elements: record.elements,
        summary: record.summary.as_deref().cloned(),
        placeholder: record.placeholder.as_deref().cloned(),
        pin: record.pin.as_deref().cloned(),
    }
}

/// When a batch was last published, and where is kept what it left when it failed since it was last whole: only the journal knows.
pub(crate) fn journalled(
    opened: &Opened,
    stage: &str,
    batch: &str,
) -> Result<(Option<Timestamp>, Option<String>), OpsError> {
    let (mut when, mut kept) = (None, None);
    journal::read_all(&opened.workspace.layout, &mut |_, record| {
        if record.event.stage() != Some(stage) || !record.event.is_about(batch) {
            return;
        }
        match record.event {
            Event::Published { record: made, .. } => {
                when = Some(record.timestamp);
                if made.failure().is_none() {
                    kept = None;
                }
            }
            Event::BatchFailed { quarantine, .. } | Event::ElementsFailed { quarantine, .. } => {
                kept = quarantine;
            }
            _ => {}
        }
    })?;
    Ok((when, kept))
}

fn inputs(state: &State, recorded: Option<&Facts>, present: &Facts) -> Vec<InputFile> {
    let of = |facts: &Facts| -> BTreeMap<String, String> {
        let inputs = facts.iter().filter(|(key, _)| key.kind == FactKind::Input);
        inputs
            .map(|(key, value)| (key.name.to_string(), value.to_string()))
            .collect()
    };
    let makers = Makers::of(state);
    let recorded = recorded.map(of).unwrap_or_default();
    let present = of(present);
    let mut paths: Vec<&String> = recorded.keys().chain(present.keys()).collect();
    paths.sort_by(|a, b| milepost_core::base::natural::natural(a, b));
    paths.dedup();
    paths
        .into_iter()
        .map(|path| InputFile {
            path: path.clone(),
            recorded: recorded.get(path).cloned(),
            present: present.get(path).cloned(),
            made_by: makers.name(path),
        })
        .collect()
}

fn outputs(opened: &Opened, record: Option<&BatchRecord>) -> Result<Vec<OutputFile>, OpsError> {
    let Some(record) = record else {
        return Ok(Vec::new());
    };
    let made = record.outputs.iter();
    made.map(|made| {
        let there = opened
            .context()
            .digest(&FilePath::workspace(made.path.clone()))
            .map_err(OpsError::World)?;
        Ok(OutputFile {
            name: made.name.clone(),
            path: made.path.to_string(),
            digest: made.digest,
            size: made.size,
            state: FileState::of(there, made, record),
        })
    })
    .collect()
}

impl FileState {
    /// Of what lies there, where this was recorded.
    pub(crate) fn of(there: Option<Digest>, made: &Made, record: &BatchRecord) -> Self {
        match there {
            None => Self::Deleted,
            Some(there) if there == made.digest && record.is_by_hand(&made.path) => Self::Accepted,
            Some(there) if there == made.digest => Self::AsMade,
            Some(_) => Self::Altered,
        }
    }
}

/// That nothing of this name is known, with the names that are nearest to it.
fn unknown(opened: &Opened, state: &State, what: &str) -> OpsError {
    let mut names: Vec<String> = Vec::new();
    for stage in &opened.pipeline.stages {
        names.push(stage.name.clone());
        if let Some(known) = state.stages.get(&stage.name) {
            names.extend(
                known
                    .batches
                    .keys()
                    .map(|batch| batch_name(&stage.name, batch)),
            );
        }
        let paths = lineage::reads(stage).into_iter().map(PathTemplate::shown);
        names.extend(paths.filter(|path| !path.contains(['*', '{'])));
    }
    for stage in state.stages.values() {
        names.extend(stage.outputs().map(|(_, made)| made.path.to_string()));
    }
    let mut near: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(what, &name), name))
        .filter(|(score, _)| *score > 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.dedup();
    let best = near.first().map_or(0.0, |(score, _)| *score);
    near.retain(|(score, _)| *score > best - 0.1);
    let near: Vec<String> = near
        .into_iter()
        .take(SUGGESTED)
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    let hint = if near.is_empty() {
        "name a stage, a batch as STAGE/BATCH, or a file of the workspace".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    OpsError::Usage(format!("nothing is known of `{what}`: {hint}"))
}
