//! One try at one batch, on a thread of its own: scope, steps, judgement; what was made lies hashed in scratch.

use super::context::Context;
use super::outs::{ScratchFile, ScratchOuts};
use super::placeholder::placeholder;
use super::printed::Printed;
use super::rounds::KeptRounds;
use super::scopes;
use super::survey::MARKER;
use super::validate;
use crate::steps::agent::Answerers;
use crate::steps::alarm::{Alarm, Rang};
use crate::steps::attempt::{attempt, stage_is_over};
use crate::steps::command::Stop;
use crate::steps::work::{Calls, Limits, Watcher, Work};
use milepost_agents::http::SharedHttp;
use milepost_core::base::digest::Digest;
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::source::Source;
use milepost_core::expr::scope::Scope;
use milepost_core::model::fingerprint::FactKind;
use milepost_core::model::outcome::{Outcome, OutcomeKind};
use milepost_core::model::record::{AnswersOf, FailedKeys, Made, Opinion};
use milepost_core::model::stage::Stage;
use milepost_core::model::step::Outputs;
use milepost_core::plan::expand::batch_name;
use milepost_core::plan::scan::BatchScan;
use milepost_core::plan::world::World;
use milepost_store::check::schemas::Schemas;
use milepost_store::store::clock::Stopwatch;
use milepost_store::store::scratch::{self, Scratch, Spares};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What was made of a batch.
#[derive(Debug)]
pub struct Produced {
    /// The files, with where each lies in the workspace until it is published. The marker is last.
    pub files: Vec<(Made, RelPath)>,
    /// Elements that came out.
    pub elements: Option<u64>,
    /// What the stage says of it.
    pub opinion: Opinion,
    /// Warnings for people.
    pub warnings: Vec<String>,
    /// Set when these are a placeholder's files.
    pub placeholder: Option<Outcome>,
    /// Elements that failed.
    pub failed: Vec<FailedKeys>,
    /// The calls of agents whose answers it was made from.
    pub answers: Vec<AnswersOf>,
    /// An input that changed meanwhile.
    pub stale: Option<String>,
}

/// What a worker needs of the stage.
pub struct Bench<'a> {
    /// What the run needs.
    pub ctx: Context<'a>,
    /// The stage.
    pub stage: &'a Stage,
    /// The id of the facts that its batches share, without their details.
    pub shared: &'a str,
    /// Its schemas.
    pub schemas: &'a Schemas,
    /// The agents that the stage asks.
    pub agents: &'a Answerers,
    /// What stands behind those that cost something.
    pub calls: &'a dyn Calls,
    /// Whether everything is asked once more.
    pub fresh: bool,
    /// The HTTP client of the run.
    pub http: &'a SharedHttp,
    /// The environment of programs.
    pub environment: &'a BTreeMap<String, String>,
    /// The wish to stop.
    pub stop: &'a dyn Stop,
    /// The same wish, for work that looks now and then.
    pub wished: Arc<AtomicBool>,
    /// Limits of an attempt.
    pub limits: Limits,
    /// Since the stage's batches run.
    pub begun: Stopwatch,
    /// How long they may, in all.
    pub time: Option<Duration>,
    /// The run's id.
    pub run_id: &'a str,
    /// The same as a list: with `--fresh`, only answers of these runs count.
    pub this_run: [String; 1],
    /// Folders of attempts that are over.
    pub spares: Spares,
    /// How each batch fails before its first step: a service that the stage needs is not there.
    pub lacks: Option<Outcome>,
}

/// One try at one batch.
pub struct Try {
    /// What was made, or how it failed.
    pub result: Result<Produced, Outcome>,
    /// The scratch folder: to be removed after publishing, or to go to quarantine.
    pub scratch: Option<Scratch>,
    /// Where what programs printed is kept, in the workspace.
    pub log: Option<String>,
}

impl Bench<'_> {
    /// What is left of the stage's time; none: it has no limit.
    pub fn left(&self) -> Option<Duration> {
        let time = self.time?;
        Some(time.saturating_sub(self.begun.elapsed()))
    }
}

/// Does a batch. `previous` gives the files that it made last time.
pub fn run(
    bench: &Bench<'_>,
    found: &BatchScan,
    serial: u64,
    watcher: &dyn Watcher,
    previous: &BTreeMap<String, RelPath>,
) -> Try {
    let name = batch_name(&bench.stage.name, &found.batch.key);
    let scratch = Scratch::create(
        bench.ctx.disk,
        bench.ctx.files,
        bench.ctx.layout,
        &scratch::Name {
            run: bench.run_id,
            stage: &bench.stage.name,
            batch: &found.batch.key,
            number: serial,
        },
        (wants_folder(bench.stage) || bench.agents.start_programs()).then_some(&bench.spares),
        &mut found.targets.values(),
    );
    let scratch = match scratch {
        Ok(scratch) => scratch,
        Err(error) => {
            return Try {
                result: Err(Outcome::new(OutcomeKind::Output, error.to_string())),
                scratch: None,
                log: None,
            };
        }
    };
    let alarm = Alarm::new(Arc::clone(&bench.wished));
    alarm.set(bench.left());
    let mut log = Printed::new(bench, &name, serial);
    let outs = ScratchOuts::new(&scratch, bench.stage, &found.targets, &alarm);
    let rounds = KeptRounds::new(bench, found, &scratch);
    let result = within(
        bench, found, &name, &scratch, &outs, &rounds, &mut log, watcher, previous, &alarm,
    );
    let result = result.or_else(|outcome| rounds.failed().and(Err(outcome)));
    let result = result.map_err(|outcome| match alarm.rang() {
        Some(Rang::Stop) => Outcome::new(OutcomeKind::Cancelled, "the run was stopped"),
        // Reading and writing end with it, and say so in their own words.
        Some(Rang::Time) if outcome.kind != OutcomeKind::Timeout => {
            stage_is_over(bench.stage).with_details(vec![outcome.to_string()])
        }
        _ => outcome.without_keys(bench.ctx.redactor),
    });
    let result = match result {
        // What was not tried has not failed: it is held.
        Err(outcome)
            if !matches!(
                outcome.kind,
                OutcomeKind::Cancelled | OutcomeKind::Budget | OutcomeKind::Awaited
            ) =>
        {
            placeholder(bench, found, &scratch, bench.stage.named(outcome))
        }
        result => result,
    };
    Try {
        result,
        log: log.kept(),
        scratch: Some(scratch),
    }
}

/// Whether a step writes files by their paths: programs do, and workbooks are put together from parts.
fn wants_folder(stage: &Stage) -> bool {
    let mut steps = stage.steps.iter();
    steps.any(|step| step.kind.info().writes_by_path)
}

/// What names an attempt in the environment of its programs, so that a later run finds those that outlived this one.
pub fn token(run: &str, stage: &str, batch: &str) -> String {
    format!("{run}/{stage}/{batch}")
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one attempt, used once"
)]
fn within(
    bench: &Bench<'_>,
    found: &BatchScan,
    name: &str,
    scratch: &Scratch,
    outs: &ScratchOuts<'_>,
    rounds: &KeptRounds<'_>,
    log: &mut Printed<'_>,
    watcher: &dyn Watcher,
    previous: &BTreeMap<String, RelPath>,
    alarm: &Arc<Alarm>,
) -> Result<Produced, Outcome> {
    if let Err(why) = &found.decision {
        return Err(why.outcome());
    }
    if let Some(lacks) = &bench.lacks {
        return Err(lacks.clone());
    }
    validate::inputs(&bench.ctx, bench.stage, found, bench.schemas, alarm)?;
    let moment = bench.ctx.moment();
    let scope = scopes::of_inputs(&bench.ctx, bench.stage, found, moment, alarm)?;
    validate::checks(&bench.stage.requires, &scope).map_err(Outcome::for_good)?;
    let token = token(bench.run_id, &bench.stage.name, &found.batch.key);
    let files = bench.ctx.files;
    let earlier = |output: &str| -> Option<Arc<dyn Source>> {
        let source = files
            .source(&FilePath::workspace(previous.get(output)?.clone()))
            .ok()?;
        Some(alarm.source(source))
    };
    let mut work = Work {
        stage: bench.stage,
        name,
        scope,
        base: found.base(bench.ctx.pipeline, bench.ctx.settings, moment),
        moment,
        outs,
        rounds,
        log,
        stop: bench.stop,
        alarm,
        left: &|| bench.left(),
        watcher,
        schemas: bench.schemas,
        agents: bench.agents,
        calls: bench.calls,
        asked_since: if bench.fresh {
            Some(&bench.this_run)
        } else {
            found.asked_since.as_deref()
        },
        http: bench.http,
        environment: bench.environment,
        declared_env: &bench.ctx.settings.env,
        folder: scratch.path(),
        project: files.folder(Root::Project),
        token: &token,
        previous: &earlier,
        find: &|file: &FilePath| scopes::awaited(&bench.ctx, file, alarm),
        limits: bench.limits,
        is_rehearsed: false,
    };
    let said = attempt(&mut work)?;
    let mut scope = work.scope;
    let (mut made, items) = collect(bench, outs, scratch, &mut scope, alarm)?;
    let failed = said.failed.iter().flat_map(|failed| failed.keys.clone());
    let counted = validate::conservation(bench.stage, &scope, &failed.collect())?;
    validate::checks(&bench.stage.checks, &scope)?;
    let elements = counted.or(items);
    let opinion = validate::opinion(bench.stage, &scope, said.summary)?;
    add_marker(bench, found, scratch, &mut made)?;
    let mut warnings = said.warnings;
    for warning in opinion.warnings() {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    Ok(Produced {
        files: made,
        elements,
        opinion,
        warnings,
        placeholder: None,
        failed: said.failed,
        answers: said.answers,
        stale: stale(bench, found)?,
    })
}

/// The outputs, hashed and judged by their schemas, and in the scope.
fn collect(
    bench: &Bench<'_>,
    outs: &ScratchOuts<'_>,
    scratch: &Scratch,
    scope: &mut Scope,
    alarm: &Arc<Alarm>,
) -> Result<(Vec<(Made, RelPath)>, Option<u64>), Outcome> {
    let failed = |name: &str, error: &dyn std::fmt::Display| {
        Outcome::new(OutcomeKind::Output, format!("output `{name}`: {error}"))
    };
    let mut made = Vec::new();
    let mut items = None;
    for output in &bench.stage.outputs {
        let files = outs
            .files(&output.name)
            .map_err(|error| failed(&output.name, &error))?;
        let skipped = may_be_skipped(bench.stage, &output.name);
        if files.is_empty() && !output.is_many() && !skipped {
            let place = outs
                .pattern(&output.name)
                .map_or_else(|_| output.path.shown(), |path| path.to_string());
            return Err(failed(&output.name, &format!("no step wrote `{place}`")));
        }
        for file in files {
            if output.schema.is_some() || output.columns.is_some() {
                let source = alarm.source(Arc::new(ScratchFile::new(scratch, &file)));
                let counted = validate::output(bench.schemas, output, &*source)?;
                if output.stream.is_some() {
                    items = Some(items.unwrap_or(0) + counted);
                }
            }
            let (digest, size) = content(scratch, &file)?;
            let from = scratch.inside(&file);
            made.push((
                Made {
                    name: output.name.clone(),
                    path: file,
                    digest,
                    size,
                },
                from,
            ));
        }
        if scope.source(&output.name).is_none() && !scope.is_list(&output.name) {
            scope.absent(&output.name);
        }
    }
    Ok((made, items))
}

/// Whether a step with `when` makes an output. A program makes those too that no other step is said to make.
fn may_be_skipped(stage: &Stage, output: &str) -> bool {
    let is_named = stage.steps.iter().any(|step| step.out == output);
    stage.steps.iter().any(|step| {
        let is_program = step.kind.info().outputs == Outputs::Any;
        step.when.is_some() && (step.out == output || is_program && !is_named)
    })
}

/// Digest and size of a file in scratch.
///
/// # Errors
/// When it is not there, or cannot be read.
pub fn content(scratch: &Scratch, file: &RelPath) -> Result<(Digest, u64), Outcome> {
    let failed =
        |why: &dyn std::fmt::Display| Outcome::new(OutcomeKind::Output, format!("`{file}`: {why}"));
    match scratch.content(file) {
        Ok(Some(found)) => Ok((found.digest, found.size)),
        Ok(None) => Err(failed(&"it is not there")),
        Err(error) => Err(failed(&error)),
    }
}

/// The marker comes after the outputs: whoever sees it finds them whole.
///
/// # Errors
/// When it cannot be written.
pub fn add_marker(
    bench: &Bench<'_>,
    found: &BatchScan,
    scratch: &Scratch,
    made: &mut Vec<(Made, RelPath)>,
) -> Result<(), Outcome> {
    let Some(path) = bench
        .stage
        .marker
        .as_ref()
        .and_then(|_| found.targets.get(MARKER))
    else {
        return Ok(());
    };
    let failed = |error: &dyn std::fmt::Display| {
        Outcome::new(OutcomeKind::Output, format!("marker `{path}`: {error}"))
    };
    let sink = scratch.sink(path).map_err(|error| failed(&error))?;
    sink.finish().map_err(|error| failed(&error))?;
    let (digest, size) = content(scratch, path)?;
    made.push((
        Made {
            name: MARKER.to_owned(),
            path: path.clone(),
            digest,
            size,
        },
        scratch.inside(path),
    ));
    Ok(())
}

/// An input that is not what it was when the batch was decided.
///
/// # Errors
/// When it cannot be read.
pub fn stale(bench: &Bench<'_>, found: &BatchScan) -> Result<Option<String>, Outcome> {
    for (key, value) in found.own.iter() {
        if key.kind != FactKind::Input || value.is("absent") {
            continue;
        }
        let file: FilePath = key
            .name
            .parse()
            .map_err(|error| Outcome::new(OutcomeKind::Path, format!("{error}")))?;
        let is_same = |digest: Option<Digest>| digest.is_some() && digest == value.digest();
        if is_same(bench.ctx.glimpse(&file)) {
            continue;
        }
        let digest = bench
            .ctx
            .digest(&file)
            .map_err(|why| Outcome::new(OutcomeKind::Input, why))?;
        if !is_same(digest) {
            return Ok(Some(key.name.to_string()));
        }
    }
    Ok(None)
}
