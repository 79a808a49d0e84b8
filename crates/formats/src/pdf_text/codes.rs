//! The codes in the strings of a font, and what its encoding says of them.

use super::letters::{base_letters, letter, program_letters};
use super::limits::ReadError;
use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, SHIFT_JIS};
use hayro_cmap::CMap;
use hayro_syntax::object::dict::keys::{
    BASE_ENCODING, DIFFERENCES, ENCODING, FONT_FILE, SUBTYPE, TRUE_TYPE,
};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream};

/// How the codes of a font are written.
pub(crate) enum Codes {
    /// One byte each, with its letter.
    Single(Vec<Option<String>>),
    /// Two bytes each, which number the glyph.
    Double,
    /// As a map of the document has it.
    Map(Box<CMap>),
    /// UTF-16.
    Utf16,
    /// An encoding of a language.
    National(&'static Encoding),
}

pub(crate) struct Code {
    /// How many bytes it has.
    pub(crate) length: usize,
    pub(crate) number: u32,
    /// The number of its glyph.
    pub(crate) glyph: u32,
    /// The letter by the encoding.
    pub(crate) text: Option<String>,
    /// The width, if the number of the glyph is not known.
    pub(crate) width: Option<f32>,
}

impl Codes {
    /// Returns the codes of a font of many letters. `content` reads a stream.
    pub(crate) fn of(
        font: &Dict<'_>,
        mut content: impl FnMut(&Stream<'_>) -> Result<Option<Vec<u8>>, ReadError>,
    ) -> Result<Self, ReadError> {
        Ok(match font.get::<Object<'_>>(ENCODING) {
            Some(Object::Stream(stream)) => {
                let map = content(&stream)?;
                let map = map.and_then(|map| CMap::parse(&map, |_| None));
                map.map_or(Self::Double, |map| Self::Map(Box::new(map)))
            }
            Some(Object::Name(name)) => Self::named(name.as_str()),
            _ => Self::Double,
        })
    }

    /// The codes of a predefined map (ISO 32000-1, table 118).
    fn named(name: &str) -> Self {
        let has = |part: &str| name.contains(part);
        match name {
            _ if has("-UCS2-") || has("-UTF16-") => Self::Utf16,
            _ if has("-RKSJ-") => Self::National(SHIFT_JIS),
            "EUC-H" | "EUC-V" => Self::National(EUC_JP),
            _ if name.starts_with("GBK2K") => Self::National(GB18030),
            _ if name.starts_with("GB") => Self::National(GBK),
            _ if name.starts_with("KSC") => Self::National(EUC_KR),
            _ if has("-B5-") || has("B5pc-") => Self::National(BIG5),
            _ => Self::Double,
        }
    }

    /// Returns the first code of `bytes`, which are not empty.
    pub(crate) fn next(&self, bytes: &[u8]) -> Code {
        let number = |length: usize| {
            let part = bytes.iter().take(length);
            part.fold(0, |number, byte| number << 8 | u32::from(*byte))
        };
        let plain = |length: usize| Code {
            length,
            number: number(length),
            glyph: number(length),
            text: None,
            width: None,
        };
        match self {
            Self::Single(letters) => Code {
                text: letters.get(usize::from(bytes[0])).cloned().flatten(),
                ..plain(1)
            },
            Self::Double => plain(2),
            Self::Map(map) => {
                let glyph = |length: usize| map.lookup_cid_code(number(length), length as u8);
                let lengths = 1..=bytes.len().min(4);
                let found = lengths
                    .into_iter()
                    .find_map(|length| Some((length, glyph(length)?)));
                found.map_or_else(
                    || plain(2),
                    |(length, glyph)| Code {
                        glyph,
                        ..plain(length)
                    },
                )
            }
            Self::Utf16 => {
                let is_pair = matches!(bytes[0], 0xD8..=0xDB) && bytes.len() >= 4;
                let length = if is_pair { 4 } else { 2 };
                let units = bytes[..length.min(bytes.len())].chunks_exact(2);
                let units = units.map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
                let text: Result<String, _> = char::decode_utf16(units).collect();
                let text = text.ok().filter(|text| !text.is_empty());
                written(plain(length), text)
            }
            Self::National(encoding) => {
                let text = |length: usize| {
                    let text = encoding
                        .decode_without_bom_handling_and_without_replacement(&bytes[..length])?;
                    Some((length, text.into_owned()))
                };
                let found = (1..=bytes.len().min(4)).find_map(text);
                found.map_or_else(
                    || plain(1),
                    |(length, text)| written(plain(length), Some(text)),
                )
            }
        }
    }
}

/// A code whose letter is known, but not its glyph: letters of Latin are half as wide as others.
fn written(code: Code, text: Option<String>) -> Code {
    let is_latin = text.as_ref().is_some_and(|text| text.is_ascii());
    Code {
        text,
        width: Some(if is_latin { 500.0 } else { 1000.0 }),
        ..code
    }
}

/// The letters of the codes of one byte. `content` reads a stream.
pub(crate) fn single_bytes(
    font: &Dict<'_>,
    descriptor: &Dict<'_>,
    mut content: impl FnMut(&Stream<'_>) -> Result<Option<Vec<u8>>, ReadError>,
) -> Result<Vec<Option<String>>, ReadError> {
    let encoding = font.get::<Object<'_>>(ENCODING);
    let (base, differences) = match &encoding {
        Some(Object::Name(name)) => (Some(name.clone()), None),
        Some(Object::Dict(own)) => (
            own.get::<Name<'_>>(BASE_ENCODING),
            own.get::<Array<'_>>(DIFFERENCES),
        ),
        _ => (None, None),
    };
    let base = base.filter(|name| name.ends_with(b"Encoding"));
    let mut letters = match (base, descriptor.get::<Stream<'_>>(FONT_FILE)) {
        (Some(base), _) => base_letters(&base),
        // Type 1 programs have an encoding of their own.
        (None, Some(program)) => content(&program)?
            .and_then(|program| program_letters(&program))
            .unwrap_or_else(|| base_letters(b"StandardEncoding")),
        (None, None) if font.get::<Name<'_>>(SUBTYPE).as_deref() == Some(TRUE_TYPE) => {
            base_letters(b"WinAnsiEncoding")
        }
        (None, None) => base_letters(b"StandardEncoding"),
    };
    let mut code = 0_usize;
    for item in differences.iter().flat_map(Array::iter::<Object<'_>>) {
        match item {
            Object::Number(number) => code = usize::try_from(number.as_i64()).unwrap_or(256),
            Object::Name(name) => {
                if let Some(place) = letters.get_mut(code) {
                    *place = letter(&name);
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    Ok(letters)
}
