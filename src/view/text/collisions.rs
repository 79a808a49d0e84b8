//! Warnings about names that some file systems take for one.

use super::words::count;
use milepost_core::base::collision::{Collision, Distinction};
use milepost_core::base::visible::visible;
use milepost_core::plan::scan::Collisions;
use std::borrow::Cow;

/// The most pairs that a warning names.
const NAMED: usize = 3;

/// Returns a warning about the inputs and one about the outputs of a stage, if their names collide.
pub(crate) fn warnings(stage: &str, found: &Collisions) -> Vec<String> {
    let inputs = warning(stage, "inputs", &found.inputs, "rename one");
    let help = "change the values that the outputs are named after";
    let outputs = warning(stage, "outputs", &found.outputs, help);
    inputs.into_iter().chain(outputs).collect()
}

fn warning(stage: &str, what: &str, found: &[Collision], help: &str) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let mut pairs: Vec<String> = found.iter().take(NAMED).map(pair).collect();
    if found.len() > NAMED {
        let more = (found.len() - NAMED) as u64;
        pairs.push(count(more, "more pair", "more pairs"));
    }
    let pairs = pairs.join(", ");
    Some(format!(
        "stage `{stage}`: some file systems take {what} for one file: {pairs}; {help}"
    ))
}

fn pair(pair: &Collision) -> String {
    let (how, a, b) = match pair.by {
        Distinction::Case => ("letter case", visible(&pair.a), visible(&pair.b)),
        // The names look the same.
        Distinction::Normalization => (
            "Unicode normalization",
            Cow::from(escaped(&pair.a)),
            Cow::from(escaped(&pair.b)),
        ),
    };
    format!("`{a}` and `{b}` differ only in {how}")
}

/// Returns a name in ASCII: every other character is an escape of JSON.
fn escaped(name: &str) -> String {
    let mut shown = String::new();
    for c in name.chars() {
        match c {
            ' '..='~' => shown.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    shown.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    shown
}
