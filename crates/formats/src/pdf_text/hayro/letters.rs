//! The letters that names of glyphs stand for (Adobe Glyph List). The table of names is that of `lopdf`; this is all that the two
//! engines have in common before the letters.

use lopdf::{Dictionary, Document, Object, dictionary};

/// Returns the letters of an encoding that the format defines.
pub(super) fn base_letters(name: &[u8]) -> Vec<Option<String>> {
    let encoding = dictionary! {
        "Type" => "Encoding",
        "BaseEncoding" => Object::Name(name.to_vec()),
        "Differences" => Vec::<Object>::new(),
    };
    decoded(encoding, 0..=255)
}

/// Returns the letters of a name, such as `eacute`, `f_i.alt` or `uni00E9`; `None` if they are not known.
pub(super) fn letter(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let base = name.split('.').next().filter(|base| !base.is_empty())?;
    base.split('_').map(part).collect()
}

fn part(name: &str) -> Option<String> {
    let hex = |digits: &str| {
        let is_hex = digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
        is_hex
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
    };
    let listed = || {
        let name = Object::Name(name.as_bytes().to_vec());
        let encoding = dictionary! {
            "Type" => "Encoding", "Differences" => vec![Object::Integer(0), name],
        };
        decoded(encoding, 0..=0).pop().flatten()
    };
    let four = |digits: &str| {
        let units = digits.as_bytes().chunks(4);
        let units = units.map(|unit| hex(std::str::from_utf8(unit).ok()?));
        let units: Vec<u16> = units
            .map(|unit| Some(unit? as u16))
            .collect::<Option<_>>()?;
        String::from_utf16(&units).ok()
    };
    let own = || {
        let rest = name.strip_prefix('u')?;
        match rest.strip_prefix("ni") {
            Some(digits) if !digits.is_empty() && digits.len() % 4 == 0 => four(digits),
            _ if (4..=6).contains(&rest.len()) => Some(char::from_u32(hex(rest)?)?.to_string()),
            _ => None,
        }
    };
    listed().or_else(own)
}

/// Decodes single codes by an encoding.
fn decoded(encoding: Dictionary, codes: std::ops::RangeInclusive<u8>) -> Vec<Option<String>> {
    let font = dictionary! { "Type" => "Font", "Encoding" => encoding };
    let doc = Document::new();
    let known = font.get_font_encoding(&doc).ok();
    let text = |code: u8| known.as_ref()?.bytes_to_string(&[code]).ok();
    codes
        .map(|code| text(code).filter(|text| !text.is_empty()))
        .collect()
}

/// Returns the encoding of a Type 1 program, from its header: `dup 65 /A put` for each code. `None` if it has none of its
/// own.
pub(super) fn program_letters(program: &[u8]) -> Option<Vec<Option<String>>> {
    const BEGIN: &[u8] = b"/Encoding";
    let begin = program
        .windows(BEGIN.len())
        .position(|part| part == BEGIN)?;
    let head = String::from_utf8_lossy(&program[begin + BEGIN.len()..]).replace('/', " /");
    let mut letters = vec![None; 256];
    let mut is_any = false;
    let mut words = head.split_ascii_whitespace();
    while let Some(word) = words.next() {
        match word {
            "def" | "readonly" | "StandardEncoding" => break,
            "dup" => {
                let place = words.next().and_then(|code| code.parse().ok());
                let place = place.and_then(|code: usize| letters.get_mut(code));
                let name = words.next().and_then(|name| name.strip_prefix('/'));
                if let (Some(place), Some(name)) = (place, name) {
                    *place = letter(name.as_bytes());
                    is_any = true;
                }
            }
            _ => {}
        }
    }
    is_any.then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::{base_letters, letter, program_letters};

    #[test]
    fn names_of_glyphs_stand_for_letters() {
        let names = [
            "A",
            "eacute",
            "fi",
            "f_i",
            "A.alt",
            "uni00E9",
            "uni00410042",
            "u1F600",
            ".notdef",
            "g17",
            "uni00e9",
            "u12",
        ];
        let known = [
            Some("A"),
            Some("é"),
            Some("ﬁ"),
            Some("fi"),
            Some("A"),
            Some("é"),
            Some("AB"),
            Some("😀"),
            None,
            None,
            None,
            None,
        ];
        assert_eq!(
            names.map(|name| letter(name.as_bytes())),
            known.map(|text| text.map(str::to_owned))
        );
    }

    #[test]
    fn encodings_of_the_format_and_of_programs() {
        let of = |name: &[u8], code: usize| base_letters(name)[code].clone().unwrap_or_default();
        let found = [
            of(b"WinAnsiEncoding", 0x80),
            of(b"MacRomanEncoding", 0x80),
            of(b"StandardEncoding", 0x27),
            of(b"StandardEncoding", 0x80),
        ];
        assert_eq!(found, ["€", "Ä", "’", ""]);
        let program =
            b"%!PS-AdobeFont-1.0\n/Encoding 256 array\n0 1 255 {1 index exch /.notdef put} for\n\
            dup 1 /alpha put\ndup 65 /B put\nreadonly def\ncurrentdict end\neexec dup 2 /C put";
        let letters = program_letters(program).unwrap();
        let known: Vec<_> = (0..)
            .zip(letters)
            .filter_map(|(at, it)| Some((at, it?)))
            .collect();
        assert_eq!(known, [(1, "α".to_owned()), (65, "B".to_owned())]);
        assert_eq!(
            program_letters(b"/Encoding StandardEncoding def dup 2 /C put"),
            None
        );
    }
}
