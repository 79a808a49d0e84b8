//! `diff` as text: differences by output, record and field.

mod revision;

use crate::view::text::words::{count, grouped, shortened};
use milepost_core::base::visible::visible;
use milepost_engine::ops::inspect::diff::{Diff, OutputDiff};
use milepost_engine::ops::inspect::elements::{ElementsDiff, FieldChange, Keys};
use revision::revision;
use serde_json::Value;

/// The most characters that are shown of a value.
const SHOWN: usize = 60;

/// Returns the differences, or that there are none.
pub fn diff(data: &Diff) -> String {
    let mut text = format!("old: {}\nnew: {}\n", visible(&data.old), visible(&data.new));
    if data.digests_only && !data.outputs.is_empty() {
        text.push_str("only the digests of the old files are known, not their contents\n");
    }
    if let Some(found) = &data.revision {
        text.push_str(&revision(found));
        return text;
    }
    for output in &data.outputs {
        text.push_str(&of_output(output));
    }
    let same = count(data.same, "output is", "outputs are");
    if data.outputs.is_empty() {
        text.push_str(&format!("\nno differences: {same} the same\n"));
    } else if data.same > 0 {
        text.push_str(&format!("\n{same} the same\n"));
    }
    text
}

fn of_output(output: &OutputDiff) -> String {
    let mut text = format!(
        "\n{} of {}",
        visible(&output.output),
        visible(&output.stage)
    );
    text.push_str(&match output.same {
        0 => String::new(),
        same => format!(", {} the same", count(same, "file", "files")),
    });
    text.push('\n');
    for (sign, files) in [
        ('~', &output.different),
        ('+', &output.added),
        ('-', &output.removed),
    ] {
        for file in files {
            text.push_str(&format!("  {sign} {}\n", visible(file)));
        }
    }
    if output.more > 0 {
        text.push_str(&format!(
            "  and {}\n",
            count(output.more, "more file", "more files")
        ));
    }
    if let Some(elements) = &output.elements {
        text.push_str(&of_elements(elements));
    }
    for change in &output.values {
        text.push_str(&field(change));
    }
    if let Some(problem) = &output.problem {
        text.push_str(&format!(
            "  not compared by content: {}\n",
            visible(problem)
        ));
    }
    text
}

fn of_elements(elements: &ElementsDiff) -> String {
    let mut text = format!(
        "  by {}: {} the same, {} changed, {} added, {} removed\n",
        elements.key,
        grouped(elements.same),
        grouped(elements.changed),
        grouped(elements.added.count),
        grouped(elements.removed.count)
    );
    for change in &elements.changes {
        text.push_str(&format!("  ~ {}\n", visible(&change.key)));
        for one in &change.fields {
            text.push_str(&field(one));
        }
    }
    let more = elements.changed - elements.changes.len() as u64;
    if more > 0 {
        text.push_str(&format!("  ~ and {} more\n", grouped(more)));
    }
    text.push_str(&keys('+', &elements.added));
    text.push_str(&keys('-', &elements.removed));
    text
}

fn keys(sign: char, keys: &Keys) -> String {
    let mut text = String::new();
    for key in &keys.first {
        text.push_str(&format!("  {sign} {}\n", visible(key)));
    }
    let more = keys.count - keys.first.len() as u64;
    if more > 0 {
        text.push_str(&format!("  {sign} and {} more\n", grouped(more)));
    }
    text
}

fn field(change: &FieldChange) -> String {
    let place = if change.field.is_empty() {
        "/"
    } else {
        &change.field
    };
    format!(
        "      {}: {} → {}\n",
        visible(place),
        value(change.old.as_ref()),
        value(change.new.as_ref())
    )
}

/// Returns the beginning of a value; `nothing` if it is absent.
pub(crate) fn value(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "nothing".to_owned();
    };
    let text = value.to_string();
    let text = visible(&text).into_owned();
    shortened(text, SHOWN)
}
