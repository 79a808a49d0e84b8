//! Cuts a workbook down to some rows of one sheet, so that the reader of cells does not read the others.
//!
//! Rows are found by their tags: the text of a cell has no `<`. A sheet in which that is not certain is not cut.

use super::{HEADER_ROWS, ROWS};
use memchr::memmem::{Finder, find};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader as XmlReader, XmlVersion};
use std::io::{self, Cursor, Read, Seek, Write};
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, ZipArchive};

/// The folder of the parts of a workbook.
const PARTS: &str = "xl/";

/// The folders of large parts that no row needs.
const LEFT_OUT: [&str; 2] = ["xl/worksheets/", "xl/media/"];

/// The bytes that are unpacked at once.
const BLOCK: usize = 256 << 10;

/// The longest tag of a row.
const TAG: usize = 64 << 10;

/// The largest list of sheets or of their files.
const LIST: u64 = 16 << 20;

/// The end of a sheet, after its last row.
const CLOSE: &[u8] = b"</sheetData></worksheet>";

/// Returns a workbook that has of a sheet only the row with this number, from 1, and those that may have headers; `None` if the
/// workbook does not have the form that Excel and this library write.
pub(super) fn excerpt<R: Read + Seek>(file: R, sheet: &str, row: u32) -> Option<Cursor<Vec<u8>>> {
    let mut archive = ZipArchive::new(file).ok()?;
    let path = path_of(&mut archive, sheet)?;
    let mut cut = ZipWriter::new(Cursor::new(Vec::new()));
    let plain = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    cut.start_file(&path, plain).ok()?;
    let rows = archive.by_name(&path).ok()?;
    if !copy_rows(rows, row, &mut cut).ok()? {
        return None;
    }
    for index in 0..archive.len() {
        let part = archive.by_index_raw(index).ok()?;
        let name = part.name().ok()?;
        let is_left_out = LEFT_OUT.iter().any(|folder| name.starts_with(folder));
        if name != path && !is_left_out {
            cut.raw_copy_file(part).ok()?;
        }
    }
    cut.finish().ok()
}

/// Returns the path of a sheet in the archive.
fn path_of<R: Read + Seek>(archive: &mut ZipArchive<R>, sheet: &str) -> Option<String> {
    let mut id = None;
    each_tag(archive, "xl/workbook.xml", "sheet", |tag| {
        if attribute(tag, "name").as_deref() == Some(sheet) {
            id = attribute(tag, "id");
        }
    })?;
    let id = id?;
    let mut target = None;
    let relations = "xl/_rels/workbook.xml.rels";
    each_tag(archive, relations, "Relationship", |tag| {
        if attribute(tag, "Id").as_ref() == Some(&id) {
            target = attribute(tag, "Target");
        }
    })?;
    let target = target?;
    Some(match target.strip_prefix('/') {
        Some(absolute) => absolute.to_owned(),
        None => format!("{PARTS}{target}"),
    })
}

/// Passes each tag with a name in a part of the workbook.
fn each_tag<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    path: &str,
    name: &str,
    mut take: impl FnMut(&BytesStart<'_>),
) -> Option<()> {
    let mut text = String::new();
    let part = archive.by_name(path).ok()?;
    part.take(LIST).read_to_string(&mut text).ok()?;
    let mut xml = XmlReader::from_str(&text);
    loop {
        match xml.read_event().ok()? {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == name => {
                take(&tag);
            }
            Event::Eof => return Some(()),
            _ => {}
        }
    }
}

/// Returns the value of an attribute, in any namespace.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut all = tag.attributes().flatten();
    let found = all.find(|one| one.key.local_name().as_ref() == name)?;
    let value = found.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}

/// Copies a sheet with the rows that may have headers and one more. Returns false if it cannot be cut.
fn copy_rows(mut sheet: impl Read, row: u32, copy: &mut impl Write) -> io::Result<bool> {
    let (tags, odd) = (Finder::new("<row"), Finder::new("<!"));
    let mut text: Vec<u8> = Vec::new();
    // The number of the last row whose tag was read.
    let mut number = 0;
    let mut is_copied = true;
    loop {
        let held = text.len();
        let read = (&mut sheet).take(BLOCK as u64).read_to_end(&mut text)?;
        if read == 0 {
            if is_copied {
                copy.write_all(&text)?;
            } else {
                copy.write_all(CLOSE)?;
            }
            return Ok(number > 0);
        }
        // A comment or CDATA may contain anything.
        if odd.find(&text[held.saturating_sub(1)..]).is_some() {
            return Ok(false);
        }
        let (mut from, mut at) = (0, 0);
        // The bytes to keep for the next block, which may be a part of a tag.
        let mut rest = text.len().saturating_sub(b"<row".len());
        while let Some(ahead) = tags.find(&text[at..]) {
            let start = at + ahead;
            let Some(length) = memchr::memchr(b'>', &text[start..]) else {
                rest = start;
                break;
            };
            at = start + length;
            let found = match number_of(&text[start + b"<row".len()..at], number) {
                RowTag::Other => continue,
                RowTag::Number(found) if found > number => found,
                _ => return Ok(false),
            };
            if is_copied {
                copy.write_all(&text[from..start])?;
            }
            from = start;
            if found > row {
                copy.write_all(CLOSE)?;
                return Ok(true);
            }
            is_copied = found <= HEADER_ROWS || found == row;
            number = found;
        }
        let rest = rest.max(at);
        if is_copied {
            copy.write_all(&text[from..rest])?;
        }
        text.drain(..rest);
        if text.len() > TAG {
            return Ok(false);
        }
    }
}

/// A tag that starts like the tag of a row.
enum RowTag {
    /// Another tag.
    Other,
    /// A row, with its number.
    Number(u32),
    /// One that is not understood.
    Odd,
}

/// Reads the rest of a tag `<row`. A row without a number follows the last one.
fn number_of(tag: &[u8], last: u32) -> RowTag {
    match tag.first() {
        None | Some(b'/') => return RowTag::Number(last + 1),
        Some(byte) if byte.is_ascii_whitespace() => {}
        Some(_) => return RowTag::Other,
    }
    if tag.contains(&b'\'') {
        return RowTag::Odd;
    }
    let Some(at) = find(tag, b" r=\"") else {
        let is_odd = find(tag, b"r=").is_some() || find(tag, b"r =").is_some();
        return if is_odd {
            RowTag::Odd
        } else {
            RowTag::Number(last + 1)
        };
    };
    let digits = &tag[at + b" r=\"".len()..];
    let end = memchr::memchr(b'"', digits).unwrap_or(digits.len());
    let number = std::str::from_utf8(&digits[..end]);
    match number.map(str::parse) {
        Ok(Ok(number)) if number <= ROWS => RowTag::Number(number),
        _ => RowTag::Odd,
    }
}
