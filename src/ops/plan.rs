//! What a run would do, and why. Nothing is written.

use super::glance;
use super::open::{Opened, OpsError, Request, open, state};
use super::run::{Wanted, selection};
use crate::base::digest::Digest;
use crate::model::fingerprint::Change;
use crate::model::policy::OnFailure;
use crate::model::reason::{Condition, Reason};
use crate::model::stage::Stage;
use crate::model::state::{Phase, State};
use crate::plan::decide::{Alteration, Decision};
use crate::plan::inputs::Missed;
use crate::plan::pending::{Expected, Pending};
use crate::plan::selection::Selection;
use crate::run::agents::{Purpose, agents};
use crate::run::engine::wish;
use crate::run::foresee::Foresight;
use crate::run::gate;
use crate::run::report::{StageReport, StageStatus};
use crate::run::survey::{Keep, Survey, Surveyed, survey};
use crate::store::layout;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

pub use crate::plan::estimate::Basis;
pub use crate::run::foresee::Asks;
pub use crate::run::gate::{Hindrance, Obstacle};

/// How often a plan beside a run looks again.
const LOOKS: usize = 20;

/// What a run would do.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Plan {
    /// The project's name.
    pub project: String,
    /// The workspace's folder.
    pub workspace: String,
    /// Stages that are no longer declared: what they made is retired.
    pub forgotten: Vec<String>,
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
    /// Which stage that is, and what is wrong with it.
    pub blocked_by: Option<Obstacle>,
    /// Whether nothing is done but that its checkpoint, which is not there, is written.
    pub checkpoint: bool,
    /// Whether the stage is left out by what was asked for.
    pub skipped: bool,
    /// What the batches that run ask of agents that cost something.
    pub asks: Option<Asks>,
    /// What those would ask that run only if a condition comes true.
    pub may_ask: Option<Asks>,
}

impl StagePlan {
    /// Batches that there are, as far as they are known.
    pub fn batches(&self) -> u64 {
        let checkpoint = layout::checkpoint(self.number);
        let altered: std::collections::BTreeSet<&str> = self
            .altered
            .iter()
            .filter(|file| file.path != checkpoint.as_str())
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

impl Altered {
    /// Of what was found of a batch.
    pub fn of((batch, file): (String, Alteration)) -> Self {
        Self {
            batch,
            path: file.path.to_string(),
            recorded: file.recorded,
            found: file.found,
            pinned: file.pinned,
        }
    }
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
        let rests = |stage: &StagePlan| {
            stage.will.is_empty()
                && stage.may.is_empty()
                && stage.judge.is_empty()
                && stage.retire.is_empty()
                && stage.altered.is_empty()
                && stage.missing.is_empty()
                && stage.problem.is_none()
                && stage.blocked.is_none()
                && !stage.checkpoint
                && stage.certain
        };
        self.forgotten.is_empty() && self.stages.iter().all(rests)
    }
}

/// What a run would do.
///
/// # Errors
/// When there is no project, its declarations are wrong, or the workspace cannot be read.
pub fn plan(request: &Request, wanted: &Wanted) -> Result<Plan, OpsError> {
    let mut opened = open(request)?;
    let selection = selection(&opened, wanted)?;
    if glance::can_tell(wanted)
        && let Some(stages) = glance::again(&mut opened)
    {
        return Ok(unchanged(&opened, &stages));
    }
    let layout = &opened.workspace.layout;
    let mut known = state(layout)?;
    let agents = agents(
        Purpose::Plan,
        &opened.pipeline,
        &opened.project,
        &request.environment,
    );
    let agents = agents.map_err(OpsError::World)?;
    let look = |known: &State| {
        let mut outlook = Outlook::new(&opened, known, &selection);
        let context = opened.context();
        outlook.foresight = Some(Foresight::new(
            context,
            &opened.project,
            &agents,
            wanted.fresh,
        ));
        let stages = opened.pipeline.stages.iter();
        stages.map(|stage| outlook.pass(stage)).collect::<Vec<_>>()
    };
    let mut stages = look(&known);
    // What a run beside this one makes meanwhile looks altered by what was known before.
    for _ in 0..LOOKS {
        if stages.iter().all(|stage| stage.altered.is_empty()) {
            break;
        }
        let later = state(layout)?;
        if !stages.iter().any(|stage| was_made(stage, &later)) {
            break;
        }
        known = later;
        stages = look(&known);
    }
    let is_declared = |name: &str| {
        let stages = &opened.pipeline.stages;
        stages.iter().any(|stage| stage.name == name)
    };
    Ok(Plan {
        project: opened.pipeline.name.clone(),
        workspace: opened.workspace.layout.root().display().to_string(),
        forgotten: known
            .stages
            .keys()
            .filter(|name| !is_declared(name))
            .cloned()
            .collect(),
        stages,
        warnings: opened.warnings.iter().map(ToString::to_string).collect(),
    })
}

/// The plan when nothing is otherwise than when a run had nothing to do.
fn unchanged(opened: &Opened, stages: &[StageReport]) -> Plan {
    let line = |stage: &Stage| {
        let reports = stages.iter().filter(|report| report.stage == stage.name);
        StagePlan {
            stage: stage.name.clone(),
            number: stage.number,
            description: stage.description.clone(),
            certain: true,
            reused: reports.map(|report| report.batches).sum(),
            ..StagePlan::default()
        }
    };
    Plan {
        project: opened.pipeline.name.clone(),
        workspace: opened.workspace.layout.root().display().to_string(),
        forgotten: Vec::new(),
        stages: opened.pipeline.stages.iter().map(line).collect(),
        warnings: opened.warnings.iter().map(ToString::to_string).collect(),
    }
}

/// Whether a file of a stage that looked altered was made by what is known later.
fn was_made(stage: &StagePlan, later: &State) -> bool {
    let known = later.stages.get(&stage.stage);
    stage.altered.iter().any(|file| {
        later.checkpoints.get(&stage.stage) == Some(&file.found)
            || known.is_some_and(|known| {
                let mut outputs = known.outputs();
                outputs
                    .any(|(_, made)| made.path.as_str() == file.path && made.digest == file.found)
            })
    })
}

/// What a run of a selection would do of each stage, from what is known; not what agents would be asked.
pub fn of(opened: &Opened, known: &State, selection: &Selection) -> Vec<StagePlan> {
    let mut outlook = Outlook::new(opened, known, selection);
    let stages = opened.pipeline.stages.iter();
    stages.map(|stage| outlook.pass(stage)).collect()
}

/// What a run of everything would find of a stage when its turn comes.
///
/// # Errors
/// When its batches cannot be told.
pub fn look(
    opened: &Opened,
    known: &State,
    stage: &Stage,
    keep: Keep<'_>,
) -> Result<Survey, String> {
    let all = Selection::default();
    let mut outlook = Outlook::new(opened, known, &all);
    let stages = opened.pipeline.stages.iter();
    for earlier in stages.take_while(|earlier| earlier.number < stage.number) {
        outlook.pass(earlier);
    }
    outlook.look(stage, keep)
}

/// Goes through the stages as a run would, and keeps what is to be expected for those after.
struct Outlook<'a> {
    opened: &'a Opened,
    selection: &'a Selection,
    /// What will be known, as far as it can be told.
    state: Cow<'a, State>,
    pending: Pending,
    /// How the stages are expected to end.
    standing: BTreeMap<String, StageStatus>,
    /// Batches that may still run under a limit.
    budget: Option<u64>,
    /// The stage that the run stops at.
    stops_at: Option<String>,
    /// Where it matters what agents would be asked.
    foresight: Option<Foresight<'a>>,
}

impl<'a> Outlook<'a> {
    fn new(opened: &'a Opened, known: &'a State, selection: &'a Selection) -> Self {
        let mut state = Cow::Borrowed(known);
        let mut pending = Pending::default();
        for (name, stage) in &known.stages {
            let declared = &opened.pipeline.stages;
            match declared.iter().find(|declared| declared.name == *name) {
                // What is no longer declared is forgotten before anything else,
                None => pending.forget(&mut state, name),
                // and a checkpoint under another number is removed.
                Some(declared) if declared.number != stage.number => {
                    state.to_mut().checkpoints.remove(name);
                    if let Some(stage) = state.to_mut().stages.get_mut(name) {
                        stage.status = None;
                    }
                }
                Some(_) => {}
            }
        }
        Self {
            opened,
            selection,
            state,
            pending,
            standing: BTreeMap::new(),
            budget: selection.limit,
            stops_at: None,
            foresight: None,
        }
    }

    fn look(&self, stage: &Stage, keep: Keep<'_>) -> Result<Survey, String> {
        let wish = |batch: &str| wish(self.selection, stage, batch);
        survey(
            &self.opened.context(),
            stage,
            &self.state,
            &self.pending,
            &wish,
            keep,
        )
    }

    /// What a run would do of a stage.
    fn pass(&mut self, stage: &Stage) -> StagePlan {
        let mut line = StagePlan {
            stage: stage.name.clone(),
            number: stage.number,
            description: stage.description.clone(),
            certain: true,
            ..StagePlan::default()
        };
        if !self.selection.wants_stage(&self.opened.pipeline, stage) {
            line.skipped = true;
            return line;
        }
        if let Some(stop) = &self.stops_at {
            line.blocked = Some(format!("the run stops at stage `{stop}`"));
            let status = self.expected(stage, &line);
            self.standing.insert(stage.name.clone(), status);
            return line;
        }
        let context = self.opened.context();
        match gate::blocked_by(&context, &self.state, &self.standing, stage) {
            Err(why) => line.problem = Some(why),
            Ok(Some(obstacle)) => {
                line.blocked = Some(obstacle.to_string());
                line.blocked_by = Some(obstacle);
            }
            Ok(None) => match self.look(stage, Keep::Undone) {
                Err(why) => line.problem = Some(why),
                Ok(found) => self.fill(stage, found, &mut line),
            },
        }
        if !line.altered.is_empty() {
            self.stops_at = Some(stage.name.clone());
        }
        let status = self.expected(stage, &line);
        self.standing.insert(stage.name.clone(), status);
        line
    }

    /// How a stage is expected to end, when nothing fails that does not fail already.
    fn expected(&self, stage: &Stage, line: &StagePlan) -> StageStatus {
        let tolerates = self.selection.keep_going
            || stage.policy.on_failure == OnFailure::Continue
            || stage.policy.placeholder.is_some();
        if !line.altered.is_empty() {
            StageStatus::Altered
        } else if line.blocked.is_some() {
            StageStatus::Blocked
        } else if line.problem.is_some() || (!line.missing.is_empty() && !tolerates) {
            StageStatus::Failed
        } else if line.left > 0 {
            StageStatus::Held
        } else if line.missing.is_empty() {
            StageStatus::Complete
        } else {
            StageStatus::Partial
        }
    }

    fn fill(&mut self, stage: &Stage, found: Survey, line: &mut StagePlan) {
        let keys = found.batches.iter().map(|batch| batch.batch.key.as_str());
        let unknown = self.selection.unknown_batch(&stage.name, keys);
        if unknown.is_some() && found.certain {
            line.problem = unknown;
            return;
        }
        let context = self.opened.context();
        match gate::altered(&context, &self.state, self.selection, stage, &found) {
            Err(why) => line.problem = Some(why),
            Ok(altered) => {
                line.altered = altered.into_iter().map(Altered::of).collect();
            }
        }
        line.certain = found.certain;
        if !line.altered.is_empty() {
            // The run stops before it does any of this.
            let batches = || found.batches.iter().map(|batch| &batch.decision);
            let is_reused =
                |decision: &&Result<Decision, Missed>| matches!(decision, Ok(Decision::Reused));
            let is_altered =
                |decision: &&Result<Decision, Missed>| matches!(decision, Ok(Decision::Altered(_)));
            line.reused = batches().filter(is_reused).count() as u64;
            line.left = batches().count() as u64
                - line.reused
                - batches().filter(is_altered).count() as u64;
            return;
        }
        // As the state stands before this stage: what it expects of itself takes the checkpoint away.
        let recorded = self.state.stages.get(&stage.name);
        let has_checkpoint = recorded.is_some_and(|known| known.status.is_some())
            && context.layout.checkpoint(stage.number).exists();
        let mut expected = Vec::with_capacity(found.batches.len());
        for batch in &found.batches {
            let expects = match &batch.decision {
                Ok(Decision::Will(reasons)) if self.wants(stage, batch, reasons) => Expected::Runs,
                Ok(Decision::May(_) | Decision::Judge(_)) => Expected::Perhaps,
                _ => Expected::Same,
            };
            expected.push((batch.batch.key.as_str(), expects, &batch.targets));
        }
        self.pending.expect(
            &mut self.state,
            stage,
            found.certain,
            &found.gone,
            expected.iter().copied(),
        );
        let runs: Vec<bool> = expected
            .iter()
            .map(|(_, expects, _)| *expects == Expected::Runs)
            .collect();
        self.foresee(stage, &found.batches, &runs, line);
        line.retire = found.gone;
        for (batch, runs) in found.batches.into_iter().zip(runs) {
            let key = batch.batch.key;
            match batch.decision {
                Ok(Decision::Will(reasons)) if runs => line.will.push(Will {
                    batch: key,
                    reasons,
                }),
                Ok(Decision::Will(_)) => line.left += 1,
                Ok(Decision::Reused) => line.reused += 1,
                Ok(Decision::May(conditions)) => line.may.push(May {
                    batch: key,
                    conditions,
                }),
                Ok(Decision::Judge(changes)) => line.judge.push(Judge {
                    batch: key,
                    changes,
                }),
                // Its files are listed already.
                Ok(Decision::Altered(_)) => {}
                Err(_) if !self.wants_missing(stage, &key) => line.left += 1,
                Err(missed) => line.missing.push(Missing {
                    batch: key,
                    why: missed.why,
                }),
            }
        }
        line.checkpoint = !has_checkpoint && !line.changes() && line.left == 0;
    }

    /// What the batches ask of agents: those that run, and those that may.
    fn foresee(
        &mut self,
        stage: &Stage,
        batches: &[Surveyed],
        runs: &[bool],
        line: &mut StagePlan,
    ) {
        let Some(foresight) = &mut self.foresight else {
            return;
        };
        let those = |wanted: &dyn Fn(&Surveyed, bool) -> bool| {
            let all = batches.iter().zip(runs);
            let those = all.filter(|(batch, runs)| wanted(batch, **runs));
            those.map(|(batch, _)| batch).collect::<Vec<_>>()
        };
        let will = those(&|_, runs| runs);
        let may =
            those(&|batch, _| matches!(batch.decision, Ok(Decision::May(_) | Decision::Judge(_))));
        let asks = foresight.asks(stage, &will);
        match asks.and_then(|asks| Ok((asks, foresight.asks(stage, &may)?))) {
            Ok((asks, may_ask)) => {
                line.asks = asks;
                line.may_ask = may_ask;
            }
            Err(why) => line.problem = Some(why),
        }
    }

    /// Whether a batch that lacks an input is asked for.
    fn wants_missing(&self, stage: &Stage, key: &str) -> bool {
        let known = self.state.stages.get(&stage.name);
        let has_failed = known
            .and_then(|known| known.batches.get(key))
            .is_some_and(|batch| matches!(batch.phase, Phase::Failed { .. }));
        self.selection.wants_batch(&stage.name, key) && (!self.selection.failed || has_failed)
    }

    /// Whether a batch that must run is asked for, and there is room for it under the limit.
    fn wants(&mut self, stage: &Stage, batch: &Surveyed, reasons: &[Reason]) -> bool {
        let has_failed = reasons
            .iter()
            .any(|reason| matches!(reason, Reason::Failed { .. }));
        let is_named = self.selection.wants_batch(&stage.name, &batch.batch.key);
        if !is_named || (self.selection.failed && !has_failed) || self.budget == Some(0) {
            return false;
        }
        self.budget = self.budget.map(|left| left - 1);
        true
    }
}
