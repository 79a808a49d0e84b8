//! Reads a list of workspaces with their parameters.

use crate::ops::project::error::OpsError;
use crate::ops::project::find::{declarations, find_project};
use crate::ops::project::request::Request;
use crate::run::JqWorkers;
use milepost_core::base::path::RelPath;
use milepost_core::base::source::Source;
use milepost_core::expr::json::{key_text, plain_text};
use milepost_core::expr::scope::{Format, Reading, parse};
use milepost_core::model::pipeline::Pipeline;
use milepost_store::store::files::real_path;
use milepost_store::store::read;
use serde_json::{Map, Value};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The default folder for workspaces of a list, in the project.
pub(crate) const FOLDER: &str = "workspaces";

/// A list of workspaces.
pub struct WorkspaceList {
    /// The workspaces, in order.
    pub all: Vec<WorkspaceEntry>,
    pub(super) pipeline: Pipeline,
}

/// A workspace of the list, with its parameters.
pub struct WorkspaceEntry {
    /// The name of the workspace in the list.
    pub workspace: String,
    /// The parameters in the list.
    pub(crate) params: Map<String, Value>,
    /// The path of the workspace.
    pub folder: PathBuf,
    /// The parameters in the form of `--set`.
    pub(super) set: Vec<String>,
}

/// A file outside project and workspace.
pub(crate) struct Outside(pub(crate) PathBuf);

impl Source for Outside {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(read::open_stream(&self.0)?))
    }
}

/// Reads a list of workspaces. They are folders in the workspace folder of the request, by default in `workspaces` of the project.
///
/// # Errors
/// When there is no project, its declarations are wrong, the list cannot be read, or an entry is wrong.
pub fn entries(request: &Request, file: &Path) -> Result<WorkspaceList, OpsError> {
    let project = find_project(&request.folder)?;
    let (pipeline, _) = declarations(&project)?;
    let shown = file.display();
    let wrong = |why: String| OpsError::Usage(format!("`--workspaces {shown}`: {why}"));
    // A pipe, such as `/dev/stdin`, has no ending.
    let is_named = file.extension().is_some();
    let format = if is_named {
        Format::of_path(&file.to_string_lossy())
    } else {
        Format::Json
    };
    let reading = Reading::from(format);
    let source = Outside(file.to_owned());
    let content = parse(&source.name(), &source, &reading).map_err(|error| {
        wrong(if is_named {
            error.to_string()
        } else {
            format!(
                "{error}\nhelp: the name has no ending such as `.csv`, so the list is read as JSON"
            )
        })
    })?;
    // A first line with data would be lost as a header.
    if reading.format == Format::Csv && content == Value::Array(Vec::new()) {
        let why = "the table has no rows: its first line names the columns";
        return Err(wrong(why.to_owned()));
    }
    let rows = match &pipeline.manifest.select {
        Some(select) => {
            let rows = select.all(content, &Map::new(), &JqWorkers::default());
            rows.map_err(|error| wrong(error.to_string()))?
        }
        None => match content {
            Value::Array(rows) => rows,
            _ => {
                let help =
                    "expected a list: `select` under [workspaces] in milepost.toml can select one";
                return Err(wrong(help.to_owned()));
            }
        },
    };
    let base = match &request.workspace {
        Some(folder) => request.folder.join(folder),
        None => project.join(FOLDER),
    };
    let beside = file.parent().unwrap_or(Path::new("")).to_owned();
    let mut all = Vec::new();
    let mut known: Vec<(PathBuf, String)> = Vec::new();
    for (row, number) in rows.into_iter().zip(1..) {
        let entry = entry(&pipeline, &base, &beside, row);
        let entry = entry.map_err(|why| wrong(format!("entry {number}: {why}")))?;
        let real = real_path(&entry.folder).to_string_lossy().to_lowercase();
        known.push((real.into(), entry.workspace.clone()));
        all.push(entry);
    }
    check_apart(known).map_err(wrong)?;
    Ok(WorkspaceList { all, pipeline })
}

/// Checks that no workspace is listed twice or lies in another one. Paths are resolved, in lower case, because some file systems ignore
/// case.
///
/// # Errors
/// The two workspaces.
fn check_apart(mut known: Vec<(PathBuf, String)>) -> Result<(), String> {
    // Sorted by their parts, the workspaces in one folder follow it.
    known.sort_by(|(a, _), (b, _)| a.components().cmp(b.components()));
    for pair in known.windows(2) {
        let [(outer, first), (inner, second)] = pair else {
            continue;
        };
        if !inner.starts_with(outer) {
            continue;
        }
        return Err(match (inner == outer, first == second) {
            (true, true) => format!("the workspace `{first}` is listed twice"),
            (true, false) => {
                format!(
                    "`{first}` and `{second}` are one folder, or differ only in letter case: list each workspace once"
                )
            }
            (false, _) => format!(
                "the workspace `{second}` lies in the workspace `{first}`: give it a folder of its own"
            ),
        });
    }
    Ok(())
}

fn entry(
    pipeline: &Pipeline,
    base: &Path,
    beside: &Path,
    row: Value,
) -> Result<WorkspaceEntry, String> {
    const FORM: &str = "expected an object with `workspace`, the name of a folder, and parameters; \
                        `select` under [workspaces] in milepost.toml can build one";
    let Value::Object(mut params) = row else {
        return Err(FORM.to_owned());
    };
    let workspace = params.shift_remove("workspace");
    let workspace = workspace.as_ref().and_then(key_text).ok_or(FORM)?;
    let place = RelPath::parse(&workspace).map_err(|error| error.to_string())?;
    let given = params.iter().filter(|(_, value)| !value.is_null());
    let mut set = Vec::new();
    for (name, value) in given {
        let param = pipeline.param(name);
        let file = param.and_then(|param| param.file.as_ref());
        let text = match value {
            // Paths are relative to the list.
            Value::String(text) if file.is_some_and(|file| file.base.is_none()) => {
                let near = beside.join(text);
                let near = near.is_file().then(|| near.display().to_string());
                near.unwrap_or_else(|| text.clone())
            }
            other => plain_text(other),
        };
        let setting = format!("{name}={text}");
        // All entries are checked before the first runs, so that no wrong value is found after calls were paid.
        if let Some(param) = param.filter(|param| param.file.is_none()) {
            let parsed = param.parse(&text);
            parsed.map_err(|expected| format!("{setting}: {expected}"))?;
        }
        set.push(setting);
    }
    Ok(WorkspaceEntry {
        set,
        folder: base.join(place.as_str()),
        workspace: place.to_string(),
        params,
    })
}
