//! Reads `[refine]`, and outputs with one file per iteration.

use crate::decl::keys::REFINE;
use crate::decl::stage::StageReader;
use crate::decl::tables::fields::Fields;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::values::names::Sees;
use crate::model::stage::{Refine, Templated};
use std::ops::Range;

/// The default of `max_iterations`.
const ROUNDS: u64 = 3;

impl StageReader<'_, '_, '_> {
    /// Reads the loop.
    pub(crate) fn refine(&mut self, top: &Fields<'_>) -> Option<Refine> {
        let fields = top.table("refine", &REFINE, &mut self.reader.report)?;
        let until = self.jq(&fields, "until", Sees::All);
        let score = self.jq(&fields, "score", Sees::All);
        let max_iterations = match fields.get("max_iterations") {
            None => Some(Templated::Fixed(ROUNDS)),
            Some(node) => {
                self.reader
                    .count(self.file, "max_iterations", node, self.names, Sees::Batch)
            }
        };
        let best = fields.text("otherwise").is_some_and(|(it, _)| it == "best");
        if best && fields.get("score").is_none() {
            let span = fields.key_span("otherwise");
            let problem = self
                .file
                .problem(span, "the best iteration is not defined")
                .label("`score` is missing");
            self.reader.report.add(problem.help(
                "write a jq program that returns a number, such as score = \".critique.score\"",
            ));
        }
        let message = fields.spot("message").and_then(|spot| {
            let sees = Sees::AllAnd(&["best"]);
            self.reader.template(&spot, self.names, sees)
        });
        if best && message.is_some() {
            let span = fields.key_span("message");
            let problem = self
                .file
                .problem(span, "`message` is for a loop that can fail")
                .label("with `otherwise = \"best\"` it never does");
            let help = "leave `message` out, or write otherwise = \"fail\"";
            self.reader.report.add(problem.help(help));
        }
        Some(Refine {
            message,
            until: until?,
            max_iterations: max_iterations?,
            best,
            score,
        })
    }

    /// Returns the path of an output with `*` for `{{ iteration }}`, if it has that. The outer `None` means a mistake.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    pub(crate) fn round_path(&mut self, text: &str, span: &Range<usize>) -> Option<Option<String>> {
        let pattern = self.names.is_refined.then(|| starred(text)).flatten();
        let Some(pattern) = pattern else {
            return Some(None);
        };
        let stars = pattern.matches('*').count();
        let in_folder = pattern
            .rsplit_once('/')
            .is_some_and(|(folder, _)| folder.contains('*'));
        if stars == 1 && !in_folder {
            return Some(Some(pattern));
        }
        let spot = LocatedText {
            file: self.file,
            key: "path",
            text,
            span: span.clone(),
        };
        let problem = spot
            .problem("`iteration` must occur once, in the file's own name, without a `*`")
            .label("this path");
        self.reader
            .report
            .add(problem.help("such as \"intermediate/drafts/draft_{{ iteration }}.json\""));
        None
    }
}

/// Returns the text with a `*` for each `{{ iteration }}`, if it has one.
fn starred(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find("{{") {
        let Some(end) = rest[start..].find("}}").map(|end| start + end + 2) else {
            break;
        };
        let inner = rest[start + 2..end - 2].trim();
        out.push_str(&rest[..start]);
        if inner == "iteration" {
            found = true;
            out.push('*');
        } else {
            out.push_str(&rest[start..end]);
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::starred;

    #[test]
    fn an_iteration_is_a_star() {
        let starred = |text| starred(text).unwrap_or_default();
        assert_eq!(starred("a/{{ n }}_{{iteration}}.json"), "a/{{ n }}_*.json");
        assert_eq!(starred("a/{{ n }}.json"), "");
        assert_eq!(starred("a/{{ iteration"), "");
    }
}
