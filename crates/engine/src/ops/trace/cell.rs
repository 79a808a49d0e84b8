//! Reads a cell of a workbook: its value, the element of its row and the field of its column.

use super::key_paths::KeyPaths;
use super::station::TracedCell;
use super::tracer::BatchRef;
use crate::ops::project::error::OpsError;
use crate::ops::project::open_project::OpenProject;
use crate::run::{declared_columns, read_workbook_row};
use milepost_core::base::path::FilePath;
use milepost_core::expr::select::{PathStep, Select};
use milepost_formats::xlsx::{CellValue, parse_cell};
use serde_json::Value;

/// A cell, with the element and the field that it shows.
pub(super) struct ReadCell {
    pub(super) cell: TracedCell,
    /// The number of the row, from 1.
    pub(super) row: u32,
    /// The key of the element in the row.
    pub(super) key: Option<String>,
    /// The field of the element in the column.
    pub(super) field: Option<String>,
}

/// Reads a cell such as `Elements!G12`. `maker` is the batch that wrote the workbook.
///
/// # Errors
/// When the name is not a cell, or the workbook cannot be read.
pub(super) fn read_cell(
    opened: &OpenProject,
    file: &FilePath,
    maker: Option<BatchRef<'_>>,
    keys: &KeyPaths<'_>,
    name: &str,
) -> Result<ReadCell, OpsError> {
    let (sheet, column, row) = parse_cell(name).ok_or_else(|| {
        OpsError::Usage(format!(
            "`{name}` is not a cell: write the sheet and the cell, such as `Elements!G12`"
        ))
    })?;
    let shown = file.to_string();
    let source = opened.files.source(file);
    let source = source.map_err(OpsError::unreadable(&shown))?;
    let read = read_workbook_row(source.path(), &shown, &sheet, row);
    let read = read.map_err(OpsError::unreadable(&shown))?;
    let read = read.map_err(OpsError::unreadable(&shown))?;
    let stage = maker.and_then(|batch| opened.pipeline.stage(batch.stage));
    let declared = stage.map(|stage| declared_columns(stage, &sheet));
    let declared = declared.unwrap_or_default();
    let header = read.headers.get(&column).cloned();
    let program = declared
        .iter()
        .find(|it| Some(&it.header) == header.as_ref());
    let program = program.map(|it| it.program.clone());
    // The column of the keys: by the program that computes it, or by a header that reads like the field.
    let fields = keys_of(maker, keys);
    let is_key = |header: &str| {
        let declared = declared.iter().find(|it| it.header == header);
        let declared = declared.and_then(|it| plain_field(&it.program));
        fields.iter().any(|field| match &declared {
            Some(declared) => declared == field,
            None => letters_of(header) == letters_of(field),
        })
    };
    let key_column = read.headers.iter().find(|(_, header)| is_key(header));
    let key = key_column.and_then(|(letters, _)| text_of(read.cells.get(letters)?));
    let field = match &program {
        Some(program) => field_in(program, header.as_deref().unwrap_or_default()),
        None => header.clone().filter(|header| !is_key(header)),
    };
    Ok(ReadCell {
        cell: TracedCell {
            cell: format!("{column}{row}"),
            value: read.cells.get(&column).map(value_of),
            formula: read.formulas.get(&column).cloned(),
            sheet,
            header,
            program,
        },
        row,
        key,
        field,
    })
}

/// Returns the names of the fields with keys in the files of a batch.
fn keys_of(maker: Option<BatchRef<'_>>, keys: &KeyPaths<'_>) -> Vec<String> {
    let outputs = maker.map_or(&[][..], |batch| &batch.record.outputs);
    let outputs = outputs
        .iter()
        .map(|made| FilePath::workspace(made.path.clone()));
    let found = outputs.filter_map(|file| keys.get(&file)?.field());
    let mut found: Vec<String> = found.collect();
    if found.is_empty() {
        found = keys.fields();
    }
    found
}

/// Returns the field that a plain path selects: `material.name` for `.material.name`.
fn plain_field(program: &str) -> Option<String> {
    let select = Select::parse(program.trim()).ok()?;
    let names = select.steps().iter().map(|step| match step {
        PathStep::Field(name) => Some(name.as_str()),
        PathStep::Each => None,
    });
    let names: Vec<&str> = names.collect::<Option<_>>()?;
    (!names.is_empty()).then(|| names.join("."))
}

/// Returns the field of the row that a program shows: the only one that it mentions, or the one that the header is named after.
fn field_in(program: &str, header: &str) -> Option<String> {
    if let Some(field) = plain_field(program) {
        return Some(field);
    }
    let mut fields: Vec<&str> = Vec::new();
    for (dot, _) in program.match_indices('.') {
        // A dot after a name, a bracket or a string leads on from a field.
        let before = program[..dot].chars().next_back();
        let leads_on = before.is_some_and(|it| it.is_alphanumeric() || "_])?\"".contains(it));
        let name = &program[dot + 1..];
        let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = name.find(|char| !is_name(char)).unwrap_or(name.len());
        let name = &name[..end];
        if !leads_on && !name.is_empty() && !fields.contains(&name) {
            fields.push(name);
        }
    }
    let named = fields
        .iter()
        .find(|field| letters_of(field) == letters_of(header));
    let only = (fields.len() == 1).then(|| fields.first()).flatten();
    named.or(only).map(|field| (*field).to_owned())
}

/// Returns the letters and digits of a name in lower case: `globalid` for `GlobalId` and `global_id`.
fn letters_of(name: &str) -> String {
    let plain = name.chars().map(|char| match char {
        '²' => '2',
        '³' => '3',
        other => other,
    });
    let kept = plain.filter(|char| char.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

fn text_of(cell: &CellValue) -> Option<String> {
    match value_of(cell) {
        Value::String(text) => Some(text),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

fn value_of(cell: &CellValue) -> Value {
    match cell {
        CellValue::Empty => Value::Null,
        CellValue::Text(text) => Value::from(text.as_str()),
        // A whole number is shown as one.
        CellValue::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            Value::from(*number as i64)
        }
        CellValue::Number(number) => Value::from(*number),
        CellValue::Bool(is) => Value::from(*is),
        CellValue::Date => Value::from("a date"),
        CellValue::Error(error) => Value::from(error.as_str()),
        CellValue::Formula => Value::from("a formula that was not computed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_the_field_that_its_program_or_header_names() {
        let guarded = "if .part_of != null and $report.assemblies[.part_of].volume then null else .volume_m3 end";
        for (program, header, field) in [
            (
                ".material_primary.name",
                "Material",
                Some("material_primary.name"),
            ),
            (guarded, "Volume [m³]", Some("volume_m3")),
            ("[.references[]?.code]", "Code", Some("references")),
            (
                "$labels.function[.function // \"\"].en",
                "Function",
                Some("function"),
            ),
            (".a + .b", "Sum", None),
            ("1", "One", None),
        ] {
            assert_eq!(field_in(program, header).as_deref(), field, "{program}");
        }
    }
}
