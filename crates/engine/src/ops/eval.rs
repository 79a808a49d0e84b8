//! Evaluates one filter of a project, without a workspace and without changing anything.

use super::project::error::OpsError;
use super::project::find::{OnDisk, find_project};
use super::project::request::Request;
use super::project::values::{default, name_and_value, unknown, value_of};
use super::run::workspaces::Outside;
use crate::run::JqWorkers;
use jiff::tz::TimeZone;
use milepost_core::base::source::Source as _;
use milepost_core::decl::{self, Filter};
use milepost_core::expr::name::is_name;
use milepost_core::expr::scope::{Format, Reading, parse};
use milepost_core::plan::settings::run_scope;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The filter to evaluate, and its values.
#[derive(Debug, Clone, Default)]
pub struct EvalOptions {
    /// The path of a `.jq` file of the project, or a program.
    pub filter: String,
    /// The folder that files are relative to.
    pub folder: PathBuf,
    /// Files: `FILE` is the input of the program, `NAME=FILE` a name with a value.
    pub inputs: Vec<String>,
    /// Values: `NAME=VALUE`.
    pub args: Vec<String>,
}

/// What a filter returned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(debug_assertions, derive(schemars::JsonSchema))]
pub struct Evaluation {
    /// The filter, as given.
    pub filter: String,
    /// Its outputs, in order.
    pub values: Vec<Value>,
}

/// Evaluates a filter with the limits of a run.
///
/// # Errors
/// When an option is wrong, a file cannot be read, the filter has mistakes, or it fails.
pub fn eval(request: &Request, options: &EvalOptions) -> Result<Evaluation, OpsError> {
    let (input, given) = values(options)?;
    let project = find_project(&request.folder)?;
    let names: Vec<String> = given.keys().cloned().collect();
    let filter = decl::filter(&OnDisk::new(&project), &options.filter, &names);
    let filter = filter.map_err(|problems| OpsError::Declarations(Box::new(problems)))?;
    let mut scope = project_scope(request, &filter)?;
    scope.extend(given);
    let input = input.unwrap_or_else(|| Value::Object(scope.clone()));
    let workers = JqWorkers::default();
    let values = filter.program.all(input, &scope, &workers);
    Ok(Evaluation {
        filter: options.filter.clone(),
        values: values.map_err(|error| OpsError::World(error.to_string()))?,
    })
}

/// Reads the input of the program, if there is one, and the values of names.
fn values(options: &EvalOptions) -> Result<(Option<Value>, Map<String, Value>), OpsError> {
    let mut input = None;
    let mut given = Map::new();
    for option in &options.inputs {
        let (name, file) = match option.split_once('=') {
            Some((name, file)) if is_name(name) => (Some(name), file),
            _ => (None, option.as_str()),
        };
        let value = read(&options.folder, file)?;
        match name {
            Some(name) => put(&mut given, name, value)?,
            None if input.is_none() => input = Some(value),
            None => {
                let why =
                    "`--input` has two files without a name: name one with `--input NAME=FILE`";
                return Err(OpsError::Usage(why.to_owned()));
            }
        }
    }
    for option in &options.args {
        let Some((name, text)) = option.split_once('=').filter(|(name, _)| is_name(name)) else {
            let why = format!("`--arg {option}`: write `--arg NAME=VALUE`");
            return Err(OpsError::Usage(why));
        };
        let value = milepost_core::expr::json::parse(text).unwrap_or_else(|_| json!(text));
        put(&mut given, name, value)?;
    }
    Ok((input, given))
}

fn put(given: &mut Map<String, Value>, name: &str, value: Value) -> Result<(), OpsError> {
    match given.insert(name.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(OpsError::Usage(format!("`{name}` has two values"))),
    }
}

/// Reads a file as a stage would: by its ending. A file without an ending, such as `/dev/stdin`, is JSON.
fn read(folder: &Path, file: &str) -> Result<Value, OpsError> {
    let path = folder.join(file);
    let format = match path.extension() {
        Some(_) => Format::of_path(file),
        None => Format::Json,
    };
    let source = Outside(path);
    let value = parse(&source.name(), &source, &Reading::from(format));
    value.map_err(|error| OpsError::Usage(format!("`--input {file}`: {error}")))
}

/// Returns the values of the project itself: declared parameters or `--set`, the environment, and the time.
fn project_scope(request: &Request, filter: &Filter) -> Result<Map<String, Value>, OpsError> {
    let now = request.now();
    let today = now.to_zoned(TimeZone::UTC).date();
    let mut params = Map::new();
    for param in &filter.params {
        let value = default(param, &json!({ "workspace": { "name": "workspace" } }))?;
        params.insert(param.name.clone(), param.evaluated(value, today));
    }
    for setting in &request.values.set {
        let (name, text) = name_and_value(setting)?;
        let param = filter.params.iter().find(|param| param.name == name);
        let param = param.ok_or_else(|| unknown(name, &filter.params))?;
        let value = match &param.file {
            Some(_) => json!(text),
            None => value_of(param, setting, text)?,
        };
        params.insert(name.to_owned(), param.evaluated(value, today));
    }
    let env: Map<String, Value> = filter
        .env
        .iter()
        .map(|(name, default)| {
            let value = request.environment.get(name).unwrap_or(default);
            (name.clone(), json!(value))
        })
        .collect();
    let mut scope = Map::new();
    scope.insert("params".to_owned(), Value::Object(params));
    scope.insert("env".to_owned(), Value::Object(env));
    scope.insert("run".to_owned(), run_scope(now));
    Ok(scope)
}
