//! Reasons as text: why a batch runs.

use milepost_core::base::visible::visible;
use milepost_core::model::fingerprint::{Change, FactKind};
use milepost_core::model::reason::{Condition, Reason};
use milepost_core::model::stage::OVERRIDES;

/// The longest value that is shown whole, in characters.
const LONG: usize = 60;

/// The characters of a long value shown before the first difference.
const BEFORE: usize = 20;

/// Returns a reason in one line, without a full stop.
pub(crate) fn reason(reason: &Reason) -> String {
    let text = match reason {
        Reason::NeverMade => "never run".to_owned(),
        Reason::Changed(changed) => change(changed),
        Reason::Deleted { path } => format!("output {path} was deleted"),
        Reason::Renamed { from, to } => format!("output {from} was renamed to {to}"),
        Reason::Modified { path } => format!("output {path} was modified by hand and is rebuilt"),
        Reason::Failed { outcome } => format!("failed last time: {outcome}"),
        Reason::Stale { input } => format!("input {input} changed while the batch ran"),
        Reason::Forced => "forced with --force".to_owned(),
        Reason::ForcedBefore { interrupted, .. } => {
            let how = if *interrupted {
                "was interrupted"
            } else {
                "ended without rebuilding it"
            };
            format!("forced by an earlier run that {how}")
        }
    };
    visible(&text).into_owned()
}

/// Returns a change in one line.
pub fn change(change: &Change) -> String {
    let name = &change.fact.name;
    let what = match change.fact.kind {
        // The path of a part of the declaration needs no further word.
        FactKind::Step | FactKind::Check | FactKind::Conserve if change.of.is_some() => {
            name.to_string()
        }
        FactKind::Step => format!("declaration of {name}"),
        FactKind::Item => format!("value of {name}"),
        FactKind::Check => format!("check {name}"),
        FactKind::Conserve => "conservation".to_owned(),
        FactKind::Workspace if &**name == OVERRIDES => {
            "list of outputs modified by hand".to_owned()
        }
        FactKind::Version => format!("version of step {name}"),
        FactKind::File => name.to_string(),
        kind => format!("{} {name}", kind.word()),
    };
    let what = what.trim_end();
    let text = match (&change.old, &change.new) {
        (None, Some(new)) if change.of.is_some() && !is_digest(new) => {
            format!("{what} is new: {}", short(new))
        }
        (Some(old), None) if change.of.is_some() && !is_digest(old) => {
            format!("{what} was removed (was {})", short(old))
        }
        (None, Some(_)) => format!("{what} is new"),
        (Some(_), None) => format!("{what} was removed"),
        (Some(_), Some(_)) if change.fact.kind == FactKind::File => format!("{what} changed"),
        (Some(old), Some(new)) if new == "absent" => {
            format!("{what} was removed (was {})", short(old))
        }
        (Some(old), Some(new)) if old == "absent" => format!("{what} was added ({})", short(new)),
        (Some(old), Some(new)) if is_digest(old) || is_digest(new) => {
            format!("{what} changed ({} → {})", short(old), short(new))
        }
        (Some(old), Some(new)) => {
            let (old, new) = apart(old, new);
            let changed = if change.of.is_some() { " changed:" } else { "" };
            format!("{what}{changed} {old} → {new}")
        }
        (None, None) => format!("{what} changed"),
    };
    visible(&text).into_owned()
}

/// Shortens two values, so that the first difference is visible.
fn apart(old: &str, new: &str) -> (String, String) {
    let same = old
        .chars()
        .zip(new.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let is_long = |text: &str| text.chars().count() > LONG;
    if !is_long(old) && !is_long(new) || same <= BEFORE {
        return (short(old), short(new));
    }
    let cut = |text: &str| -> String {
        let rest: String = text.chars().skip(same - BEFORE).collect();
        format!("…{}", short(&rest))
    };
    (cut(old), cut(new))
}

/// Returns a condition in one line.
pub(crate) fn condition(condition: &Condition) -> String {
    let text = match condition {
        Condition::OutputChanges { stage, path } => format!("{stage} changes {path}"),
        Condition::ItemChanges { stage, path } => {
            format!("{stage} changes {path}, including the item of the batch")
        }
        Condition::BudgetAllows => "the budget allows its calls".to_owned(),
        Condition::Answered { agents } => {
            format!("{} answered its questions", agents.join(" and "))
        }
        Condition::StageCompletes { stage } => format!("{stage} completes"),
    };
    visible(&text).into_owned()
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    hex.len() >= 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Shortens a digest or a long value.
fn short(text: &str) -> String {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    if is_digest(text) {
        return format!("{}…", &hex[..8]);
    }
    let text = text.replace('\n', " ");
    if text.chars().count() > LONG {
        let start: String = text.chars().take(LONG - 3).collect();
        return format!("{start}…");
    }
    text
}
