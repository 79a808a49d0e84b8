//! Joins the classified batches of a folder into one file. If a stage builds that file, the stage runs.

use crate::ops::orchestrate::completion::{self, Completion};
use crate::ops::orchestrate::declared_file::{declared, matches};
use crate::ops::orchestrate::elements::{self, Summary};
use crate::ops::project::client_path::client_path;
use crate::ops::project::error::OpsError;
use crate::ops::project::lock::fresh_id;
use crate::ops::project::open::open;
use crate::ops::project::open_project::OpenProject;
use crate::ops::project::request::Request;
use crate::ops::project::snapshot::Snapshot;
use crate::ops::run::{self, Observer, Report, RunOptions, StageStatus, StopFlag};
use crate::ops::why::makers::Makers;
use milepost_core::base::glob::{Glob, is_pattern, may_meet};
use milepost_core::base::path::{FilePath, RelPath, Root};
use milepost_core::base::reserved::reserved;
use milepost_core::expr::select::{PathStep, Select};
use milepost_core::model::stage::Stage;
use milepost_core::plan::lineage;
use milepost_store::store::disk::{DiskFile, parent};
use milepost_store::store::files::digest_of;
use milepost_store::store::quarantine;
use milepost_store::store::read;
use serde::Serialize;
use serde_json::Value;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

/// The fields that every element must have.
const REQUIRED: [&str; 3] = ["global_id", "ifc_type", "material_primary"];

/// The pattern of the files to join.
const BATCHES: &str = "batch_*_classified.json";

/// The most elements or files that a result lists.
const NAMED: usize = 20;

/// The files to join, and the file to write.
#[derive(Debug, Clone)]
pub struct AggregateOptions {
    /// The folder, by the client's path.
    pub batch_dir: String,
    /// The file, by the client's path.
    pub output_file: String,
}

/// The outcome of joining.
#[derive(Debug)]
pub enum Aggregation {
    /// The file is complete.
    Done(Aggregated),
    /// Elements lack required fields.
    MissingFields(MissingFields),
    /// The stage that builds the batches is not complete.
    NotComplete(Box<Completion>),
    /// The folder contains files that no stage built.
    Untracked(Vec<String>),
    /// The stage that builds the file did not complete.
    Run(Box<Report>),
}

/// The joined file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Aggregated {
    /// The number of elements.
    pub(crate) element_count: u64,
    /// The path in the workspace.
    pub(crate) output_file: String,
    /// The absolute path.
    pub path: String,
    /// The elements by type.
    pub(crate) summary: Summary,
    /// The number of joined files.
    pub(crate) files: u64,
    /// Where the replaced file is, in the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quarantine: Option<String>,
    /// The stage that builds the file; `None` if no stage does.
    pub(crate) stage: Option<String>,
}

/// Elements that lack required fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct MissingFields {
    /// The first such elements.
    pub elements: Vec<IncompleteElement>,
    /// The number of such elements.
    pub count: u64,
}

/// An element that lacks required fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct IncompleteElement {
    /// The file that contains it.
    pub(crate) file: String,
    /// Its place in the file, from 0.
    pub(crate) index: u64,
    /// Its `global_id`, if it has one.
    pub(crate) global_id: Option<String>,
    /// The missing fields.
    pub(crate) missing: Vec<String>,
}

/// Joins the batches of a folder.
///
/// # Errors
/// When there is no project, its declarations are wrong, a path leaves it or is not allowed for the file, or another process runs in
/// the workspace and a stage must run.
pub fn aggregate(
    request: &Request,
    options: &AggregateOptions,
    observer: &mut dyn Observer,
    stop: &StopFlag,
) -> Result<Aggregation, OpsError> {
    let opened = open(request)?;
    let files = batches(&opened, &options.batch_dir)?;
    let present = Snapshot::read(&opened.workspace.layout)?;
    let makers = Makers::of(&present.state);
    for stage in &opened.pipeline.stages {
        if !files.iter().any(|file| makes(stage, file)) {
            continue;
        }
        let found = completion::of(request, &opened, stage)?;
        if !found.complete {
            return Ok(Aggregation::NotComplete(Box::new(found)));
        }
        let untracked = files
            .iter()
            .filter(|file| makers.get(file.as_str()).is_none());
        let untracked: Vec<String> = untracked.take(NAMED).map(ToString::to_string).collect();
        if !untracked.is_empty() {
            return Ok(Aggregation::Untracked(untracked));
        }
    }
    let file = client_path(&opened, &options.output_file)?;
    let Some(stage) = maker(&opened, &makers, &files, &file)? else {
        return write(&opened, &files, &file.path);
    };
    let options = RunOptions {
        targets: vec![stage.clone()],
        ..RunOptions::default()
    };
    let report = run::run(request, &options, observer, stop)?;
    let complete = |stage: &run::StageReport| stage.status == StageStatus::Complete;
    if report.interrupted || !report.stages.iter().all(complete) {
        return Ok(Aggregation::Run(Box::new(report)));
    }
    let place = opened.workspace.layout.at(&file.path);
    let made = read::open(&place).map_err(OpsError::unreadable(&file))?;
    let (element_count, summary) = elements::elements(made).unwrap_or_default();
    Ok(Aggregation::Done(Aggregated {
        element_count,
        output_file: file.to_string(),
        path: place.display().to_string(),
        summary,
        files: files.len() as u64,
        quarantine: None,
        stage: Some(stage),
    }))
}

/// Returns the classified batches of a folder, in natural order.
fn batches(opened: &OpenProject, folder: &str) -> Result<Vec<RelPath>, OpsError> {
    let place = client_path(opened, folder)?;
    let usage = |why: String| OpsError::Usage(format!("`{folder}` {why}"));
    if place.root != Root::Workspace || is_pattern(place.path.as_str()) {
        return Err(usage("is not a folder of the workspace".to_owned()));
    }
    if !opened.workspace.layout.at(&place.path).is_dir() {
        return Err(usage("does not exist or is not a folder".to_owned()));
    }
    let glob = Glob::parse(&format!("{}/{BATCHES}", place.path))
        .map_err(|error| OpsError::Usage(error.to_string()))?;
    let files = opened.files.list(&glob, Root::Workspace);
    let found = files.map_err(|error| OpsError::Outside(error.to_string()))?;
    if !found.refused.is_empty() {
        let reasons: Vec<&str> = found.refused.iter().map(|file| &*file.why).collect();
        return Err(OpsError::Outside(reasons.join("; ")));
    }
    let files = found.files;
    if files.is_empty() {
        return Err(usage(format!("contains no file `{BATCHES}`")));
    }
    Ok(files)
}

fn makes(stage: &Stage, file: &RelPath) -> bool {
    let mut outputs = stage.outputs.iter().map(|output| &output.path);
    outputs.any(|path| matches(path, file))
}

/// Returns the stage that builds the file; `None` if no stage does and the file may be written.
fn maker(
    opened: &OpenProject,
    makers: &Makers<'_>,
    files: &[RelPath],
    file: &FilePath,
) -> Result<Option<String>, OpsError> {
    let refused = |why: String| Err(OpsError::Outside(format!("`{file}` {why}")));
    if file.root != Root::Workspace {
        return refused("is not a file of the workspace".to_owned());
    }
    if let Some(what) = reserved(file.root, &file.path) {
        return refused(format!("cannot be written: it is {what}"));
    }
    let path = &file.path;
    let stages = &opened.pipeline.stages;
    if let Some(found) = declared(opened, path)?.filter(|found| !found.awaited) {
        let stage = found.stage;
        let reads = lineage::reads(stage);
        let joins = files
            .iter()
            .all(|file| reads.iter().any(|read| matches(read, file)));
        if !joins {
            return refused(format!(
                "is an output of stage `{}`, which does not read these batches",
                stage.name
            ));
        }
        return Ok(Some(stage.name.clone()));
    }
    if let Some((stage, _)) = makers.get(path.as_str()) {
        return refused(format!("is a recorded output of stage `{stage}`"));
    }
    for stage in stages {
        let marker = stage.marker.iter().any(|marker| matches(marker, path));
        if marker || stage.progress == *path {
            return refused(format!("is written by stage `{}`", stage.name));
        }
        let read = lineage::reads(stage)
            .into_iter()
            .any(|read| read.root == Root::Workspace && may_meet(&read.pattern(), path.as_str()));
        if read {
            return refused(format!(
                "is read by stage `{}`: inputs are not overwritten",
                stage.name
            ));
        }
    }
    Ok(None)
}

/// Writes a temporary file, and renames it if every element has its fields.
fn write(opened: &OpenProject, files: &[RelPath], path: &RelPath) -> Result<Aggregation, OpsError> {
    let (disk, layout) = (&opened.disk, &opened.workspace.layout);
    let place = layout.at(path);
    disk.create_dir_all(parent(&place))?;
    let beside = place.with_file_name(format!(".{}.tmp", path.file_name()));
    let mut out = BufWriter::new(disk.create(&beside)?);
    let joined = join(opened, files, path, &mut out);
    let written = joined.and_then(|joined| {
        let file = out.into_inner();
        let file = file.map_err(|error| cannot_write(path, &error.into_error()))?;
        file.sync()?;
        Ok(joined)
    });
    let (count, summary, lacking) = match written {
        Ok(done) => done,
        Err(error) => {
            disk.remove_file(&beside)?;
            return Err(error);
        }
    };
    if lacking.count > 0 {
        disk.remove_file(&beside)?;
        return Ok(Aggregation::MissingFields(lacking));
    }
    let quarantine = keep_old(opened, path, &beside)?;
    disk.rename(&beside, &place)?;
    disk.sync_dir(parent(&place))?;
    Ok(Aggregation::Done(Aggregated {
        quarantine,
        element_count: count,
        output_file: path.to_string(),
        path: place.display().to_string(),
        summary,
        files: files.len() as u64,
        stage: None,
    }))
}

/// Moves the file to quarantine if its content differs from the new one, and returns where it is.
fn keep_old(opened: &OpenProject, path: &RelPath, new: &Path) -> Result<Option<String>, OpsError> {
    let (disk, layout) = (&opened.disk, &opened.workspace.layout);
    let place = layout.at(path);
    let digest = |path: &Path| digest_of(path).ok().flatten().map(|(digest, _)| digest);
    if place.symlink_metadata().is_err() || digest(&place) == digest(new) {
        return Ok(None);
    }
    let id = fresh_id(opened.clock.now())?;
    let folder = quarantine::folder(&id, 1, "replaced");
    let why = format!("{path}: replaced by an aggregation of batches\n");
    quarantine::write_reason(disk, layout, &folder, &why)?;
    let aside = folder.with(path);
    quarantine::keep(disk, layout, path, &aside)?;
    Ok(Some(aside.to_string()))
}

/// Copies all elements, and counts those that lack a field.
fn join(
    opened: &OpenProject,
    files: &[RelPath],
    place: &RelPath,
    out: &mut BufWriter<DiskFile>,
) -> Result<(u64, Summary, MissingFields), OpsError> {
    let mut summary = Summary::default();
    let mut lacking = MissingFields::default();
    let mut count = 0_u64;
    let begun = out.write_all(b"{\"elements\":[");
    begun.map_err(|error| cannot_write(place, &error))?;
    for path in files {
        let unreadable = |error: &dyn std::fmt::Display| {
            OpsError::Usage(format!("`{path}` is not a list of elements: {error}"))
        };
        let file =
            read::open(opened.workspace.layout.at(path)).map_err(OpsError::unreadable(&path))?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        if elements::first(&mut reader) != Some(b'[') {
            return Err(unreadable(&"expected a JSON array"));
        }
        let mut index = 0;
        let each = Select::of([PathStep::Each]);
        let read = each.read_text::<std::io::Error>(reader, &mut |element, _| {
            summary.count(element);
            lacking.look(path, index, element);
            index += 1;
            let comma = if count > 0 { ",\n" } else { "\n" };
            count += 1;
            out.write_all(comma.as_bytes())?;
            out.write_all(element.as_bytes())
        });
        read.map_err(|error| unreadable(&error))?;
    }
    let ended = write!(out, "\n],\"count\":{count}}}\n");
    ended.map_err(|error| cannot_write(place, &error))?;
    Ok((count, summary, lacking))
}

fn cannot_write(path: &RelPath, error: &std::io::Error) -> OpsError {
    OpsError::World(format!("cannot write `{path}`: {error}"))
}

impl MissingFields {
    /// Counts an element if it lacks a field.
    fn look(&mut self, file: &RelPath, index: u64, element: &str) {
        let element: Value = serde_json::from_str(element).unwrap_or_default();
        let missing: Vec<String> = REQUIRED
            .into_iter()
            .filter(|field| element.get(field).is_none())
            .map(str::to_owned)
            .collect();
        if missing.is_empty() {
            return;
        }
        self.count += 1;
        if self.elements.len() < NAMED {
            let id = element.get("global_id").and_then(Value::as_str);
            self.elements.push(IncompleteElement {
                file: file.to_string(),
                index,
                global_id: id.map(str::to_owned),
                missing,
            });
        }
    }
}
