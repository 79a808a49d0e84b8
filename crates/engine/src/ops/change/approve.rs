//! Approves the batches of a stage that declares `[approve]`, so that a run may build them.

use crate::ops::project::error::OpsError;
use crate::ops::project::lock::lock_and_read;
use crate::ops::project::open::{open, open_recorded};
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::run::context::{ATTEMPT_VARIABLE, Context};
use crate::run::observe::Observations;
use milepost_core::base::digest::Digest;
use milepost_core::base::words;
use milepost_core::model::approval::Approval;
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::pipeline::Pipeline;
use milepost_core::model::record::Pin;
use milepost_core::model::stage::Stage;
use milepost_core::model::state::State;
use milepost_core::plan::decide::Decision;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::schedule::{Schedule, StageDecision, needs_approval};
use milepost_core::plan::selection::{Selection, Target};
use serde::Serialize;
use std::collections::BTreeMap;

/// The stages to approve, and the reason.
#[derive(Debug, Clone, Default)]
pub struct ApproveOptions {
    /// The stages, by name or number; at least one.
    pub stages: Vec<String>,
    /// The reason, for the journal.
    pub why: String,
    /// The person; by default the user of this process.
    pub who: Option<String>,
    /// The batches that the person was shown, by [`shown`]. If they have changed since, nothing is approved.
    pub expected: Option<Digest>,
}

/// The approved stages.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Approved {
    /// The approvals, by stage.
    pub approved: BTreeMap<String, Approval>,
    /// The stages that need no approval now, and why.
    pub unneeded: BTreeMap<String, Unneeded>,
}

/// Why a stage needs no approval now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Unneeded {
    /// Every batch is up to date.
    UpToDate,
    /// A person approved the batches that are out of date.
    Approved {
        /// The approval.
        approval: Approval,
    },
    /// The batches that are out of date are rebuilt as they were.
    Unchanged,
}

/// Approves the batches of stages that are out of date, as they are. Every stage is checked first; if one cannot be approved, none is.
///
/// # Errors
/// When a stage cannot be approved, another process has locked the workspace, or the disk fails.
pub fn approve(request: &Request, options: &ApproveOptions) -> Result<Approved, OpsError> {
    if options.stages.is_empty() {
        let approve = request
            .invocation
            .line(&["approve", "STAGE", "--why", "TEXT"]);
        let usage = format!("name what to approve: `{approve}`");
        return Err(OpsError::Usage(usage));
    }
    if options.why.trim().is_empty() {
        let usage = "give a reason with `--why TEXT`: the journal records it";
        return Err(OpsError::Usage(usage.to_owned()));
    }
    if request.environment.contains_key(ATTEMPT_VARIABLE) {
        let usage = "a person approves a stage: a step of a run cannot";
        return Err(OpsError::Usage(usage.to_owned()));
    }
    let mut opened = open(request)?;
    let stages = stages(&opened.pipeline, &options.stages)?;
    if !opened.workspace.is_made {
        let usage = "this workspace has no run: there is nothing to approve";
        return Err(OpsError::Usage(usage.to_owned()));
    }
    let pin = Pin {
        who: request.person(options.who.as_deref()),
        why: options.why.clone(),
        at: Some(opened.clock.now()),
        files: Vec::new(),
    };
    let locked = lock_and_read(&mut opened, &request.command)?;
    let (lock, mut recorder, _) = locked.recover(&opened, &request.command)?;
    let mut done = Approved::default();
    let mut events = Vec::new();
    let mut refused = Vec::new();
    for stage in &stages {
        let choice = choose(recorder.ctx, &recorder.state, stage)?;
        if let Some(expected) = options.expected
            && !matches!(choice, Choice::Refused(_))
            && choice.digest() != Some(expected)
        {
            return Err(OpsError::NotAsShown("approved"));
        }
        match choice {
            Choice::Refused(why) => refused.push(format!("{}: {why}", stage.name)),
            Choice::Unneeded(why) => {
                done.unneeded.insert(stage.name.clone(), why);
            }
            Choice::Approves(by, batches) => events.push((stage, by, batches)),
        }
    }
    if !refused.is_empty() {
        return Err(OpsError::NotApproved(refused));
    }
    for (stage, by, batches) in events {
        let facts = Approval::digest(&batches);
        let approval = Approval::of(&by, &pin, &batches, facts);
        let summary = format!(
            "{}: {} approved {} as {by}: {}",
            stage.name,
            pin.who,
            words::count(approval.batches, "batch", "batches"),
            pin.why
        );
        let event = Event::Approved {
            stage: stage.name.clone(),
            by,
            facts,
            batches,
            pin: pin.clone(),
        };
        recorder.record(EventType::Review, stage.actor(), event, summary)?;
        done.approved.insert(stage.name.clone(), approval);
    }
    if recorder.has_begun() {
        recorder.end_without_stages("approved", "approved")?;
        recorder.flush()?;
    }
    // Only a cache.
    let _ = opened.cache.save(&opened.disk);
    drop(lock);
    Ok(done)
}

/// Returns the digest of the batches of a stage that wait for approval; `None` if none does. Nothing is written.
///
/// # Errors
/// When there is no project or stage, or the workspace cannot be read.
pub fn shown(request: &Request, stage: &str) -> Result<Option<Digest>, OpsError> {
    let opened = open(request)?;
    let present = Snapshot::read(&opened.workspace.layout)?;
    let mut digest = None;
    for stage in &stages(&opened.pipeline, &[stage.to_owned()])? {
        digest = choose(opened.context(), &present.state, stage)?.digest();
    }
    Ok(digest)
}

/// Returns the last approval of a stage; `None` if it declares no `[approve]` or was never approved. Nothing is written.
///
/// # Errors
/// When there is no project or stage, or the workspace cannot be read.
pub fn last(request: &Request, stage: &str) -> Result<Option<Approval>, OpsError> {
    let opened = open_recorded(request)?;
    let stages = stages(&opened.pipeline, &[stage.to_owned()])?;
    let Some(stage) = stages.iter().find(|stage| stage.approve.is_some()) else {
        return Ok(None);
    };
    let mut present = Snapshot::read(&opened.workspace.layout)?;
    let approved = present.state.approvals.remove(&stage.name);
    Ok(approved.map(|approved| approved.approval))
}

/// Returns the stages that are named, in their order.
fn stages(pipeline: &Pipeline, names: &[String]) -> Result<Vec<Stage>, OpsError> {
    let mut named = Vec::new();
    for text in names {
        let target = Target::parse(pipeline, text)?;
        if target.batch.is_some() {
            return Err(OpsError::Usage(format!(
                "`{text}` is a batch: an approval is for the whole stage `{}`",
                target.stage
            )));
        }
        named.push(target.stage);
    }
    let stages = pipeline.stages.iter();
    let stages = stages.filter(|stage| named.contains(&stage.name));
    Ok(stages.cloned().collect())
}

/// The decision on a stage.
enum Choice {
    /// It cannot be approved: the reason.
    Refused(String),
    /// It needs no approval.
    Unneeded(Unneeded),
    /// The role, and the batches with the ids of their facts.
    Approves(String, BTreeMap<String, String>),
}

impl Choice {
    fn digest(&self) -> Option<Digest> {
        match self {
            Self::Approves(_, batches) => Some(Approval::digest(batches)),
            Self::Refused(_) | Self::Unneeded(_) => None,
        }
    }
}

fn choose(ctx: Context<'_>, state: &State, stage: &Stage) -> Result<Choice, OpsError> {
    let Some(by) = &stage.approve else {
        return Ok(Choice::Refused(format!(
            "the stage needs no approval: `{}` declares no [approve]",
            stage.file
        )));
    };
    let all = Selection::default();
    let disk = Observations::new(ctx, None);
    let schedule = Schedule::new(ctx.pipeline, &all);
    let decision = schedule.stage(stage, state, &Pending::default(), &disk);
    let refused = |why: String| Ok(Choice::Refused(why));
    let found: StageScan = match decision.map_err(|why| OpsError::World(why.0))? {
        StageDecision::Ready(found) => found,
        StageDecision::Blocked(blocker) => {
            return refused(format!("its inputs are not complete: {blocker}"));
        }
        StageDecision::Failed(why) => return refused(why),
        StageDecision::Modified(_, files) => {
            let files = files.iter().map(|(_, file)| file.path.to_string());
            let files: Vec<String> = files.collect();
            return refused(format!("modified by hand: {}", files.join(", ")));
        }
        // Everything is selected, and no stage before this one had its turn.
        StageDecision::Skipped | StageDecision::Stopped(_) => {
            return refused("it is not selected".to_owned());
        }
    };
    let runs = |batch: &&BatchScan| {
        matches!(
            batch.decision,
            Ok(Decision::Will(_) | Decision::Revalidate(_))
        )
    };
    let open: Vec<&BatchScan> = found.batches.iter().filter(runs).collect();
    let waiting = open
        .iter()
        .filter(|batch| needs_approval(stage, state, &found, batch));
    let batches: BTreeMap<String, String> = waiting
        .map(|batch| (batch.batch.key.clone(), found.facts(batch)))
        .collect();
    if !batches.is_empty() {
        return Ok(Choice::Approves(by.clone(), batches));
    }
    let missed = found
        .batches
        .iter()
        .find_map(|batch| batch.decision.as_ref().err());
    Ok(match (missed, state.approvals.get(&stage.name)) {
        (Some(missed), _) => Choice::Refused(missed.to_string()),
        (None, _) if open.is_empty() => Choice::Unneeded(Unneeded::UpToDate),
        (None, Some(approved)) => Choice::Unneeded(Unneeded::Approved {
            approval: approved.approval.clone(),
        }),
        (None, None) => Choice::Unneeded(Unneeded::Unchanged),
    })
}
