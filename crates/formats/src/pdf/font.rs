//! Faces of the PDF reports: glyphs, widths, and what of each face a document used.

use std::collections::{BTreeMap, HashMap};

use subsetter::GlyphRemapper;

use super::info::PdfError;
use super::opentype::OpenType;

/// One of the embedded faces (see `assets/fonts/README.md` for their licences).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FaceId {
    Regular = 0,
    Bold = 1,
    Italic = 2,
    BoldItalic = 3,
    Mono = 4,
}

/// The mono face has larger letters than the other faces at the same size, so it is set smaller.
const MONO: f32 = 0.9;

impl FaceId {
    /// Returns the factor on the requested size that this face is set in.
    pub(crate) fn scale(self) -> f32 {
        if self == Self::Mono { MONO } else { 1.0 }
    }
}

/// How many faces there are.
pub(crate) const FACES: usize = 5;

static DATA: [(&str, &[u8]); FACES] = [
    (
        "Roboto-Regular",
        include_bytes!("../../../../assets/fonts/Roboto-Regular.ttf"),
    ),
    (
        "Roboto-Bold",
        include_bytes!("../../../../assets/fonts/Roboto-Bold.ttf"),
    ),
    (
        "Roboto-Italic",
        include_bytes!("../../../../assets/fonts/Roboto-Italic.ttf"),
    ),
    (
        "Roboto-BoldItalic",
        include_bytes!("../../../../assets/fonts/Roboto-BoldItalic.ttf"),
    ),
    (
        "DejaVuSansMono",
        include_bytes!("../../../../assets/fonts/DejaVuSansMono.ttf"),
    ),
];

/// How a run of text is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Style {
    pub(crate) bold: bool,
    pub(crate) italic: bool,
    pub(crate) mono: bool,
}

impl Style {
    fn face(self) -> FaceId {
        match (self.mono, self.bold, self.italic) {
            (true, _, _) => FaceId::Mono,
            (_, true, true) => FaceId::BoldItalic,
            (_, true, false) => FaceId::Bold,
            (_, false, true) => FaceId::Italic,
            (_, false, false) => FaceId::Regular,
        }
    }
}

/// A glyph of a face, before subsetting; `advance` is in ems.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Glyph {
    pub(crate) face: FaceId,
    pub(crate) id: u16,
    pub(crate) sign: char,
    pub(crate) advance: f32,
}

/// A face and what a document has used of it.
pub(crate) struct Face {
    pub(crate) name: &'static str,
    pub(crate) data: &'static [u8],
    pub(crate) parsed: OpenType,
    /// Old glyph to new, in the order of first use.
    pub(crate) used: GlyphRemapper,
    /// New glyph to the sign that it stands for.
    pub(crate) signs: BTreeMap<u16, char>,
}

/// The faces, with a cache from sign to glyph.
pub(crate) struct Fonts {
    pub(crate) faces: Vec<Face>,
    cache: HashMap<(FaceId, char), Option<Glyph>>,
}

impl Fonts {
    /// Reads the embedded faces.
    pub(crate) fn load() -> Result<Self, PdfError> {
        let mut faces = Vec::with_capacity(FACES);
        for (name, data) in DATA {
            let parsed = OpenType::parse(data).map_err(|table| PdfError::Font {
                name,
                reason: format!("the table {table} cannot be read"),
            })?;
            faces.push(Face {
                name,
                data,
                parsed,
                used: GlyphRemapper::new(),
                signs: BTreeMap::new(),
            });
        }
        Ok(Self {
            faces,
            cache: HashMap::new(),
        })
    }

    /// Returns the glyph for a sign: of the style's own face, else of the mono face, else the replacement sign. `None` for signs
    /// that have no shape (controls, joiners, marks of direction).
    pub(crate) fn glyph(&mut self, sign: char, style: Style) -> Option<Glyph> {
        let face = style.face();
        if let Some(known) = self.cache.get(&(face, sign)) {
            return *known;
        }
        let found = if shapeless(sign) {
            None
        } else {
            self.find(face, sign)
                .or_else(|| self.find(FaceId::Mono, sign))
                .or_else(|| self.find(face, '\u{FFFD}'))
        };
        self.cache.insert((face, sign), found);
        found
    }

    /// How many different signs no face has: the replacement sign stands for them.
    pub(crate) fn missing(&self) -> usize {
        let signs: std::collections::BTreeSet<char> = self
            .cache
            .iter()
            .filter(|((_, sign), found)| found.is_some_and(|glyph| glyph.sign != *sign))
            .map(|((_, sign), _)| *sign)
            .collect();
        signs.len()
    }

    fn find(&self, face: FaceId, sign: char) -> Option<Glyph> {
        let parsed = &self.faces[face as usize].parsed;
        let id = parsed.glyph(sign)?;
        let advance = f32::from(parsed.advance(id)) / f32::from(parsed.units_per_em) * face.scale();
        Some(Glyph {
            face,
            id,
            sign,
            advance,
        })
    }

    /// Glyphs of a text on one line.
    pub(crate) fn line(&mut self, text: &str, style: Style) -> Vec<Glyph> {
        text.chars()
            .map(|c| if c.is_whitespace() { ' ' } else { c })
            .filter_map(|c| self.glyph(c, style))
            .collect()
    }

    /// Glyphs of a text, cut with an ellipsis to a width in points at a size.
    pub(crate) fn cut(&mut self, text: &str, style: Style, size: f32, width: f32) -> Vec<Glyph> {
        // No sign is narrower than a thirtieth of an em: more signs than this cannot fit.
        let most = (width / size * 30.0).max(1.0) as usize;
        let short: String = text.chars().take(most).collect();
        let mut glyphs = self.line(&short, style);
        if short.len() == text.len() && measure(&glyphs) * size <= width {
            return glyphs;
        }
        let dots = self.line("…", style);
        let room = width / size - measure(&dots);
        let mut sum = 0.0;
        let keep = glyphs
            .iter()
            .take_while(|g| {
                sum += g.advance;
                sum <= room
            })
            .count();
        glyphs.truncate(keep);
        while glyphs.last().is_some_and(|g| g.sign == ' ') {
            glyphs.pop();
        }
        glyphs.extend(dots);
        glyphs
    }

    /// Marks a glyph as used and returns its number in the embedded subset.
    pub(crate) fn embed(&mut self, glyph: Glyph) -> u16 {
        let face = &mut self.faces[glyph.face as usize];
        let id = face.used.remap(glyph.id);
        face.signs.entry(id).or_insert(glyph.sign);
        id
    }
}

/// Width of glyphs in ems.
pub(crate) fn measure(glyphs: &[Glyph]) -> f32 {
    glyphs.iter().map(|g| g.advance).sum()
}

fn shapeless(sign: char) -> bool {
    sign.is_control()
        || matches!(sign,
            '\u{00AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn umlauts_units_and_currency_have_glyphs_of_their_own_face() {
        let mut fonts = Fonts::load().unwrap();
        for style in [
            Style::default(),
            Style {
                bold: true,
                ..Style::default()
            },
            Style {
                italic: true,
                ..Style::default()
            },
        ] {
            for sign in "äöüßÄÖÜéèçñ€³²°–…Řžα".chars() {
                let glyph = fonts.glyph(sign, style).unwrap();
                assert_eq!((glyph.face, glyph.sign), (style.face(), sign));
            }
        }
    }

    #[test]
    fn signs_that_no_face_has_become_the_replacement_sign() {
        let mut fonts = Fonts::load().unwrap();
        let style = Style::default();
        assert_eq!(fonts.glyph('→', style).unwrap().face, FaceId::Mono);
        assert_eq!(fonts.glyph('壁', style).unwrap().sign, '\u{FFFD}');
        assert_eq!(fonts.glyph('\u{202E}', style), None);
    }

    #[test]
    fn a_long_text_is_cut_with_an_ellipsis() {
        let mut fonts = Fonts::load().unwrap();
        let text = "x".repeat(100_000);
        let cut = fonts.cut(&text, Style::default(), 10.0, 50.0);
        assert!(measure(&cut) * 10.0 <= 50.0);
        assert_eq!(cut.last().unwrap().sign, '…');
        let whole = fonts.cut("short", Style::default(), 10.0, 50.0);
        assert_eq!(whole.iter().map(|g| g.sign).collect::<String>(), "short");
    }
}
