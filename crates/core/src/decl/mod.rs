//! Declarations: TOML text to `model::pipeline::Pipeline`, and everything that is wrong with it, with its place.

mod agent;
mod columns;
mod expression;
mod flow;
mod hints;
mod keys;
mod made;
mod manifest;
mod misnamed;
mod names;
mod outside;
mod params;
mod parts;
mod picked;
mod policy;
mod problem;
mod project;
mod reader;
mod refers;
mod refine;
mod relative;
mod render;
mod schema;
mod services;
mod shape;
mod stage;
mod step;
mod syntax;
mod tree;
mod types;
mod whole;

pub use problem::{Mark, Problem, Problems, Warning};
pub use schema::{project_schema, stage_schema};

use crate::base::glob::is_pattern;
use crate::base::natural::natural;
use crate::base::path::RelPath;
use crate::model::pipeline::{Asset, Pipeline};
use problem::{File, Report};
use reader::Reader;
use whole::Draft;

/// The file that makes a folder a project.
pub const PROJECT_FILE: &str = "milepost.toml";

/// The folder of the stages' files.
pub const STAGES: &str = "stages";

/// The project's own prices of models, if it has any.
pub(crate) const PRICES: &str = "prices.toml";

/// What the project's folder holds.
pub trait ProjectFiles {
    /// What a file holds; none when it is not there.
    fn read(&self, path: &RelPath) -> Option<Result<Vec<u8>, String>>;
    /// Names of the files in a folder; of the project's own for an empty text. None there: an empty list.
    fn list(&self, folder: &str) -> Vec<String>;
}

/// Reads the project's declarations.
///
/// # Errors
/// Everything that is wrong, over all files at once.
pub fn load(files: &dyn ProjectFiles) -> Result<(Pipeline, Vec<Warning>), Problems> {
    let mut reader = Reader::new(files);
    let project_file = open(&mut reader, PROJECT_FILE);
    let project = match &project_file {
        Some(file) => project::read(&mut reader, file),
        None => return Err(reader.report.finish().err().unwrap_or(Problems(Vec::new()))),
    };
    let mut names = files.list(STAGES);
    names.sort_by(|a, b| natural(a, b));
    let has_stages = names.iter().any(|name| stage_name(name).is_some());
    let mut drafts: Vec<Draft> = Vec::new();
    for file_name in names.iter().filter(|name| !name.starts_with('.')) {
        let path = format!("{STAGES}/{file_name}");
        let Some((number, name)) = stage_name(file_name) else {
            misnamed::tell(&mut reader.report, &path, file_name, has_stages);
            continue;
        };
        let Some(file) = open(&mut reader, &path) else {
            continue;
        };
        if let Some(other) = drafts
            .iter()
            .find(|other| other.number == number || other.name == name)
        {
            let same = if other.number == number {
                "number"
            } else {
                "name"
            };
            let problem = file.whole_problem(format!(
                "`{path}` and `{}` have the same {same}",
                other.file.name
            ));
            reader.report.add(problem.help(format!(
                "give one of them another {same}; gaps between numbers are allowed"
            )));
        }
        drafts.push(stage::read(&mut reader, &project, &file, number, name));
    }
    drafts.sort_by_key(|draft| draft.number);
    let mut report = std::mem::take(&mut reader.report);
    if !has_stages && let Some(file) = &project_file {
        let problem = file.whole_problem("the project has no stages");
        report.add(problem.help(format!("write the first into `{STAGES}/1_name.toml`")));
    }
    let exists = |path: &str| {
        if is_pattern(path) {
            picked::any(files, path)
        } else {
            RelPath::parse(path).is_ok_and(|path| reader.exists(&path))
        }
    };
    whole::check(&mut report, &project, &drafts, &exists, &|path| {
        reader.near_file(path)
    });
    let prices = prices(&reader, &mut report);
    let warnings = report.finish()?;
    let pipeline = Pipeline {
        name: project.name,
        params: project.params,
        env: project.env,
        agents: project.agents,
        limits: project.limits,
        prices,
        services: project.services,
        manifest: project.manifest,
        errors: project.errors,
        stages: drafts.into_iter().filter_map(|draft| draft.stage).collect(),
    };
    Ok((pipeline, warnings))
}

/// The project's own prices of models, if it has any.
fn prices(reader: &Reader<'_>, report: &mut Report) -> Option<Asset> {
    match reader.find(&RelPath::parse(PRICES).ok()?)? {
        Ok(asset) => Some(asset),
        Err(message) => {
            let file = File::new(PRICES, "");
            report.add(file.whole_problem(format!("`{PRICES}` cannot be read: {message}")));
            None
        }
    }
}

/// Opens a declaration; what hinders that is reported.
fn open(reader: &mut Reader<'_>, name: &str) -> Option<File> {
    let wrong = |message: String| File::new(name, "").whole_problem(message);
    let read = RelPath::parse(name)
        .map_err(|error| error.to_string())
        .map(|path| reader.find(&path));
    let problem = match read {
        Ok(Some(Ok(asset))) => return Some(File::new(name, asset.text)),
        Ok(Some(Err(message))) => wrong(format!("`{name}` cannot be read: {message}")),
        Ok(None) => wrong(format!("there is no `{name}` here"))
            .help("`milepost init` makes a project; `-C DIR` goes to one"),
        Err(message) => wrong(message),
    };
    reader.report.add(problem);
    None
}

/// Returns the names of the stages as their files say them, in order, without reading them.
pub fn stage_names(files: &dyn ProjectFiles) -> Vec<String> {
    let mut names = files.list(STAGES);
    names.sort_by(|a, b| natural(a, b));
    let stages = names.iter().filter_map(|name| stage_name(name));
    stages.map(|(_, name)| name.to_owned()).collect()
}

/// Number and name of `3_classify.toml`.
fn stage_name(file_name: &str) -> Option<(u32, &str)> {
    let (number, name) = file_name.strip_suffix(".toml")?.split_once('_')?;
    let is_number = !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && (number == "0" || !number.starts_with('0'));
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if is_number && is_name {
        Some((number.parse().ok()?, name))
    } else {
        None
    }
}
