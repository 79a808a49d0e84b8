//! Files of `stages/` that are not named like a stage: which rule the name breaks, and the name to give them.

use super::STAGES;
use super::problem::{File, Report};

/// Endings of files that are likely meant as stages.
const ENDINGS: [&str; 4] = ["yaml", "yml", "tml", "toml"];

/// Reports a file that is not named like a stage: a mistake if it ends in `.toml`, or if it is likely meant as the
/// project's only stage; else a warning.
pub(crate) fn tell(report: &mut Report, path: &str, file_name: &str, has_stages: bool) {
    let Some((stem, ending)) = file_name.rsplit_once('.') else {
        return;
    };
    let file = File::new(path, "");
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

/// The rule that the name of a stage's file breaks, without its ending.
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

/// The name that a stage's file should have.
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
