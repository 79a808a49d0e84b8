//! Reads `each` of a step: the items for which an agent gets one request each.

use crate::decl::step::reader::StepReader;
use crate::decl::tables::located_text::LocatedText;
use crate::decl::tables::tree::{TomlKey, TomlNode};
use crate::decl::values::names::{Sees, check_name};
use crate::model::step::Items;

/// A name that `result` already has (the tokens used), so no item may take it.
const IN_RESULT: &str = "usage";

impl StepReader<'_, '_> {
    /// Returns the name of an item, and its program.
    pub(crate) fn item(&self) -> Option<&(TomlKey, TomlNode)> {
        self.fields.get("each")?.table()?.entries.first()
    }

    /// Reads the items. The outer `None` means a mistake.
    #[expect(clippy::option_option, reason = "absent and wrong are different")]
    pub(crate) fn items(&mut self) -> Option<Option<Items>> {
        let Some((key, node)) = self.item().cloned() else {
            return Some(None);
        };
        if self.fields.is_true("questions") {
            let span = self.fields.key_span("each");
            let problem = self.file.problem(
                span,
                "`each` and `questions` exclude each other: one sends a request for each item, the other many questions in one",
            );
            let also = self.fields.key_span("questions");
            self.reader
                .report
                .add(problem.also(self.file, also, "the other"));
            return None;
        }
        if !check_name(self.file, &mut self.reader.report, &key) {
            return None;
        }
        let taken = (key.name == IN_RESULT).then_some("what a request used");
        if let Some(what) = self.names.taken(&key.name).or(taken) {
            let message = format!("the name `{}` is already used", key.name);
            let problem = self.file.problem(key.span.clone(), message);
            self.reader.report.add(
                problem
                    .label(format!("it is {what}"))
                    .help("give the items another name"),
            );
            return None;
        }
        let spot = LocatedText {
            file: self.file,
            key: "each",
            text: node.text()?,
            span: node.span.clone(),
        };
        let program = self.reader.jq(&spot, self.names, Sees::All)?;
        Some(Some(Items {
            name: key.name,
            program,
        }))
    }
}
