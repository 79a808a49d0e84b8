//! `init` as text: what was made, and how to go on.

use crate::ops::init::Initiated;

/// What was made.
pub fn init(data: &Initiated) -> String {
    let mut text = format!("made a project from `{}`: {}\n", data.template, data.about);
    for file in &data.files {
        text.push_str(&format!("  {file}\n"));
    }
    text.push_str("\nnext:\n");
    for command in &data.next {
        text.push_str(&format!("  {command}\n"));
    }
    text
}
