//! Reads `policy`, `limits` and `estimate` of a stage.

use crate::base::size::parse_size;
use crate::decl::keys::{ESTIMATE, POLICY, STAGE_LIMITS};
use crate::decl::stage::{StageReader, first_output};
use crate::decl::tables::fields::Fields;
use crate::decl::tables::hints;
use crate::decl::tables::tree::{TomlNode, Val};
use crate::decl::values::names::Sees;
use crate::model::policy::{Concurrency, MaxFailures, OnFailure, OnModified, Policy};
use crate::model::stage::{Estimate, Templated};
use std::time::Duration;

impl StageReader<'_, '_, '_> {
    pub(crate) fn policy(&mut self, top: &Fields<'_>) -> Policy {
        let mut policy = Policy::default();
        let Some(fields) = top.table("policy", &POLICY, &mut self.reader.report) else {
            return policy;
        };
        policy.concurrency = fields
            .get("concurrency")
            .and_then(|node| self.concurrency(node));
        policy.timeout = fields
            .spot("timeout")
            .and_then(|spot| self.reader.duration(&spot, self.names, Sees::Start));
        let is = |key: &str, word: &str| fields.text(key).is_some_and(|(text, _)| text == word);
        if is("on_failure", "continue") {
            policy.on_failure = OnFailure::Continue;
        }
        if is("altered", "redo") {
            policy.altered = OnModified::Redo;
        }
        policy.placeholder = self.jq(&fields, "placeholder", Sees::All);
        if let Some(((name, path), node)) = first_output(top).zip(fields.get("placeholder"))
            && path.contains('*')
        {
            let message = format!(
                "`placeholder` needs one file, and the first output, `{name}`, has a `*` in its path"
            );
            let problem = self.file.problem(node.span.clone(), message);
            self.reader
                .report
                .add(problem.label("one record cannot replace them").help(
                "leave `placeholder` out: `on_failure = \"continue\"` continues without the batch",
            ));
        }
        policy.max_failures = fields
            .get("max_failures")
            .and_then(|node| match node.value {
                Val::Int(number) => u64::try_from(number).ok().map(MaxFailures::Count),
                Val::Float(share) => Some(MaxFailures::Share(share)),
                _ => None,
            });
        policy
    }

    /// Reads the limits of an attempt of a step: the memory in bytes, and the time.
    pub(crate) fn limits(
        &mut self,
        top: &Fields<'_>,
    ) -> (Option<u64>, Option<Templated<Duration>>) {
        let Some(fields) = top.table("limits", &STAGE_LIMITS, &mut self.reader.report) else {
            return (None, None);
        };
        let memory = fields.spot("memory").and_then(|spot| {
            let size = parse_size(spot.text);
            size.map_err(|error| self.reader.report.add(spot.problem(error.to_string())))
                .ok()
        });
        let timeout = fields
            .spot("timeout")
            .and_then(|spot| self.reader.duration(&spot, self.names, Sees::Batch));
        (memory, timeout)
    }

    /// Returns the estimate for a batch.
    pub(crate) fn estimate(&mut self, top: &Fields<'_>) -> Option<Estimate> {
        let fields = top.table("estimate", &ESTIMATE, &mut self.reader.report)?;
        Some(Estimate {
            tokens: fields.integer("tokens")?,
            input_share: fields.number("input_share").unwrap_or(0.5),
        })
    }

    fn concurrency(&mut self, node: &TomlNode) -> Option<Concurrency> {
        let Some(table) = node.table() else {
            return self
                .reader
                .count(self.file, "concurrency", node, self.names, Sees::Start)
                .map(Concurrency::Batches);
        };
        let (key, inner) = table.entries.first()?;
        if !self.names.each.iter().any(|(name, _)| *name == key.name) {
            let each: Vec<&str> = self
                .names
                .each
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            let problem = self.file.problem(
                key.span.clone(),
                format!("there is no `[each.{}]` in this stage", key.name),
            );
            let help = if each.is_empty() {
                "write a number, the maximum of concurrent batches".to_owned()
            } else {
                format!("available: {}", hints::or(each))
            };
            self.reader.report.add(problem.help(help));
            return None;
        }
        let is_count = match &inner.value {
            Val::Int(number) => *number >= 1,
            Val::Text(text) => text.contains("{{"),
            _ => false,
        };
        if !is_count {
            let problem = self.file.problem(
                inner.span.clone(),
                format!(
                    "`{}` must be an integer of at least 1, or a template",
                    key.name
                ),
            );
            self.reader
                .report
                .add(problem.label(format!("this is {}", inner.value.described())));
            return None;
        }
        let count = self
            .reader
            .count(self.file, "concurrency", inner, self.names, Sees::Start)?;
        Some(Concurrency::Values(key.name.clone(), count))
    }
}
