//! Declarations: parses TOML into `model::pipeline::Pipeline`, and reports every mistake with its place.

mod cross_checks;
mod editor_schema;
mod filter;
mod keys;
mod problem;
mod project;
mod project_files;
mod stage;
mod stage_file_names;
mod step;
mod tables;
mod values;

pub use editor_schema::{project_schema, stage_schema};
pub use filter::{Filter, filter};
pub use problem::{Mark, Problem, Problems, Warning};
pub use project_files::{PROJECT_FILE, ProjectFiles, STAGES};
pub use stage_file_names::stage_names;
pub use values::schema_refs::schema_problem;

use crate::base::glob::is_pattern;
use crate::base::natural::natural;
use crate::base::path::RelPath;
use crate::model::pipeline::{Asset, Pipeline};
use crate::model::stage::Stage;
use cross_checks::Draft;
use problem::{Report, SourceFile};
use stage_file_names::stage_name;
use values::reader::ValueReader;
use values::template_choice;

/// The file with the project's own prices of models.
const PRICES: &str = "prices.toml";

/// Declarations as far as they can be read.
#[derive(Debug)]
pub struct Declarations {
    /// The project. A stage whose declaration has a mistake is [`Stage::unread`].
    pub pipeline: Pipeline,
    /// Warnings; none if there are mistakes.
    pub warnings: Vec<Warning>,
    /// All mistakes, over all files.
    pub problems: Option<Problems>,
}

/// Reads the project's declarations.
///
/// # Errors
/// All mistakes, over all files at once.
pub fn load(files: &dyn ProjectFiles) -> Result<(Pipeline, Vec<Warning>), Problems> {
    let read = load_readable(files);
    match read.problems {
        Some(problems) => Err(problems),
        None => Ok((read.pipeline, read.warnings)),
    }
}

/// Reads as much of the project's declarations as can be read.
pub fn load_readable(files: &dyn ProjectFiles) -> Declarations {
    let mut reader = ValueReader::new(files);
    let project_file = open(&mut reader, PROJECT_FILE);
    let read = project_file.as_ref();
    let project = read.map_or_else(project::Project::unknown, |file| {
        project::read(&mut reader, file)
    });
    let mut names = files.list(STAGES);
    names.sort_by(|a, b| natural(a, b));
    let has_stages = names.iter().any(|name| stage_name(name).is_some());
    let mut drafts: Vec<Draft> = Vec::new();
    for file_name in names.iter().filter(|name| !name.starts_with('.')) {
        let path = format!("{STAGES}/{file_name}");
        let Some((number, name)) = stage_name(file_name) else {
            stage_file_names::report_misnamed(&mut reader.report, &path, file_name, has_stages);
            continue;
        };
        let Some(file) = open(&mut reader, &path) else {
            drafts.push(Draft::new(SourceFile::new(path, ""), number, name));
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
            template_choice::any(files, path)
        } else {
            RelPath::parse(path).is_ok_and(|path| reader.exists(&path))
        }
    };
    cross_checks::check(&mut report, &project, &drafts, &exists, &|path| {
        reader.near_file(path)
    });
    let prices = prices(&reader, &mut report);
    let (warnings, problems) = match report.finish() {
        Ok(warnings) => (warnings, None),
        Err(problems) => (Vec::new(), Some(problems)),
    };
    let stages = drafts.into_iter().map(|draft| {
        let Draft {
            file, number, name, ..
        } = draft;
        let unread = || Stage::unread(&name, number, &file.name);
        draft.stage.unwrap_or_else(unread)
    });
    let pipeline = Pipeline {
        name: project.name,
        params: project.params,
        env: project.env,
        agents: project.agents,
        limits: project.limits,
        prices,
        services: project.services,
        executors: project.executors,
        manifest: project.manifest,
        is_shared: project.is_shared,
        errors: project.errors,
        stages: stages.collect(),
    };
    Declarations {
        pipeline,
        warnings,
        problems,
    }
}

/// Returns the project's own prices of models, if it has any.
fn prices(reader: &ValueReader<'_>, report: &mut Report) -> Option<Asset> {
    match reader.find(&RelPath::parse(PRICES).ok()?)? {
        Ok(asset) => Some(asset),
        Err(message) => {
            let file = SourceFile::new(PRICES, "");
            report.add(file.whole_problem(format!("`{PRICES}` cannot be read: {message}")));
            None
        }
    }
}

/// Opens a declaration; what hinders that is reported.
fn open(reader: &mut ValueReader<'_>, name: &str) -> Option<SourceFile> {
    let wrong = |message: String| SourceFile::new(name, "").whole_problem(message);
    let read = RelPath::parse(name)
        .map_err(|error| error.to_string())
        .map(|path| reader.find(&path));
    let problem = match read {
        Ok(Some(Ok(asset))) => return Some(SourceFile::new(name, asset.text)),
        Ok(Some(Err(message))) => wrong(format!("`{name}` cannot be read: {message}")),
        Ok(None) => wrong(format!("there is no `{name}` here"))
            .help("run `milepost init` to create a project, or `-C DIR` to use another folder"),
        Err(message) => wrong(message),
    };
    reader.report.add(problem);
    None
}
