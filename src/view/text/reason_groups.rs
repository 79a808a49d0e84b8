//! Reasons in groups: each reason once, with its batches.

use crate::view::text::style::Style;
use crate::view::text::words::{NAMED, grouped, some_of};
use milepost_core::model::fingerprint::{Change, FactKind};
use milepost_core::model::reason::Reason;
use std::collections::BTreeSet;

/// The longest reason, in characters, whose batches are aligned in a column.
const ALIGNED: usize = 64;

/// How many reasons of a class are listed before the rest is counted.
const APART: usize = 3;

/// The class of a reason. Many reasons of a class are counted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A kind of reason, by its name.
    Own(&'static str),
    /// A changed fact of this kind.
    Fact(FactKind),
}

/// Returns the class of a reason.
pub(crate) fn class(reason: &Reason) -> Class {
    match reason {
        Reason::NeverMade => Class::Own("never run"),
        Reason::Changed(Change { fact, .. }) => Class::Fact(fact.kind),
        Reason::Deleted { .. } => Class::Own("deleted"),
        Reason::Renamed { .. } => Class::Own("renamed"),
        Reason::Modified { .. } => Class::Own("modified"),
        Reason::Failed { .. } => Class::Own("failed"),
        Reason::Stale { .. } => Class::Own("stale"),
        Reason::Forced | Reason::ForcedBefore { .. } => Class::Own("forced"),
    }
}

/// Reasons with their batches, in the order in which they were added.
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

    /// Returns a line for each reason, with its batches.
    pub(crate) fn lines(&self, style: Style) -> Vec<String> {
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
            format!("{text}{blanks}  {}", style.dim(names))
        };
        lines.iter().map(line).collect()
    }
}
