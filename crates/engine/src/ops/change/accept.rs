//! Accepts what a person changed: outputs as they are, or a change of the declaration that makes no difference.

use crate::ops::project::error::OpsError;
use crate::ops::project::hold::hold;
use crate::ops::project::open::open;
use crate::ops::project::opened::Opened;
use crate::ops::project::request::Request;
use crate::run::check::revalidate::holds;
use crate::run::check::scan::{Keep, survey};
use crate::run::record::finish;
use crate::run::record::quarantined::KeptFile;
use crate::run::record::recorder::Recorder;
use crate::run::record::recorder::agent;
use crate::run::record::recover;
use crate::run::record::retire;
use jiff::Timestamp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath};
use milepost_core::model::event::{Event, EventType};
use milepost_core::model::fingerprint::{Change, FactKind, Facts};
use milepost_core::model::reason::Reason;
use milepost_core::model::record::{BatchRecord, Made, ModifiedFile, Pin};
use milepost_core::model::stage::Stage;
use milepost_core::plan::decide::{Decision, RebuildPolicy};
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::pending::Pending;
use milepost_core::plan::scan::{BatchScan, StageScan};
use milepost_core::plan::schedule::only_failed;
use milepost_core::plan::selection::Target;
use milepost_core::plan::world::World;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::files::digest_of;
use milepost_store::store::{accepted, layout};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What is to be accepted.
#[derive(Debug, Clone, Default)]
pub struct AcceptOptions {
    /// `STAGE` or `STAGE/BATCH`; at least one.
    pub targets: Vec<String>,
    /// Why, for the journal.
    pub why: String,
    /// Who; by default the user of this process.
    pub who: Option<String>,
    /// Kinds of facts (`file`, `param`, …), or facts (`file templates/report.md`), whose change is adopted. Empty: outputs
    /// that were altered are accepted.
    pub changes: Vec<String>,
}

/// What was accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Accepted {
    /// Outputs that are pinned as they are.
    pub pinned: Vec<Pinned>,
    /// Batches that adopted changes without a run.
    pub adopted: Vec<Adopted>,
    /// Checkpoints that were written again.
    pub checkpoints: Vec<String>,
    /// Checkpoints and progress files that a person modified, which went to quarantine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<KeptFile>,
}

/// An output that is pinned as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Pinned {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// The file, in the workspace.
    pub path: String,
    /// What was recorded.
    pub old: Digest,
    /// What it is.
    pub new: Digest,
}

/// A batch that adopted changes without a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Adopted {
    /// The stage.
    pub stage: String,
    /// The batch.
    pub batch: String,
    /// What changed.
    pub changes: Vec<Change>,
}

/// Accepts altered outputs, or adopts changes of the declaration. Everything that is named is validated first; if something
/// does not hold, nothing is accepted. A checkpoint of a named stage that somebody altered is written again from the records.
///
/// # Errors
/// When something cannot be accepted, another run has the workspace, or the disk fails.
pub fn accept(request: &Request, wanted: &AcceptOptions) -> Result<Accepted, OpsError> {
    let mut opened = open(request)?;
    let targets = targets(&opened, wanted)?;
    let kinds = kinds(&wanted.changes)?;
    if !opened.workspace.is_made {
        let message = "nothing was run in this workspace: there is nothing to accept".to_owned();
        return Err(OpsError::Usage(message));
    }
    let user = request.environment.get("USER").cloned();
    let who = wanted.who.clone().or(user);
    let who = who.unwrap_or_else(|| "somebody".to_owned());
    let by = (who.as_str(), wanted.why.as_str(), opened.clock.now());
    let held = hold(&mut opened, &request.command)?;
    let ctx = opened.context();
    let mut recorder = Recorder::new(ctx, held.state, held.journal, &request.command);
    recover::recover(&mut recorder, Duration::from_secs(5))?;
    let mut done = Accepted::default();
    let mut work = Vec::new();
    let mut refused = Vec::new();
    for stage in &opened.pipeline.stages {
        let batches: Vec<&Target> = targets
            .iter()
            .filter(|target| target.stage == stage.name)
            .collect();
        if batches.is_empty() {
            continue;
        }
        let wants = |key: &str| {
            batches
                .iter()
                .any(|target| target.batch.as_deref().is_none_or(|batch| batch == key))
        };
        let found = look(&recorder, stage, RebuildPolicy::NeededAndAltered)?;
        for target in &batches {
            let known = |key: &String| found.batches.iter().any(|batch| batch.batch.key == *key);
            if let Some(key) = target.batch.as_ref().filter(|key| !known(key)) {
                refused.push(format!("stage `{}` has no batch `{key}`", stage.name));
            }
        }
        let mut chosen = Vec::new();
        for batch in found.batches.iter().filter(|batch| wants(&batch.batch.key)) {
            match choose(&recorder, stage, batch, &kinds) {
                Ok(Some(outputs)) => chosen.push((batch.batch.key.clone(), outputs)),
                Ok(None) => {}
                Err(why) => refused.extend(why),
            }
        }
        work.push((stage, found, chosen));
    }
    if !refused.is_empty() {
        return Err(OpsError::NotAccepted(refused));
    }
    // A person's bytes are safe before anything says that they are accepted.
    for (stage, _, chosen) in &work {
        for (key, outputs) in chosen.iter().filter(|_| wanted.changes.is_empty()) {
            copy(&recorder, stage, key, outputs, by)?;
        }
    }
    for (stage, found, chosen) in work {
        take(&mut recorder, stage, &found, chosen, by, wanted, &mut done)?;
        rewrite(&mut recorder, stage, &mut done)?;
    }
    if recorder.has_begun() {
        let event = Event::RunFinished {
            status: "accepted".to_owned(),
            ran: 0,
            reused: 0,
            failed: 0,
        };
        let summary = "accepted".to_owned();
        recorder
            .record(EventType::Complete, "milepost", event, summary, Vec::new())
            .and_then(|()| recorder.flush())?;
    }
    done.quarantined = std::mem::take(&mut recorder.kept);
    // Only a cache.
    let _ = opened.cache.save(&opened.disk);
    drop(held.lock);
    Ok(done)
}

fn targets(opened: &Opened, wanted: &AcceptOptions) -> Result<Vec<Target>, OpsError> {
    if wanted.targets.is_empty() {
        return Err(OpsError::Usage(
            "say what is accepted: `milepost accept STAGE[/BATCH] --why TEXT`".to_owned(),
        ));
    }
    if wanted.why.trim().is_empty() {
        return Err(OpsError::Usage(
            "say why with `--why TEXT`: it stands in the journal".to_owned(),
        ));
    }
    let targets = wanted.targets.iter();
    targets
        .map(|text| Target::parse(&opened.pipeline, text))
        .collect::<Result<_, _>>()
        .map_err(|error| OpsError::Usage(error.to_string()))
}

/// What `--change` names: kinds of facts, or facts.
#[derive(Debug, Default)]
struct Kinds {
    kinds: BTreeSet<FactKind>,
    facts: BTreeSet<String>,
}

impl Kinds {
    fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.facts.is_empty()
    }

    fn has(&self, change: &Change) -> bool {
        let mut facts = std::iter::once(&change.fact).chain(&change.of);
        facts.any(|fact| self.kinds.contains(&fact.kind) || self.facts.contains(&fact.to_string()))
    }
}

fn kinds(names: &[String]) -> Result<Kinds, OpsError> {
    let mut found = Kinds::default();
    for name in names {
        let kind = match name.as_str() {
            "prompt" | "template" | "filter" | "workbook" => Some(FactKind::File),
            "rules" => Some(FactKind::Agent),
            word => FactKind::of_word(word),
        };
        match kind {
            Some(kind) if kind.is_judged() => {
                return Err(OpsError::Usage(format!(
                    "`--change {name}`: what only says what is valid is judged again by a run, without making anything"
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
                    "`--change {name}`: name a kind of fact, as `milepost why` lists them: step, input, item, param, file, \
                     agent, env, workspace, version; or one fact, such as \"file templates/report.md\""
                )));
            }
        }
    }
    Ok(found)
}

fn look(
    recorder: &Recorder<'_>,
    stage: &Stage,
    wish: RebuildPolicy,
) -> Result<StageScan, OpsError> {
    let pending = Pending::default();
    survey(
        &recorder.ctx,
        stage,
        &recorder.state,
        &pending,
        &|_| wish,
        Keep::All,
    )
    .map_err(OpsError::World)
}

/// The outputs of a batch as they would be recorded; none when there is nothing to accept.
///
/// # Errors
/// Why it cannot be accepted.
fn choose(
    recorder: &Recorder<'_>,
    stage: &Stage,
    found: &BatchScan,
    kinds: &Kinds,
) -> Result<Option<Vec<Made>>, Vec<String>> {
    let name = batch_name(&stage.name, &found.batch.key);
    let reasons = match &found.decision {
        Ok(Decision::Will(reasons)) => reasons,
        Ok(_) => return Ok(None),
        Err(why) => return Err(vec![format!("{name}: {why}")]),
    };
    let record = record_of(recorder, stage, &found.batch.key);
    let altered: Vec<&RelPath> = reasons.iter().filter_map(altered).collect();
    let Some(record) = record else {
        let path = altered.first();
        return path.map_or(Ok(None), |path| {
            Err(vec![format!(
                "{name}: nothing says who made {path}: move it away, or make it with `milepost run --force {name}`"
            )])
        });
    };
    let is_wanted = if kinds.is_empty() {
        !altered.is_empty() || record.pin.is_some()
    } else {
        reasons
            .iter()
            .any(|reason| matches!(reason, Reason::Changed(change) if kinds.has(change)))
    };
    if !is_wanted {
        return Ok(None);
    }
    let mut refused = Vec::new();
    for reason in reasons {
        let why = match reason {
            Reason::Deleted { path } => format!("{path} was deleted"),
            Reason::Altered { path } if !kinds.is_empty() => {
                format!("{path} was altered: accept that first, without `--change`")
            }
            Reason::Changed(change) if !kinds.is_empty() && !kinds.has(change) => {
                format!(
                    "{} changed too: it is not among what `--change` names",
                    change.fact
                )
            }
            Reason::Failed { outcome } => format!("it failed: {outcome}"),
            Reason::Stale { input } if !kinds.is_empty() => {
                format!("{input} changed while it was made")
            }
            _ => continue,
        };
        refused.push(format!("{name}: {why}"));
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let outputs: Vec<Made> = record
        .outputs
        .iter()
        .map(|made| at_present(recorder, made).map_err(|why| vec![format!("{name}: {why}")]))
        .collect::<Result<_, _>>()?;
    let (schemas, never) = (Schemas::default(), Arc::default());
    let failed = record.failed_keys();
    match holds(
        &recorder.ctx,
        stage,
        found,
        (&outputs, &failed),
        &schemas,
        &never,
    ) {
        Ok(_) => Ok(Some(outputs)),
        Err(outcome) => {
            let mut lines = vec![format!("{name}: {outcome}")];
            lines.extend(outcome.details.iter().map(|line| format!("  {line}")));
            Err(lines)
        }
    }
}

fn altered(reason: &Reason) -> Option<&RelPath> {
    match reason {
        Reason::Altered { path } => Some(path),
        _ => None,
    }
}

fn at_present(recorder: &Recorder<'_>, made: &Made) -> Result<Made, String> {
    let found = digest_of(&recorder.ctx.layout.at(&made.path));
    let found = found.map_err(|error| format!("cannot read `{}`: {error}", made.path))?;
    let (digest, size) = found.ok_or_else(|| format!("{} is not there", made.path))?;
    Ok(Made {
        digest,
        size,
        ..made.clone()
    })
}

/// What is recorded of a batch.
fn record_of<'a>(recorder: &'a Recorder<'_>, stage: &Stage, key: &str) -> Option<&'a BatchRecord> {
    let known = recorder.state.stages.get(&stage.name);
    known.and_then(|known| known.batches.get(key)?.record.as_ref())
}

/// Who accepts, why, and when.
type By<'a> = (&'a str, &'a str, Timestamp);

/// The pin of a batch whose outputs are accepted.
fn pin(recorder: &Recorder<'_>, stage: &Stage, key: &str, outputs: &[Made], by: By<'_>) -> Pin {
    let record = record_of(recorder, stage, key);
    let earlier = record.and_then(|record| record.pin.as_deref());
    let before = record.map_or(&[][..], |record| &record.outputs);
    Pin::new(by, earlier, before, outputs)
}

/// Copies the outputs of a batch that a person modified into the store of accepted content.
fn copy(
    recorder: &Recorder<'_>,
    stage: &Stage,
    key: &str,
    outputs: &[Made],
    by: By<'_>,
) -> Result<(), OpsError> {
    let pin = pin(recorder, stage, key, outputs, by);
    for made in outputs.iter().filter(|made| pin.covers(&made.path)) {
        accepted::keep(
            recorder.ctx.disk,
            recorder.ctx.layout,
            &made.path,
            made.digest,
        )?;
    }
    Ok(())
}

/// Records what is accepted of a stage.
fn take(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    found: &StageScan,
    chosen: Vec<(String, Vec<Made>)>,
    by: By<'_>,
    wanted: &AcceptOptions,
    done: &mut Accepted,
) -> Result<(), OpsError> {
    if chosen.is_empty() {
        return Ok(());
    }
    // What it says of these outputs is about to be no longer so.
    retire::remove_checkpoint(recorder, &stage.name, stage.number)?;
    recorder.flush()?;
    let mut facts: BTreeMap<String, Facts> = BTreeMap::new();
    for (key, outputs) in chosen {
        let name = batch_name(&stage.name, &key);
        let Some(batch) = found.batches.iter().find(|batch| batch.batch.key == key) else {
            continue;
        };
        if let Ok(Decision::Will(reasons)) = &batch.decision {
            let changes: Vec<Change> = reasons
                .iter()
                .filter_map(|reason| match reason {
                    Reason::Changed(change) => Some(change.clone()),
                    _ => None,
                })
                .collect();
            if !changes.is_empty() {
                facts.insert(key.clone(), batch.own.clone());
                done.adopted.push(Adopted {
                    stage: stage.name.clone(),
                    batch: key.clone(),
                    changes,
                });
            }
        }
        if !wanted.changes.is_empty() {
            continue;
        }
        done.pinned.extend(newly(recorder, stage, &key, &outputs));
        let pin = pin(recorder, stage, &key, &outputs, by);
        let refs = outputs.iter().map(|made| made.path.to_string()).collect();
        let summary = accepted_line(&name, &pin);
        let event = Event::Accepted {
            stage: stage.name.clone(),
            batch: key,
            outputs,
            pin,
        };
        recorder.record(EventType::Review, agent(stage), event, summary, refs)?;
    }
    if facts.is_empty() {
        return Ok(recorder.flush()?);
    }
    let change = if wanted.changes.is_empty() {
        "what changed beside".to_owned()
    } else {
        wanted.changes.join(", ")
    };
    let (who, why, at) = by;
    let summary = format!("{} adopts {change} as accepted by {who}: {why}", stage.name);
    let event = Event::ChangeAccepted {
        stage: stage.name.clone(),
        change,
        shared: found.shared_id.clone(),
        facts: (*found.shared).clone(),
        batches: facts,
        pin: Pin {
            who: who.to_owned(),
            why: why.to_owned(),
            at: Some(at),
            files: Vec::new(),
        },
    };
    recorder.record(EventType::Review, agent(stage), event, summary, Vec::new())?;
    Ok(recorder.flush()?)
}

/// The journal's line: who accepted what of a batch, with the digests before and after.
fn accepted_line(name: &str, pin: &Pin) -> String {
    let of = |file: &ModifiedFile| {
        let (from, to) = (file.from.short(), file.to.short());
        format!("{} ({from}… → {to}…)", file.path)
    };
    let files: Vec<String> = pin.files.iter().map(of).collect();
    let files = match files.as_slice() {
        [] => "its outputs as they are".to_owned(),
        some => format!("{} as modified by hand", some.join(", ")),
    };
    format!("{name}: {} accepted {files}: {}", pin.who, pin.why)
}

/// The outputs that are not what is recorded.
fn newly(recorder: &Recorder<'_>, stage: &Stage, key: &str, outputs: &[Made]) -> Vec<Pinned> {
    let record = record_of(recorder, stage, key);
    let recorded = record.iter().flat_map(|record| &record.outputs);
    recorded
        .zip(outputs)
        .filter(|(old, new)| old.digest != new.digest)
        .map(|(old, new)| Pinned {
            stage: stage.name.clone(),
            batch: key.to_owned(),
            path: new.path.to_string(),
            old: old.digest,
            new: new.digest,
        })
        .collect()
}

/// Writes a stage's checkpoint from what is recorded, if the stage is done and its checkpoint is not what was recorded.
fn rewrite(
    recorder: &mut Recorder<'_>,
    stage: &Stage,
    done: &mut Accepted,
) -> Result<(), OpsError> {
    let path = layout::checkpoint(stage.number);
    let file = FilePath::workspace(path.clone());
    let there = recorder.ctx.digest(&file).map_err(OpsError::World)?;
    if there.is_some() && recorder.state.checkpoints.get(&stage.name).copied() == there {
        return Ok(());
    }
    let found = look(recorder, stage, RebuildPolicy::Needed)?;
    let is_done = found.batches.iter().all(|batch| match &batch.decision {
        Ok(Decision::Reused) => true,
        Ok(Decision::Will(reasons)) => only_failed(reasons),
        _ => false,
    });
    let status =
        finish::status(recorder, stage, &found).filter(|_| is_done && found.gone.is_empty());
    match status {
        Some(status) => {
            finish::checkpoint(recorder, stage, &found, status)?;
            done.checkpoints.push(path.to_string());
        }
        // Whatever it says is not recorded, and cannot be told before the stage is done again.
        None if there.is_some() => {
            retire::remove_checkpoint(recorder, &stage.name, stage.number)?;
        }
        None => {}
    }
    Ok(())
}
