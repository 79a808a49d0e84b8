//! The tables of the embedded faces that a PDF needs: glyphs of letters, their widths, and the measures of the face.
//!
//! Only what the faces under `assets/fonts/` use is read (`cmap` format 4, `hmtx`, `head`, `hhea`, `OS/2`, `post`); anything else is an
//! error. Source: the OpenType specification 1.9.1.

use std::collections::BTreeMap;

/// The measures of a face, in font units (`units_per_em` make one em).
#[derive(Debug, PartialEq)]
pub(crate) struct OpenType {
    pub(crate) units_per_em: u16,
    /// Left, bottom, right and top of all glyphs.
    pub(crate) bounds: [i16; 4],
    pub(crate) ascender: i16,
    pub(crate) descender: i16,
    /// The height of capitals; the ascender, if the face does not state it.
    pub(crate) cap_height: i16,
    /// Degrees, counter-clockwise.
    pub(crate) italic_angle: f32,
    pub(crate) italic: bool,
    pub(crate) bold: bool,
    pub(crate) monospaced: bool,
    glyphs: BTreeMap<u16, u16>,
    /// The width of each glyph; glyphs after the last have the last one's.
    advances: Vec<u16>,
}

impl OpenType {
    /// Reads a face. `Err` names the table that is missing or that this reader does not understand.
    pub(crate) fn parse(data: &[u8]) -> Result<Self, &'static str> {
        let table = |tag: &'static str| table(data, tag).ok_or(tag);
        let (head, hhea, os2, post) = (
            table("head")?,
            table("hhea")?,
            table("OS/2")?,
            table("post")?,
        );
        let measures = || {
            let ascender = signed(hhea, 4)?;
            let selection = unsigned(os2, 62)?;
            Some(Self {
                units_per_em: unsigned(head, 18)?,
                bounds: [
                    signed(head, 36)?,
                    signed(head, 38)?,
                    signed(head, 40)?,
                    signed(head, 42)?,
                ],
                ascender,
                descender: signed(hhea, 6)?,
                cap_height: if unsigned(os2, 0)? >= 2 {
                    signed(os2, 88)?
                } else {
                    ascender
                },
                italic_angle: f32::from(signed(post, 4)?)
                    + f32::from(unsigned(post, 6)?) / 65_536.0,
                italic: selection & 1 != 0,
                bold: selection & 0x20 != 0,
                monospaced: unsigned(post, 12)? != 0 || unsigned(post, 14)? != 0,
                glyphs: BTreeMap::new(),
                advances: Vec::new(),
            })
        };
        let hmtx = table("hmtx")?;
        let advances = || {
            (0..usize::from(unsigned(hhea, 34)?))
                .map(|i| unsigned(hmtx, 4 * i))
                .collect::<Option<Vec<u16>>>()
        };
        Ok(Self {
            glyphs: glyphs(table("cmap")?).ok_or("cmap")?,
            advances: advances().ok_or("hmtx")?,
            ..measures().ok_or("head, hhea, OS/2 or post")?
        })
    }

    /// Returns the glyph of a character; `None`, if the face has none.
    pub(crate) fn glyph(&self, character: char) -> Option<u16> {
        let unit = u16::try_from(u32::from(character)).ok()?;
        self.glyphs.get(&unit).copied()
    }

    /// Returns the width of a glyph.
    pub(crate) fn advance(&self, glyph: u16) -> u16 {
        let stated = self.advances.get(usize::from(glyph));
        stated.or(self.advances.last()).copied().unwrap_or(0)
    }
}

/// Returns the glyphs by UTF-16 unit, from the Windows Unicode subtable (platform 3, encoding 1, format 4).
fn glyphs(cmap: &[u8]) -> Option<BTreeMap<u16, u16>> {
    let tables = 0..usize::from(unsigned(cmap, 2)?);
    let entry = tables
        .filter_map(|i| cmap.get(4 + 8 * i..12 + 8 * i))
        .find(|entry| entry[..4] == [0, 3, 0, 1])?;
    let offset = u32::from_be_bytes(entry[4..].try_into().ok()?) as usize;
    let map = cmap.get(offset..)?;
    if unsigned(map, 0)? != 4 {
        return None;
    }
    let doubled = usize::from(unsigned(map, 6)?);
    let mut glyphs = BTreeMap::new();
    for segment in (0..doubled).step_by(2) {
        let (last, first) = (
            unsigned(map, 14 + segment)?,
            unsigned(map, 16 + doubled + segment)?,
        );
        let delta = unsigned(map, 16 + 2 * doubled + segment)?;
        let range_at = 16 + 3 * doubled + segment;
        let range = usize::from(unsigned(map, range_at)?);
        for unit in (first..=last).filter(|unit| *unit != 0xFFFF) {
            let glyph = if range == 0 {
                unit.wrapping_add(delta)
            } else {
                match unsigned(map, range_at + range + 2 * usize::from(unit - first))? {
                    0 => 0,
                    glyph => glyph.wrapping_add(delta),
                }
            };
            if glyph != 0 {
                glyphs.insert(unit, glyph);
            }
        }
    }
    Some(glyphs)
}

/// Returns the bytes from the start of a table; `None`, if the face has none of that name.
fn table<'a>(data: &'a [u8], tag: &str) -> Option<&'a [u8]> {
    (0..usize::from(unsigned(data, 4)?)).find_map(|i| {
        let entry = data.get(12 + 16 * i..28 + 16 * i)?;
        let offset = u32::from_be_bytes(entry[8..12].try_into().ok()?) as usize;
        (&entry[..4] == tag.as_bytes()).then(|| data.get(offset..))?
    })
}

fn unsigned(table: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(table.get(at..at + 2)?.try_into().ok()?))
}

fn signed(table: &[u8], at: usize) -> Option<i16> {
    Some(i16::from_be_bytes(table.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITALIC: &[u8] = include_bytes!("../../../../assets/fonts/Roboto-BoldItalic.ttf");
    const MONO: &[u8] = include_bytes!("../../../../assets/fonts/DejaVuSansMono.ttf");

    /// The measures, a few glyphs with widths, and a sum over all glyphs: as fontTools 4 reads them.
    #[test]
    fn faces_are_read_as_fonttools_reads_them() {
        let sum = |face: &OpenType| -> u64 {
            let weight = |(unit, glyph): (&u16, &u16)| {
                (u64::from(*unit) * 31 + u64::from(*glyph)) * u64::from(face.advance(*glyph))
            };
            face.glyphs.iter().map(weight).sum()
        };
        let some = |face: &OpenType| -> Vec<Option<(u16, u16)>> {
            let glyph = |c| face.glyph(c).map(|glyph| (glyph, face.advance(glyph)));
            "Aä€→𝄞".chars().map(glyph).collect()
        };
        let face = OpenType::parse(ITALIC).unwrap();
        assert_eq!((face.glyphs.len(), sum(&face)), (575, 32_132_668_541));
        assert_eq!(
            some(&face),
            [
                Some((34, 1338)),
                Some((372, 1065)),
                Some((300, 1140)),
                None,
                None
            ]
        );
        let measures = OpenType {
            units_per_em: 2048,
            bounds: [-1882, -555, 4159, 2163],
            ascender: 1900,
            descender: -500,
            cap_height: 1456,
            italic_angle: -12.0,
            italic: true,
            bold: true,
            monospaced: false,
            glyphs: face.glyphs.clone(),
            advances: face.advances.clone(),
        };
        assert_eq!(face, measures);
        let face = OpenType::parse(MONO).unwrap();
        assert_eq!((face.glyphs.len(), sum(&face)), (585, 39_466_925_613));
        assert_eq!(
            some(&face),
            [
                Some((34, 1233)),
                Some((164, 1233)),
                Some((565, 1233)),
                Some((578, 1233)),
                None
            ]
        );
        assert_eq!(
            (face.cap_height, face.monospaced, face.bold),
            (1901, true, false)
        );
    }

    #[test]
    fn a_cut_face_names_its_table() {
        assert_eq!(OpenType::parse(&MONO[..100]), Err("head"));
        assert_eq!(OpenType::parse(b""), Err("head"));
    }
}
