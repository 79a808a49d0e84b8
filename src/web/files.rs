//! The viewer of a file, and its bytes as they are.

use super::request::PageRequest;
use super::response::{PageResponse, WebError};
use super::site::Site;
use crate::page::markdown::markdown;
use crate::page::tree::tree;
use crate::page::value;
use milepost_core::expr::pointer;
use milepost_engine::ops::inspect::file::{FileKind, FileTable, FileView, FileViolation, TableRow};
use minijinja::context;
use serde::Serialize;
use serde_json::Value;

/// How much of a cell is shown, in characters.
const SHOWN: usize = 200;

/// A row of a table.
#[derive(Serialize)]
struct ShownRow {
    number: u64,
    /// Violations of the row itself.
    wrong: Vec<String>,
    cells: Vec<Cell>,
}

/// A cell of a table.
#[derive(Serialize)]
struct Cell {
    text: String,
    is_number: bool,
    /// Violations of its value.
    wrong: Vec<String>,
}

/// Shows a file.
pub(super) fn file(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let path = request.required("path")?;
    let page = request.number("page")?.unwrap_or(1);
    let file = site.live.file(path, page)?;
    let violations = file.check.iter().flat_map(|check| &check.violations);
    let violations: Vec<FileViolation> = violations.cloned().collect();
    let content = &file.content;
    let table = content.table.as_ref();
    let url = |page: u64| {
        let number = page.to_string();
        site.url("file", &[("path", path), ("page", &number)])
    };
    let data = context! {
        kind => value(content.kind),
        is_image => content.kind.is_image(),
        raw => file.is_sent.then(|| site.url("raw", &[("path", path)])),
        tree => content.value.as_ref().map(|document| tree(document, &violations)),
        rows => value(table.map(|table| rows(table, &violations))),
        previous => table.filter(|table| table.page > 1).map(|table| url(table.page - 1)),
        next => table.filter(|table| table.has_more).map(|table| url(table.page + 1)),
        markdown => markdown_of(&file),
        path => file.path.clone(),
        absolute => file.absolute.clone(),
        size => file.size,
        digest => file.digest.map(|digest| digest.to_string()),
        made => value(&file.made),
        table => value(table.map(|table| (&table.columns, table.more_columns, table.is_cut))),
        text => value(&content.text),
        problem => content.problem.clone(),
        check => value(&file.check),
    };
    let page = site.page("file.html", "", path, data)?;
    Ok(match content.kind {
        FileKind::Pdf => page.with_frames(),
        _ => page,
    })
}

/// Sends the bytes of a file.
pub(super) fn raw(site: &Site, request: &PageRequest) -> Result<PageResponse, WebError> {
    let file = site.live.raw(request.required("path")?)?;
    let content_type = match file.kind {
        FileKind::Png => "image/png",
        FileKind::Jpeg => "image/jpeg",
        FileKind::Gif => "image/gif",
        FileKind::Webp => "image/webp",
        FileKind::Svg => "image/svg+xml",
        FileKind::Pdf => "application/pdf",
        _ => "application/octet-stream",
    };
    let is_shown = file.kind.is_image() || file.kind == FileKind::Pdf;
    Ok(PageResponse::file(
        content_type,
        file.bytes,
        &file.name,
        !is_shown,
    ))
}

fn markdown_of(file: &FileView) -> Option<minijinja::Value> {
    let text = file.content.text.as_ref()?;
    (file.content.kind == FileKind::Markdown).then(|| markdown(&text.text))
}

fn rows(table: &FileTable, violations: &[FileViolation]) -> Vec<ShownRow> {
    let at = |pointer: &str| -> Vec<String> {
        let of = violations.iter().filter(|one| one.pointer == pointer);
        of.map(|one| one.message.clone()).collect()
    };
    // Violations of values inside a cell are beside the cell.
    let below = |pointer: &str| -> Vec<String> {
        let inside = format!("{pointer}/");
        let of = violations
            .iter()
            .filter(|one| one.pointer.starts_with(&inside));
        of.map(|one| format!("{}: {}", &one.pointer[inside.len() - 1..], one.message))
            .collect()
    };
    let row = |row: &TableRow| ShownRow {
        number: row.number,
        wrong: if row.pointer.is_empty() {
            Vec::new()
        } else {
            at(&row.pointer)
        },
        cells: row
            .cells
            .iter()
            .zip(&table.columns)
            .map(|(cell, column)| {
                let pointer = pointer::below(&row.pointer, column);
                let mut wrong = Vec::new();
                if !row.pointer.is_empty() && !violations.is_empty() {
                    wrong.extend(at(&pointer));
                    wrong.extend(below(&pointer));
                }
                Cell {
                    text: shown(cell.as_ref()),
                    is_number: cell.as_ref().is_some_and(Value::is_number),
                    wrong,
                }
            })
            .collect(),
    };
    table.rows.iter().map(row).collect()
}

/// Returns a value in a line. An absent one is empty.
fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None => return String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    crate::page::cut(&text, SHOWN)
}
