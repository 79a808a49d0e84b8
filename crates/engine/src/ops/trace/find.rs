//! Finds elements by a text in their records.

use super::key_paths::{KeyPaths, RecordPath};
use super::records::{haystack, key_of};
use super::search::Haystack;
use crate::ops::project::error::OpsError;
use crate::ops::project::open::open_recorded;
use crate::ops::project::open_project::state_for_reading;
use crate::ops::project::request::Request;
use milepost_core::base::path::FilePath;
use milepost_core::expr::json;
use milepost_core::expr::select::Select;
use milepost_store::store::read;
use serde::Serialize;
use serde_json::Value;
use std::io::BufReader;

/// The characters that are shown before and after the text.
const AROUND: usize = 50;

/// The elements whose records have a text.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FoundElements {
    /// The first ones, in the order of the file.
    pub elements: Vec<FoundElement>,
    /// True if there are more.
    pub more: bool,
}

/// An element whose record has a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundElement {
    /// The key.
    pub key: String,
    /// The part of the record around the text.
    pub text: String,
}

/// Enough elements were found.
struct Enough;

/// Finds the first elements whose records have a text, in any case, in the outputs of the last stage that has one. Nothing is written.
///
/// # Errors
/// When there is no project, or the workspace cannot be read.
pub fn find_elements(
    request: &Request,
    text: &str,
    most: usize,
) -> Result<FoundElements, OpsError> {
    let opened = open_recorded(request)?;
    let known = state_for_reading(&opened)?;
    let keys = KeyPaths::of(&opened);
    let needle = text.to_lowercase();
    let mut stages: Vec<_> = known.stages.values().collect();
    stages.sort_by_key(|stage| std::cmp::Reverse(stage.number));
    for stage in stages {
        let mut found = FoundElements::default();
        for (_, made) in stage.outputs() {
            let file = FilePath::workspace(made.path.clone());
            let path = keys.get(&file);
            // A file that is missing or unreadable is named when an element is traced.
            let there = haystack(&opened.files, &file).ok().flatten();
            if let (Some(path), Some(there)) = (path, there) {
                find_in(&there, &path, &needle, most, &mut found);
            }
        }
        if !found.elements.is_empty() {
            let hidden = |text: &str| opened.redactor.text(text).into_owned();
            for one in &mut found.elements {
                one.text = hidden(&one.text);
            }
            return Ok(found);
        }
    }
    Ok(FoundElements::default())
}

/// Adds the elements of a JSON file. A file of another format has none.
fn find_in(
    file: &Haystack,
    path: &RecordPath,
    needle: &str,
    most: usize,
    found: &mut FoundElements,
) {
    let Ok(open) = read::open(&file.path) else {
        return;
    };
    let (steps, tail) = path.split();
    let select = Select::of(steps.iter().cloned());
    // A file that cannot be read to its end is named when an element of it is traced.
    let _ = select.read_text::<Enough>(BufReader::new(open), &mut |text, _| {
        let lower = text.to_lowercase();
        let Some(place) = lower.find(needle) else {
            return Ok(());
        };
        let record = json::parse(text).unwrap_or_default();
        let key = match key_of(&record, tail) {
            Some(Value::String(key)) => key.clone(),
            Some(Value::Null) | None => return Ok(()),
            Some(other) => other.to_string(),
        };
        if found.elements.len() == most {
            found.more = true;
            return Err(Enough);
        }
        let text = field_with(&record, "", needle).unwrap_or_else(|| {
            let text = if lower.len() == text.len() {
                text
            } else {
                &lower
            };
            part(text, place, needle.len())
        });
        found.elements.push(FoundElement { key, text });
        Ok(())
    });
}

/// Returns the first field whose text has the needle, with its name.
fn field_with(value: &Value, name: &str, needle: &str) -> Option<String> {
    let below = |key: &str| match name {
        "" => key.to_owned(),
        name => format!("{name}.{key}"),
    };
    match value {
        Value::String(text) => {
            let place = text.to_lowercase().find(needle)?;
            let place = text.floor_char_boundary(place.min(text.len()));
            Some(format!("{name}: {}", part(text, place, needle.len())))
        }
        Value::Object(fields) => {
            let mut fields = fields.iter();
            fields.find_map(|(key, value)| field_with(value, &below(key), needle))
        }
        Value::Array(items) => items.iter().find_map(|item| field_with(item, name, needle)),
        _ => None,
    }
}

/// Returns the part of a record around a place, on one line.
fn part(text: &str, place: usize, length: usize) -> String {
    let start = text.floor_char_boundary(place.saturating_sub(AROUND));
    let end = text.ceil_char_boundary((place + length + AROUND).min(text.len()));
    let words: Vec<&str> = text[start..end].split_whitespace().collect();
    let (before, after) = (
        if start > 0 { "…" } else { "" },
        if end < text.len() { "…" } else { "" },
    );
    format!("{before}{}{after}", words.join(" "))
}
