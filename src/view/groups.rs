//! Reasons told together: each once, with the batches that have it.

use super::paint::Paint;
use super::plan::NAMED;
use super::words::{grouped, some_of};
use milepost_core::model::fingerprint::{Change, FactKind};
use milepost_core::model::reason::Reason;
use std::collections::BTreeSet;

/// Reasons up to this length have the batches beside them in one column.
const ALIGNED: usize = 64;

/// How many reasons of one kind are told apart.
const APART: usize = 3;

/// What reasons have in common that are told together when there are many.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A reason of its own.
    Own(&'static str),
    /// A fact of this kind differs.
    Fact(FactKind),
}

/// What a reason has in common with others.
pub(crate) fn class(reason: &Reason) -> Class {
    match reason {
        Reason::NeverMade => Class::Own("never run"),
        Reason::Changed(Change { fact, .. }) => Class::Fact(fact.kind),
        Reason::Deleted { .. } => Class::Own("deleted"),
        Reason::Altered { .. } => Class::Own("modified"),
        Reason::Failed { .. } => Class::Own("failed"),
        Reason::NotValid { .. } => Class::Own("not valid"),
        Reason::Stale { .. } => Class::Own("stale"),
        Reason::Forced | Reason::ForcedBefore { .. } => Class::Own("forced"),
    }
}

/// Reasons with the batches that have them, in the order in which they were met.
#[derive(Default)]
pub(crate) struct Groups(Vec<Group>);

struct Group {
    class: Class,
    texts: Vec<(String, Vec<String>)>,
}

impl Groups {
    /// Adds a reason of a batch.
    pub(crate) fn add(&mut self, batch: &str, class: Class, text: String) {
        let at = self
            .0
            .iter()
            .position(|group| group.class == class)
            .unwrap_or_else(|| {
                self.0.push(Group {
                    class,
                    texts: Vec::new(),
                });
                self.0.len() - 1
            });
        let texts = &mut self.0[at].texts;
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, batches)) => batches.push(batch.to_owned()),
            None => texts.push((text, vec![batch.to_owned()])),
        }
    }

    /// A line for each reason, and beside it the batches that have it.
    pub(crate) fn lines(&self, paint: Paint) -> Vec<String> {
        let mut lines: Vec<(String, String)> = Vec::new();
        for group in &self.0 {
            let few = group.texts.len() <= APART + 1;
            let shown = if few { group.texts.len() } else { APART };
            for (text, batches) in &group.texts[..shown] {
                let names = batches.iter().map(String::as_str);
                let names = some_of(names.filter(|name| !name.is_empty()), NAMED);
                lines.push((text.clone(), names));
            }
            let rest = &group.texts[shown..];
            if !rest.is_empty() {
                let all: BTreeSet<&String> = rest.iter().flat_map(|(_, batches)| batches).collect();
                let text = format!("and {} more of this kind", grouped(rest.len() as u64));
                let names = some_of(all.into_iter().map(String::as_str), NAMED);
                lines.push((text, names));
            }
        }
        let length = |text: &str| text.chars().count();
        let named = lines.iter().filter(|(_, names)| !names.is_empty());
        let widths = named
            .map(|(text, _)| length(text))
            .filter(|width| *width <= ALIGNED);
        let width = widths.max().unwrap_or(0);
        let line = |(text, names): &(String, String)| {
            if names.is_empty() {
                return text.clone();
            }
            let blanks = " ".repeat(width.saturating_sub(length(text)));
            format!("{text}{blanks}  {}", paint.dim(names))
        };
        lines.iter().map(line).collect()
    }
}
