//! Why a batch runs, in words.

use super::words::some_of;
use crate::model::fingerprint::{Change, FactKind};
use crate::model::reason::{Condition, Reason};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A reason in one line, without a full stop.
pub fn reason(reason: &Reason) -> String {
    match reason {
        Reason::NeverMade => "never made".to_owned(),
        Reason::Changed(changed) => change(changed),
        Reason::Deleted { path } => format!("output {path} was deleted"),
        Reason::Altered { path } => format!("output {path} was altered, and is made again"),
        Reason::Failed { outcome } => format!("failed when last tried: {outcome}"),
        Reason::NotValid { outcome } => format!("no longer valid: {outcome}"),
        Reason::Stale { input } => format!("input {input} changed while the batch ran"),
        Reason::Forced => "asked for with --force".to_owned(),
        Reason::ForcedBefore { interrupted, .. } => {
            let how = if *interrupted {
                "was interrupted"
            } else {
                "ended without rebuilding it"
            };
            format!("forced by an earlier run that {how}")
        }
    }
}

/// A change in one line.
pub fn change(change: &Change) -> String {
    let what = match change.fact.kind {
        FactKind::Step => format!("declaration of {}", change.fact.name),
        FactKind::Item => format!("value of {}", change.fact.name),
        FactKind::Check => format!("check {}", change.fact.name),
        FactKind::Conserve => "conservation".to_owned(),
        FactKind::Version => format!("version of step {}", change.fact.name),
        kind => format!("{} {}", kind.word(), change.fact.name),
    };
    let what = what.trim_end();
    if let (FactKind::Step, Some(old), Some(new)) = (change.fact.kind, &change.old, &change.new)
        && let Some(keys) = keys_that_differ(old, new)
    {
        return format!("{what} changed: {keys}");
    }
    match (&change.old, &change.new) {
        (None, Some(_)) => format!("{what} is new"),
        (Some(_), None) => format!("{what} is gone"),
        (Some(old), Some(new)) if new == "absent" => format!("{what} is gone (was {})", short(old)),
        (Some(old), Some(new)) if old == "absent" => format!("{what} is there ({})", short(new)),
        (Some(old), Some(new)) if is_digest(old) || is_digest(new) => {
            format!("{what} changed ({} → {})", short(old), short(new))
        }
        (Some(old), Some(new)) => format!("{what} {} → {}", short(old), short(new)),
        (None, None) => format!("{what} changed"),
    }
}

/// Of two declarations as JSON, the keys whose values differ.
fn keys_that_differ(old: &str, new: &str) -> Option<String> {
    let (old, new): (Value, Value) = (
        serde_json::from_str(old).ok()?,
        serde_json::from_str(new).ok()?,
    );
    let mut keys = Vec::new();
    differ(&old, &new, "", &mut keys);
    (!keys.is_empty()).then(|| some_of(keys.iter().map(String::as_str), 3))
}

fn differ(old: &Value, new: &Value, place: &str, keys: &mut Vec<String>) {
    let inside = |key: &str| {
        if place.is_empty() {
            key.to_owned()
        } else {
            format!("{place}.{key}")
        }
    };
    match (old, new) {
        (Value::Object(was), Value::Object(is)) => {
            let all: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
            for key in all {
                let value = |of: &Map<String, Value>| of.get(key).cloned().unwrap_or_default();
                differ(&value(was), &value(is), &inside(key), keys);
            }
        }
        // A list of one step is that step.
        (Value::Array(was), Value::Array(is)) if was.len() == 1 && is.len() == 1 => {
            differ(&was[0], &is[0], place, keys);
        }
        (Value::Array(was), Value::Array(is))
            if was.len() == is.len() && was.iter().chain(is).all(Value::is_object) =>
        {
            for (at, (was, is)) in was.iter().zip(is).enumerate() {
                differ(was, is, &inside(&(at + 1).to_string()), keys);
            }
        }
        _ if old == new => {}
        _ if place.is_empty() => keys.push(format!("{old} → {new}")),
        _ => keys.push(place.to_owned()),
    }
}

/// What must come true, in one line.
pub fn condition(condition: &Condition) -> String {
    match condition {
        Condition::OutputChanges { stage, path } => format!("{stage} makes another {path}"),
        Condition::ItemChanges { stage, path } => {
            format!("{stage} makes another {path}, and the batch's item in it is another")
        }
        Condition::NotValid => "the outputs are no longer valid".to_owned(),
    }
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    hex.len() >= 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The first digits of a digest; other values whole, unless they are long.
fn short(text: &str) -> String {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    if is_digest(text) {
        return format!("{}…", &hex[..8]);
    }
    if text.chars().count() > 60 {
        let start: String = text.chars().take(57).collect();
        return format!("{start}…");
    }
    text.to_owned()
}
