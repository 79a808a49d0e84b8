//! The files of each input of a batch.

use crate::base::natural::natural;
use crate::base::path::{FilePath, RelPath};
use crate::expr::jq::JqError;
use crate::expr::scope::Format;
use crate::model::outcome::{Outcome, OutcomeKind};
use crate::model::stage::{ExpressionError, Input, InputSource, Stage};
use crate::plan::batches::expand::{GlobbedFiles, glob};
use crate::plan::batches::paths::{self, Named};
use crate::plan::batches::recorded::Recorded;
use crate::plan::batches::world::World;
use serde_json::{Map, Value};
use std::fmt;

/// Why a batch cannot begin: it lacks an input, a `[[require]]` does not hold, or a service may have carried out its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// `Path` where the name of a file leaves its folder, `Check` for a `[[require]]`, else `Input`.
    pub kind: OutcomeKind,
    /// The error that a `[[require]]` names.
    pub code: Option<String>,
    /// One line for people.
    pub why: String,
    /// As of the outcome of that request.
    pub accepted: Option<String>,
}

impl From<Outcome> for Missed {
    fn from(outcome: Outcome) -> Self {
        Self {
            kind: outcome.kind,
            code: Some(outcome.code),
            why: outcome.message,
            accepted: outcome.accepted,
        }
    }
}

impl From<String> for Missed {
    fn from(why: String) -> Self {
        Self {
            kind: OutcomeKind::Input,
            code: None,
            why,
            accepted: None,
        }
    }
}

impl From<ExpressionError> for Missed {
    fn from(error: ExpressionError) -> Self {
        error.to_string().into()
    }
}

impl From<JqError> for Missed {
    fn from(error: JqError) -> Self {
        Self {
            kind: error
                .limit
                .map_or(OutcomeKind::Input, OutcomeKind::of_limit),
            ..error.to_string().into()
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{code}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl Missed {
    /// Returns how the batch ends.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::new(self.kind, self.why.as_str());
        if let Some(code) = &self.code {
            outcome.code.clone_from(code);
        }
        outcome.accepted.clone_from(&self.accepted);
        outcome.for_good()
    }
}

/// The files of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The input's name; empty for files that a step only `reads`.
    pub name: String,
    /// The files; empty if the input is optional and missing.
    pub files: Vec<FilePath>,
    /// True if it is a list, even of one file.
    pub many: bool,
}

/// Returns true if a program iterates over a list: it contains `[]`, outside of texts and comments.
fn goes_through_list(source: &str) -> bool {
    let mut rest = source;
    while let Some(at) = rest.find(['"', '#', '[']) {
        let (mark, after) = rest[at..].split_at(1);
        rest = match mark {
            "[" if after.trim_start().starts_with(']') => return true,
            "#" => after.find('\n').map_or("", |end| &after[end..]),
            "\"" => after_text(after),
            _ => after,
        };
    }
    false
}

/// Returns the rest of a program after a string; `text` starts after its opening quote.
fn after_text(text: &str) -> &str {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

/// Returns the files of all inputs of a batch. `scope` has the batch's items and the names that every scope has.
///
/// # Errors
/// If a path cannot be rendered or leaves its folder, or a pattern matches no file that people provide. Hashing finds a missing
/// regular file.
pub fn resolve(
    stage: &Stage,
    scope: &Value,
    recorded: &Recorded<'_>,
    world: &dyn World,
    written: &dyn Fn(&str) -> bool,
) -> Result<Vec<Resolved>, Missed> {
    let inputs = stage.inputs.iter().map(|input| {
        one(stage, input, scope, recorded, world, written).map_err(|missed| Missed {
            why: format!("input `{}`: {missed}", input.name),
            ..missed
        })
    });
    let reads = stage.reads.iter().map(|path| {
        let files = match paths::read(path, scope)? {
            Named::File(file) => vec![file],
            Named::Pattern(pattern) => {
                let found = glob(&pattern, recorded, world, written);
                let files = found.and_then(GlobbedFiles::all);
                files.map_err(|why| format!("`reads`: {why}"))?
            }
        };
        Ok(Resolved {
            name: String::new(),
            files,
            many: true,
        })
    });
    inputs.chain(reads).collect()
}

fn one(
    stage: &Stage,
    input: &Input,
    scope: &Value,
    recorded: &Recorded<'_>,
    world: &dyn World,
    written: &dyn Fn(&str) -> bool,
) -> Result<Resolved, Missed> {
    let name = input.name.clone();
    match &input.source {
        InputSource::Path(path) => {
            let place = match paths::read(path, scope)? {
                Named::Pattern(pattern) => pattern,
                Named::File(file) => {
                    return Ok(Resolved {
                        name,
                        files: vec![file],
                        many: false,
                    });
                }
            };
            let found = glob(&place, recorded, world, written);
            let files = if input.optional {
                found.unwrap_or_default()
            } else {
                found?
            };
            let mut files = files.all()?;
            if input.earlier {
                let there = world.matches(place.root, place.path.as_str())?;
                files.extend(there.files.into_iter().map(FilePath::workspace));
                files.sort_by(|a, b| natural(a.path.as_str(), b.path.as_str()));
                files.dedup();
            }
            Ok(Resolved {
                name,
                files,
                many: true,
            })
        }
        InputSource::From {
            file,
            select,
            base,
            whole,
        } => {
            let file = paths::render(file, scope)?;
            let content = world.content(&file, &Format::of_path(file.path.as_str()).into())?;
            let none = Map::new();
            let names = scope.as_object().unwrap_or(&none);
            let names = select.all(content, names, &*world.evaluator(stage))?;
            let many = names.len() > 1 || goes_through_list(&select.source);
            let files = names
                .iter()
                .map(|name| match name {
                    Value::String(text) => confined(text, base, *whole),
                    other => Err(Missed::from(format!(
                        "`select` returned {other}, expected the name of a file"
                    ))),
                })
                .collect::<Result<_, Missed>>()?;
            Ok(Resolved { name, files, many })
        }
    }
}

/// A file that another file names: it stays in the folder that confines it.
fn confined(text: &str, base: &FilePath, whole: bool) -> Result<FilePath, Missed> {
    let path = if whole {
        RelPath::parse(text)
    } else {
        RelPath::parse(text).and_then(|_| base.path.join(text))
    };
    let file = path.map(|path| FilePath {
        root: base.root,
        path,
    });
    file.and_then(paths::unreserved).map_err(|error| Missed {
        kind: OutcomeKind::Path,
        ..error.to_string().into()
    })
}

#[cfg(test)]
mod tests {
    use super::goes_through_list;

    #[test]
    fn a_program_that_goes_through_a_list_says_so() {
        for source in [
            ".files[]",
            ".files[].path",
            ".files[ ]?",
            "# all\n.[]",
            "\"\\\"[\", .x[]",
        ] {
            assert!(goes_through_list(source), "{source}");
        }
        for source in [
            ".pdf_path",
            ".files[0]",
            "ltrimstr(\"a[]\")",
            ".a # .files[]",
            ".a // empty",
            "\"\\\"[]\"",
        ] {
            assert!(!goes_through_list(source), "{source}");
        }
    }
}
