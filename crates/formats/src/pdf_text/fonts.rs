//! The fonts of a PDF: what its codes mean, and how wide they are set (ISO 32000-1, 9.6 to 9.10).

use super::limits::{CODES, MAP, MAPS, ReadError, WIDTHS, check, inflated};
use super::metrics::Metrics;
use super::text::UNKNOWN;
use super::tokens::{Token, Tokens};
use lopdf::{Dictionary, Document, Encoding, Object};
use std::collections::HashMap;

/// A dictionary of a font, known by where it lies.
type FontKey = *const Dictionary;

/// The dictionaries of all fonts, as they are read: their own map to Unicode goes before names of letters.
pub(crate) fn collect(doc: &Document) -> Vec<(FontKey, Dictionary)> {
    let mut found = Vec::new();
    for object in doc.objects.values() {
        walk(object, doc, &mut found, 0);
    }
    found
}

fn walk(object: &Object, doc: &Document, found: &mut Vec<(FontKey, Dictionary)>, depth: u8) {
    let dictionary = match object {
        Object::Dictionary(dictionary) => dictionary,
        Object::Stream(stream) => &stream.dict,
        _ => return,
    };
    if dictionary.has_type(b"Font") {
        found.push((std::ptr::from_ref(dictionary), readable(dictionary, doc)));
    } else if depth < 4 {
        for (_, inner) in dictionary {
            walk(inner, doc, found, depth + 1);
        }
    }
}

fn readable(font: &Dictionary, doc: &Document) -> Dictionary {
    let mut font = font.clone();
    if font
        .get_deref(b"ToUnicode", doc)
        .is_ok_and(|map| map.as_stream().is_ok())
    {
        font.remove(b"Encoding");
    } else if let Ok(Object::Dictionary(encoding)) = font.get_deref(b"Encoding", doc) {
        // The reader wants the type to be told, which the format does not.
        let mut encoding = encoding.clone();
        encoding.set("Type", Object::Name(b"Encoding".to_vec()));
        font.set("Encoding", Object::Dictionary(encoding));
    }
    font
}

/// A font.
pub(crate) struct Font<'a> {
    encoding: Option<Encoding<'a>>,
    /// Whether a code is two bytes.
    is_wide: bool,
    pub(crate) metrics: Metrics,
}

/// All fonts, by where their dictionaries lie.
pub(crate) fn read<'a>(
    doc: &'a Document,
    fonts: &'a [(FontKey, Dictionary)],
) -> Result<HashMap<FontKey, Font<'a>>, ReadError> {
    let mut read = FontReader::default();
    fonts
        .iter()
        .map(|(key, font)| Ok((*key, Font::of(font, doc, &mut read)?)))
        .collect()
}

/// The total size of all fonts that were read: fonts of a few bytes may share a large map or list of widths.
#[derive(Default)]
struct FontReader {
    maps: usize,
    codes: usize,
    widths: usize,
}

impl FontReader {
    /// Counts the map to Unicode, for each of whose codes the parser keeps an entry.
    fn count_map(&mut self, font: &Dictionary, doc: &Document) -> Result<(), ReadError> {
        let map = font
            .get_deref(b"ToUnicode", doc)
            .and_then(Object::as_stream);
        let content = match map.map(|map| inflated(map, MAP)) {
            Ok(Ok(content)) => content,
            Ok(Err(error @ ReadError::Limit(_))) => return Err(error),
            // The parser finds no map either.
            Ok(Err(_)) | Err(_) => return Ok(()),
        };
        self.maps += content.len();
        check(self.maps, MAPS, "bytes in maps of fonts")?;
        self.codes = self.codes.saturating_add(mapped(&content));
        check(self.codes, CODES, "codes in maps of fonts")
    }

    fn count_widths(&mut self, count: usize) -> Result<(), ReadError> {
        self.widths = self.widths.saturating_add(count);
        check(self.widths, WIDTHS, "widths in fonts")
    }
}

/// How many codes the ranges of a map cover: `<first> <last> target`, between `beginbfrange` and `endbfrange`.
fn mapped(map: &[u8]) -> usize {
    const BEGIN: &[u8] = b"beginbfrange";
    let code = |token: Option<Token<'_>>| match token {
        Some(Token::Hex(digits)) => u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok(),
        _ => None,
    };
    let words = map.windows(BEGIN.len()).enumerate();
    let begins = words.filter_map(|(at, word)| (word == BEGIN).then_some(at));
    let ends = begins.clone().skip(1).chain([map.len()]);
    let mut count = 0_usize;
    for (begin, end) in begins.zip(ends) {
        // No block is read beyond the beginning of the next one: every byte is read once.
        let mut tokens = Tokens::new(&map[..end], begin + BEGIN.len());
        while let (Some(first), Some(last)) = (code(tokens.next()), code(tokens.next())) {
            count = count.saturating_add(last.saturating_sub(first) as usize + 1);
            if tokens.next() == Some(Token::Open) {
                let _ = tokens.find(|token| *token == Token::Close);
            }
        }
    }
    count
}

impl<'a> Font<'a> {
    fn of(
        font: &'a Dictionary,
        doc: &'a Document,
        read: &mut FontReader,
    ) -> Result<Self, ReadError> {
        read.count_map(font, doc)?;
        let subtype = font
            .get(b"Subtype")
            .and_then(Object::as_name)
            .unwrap_or_default();
        let is_wide = subtype == b"Type0";
        let inner = if is_wide {
            descendant(font, doc)
        } else {
            Some(font)
        };
        let inner = inner.unwrap_or(font);
        let name = font
            .get(b"BaseFont")
            .and_then(Object::as_name)
            .unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        let descriptor = inner
            .get_deref(b"FontDescriptor", doc)
            .and_then(Object::as_dict)
            .ok();
        let flags = descriptor
            .and_then(|it| it.get(b"Flags").ok()?.as_i64().ok())
            .unwrap_or(0);
        let encoding = font.get_font_encoding_with_limit(doc, MAP).ok();
        // Where names of letters are not understood, the reader takes them for others without a word.
        let is_named =
            matches!(font.get(b"Encoding"), Ok(Object::Dictionary(own)) if own.has(b"Differences"));
        let is_guess = is_named && !matches!(encoding, Some(Encoding::Differences(_)));
        let mut widths = if is_wide {
            wide(inner, doc, read)?
        } else {
            simple(font, doc, read)?
        };
        let unit = if subtype == b"Type3" {
            matrix(font, doc) * 1000.0
        } else {
            1.0
        };
        for width in widths.values_mut() {
            *width *= unit;
        }
        let default = if is_wide {
            inner.get_deref(b"DW", doc).and_then(Object::as_float).ok()
        } else {
            descriptor.and_then(|it| it.get(b"MissingWidth").ok()?.as_float().ok())
        };
        Ok(Self {
            encoding: encoding.filter(|_| !is_guess),
            is_wide,
            metrics: Metrics::new(&name, flags, is_wide, widths, default),
        })
    }

    /// The codes of a string: the text of each, its width in thousandths of the size, and whether it is the one byte 32.
    pub(crate) fn each(&self, bytes: &[u8], mut take: impl FnMut(&str, f32, bool)) {
        let mut text = String::new();
        for code in bytes.chunks(if self.is_wide { 2 } else { 1 }) {
            let number = code
                .iter()
                .fold(0, |number, byte| number << 8 | u32::from(*byte));
            text.clear();
            let known = match &self.encoding {
                Some(encoding) => encoding.write_to_string(code, &mut text).is_ok(),
                None => false,
            };
            if !known || text.is_empty() {
                text.clear();
                text.push(UNKNOWN);
            }
            take(
                &text,
                self.metrics.width(number),
                !self.is_wide && number == 32,
            );
        }
    }
}

fn descendant<'a>(font: &'a Dictionary, doc: &'a Document) -> Option<&'a Dictionary> {
    let list = font
        .get_deref(b"DescendantFonts", doc)
        .ok()?
        .as_array()
        .ok()?;
    doc.dereference(list.first()?).ok()?.1.as_dict().ok()
}

fn matrix(font: &Dictionary, doc: &Document) -> f32 {
    let matrix = font
        .get_deref(b"FontMatrix", doc)
        .and_then(Object::as_array)
        .ok();
    let first = matrix.and_then(|it| it.first()?.as_float().ok());
    first.map_or(0.001, f32::abs)
}

fn numbers(
    object: &Object,
    doc: &Document,
    read: &mut FontReader,
) -> Result<Option<Vec<f32>>, ReadError> {
    let list = doc.dereference(object);
    let Ok(list) = list.and_then(|(_, list)| list.as_array()) else {
        return Ok(None);
    };
    read.count_widths(list.len())?;
    let number = |item: &Object| doc.dereference(item).ok()?.1.as_float().ok();
    let numbers = list.iter().map(|item| number(item).unwrap_or(0.0));
    Ok(Some(numbers.collect()))
}

fn simple(
    font: &Dictionary,
    doc: &Document,
    read: &mut FontReader,
) -> Result<HashMap<u32, f32>, ReadError> {
    let first = font
        .get_deref(b"FirstChar", doc)
        .and_then(Object::as_i64)
        .unwrap_or(0);
    let widths = match font.get(b"Widths") {
        Ok(list) => numbers(list, doc, read)?,
        Err(_) => None,
    };
    let first = u32::try_from(first).unwrap_or(0);
    Ok((first..).zip(widths.unwrap_or_default()).collect())
}

/// The widths of a font of many letters: `c [w …]` and `first last w` (9.7.4.3).
fn wide(
    font: &Dictionary,
    doc: &Document,
    read: &mut FontReader,
) -> Result<HashMap<u32, f32>, ReadError> {
    let mut widths = HashMap::new();
    let list = font.get_deref(b"W", doc).and_then(Object::as_array);
    let mut items = list.map(Vec::as_slice).unwrap_or_default();
    while let [first, second, rest @ ..] = items {
        let Ok(first) = first.as_float() else { break };
        let first = first as u32;
        if let Some(each) = numbers(second, doc, read)? {
            widths.extend((first..).zip(each));
            items = rest;
        } else if let ([width, rest @ ..], Ok(last)) = (rest, second.as_float()) {
            let last = (last as u32).min(first.saturating_add(1 << 16));
            let width = width.as_float().unwrap_or(0.0);
            read.count_widths(last.saturating_sub(first) as usize + 1)?;
            widths.extend((first..=last).map(|code| (code, width)));
            items = rest;
        } else {
            break;
        }
    }
    Ok(widths)
}
