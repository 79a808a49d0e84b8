//! The content of a file, or a part of it: a value, a table, or text. Of a large file, only what is shown is read.

use super::rows::{FileTable, csv_rows, json_rows, rows_of};
use milepost_core::base::path::FilePath;
use milepost_core::expr::select::Select;
use milepost_store::store::read;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Read as _};
use std::path::Path;

/// How much of a text is shown, and the largest JSON document that is shown as a tree, in bytes.
const SHOWN: u64 = 1 << 20;

/// The kind of a file, by its name and its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// It does not exist.
    Missing,
    /// A JSON document.
    Json,
    /// A table of text.
    Csv,
    /// Markdown.
    Markdown,
    /// A PNG image.
    Png,
    /// A JPEG image.
    Jpeg,
    /// A GIF image.
    Gif,
    /// A WebP image.
    Webp,
    /// An SVG image.
    Svg,
    /// A PDF.
    Pdf,
    /// Text.
    Text,
    /// No text.
    Binary,
}

/// The part of a file that is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileContent {
    /// The kind of file.
    pub kind: FileKind,
    /// The whole JSON document.
    pub value: Option<Value>,
    /// Rows of a table: of a CSV file, or of a list of objects.
    pub table: Option<FileTable>,
    /// The beginning of a text.
    pub text: Option<ShownText>,
    /// Why a part cannot be shown.
    pub problem: Option<String>,
}

/// The beginning of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownText {
    /// The text.
    pub text: String,
    /// The number of bytes after it.
    pub left_out: u64,
}

impl FileKind {
    /// Returns the kind by the ending of a name.
    pub(super) fn of(name: &str) -> Self {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending.to_ascii_lowercase().as_str() {
            "json" | "geojson" => Self::Json,
            "csv" | "tsv" => Self::Csv,
            "md" | "markdown" => Self::Markdown,
            "png" => Self::Png,
            "jpg" | "jpeg" => Self::Jpeg,
            "gif" => Self::Gif,
            "webp" => Self::Webp,
            "svg" => Self::Svg,
            "pdf" => Self::Pdf,
            _ => Self::Binary,
        }
    }

    /// Returns true for an image.
    pub fn is_image(self) -> bool {
        matches!(
            self,
            Self::Png | Self::Jpeg | Self::Gif | Self::Webp | Self::Svg
        )
    }
}

impl FileContent {
    fn of(kind: FileKind) -> Self {
        Self {
            kind,
            value: None,
            table: None,
            text: None,
            problem: None,
        }
    }
}

/// Reads what is shown of a file of a size. `stream` is the declared list of its items; `page` is the page of a table, from 1.
///
/// # Errors
/// When it cannot be read.
pub(super) fn content(
    place: &Path,
    file: &FilePath,
    size: Option<u64>,
    stream: Option<&Select>,
    page: u64,
) -> io::Result<FileContent> {
    let Some(size) = size else {
        return Ok(FileContent::of(FileKind::Missing));
    };
    let kind = FileKind::of(name(file));
    match kind {
        FileKind::Json => json(place, size, stream, page),
        FileKind::Csv => Ok(match csv_rows(place, page) {
            Ok(table) => FileContent {
                table: Some(table),
                ..FileContent::of(kind)
            },
            Err(error) => FileContent {
                problem: Some(error.to_string()),
                ..text(place, size, FileKind::Text)?
            },
        }),
        FileKind::Markdown => text(place, size, kind),
        FileKind::Binary => text(place, size, FileKind::Text),
        _ => Ok(FileContent::of(kind)),
    }
}

fn json(place: &Path, size: u64, stream: Option<&Select>, page: u64) -> io::Result<FileContent> {
    if size > SHOWN {
        return Ok(match json_rows(place, stream, page)? {
            Some(table) => FileContent {
                table: Some(table),
                ..FileContent::of(FileKind::Json)
            },
            None => text(place, size, FileKind::Text)?,
        });
    }
    let bytes = read::bytes(place)?;
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(value) => Ok(FileContent {
            table: rows_of(&value, page),
            value: Some(value),
            ..FileContent::of(FileKind::Json)
        }),
        Err(error) => Ok(FileContent {
            problem: Some(format!("this is not JSON: {error}")),
            ..text(place, size, FileKind::Text)?
        }),
    }
}

/// Reads the beginning of a text. A file that is not a text is binary.
fn text(place: &Path, size: u64, kind: FileKind) -> io::Result<FileContent> {
    let mut bytes = Vec::new();
    read::open(place)?.take(SHOWN).read_to_end(&mut bytes)?;
    let whole = match std::str::from_utf8(&bytes) {
        Ok(_) => bytes.len(),
        // A character that the limit cuts.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return Ok(FileContent::of(FileKind::Binary)),
    };
    bytes.truncate(whole);
    let Some(text) = String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
    else {
        return Ok(FileContent::of(FileKind::Binary));
    };
    Ok(FileContent {
        text: Some(ShownText {
            left_out: size.saturating_sub(text.len() as u64),
            text,
        }),
        ..FileContent::of(kind)
    })
}

/// Returns the name of a file, without folders.
pub(super) fn name(file: &FilePath) -> &str {
    let path = file.path.as_str();
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
