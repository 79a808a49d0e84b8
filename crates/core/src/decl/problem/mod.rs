//! Mistakes in declarations: each with its file, its place and a help.

mod render;

use crate::base::natural::natural;
use crate::decl::project_files::PROJECT_FILE;
use serde_json::{Value, json};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A file with its text, to point into.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    /// The path in the project.
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
}

impl SourceFile {
    /// A file of this text.
    pub(crate) fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
        }
    }

    /// A mistake at these bytes.
    pub(crate) fn problem(&self, span: Range<usize>, message: impl Into<String>) -> Problem {
        let span = fitted(&self.text, span);
        let (line, column) = position(&self.text, span.start);
        Problem {
            file: self.name.to_string(),
            span: Some(span),
            line,
            column,
            message: message.into(),
            label: String::new(),
            help: None,
            also: None,
            source: self.text.clone(),
        }
    }

    /// A mistake of the file as a whole.
    pub(crate) fn whole_problem(&self, message: impl Into<String>) -> Problem {
        Problem {
            span: None,
            ..self.problem(0..0, message)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, in the project.
    pub(crate) file: String,
    /// The bytes; `None` for the whole file.
    pub(crate) span: Option<Range<usize>>,
    /// From 1.
    pub(crate) line: usize,
    /// In characters, from 1.
    pub(crate) column: usize,
    pub(crate) message: String,
    /// The label under the marked text; may be empty.
    pub(crate) label: String,
    pub(crate) help: Option<String>,
    /// A second place.
    pub(crate) also: Option<Box<Mark>>,
    pub(crate) source: Arc<str>,
}

/// A second place that belongs to a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The file, in the project.
    pub(crate) file: String,
    /// Which bytes of it.
    pub(crate) span: Range<usize>,
    /// From 1.
    pub(crate) line: usize,
    /// In characters, from 1.
    pub(crate) column: usize,
    /// The label under the marked text.
    pub(crate) label: String,
    pub(crate) source: Arc<str>,
}

impl Problem {
    /// With a text under the marked place.
    #[must_use]
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With what to do.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With what to do, if something is known.
    #[must_use]
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    /// With a second place.
    #[must_use]
    pub(crate) fn also(
        mut self,
        file: &SourceFile,
        span: Range<usize>,
        label: impl Into<String>,
    ) -> Self {
        let span = fitted(&file.text, span);
        let (line, column) = position(&file.text, span.start);
        let (label, source) = (label.into(), file.text.clone());
        self.also = Some(Box::new(Mark {
            file: file.name.to_string(),
            span,
            line,
            column,
            label,
            source,
        }));
        self
    }

    fn to_json(&self) -> Value {
        let mut value = json!({ "file": self.file, "line": self.line, "column": self.column, "message": self.message });
        if let Some(span) = &self.span {
            value["span"] = json!([span.start, span.end]);
        }
        if !self.label.is_empty() {
            value["label"] = json!(self.label);
        }
        if let Some(help) = &self.help {
            value["help"] = json!(help);
        }
        if let Some(also) = &self.also {
            value["also"] = json!({ "file": also.file, "line": also.line, "column": also.column,
                "span": [also.span.start, also.span.end], "label": also.label });
        }
        value
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.file, self.line, self.column, self.message
        )?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// All mistakes of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Returns a list of `{file, line, column, span, message, label, help, also}`.
    pub fn to_json(&self) -> Value {
        Value::Array(self.0.iter().map(Problem::to_json).collect())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A warning: the declaration is valid, but probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub(crate) problem: Problem,
    /// True if it only advises: the declaration may well be meant.
    pub is_advice: bool,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

/// Collects mistakes and warnings.
#[derive(Debug, Default)]
pub(crate) struct Report {
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
}

impl Report {
    /// Takes a mistake.
    pub(crate) fn add(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Takes a warning.
    pub(crate) fn warn(&mut self, problem: Problem) {
        self.warnings.push(Warning {
            problem,
            is_advice: false,
        });
    }

    /// Takes a warning that only advises.
    pub(crate) fn advise(&mut self, problem: Problem) {
        self.warnings.push(Warning {
            problem,
            is_advice: true,
        });
    }

    /// How many mistakes there are.
    pub(crate) fn count(&self) -> usize {
        self.problems.len()
    }

    /// Returns the mistakes, if there are any, else the warnings; by file (`milepost.toml` first) and place.
    pub(crate) fn finish(mut self) -> Result<Vec<Warning>, Problems> {
        sort(&mut self.problems, |problem| problem);
        sort(&mut self.warnings, |warning| &warning.problem);
        if self.problems.is_empty() {
            Ok(self.warnings)
        } else {
            Err(Problems(self.problems))
        }
    }
}

fn sort<T: PartialEq>(problems: &mut Vec<T>, of: impl Fn(&T) -> &Problem) {
    problems.sort_by(|a, b| {
        let (a, b) = (of(a), of(b));
        let place = |problem: &Problem| {
            (
                problem.span.as_ref().map(|span| (span.start, span.end)),
                problem.message.clone(),
            )
        };
        let first = |problem: &Problem| problem.file != PROJECT_FILE;
        first(a)
            .cmp(&first(b))
            .then_with(|| natural(&a.file, &b.file))
            .then_with(|| place(a).cmp(&place(b)))
    });
    problems.dedup();
}

/// Returns the span, moved to bounds of characters inside the text.
fn fitted(text: &str, span: Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// Line and column, from 1, of a byte that begins a character.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}
