//! One try at one batch, on a thread of its own: scope, steps, judgement; what was made lies hashed in scratch.

use super::context::Context;
use super::outs::ScratchOuts;
use super::scopes;
use super::survey::{MARKER, Surveyed};
use super::validate::{self, Schemas};
use crate::base::digest::Digest;
use crate::base::path::{FilePath, RelPath, Root};
use crate::base::source::Source;
use crate::expr::scope::{Format, Scope};
use crate::model::fingerprint::FactKind;
use crate::model::outcome::{Outcome, OutcomeKind};
use crate::model::record::Made;
use crate::model::stage::Stage;
use crate::plan::world::World;
use crate::steps::agent::Answerers;
use crate::steps::attempt::attempt;
use crate::steps::command::Stop;
use crate::steps::work::{Limits, Watcher, Work};
use crate::store::clock::Stopwatch;
use crate::store::scratch::Scratch;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// What was made of a batch.
#[derive(Debug)]
pub struct Produced {
    /// The files, with where each lies in the workspace until it is published. The marker is last.
    pub files: Vec<(Made, RelPath)>,
    /// Elements that came out.
    pub elements: Option<u64>,
    /// What the stage's `summary` gave, or what the step had to say.
    pub summary: Option<Value>,
    /// What the stage's `verdict` gave.
    pub verdict: Option<bool>,
    /// Warnings for people.
    pub warnings: Vec<String>,
    /// Set when these are a placeholder's files.
    pub placeholder: Option<Outcome>,
    /// An input that changed meanwhile.
    pub stale: Option<String>,
}

/// What a worker needs of the stage.
pub struct Bench<'a> {
    /// What the run needs.
    pub ctx: Context<'a>,
    /// The stage.
    pub stage: &'a Stage,
    /// Its schemas.
    pub schemas: &'a Schemas,
    /// The agents that the stage asks.
    pub agents: &'a Answerers,
    /// The environment of programs.
    pub environment: &'a BTreeMap<String, String>,
    /// The wish to stop.
    pub stop: &'a dyn Stop,
    /// Limits of an attempt; `left` is the time of the whole stage.
    pub limits: Limits,
    /// Since the stage began.
    pub begun: Stopwatch,
    /// The run's id.
    pub run_id: &'a str,
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

/// Does a batch. `previous` gives the files that it made last time.
pub fn run(
    bench: &Bench<'_>,
    found: &Surveyed,
    serial: u64,
    watcher: &dyn Watcher,
    previous: &BTreeMap<String, RelPath>,
) -> Try {
    let name = batch_name(&bench.stage.name, &found.batch.key);
    let scratch = Scratch::create(
        bench.ctx.disk,
        bench.ctx.layout,
        bench.run_id,
        &bench.stage.name,
        &found.batch.key,
        serial as u32,
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
    let mut log = LogFile::new(bench, &name, serial);
    let outs = ScratchOuts::new(&scratch, bench.stage, &found.targets);
    let result = within(
        bench, found, &name, &scratch, &outs, &mut log, watcher, previous,
    );
    let result = match result {
        Err(outcome) if outcome.kind != OutcomeKind::Cancelled => {
            placeholder(bench, found, &outs, &scratch, bench.stage.named(outcome))
        }
        result => result,
    };
    Try {
        result,
        log: log.kept(),
        scratch: Some(scratch),
    }
}

/// What names an attempt in the environment of its programs, so that a later run finds those that outlived this one.
pub fn token(run: &str, stage: &str, batch: &str) -> String {
    format!("{run}/{stage}/{batch}")
}

/// `classify/batch_1`, or `parse` for the only batch of a stage.
pub fn batch_name(stage: &str, batch: &str) -> String {
    if batch.is_empty() {
        stage.to_owned()
    } else {
        format!("{stage}/{batch}")
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one attempt, used once"
)]
fn within(
    bench: &Bench<'_>,
    found: &Surveyed,
    name: &str,
    scratch: &Scratch,
    outs: &ScratchOuts<'_>,
    log: &mut LogFile<'_>,
    watcher: &dyn Watcher,
    previous: &BTreeMap<String, RelPath>,
) -> Result<Produced, Outcome> {
    let scope = scope(bench, found)?;
    let token = token(bench.run_id, &bench.stage.name, &found.batch.key);
    let files = bench.ctx.files;
    let earlier = |output: &str| -> Option<Arc<dyn Source>> {
        files
            .source(&FilePath::workspace(previous.get(output)?.clone()))
            .ok()
    };
    let left = bench
        .limits
        .left
        .map(|whole| whole.saturating_sub(bench.begun.elapsed()));
    if left.is_some_and(|left| left.is_zero()) {
        let message = format!("the time of stage `{}` is over", bench.stage.name);
        return Err(Outcome::new(OutcomeKind::Timeout, message));
    }
    let mut work = Work {
        stage: bench.stage,
        name,
        scope,
        base: found.base.clone(),
        outs,
        log,
        stop: bench.stop,
        watcher,
        agents: bench.agents,
        environment: bench.environment,
        declared_env: &bench.ctx.settings.env,
        folder: scratch.path(),
        project: files.folder(Root::Project),
        token: &token,
        previous: &earlier,
        limits: Limits {
            left,
            ..bench.limits
        },
    };
    let said = attempt(&mut work)?;
    let mut scope = work.scope;
    let (mut made, items) = collect(bench, outs, scratch, &mut scope)?;
    let counted = validate::conservation(bench.stage, &scope)?;
    validate::checks(bench.stage, &scope)?;
    let elements = counted.or(items);
    let summary = match &bench.stage.summary {
        Some(program) => Some(validate::value(&scope, program)?),
        None => said.summary,
    };
    let verdict = match &bench.stage.verdict {
        Some(program) => Some(validate::value(&scope, program)? == Value::Bool(true)),
        None => None,
    };
    add_marker(bench, found, scratch, &mut made)?;
    Ok(Produced {
        files: made,
        elements,
        summary,
        verdict,
        warnings: said.warnings,
        placeholder: None,
        stale: stale(bench, found)?,
    })
}

/// The names that the steps see. Inputs with a schema are judged first.
fn scope(bench: &Bench<'_>, found: &Surveyed) -> Result<Scope, Outcome> {
    for resolved in &found.inputs {
        let Some(declared) = bench.stage.input(&resolved.name) else {
            continue;
        };
        let Some(schema) = &declared.schema else {
            continue;
        };
        for (source, format) in scopes::files(&bench.ctx, declared, &resolved.files)? {
            judge_input(bench, schema, &*source, format)?;
        }
    }
    scopes::of_inputs(&bench.ctx, bench.stage, found)
}

/// The schema of a table is that of one row, as the schema of NDJSON is that of one line.
fn judge_input(
    bench: &Bench<'_>,
    schema: &crate::model::pipeline::Asset,
    source: &dyn Source,
    format: Format,
) -> Result<(), Outcome> {
    if matches!(format, Format::Json) {
        return validate::file(bench.schemas, schema, source, None).map(|_| ());
    }
    let compiled = bench.schemas.get(schema)?;
    let content = crate::expr::scope::parse(&source.name(), source, format)
        .map_err(|error| Outcome::new(OutcomeKind::Input, error.to_string()))?;
    let rows = match content {
        Value::Array(rows) if matches!(format, Format::Csv | Format::Ndjson) => rows,
        other => vec![other],
    };
    // Of a table people want the line and the column, and every row that is wrong at once.
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        for violation in compiled.violations(row, &format!("/{number}"), 20) {
            let at = match violation.pointer.split('/').nth(2) {
                Some(column) if format == Format::Csv => {
                    format!("line {}, column `{column}`", number + 2)
                }
                _ => violation.pointer,
            };
            wrong.push(format!("{at}: {}", violation.message));
        }
        if wrong.len() >= 20 {
            break;
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let first = wrong.remove(0);
    let message = format!(
        "`{}` does not match {}: {first}",
        source.name(),
        schema.path
    );
    Err(Outcome::new(OutcomeKind::Schema, message).with_details(wrong))
}

/// The outputs, hashed and judged by their schemas, and in the scope.
fn collect(
    bench: &Bench<'_>,
    outs: &ScratchOuts<'_>,
    scratch: &Scratch,
    scope: &mut Scope,
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
        let skipped = bench
            .stage
            .steps
            .iter()
            .any(|step| step.out == output.name && step.when.is_some());
        if files.is_empty() && !output.is_many() && !skipped {
            let target = outs
                .names()
                .find(|name| *name == output.name)
                .unwrap_or_default();
            return Err(failed(
                target,
                &format!("nothing wrote `{}`", output.path.shown()),
            ));
        }
        for file in files {
            let place = scratch.path().join(file.as_str());
            let shown = FilePath::workspace(file.clone());
            if let Some(schema) = &output.schema {
                let source = Whole {
                    shown: shown.to_string(),
                    place,
                };
                let counted =
                    validate::file(bench.schemas, schema, &source, output.stream.as_ref())?;
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

/// Digest and size of a file in scratch.
fn content(scratch: &Scratch, file: &RelPath) -> Result<(Digest, u64), Outcome> {
    let failed =
        |why: &dyn std::fmt::Display| Outcome::new(OutcomeKind::Output, format!("`{file}`: {why}"));
    match scratch.content(file) {
        Ok(Some(found)) => Ok((found.digest, found.size)),
        Ok(None) => Err(failed(&"it is not there")),
        Err(error) => Err(failed(&error)),
    }
}

/// A file that is judged.
struct Whole {
    shown: String,
    place: PathBuf,
}

impl Source for Whole {
    fn name(&self) -> String {
        self.shown.clone()
    }

    fn path(&self) -> &std::path::Path {
        &self.place
    }

    fn open(&self) -> io::Result<Box<dyn io::Read + Send>> {
        Ok(Box::new(std::fs::File::open(&self.place)?))
    }
}

/// The marker comes after the outputs: whoever sees it finds them whole.
fn add_marker(
    bench: &Bench<'_>,
    found: &Surveyed,
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
fn stale(bench: &Bench<'_>, found: &Surveyed) -> Result<Option<String>, Outcome> {
    for (key, value) in &found.own.0 {
        if key.kind != FactKind::Input || value == "absent" {
            continue;
        }
        let file: FilePath = key
            .name
            .parse()
            .map_err(|error| Outcome::new(OutcomeKind::Path, format!("{error}")))?;
        let digest = bench
            .ctx
            .digest(&file)
            .map_err(|why| Outcome::new(OutcomeKind::Input, why))?;
        if digest.is_none_or(|digest| digest.to_string() != *value) {
            return Ok(Some(key.name.clone()));
        }
    }
    Ok(None)
}

/// The declared record for a batch that failed, in the place of its first output.
fn placeholder(
    bench: &Bench<'_>,
    found: &Surveyed,
    outs: &ScratchOuts<'_>,
    scratch: &Scratch,
    outcome: Outcome,
) -> Result<Produced, Outcome> {
    let (Some(program), Some(output)) =
        (&bench.stage.policy.placeholder, bench.stage.outputs.first())
    else {
        return Err(outcome);
    };
    let failed = |error: &dyn std::fmt::Display| {
        let mut outcome = outcome.clone();
        outcome
            .details
            .push(format!("its placeholder failed too: {error}"));
        outcome
    };
    let input = json!({ "outcome": outcome.kind.name(), "error_code": outcome.code, "message": outcome.message });
    let value = program
        .one(input, &found.base)
        .map_err(|error| failed(&error))?;
    let path = found
        .targets
        .get(&output.name)
        .ok_or_else(|| failed(&"its output has no path"))?;
    let mut sink = scratch.sink(path).map_err(|error| failed(&error))?;
    serde_json::to_writer_pretty(&mut sink, &value).map_err(|error| failed(&error))?;
    sink.write_all(b"\n").map_err(|error| failed(&error))?;
    sink.finish().map_err(|error| failed(&error))?;
    if let Some(schema) = &output.schema {
        let source = Whole {
            shown: path.to_string(),
            place: scratch.path().join(path.as_str()),
        };
        validate::file(bench.schemas, schema, &source, None)
            .map_err(|wrong| failed(&wrong.message))?;
    }
    let _ = outs;
    let (digest, size) = content(scratch, path)?;
    let mut files = vec![(
        Made {
            name: output.name.clone(),
            path: path.clone(),
            digest,
            size,
        },
        scratch.inside(path),
    )];
    add_marker(bench, found, scratch, &mut files)?;
    Ok(Produced {
        files,
        elements: None,
        summary: None,
        verdict: None,
        warnings: Vec::new(),
        placeholder: Some(outcome),
        stale: None,
    })
}

/// What programs print, in a file that is made when there is something to keep.
struct LogFile<'a> {
    bench: &'a Bench<'a>,
    path: RelPath,
    file: Option<crate::store::disk::DiskFile>,
}

impl<'a> LogFile<'a> {
    fn new(bench: &'a Bench<'_>, name: &str, serial: u64) -> LogFile<'a> {
        let path = crate::store::layout::log(bench.run_id, name, serial);
        LogFile {
            bench,
            path,
            file: None,
        }
    }

    fn kept(self) -> Option<String> {
        self.file.map(|_| self.path.to_string())
    }
}

impl Write for LogFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() && !bytes.is_empty() {
            let path = self.bench.ctx.layout.at(&self.path);
            let disk = self.bench.ctx.disk;
            disk.create_dir_all(crate::store::disk::parent(&path))
                .map_err(io::Error::other)?;
            self.file = Some(disk.create(&path).map_err(io::Error::other)?);
        }
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
