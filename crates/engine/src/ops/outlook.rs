//! Goes through the stages as a run would, from what is known: what of each would be done, and what that means for those after.

use crate::ops::plan::{
    Altered, BatchFacts, Judge, May, Missing, RetiredFile, StagePlan, Tried, Will,
};
use crate::ops::project::opened::Opened;
use crate::run::engine::wish;
use crate::run::foresee::Foresight;
use crate::run::gate;
use crate::run::report::{Awaits, StageStatus};
use crate::run::survey::{Keep, Survey, Surveyed, survey};
use milepost_core::base::path::RelPath;
use milepost_core::model::fingerprint::{FactKey, FactKind, Facts};
use milepost_core::model::reason::Reason;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::{Phase, State};
use milepost_core::plan::decide::Decision;
use milepost_core::plan::inputs::Missed;
use milepost_core::plan::lineage;
use milepost_core::plan::machine::apply;
use milepost_core::plan::pending::{Expected, Pending};
use milepost_core::plan::retired;
use milepost_core::plan::selection::Selection;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a run of a selection would do of each stage, from what is known; not what agents would be asked.
pub fn of<'a>(
    opened: &'a Opened,
    known: &'a State,
    selection: &'a Selection,
    foresight: Foresight<'a>,
) -> Vec<StagePlan> {
    let mut outlook = Outlook::new(opened, known, selection);
    outlook.foresight = Some(foresight);
    let stages = opened.pipeline.stages.iter();
    stages.map(|stage| outlook.pass(stage)).collect()
}

/// The same with what agents would be asked.
pub fn with_asks<'a>(
    opened: &'a Opened,
    known: &'a State,
    selection: &'a Selection,
    foresight: Foresight<'a>,
) -> Vec<StagePlan> {
    let mut outlook = Outlook::new(opened, known, selection);
    outlook.foresight = Some(foresight);
    outlook.tells_asks = true;
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
    /// Stages whose outputs the run may change.
    changing: BTreeSet<String>,
    /// Batches that may still run under a limit.
    budget: Option<u64>,
    /// The stage that the run stops at.
    stops_at: Option<String>,
    /// Where it matters what agents would be asked, or that someone outside has to answer.
    foresight: Option<Foresight<'a>>,
    /// Whether what they would be asked is told.
    tells_asks: bool,
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
        if selection.options.no_force {
            for stage in &opened.pipeline.stages {
                let wanted = selection.wants_stage(&opened.pipeline, stage);
                let dropped = selection.drop_force(&state, &stage.name);
                if let Some(event) = dropped.filter(|_| wanted) {
                    // It can follow anything.
                    let _ = apply(state.to_mut(), "", &event);
                }
            }
        }
        Self {
            opened,
            selection,
            state,
            pending,
            standing: BTreeMap::new(),
            changing: BTreeSet::new(),
            budget: selection.options.limit,
            stops_at: None,
            foresight: None,
            tells_asks: false,
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
        if line.changes() {
            self.changing.insert(stage.name.clone());
        }
        let status = self.expected(stage, &line);
        self.standing.insert(stage.name.clone(), status);
        line
    }

    /// How a stage is expected to end, when nothing fails that does not fail already.
    fn expected(&self, stage: &Stage, line: &StagePlan) -> StageStatus {
        let tolerates = self.selection.options.keep_going || stage.policy.tolerates_failures();
        if !line.altered.is_empty() {
            StageStatus::Altered
        } else if line.blocked.is_some() {
            StageStatus::Blocked
        } else if line.problem.is_some() || (!line.missing.is_empty() && !tolerates) {
            StageStatus::Failed
        } else if line.left > 0 || line.awaits.is_some() {
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
        let awaited = match self.awaited(stage, &found.batches, line) {
            Ok(awaited) => awaited,
            Err(why) => {
                line.problem = Some(why);
                return;
            }
        };
        let mut expected = Vec::with_capacity(found.batches.len());
        for batch in &found.batches {
            let expects = match &batch.decision {
                Ok(Decision::Will(_)) if awaited.contains(&batch.batch.position) => Expected::Same,
                Ok(Decision::Will(reasons)) if self.wants(stage, &found, batch, reasons) => {
                    Expected::Runs
                }
                Ok(Decision::May(_) | Decision::Judge(_)) => Expected::Perhaps,
                _ => Expected::Same,
            };
            expected.push((batch.batch.key.as_str(), expects, &batch.targets));
        }
        line.retires = self.retires(stage, &found, &expected);
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
        let shared = found.shared_id;
        for (batch, runs) in found.batches.into_iter().zip(runs) {
            let key = batch.batch.key;
            let facts = |reasons: &[Reason]| self.facts(stage, &shared, &batch.own, reasons);
            match batch.decision {
                Ok(Decision::Will(reasons)) if runs => line.will.push(Will {
                    facts: facts(&reasons),
                    batch: key,
                    reasons,
                }),
                Ok(Decision::Will(reasons)) => {
                    line.left += 1;
                    let facts = facts(&reasons);
                    if self.selection.was_tried(&stage.name, &key, &facts.all) {
                        line.tried.push(Tried { batch: key, facts });
                    }
                }
                Ok(Decision::Reused) => line.reused += 1,
                Ok(Decision::May(conditions)) => line.may.push(May {
                    batch: key,
                    conditions,
                }),
                Ok(Decision::Judge(changes)) => line.judge.push(Judge {
                    facts: BatchFacts {
                        by_people: true,
                        ..facts(&[])
                    },
                    batch: key,
                    changes,
                }),
                // Its files are listed already.
                Ok(Decision::Altered(_)) => {}
                Err(_) if !self.wants_missing(stage, &key) => line.left += 1,
                Err(missed) => line.missing.push(Missing {
                    batch: key,
                    code: missed.code,
                    why: missed.why,
                }),
            }
        }
        line.checkpoint = !has_checkpoint && !line.changes() && line.left == 0;
    }

    /// The files of a stage that go to quarantine because nothing makes them any more.
    fn retires(
        &self,
        stage: &Stage,
        found: &Survey,
        expected: &[(&str, Expected, &BTreeMap<String, RelPath>)],
    ) -> Vec<RetiredFile> {
        let Some(known) = self.state.stages.get(&stage.name) else {
            return Vec::new();
        };
        let mut files = retired::of_gone(known, &found.gone);
        for (batch, (key, expects, targets)) in found.batches.iter().zip(expected) {
            if let (Expected::Runs, Some((key, known))) =
                (expects, known.batches.get_key_value(*key))
            {
                let context = self.opened.context();
                let scope = batch.base(&context, context.moment());
                let leaving = retired::of_batch(stage, known, targets, &scope);
                files.extend(leaving.into_iter().map(|path| (key.as_str(), path)));
            }
        }
        // What another batch makes at the same path stays.
        let plain = expected.iter().flat_map(|(_, _, targets)| targets.values());
        let made: BTreeSet<&RelPath> = plain.collect();
        let own = |(key, path): &(&str, &RelPath)| RetiredFile {
            stage: stage.name.clone(),
            batch: (*key).to_owned(),
            path: path.to_string(),
        };
        let is_own = |(key, path): &&(&str, &RelPath)| {
            let is_gone = found.gone.iter().any(|gone| gone == key);
            !is_gone || !made.contains(path)
        };
        files.iter().filter(is_own).map(own).collect()
    }

    /// The positions of batches that someone outside has to answer for first.
    fn awaited(
        &self,
        stage: &Stage,
        batches: &[Surveyed],
        line: &mut StagePlan,
    ) -> Result<BTreeSet<u64>, String> {
        let Some(foresight) = &self.foresight else {
            return Ok(BTreeSet::new());
        };
        let will = batches.iter().filter(|batch| {
            matches!(batch.decision, Ok(Decision::Will(_)))
                && self.selection.wants_batch(&stage.name, &batch.batch.key)
        });
        let will: Vec<&Surveyed> = will.collect();
        let awaited = foresight.awaited(stage, &will)?;
        line.awaits = Awaits::of(awaited.iter().flatten());
        if line.awaits.is_none() && !line.certain {
            // Of batches that are not known yet nobody has answered, as a rule.
            let outside = foresight.outside(stage);
            line.awaits = (!outside.is_empty()).then(|| Awaits::by(outside));
        }
        let waits = will.iter().zip(&awaited).filter(|(_, sent)| sent.is_some());
        Ok(waits.map(|(batch, _)| batch.batch.position).collect())
    }

    /// What a batch depends on, in short, for one who watches.
    fn facts(&self, stage: &Stage, shared: &str, own: &Facts, reasons: &[Reason]) -> BatchFacts {
        if self.selection.options.known_failures.is_none() {
            return BatchFacts::default();
        }
        let mut facts = BatchFacts {
            all: format!("{shared}{}", own.id()),
            ..BatchFacts::default()
        };
        let pipeline = &self.opened.pipeline;
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

    /// What the batches ask of agents: those that run, and those that may.
    fn foresee(
        &mut self,
        stage: &Stage,
        batches: &[Surveyed],
        runs: &[bool],
        line: &mut StagePlan,
    ) {
        let Some(foresight) = self.foresight.as_mut().filter(|_| self.tells_asks) else {
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
        let upstream = lineage::upstream(&self.opened.pipeline, stage);
        let settled = line.certain
            && upstream
                .iter()
                .all(|earlier| !self.changing.contains(&earlier.name));
        let asks = foresight.asks(stage, &will, settled);
        match asks.and_then(|asks| Ok((asks, foresight.asks(stage, &may, settled)?))) {
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
        self.selection.wants_batch(&stage.name, key)
            && (!self.selection.options.failed || has_failed)
    }

    /// Whether a batch that must run is asked for, and there is room for it under the limit.
    fn wants(
        &mut self,
        stage: &Stage,
        found: &Survey,
        batch: &Surveyed,
        reasons: &[Reason],
    ) -> bool {
        let has_failed = reasons
            .iter()
            .any(|reason| matches!(reason, Reason::Failed { .. }));
        let is_named = self.selection.wants_batch(&stage.name, &batch.batch.key);
        if !is_named || (self.selection.options.failed && !has_failed) || self.budget == Some(0) {
            return false;
        }
        let changes = |earlier: &str| self.changing.contains(earlier);
        if gate::only_forced_before(reasons)
            && self
                .selection
                .skips_over(&self.opened.pipeline, stage, &changes)
        {
            return false;
        }
        let key = &batch.batch.key;
        if self.selection.options.known_failures.is_some()
            && self
                .selection
                .was_tried(&stage.name, key, &found.facts(batch))
        {
            return false;
        }
        self.budget = self.budget.map(|left| left - 1);
        true
    }
}
