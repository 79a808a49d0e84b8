//! The outputs of steps: `out`, and the names of files that later steps read.

use crate::decl::problem::SourceFile;
use crate::decl::step::reader::{StepOutput, StepReader, kind_of};
use crate::decl::tables::tree::TomlTable;
use crate::decl::values::names::StageNames;
use crate::decl::values::reader::ValueReader;
use crate::expr::place::{listed, nearest};
use crate::expr::scope::Format;
use crate::model::step::{KindName, Outputs};
use std::ops::Range;

impl StepReader<'_, '_> {
    /// Returns the name of an input or of an earlier `out`.
    pub(crate) fn file_name(&mut self, key: &'static str) -> Option<String> {
        let spot = self.fields.spot(key)?;
        let name = spot.text.to_owned();
        let earlier = || self.made.iter().map(|made| made.out.as_str());
        let known: Vec<&str> = self
            .names
            .inputs
            .iter()
            .map(String::as_str)
            .chain(earlier())
            .collect();
        if known.contains(&name.as_str()) {
            return Some(name);
        }
        let is_later = self
            .names
            .outputs
            .iter()
            .chain(&self.names.outs)
            .any(|out| *out == name);
        let is_each = self.names.each.iter().any(|(each, _)| *each == name);
        let help = match nearest(&name, known.iter().copied()) {
            _ if is_later => {
                "a step reads only the `out` of earlier steps: change their order".to_owned()
            }
            _ if is_each => format!(
                "declare the file of `{name}` as an input: [inputs] and below it file = \"{{{{ {name}.path }}}}\""
            ),
            Some(near) => format!("did you mean `{near}`?"),
            None if name.contains(['/', '.']) => format!(
                "this is a name, not a path: declare it as an input, [inputs] and below it NAME = \"{name}\""
            ),
            None if known.is_empty() => {
                format!("declare it: [inputs] and below it {name} = \"path\"")
            }
            None => format!("available: {}", listed(known)),
        };
        let message = format!("`{name}` is neither an input nor the `out` of an earlier step");
        let problem = spot.problem(message).label("unknown name").help(help);
        self.reader.report.add(problem);
        None
    }

    /// Returns the output of the step, with the place of its declaration.
    pub(crate) fn out(&mut self, steps: usize) -> Option<(String, Range<usize>)> {
        if let Some((text, span)) = self.fields.text("out") {
            return Some((text.to_owned(), span));
        }
        if self.fields.get("out").is_some() {
            return None;
        }
        let span = self.fields.what.map_or_else(
            || self.fields.span.clone(),
            |what| self.fields.key_span(what),
        );
        match self.names.outputs.as_slice() {
            [] => None,
            [only] => Some((only.clone(), span)),
            // a program may write several outputs: its step counts as the first one that no other step makes
            [first, ..] if self.fields.what == Some("command") && steps == 1 => {
                Some((first.clone(), span))
            }
            several => {
                let problem = self
                    .file
                    .problem(span, "this step does not declare which output it writes");
                let names = crate::decl::tables::hints::or(several.iter().map(String::as_str));
                let first = &several[0];
                let help = format!(
                    "the stage has {names}: write out = \"{first}\", or a new name for what is for later steps only"
                );
                self.reader
                    .report
                    .add(problem.label("`out` is missing").help(help));
                None
            }
        }
    }

    /// Checks that the step's kind can write its output, and that no earlier step writes it.
    pub(crate) fn check_out(&mut self, out: &str, span: &Range<usize>) {
        let what = self.fields.what.unwrap_or_default();
        let info = kind_of(self.fields).map(KindName::info);
        let questions = self.fields.is_true("questions").then_some("json");
        if let Some(earlier) = self.made.iter().find(|made| made.out == out)
            && self.fields.get("when").is_none()
        {
            let problem = self
                .file
                .problem(span.clone(), format!("two steps write `{out}`"));
            let problem = problem
                .label("this step always overwrites the output of the other")
                .also(self.file, earlier.span.clone(), "the other");
            self.reader
                .report
                .add(problem.help("give one of them another `out`, or `when`"));
        }
        let Some(output) = self.outputs.iter().find(|output| output.name == out) else {
            return;
        };
        if output.is_many()
            && !output.per_round
            && info.is_some_and(|info| info.outputs == Outputs::One)
        {
            let problem = self.file.problem(
                span.clone(),
                format!("`{what}` writes one file, but the path of `{out}` has a `*`"),
            );
            self.reader
                .report
                .add(problem.help("only `split` and `command` fill a path with `*`"));
        }
        let is_split = info.is_some_and(|info| info.outputs == Outputs::Many);
        if is_split && (!output.is_many() || output.per_round) {
            let problem = self.file.problem(
                span.clone(),
                format!("`split` writes many files, but the path of `{out}` has no `*`"),
            );
            self.reader.report.add(problem.help(format!(
                "put a `*` into its path: {out} = \"intermediate/{out}/batch_*.json\""
            )));
        }
        let Some(ending) = info.and_then(|info| info.ending).or(questions) else {
            return;
        };
        let fits = match ending {
            "json" => output.format == Format::Json,
            ending => output
                .path
                .text
                .to_lowercase()
                .ends_with(&format!(".{ending}")),
        };
        if !fits {
            let message = format!(
                "`{what}` writes {}, but `{out}` is `{}`",
                ending.to_uppercase(),
                output.path.text
            );
            let problem = self.file.problem(span.clone(), message);
            self.reader
                .report
                .add(problem.help(format!("its path should end in `.{ending}`")));
        }
    }
}

/// Every output is made by some step; a program may make them all.
pub(crate) fn check_all_made(
    reader: &mut ValueReader<'_>,
    file: &SourceFile,
    names: &StageNames<'_>,
    steps: &[(&TomlTable, Range<usize>)],
    made: &[StepOutput],
) {
    let has_program = steps
        .iter()
        .any(|(table, _)| table.get("command").is_some());
    if has_program || made.len() < steps.len() || made.iter().any(|made| made.what.is_empty()) {
        return;
    }
    for output in &names.outputs {
        if !made.iter().any(|made| made.out == *output) {
            let Some((_, span)) = steps.last() else {
                return;
            };
            let problem = file.problem(
                span.clone(),
                format!("no step writes the output `{output}`"),
            );
            reader.report.add(problem.help(format!(
                "write out = \"{output}\" at the step that writes it, or remove the output"
            )));
        }
    }
}
