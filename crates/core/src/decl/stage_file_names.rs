//! The names of files in `stages/`: number and name of a stage, and what is wrong with a name.

use crate::base::natural::natural;
use crate::decl::problem::{Report, SourceFile};
use crate::decl::project_files::{ProjectFiles, STAGES};

/// Endings of files that are likely meant as stages.
const ENDINGS: [&str; 4] = ["yaml", "yml", "tml", "toml"];

/// Returns the names of the stages by number, taken from the names of their files.
pub fn stage_names(files: &dyn ProjectFiles) -> Vec<String> {
    let mut names = files.list(STAGES);
    names.sort_by(|a, b| natural(a, b));
    let stages = names.iter().filter_map(|name| stage_name(name));
    stages.map(|(_, name)| name.to_owned()).collect()
}

/// Returns number and name of a file such as `3_classify.toml`.
pub(crate) fn stage_name(file_name: &str) -> Option<(u32, &str)> {
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

/// Reports a file that is not named like a stage: a mistake if it ends in `.toml`, or if it is likely meant as the
/// project's only stage; else a warning.
pub(crate) fn report_misnamed(report: &mut Report, path: &str, file_name: &str, has_stages: bool) {
    let Some((stem, ending)) = file_name.rsplit_once('.') else {
        return;
    };
    let file = SourceFile::new(path, "");
    if ending == "toml" {
        let problem = file.whole_problem(format!(
            "`{path}` is not named like a stage: {}",
            broken_rule(stem)
        ));
        report.add(problem.help(format!("rename it to `{}`", suggestion(stem))));
    } else if ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
        && stem.starts_with(|c: char| c.is_ascii_digit())
    {
        let problem = file.whole_problem(format!(
            "`{path}` is ignored: a stage is a TOML file that ends in `.toml`"
        ));
        let problem = problem.help(format!(
            "if it is meant as a stage, write it as `{}`",
            suggestion(stem)
        ));
        if has_stages {
            report.warn(problem);
        } else {
            report.add(problem);
        }
    }
}

/// Returns the rule that the name of a stage's file breaks, without its ending.
fn broken_rule(stem: &str) -> String {
    let digits = stem
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(stem.len());
    let (number, rest) = stem.split_at(digits);
    let name = rest.trim_start_matches(['.', '_', '-', ' ']);
    if number.is_empty() {
        "its name begins with the stage's number".to_owned()
    } else if number.starts_with('0') && number != "0" {
        "the number has no leading zero".to_owned()
    } else if number.parse::<u32>().is_err() {
        format!("the number is above {}", u32::MAX)
    } else if name.is_empty() {
        "a name follows the number".to_owned()
    } else if !rest.starts_with('_') || rest.starts_with("__") {
        "one `_` separates number and name".to_owned()
    } else if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        "the stage's name begins with a letter, a to z".to_owned()
    } else {
        "the stage's name has letters, digits, `_` and `-` only".to_owned()
    }
}

/// Returns the name that a stage's file should have.
fn suggestion(stem: &str) -> String {
    let is_between = |c: char| c.is_ascii_digit() || "._- ".contains(c);
    let digits: String = stem.chars().filter(char::is_ascii_digit).collect();
    let leading: String = stem.chars().take_while(char::is_ascii_digit).collect();
    let number = [leading, digits]
        .iter()
        .find_map(|digits| digits.parse::<u32>().ok())
        .unwrap_or(1);
    let rest = stem.trim_start_matches(is_between);
    let begins_with_number = stem.starts_with(|c: char| c.is_ascii_digit());
    let rest = if begins_with_number {
        rest
    } else {
        rest.trim_end_matches(is_between)
    };
    let name: String = rest
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    let name = name.trim_matches('_');
    let name = if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name
    } else {
        "name"
    };
    format!("{STAGES}/{number}_{name}.toml")
}
