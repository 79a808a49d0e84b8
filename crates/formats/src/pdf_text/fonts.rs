//! The fonts of a PDF: what its codes mean, and how wide they are set.

use super::codes::{Codes, single_bytes};
use super::limits::{FONT_WIDTHS, MAP, MAPS, ReadError, WIDTHS, check};
use super::metrics::Metrics;
use super::streams::inflated;
use super::text::UNKNOWN;
use hayro_cmap::{BfString, CMap};
use hayro_syntax::object::dict::keys::{
    BASE_FONT, DESCENDANT_FONTS, DW, FIRST_CHAR, FLAGS, FONT_DESC, FONT_MATRIX, MISSING_WIDTH,
    SUBTYPE, TO_UNICODE, TYPE0, TYPE3, W, WIDTHS as WIDTH_LIST,
};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The number of codes: they have two bytes at most.
const CODES: usize = 1 << 16;

pub(crate) struct Font {
    codes: Codes,
    unicode: Unicode,
    pub(crate) metrics: Metrics,
}

/// The letters of codes by the font. The encoding has priority.
enum Unicode {
    Unsaid,
    /// The codes are the letters.
    Same,
    Map(Box<CMap>),
}

/// Reads each font once.
pub(crate) struct FontReader {
    /// By where their dictionaries lie.
    fonts: HashMap<(usize, usize), Rc<Font>>,
    /// How many bytes of maps and programs were inflated.
    maps: usize,
    widths: usize,
    widths_of_font: usize,
    /// The font that replaces a missing one.
    pub(crate) lost: Rc<Font>,
}

impl Default for FontReader {
    fn default() -> Self {
        let lost = Font {
            codes: Codes::Single(Vec::new()),
            unicode: Unicode::Unsaid,
            metrics: Metrics::new("", 0, false, BTreeMap::new(), None),
        };
        Self {
            fonts: HashMap::new(),
            maps: 0,
            widths: 0,
            widths_of_font: 0,
            lost: Rc::new(lost),
        }
    }
}

impl FontReader {
    pub(crate) fn font(&mut self, font: &Dict<'_>) -> Result<Rc<Font>, ReadError> {
        let place = font.data();
        let key = (place.as_ptr() as usize, place.len());
        if let Some(known) = self.fonts.get(&key) {
            return Ok(Rc::clone(known));
        }
        let read = Rc::new(self.read(font)?);
        self.fonts.insert(key, Rc::clone(&read));
        Ok(read)
    }

    fn read(&mut self, font: &Dict<'_>) -> Result<Font, ReadError> {
        self.widths_of_font = 0;
        let subtype = font.get::<Name<'_>>(SUBTYPE);
        let is_wide = subtype.as_deref() == Some(TYPE0);
        let inner = || {
            let list = font.get::<Array<'_>>(DESCENDANT_FONTS)?;
            list.iter::<Dict<'_>>().next()
        };
        let inner = if is_wide { inner() } else { None };
        let inner = inner.as_ref().unwrap_or(font);
        let descriptor = inner.get::<Dict<'_>>(FONT_DESC).unwrap_or_default();
        let name = font.get::<Name<'_>>(BASE_FONT);
        let name = name.map(|name| String::from_utf8_lossy(&name).into_owned());
        let (codes, mut widths, default) = if is_wide {
            let codes = Codes::of(font, |stream| self.content(stream))?;
            (codes, self.wide(inner)?, inner.get::<f32>(DW))
        } else {
            let codes = single_bytes(font, &descriptor, |stream| self.content(stream))?;
            let missing = descriptor.get::<f32>(MISSING_WIDTH);
            (Codes::Single(codes), self.simple(font)?, missing)
        };
        if subtype.as_deref() == Some(TYPE3) {
            let matrix = font.get::<[f64; 6]>(FONT_MATRIX);
            let unit = matrix.map_or(1.0, |matrix| matrix[0].abs() as f32 * 1000.0);
            for width in widths.values_mut() {
                *width *= unit;
            }
        }
        let flags = descriptor.get::<i32>(FLAGS).unwrap_or(0);
        let name = name.unwrap_or_default();
        Ok(Font {
            codes,
            unicode: self.unicode(font)?,
            metrics: Metrics::new(&name, flags.into(), is_wide, widths, default),
        })
    }

    fn unicode(&mut self, font: &Dict<'_>) -> Result<Unicode, ReadError> {
        let map = match font.get::<Object<'_>>(TO_UNICODE) {
            Some(Object::Name(name)) if name.starts_with(b"Identity") => return Ok(Unicode::Same),
            Some(Object::Stream(stream)) => self.content(&stream)?,
            _ => None,
        };
        let map = map.and_then(|map| CMap::parse(&map, |_| None));
        Ok(map.map_or(Unicode::Unsaid, |map| Unicode::Map(Box::new(map))))
    }

    /// Returns the content of a map or program; `None` if it is damaged: the rest of the font still applies.
    fn content(&mut self, stream: &Stream<'_>) -> Result<Option<Vec<u8>>, ReadError> {
        match inflated(stream, MAP) {
            Ok(content) => {
                self.maps += content.len();
                check(self.maps, MAPS, "bytes in maps of fonts")?;
                Ok(Some(content))
            }
            Err(error @ ReadError::Limit(_)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn count_widths(&mut self, count: usize) -> Result<(), ReadError> {
        self.widths += count;
        self.widths_of_font += count;
        check(self.widths_of_font, FONT_WIDTHS, "widths in a font")?;
        check(self.widths, WIDTHS, "widths in fonts")
    }

    fn numbers(&mut self, list: &Array<'_>) -> Result<Vec<f32>, ReadError> {
        let mut numbers = Vec::new();
        for item in list.iter::<Object<'_>>() {
            self.count_widths(1)?;
            numbers.push(item.into_f32().unwrap_or(0.0));
        }
        Ok(numbers)
    }

    fn simple(&mut self, font: &Dict<'_>) -> Result<BTreeMap<usize, f32>, ReadError> {
        let first = font.get::<i32>(FIRST_CHAR).unwrap_or(0);
        let first = usize::try_from(first).unwrap_or(0);
        let list = font.get::<Array<'_>>(WIDTH_LIST);
        let widths = list.map_or_else(|| Ok(Vec::new()), |list| self.numbers(&list))?;
        Ok((first..CODES).zip(widths).collect())
    }

    /// Returns the widths of a font of many letters: `c [w …]` and `first last w` (9.7.4.3).
    fn wide(&mut self, font: &Dict<'_>) -> Result<BTreeMap<usize, f32>, ReadError> {
        let mut widths = BTreeMap::new();
        let Some(list) = font.get::<Array<'_>>(W) else {
            return Ok(widths);
        };
        let mut items = list.iter::<Object<'_>>();
        while let (Some(first), Some(second)) = (items.next(), items.next()) {
            let Some(first) = first.into_f32() else { break };
            let first = first as usize;
            match second {
                Object::Array(each) => widths.extend((first..CODES).zip(self.numbers(&each)?)),
                Object::Number(last) => {
                    let end = (last.as_f32() as usize).min(CODES - 1) + 1;
                    let width = items.next().and_then(Object::into_f32).unwrap_or(0.0);
                    self.count_widths(end.saturating_sub(first))?;
                    widths.extend((first..end).map(|code| (code, width)));
                }
                _ => break,
            }
        }
        Ok(widths)
    }
}

impl Font {
    /// The codes of a string: the text of each, its width in thousandths of the size, and whether it is the one byte 32.
    pub(crate) fn each(&self, bytes: &[u8], mut take: impl FnMut(&str, f32, bool)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let code = self.codes.next(rest);
            rest = &rest[code.length.min(rest.len())..];
            let text = self.unicode.of(code.number).or(code.text);
            let width = code.width.unwrap_or_else(|| self.metrics.width(code.glyph));
            let is_blank = code.length == 1 && code.number == 32;
            let mut unknown = [0; 4];
            let unknown = UNKNOWN.encode_utf8(&mut unknown);
            take(text.as_deref().unwrap_or(unknown), width, is_blank);
        }
    }
}

impl Unicode {
    fn of(&self, code: u32) -> Option<String> {
        let text = match self {
            Self::Unsaid => return None,
            Self::Same => char::from_u32(code)?.to_string(),
            Self::Map(map) => match map.lookup_bf_string(code)? {
                BfString::Char(letter) => letter.to_string(),
                BfString::String(text) => text,
            },
        };
        Some(text).filter(|text| text != "\0")
    }
}
