//! Finds the record of an element in a file: its place, its value, and how many records have the same key.

use super::key_paths::RecordPath;
use super::search::{Haystack, Spellings, line_around, line_of};
use super::station::TracedRecord;
use crate::ops::inspect::elements::FieldChange;
use milepost_core::base::path::FilePath;
use milepost_core::expr::json::{self, Json, TakeError};
use milepost_core::expr::pointer::{self, below};
use milepost_core::expr::scope::{self, Format};
use milepost_core::expr::select::{PathStep, ReadError, Select, SelectError};
use milepost_store::store::files::Files;
use milepost_store::store::read;
use serde_json::Value;
use std::io::{self, BufReader};

/// The largest file that is read from its beginning to count its records.
const COUNTED: u64 = 16 << 20;

/// The longest record that is searched around a key.
const LONGEST: u64 = 64 << 20;

/// A record that was found.
#[derive(Debug, Clone)]
pub(super) struct FoundRecord {
    /// The JSON pointer; `None` if the records before it were not counted.
    pub(super) pointer: Option<String>,
    /// The line, from 1.
    pub(super) line: Option<u64>,
    /// The offset in bytes.
    pub(super) offset: Option<u64>,
    pub(super) value: Value,
    /// The number of other records with the key; `None` if they were not counted.
    pub(super) others: Option<u64>,
}

impl FoundRecord {
    /// Returns the record as a station has it.
    pub(super) fn traced(self, field: Option<&str>, changes: Vec<FieldChange>) -> TracedRecord {
        TracedRecord {
            field: field.and_then(|field| field_of(&self.value, field)),
            pointer: self.pointer,
            line: self.line,
            offset: self.offset,
            value: self.value,
            changes,
            asked: None,
            others: self.others,
        }
    }
}

/// A file that does not have the form that its declaration demands.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misfit(String);

impl Misfit {
    fn of(error: &impl ToString) -> Self {
        Self(error.to_string())
    }
}

/// Finds the record with a key. `near` is the offset of the key in a large file.
///
/// # Errors
/// When the file cannot be read, or does not have the declared form.
pub(super) fn find_record(
    files: &Files,
    file: &FilePath,
    haystack: &Haystack,
    path: &RecordPath,
    key: &str,
    near: u64,
) -> Result<Option<FoundRecord>, Misfit> {
    if path.reading.format != Format::Json {
        return in_value(files, file, path, key);
    }
    let (_, tail) = path.split();
    if haystack.size > COUNTED {
        // A line that is a record is taken as it is: reading what precedes it would take seconds.
        let (offset, line) = line_around(haystack, near, LONGEST).map_err(|e| Misfit::of(&e))?;
        let record = line.trim_ascii();
        let offset = offset + (record.as_ptr() as usize - line.as_ptr() as usize) as u64;
        let record = record.strip_suffix(b",").unwrap_or(record);
        if let Ok(value) = json::parse_bytes(record)
            && has_key(&value, tail, key)
        {
            let line = line_of(haystack, offset).map_err(|e| Misfit::of(&e))?;
            return Ok(Some(FoundRecord {
                pointer: None,
                line: Some(line),
                offset: Some(offset),
                value,
                others: None,
            }));
        }
    }
    in_stream(haystack, path, key)
}

/// Reads a JSON file from its beginning.
fn in_stream(
    haystack: &Haystack,
    path: &RecordPath,
    key: &str,
) -> Result<Option<FoundRecord>, Misfit> {
    let (steps, tail) = path.split();
    let spellings = Spellings::in_document(key, true);
    let mut found: Option<FoundRecord> = None;
    let mut index = 0_u64;
    let open = read::open(&haystack.path).map_err(|e| Misfit::of(&e))?;
    let select = Select::of(steps.iter().cloned());
    let read = select.read_text::<Misfit>(BufReader::new(open), &mut |text, offset| {
        index += 1;
        if !spellings.is_in(text.as_bytes()) {
            return Ok(());
        }
        let value = json::parse(text).map_err(|error| Misfit::of(&error))?;
        if !has_key(&value, tail, key) {
            return Ok(());
        }
        match &mut found {
            Some(first) => first.others = first.others.map(|others| others + 1),
            None => {
                found = Some(FoundRecord {
                    pointer: pointer_of(steps, index - 1),
                    line: None,
                    offset: Some(offset),
                    value,
                    others: Some(0),
                });
            }
        }
        Ok(())
    });
    match read {
        Ok(_) => {}
        Err(ReadError::Each(misfit)) => return Err(misfit),
        Err(error) => return Err(Misfit::of(&error)),
    }
    if let Some(found) = &mut found {
        let line = line_of(haystack, found.offset.unwrap_or(0));
        found.line = Some(line.map_err(|e| Misfit::of(&e))?);
    }
    Ok(found)
}

/// Reads a table or another document whole.
fn in_value(
    files: &Files,
    file: &FilePath,
    path: &RecordPath,
    key: &str,
) -> Result<Option<FoundRecord>, Misfit> {
    let source = files.source(file).map_err(|e| Misfit::of(&e))?;
    let content = scope::parse(&source.name(), &*source, &path.reading);
    let content = content.map_err(|e| Misfit::of(&e))?;
    let lines = scope::lines(&*source, &path.reading).map_err(|e| Misfit::of(&e))?;
    let (steps, tail) = path.split();
    let mut all = Vec::new();
    records(&content, steps, String::new(), &mut all);
    let mut with_key = all
        .into_iter()
        .enumerate()
        .filter(|(_, (_, record))| has_key(record, tail, key));
    let Some((index, (pointer, value))) = with_key.next() else {
        return Ok(None);
    };
    Ok(Some(FoundRecord {
        pointer: Some(pointer),
        line: lines.get(index).copied(),
        offset: None,
        value: value.clone(),
        others: Some(with_key.count() as u64),
    }))
}

/// Collects the values that steps select, with their pointers. What does not fit is skipped.
fn records<'v>(
    value: &'v Value,
    steps: &[PathStep],
    pointer: String,
    found: &mut Vec<(String, &'v Value)>,
) {
    let Some((step, rest)) = steps.split_first() else {
        found.push((pointer, value));
        return;
    };
    let below = |name: &str| pointer::below(&pointer, name);
    match (step, value) {
        (PathStep::Field(name), Value::Object(fields)) => {
            if let Some(inner) = fields.get(name) {
                records(inner, rest, below(name), found);
            }
        }
        (PathStep::Each, Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                records(item, rest, below(&index.to_string()), found);
            }
        }
        (PathStep::Each, Value::Object(fields)) => {
            for (name, item) in fields {
                records(item, rest, below(name), found);
            }
        }
        _ => {}
    }
}

/// Returns the question about the element with this number in a file of `split`; `None` if the file has none about it.
pub(super) fn question_of(haystack: &Haystack, element: u64) -> Option<Value> {
    let open = read::open(&haystack.path).ok()?;
    let select = Select::parse(".questions[]").ok()?;
    let mut question = None;
    let read = select.read::<()>(BufReader::new(open), &mut |mut entry| {
        let about = entry.get("elements").and_then(Value::as_array);
        if about.is_some_and(|about| about.iter().any(|it| it.as_u64() == Some(element))) {
            question = entry.get_mut("question").map(Value::take);
        }
        Ok(())
    });
    // A file without questions is none of `split`.
    read.ok().and(question)
}

/// Returns the value that the steps of a key lead to; `None` if there is none.
pub(super) fn key_of<'v>(record: &'v Value, tail: &[PathStep]) -> Option<&'v Value> {
    tail.iter().try_fold(record, |at, step| match step {
        PathStep::Field(name) => at.get(name),
        PathStep::Each => None,
    })
}

fn has_key(record: &Value, tail: &[PathStep], key: &str) -> bool {
    match key_of(record, tail) {
        Some(Value::String(text)) => text == key,
        Some(Value::Null) | None => false,
        Some(other) => format!("{other}") == key,
    }
}

/// Returns the pointer of the record with this number; `None` if it is in a list inside a list.
fn pointer_of(steps: &[PathStep], index: u64) -> Option<String> {
    let lists = steps.iter().filter(|step| **step == PathStep::Each).count();
    let index = index.to_string();
    (lists <= 1).then(|| {
        steps
            .iter()
            .fold(String::new(), |pointer, step| match step {
                PathStep::Field(name) => below(&pointer, name),
                PathStep::Each => below(&pointer, &index),
            })
    })
}

/// Returns the value at a JSON pointer with its offset, without reading what comes after it; `None` if there is none.
///
/// # Errors
/// When the file cannot be read, or is not JSON up to there.
pub(super) fn value_at(
    haystack: &Haystack,
    tokens: &[String],
) -> Result<Option<(Value, u64)>, Misfit> {
    let open = read::open(&haystack.path).map_err(|e| Misfit::of(&e))?;
    let mut text = Json::new(open);
    if !text
        .enter_all(tokens)
        .map_err(|e| Misfit::of(&SelectError::from(e)))?
    {
        return Ok(None);
    }
    let taken = text.value(|text, offset| {
        let value = json::parse(text).map_err(TakeError::<Misfit>::Text)?;
        Ok((value, offset))
    });
    taken
        .map_err(|e| Misfit::of(&SelectError::from(e)))?
        .map(Some)
}

/// Returns the value of a field: a name, names with dots, or a JSON pointer.
pub(super) fn field_of(record: &Value, field: &str) -> Option<Value> {
    if let Some(value) = record.get(field) {
        return Some(value.clone());
    }
    let pointer = if field.starts_with('/') {
        field.to_owned()
    } else {
        format!("/{}", field.replace('.', "/"))
    };
    record.pointer(&pointer).cloned()
}

/// Returns the size and the place of a file to search; `None` if it does not exist.
///
/// # Errors
/// When it may not be read.
pub(super) fn haystack(files: &Files, file: &FilePath) -> io::Result<Option<Haystack>> {
    let path = files.resolve(file).map_err(io::Error::other)?;
    match read::open(&path).and_then(|open| open.metadata()) {
        Ok(found) => Ok(Some(Haystack {
            path,
            size: found.len(),
        })),
        // The run that published it may have moved it meanwhile.
        Err(_) if files.resolve(file).is_ok_and(|now| now != path) => haystack(files, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use milepost_core::base::path::RelPath;
    use milepost_core::expr::scope::Reading;
    use std::fmt::Write as _;

    /// Finds the key `id-7` in a file of these lines.
    fn found(text: &str) -> Option<FoundRecord> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.json"), text).unwrap();
        let files = Files::new(folder.path(), folder.path());
        let file = FilePath::workspace(RelPath::parse("a.json").unwrap());
        let haystack = haystack(&files, &file).unwrap().unwrap();
        let path = RecordPath {
            key: Select::parse(".all[].id").unwrap(),
            reading: Reading {
                format: Format::Json,
                columns: None,
            },
        };
        let near = text.find("\"id-7\"").unwrap_or_default() as u64;
        find_record(&files, &file, &haystack, &path, "id-7", near).unwrap()
    }

    #[test]
    fn a_record_of_a_large_file_is_read_without_those_before_it() {
        let filler = "x".repeat(1 << 20);
        let mut text = "{\"all\":[\n".to_owned();
        for number in 0..20 {
            writeln!(text, "{{\"id\":\"id-{number}\",\"filler\":\"{filler}\"}},").unwrap();
        }
        text.push_str("{\"id\":\"last\"}\n]}");
        let record = found(&text).unwrap();
        let offset = text.find("{\"id\":\"id-7\"").unwrap() as u64;
        assert_eq!(
            (record.line, record.offset, record.pointer, record.others),
            (Some(9), Some(offset), None, None)
        );
        assert_eq!(record.value["id"], "id-7");

        // On one line, it is read from the beginning.
        let record = found(&text.replace('\n', "")).unwrap();
        assert_eq!(
            (record.line, record.pointer.as_deref(), record.others),
            (Some(1), Some("/all/7"), Some(0))
        );
    }

    #[test]
    fn only_the_key_itself_counts() {
        assert!(
            found(r#"{"all":[{"id":"a","of":"id-7"},{"id":"b","x":{"id":"id-7"}}]}"#).is_none()
        );
        let twice = found(r#"{"all":[{"id":"a"},{"id":"id-7","n":1},{"id":"id-7"}]}"#).unwrap();
        assert_eq!(
            (twice.others, twice.pointer.as_deref()),
            (Some(1), Some("/all/1"))
        );
    }

    #[test]
    fn a_pointer_leads_to_a_value_or_to_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let text = r#"{"a~/b": [1, {"c": 2}], "d": 3}"#;
        std::fs::write(&path, text).unwrap();
        let size = text.len() as u64;
        let at = |pointer: &str| {
            let path = path.clone();
            let tokens = milepost_core::expr::pointer::steps(pointer)?;
            let found = value_at(&Haystack { path, size }, &tokens).unwrap();
            found.map(|(value, offset)| (value.to_string(), offset))
        };
        assert_eq!(at("/a~0~1b/1/c"), Some(("2".to_owned(), 19)));
        assert_eq!(at("/d"), Some(("3".to_owned(), 29)));
        for pointer in [
            "a",
            "/a",
            "/a~0~1b/2",
            "/a~0~1b/x",
            "/a~0~1b/0/0",
            "/d/",
            "/99999999999999999999",
        ] {
            assert_eq!(at(pointer), None, "{pointer}");
        }
    }
}
