//! Reads one filter, so that it can be tried without a stage.

use super::problem::{Problem, Problems, SourceFile};
use super::project_files::{PROJECT_FILE, ProjectFiles};
use super::tables::located_text::LocatedText;
use super::values::names::{Sees, StageNames};
use super::values::reader::ValueReader;
use super::{open, project};
use crate::model::pipeline::Param;
use crate::model::stage::{FIXED_NAMES, OVERRIDES, Program, RUN};
use std::collections::BTreeMap;

/// How messages name the file of a program text.
const COMMAND_LINE: &str = "command line";

/// The key of the filter, as usage texts name it.
const FILTER: &str = "FILTER";

/// A filter with the declarations of `milepost.toml` that it can use.
#[derive(Debug)]
pub struct Filter {
    pub params: Vec<Param>,
    /// Environment variables and their defaults.
    pub env: BTreeMap<String, String>,
    pub program: Program,
}

/// Reads a filter: the path of a `.jq` file of the project, or a program text. Its variables are the names that every stage has,
/// and these. The stages are not read.
///
/// # Errors
/// All mistakes in `milepost.toml`, in the filter and in what it includes, each with its place.
pub fn filter(files: &dyn ProjectFiles, text: &str, names: &[String]) -> Result<Filter, Problems> {
    let mut reader = ValueReader::new(files);
    let project_file = open(&mut reader, PROJECT_FILE);
    let declared = project_file.map(|file| project::read(&mut reader, &file));
    let declared = declared.unwrap_or_default();
    let mut known = StageNames::of_project(&declared.names);
    let is_own = |name: &&String| !FIXED_NAMES.contains(&name.as_str()) && *name != OVERRIDES;
    known.inputs = names.iter().filter(is_own).cloned().collect();
    // A literal string of TOML keeps every character.
    let file = SourceFile::new(COMMAND_LINE, format!("'{text}'"));
    let spot = LocatedText {
        file: &file,
        key: FILTER,
        text,
        span: 0..file.text.len(),
    };
    let program = reader.jq(&spot, &known, Sees::All);
    let found = reader.report.finish();
    found.map_err(|Problems(all)| Problems(all.into_iter().map(of_filter).collect()))?;
    let Some(program) = program else {
        return Err(Problems(Vec::new()));
    };
    Ok(Filter {
        params: declared.params,
        env: declared.env,
        program,
    })
}

/// Returns the problem in the words of a command without a stage.
fn of_filter(mut problem: Problem) -> Problem {
    problem.also.take_if(|also| also.file == COMMAND_LINE);
    let missing = problem.message.strip_prefix("`FILTER`: `$");
    let missing = missing.and_then(|rest| rest.split_once("` is not a name of this stage"));
    let Some((name, _)) = missing else {
        return problem;
    };
    let message = format!("`${name}` has no value");
    let help = match problem.help.clone() {
        Some(help) if help.starts_with("did you mean") || name == RUN => Some(help),
        _ => Some(format!(
            "give it one: --input {name}=FILE or --arg {name}=VALUE"
        )),
    };
    Problem {
        message,
        help,
        ..problem
    }
}
